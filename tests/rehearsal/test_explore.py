"""Schedules are read, drawn, shrunk and judged as data; the engine's own parts, without a world."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from syncline.rehearsal.explore import Explorer, shrunk
from syncline.rehearsal.faults import AROUND, AT_WRITES, Fault, Schedule, by_name, drawn, read
from syncline.rehearsal.laws import Law, Ledger
from syncline.rehearsal.verdict import Verdict

KINDS = by_name(*AT_WRITES, *AROUND)


def two_deaths(schedule: Schedule) -> bool:
    """Breaks where a process dies at the third step or later, and a watch is lost after that."""
    kills = [fault.at for fault in schedule.faults if fault.kind == "kill" and fault.at >= 3]
    return any(fault.kind == "lost-watch" and fault.at > min(kills) for fault in schedule.faults) if kills else False


def needs_a_seed(schedule: Schedule) -> bool:
    return schedule.seed > 0 and bool(schedule.faults)


@pytest.mark.parametrize(
    ("line", "breaks", "shortest"),
    [
        ("update/7; conflict@2, kill@40, twice@50, lost-watch@60", two_deaths, "update; kill@3, lost-watch@4"),
        ("update; kill@3, lost-watch@4", two_deaths, "update; kill@3, lost-watch@4"),
        ("update/7; conflict@9, late@9:worker-0", needs_a_seed, "update/7; late@1:worker-0"),
        ("update/7; kill@9", lambda _: True, "update; undisturbed"),
    ],
    ids=["faults that it does not need go", "the shortest stays", "an order that it needs stays", "nothing is needed"],
)
def test_a_schedule_is_shrunk_to_the_shortest_that_still_breaks(line: str, breaks: Any, shortest: str) -> None:
    assert str(shrunk(read(line, KINDS), breaks)) == shortest


def test_shrinking_ends_with_its_budget() -> None:
    tried: list[Schedule] = []

    def breaks(schedule: Schedule) -> bool:
        tried.append(schedule)
        return two_deaths(schedule)

    found = shrunk(read("update/7; kill@4000, lost-watch@5000", KINDS), breaks, budget=9)
    assert two_deaths(found) and len(tried) == 9 and len(set(tried)) == 9


def test_the_same_seed_draws_the_same_schedule_within_the_steps() -> None:
    found = [drawn("update", seed, 40, KINDS) for seed in range(50)]
    assert found == [drawn("update", seed, 40, KINDS) for seed in range(50)]
    assert len(set(found)) == 50
    assert all(2 <= len(one.faults) <= 5 and all(1 <= each.at <= 40 for each in one.faults) for one in found)


def test_no_schedule_is_drawn_once_the_budget_is_spent() -> None:
    clock = iter((0.0, 20.0, 59.0, 60.0, 61.0))
    found = list(Explorer[Any]({}, KINDS).drawn("update", 40, range(100), 60.0, lambda: next(clock)))
    assert found == [drawn("update", seed, 40, KINDS) for seed in range(3)]


def even(state: int) -> Iterator[str]:
    if state % 2:
        yield f"{state} is odd"


def test_a_ledger_keeps_the_first_breach_of_each_law_with_its_place() -> None:
    steps: list[int] = []
    ledger = Ledger((Law("even", "numbers are even", even), Law("few", "few numbers")), lambda: f"step {len(steps)}")
    ledger.judge("even", 1)
    assert ledger.broken == {}, "nothing counts before the scenario begins"
    ledger.watching = True
    for state in (2, 3, 5):
        steps.append(state)
        ledger.judge("even", state)
    ledger.breach("few", "three numbers")
    assert ledger.broken == {"even": "3 is odd (at step 2)", "few": "three numbers (at step 3)"}
    assert ledger.checked["even"] == 4
    with pytest.raises(AssertionError, match="no law 'odd'"):
        ledger.breach("odd", "")


def test_a_verdict_names_the_law_that_was_broken_first_and_keeps_its_journal_then_only() -> None:
    schedule = str(Schedule("update", (Fault("kill", 3),)))
    broken = Verdict(schedule, {"even": "3 is odd", "few": "three"}, 60, 9, ("kill@3 met 3",), journal="{}\n")
    assert not broken.held and broken.first == "even"
    assert Verdict.of_obj(broken.to_obj()) == broken
    held = Verdict(schedule, {}, 60, 9, journal="{}\n")
    assert held.held and held.first == "" and Verdict.of_obj(held.to_obj()).journal == ""
