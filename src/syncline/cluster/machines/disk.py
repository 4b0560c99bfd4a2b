"""Persist machines: below one directory, each machine has a root tree and a state file.

``assembly`` gives a :class:`MachineDisk` to the registry of machines if a cluster has a data directory. Layout:
``NAME/root`` has the tree, ``NAME/attributes.json`` unusual owners and modes, ``NAME/machine.json`` the state. All
files belong to this process, only it reads them, none is executable, and no link is ever followed. The lock of the
cluster's data also protects the directory.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import stat
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from syncline.cluster.machines.machine import (
    DirectoryTree,
    Entry,
    EntryKind,
    Handshake,
    Layers,
    MachineState,
    Power,
    Unit,
    checked_path,
)
from syncline.cluster.storage.disk import DiskError

STATE_VERSION = 1
STATE, ATTRIBUTES, ROOT, DRAFT, GONE = "machine.json", "attributes.json", "root", "draft", "gone"
_NAME = re.compile(r"[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?")
"""Node names are DNS subdomains, so no name leads out of the directory."""
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW
_USUAL = {EntryKind.FILE: 0o644, EntryKind.DIRECTORY: 0o755, EntryKind.SYMLINK: 0o777}


@dataclass(slots=True)
class MachineDisk:
    """Implements :class:`~syncline.cluster.machines.machine.MachineKeeper`. Raises DiskError for unreadable files."""

    directory: Path

    def __post_init__(self) -> None:
        self.directory.mkdir(mode=0o700, parents=True, exist_ok=True)

    def state(self, name: str) -> MachineState | None:
        path = self._of(name) / STATE
        found = _read_json(path)
        if found is None:
            return None
        try:
            return state_from_json(found)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise _damaged(path, error) from error

    def keep(self, name: str, state: MachineState) -> None:
        _replace_json(self._of(name), STATE, state_to_json(state))

    def root(self, name: str) -> DirectoryTree:
        return DiskTree(self._of(name))

    def forget(self, name: str) -> None:
        """Rename first, then delete: a crash leaves no machine with half its files."""
        aside = self.directory / f".{name}.{GONE}"
        shutil.rmtree(aside, ignore_errors=True)
        with contextlib.suppress(FileNotFoundError):
            os.rename(self._of(name), aside)
            shutil.rmtree(aside, ignore_errors=True)

    def _of(self, name: str) -> Path:
        if not _NAME.fullmatch(name):
            raise ValueError(f"machine {name!r}: give a DNS subdomain such as node-1")
        return self.directory / name


# -- the root tree ---------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class DiskTree:
    """Implements :class:`~syncline.cluster.machines.machine.DirectoryTree`; writes return once they are on disk.

    Attributes are written before their content: a crash leaves old content under the new mode, never a secret under an
    old, wider one.
    """

    directory: Path
    _attributes: dict[str, list[Any]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Load attributes; drop those of paths removed by hand or just before a crash."""
        (self.directory / ROOT).mkdir(mode=0o700, parents=True, exist_ok=True)
        path = self.directory / ATTRIBUTES
        found = _read_json(path) or {}
        if not all(isinstance(each, list) and len(each) == 3 for each in found.values()):
            raise _damaged(path, ValueError("not a list of mode, user and group for each path"))
        self._attributes = {each: found[each] for each in sorted(found) if self._kind(each) is not None}

    def read(self, path: str) -> Entry | None:
        names = _names(path)
        if not names:
            return None
        with self._parent(names) as parent:
            kind = _kind_at(parent, names[-1])
            if parent is None or kind is None:
                return None
            content = _content(parent, names[-1], kind)
        mode, user, group = self._attributes.get(path, [_USUAL[kind], "root", "root"])
        return Entry(kind, content, mode, user, group)

    def write(self, path: str, entry: Entry) -> None:
        names = _entry_names(path)
        self._make_parents(path, names[:-1])
        with self._parent(names) as parent:
            assert parent is not None, "its parents were just made"
            old = _kind_at(parent, names[-1])
            if entry.kind is not EntryKind.DIRECTORY and old is EntryKind.DIRECTORY:
                self._take_away(parent, names[-1], path)
            self._note(path, entry)
            self._put(parent, names[-1], entry, old)

    def remove(self, path: str) -> bool:
        names = _entry_names(path)
        with self._parent(names) as parent:
            if parent is None or _kind_at(parent, names[-1]) is None:
                return False
            self._take_away(parent, names[-1], path)
        return True

    def paths(self, below: str = "/") -> Iterator[str]:
        start = checked_path(below).rstrip("/")
        found: list[str] = []
        with self._open(_names(below)) as top:
            if top is not None:
                for place, directories, files, _ in os.fwalk(".", dir_fd=top, follow_symlinks=False):
                    inside = place[1:]
                    found += [f"{start}{inside}/{name}" for name in (*directories, *files)]
        yield from sorted(found)

    def _make_parents(self, path: str, names: Sequence[str]) -> None:
        for number in range(len(names)):
            above = "/" + "/".join(names[: number + 1])
            kind = self._kind(above)
            if kind is None:
                with self._parent(names[: number + 1]) as parent:
                    os.mkdir(names[number], 0o700, dir_fd=parent)
            elif kind is not EntryKind.DIRECTORY:
                raise ValueError(f"{path}: {above} is a {kind}, no directory; remove it first")

    def _put(self, parent: int, name: str, entry: Entry, old: EntryKind | None) -> None:
        """Write a file or link to a temporary path, then rename it."""
        if entry.kind is EntryKind.DIRECTORY:
            if old is not EntryKind.DIRECTORY:
                if old is not None:
                    os.unlink(name, dir_fd=parent)
                os.mkdir(name, 0o700, dir_fd=parent)
            return
        draft = self.directory / DRAFT
        draft.unlink(missing_ok=True)
        if entry.kind is EntryKind.SYMLINK:
            os.symlink(entry.content, os.fsencode(draft))
        else:
            _write_durably(draft, entry.content)
        os.replace(draft, name, dst_dir_fd=parent)

    def _take_away(self, parent: int, name: str, path: str) -> None:
        """Rename an entry aside and delete it, then its attributes."""
        aside = self.directory / GONE
        _clear(aside)
        os.rename(name, aside, src_dir_fd=parent)
        _clear(aside)
        left = {k: v for k, v in self._attributes.items() if k != path and not k.startswith(path + "/")}
        self._keep(left)

    def _note(self, path: str, entry: Entry) -> None:
        left = {key: value for key, value in self._attributes.items() if key != path}
        has = [entry.mode, entry.user, entry.group]
        self._keep(left if has == [_USUAL[entry.kind], "root", "root"] else left | {path: has})

    def _keep(self, attributes: dict[str, list[Any]]) -> None:
        if attributes != self._attributes:
            _replace_json(self.directory, ATTRIBUTES, attributes)
            self._attributes = attributes

    def _kind(self, path: str) -> EntryKind | None:
        names = _names(path)
        with self._parent(names) as parent:
            return _kind_at(parent, names[-1]) if names else EntryKind.DIRECTORY

    @contextlib.contextmanager
    def _parent(self, names: Sequence[str]) -> Iterator[int | None]:
        with self._open(names[:-1]) as parent:
            yield parent

    @contextlib.contextmanager
    def _open(self, names: Sequence[str]) -> Iterator[int | None]:
        """Yield a descriptor of a directory, opened name by name without following links; None if it does not exist."""
        current: int | None = os.open(self.directory / ROOT, _DIRECTORY)
        try:
            for name in names:
                assert current is not None
                try:
                    deeper = os.open(name, _DIRECTORY, dir_fd=current)
                except (FileNotFoundError, NotADirectoryError):
                    deeper = None
                os.close(current)
                current = deeper
                if current is None:
                    break
            yield current
        finally:
            if current is not None:
                os.close(current)


