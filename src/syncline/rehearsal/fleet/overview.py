"""The answer of a fleet in the shape of that of one cluster, which documents and pictures draw; pure.

Each wave is a row, and each class of clusters one; what a class waits for, breaks or lacks names its clusters.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from syncline.rehearsal.answer.answer import Answer, Bar, Breach, Doing, Outage, Outcome, Wait
from syncline.rehearsal.fleet.answer import ClassAnswer, FleetAnswer
from syncline.rehearsal.fleet.judging import shown

STATES = {Outcome.SAFE: "done", Outcome.FAILED: "fails", Outcome.BLOCKED: "is stuck", Outcome.UNSAFE: "breaks a law"}


def overview(found: FleetAnswer) -> Answer:
    """Return the answer for documents; ``-o json`` has all of the fleet's."""
    reached = [one for one in found.classes if one.reached]
    bars = (*_waves(found), *(bar for one in reached for bar in _class(one)))
    durations = reached[0].answer.durations if reached else ()
    return Answer(
        found.name,
        found.seed,
        found.outcome,
        found.headline,
        found.advice,
        max([one.answer.played_s + (one.begins_s or 0.0) for one in reached], default=0.0),
        found.done_s,
        found.quickest_s,
        found.slowest_s,
        bars,
        (),
        tuple(wait for one in reached for wait in _waits(one)),
        tuple(outage for one in reached for outage in _outages(one)),
        tuple(breach for one in reached for breach in _breaches(one)),
        found.checked,
        found.cures,
        found.assumed,
        durations,
        schedule=found.schedule,
    )


def _waves(found: FleetAnswer) -> Iterator[Bar]:
    for one in found.waves:
        row = f"{one.group} wave {one.wave}"
        if one.begins_s is None:
            yield Bar(row, Doing.WAITS, 0.0, None, "never begins")
        else:
            yield Bar(row, Doing.ROLLS, one.begins_s, one.ends_s, f"{one.proved} of {one.clusters}")


def _class(one: ClassAnswer) -> Iterator[Bar]:
    begins, row = one.begins_s or 0.0, shown(one.clusters)
    if begins > 0:
        yield Bar(row, Doing.WAITS, 0.0, begins, "for its turn")
    yield Bar(row, Doing.ROLLS, begins, one.ends_s, STATES[one.outcome])


def _waits(one: ClassAnswer) -> Iterator[Wait]:
    for wait in one.answer.waits:
        since, until = _later(one, wait.since_s), _later(one, wait.until_s)
        chain = (f"{shown(one.clusters)}: {wait.chain[0]}", *wait.chain[1:])
        yield replace(wait, since_s=since or 0.0, until_s=until, chain=chain)


def _outages(one: ClassAnswer) -> Iterator[Outage]:
    for each in one.answer.outages:
        subject, since = f"{shown(one.clusters)}: {each.subject}", _later(one, each.since_s) or 0.0
        yield replace(each, subject=subject, since_s=since, until_s=_later(one, each.until_s))


def _breaches(one: ClassAnswer) -> Sequence[Breach]:
    return [
        replace(each, found=f"{shown(one.clusters)}: {each.found}", at_s=_later(one, each.at_s) or 0.0)
        for each in one.answer.breaches
    ]


def _later(one: ClassAnswer, seconds: float | None) -> float | None:
    return None if seconds is None else seconds + (one.begins_s or 0.0)
