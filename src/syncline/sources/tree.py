"""The files of one folder at one commit, without a checkout: :class:`Tree`.

``sources/git/mirrors.py`` creates trees from a repository, tests from a dict. Paths are relative to the folder, use
``/`` and stay inside; nothing here touches the disk.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Protocol

from syncline.sources.errors import Problem, SourceError

MAX_PATH = 4096
"""Length of a path in a source; longer ones are not meant by people (Linux PATH_MAX)."""

MAX_ENTRIES = 1_000_000
"""Files of one commit that are listed: a tree that names another ten times, ten levels deep, has more than any disk."""

SYMLINK_MODE = "120000"
SUBMODULE_MODE = "160000"
EXECUTABLE_MODE = "100755"


@dataclass(frozen=True, slots=True, order=True)
class Entry:
    """One file. ``blob`` identifies its content: equal ids mean equal bytes. ``size`` is in bytes."""

    path: str
    mode: str
    blob: str
    size: int

    @property
    def is_symlink(self) -> bool:
        return self.mode == SYMLINK_MODE

    @property
    def is_file(self) -> bool:
        return self.mode not in (SYMLINK_MODE, SUBMODULE_MODE)


def with_modes(entries: Iterable[Entry]) -> tuple[Entry, ...]:
    """Give executable files other blobs, for tools that run the files they read."""
    return tuple(replace(one, blob=f"{one.blob} x") if one.mode == EXECUTABLE_MODE else one for one in entries)


_NOT_CHECKED_OUT = frozenset(("", ".", "..", ".git"))
"""Names that git refuses to write into a working tree, whatever their case."""


def conflict(paths: Collection[str]) -> str:
    """Return a path that is both a file and a folder, empty for none; writing one would change the other."""
    return min(_folders(paths) & set(paths), default="")


def _folders(paths: Iterable[str]) -> set[str]:
    found: set[str] = set()
    for path in paths:
        folder = path.rpartition("/")[0]
        while folder and folder not in found:
            found.add(folder)
            folder = folder.rpartition("/")[0]
    return found


def checked(entries: Sequence[Entry], label: str) -> Sequence[Entry]:
    """Return ``entries`` of a commit if a checkout could hold them: git serves trees that it would not write.

    Raises :class:`SourceError` for names that leave the repository, that are git's own, or that are ambiguous.
    """
    paths = {entry.path for entry in entries}
    named = {path.rpartition("/")[2].lower(): path for path in paths | _folders(paths)}
    odd = min((path for name, path in named.items() if name in _NOT_CHECKED_OUT), default="")
    odd = odd or min((path for path in paths if path.startswith("/")), default="") or conflict(paths)
    if odd or len(paths) < len(entries):
        odd = odd or min(one.path for one, other in pairwise(sorted(entries)) if one.path == other.path)
        raise SourceError(
            Problem.REFUSED,
            f"{label}: the commit holds {odd[:200]!r}, which git does not check out",
            subject=label,
            fix="commit the file under another name (git fsck names the tree)",
        )
    return entries


class Tree(Protocol):
    """A folder at a commit. ``id`` identifies its whole content."""

    @property
    def id(self) -> str: ...

    @property
    def path(self) -> str: ...

    @property
    def entries(self) -> tuple[Entry, ...]:
        """Return every file below the folder, sorted by path."""
        ...

    def read(self, entries: Iterable[Entry]) -> dict[str, bytes]:
        """Return contents by path; raises :class:`SourceError`."""
        ...

    def follow(self, entry: Entry) -> Entry | None:
        """Return the regular file that a symlink points to, under the link's path; None for a folder or no target.

        Raises :class:`SourceError` if it leaves the repository or is circular.
        """
        ...

    def whole(self) -> Tree:
        """Return the whole repository at this commit, for tools whose files reference others outside the folder."""
        ...


def clean_path(path: str) -> str:
    """Return a source path without ``.`` and empty parts, empty for the repository's root.

    Raises :class:`SourceError` for paths that could leave the repository.
    """
    text = path.strip()
    parts = [part for part in text.split("/") if part not in ("", ".")]
    control = any(ord(letter) < 32 or ord(letter) == 127 for letter in text)
    if text.startswith("/") or ".." in parts or "\\" in text or control or len(text) > MAX_PATH:
        raise SourceError(
            Problem.REFUSED,
            f"Application path {path[:200]!r} leaves the repository",
            field="spec.source.path",
            fix="give a path relative to the repository's root, without ..",
        )
    return "/".join(parts)


class MemoryTree:
    """A tree in memory: the repository of a rehearsal or a test."""

    def __init__(self, files: Mapping[str, bytes], path: str = "") -> None:
        self._files = dict(files)
        self.path = path
        self._whole: MemoryTree | None = None
        self.entries: tuple[Entry, ...] = tuple(
            Entry(name, "100644", hashlib.sha256(content).hexdigest(), len(content))
            for name, content in sorted(self._files.items())
        )
        listing = "\n".join(f"{entry.path}\0{entry.blob}" for entry in self.entries)
        self.id: str = hashlib.sha256(listing.encode()).hexdigest()

    def read(self, entries: Iterable[Entry]) -> dict[str, bytes]:
        return {entry.path: self._files[entry.path] for entry in entries}

    def follow(self, entry: Entry) -> Entry | None:
        return entry

    def folder(self, path: str) -> MemoryTree:
        """Return the folder ``path`` of this tree."""
        inside = {
            name[len(path) + 1 :]: content for name, content in self._files.items() if name.startswith(f"{path}/")
        }
        made = MemoryTree(inside, path)
        made._whole = self
        return made

    def whole(self) -> MemoryTree:
        return self._whole or self
