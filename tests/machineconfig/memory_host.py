"""A host in memory, as the recordings describe one: a tree of files, states of units, commands that fail."""

from __future__ import annotations

import base64
import posixpath
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from syncline.machineconfig.agent.host import Done, HostError, Stat

TOP = ("/etc", "/usr", "/var", "/opt", "/run", "/home", "/root", "/tmp", "/boot", "/proc", "/sys", "/dev", "/sysroot")
ENABLED = ("enabled", "enabled-runtime", "static", "alias", "indirect", "generated")
MISSING, NOT_A_FOLDER = "no such file or directory", "not a directory"


@dataclass(frozen=True)
class Node:
    stat: Stat
    content: bytes = b""


@dataclass
class MemoryHost:
    """``commands`` lists what was run; queries are answered and left out."""

    os: str = "rhcos"
    keeps_all: bool = False
    tree: dict[str, Node] = field(default_factory=dict)
    commands: list[str] = field(default_factory=list)
    failing: Sequence[str] = ()
    states: Mapping[str, str] = field(default_factory=dict)
    units: frozenset[str] = frozenset()
    rpm_owned: frozenset[str] = frozenset()
    programs: frozenset[str] = frozenset({"rpm"})
    shadow: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> MemoryHost:
        """From the input of a recorded case."""
        made = cls(
            os=given.get("os") or "rhcos",
            failing=tuple(given.get("failCommands") or ()),
            states=given.get("unitStates") or {},
            units=frozenset(given.get("units") or ()),
            rpm_owned=frozenset(given.get("rpmOwned") or ()),
            programs=frozenset() if given.get("noRpm") else frozenset({"rpm"}),
            shadow=given.get("shadow") or {},
        )
        for top in TOP:
            made.tree[top] = Node(Stat("dir", 0o755))
        made.tree["/dev/null"] = Node(Stat("file", 0o666))
        for entry in given.get("tree") or ():
            made.put(entry)
        return made

    def put(self, entry: Mapping[str, Any]) -> None:
        path, kind = entry["path"], entry.get("type") or "file"
        self.make_directories(posixpath.dirname(path))
        mode = int(entry.get("mode") or {"dir": "0755", "symlink": "0777"}.get(kind, "0644"), 8)
        stat = Stat(kind, mode, entry.get("uid") or 0, entry.get("gid") or 0, entry.get("target") or "")
        content = base64.b64decode(entry["base64"]) if "base64" in entry else (entry.get("text") or "").encode()
        self.tree[path] = Node(stat, content)

    # -- the protocol ---------------------------------------------------------------------------------------------

    def stat(self, path: str) -> Stat | None:
        self._parents("lstat", path)
        folder = self._real("lstat", posixpath.dirname(path)) or ""
        path = posixpath.join(folder, posixpath.basename(path))
        self._parents("lstat", path)
        node = self.tree.get(path)
        return node.stat if node is not None else None

    def exists(self, path: str) -> bool:
        real = self._real("stat", path)
        return real is not None and real in self.tree

    def read(self, path: str) -> bytes:
        real = self._real("open", path)
        if real is None or real not in self.tree:
            raise HostError("open", path, MISSING)
        if self.tree[real].stat.kind == "dir":
            raise HostError("read", path, "is a directory")
        return self.tree[real].content

    def write(
        self,
        path: str,
        content: bytes,
        *,
        mode: int = 0o644,
        owner: tuple[int, int] | None = None,
        parents: int = 0o755,
    ) -> None:
        self.make_directories(posixpath.dirname(path), parents)
        if path in self.tree and self.tree[path].stat.kind == "dir":
            raise HostError("rename", path, "file exists")
        uid, gid = owner or (0, 0)
        self.tree[path] = Node(Stat("file", mode, uid, gid), content)

    def copy(self, source: str, target: str) -> None:
        if source not in self.tree:
            raise HostError("cp", source, MISSING)
        self.make_directories(posixpath.dirname(target))
        self.tree[target] = self.tree[source]

    def link(self, path: str, target: str) -> None:
        if posixpath.dirname(path) not in self.tree:
            raise HostError(f"symlink {target}", path, MISSING)
        self.tree[path] = Node(Stat("symlink", 0o777, target=target))

    def remove(self, path: str) -> None:
        if path not in self.tree:
            raise HostError("remove", path, MISSING)
        if any(other.startswith(f"{path}/") for other in self.tree):
            raise HostError("remove", path, "directory not empty")
        del self.tree[path]

    def remove_all(self, path: str) -> None:
        for other in [each for each in self.tree if each == path or each.startswith(f"{path}/")]:
            del self.tree[other]

    def make_directories(self, path: str, mode: int = 0o755) -> None:
        missing = []
        while path not in ("/", "") and path not in self.tree:
            missing.append(path)
            path = posixpath.dirname(path)
        if path in self.tree and self.tree[path].stat.kind != "dir":
            raise HostError("mkdir", path, NOT_A_FOLDER)
        for each in reversed(missing):
            self.tree[each] = Node(Stat("dir", mode))

    def run(self, command: Sequence[str]) -> Done:
        line = " ".join(command)
        match list(command):
            case ["rpm", "-qf", path]:
                owned = path in self.rpm_owned
                return Done(0 if owned else 1, path if owned else f"file {path} is not owned by any package")
            case ["rpm-ostree", "status", *_]:
                return Done(1, "the recordings do not tell it")
            case ["systemctl", "is-enabled", name]:
                state = self.states.get(name, "not-found")
                return Done(0 if state in ENABLED else 1, state)
            case ["getent", "shadow", name]:
                return Done(0, f"{name}:{self.shadow[name]}:::::::") if name in self.shadow else Done(2)
        self.commands.append(line)
        if any(line.startswith(each) for each in self.failing):
            return Done(1, f"Failed: {line}")
        match list(command):
            case ["runuser", "-u", "core", "--", "mkdir", "-m", "0700", "-p", path]:
                if path not in self.tree:
                    self.tree[path] = Node(Stat("dir", 0o700, self.user_id("core") or 0, self.group_id("core") or 0))
        return Done(0)

    def names(self, path: str) -> list[str]:
        below = f"{path.rstrip('/')}/"
        return sorted({each[len(below) :].partition("/")[0] for each in self.tree if each.startswith(below)})

    def user_id(self, name: str) -> int | None:
        return self._id("/etc/passwd", name)

    def group_id(self, name: str) -> int | None:
        return self._id("/etc/group", name)

    def user_name(self, uid: int) -> str | None:
        for line in self._lines("/etc/passwd"):
            if line[2] == str(uid):
                return line[0]
        return None

    def note(self, text: str) -> None:
        """Nobody reads it here."""

    def has_program(self, name: str) -> bool:
        return name in self.programs

    def unit_files(self) -> frozenset[str]:
        return self.units

    # -- inside ---------------------------------------------------------------------------------------------------

    def _id(self, path: str, name: str) -> int | None:
        return next((int(line[2]) for line in self._lines(path) if line[0] == name), None)

    def _lines(self, path: str) -> list[list[str]]:
        node = self.tree.get(path)
        return [line.split(":") for line in node.content.decode().splitlines()] if node is not None else []

    def _parents(self, operation: str, path: str) -> None:
        above = posixpath.dirname(path)
        while above != "/":
            node = self.tree.get(above)
            if node is not None and node.stat.kind == "file":
                raise HostError(operation, path, NOT_A_FOLDER)
            above = posixpath.dirname(above)

    def _real(self, operation: str, path: str) -> str | None:
        self._parents(operation, path)
        for _ in range(40):
            parts = path.strip("/").split("/")
            heads = ["/" + "/".join(parts[: at + 1]) for at in range(len(parts))]
            link = next((head for head in heads if head in self.tree and self.tree[head].stat.kind == "symlink"), None)
            if link is None:
                return path
            rest = path[len(link) :]
            path = posixpath.normpath(posixpath.join(posixpath.dirname(link), self.tree[link].stat.target)) + rest
        return None

    # -- what came of it ------------------------------------------------------------------------------------------

    def snapshot(self) -> dict[str, Node]:
        return dict(self.tree)

    def changed(self, before: Mapping[str, Node]) -> list[dict[str, Any]]:
        """New and different entries, as recorded."""
        found = []
        for path in sorted(self.tree):
            node = self.tree[path]
            if before.get(path) == node:
                continue
            shown: dict[str, Any] = {"path": path}
            if node.stat.kind == "file":
                try:
                    shown["text"] = node.content.decode()
                except UnicodeDecodeError:
                    shown["base64"] = base64.b64encode(node.content).decode()
            else:
                shown["type"] = node.stat.kind
            if node.stat.kind == "symlink":
                shown["target"] = node.stat.target
            else:
                shown["mode"] = f"{node.stat.mode:04o}"
            shown |= {key: value for key, value in (("uid", node.stat.uid), ("gid", node.stat.gid)) if value}
            found.append(shown)
        return found

    def removed(self, before: Mapping[str, Node]) -> list[str]:
        return sorted(path for path in before if path not in self.tree)
