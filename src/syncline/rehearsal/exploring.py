"""Rehearses a commit under many schedules of faults, and shortens what goes wrong: :func:`explored`."""

from __future__ import annotations

import hashlib
import threading
from collections import deque
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from itertools import islice
from typing import Any

from syncline.rehearsal.answer.answer import Answer, Broken, Explored, Outcome
from syncline.rehearsal.disturbing import KINDS, SCENARIO
from syncline.rehearsal.explore import shrunk
from syncline.rehearsal.faults import Fault, Schedule
from syncline.rehearsal.guided.batches import Apart, ExplorationError, begun_apart, ended_apart, killed_apart
from syncline.rehearsal.guided.conflicts import conflicts
from syncline.rehearsal.guided.drawing import Guide, untried
from syncline.rehearsal.playing import Asked
from syncline.rehearsal.record import Record
from syncline.rehearsal.scenario import ScenarioError

Play = Callable[[Asked], tuple[Answer, Record]]
MAX_SHRINKING = 30
"""Maximum schedules that are rehearsed to shorten one."""
MAX_BROKEN = 3
"""After so many schedules that break something the exploration ends."""
GRAVITY = (Outcome.SAFE, Outcome.FAILED, Outcome.BLOCKED, Outcome.UNSAFE)


@dataclass(frozen=True, slots=True)
class Course:
    """What became of the schedule of a number. ``signature``: what happened in which order, as a digest."""

    number: int
    schedule: str
    outcome: Outcome
    law: str
    headline: str
    signature: str

    def to_obj(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def of_obj(cls, found: Mapping[str, Any]) -> Course:
        return cls(**{**found, "outcome": Outcome(found["outcome"])})


@dataclass(frozen=True)
class Bounds:
    """``schedules``: at most so many; ``is_over``: whether the time for it is used up. ``processes``: how many rehearse
    at a time; what is found does not depend on it. ``known``: what an earlier exploration found, by number; ``keep``
    receives what this one finds."""

    schedules: int
    is_over: Callable[[], bool] = lambda: False
    processes: int = 1
    known: Mapping[int, Course] = field(default_factory=dict)
    keep: Callable[[Course], object] = lambda _course: None


def question_of(asked: Asked) -> str:
    """Return a digest of what is asked: explorations of equal ones can be continued."""
    return hashlib.sha256(repr(asked).encode()).hexdigest()


def explored(asked: Asked, usual: Outcome, play: Play, bounds: Bounds) -> Explored:
    """Rehearse schedules, those first that reverse what could matter, and return what ends worse than ``usual``."""
    _, undisturbed = play(replace(asked, schedule=Schedule(SCENARIO)))
    pairs = conflicts(undisturbed.turns)
    guide = Guide(SCENARIO, max(undisturbed.steps, 1), KINDS, pairs)
    runs, tried = {_signature(undisturbed)}, set[Fault]()
    broken: list[Broken] = []
    count = 0
    planned = list(islice(guide.schedules(1), bounds.schedules))
    with closing(_courses(asked, planned, play, bounds)) as courses:
        for course in courses:
            schedule = planned[count]
            count += 1
            runs.add(course.signature)
            tried |= set(schedule.faults)
            if GRAVITY.index(course.outcome) > GRAVITY.index(usual):
                broken.append(_shortened(asked, schedule, course, play, bounds))
            if len(broken) >= MAX_BROKEN:
                break
    left = untried(pairs, guide.attempts(1), tried)
    return Explored(count, len(runs), undisturbed.steps, tuple(broken), len(pairs), len(left))


def _courses(asked: Asked, planned: Sequence[Schedule], play: Play, bounds: Bounds) -> Generator[Course, None, None]:
    """Yield the courses in the order of their schedules, until the time is used up."""

    def run(number: int) -> Course:
        schedule = planned[number]
        answer, record = play(replace(asked, schedule=schedule))
        law, headline = _law(answer), answer.headline
        return Course(number, str(schedule), answer.outcome, law, headline, _signature(record))

    running: deque[tuple[int, Apart | None]] = deque()
    numbers = iter(range(len(planned)))
    apart = bounds.processes > 1 and threading.active_count() == 1  # a fork has no other threads
    try:
        while True:
            while len(running) < bounds.processes and not bounds.is_over():
                number = next(numbers, None)
                if number is None:
                    break
                new = apart and number not in bounds.known
                running.append((number, begun_apart(partial(_sent, run, number)) if new else None))
            if not running:
                return
            number, process = running.popleft()
            if number in bounds.known:
                yield bounds.known[number]
                continue
            course = Course.of_obj(ended_apart(*process)) if process is not None else run(number)
            bounds.keep(course)
            yield course
    except ExplorationError as error:
        raise ScenarioError(f"a process of the exploration failed: {error}") from error
    finally:
        for _, process in running:
            if process is not None:
                killed_apart(*process)


def _sent(run: Callable[[int], Course], number: int) -> dict[str, Any]:
    return run(number).to_obj()


def _shortened(asked: Asked, schedule: Schedule, found: Course, play: Play, bounds: Bounds) -> Broken:
    """Return the smallest schedule that ends as this one, by its outcome and its first broken law."""
    headline = found.headline

    def breaks(candidate: Schedule) -> bool:
        nonlocal headline
        if bounds.is_over():
            return False
        other, _ = play(replace(asked, schedule=candidate))
        same = (other.outcome, _law(other)) == (found.outcome, found.law)
        headline = other.headline if same else headline
        return same

    smallest = shrunk(schedule, breaks, MAX_SHRINKING)
    return Broken(str(smallest), found.outcome, headline, found.law, str(schedule))


def _law(answer: Answer) -> str:
    return answer.breaches[0].law if answer.breaches else ""


def _signature(record: Record) -> str:
    """Return what happened in which order, without times."""
    lines = "\n".join(f"{entry.who} {entry.subject} {entry.what}" for entry in record.journal)
    return hashlib.sha256(lines.encode()).hexdigest()