def _names(path: str) -> list[str]:
    return [name for name in checked_path(path).split("/") if name]


def _entry_names(path: str) -> list[str]:
    names = _names(path)
    if not names:
        raise ValueError("/ is no entry of a tree; name a path below it")
    return names


def _kind_at(parent: int | None, name: str) -> EntryKind | None:
    """Return None if nothing is there, or a kind that trees do not support (devices, pipes)."""
    if parent is None:
        return None
    try:
        mode = os.stat(name, dir_fd=parent, follow_symlinks=False).st_mode
    except FileNotFoundError:
        return None
    kinds = {stat.S_IFREG: EntryKind.FILE, stat.S_IFDIR: EntryKind.DIRECTORY, stat.S_IFLNK: EntryKind.SYMLINK}
    return kinds.get(stat.S_IFMT(mode))


def _content(parent: int, name: str, kind: EntryKind) -> bytes:
    if kind is EntryKind.DIRECTORY:
        return b""
    if kind is EntryKind.SYMLINK:
        return os.fsencode(os.readlink(name, dir_fd=parent))
    with open(os.open(name, os.O_RDONLY | os.O_NOFOLLOW, dir_fd=parent), "rb") as file:
        return file.read()


def _clear(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


# -- files of Syncline ------------------------------------------------------------------------------------------------


def _write_durably(path: Path, content: bytes) -> None:
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600), "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def _replace_json(directory: Path, name: str, content: Mapping[str, Any]) -> None:
    directory.mkdir(mode=0o700, exist_ok=True)
    draft = directory / f"{name}.{DRAFT}"
    draft.unlink(missing_ok=True)
    _write_durably(draft, json.dumps(content, indent=1, sort_keys=True).encode())
    os.replace(draft, directory / name)


