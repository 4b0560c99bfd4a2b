"""The files of a build, read from a :class:`~syncline.sources.tree.Tree` and from nowhere else.

Called by every step that names a file. Knows kustomize's load restrictor (a file must lie in or below the folder of
its kustomization, folders may lie anywhere in the repository), follows symbolic links inside the tree, refuses what
leaves it and everything remote, and notes what was read or looked for, so that a cache can tell whether it changed.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from syncline.sources.errors import Problem
from syncline.sources.kustomize.failure import BuildError
from syncline.sources.tree import Entry, Tree

__all__ = ["DEFAULT_LIMITS", "Folder", "Limits", "Source"]


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds of one build, so that a wrong or hostile repository costs an error and not the machine."""

    files: int = 10_000
    bytes: int = 50_000_000
    """All files together."""
    resources: int = 20_000
    depth: int = 64
    """Kustomizations inside kustomizations."""
    kustomizations: int = 2_000
    """All that are built in one go; a diamond of bases is built once per way to it."""
    links: int = 40
    """Symbolic links on the way to one file (Linux)."""


DEFAULT_LIMITS = Limits()

_REMOTE_FILE = re.compile(r"https?://", re.IGNORECASE)
_REMOTE = re.compile(
    r"(?i)^(?:git::|[a-z][a-z0-9+.-]*://|git@|[^/\s]+@[^/\s]+:|github\.com[/:]|gitlab\.com/)|\.git(?:/|\?|$)|_git/"
)


@dataclass(slots=True)
class Source:
    """A whole tree. ``label`` is put before paths in messages; ``restricted`` is the load restrictor.

    ``touched`` collects every path that was read or looked for, with its blob; empty for what is not there.
    """

    tree: Tree
    label: str = ""
    restricted: bool = True
    limits: Limits = DEFAULT_LIMITS
    touched: dict[str, str] = field(default_factory=dict)
    _entries: dict[str, Entry] = field(init=False)
    _folders: set[str] = field(init=False)
    _contents: dict[str, bytes] = field(default_factory=dict)
    _size: int = 0
    built: int = 0

    def __post_init__(self) -> None:
        self._entries = {entry.path: entry for entry in self.tree.entries}
        self._folders = {""}
        for path in self._entries:
            while path := posixpath.dirname(path):
                if path in self._folders:
                    break
                self._folders.add(path)

    def shown(self, path: str) -> str:
        """A path as messages tell it."""
        return f"{self.label}/{path}".rstrip("/") if self.label else path or "."

    def find(self, path: str) -> tuple[str, bool] | None:
        """The real place of ``path`` and whether it is a folder, links followed; None if nothing is there."""
        done: list[str] = []
        todo = path.split("/")[::-1]
        links = 0
        while todo:
            part = todo.pop()
            if part in ("", "."):
                continue
            if part == "..":
                if not done:
                    return None
                done.pop()
                continue
            here = "/".join([*done, part])
            entry = self._entries.get(here)
            if entry is None or not entry.is_symlink:
                if entry is None and here not in self._folders:
                    self.touched.setdefault(here, "")
                    return None
                done.append(part)
                continue
            links += 1
            target = self._content(entry).decode("utf-8", "replace")
            if links > self.limits.links or target.startswith("/"):
                raise BuildError(
                    f"the symbolic link {self.shown(here)} leaves the repository or goes in circles",
                    problem=Problem.REFUSED,
                )
            todo += target.split("/")[::-1]
        real = "/".join(done)
        return real, real in self._folders

    def read(self, real: str) -> bytes:
        """The content of the file at a real place."""
        return self._content(self._entries[real])

    def _content(self, entry: Entry) -> bytes:
        content = self._contents.get(entry.path)
        if content is not None:
            return content
        self._size += entry.size
        if self._size > self.limits.bytes or len(self._contents) >= self.limits.files:
            raise BuildError(
                f"the build reads more than {self.limits.files} files or {self.limits.bytes} bytes",
                problem=Problem.TOO_LARGE,
                fix="split the kustomization",
            )
        content = self.tree.read([entry])[entry.path]
        self._contents[entry.path] = content
        self.touched[entry.path] = entry.blob
        return content

    def read_set(self) -> Iterable[tuple[str, str]]:
        """Path and blob of everything the build depends on, sorted."""
        return sorted(self.touched.items())


@dataclass(frozen=True, slots=True)
class Folder:
    """The place of one kustomization; ``outer`` is the one that named it."""

    source: Source
    path: str
    outer: Folder | None = None

    @property
    def shown(self) -> str:
        return self.source.shown(self.path)

    @property
    def depth(self) -> int:
        return 0 if self.outer is None else self.outer.depth + 1

    def load(self, name: str) -> bytes:
        """The content of a file by its path from here; raises :class:`BuildError`."""
        if _REMOTE_FILE.match(name):
            raise _remote(name)
        joined, found = self._find(name)
        if found is None:
            raise BuildError(f"evalsymlink failure on '{self.source.shown(joined)}' : no such file or directory")
        real, is_folder = found
        if is_folder:
            raise BuildError(f"'{self.source.shown(joined)}' must resolve to a file")
        if self.source.restricted and self.path and not real.startswith(f"{self.path}/"):
            raise BuildError(
                f"security; file '{self.source.shown(real)}' is not in or below '{self.shown}'",
                problem=Problem.REFUSED,
            )
        return self.source.read(real)

    def text(self, name: str) -> str:
        return decoded(self.load(name))

    def enter(self, name: str) -> Folder:
        """The folder of another kustomization; raises :class:`BuildError` for files, cycles and remote places."""
        if not name:
            raise BuildError("new root cannot be empty")
        if name.startswith("/"):
            raise BuildError(f"new root '{name}' cannot be absolute")
        joined, found = self._find(name)
        if found is None and _REMOTE.search(name):
            raise _remote(name)
        shown = self.source.shown(joined)
        if found is None:
            raise BuildError(
                f"must build at directory: not a valid directory: evalsymlink failure on '{shown}' : "
                "no such file or directory"
            )
        real, is_folder = found
        if not is_folder:
            raise BuildError(f"must build at directory: '{shown}': file is not directory")
        here: Folder | None = self
        while here is not None:
            if here.path == real or not real or here.path.startswith(f"{real}/"):
                raise BuildError(
                    f"cycle detected: candidate root '{self.source.shown(real)}' contains visited root '{here.shown}'"
                )
            here = here.outer
        if self.depth >= self.source.limits.depth:
            raise BuildError(
                f"kustomizations are nested deeper than {self.source.limits.depth} levels", problem=Problem.TOO_LARGE
            )
        return Folder(self.source, real, self)

    def _find(self, name: str) -> tuple[str, tuple[str, bool] | None]:
        joined = f"{self.path}/{name}" if self.path else name
        if name.startswith("/"):
            return name, None
        return joined, self.source.find(joined)


def decoded(content: bytes) -> str:
    """Text of a file; bytes that are no UTF-8 are an error of the YAML that holds them."""
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        if content[:2] in (b"\xff\xfe", b"\xfe\xff"):
            return content.decode("utf-16", "replace")
        raise BuildError("MalformedYAMLError: yaml: invalid leading UTF-8 octet") from None


def _remote(name: str) -> BuildError:
    return BuildError(
        f"'{name}' is a remote place, which is not fetched",
        problem=Problem.UNSUPPORTED,
        fix="copy it into the repository, or make it a source of its own",
    )
