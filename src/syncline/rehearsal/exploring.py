"""Rehearses a commit under many schedules of faults, and shortens what goes wrong: :func:`explored`."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, replace

from syncline.rehearsal.answer.answer import Answer, Broken, Explored, Outcome
from syncline.rehearsal.disturbing import KINDS, SCENARIO
from syncline.rehearsal.explore import shrunk
from syncline.rehearsal.faults import Schedule, drawn
from syncline.rehearsal.playing import Asked
from syncline.rehearsal.record import Record

Play = Callable[[Asked], tuple[Answer, Record]]
MAX_SHRINKING = 30
"""Maximum schedules that are rehearsed to shorten one."""
MAX_BROKEN = 3
"""After so many schedules that break something the exploration ends."""
GRAVITY = (Outcome.SAFE, Outcome.FAILED, Outcome.BLOCKED, Outcome.UNSAFE)


@dataclass(frozen=True)
class Bounds:
    """``schedules``: at most so many; ``is_over``: whether the time for it is used up."""

    schedules: int
    is_over: Callable[[], bool] = lambda: False


def explored(asked: Asked, usual: Outcome, play: Play, bounds: Bounds) -> Explored:
    """Rehearse schedules of the seeds 1, 2 and so on, and return what ends worse than ``usual``."""
    _, undisturbed = play(replace(asked, schedule=Schedule(SCENARIO)))
    runs, count = {_signature(undisturbed)}, 0
    broken: list[Broken] = []
    for seed in range(1, bounds.schedules + 1):
        if bounds.is_over() or len(broken) >= MAX_BROKEN:
            break
        schedule = drawn(SCENARIO, seed, max(undisturbed.steps, 1), KINDS)
        count += 1
        found, record = play(replace(asked, schedule=schedule))
        runs.add(_signature(record))
        if GRAVITY.index(found.outcome) > GRAVITY.index(usual):
            broken.append(_shortened(asked, schedule, found, play, bounds))
    return Explored(count, len(runs), undisturbed.steps, tuple(broken))


def _shortened(asked: Asked, schedule: Schedule, found: Answer, play: Play, bounds: Bounds) -> Broken:
    """Return the smallest schedule that ends as this one, by its outcome and its first broken law."""
    last = found

    def breaks(candidate: Schedule) -> bool:
        nonlocal last
        if bounds.is_over():
            return False
        other, _ = play(replace(asked, schedule=candidate))
        same = (other.outcome, _law(other)) == (found.outcome, _law(found))
        last = other if same else last
        return same

    smallest = shrunk(schedule, breaks, MAX_SHRINKING)
    return Broken(str(smallest), last.outcome, last.headline, _law(last), str(schedule))


def _law(answer: Answer) -> str:
    return answer.breaches[0].law if answer.breaches else ""


def _signature(record: Record) -> str:
    """Return what happened in which order, without times."""
    lines = "\n".join(f"{entry.who} {entry.subject} {entry.what}" for entry in record.journal)
    return hashlib.sha256(lines.encode()).hexdigest()
