"""Measure the resource usage of a whole sandbox; its init ends it above a limit.

Without control groups, the kernel's limits apply per process or per user; this bounds many small processes, files in
memory, and folders on disk.
"""

from __future__ import annotations

import os
import time

from syncline.base.priority import LAST, lower_session
from syncline.cluster.machines.sandbox.board import Board

TYPE_CHECKING = False
if TYPE_CHECKING:  # importing it takes as long as creating the sandbox
    from typing import Any

PAGE = os.sysconf("SC_PAGE_SIZE")
TICKS = os.sysconf("SC_CLK_TCK")
CALM_S, TENSE_S = 0.1, 0.03
"""Intervals between checks; the shorter one applies when half of the memory is used."""
DISK_S, DISK_PAUSES = 0.5, 10
"""Minimum interval between scans of the volumes, also as a multiple of the last scan's duration."""
MOST_ENTRIES, DEEPEST = 200_000, 200
"""Entries and depth of a volume; a larger tree is treated like one that is too large."""
MOST_SOCKETS = 4096
"""Limit of sockets, whose buffers belong to no process."""


MOST_SESSIONS = 32
"""Limit of sessions: the kernel may give each as much CPU time as the API (``sched_autogroup_enabled``)."""


class Watch:
    """``folders`` are the writable volumes; ``board`` and ``line`` serve the limits of all sandboxes together. A
    missing limit is not checked."""

    def __init__(
        self,
        limits: dict[str, Any],
        folders: list[str],
        board: Board | None = None,
        line: int = 0,
        together: dict[str, int] | None = None,
        priority: int = LAST,
    ) -> None:
        self._limits = limits
        self._board, self._line, self._together = board, line, together or {}
        self._priority = priority
        self._folders = {folder: os.open(folder, os.O_PATH | os.O_CLOEXEC) for folder in folders}
        """Descriptors, because a command that can write the root could move the parents."""
        self._free = {folder: _free(opened) for folder, opened in self._folders.items()}
        self._disk_at = 0.0
        self._lowered = set[bytes]()
        """Sessions with the lower CPU share already."""
        self.pause_s = CALM_S

    def check(self, reaped_cpu_s: float) -> str:
        """Return one of :data:`OVER` with figures, or "". ``reaped_cpu_s``: CPU time of ended processes."""
        limits = self._limits
        threads, cpu_s, resident, files = 0, reaped_cpu_s, 0, 0
        sessions: set[bytes] = set()
        pids = [name for name in os.listdir("/proc") if name.isdigit() and name != "1"]
        for pid in pids:
            fields = _read(f"/proc/{pid}/stat").rpartition(b")")[2].split()
            if len(fields) < 22:
                continue
            sessions.add(fields[3])
            if fields[3] not in self._lowered and lower_session(pid, self._priority):
                self._lowered.add(fields[3])
            files += _open_files(pid)
            threads += int(fields[17])
            cpu_s += sum(map(int, fields[11:15])) / TICKS  # with that of the children that it has waited for
            resident += int(fields[21]) * PAGE
        self._lowered &= sessions
        if threads > limits.get("processes", threads):
            return f"processes: {threads} of {limits['processes']}"
        if cpu_s > limits.get("cpu_s", cpu_s):
            return f"cpu: {cpu_s:.0f} of {limits['cpu_s']} seconds"
        if len(sessions) > MOST_SESSIONS and limits:
            return f"sessions: {len(sessions)} of {MOST_SESSIONS}"
        if files > limits.get("open_files", files):
            return f"open files: {files} of {limits['open_files']}"
        if self._board is not None:
            self._board.write(self._line, (threads, resident + _in_memory(), files))
            said = self._board.over(self._line, self._together)
            if said:
                return said
        said = self._memory(resident, pids)
        if said:
            return said
        if _sockets() > MOST_SOCKETS:
            return f"sockets: more than {MOST_SOCKETS}"
        now = time.monotonic()
        if "disk_bytes" not in limits or now < self._disk_at:
            return ""
        said = self._disk(limits["disk_bytes"], pids)
        ended = time.monotonic()
        self._disk_at = ended + max(DISK_S, DISK_PAUSES * (ended - now))
        return said

    def _memory(self, resident: int, pids: list[str]) -> str:
        most = self._limits.get("memory_bytes", 0)
        if not most:
            return ""
        files = _in_memory()
        self.pause_s = TENSE_S if (resident + files) * 2 > most else CALM_S
        if resident + files > most:  # shared memory was counted once per process: measure it exactly
            used = files + sum(_proportional(pid) for pid in pids)
            if used > most:
                return f"memory: {used >> 20} of {most >> 20} MiB"
        return ""

    def _disk(self, most: int, pids: list[str]) -> str:
        used = 0
        for folder, opened in self._folders.items():
            size, entries = _size(opened, most)
            used += size
            if self._free[folder] - _free(opened) > most:
                used += _unlinked(opened, pids)
            if size > self._limits.get("folders", {}).get(folder, size):
                return f"disk: more than {self._limits['folders'][folder]} bytes in {folder}, its sizeLimit"
            if used > most:
                return f"disk: more than {most >> 20} MiB"
            if entries > MOST_ENTRIES:
                return f"disk: more than {MOST_ENTRIES} files, or folders deeper than {DEEPEST}"
        return ""


