"""Files temporarily: each process has folders of its own, which the next process removes where it was killed.

A folder is locked as long as its process lives, so a sweep can tell what is left over from what is in use, whatever the
names and process ids. Only folders of this user are examined, and no link is followed. What holds credentials goes to
memory where the machine has it, and is named only where a foreign program has to read it.
"""

from __future__ import annotations

import atexit
import contextlib
import fcntl
import os
import tempfile
from collections.abc import Iterator
from functools import cache
from itertools import islice
from pathlib import Path

from syncline.base.removal import remove_tree

__all__ = ["Scratch", "credentials_folder", "memory_folder", "named_in_memory", "scratch", "sweep", "work_folder"]

PREFIX = "syncline-scratch-"
MOST_LOOKED_AT = 20_000
"""Entries of the temporary folder that a sweep reads."""
MEMORY = Path("/dev/shm")
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class Scratch:
    """A folder that no other client may enter, below ``parent`` (without one: where temporary files lie). Making it
    sweeps what killed processes left there; :meth:`close` removes it."""

    def __init__(self, parent: Path | None = None) -> None:
        place = Path(tempfile.gettempdir()) if parent is None else parent
        place.mkdir(mode=0o700, parents=True, exist_ok=True)
        sweep(place)
        self.path, self._lock = _made(place)
        self._owner = os.getpid()

    def close(self) -> None:
        """Twice is as good as once; a fork of the owner removes nothing."""
        if self._lock >= 0 and self._owner == os.getpid():
            remove_tree(self.path)
            os.close(self._lock)
            self._lock = -1


@contextlib.contextmanager
def scratch(parent: Path | None = None) -> Iterator[Path]:
    """A folder until the context ends."""
    held = Scratch(parent)
    try:
        yield held.path
    finally:
        held.close()


def work_folder() -> Path:
    """Of this process, on the disk: for copies that foreign programs work on."""
    return _of_process(os.getpid(), None)


def credentials_folder() -> Path:
    """Of this process, in memory where there is some: for credentials that foreign programs read from files."""
    return _of_process(os.getpid(), memory_folder())


def memory_folder(*, programs: bool = False) -> Path | None:
    """A folder in memory that this user may write; with ``programs`` also execute from."""
    try:
        mounts = Path("/proc/self/mounts").read_text(encoding="utf-8", errors="replace")
        runs = not os.statvfs(MEMORY).f_flag & os.ST_NOEXEC
    except OSError:
        return None
    found = any(line.split()[1:3] == [str(MEMORY), "tmpfs"] for line in mounts.splitlines())
    return MEMORY if found and os.access(MEMORY, os.W_OK | os.X_OK) and (runs or not programs) else None


@contextlib.contextmanager
def named_in_memory(text: str) -> Iterator[str]:
    """The name of a file with ``text``, for libraries that take keys from files alone: on no disk, and gone with the
    process. Where the kernel has no such files it lies in :func:`credentials_folder`."""
    try:
        descriptor = os.memfd_create("syncline", os.MFD_CLOEXEC)
    except (AttributeError, OSError):
        with tempfile.NamedTemporaryFile("w", dir=credentials_folder()) as file:
            file.write(text)
            file.flush()
            yield file.name
        return
    with os.fdopen(descriptor, "w") as file:
        file.write(text)
        file.flush()
        yield f"/proc/self/fd/{descriptor}"


@cache
def _of_process(_pid: int, parent: Path | None) -> Path:
    held = Scratch(parent)
    atexit.register(held.close)
    return held.path


def _made(place: Path) -> tuple[Path, int]:
    """Another process may sweep between making and locking: then there is nothing at that name any more."""
    while True:
        path = Path(tempfile.mkdtemp(prefix=PREFIX, dir=place))
        with contextlib.suppress(FileNotFoundError):
            lock = os.open(path, _FOLDER)
            fcntl.flock(lock, fcntl.LOCK_EX)
            if _is_still_at(lock, path):
                return path, lock
            os.close(lock)


def _is_still_at(folder: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(folder), os.stat(path, follow_symlinks=False))
    except OSError:
        return False


def sweep(place: Path | None = None) -> None:
    """Remove what killed processes of this user left: in ``place``, and wherever else folders are made."""
    for each in {Path(tempfile.gettempdir()), MEMORY, *((place,) if place is not None else ())}:
        _swept(each)


def _swept(place: Path) -> None:
    with contextlib.suppress(OSError), os.scandir(place) as found:
        names = [entry.name for entry in islice(found, MOST_LOOKED_AT) if entry.name.startswith(PREFIX)]
        for name in names:
            _remove_if_left(place / name)


def _remove_if_left(path: Path) -> None:
    """A folder of ours whose process is gone."""
    try:
        folder = os.open(path, _FOLDER)
    except OSError:
        return
    try:
        if os.fstat(folder).st_uid == os.geteuid():
            fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if _is_still_at(folder, path):
                remove_tree(path)
    except OSError:
        return  # it is in use
    finally:
        os.close(folder)
