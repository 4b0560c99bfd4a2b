"""A local folder in the form of a repository at a commit, with uncommitted files; for renderers.

Called by ``plan --local``. Only files below the root are read, wherever links point; ``.git`` is excluded.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterable
from functools import cached_property
from pathlib import Path

from syncline.sources.errors import Problem, SourceError
from syncline.sources.tree import SYMLINK_MODE, Entry

MAX_FILES = 100_000
MAX_FILE = 64 * 1024 * 1024
"""Limit of one file in bytes; larger ones are no manifests."""


def repository_root(folder: Path) -> Path:
    """Return the working tree of ``folder``, or the folder itself: the files that it may refer to."""
    resolved = folder.resolve()
    return next((each for each in (resolved, *resolved.parents) if (each / ".git").exists()), resolved)


class DiskTree:
    """``path``: the folder below ``root``, empty for the root itself."""

    def __init__(self, root: Path, path: str = "") -> None:
        self._root = root
        self.path = path
        self._folder = root / path if path else root

    @property
    def id(self) -> str:
        listing = "\n".join(f"{entry.path}\0{entry.blob}" for entry in self.entries)
        return hashlib.sha256(listing.encode()).hexdigest()

    @cached_property
    def entries(self) -> tuple[Entry, ...]:
        found: list[Entry] = []
        for folder, folders, files in os.walk(self._folder):
            linked = [name for name in folders if os.path.islink(os.path.join(folder, name))]
            folders[:] = sorted(name for name in folders if name != ".git" and name not in linked)
            found += [one for name in (*files, *linked) if (one := self._entry(Path(folder, name))) is not None]
            if len(found) > MAX_FILES:
                raise SourceError(Problem.TOO_LARGE, f"{self._folder} holds more than {MAX_FILES} files")
        return tuple(sorted(found))

    def _entry(self, file: Path) -> Entry | None:
        """Return the entry of a file or link; None for pipes, sockets and devices, whose read could block."""
        info = file.lstat()
        if not stat.S_ISREG(info.st_mode) and not stat.S_ISLNK(info.st_mode):
            return None
        mode = SYMLINK_MODE if stat.S_ISLNK(info.st_mode) else "100644"
        blob = f"{info.st_ino}-{info.st_size}-{info.st_mtime_ns}"
        return Entry(file.relative_to(self._folder).as_posix(), mode, blob, info.st_size)

    def _inside(self, entry: Entry) -> Path:
        try:
            file = (self._folder / entry.path).resolve()
            wrong = "" if file.is_relative_to(self._root) else f"leaves {self._root}"
        except (OSError, RuntimeError):  # Python raises this for links that lead to themselves
            wrong = "goes in circles"
        if wrong:
            raise SourceError(
                Problem.REFUSED,
                f"{entry.path}: the symbolic link {wrong}",
                fix="link to a file of the same repository by a relative path",
            )
        return file

    def read(self, entries: Iterable[Entry]) -> dict[str, bytes]:
        found: dict[str, bytes] = {}
        for entry in entries:
            try:
                if entry.is_symlink:
                    found[entry.path] = os.readlink(self._folder / entry.path).encode()
                    continue
                with open(self._inside(entry), "rb") as stream:
                    content = stream.read(MAX_FILE + 1)
            except OSError as error:
                raise SourceError(Problem.INVALID, f"{entry.path}: {error.strerror}") from error
            if len(content) > MAX_FILE:
                raise SourceError(Problem.TOO_LARGE, f"{entry.path} has more than {MAX_FILE} bytes")
            found[entry.path] = content
        return found

    def follow(self, entry: Entry) -> Entry | None:
        if not entry.is_symlink:
            return entry
        file = self._inside(entry)
        return Entry(entry.path, "100644", str(file), file.stat().st_size) if file.is_file() else None

    def whole(self) -> DiskTree:
        return DiskTree(self._root)