def _read_json(path: Path) -> dict[str, Any] | None:
    try:
        found = json.loads(path.read_bytes())
    except FileNotFoundError:
        return None
    except (ValueError, RecursionError) as error:
        raise _damaged(path, error) from error
    if not isinstance(found, dict):
        raise _damaged(path, ValueError("not an object"))
    return found


def _damaged(path: Path, error: Exception) -> DiskError:
    return DiskError(f"{path}: damaged ({error}) and left as it is; restore it, or remove {path.parent}")


# -- state and its text ----------------------------------------------------------------------------------------------


def state_to_json(state: MachineState) -> dict[str, Any]:
    """Return a state as JSON-compatible values."""
    found = asdict(state)
    for name in ("changes_at", "booted_at", "stopped_at"):
        found[name] = None if found[name] is None else found[name].isoformat()
    return {"version": STATE_VERSION, **found}


def state_from_json(found: Mapping[str, Any]) -> MachineState:
    """Return the state of such values. Raises KeyError, TypeError or ValueError for malformed ones."""
    if found["version"] != STATE_VERSION:
        raise ValueError(f"version {found['version']}; this Syncline knows {STATE_VERSION}")
    return MachineState(
        boot_id=str(found["boot_id"]),
        boots=int(found["boots"]),
        power=Power(found["power"]),
        changes_at=_instant(found["changes_at"]),
        booted_at=_instant(found["booted_at"]),
        stopped_at=_instant(found["stopped_at"]),
        reboot=Handshake(**found["reboot"]),
        units={name: Unit(**unit) for name, unit in found["units"].items()},
        kernel_arguments=tuple(found["kernel_arguments"]),
        next_kernel_arguments=tuple(found["next_kernel_arguments"]),
        os_image=str(found["os_image"]),
        next_os_image=str(found["next_os_image"]),
        layers=_layers(found.get("layers")),
        next_layers=_layers(found.get("next_layers")),
    )


def _layers(found: Mapping[str, Any] | None) -> Layers:
    """Return the layers; states written before layers existed have none."""
    return Layers() if found is None else Layers(tuple(found["packages"]), tuple(found["removals"]))


def _instant(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text)
