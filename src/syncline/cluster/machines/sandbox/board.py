"""What all sandboxes of one cluster use together, in a memory that they share: each writes its own line and reads all.

The cluster's process makes it and gives out lines (``cluster/machines/processes/process.py``); process 1 of each
sandbox writes (``cluster/machines/sandbox/watch.py``). Commands never have it: it is closed before they begin.
"""

from __future__ import annotations

import mmap
import os
import struct

__all__ = ["FIGURES", "LINES", "Board"]

FIGURES = ("processes", "memory_bytes", "open_files")
LINES = 512
"""Containers that run as processes at the same time."""
_LINE = struct.Struct(f"={len(FIGURES)}Q")


class Board:
    def __init__(self, descriptor: int) -> None:
        self._map = mmap.mmap(descriptor, LINES * _LINE.size)

    @staticmethod
    def made() -> int:
        """A descriptor for :class:`Board`, here and in sandboxes."""
        descriptor = os.memfd_create("syncline-board", os.MFD_CLOEXEC)
        os.ftruncate(descriptor, LINES * _LINE.size)
        return descriptor

    def write(self, line: int, figures: tuple[int, ...] = (0,) * len(FIGURES)) -> None:
        _LINE.pack_into(self._map, line * _LINE.size, *figures)

    def over(self, line: int, limits: dict[str, int]) -> str:
        """Which of the limits for all is exceeded while no other line uses more of it: that one has to end."""
        lines = [_LINE.unpack_from(self._map, each * _LINE.size) for each in range(LINES)]
        for place, name in enumerate(FIGURES):
            used = [figures[place] for figures in lines]
            if sum(used) > limits.get(name, sum(used)) and used.index(max(used)) == line:
                return f"{name.partition('_')[0]}: {used[line]}, all containers {sum(used)} of {limits[name]}"
        return ""
