"""Judges the record of a scenario by what it expects: :func:`failures`. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from fnmatch import fnmatchcase

from syncline.kube.text.durations import format_seconds
from syncline.rehearsal.answer.answer import Answer, Bar, Outcome
from syncline.rehearsal.answer.condition import MAX_STEPS, end_values
from syncline.rehearsal.record import Record, Version
from syncline.rehearsal.testing.case import (
    AtEnd,
    Done,
    Expectation,
    Laws,
    Moment,
    Order,
    State,
    Verdict,
    Waits,
)
from syncline.rehearsal.testing.states import Seen, Wanting, shown

MAX_NAMED, MAX_AROUND, AROUND_S = 5, 12, 120.0
LEASE = "/Lease/"
"""Part of the renewals in a journal, which say nothing of a roll-out."""
MAX_TIMES = 5_000
"""Moments at which a state is looked at."""
SAFE = Expectation("expect", "verdict: safe, where no other is named", Verdict((Outcome.SAFE,)))


@dataclass(frozen=True, slots=True)
class Failure:
    """An expectation that does not hold. ``found``: what was found instead; ``around``: what happened at that time, as
    lines of the timeline and the journal."""

    where: str
    wanted: str
    found: str
    around: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Finding:
    text: str
    at_s: float


def failures(expected: Sequence[Expectation], record: Record, answer: Answer) -> tuple[Failure, ...]:
    """Return the failures, in the order of the expectations."""
    found = []
    for one in expected:
        finding = _judged(one, record, answer)
        if finding is not None:
            around = tuple(_around(record, answer, finding.at_s))
            found.append(Failure(one.where, one.text, finding.text, around))
    return tuple(found)


def _judged(one: Expectation, record: Record, answer: Answer) -> _Finding | None:
    match one.wanted:
        case Verdict(outcomes=outcomes):
            if answer.outcome in outcomes:
                return None
            at_s = answer.breaches[0].at_s if answer.breaches else answer.done_s or _last_moved(answer)
            return _Finding(f"{answer.outcome}: {answer.headline}", at_s)
        case Done(within=within):
            return _done(within, answer)
        case Laws() as wanted:
            return _laws(wanted, answer)
        case Order(moments=moments):
            return _order(moments, answer)
        case Waits() as wanted:
            return _waits(wanted, answer)
        case AtEnd(condition=condition):
            why = condition.broken(end_values(record), [MAX_STEPS])
            return _Finding("it is false" if why == "breaks the law" else f"it {why}", answer.played_s) if why else None
        case State() as wanted:
            return _Looking(record, wanted).finding()


def _done(within: timedelta, answer: Answer) -> _Finding | None:
    limit = within.total_seconds()
    if answer.done_s is not None and answer.done_s <= limit:
        return None
    if answer.done_s is None:
        return _Finding(f"never done: {answer.headline}", _last_moved(answer))
    return _Finding(f"done after {format_seconds(round(answer.done_s))}", answer.done_s)


def _last_moved(answer: Answer) -> float:
    return max((bar.began_s for bar in answer.bars), default=0.0)


def _laws(wanted: Laws, answer: Answer) -> _Finding | None:
    broken = {breach.law: breach for breach in answer.breaches}
    for name in wanted.broken:
        if name not in broken:
            return _Finding(f"law {name} holds; broken are: {', '.join(broken) or 'none'}", _last_moved(answer))
    for name in wanted.held:
        if name in broken:
            return _Finding(f"law {name} is broken: {broken[name].found}", broken[name].at_s)
    return None


def _order(moments: Sequence[Moment], answer: Answer) -> _Finding | None:
    """Of several bars that a moment names, the last counts before the next moment, and of that the first."""
    times = []
    for moment in moments:
        bars = [bar for bar in answer.bars if _names(moment.row, bar)]
        if not bars:
            rows = ", ".join(dict.fromkeys(f"{bar.row} {bar.doing}" for bar in answer.bars))
            return _Finding(f"nothing in the timeline is {moment.row!r}; it has: {rows or 'nothing'}", 0.0)
        times.append(sorted(bar.began_s if moment.begins else _end_of(bar) for bar in bars))
    for (first, at), (then, next_at) in zip(zip(moments, times), list(zip(moments, times))[1:], strict=False):
        if at[-1] > next_at[0]:
            said = f"{first} at {_offset(at[-1])}, and {then} at {_offset(next_at[0])}"
            return _Finding(said, next_at[0] if next_at[0] != float("inf") else 0.0)
    return None


def _end_of(bar: Bar) -> float:
    return float("inf") if bar.ends_s is None else bar.ends_s


def _offset(seconds: float) -> str:
    return "no time" if seconds == float("inf") else f"+{format_seconds(round(seconds))}"


def _names(row: str, bar: Bar) -> bool:
    return fnmatchcase(bar.row, row) or fnmatchcase(f"{bar.row} {bar.doing}", row)


def _waits(wanted: Waits, answer: Answer) -> _Finding | None:
    found = [wait for wait in answer.waits if wanted.subject in wait.subject]
    meant = [
        wait
        for wait in found
        if any(wanted.cause in link for link in wait.chain) and (wait.until_s is None or not wanted.forever)
    ]
    if wanted.never:
        return _Finding(f"it waits: {' ← '.join(meant[0].chain)}", meant[0].since_s) if meant else None
    if meant:
        return None
    others = found or answer.waits
    named = "; ".join(" ← ".join(wait.chain) for wait in others[:MAX_NAMED])
    said = "it waits otherwise" if found else "it does not wait; what waits"
    return _Finding(f"{said}: {named or 'nothing'}", others[0].since_s if others else _last_moved(answer))


# -- states ------------------------------------------------------------------------------------------------------------


@dataclass
class _Looking:
    """Looks at the objects that a state names, at one time or many."""

    record: Record
    wanted: State

    def __post_init__(self) -> None:
        self._wanting = Wanting(self.wanted)
        histories = sorted(self.record.by_ref.items())
        self.histories = {ref: versions for ref, versions in histories if self._wanting.names(ref)}

    def finding(self) -> _Finding | None:
        when, record = self.wanted.when, self.record
        if when.always:
            for at in self._times(record.ended):
                if why := self._wrong(at):
                    return _Finding(f"at {_offset(record.seconds(at))}: {why}", record.seconds(at))
            return None
        if when.within is not None:
            end = record.began + when.within
            why = ""
            for at in self._times(end):
                why = self._wrong(at)
                if not why:
                    return None
            return _Finding(f"at {_offset(when.within.total_seconds())}: {why}", when.within.total_seconds())
        at = record.ended if when.at is None else record.began + when.at
        said = "at the end" if when.at is None else f"at {_offset(when.at.total_seconds())}"
        why = self._wrong(at)
        return _Finding(f"{said}: {why}", record.seconds(at)) if why else None

    def _times(self, end: datetime) -> list[datetime]:
        began = self.record.began
        times = {began, *(v.at for versions in self.histories.values() for v in versions if began <= v.at <= end)}
        ordered = sorted(times)
        return ordered if len(ordered) <= MAX_TIMES else [*ordered[:MAX_TIMES], ordered[-1]]

    def _wrong(self, at: datetime) -> str:
        """Return what is not as it is wanted at a time; empty if all is."""
        found = {
            ref: seen for ref, versions in self.histories.items() if (seen := self._seen(versions, at)) is not None
        }
        why = self._wanting.wrong(found)
        if found or not why:
            return why
        were = ", ".join(shown(ref) for ref in list(self.histories)[:MAX_NAMED])
        return f"{why}; there were: {were or 'none'}"

    def _seen(self, versions: Sequence[Version], at: datetime) -> Seen | None:
        """Return the version that was there at a time; None if there was none."""
        past = [version for version in versions if version.at <= at]
        if not past or past[-1].gone:
            return None
        before = past[-2] if len(past) > 1 and not past[-2].gone else None
        return past[-1].obj, None if before is None else before.obj, self.record.seconds(past[-1].at)


# -- around a failure --------------------------------------------------------------------------------------------------


def _around(record: Record, answer: Answer, at_s: float) -> Iterator[str]:
    """Yield the bars that last at a time, and the last lines of the journal until then."""
    near = [bar for bar in answer.bars if _is_near(bar, at_s)]
    for bar in near[:MAX_AROUND] or sorted(answer.bars, key=lambda bar: bar.began_s)[-MAX_AROUND:]:
        ends = "…" if bar.ends_s is None else _offset(bar.ends_s)
        yield f"{_offset(bar.began_s)} to {ends}  {bar.row} {bar.doing} {bar.state}".rstrip()
    until = [entry for entry in record.journal if record.seconds(entry.when) <= at_s and LEASE not in entry.what]
    for entry in until[-MAX_AROUND:]:
        yield f"{_offset(record.seconds(entry.when))}  {entry.who}: {entry.what}"


def _is_near(bar: Bar, at_s: float) -> bool:
    return bar.began_s - AROUND_S <= at_s and (bar.ends_s is None or at_s <= bar.ends_s + AROUND_S)
