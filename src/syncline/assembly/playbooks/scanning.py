"""What differs in a root: cheap looks between tasks, and an exact comparison at the end: :class:`Scan`.

Runs as process 1 of the throwaway root, with the standard library alone. Folders are opened without following links.
"""

from __future__ import annotations

import base64
import hashlib
import os
import stat

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    Look = tuple[int, int, int, int, int, int, int]

MOST_ENTRIES = 100_000
MOST_PATHS = 2000
"""Of one answer."""
MAX_FILE = 16 * 1024 * 1024
MAX_CONTENT = 64 * 1024 * 1024
"""Bytes of all files that differ."""
LEFT_OUT = frozenset({"/.syncline", "/dev", "/proc", "/run", "/sys", "/tmp", "/usr", "/var/tmp"})
"""The machine's, ours, or gone with a reboot."""


class Scan:
    """Looks at the root when it is made; :meth:`touched` says what differs since the last look."""

    def __init__(self) -> None:
        self._devices = {os.lstat("/").st_dev}
        self._looks = dict(self._look())
        self._first = {path: (look, _content_mark(path, look)) for path, look in self._looks.items()}

    def touched(self) -> list[str]:
        before, now = self._looks, dict(self._look())
        self._looks = now
        paths = [path for path, look in now.items() if before.get(path) != look and not _listed(before, path, look)]
        return sorted([*paths, *(path for path in before if path not in now)])[:MOST_PATHS]

    def differences(self) -> Iterator[dict[str, object]]:
        """Yield each path that is not as it was, by name: ``kind`` (file, dir, link, other, gone), mode, owner,
        ``was``: its kind, mode and owner before, and a file's content."""
        now, left = dict(self._look()), MAX_CONTENT
        for path in sorted({*now, *self._first}):
            before, mark = self._first.get(path, (None, b""))
            look = now.get(path)
            was = _kind(before) if before else {}
            if look is None:
                target = os.fsdecode(mark) if before and stat.S_ISLNK(before[0]) else ""
                yield {"path": path, "kind": "gone", "was": was, "target": target}
                continue
            found: dict[str, object] = {"path": path, **_kind(look), "was": was}
            names = [name for name in os.listxattr(path, follow_symlinks=False) if name != "security.selinux"]
            if was == _kind(look) and mark == _content_mark(path, look) and not names:
                continue
            if stat.S_ISLNK(look[0]):
                found["target"] = os.readlink(path)
            elif stat.S_ISREG(look[0]):
                found["size"] = look[3]
                if look[3] <= min(MAX_FILE, left):
                    with open(os.open(path, os.O_RDONLY | os.O_NOFOLLOW), "rb") as file:
                        found["content"] = base64.b64encode(file.read(MAX_FILE)).decode()
                    left -= look[3]
            if names:
                found["xattrs"] = sorted(names)
            yield found

    def _look(self) -> Iterator[tuple[str, Look]]:
        count = 0
        for folder, folders, files, here in os.fwalk("/", follow_symlinks=False):
            base = folder if folder.endswith("/") else f"{folder}/"
            if os.fstat(here).st_dev not in self._devices and folder != "/":
                folders[:] = []
                continue
            folders[:] = sorted(each for each in folders if base + each not in LEFT_OUT)
            for name in (*folders, *files):
                if base + name in LEFT_OUT:
                    continue
                try:
                    found = os.stat(name, dir_fd=here, follow_symlinks=False)
                except FileNotFoundError:
                    continue  # a task left something running
                count += 1
                if count > MOST_ENTRIES:
                    raise OSError(f"the root has more than {MOST_ENTRIES} files")
                yield (
                    base + name,
                    (
                        found.st_mode,
                        found.st_uid,
                        found.st_gid,
                        found.st_size,
                        found.st_mtime_ns,
                        found.st_ctime_ns,
                        found.st_ino,
                    ),
                )


def _listed(before: dict[str, Look], path: str, look: Look) -> bool:
    """A folder whose entries changed, but nothing of its own."""
    old = before.get(path)
    return old is not None and stat.S_ISDIR(look[0]) and old[:3] == look[:3]


def _kind(look: Look) -> dict[str, object]:
    mode = look[0]
    names = ((stat.S_ISREG, "file"), (stat.S_ISDIR, "dir"), (stat.S_ISLNK, "link"))
    kind = next((name for test, name in names if test(mode)), "other")
    return {"kind": kind, "mode": 0 if kind == "link" else stat.S_IMODE(mode), "uid": look[1], "gid": look[2]}


def _content_mark(path: str, look: Look) -> bytes:
    """What a file contains or a link names, by digest; a file that is too large by its size."""
    if stat.S_ISLNK(look[0]):
        return os.fsencode(os.readlink(path))
    if not stat.S_ISREG(look[0]):
        return b""
    if look[3] > MAX_FILE:
        return f"{look[3]} {look[4]}".encode()
    with open(os.open(path, os.O_RDONLY | os.O_NOFOLLOW), "rb") as file:
        return hashlib.sha256(file.read(MAX_FILE)).digest()
