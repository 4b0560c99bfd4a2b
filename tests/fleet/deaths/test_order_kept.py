"""An ordered roll-out over five clusters while processes die, links break and people change their minds.

The order is kept at each write, nothing is deleted, no cluster goes back, no hook runs twice, and the end is the same.
``SYNCLINE_CRASH_POINTS`` and ``SYNCLINE_CRASH_SEEDS`` say how many deaths and drawn schedules there are; all of them in
parts: ``python -m tests.fleet.deaths``, which also replays a line and makes it shorter.
"""

from __future__ import annotations

import os
from collections.abc import Callable

import pytest
from tests.fleet.deaths.faults import DEATHS, KINDS
from tests.fleet.deaths.world import EXPLORER, ROLL_OUT, branched, calm_facts

from syncline.rehearsal.explore import shrunk
from syncline.rehearsal.faults import Schedule, drawn, read
from syncline.rehearsal.seams import Step
from syncline.rehearsal.verdict import Verdict

POINTS = int(os.environ.get("SYNCLINE_CRASH_POINTS", "2"))
SEEDS = int(os.environ.get("SYNCLINE_CRASH_SEEDS", "1"))
TRIED = 20
"""Schedules that are run to shorten one."""
Figure = Callable[[str, str], None]

KNOWN = {
    "a_half_written_set_begins_with_its_canary_and_a_release_of_metadata_is_proved": "away@1, edited@60",
    "healthy_for_is_never_shorter_by_a_part_of_a_second": "parted@5, conflict@39, lost-answer@77, blind@98",
    "one_cluster_is_denied_and_another_lost_during_two_releases": "denied@20:c2, lost@45:c4, committed@50",
}


def _judged(schedule: Schedule, steps: int) -> Verdict:
    return next(iter(EXPLORER.each_alone([schedule], {ROLL_OUT: steps})))


@pytest.fixture(scope="module")
def calm() -> Verdict:
    """The undisturbed run."""
    calm_facts()
    (found,) = branched((), lambda _step, _kind: False)
    assert found.held, found.line()
    assert found.checks > 50, "the laws look at it"
    return found


def test_processes_may_die_at_any_write_and_answers_get_lost(calm: Verdict, figure: Figure) -> None:
    kinds = list(DEATHS)
    apart = max(1, calm.steps * len(kinds) // POINTS)

    def chosen(step: Step, kind: str) -> bool:
        return (step.number * len(kinds) + kinds.index(kind)) % apart == apart // 2

    _, *found = branched(kinds, chosen)
    bad = [one.line() for one in found if not one.held]
    assert not bad, "\n".join([f"{len(bad)} of {len(found)}:", *bad[:20]])
    assert len(found) >= min(POINTS, calm.steps) // 2
    longest = max(one.took_s for one in found)
    text = f"{len(found)} deaths and lost answers in {calm.steps} writes of a roll-out over five clusters"
    figure("deaths in an ordered roll-out", f"{text}: the same end after at most {longest:.0f} s")


@pytest.mark.parametrize("name", KNOWN)
def test_while(calm: Verdict, name: str) -> None:
    found = _judged(read(f"{ROLL_OUT}; {KNOWN[name]}", KINDS), calm.steps)
    assert found.struck, "it strikes"
    assert found.held, found.line()


@pytest.mark.parametrize("seed", range(1, SEEDS + 1))
def test_links_break_clusters_are_lost_or_denied_and_people_change_their_minds(calm: Verdict, seed: int) -> None:
    schedule = drawn(ROLL_OUT, seed, calm.steps, KINDS)
    found = _judged(schedule, calm.steps)
    if not found.held:
        law = found.first
        shorter = shrunk(schedule, lambda one: law in _judged(one, calm.steps).broken, TRIED)
        raise AssertionError(f"{found.line()}\nalso: {shorter}")
