"""From plays of classes and the course of groups to an answer; pure. Entry point: :func:`fleet_answer`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta

from syncline.kube.text.durations import format_seconds
from syncline.rehearsal.answer.answer import Outcome
from syncline.rehearsal.fleet.answer import ClassAnswer, FleetAnswer, Held, WaveAnswer
from syncline.rehearsal.fleet.classes import EqualClusters
from syncline.rehearsal.fleet.course import Course, Turn, begins_of, later
from syncline.rehearsal.fleet.given import Away
from syncline.rehearsal.fleet.playing import Played

WORST = (Outcome.UNSAFE, Outcome.FAILED, Outcome.BLOCKED, Outcome.SAFE)
"""The verdict of a fleet is that of the first of these that a cluster of it has."""
MAX_NAMED = 3
NOTHING = "no ApplicationSet makes an Application that a cluster pulls"


@dataclass(frozen=True)
class Rehearsed:
    """What was rehearsed. ``classes`` with ``plays`` of the same order; ``sample``: names."""

    name: str
    seed: int
    classes: Sequence[EqualClusters]
    plays: Sequence[Played]
    courses: Sequence[Course]
    problems: tuple[str, ...]
    sample: tuple[str, ...]
    assumed: tuple[str, ...]
    aways: Mapping[str, Sequence[Away]] = field(default_factory=dict)


def fleet_answer(found: Rehearsed) -> FleetAnswer:
    """Return the answer, without cures."""
    begins = begins_of(found.courses)
    if not any(course.turns for course in found.courses):
        found = replace(found, problems=(*found.problems, NOTHING))
    classes = tuple(_class(*each, found, begins) for each in zip(found.classes, found.plays, strict=True))
    waves = tuple(row for course in found.courses for row in _waves(course))
    held = tuple(row for course in found.courses for row in _held(course))
    outcome = _outcome(found, classes, held)
    ends = [one.ends_s for one in classes if one.reached]
    done = max((one for one in ends if one is not None), default=0.0)
    whole = outcome is Outcome.SAFE and None not in ends
    return FleetAnswer(
        found.name,
        found.seed,
        outcome,
        _headline(outcome, classes, held, found.problems, done),
        next((one.answer.advice for one in _worst(classes) if one.answer.advice), ""),
        done if whole else None,
        sum(len(one.clusters) for one in classes),
        classes,
        waves,
        held,
        found.problems,
        found.sample,
        (),
        found.assumed,
        classes[0].answer.checked if classes else (),
    )


def _class(one: EqualClusters, played: Played, found: Rehearsed, begins: Mapping[str, float]) -> ClassAnswer:
    mine = [begins[name] for name in one.names if name in begins]
    done = played.answer.done_s
    apps = {turn.app for course in found.courses for turn in course.turns if turn.cluster == one.played.name}
    ended = [_ends(begins[name], done, found.aways.get(name, ())) for name in one.names if name in begins]
    ends = max(ended) if ended and done is not None else None
    return ClassAnswer(one.names, one.played.name, len(mine), len(apps), min(mine, default=None), ends, played.answer)


def _ends(begins_s: float, done_s: float | None, aways: Sequence[Away]) -> float:
    """Return when a cluster is done that gets its release at a time, unless it is away then."""
    return later(timedelta(seconds=begins_s), aways).total_seconds() + (done_s or 0.0)


def _waves(course: Course) -> Iterator[WaveAnswer]:
    for wave in sorted({turn.wave for turn in course.turns}):
        turns = [turn for turn in course.turns if turn.wave == wave]
        begun = [turn.begins_s for turn in turns if turn.begins_s is not None]
        ended = [turn.ends_s for turn in turns if turn.ends_s is not None]
        left = [turn for turn in turns if turn.ends_s is None]
        yield WaveAnswer(
            course.group,
            wave,
            len({turn.cluster for turn in turns}),
            min(begun, default=None),
            max(ended, default=None) if not left else None,
            len({turn.cluster for turn in turns} - {turn.cluster for turn in left}),
            len({turn.cluster for turn in left if turn.begins_s is None}),
            next((f"{turn.cluster}: {turn.why or _unproved(turn)}" for turn in left), ""),
        )


def _unproved(turn: Turn) -> str:
    return f"{turn.app} never proves the release"


def _held(course: Course) -> Iterator[Held]:
    """Yield who never gets the release, by reason."""
    waiting: dict[str, list[str]] = {}
    for turn in course.turns:
        if turn.begins_s is None and not turn.unchanged:
            waiting.setdefault(turn.why, []).append(turn.cluster)
    stuck = tuple(sorted({turn.cluster for turn in course.turns if turn.begins_s is not None and turn.ends_s is None}))
    for why, clusters in waiting.items():
        yield Held(course.group, tuple(dict.fromkeys(clusters)), stuck, why)


def _outcome(found: Rehearsed, classes: Sequence[ClassAnswer], held: Sequence[Held]) -> Outcome:
    outcomes = {one.outcome for one in classes if one.reached}
    if found.problems:
        outcomes.add(Outcome.FAILED)
    if held or not all(course.complete for course in found.courses):
        outcomes.add(Outcome.BLOCKED)
    return next((one for one in WORST if one in outcomes), Outcome.SAFE)


def _worst(classes: Sequence[ClassAnswer]) -> list[ClassAnswer]:
    reached = [one for one in classes if one.reached]
    return sorted(reached, key=lambda one: (WORST.index(one.outcome), -one.reached))


def _headline(
    outcome: Outcome,
    classes: Sequence[ClassAnswer],
    held: Sequence[Held],
    problems: Sequence[str],
    done: float,
) -> str:
    total = sum(len(one.clusters) for one in classes)
    if outcome is Outcome.SAFE:
        return f"{count(total)} in {count(len(classes), 'class', 'classes')} done after {format_seconds(round(done))}"
    kept = {name for one in held for name in one.clusters}
    also = f"; {count(len(kept))} never get it" if kept else ""
    worst = next(iter(_worst(classes)), None)
    if worst is not None and worst.outcome is not Outcome.SAFE:
        return f"{shown(worst.clusters)} of {total}: {worst.answer.headline}{also}"
    if problems:
        return f"{problems[0]}{also}"
    return (
        f"{count(len(kept))} of {total} never get it: {held[0].why}" if held else "the order has no end that is known"
    )


def count(number: int, one: str = "cluster", many: str = "clusters") -> str:
    return f"{number} {one if number == 1 else many}"


def shown(clusters: Sequence[str]) -> str:
    """Return ``cluster aws-1``, or ``40 clusters (aws-1, aws-2, aws-3 …)``."""
    if len(clusters) == 1:
        return f"cluster {clusters[0]}"
    more = " …" if len(clusters) > MAX_NAMED else ""
    return f"{len(clusters)} clusters ({', '.join(clusters[:MAX_NAMED])}{more})"
