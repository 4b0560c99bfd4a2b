"""Temporary folders of a process: :func:`scratch`, :func:`work_folder`. The next process removes those of killed ones.

A folder is locked as long as its process lives, so a sweep can distinguish leftovers from folders in use. It checks
only folders of this user and follows no links. Files with credentials are created in memory where the machine allows
it, and get a path only where a foreign program must read them.
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

PREFIX = "syncline-scratch-"
MOST_LOOKED_AT = 20_000
"""The most entries of the temporary folder that a sweep reads."""
MEMORY = Path("/dev/shm")
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class Scratch:
    """A private folder below ``parent`` (default: the system's temporary folder). Creating one first removes leftovers
    of killed processes; :meth:`close` removes it."""

    def __init__(self, parent: Path | None = None) -> None:
        place = Path(tempfile.gettempdir()) if parent is None else parent
        place.mkdir(mode=0o700, parents=True, exist_ok=True)
        sweep(place)
        self.path, self._lock = _made(place)
        self._owner = os.getpid()

    def close(self) -> None:
        """Remove the folder; a second call, or one in a forked process, does nothing."""
        if self._lock >= 0 and self._owner == os.getpid():
            remove_tree(self.path)
            os.close(self._lock)
            self._lock = -1


@contextlib.contextmanager
def scratch(parent: Path | None = None) -> Iterator[Path]:
    """Create a folder that exists until the context ends."""
    held = Scratch(parent)
    try:
        yield held.path
    finally:
        held.close()


def work_folder() -> Path:
    """Return this process' folder on the disk, for copies that foreign programs work on."""
    return _of_process(os.getpid(), None)


def credentials_folder() -> Path:
    """Return this process' folder, in memory if possible, for credentials that foreign programs read from files."""
    return _of_process(os.getpid(), memory_folder())


def memory_folder(*, programs: bool = False) -> Path | None:
    """Return a folder in memory that this user may write, with ``programs`` also execute from; None if there is
    none."""
    try:
        mounts = Path("/proc/self/mounts").read_text(encoding="utf-8", errors="replace")
        runs = not os.statvfs(MEMORY).f_flag & os.ST_NOEXEC
    except OSError:
        return None
    found = any(line.split()[1:3] == [str(MEMORY), "tmpfs"] for line in mounts.splitlines())
    return MEMORY if found and os.access(MEMORY, os.W_OK | os.X_OK) and (runs or not programs) else None


@contextlib.contextmanager
def named_in_memory(text: str) -> Iterator[str]:
    """Yield the path of a file with ``text``, for libraries that read keys only from files. The file is in memory and
    ends with the process; without kernel support it is created in :func:`credentials_folder`."""
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
    """Create and lock a folder; try again if a sweep of another process removed it in between."""
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
    """Remove the folders of killed processes of this user, in ``place`` and in the default folders."""
    for each in {Path(tempfile.gettempdir()), MEMORY, *((place,) if place is not None else ())}:
        _swept(each)


def _swept(place: Path) -> None:
    with contextlib.suppress(OSError), os.scandir(place) as found:
        names = [entry.name for entry in islice(found, MOST_LOOKED_AT) if entry.name.startswith(PREFIX)]
        for name in names:
            _remove_if_left(place / name)


def _remove_if_left(path: Path) -> None:
    """Remove a folder of ours whose process has ended."""
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
