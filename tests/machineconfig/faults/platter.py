"""A layer below the files of a Linux root that sees every change, and what a power cut may leave of them.

:func:`recorded` stands between ``hosts/linuxroot.py`` and the operating system. What it has seen is played back as
POSIX allows and no more: the bytes of a file are there once the file was synced, what a directory holds once the
directory was; of what came later in one directory some first part may be there. Directories know nothing of each other.
"""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import stat
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import syncline.hosts.linuxroot as linuxroot


@dataclass
class Inode:
    """``entries`` of a directory, None of others; ``target`` of a link. ``synced``: bytes that are surely there."""

    entries: dict[str, Inode] | None = None
    content: bytes = b""
    synced: bytes | None = None
    target: str = ""
    mode: int = 0o755
    durable: dict[str, Inode] = field(default_factory=dict)
    """Of a directory: its entries at its last sync."""
    later: list[tuple[str, Inode | None]] = field(default_factory=list)
    """Changes of its entries since then; None: gone."""

    @property
    def kind(self) -> str:
        return "dir" if self.entries is not None else "symlink" if self.target else "file"

    def change(self, name: str, inode: Inode | None) -> None:
        assert self.entries is not None
        if inode is None:
            del self.entries[name]
        else:
            self.entries[name] = inode
        self.later.append((name, inode))

    def sync(self) -> None:
        if self.entries is None:
            self.synced = self.content
        else:
            self.durable, self.later = dict(self.entries), []


Tree = dict[str, tuple[str, bytes, int]]
"""Kind, content (of links their target) and mode by path."""


def as_it_is(root: Path) -> Inode:
    """What lies there, all of it synced."""
    if root.is_symlink():
        return Inode(target=os.readlink(root))
    mode = stat.S_IMODE(root.stat().st_mode)
    if not root.is_dir():
        content = root.read_bytes()
        return Inode(content=content, synced=content, mode=mode)
    found = Inode({each.name: as_it_is(each) for each in sorted(root.iterdir())}, mode=mode)
    found.sync()
    return found


def after_power_cut(root: Inode, chance: random.Random | None) -> Tree:
    """``chance`` None: nothing arrived that was not synced; else of each directory some first part of its changes, and
    of a file that was not synced some part of its bytes."""
    tree: Tree = {}

    def walk(inode: Inode, path: str) -> None:
        if inode.entries is None:
            content = inode.content if inode.synced is None else inode.synced
            if inode.synced is None and not inode.target:
                content = content[: 0 if chance is None else chance.randrange(len(content) + 1)]
            tree[path] = (inode.kind, inode.target.encode() or content, inode.mode)
            return
        if path:
            tree[path] = ("dir", b"", inode.mode)
        entries = dict(inode.durable)
        for name, changed in inode.later[: 0 if chance is None else chance.randrange(len(inode.later) + 1)]:
            if changed is None:
                entries.pop(name, None)
            else:
                entries[name] = changed
        for name, each in entries.items():
            walk(each, f"{path}/{name}")

    walk(root, "")
    return tree


def laid_out(tree: Tree, root: Path) -> None:
    """As files."""
    root.mkdir()
    for path, (kind, content, mode) in tree.items():
        place = Path(f"{root}{path}")
        if kind == "dir":
            place.mkdir()
        elif kind == "symlink":
            place.symlink_to(content.decode())
            continue
        else:
            place.write_bytes(content)
        place.chmod(mode)


@dataclass
class Recorder:
    """In place of ``os`` in the module of the root. ``cut`` is called after every change, with what was done."""

    base: Path
    root: Inode
    cut: Any = None
    steps: int = 0
    forgets: str = ""
    """``file`` or ``dir``: a disk that does not keep these although they are synced."""

    def __getattr__(self, name: str) -> Any:
        return getattr(os, name, None) or getattr(shutil, name)

    def _at(self, opened: int) -> Inode:
        place = os.readlink(f"/proc/self/fd/{opened}").removesuffix(" (deleted)")
        return self._find(Path(place).relative_to(self.base).parts)

    def _find(self, parts: tuple[str, ...]) -> Inode:
        inode = self.root
        for part in parts:
            assert inode.entries is not None
            inode = inode.entries[part]
        return inode

    def _done(self, what: str) -> None:
        self.steps += 1
        if self.cut is not None:
            self.cut(what)

    def open(self, name: Any, flags: int, mode: int = 0o777, *, dir_fd: int | None = None) -> int:
        opened = os.open(name, flags, mode, dir_fd=dir_fd)
        if flags & os.O_CREAT and dir_fd is not None:
            self._at(dir_fd).change(name, Inode(mode=mode))
            self._done(f"create {name}")
        return opened

    def fchmod(self, opened: int, mode: int) -> None:
        os.fchmod(opened, mode)
        self._at(opened).mode = mode

    def fsync(self, opened: int) -> None:
        """Noted only: who plays back needs no disk."""
        inode = self._at(opened)
        if inode.entries is None:
            inode.content = Path(f"/proc/self/fd/{opened}").read_bytes()
            self._done("before a sync")
        if inode.kind != self.forgets:
            inode.sync()
        self._done("sync")

    def mkdir(self, name: str, mode: int = 0o777, *, dir_fd: int) -> None:
        os.mkdir(name, mode, dir_fd=dir_fd)
        self._at(dir_fd).change(name, Inode({}, mode=mode))
        self._done(f"mkdir {name}")

    def symlink(self, target: str, name: str, *, dir_fd: int) -> None:
        os.symlink(target, name, dir_fd=dir_fd)
        self._at(dir_fd).change(name, Inode(target=target))
        self._done(f"symlink {name}")

    def unlink(self, name: str, *, dir_fd: int) -> None:
        os.unlink(name, dir_fd=dir_fd)
        self._at(dir_fd).change(name, None)
        self._done(f"unlink {name}")

    def rmdir(self, name: str, *, dir_fd: int) -> None:
        os.rmdir(name, dir_fd=dir_fd)
        self._at(dir_fd).change(name, None)
        self._done(f"rmdir {name}")

    def rename(self, old: str, new: str, *, src_dir_fd: int, dst_dir_fd: int) -> None:
        assert src_dir_fd == dst_dir_fd, "drafts lie beside their files"
        os.rename(old, new, src_dir_fd=src_dir_fd, dst_dir_fd=dst_dir_fd)
        folder = self._at(src_dir_fd)
        assert folder.entries is not None
        moved = folder.entries.pop(old)
        folder.entries[new] = moved
        folder.later += [(new, moved), (old, None)]
        self._done(f"rename to {new}")

    def rmtree(self, name: str, *, dir_fd: int) -> None:
        shutil.rmtree(name, dir_fd=dir_fd)
        self._at(dir_fd).change(name, None)
        self._done(f"remove all of {name}")


@contextlib.contextmanager
def recorded(root: Path, *, forgets: str = "") -> Iterator[Recorder]:
    """Every change that a :class:`LinuxRoot` below ``root`` makes in the block."""
    recorder = Recorder(root, as_it_is(root), forgets=forgets)
    before = linuxroot.os, linuxroot.shutil
    linuxroot.os, linuxroot.shutil = recorder, recorder  # type: ignore[assignment]
    try:
        yield recorder
    finally:
        linuxroot.os, linuxroot.shutil = before
