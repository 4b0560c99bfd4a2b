"""Commands from start to end, as somebody waits for them: with the bytecode that an installation keeps."""

from __future__ import annotations

import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

__all__ = ["OURS", "PYTHON", "Commands", "Took"]

PYTHON = (sys.executable, "-c")
OURS = (*PYTHON, "import sys; from syncline.cli.main import main; sys.exit(main(sys.argv[1:]))")
"""``syncline`` without looking for an installed one."""


@dataclass(frozen=True, slots=True)
class Took:
    """Milliseconds: the least processor time of the runs; of the times from start to end the least and the median."""

    cpu: float
    wall: float
    median: float

    def __str__(self) -> str:
        return f"start to end {self.wall:.0f} ms, median {self.median:.0f} ms"


@dataclass(slots=True)
class Commands:
    """Runs commands. A checkout may be told not to write bytecode, an installation has it: here it is kept apart, and
    the first run, which makes it, does not count."""

    runs: int
    _kept: tempfile.TemporaryDirectory[str] = field(
        default_factory=lambda: tempfile.TemporaryDirectory(prefix="bench-bytecode-")
    )

    def took(self, *words: str | Sequence[str]) -> Took:
        command = [part for word in words for part in ([word] if isinstance(word, str) else word)]
        environment = os.environ | {"PYTHONPYCACHEPREFIX": self._kept.name}
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        cpus, walls = [], []
        for _ in range(self.runs + 1):
            before, begun = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
            subprocess.run(command, stdout=subprocess.DEVNULL, check=True, env=environment)
            walls.append(time.perf_counter() - begun)
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            cpus.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
        cpus, walls = cpus[1:], walls[1:]
        return Took(min(cpus) * 1000, min(walls) * 1000, statistics.median(walls) * 1000)