def _read(path: str) -> bytes:
    try:
        file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return b""
    try:
        return os.read(file, 65536)
    except OSError:
        return b""
    finally:
        os.close(file)


def _open_files(pid: str) -> int:
    """Return the number of open files, the size of the folder (Linux 6.2 or newer; older ones report 0)."""
    try:
        return os.stat(f"/proc/{pid}/fd").st_size
    except OSError:
        return 0


def _in_memory() -> int:
    """Return the size of files in memory and of System V shared memory."""
    about = os.statvfs("/tmp")
    used = (about.f_blocks - about.f_bfree) * about.f_frsize
    for line in _read("/proc/sysvipc/shm").splitlines()[1:]:
        fields = line.split()
        used += int(fields[14]) if len(fields) > 14 else 0
    return used


def _proportional(pid: str) -> int:
    """Return the process's proportional memory."""
    for line in _read(f"/proc/{pid}/smaps_rollup").splitlines():
        if line.startswith(b"Pss:"):
            return int(line.split()[1]) * 1024
    fields = _read(f"/proc/{pid}/statm").split()
    return int(fields[1]) * PAGE if len(fields) > 1 else 0


def _sockets() -> int:
    fields = _read("/proc/net/sockstat").split()
    return int(fields[2]) if len(fields) > 2 else 0


def _free(folder: int) -> int:
    try:
        about = os.fstatvfs(folder)
    except OSError:
        return 0
    return about.f_bfree * about.f_frsize


def _size(folder: int, most: int) -> tuple[int, int]:
    """Return bytes on disk and entries; stop above ``most``. Each folder is opened relative to its parent, since a path
    could be too long."""
    try:
        opened = [os.open(".", _FOLDER, dir_fd=folder)]
    except NotADirectoryError:
        return os.fstat(folder).st_blocks * 512, 1
    except OSError:
        return 0, 0
    seen: set[int] = set()
    names, size, entries = _listed(opened[0], seen)
    waiting = [names]
    try:
        while opened and size <= most and entries <= MOST_ENTRIES:
            if not waiting[-1]:
                waiting.pop()
                os.close(opened.pop())
                continue
            try:
                here = os.open(waiting[-1].pop(), _FOLDER, dir_fd=opened[-1])
            except OSError:
                continue
            opened.append(here)
            names, more, count = _listed(here, seen)
            waiting.append(names)
            size, entries = size + more, entries + count
            if len(opened) > DEEPEST:
                return size, MOST_ENTRIES + 1
    finally:
        for each in opened:
            os.close(each)
    return size, entries


_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def _listed(folder: int, seen: set[int]) -> tuple[list[str], int, int]:
    """Return the subfolders of an open folder, the bytes of other entries, and the number of entries."""
    names, size, entries = [], 0, 0
    try:
        with os.scandir(folder) as found:
            for entry in found:
                entries += 1
                about = entry.stat(follow_symlinks=False)
                if entry.is_dir(follow_symlinks=False):
                    names.append(entry.name)
                if about.st_nlink == 1 or about.st_ino not in seen:
                    size += about.st_blocks * 512
                    seen.add(about.st_ino)
                if entries > MOST_ENTRIES:
                    break
    except OSError:
        pass
    return names, size, entries


def _unlinked(folder: int, pids: list[str]) -> int:
    """Return the size of unlinked files that processes have open on the disk of ``folder``."""
    try:
        disk = os.fstat(folder).st_dev
    except OSError:
        return 0
    found: dict[int, int] = {}
    for pid in pids:
        try:
            numbers = os.listdir(f"/proc/{pid}/fd")
        except OSError:
            continue
        for number in numbers:
            try:
                about = os.stat(f"/proc/{pid}/fd/{number}")
            except OSError:
                continue
            if about.st_nlink == 0 and about.st_dev == disk:
                found[about.st_ino] = about.st_blocks * 512
    return sum(found.values())
