"""Whether a live operation goes as its rehearsal said: :func:`plan_of` rehearses what a record begins with,
:func:`drift_of` compares, bar by bar."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import pairwise
from pathlib import Path

from syncline.kube.kinds.argoproj import APPLICATION
from syncline.kube.text.durations import format_seconds
from syncline.machineconfig.nodes.timeline import Outcome as Nodes
from syncline.rehearsal.answer.answer import Bar, Doing
from syncline.rehearsal.answer.timeline import bars_of
from syncline.rehearsal.given.durations import Duration, fixed
from syncline.rehearsal.reality.measuring import measured
from syncline.rehearsal.reality.outside import Abort, Act, Commit, Write, acts_of
from syncline.rehearsal.reality.recording import Recording
from syncline.rehearsal.reality.replaying import played_again

SLACK_S, SLACK = 3.0, 0.1
"""What counts as no difference: seconds (times in statuses are whole ones), and this part of the planned length."""
ENDING = (Doing.SYNC, Doing.HOOK, Doing.POOL)
"""What has an end of its own; bars of nodes carry the state of the whole update."""
_DATED = re.compile(r"-\d{10}$")


class Verdict(StrEnum):
    """ON_PLAN and QUICK are within the range, COMING and GOING may be yet. The others left it."""

    ON_PLAN = "on plan"
    QUICK = "quicker"
    COMING = "to come"
    GOING = "going on"
    LATE = "late"
    ORDER = "other order"
    ENDS = "other end"
    MISSING = "not begun"
    UNPLANNED = "not planned"


INSIDE = (Verdict.ON_PLAN, Verdict.QUICK, Verdict.COMING, Verdict.GOING)


@dataclass(frozen=True, slots=True)
class Planned:
    """A bar of the plan over its rehearsals, with usual, least and longest durations. Seconds since the begin; lengths
    None: it lasts for ever."""

    row: str
    doing: Doing
    begins_s: tuple[float, float, float]
    lengths_s: tuple[float | None, float | None, float | None]
    state: str

    @property
    def longest_s(self) -> float | None:
        known = [each for each in self.lengths_s if each is not None]
        return max(known) if len(known) == len(self.lengths_s) else None


@dataclass(frozen=True, slots=True)
class Line:
    """A bar as planned and as it was; one of them may be missing. ``began_s``: when it began, or is to."""

    row: str
    doing: Doing
    began_s: float
    planned: Planned | None
    live: Bar | None
    verdict: Verdict
    said: str = ""


@dataclass(frozen=True)
class Drift:
    lines: tuple[Line, ...]
    durations: Mapping[str, Duration]

    @property
    def outside(self) -> tuple[Line, ...]:
        """Return what left the range."""
        return tuple(line for line in self.lines if line.verdict not in INSIDE)

    @property
    def pools(self) -> tuple[str, ...]:
        """Return the pools of the operation, those that a Hold can keep from going on."""
        rows = {line.row for line in self.lines if line.row.startswith("pool/")}
        return tuple(sorted(row.removeprefix("pool/") for row in rows))


Key = tuple[str, Doing, int]


@dataclass(frozen=True)
class Plan:
    """What was rehearsed. ``acts``: what it takes as given."""

    acts: tuple[Act, ...]
    bars: Mapping[Key, Planned]
    durations: Mapping[str, Duration]


def planned_acts(recording: Recording) -> tuple[Act, ...]:
    """Return what a plan takes as given of what came from outside: commits, and what people ask of Applications."""
    return tuple(each for each in acts_of(recording) if _is_given(each))


def _is_given(act: Act) -> bool:
    return isinstance(act, Commit | Abort) or (isinstance(act, Write) and act.ref.group_kind == APPLICATION.group_kind)


def plan_of(
    recording: Recording,
    repositories: Mapping[str, Path],
    scratch: Path,
    durations: Mapping[str, Duration] | None = None,
) -> Plan:
    """Rehearse the operation that a record has, with usual, least and longest durations: those given, or what was
    measured before it began, or guesses. Raises ScenarioError."""
    known = durations or measured(replace(recording, seen=(), journal=()).record())
    acts = planned_acts(recording)
    plays: list[dict[Key, Bar]] = []
    for number, way in enumerate(("usual", "least", "longest")):
        lengths = {name: _at(each, way) for name, each in known.items()}
        record = played_again(recording, acts, lengths, repositories, scratch / f"plan-{number}")
        plays.append(_keyed(bars_of(record)))
    return Plan(acts, {key: _planned(key, bar, plays) for key, bar in plays[0].items()}, known)


def _at(each: Duration, way: str) -> Duration:
    return fixed(each, {"usual": each.usual_s, "least": each.least_s}.get(way, each.most_s))


def _keyed(bars: Sequence[Bar]) -> dict[Key, Bar]:
    """Return the bars by row and how often the same was done before; hooks without the time in their names."""
    found: dict[Key, Bar] = {}
    for bar in bars:
        row, number = _DATED.sub("", bar.row), 0
        while (row, bar.doing, number) in found:
            number += 1
        found[row, bar.doing, number] = bar
    return found


def _planned(key: Key, bar: Bar, plays: Sequence[Mapping[Key, Bar]]) -> Planned:
    usual, least, longest = (play.get(key, bar) for play in plays)
    begins = usual.began_s, least.began_s, longest.began_s
    return Planned(key[0], key[1], begins, (_length(usual), _length(least), _length(longest)), bar.state)


def _length(bar: Bar) -> float | None:
    return None if bar.ends_s is None else bar.ends_s - bar.began_s


# -- comparing ---------------------------------------------------------------------------------------------------------


def drift_of(plan: Plan, recording: Recording) -> Drift:
    """Compare what is recorded so far with the plan; pure."""
    record = recording.record()
    live = _keyed(bars_of(record))
    now_s = record.seconds(recording.ended)
    swapped = dict(_swapped(plan.bars, live))
    lines: list[Line] = []
    for key, bar in live.items():
        planned = plan.bars.get(key)
        found = _judged(planned, bar, now_s, swapped.get(key, ""))
        lines.append(Line(key[0], key[1], bar.began_s, planned, bar, *found))
    for key, planned in plan.bars.items():
        if key not in live:
            lines.append(Line(key[0], key[1], planned.begins_s[0], planned, None, *_unbegun(planned, now_s)))
    return Drift(tuple(sorted(lines, key=lambda line: (line.began_s, line.row))), plan.durations)


def _judged(planned: Planned | None, bar: Bar, now_s: float, first: str) -> tuple[Verdict, str]:
    if planned is None:
        return Verdict.UNPLANNED, f"{bar.row} {bar.doing}, which the plan does not have"
    row = f"{planned.row} {bar.doing}"
    if first:
        return Verdict.ORDER, f"{row} begins before {first}, which the plan has first"
    if bar.ends_s is not None and bar.state != planned.state and bar.doing in ENDING:
        return Verdict.ENDS, f"{row} ends {bar.state or 'otherwise'}, planned {planned.state}"
    if bar.state == Nodes.DEGRADED and planned.state != Nodes.DEGRADED:
        return Verdict.ENDS, f"{row}: the node is degraded, planned {planned.state}"
    length, longest = bar.length_s(now_s), planned.longest_s
    if longest is not None and length > longest + max(SLACK_S, longest * SLACK):
        lasts = "lasts" if bar.ends_s is not None else "lasts already"
        return Verdict.LATE, f"{row} {lasts} {_s(length)}, planned {span(planned)}"
    if bar.ends_s is None:
        return Verdict.GOING, ""
    least = min((each for each in planned.lengths_s if each is not None), default=0.0)
    return (Verdict.QUICK if length < least - max(SLACK_S, least * SLACK) else Verdict.ON_PLAN), ""


def _unbegun(planned: Planned, now_s: float) -> tuple[Verdict, str]:
    latest = max(planned.begins_s)
    if now_s <= latest + max(SLACK_S, latest * SLACK):
        return Verdict.COMING, ""
    said = f"{planned.row} {planned.doing} has not begun at {_s(now_s)}, planned at {_s(latest)} at the latest"
    return Verdict.MISSING, said


def _swapped(planned: Mapping[Key, Planned], live: Mapping[Key, Bar]) -> Iterator[tuple[Key, str]]:
    """Yield what began before something of its kind that every rehearsal has clearly first, and that."""
    known = sorted((key for key in live if key in planned), key=lambda key: (key[1], live[key].began_s))
    for key, after in pairwise(known):
        if key[1] != after[1] or live[after].began_s - live[key].began_s <= SLACK_S:
            continue
        gaps = [a - b for a, b in zip(planned[key].begins_s, planned[after].begins_s, strict=True)]
        if min(gaps) > SLACK_S:
            yield key, f"{after[0]} {after[1]}"


def span(planned: Planned) -> str:
    """Return a planned length with its range."""
    known = [each for each in planned.lengths_s if each is not None]
    if len(known) < len(planned.lengths_s):
        return "for ever"
    usual, least, most = known[0], min(known), max(known)
    return _s(usual) if _s(least) == _s(most) else f"{_s(usual)} ({_s(least)} to {_s(most)})"


def _s(seconds: float) -> str:
    return format_seconds(round(seconds))
