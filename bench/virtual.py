"""``python -m bench virtual [--quick]``: a day of a cluster in virtual time, and what a second of ours holds of it."""

from __future__ import annotations

import os
import resource
import time

from bench.day import FULL, REDUCED, Day, Size
from bench.processes import resident_mib_of
from bench.table import Table
from syncline.base.interpreter import seldom_collecting

__all__ = ["figures"]


@seldom_collecting()
def figures(table: Table, *, quick: bool) -> None:
    """The morning (everything is created and comes up) and the day are timed apart."""
    size: Size = REDUCED if quick else FULL
    table.title(f"Virtual time: {size.nodes} nodes, {size.hours:g} hours")
    begun, cpu = time.perf_counter(), time.process_time()
    day = Day(size)
    day.fill()
    filled, filled_cpu = time.perf_counter(), time.process_time()
    steps, revision = day.world.driver.steps, day.world.core.store.revision
    table.row("the morning: nodes register, pods come up", f"{filled - begun:.1f} s", f"{filled_cpu - cpu:.1f} s CPU")
    table.row("  writes, passes", f"{revision:,}", f"{steps:,}")
    resident: list[str] = []
    day.live(lambda hour: resident.append(f"{hour:g} h {resident_mib_of(os.getpid()):.0f}"))
    took, took_cpu = time.perf_counter() - filled, time.process_time() - filled_cpu
    table.row("the day", f"{took:.1f} s", f"{took_cpu:.1f} s CPU")
    table.row("  virtual hours per second", f"{size.hours / took:.2f}", f"{size.hours / took_cpu:.2f} of CPU")
    writes, passes = day.world.core.store.revision - revision, day.world.driver.steps - steps
    table.row("  writes, passes", f"{writes:,}", f"{passes:,}, {took_cpu / max(passes, 1) * 1000:.2f} ms each")
    table.row(
        "  evictions, lost nodes, journal", f"{day.evictions:,}", f"{day.losses}, {len(day.world.journal):,} lines"
    )
    table.row("resident, MiB after so many hours", ", ".join(resident))
    table.row("resident at most", f"{resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MiB")
