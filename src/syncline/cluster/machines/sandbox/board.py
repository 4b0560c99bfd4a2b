"""Resource usage of all sandboxes of a cluster, in shared memory: each writes its line and reads all.

The cluster's process creates it and assigns lines (``cluster/machines/processes/process.py``); process 1 of each
sandbox writes (``cluster/machines/sandbox/watch.py``). It is closed before a command starts.
"""

from __future__ import annotations

import mmap
import os
import struct

FIGURES = ("processes", "memory_bytes", "open_files")
LINES = 512
"""Limit of containers that run as processes."""
_LINE = struct.Struct(f"={len(FIGURES)}Q")


class Board:
    def __init__(self, descriptor: int) -> None:
        self._map = mmap.mmap(descriptor, LINES * _LINE.size)

    @staticmethod
    def made() -> int:
        """Return a new descriptor for :class:`Board`, here and in sandboxes."""
        descriptor = os.memfd_create("syncline-board", os.MFD_CLOEXEC)
        os.ftruncate(descriptor, LINES * _LINE.size)
        return descriptor

    def write(self, line: int, figures: tuple[int, ...] = (0,) * len(FIGURES)) -> None:
        _LINE.pack_into(self._map, line * _LINE.size, *figures)

    def over(self, line: int, limits: dict[str, int]) -> str:
        """Return which common limit is exceeded, if ``line`` uses most of it and so must end; else ""."""
        lines = [_LINE.unpack_from(self._map, each * _LINE.size) for each in range(LINES)]
        for place, name in enumerate(FIGURES):
            used = [figures[place] for figures in lines]
            if sum(used) > limits.get(name, sum(used)) and used.index(max(used)) == line:
                return f"{name.partition('_')[0]}: {used[line]}, all containers {sum(used)} of {limits[name]}"
        return ""
