"""``python -m bench exploring [--quick]``: what a schedule of faults costs to its end, and to a state that is known."""

from __future__ import annotations

import gc
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from bench.day import FULL, REDUCED, Day
from bench.processes import resident_mib_of
from bench.table import Table

__all__ = ["figures"]

STORY = "removal"
FORKS = 20


def _explored(folder: Path, every: int, *more: str) -> list[dict[str, Any]]:
    record = folder / f"record{len(more)}"
    chosen = ["--stories", STORY, "--every", str(every), "--seeds", "0", "--record", str(record)]
    subprocess.run(
        [sys.executable, "-m", "tests.machineconfig.faults", *chosen, *more], check=True, capture_output=True
    )
    return [json.loads(line) for line in record.read_text().splitlines()]


def _fork_ms(day: Day) -> float:
    """CPU of one fork of a world that is at rest, in milliseconds."""
    gc.collect()
    gc.freeze()
    times = []
    for _ in range(FORKS):
        began = time.process_time()
        pid = os.fork()
        if pid == 0:
            os._exit(0)
        times.append(time.process_time() - began)
        os.waitpid(pid, 0)
    gc.unfreeze()
    assert day.world.core.store.revision, "it lives until here"
    return min(times) * 1000


def figures(table: Table, *, quick: bool) -> None:
    """Both ways of one sample of schedules, and forks of two worlds."""
    table.title(f"Exploring: {STORY}, every fault at every {48 if quick else 12}th step")
    with tempfile.TemporaryDirectory() as scratch:
        known = _explored(Path(scratch), 48 if quick else 12)
        whole = _explored(Path(scratch), 48 if quick else 12, "--whole")
    each = [sum(one["cpu_s"] for one in run) / len(run) * 1000 for run in (whole, known)]
    merged = sum(one["merged"] for one in known)
    table.row("a schedule, each to its end", f"{each[0]:.0f} ms CPU", f"{len(whole)} schedules")
    table.row("a schedule, or until its state is known", f"{each[1]:.0f} ms CPU", f"{merged} of them were")
    table.row("ratio", f"{each[0] / each[1]:.1f}")
    for size in (REDUCED,) if quick else (REDUCED, FULL):
        day = Day(size)
        day.fill()
        forked = f"{resident_mib_of(os.getpid()):.0f} MiB resident"
        table.row(f"a fork of a world of {size.nodes} nodes", f"{_fork_ms(day):.1f} ms CPU", forked)
