"""Processes of a pull roll-out die after any of their writes: nothing is deleted, the end is the same.

``SYNCLINE_CRASH_POINTS`` says at how many writes of each process a life ends, over five clusters; a large number: after
each. Without it there are two clusters, and all processes die again and again in one run.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable
from typing import Any

import pytest
from tests.fleet.rollingout import HUB, HUB_SETS, PULL, RollOut

POINTS = int(os.environ.get("SYNCLINE_CRASH_POINTS", "0"))
NAMES = ("c1", "c2", "c3", "c4", "c5") if POINTS else ("c1", "c2")
DYING = (HUB, PULL, HUB_SETS, "gitops/c1", "agent/c1", "own/c1")
Figure = Callable[[str, str], None]


def rolled(run: RollOut) -> RollOut:
    """The first version, and another one."""
    run.go(60)
    run.roll_out("2")
    run.go(300)
    return run


@pytest.fixture(scope="module")
def calm() -> RollOut:
    return rolled(RollOut(*NAMES))


def test_a_roll_out_reaches_every_cluster_and_all_report(calm: RollOut) -> None:
    assert calm.versions() == dict.fromkeys(NAMES, "2")
    apps, _, reports, sets, *_ = calm.facts()
    assert len(apps) == len(reports) == len(NAMES)
    assert f"'summary': {{'clusters': '{len(NAMES)}', 'healthy': '{len(NAMES)}'" in sets[0][1]


def test_all_processes_may_die_again_and_again(calm: RollOut, figure: Figure) -> None:
    """Lives of one to three writes, each with an empty memory."""
    deaths = {name: lambda: itertools.cycle((1, 2, 3)) for name in calm.processes}
    run = rolled(RollOut(*NAMES, deaths=deaths))
    assert run.facts() == calm.facts()
    writes = sum(len(one.log) for one in run.processes.values())
    figure(
        "deaths in a pull roll-out", f"{len(NAMES)} clusters, {writes} writes in lives of one to three, the same end"
    )


@pytest.mark.skipif(not POINTS, reason="SYNCLINE_CRASH_POINTS: at how many writes of each process a life ends")
@pytest.mark.parametrize("name", DYING)
def test_each_process_may_die_once_after_any_write(calm: RollOut, name: str, figure: Figure) -> None:
    count = len(calm.processes[name].log)
    lasts = range(1, count + 1, max(1, count // max(POINTS, 1)))
    for last in lasts:
        lives: dict[str, Any] = {name: lambda last=last: iter((last,))}
        run = rolled(RollOut(*NAMES, deaths=lives))
        assert run.facts() == calm.facts(), f"{name} died after its write {last}: {run.processes[name].log[last - 1]}"
    figure(f"deaths in a pull roll-out, {name}", f"{len(lasts)} schedules end the same")
