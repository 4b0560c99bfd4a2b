"""The files of one folder at one commit, as renderers see them, without a checkout.

``sources/git.py`` makes trees from a repository, tests make them from a dict. Paths are relative to the folder, use
``/`` and stay inside; nothing here touches the disk.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Protocol

from syncline.sources.errors import Problem, SourceError

__all__ = ["MAX_PATH", "Entry", "MemoryTree", "Tree", "clean_path", "with_modes"]

MAX_PATH = 4096
"""Length of a path in a source; longer ones are not meant by people (Linux PATH_MAX)."""

SYMLINK_MODE = "120000"
SUBMODULE_MODE = "160000"
EXECUTABLE_MODE = "100755"


@dataclass(frozen=True, slots=True, order=True)
class Entry:
    """One file. ``blob`` names its content: equal ids mean equal bytes. ``size`` is in bytes."""

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
    """For those who run what they read: another blob where a file may be executed."""
    return tuple(replace(one, blob=f"{one.blob} x") if one.mode == EXECUTABLE_MODE else one for one in entries)


class Tree(Protocol):
    """A folder at a commit. ``id`` names its whole content."""

    @property
    def id(self) -> str: ...

    @property
    def path(self) -> str: ...

    @property
    def entries(self) -> tuple[Entry, ...]:
        """Every file below the folder, sorted by path."""
        ...

    def read(self, entries: Iterable[Entry]) -> dict[str, bytes]:
        """Content by path; raises :class:`SourceError`."""
        ...

    def follow(self, entry: Entry) -> Entry | None:
        """The regular file a symlink ends at, under the link's own path; None if it ends at a folder or at nothing.

        Raises :class:`SourceError` if it leaves the repository or goes in circles.
        """
        ...

    def whole(self) -> Tree:
        """The whole repository at this commit, for tools whose files name others outside the folder."""
        ...


def clean_path(path: str) -> str:
    """A source path without ``.`` and empty parts, empty for the repository's root.

    Raises :class:`SourceError` for what could leave the repository.
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
    """A tree held in memory: what a rehearsal or a test calls a repository."""

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
        """The folder ``path`` of this tree, as an Application names it."""
        inside = {
            name[len(path) + 1 :]: content for name, content in self._files.items() if name.startswith(f"{path}/")
        }
        made = MemoryTree(inside, path)
        made._whole = self
        return made

    def whole(self) -> MemoryTree:
        return self._whole or self
