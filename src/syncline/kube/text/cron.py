"""Cron schedules with five fields: :func:`parse_schedule`.

Used by sync windows and periodic tasks. A :class:`Schedule` computes with the times that it is given; no clock, no time
zone. Rules: Go's ``robfig/cron`` (minute, hour, day of month, month, day of week; names for months and weekdays;
weekday 7 is an error; descriptors are not accepted).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import date, datetime, timedelta

HORIZON_DAYS = 5 * 366
"""How far the next start is searched; a schedule without one in five years never starts."""
MAX_CHARS = 1_000


class CronError(ValueError):
    """A text that is no schedule."""


@dataclass(frozen=True, slots=True)
class _Field:
    name: str
    low: int
    high: int
    names: tuple[str, ...] = ()


_FIELDS = (
    _Field("minute", 0, 59),
    _Field("hour", 0, 23),
    _Field("day of month", 1, 31),
    _Field("month", 1, 12, ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")),
    _Field("day of week", 0, 6, ("sun", "mon", "tue", "wed", "thu", "fri", "sat")),
)


@dataclass(frozen=True, slots=True)
class _Values:
    """The values of one field. ``any``: unrestricted (a star or question mark without a step)."""

    values: frozenset[int]
    any: bool


@dataclass(frozen=True, slots=True)
class Schedule:
    """Starts are computed on the times as given, without a time zone; their seconds are zero."""

    minutes: tuple[int, ...]
    hours: tuple[int, ...]
    days: _Values
    months: _Values
    weekdays: _Values

    def next_after(self, moment: datetime) -> datetime | None:
        """Return the first start strictly after ``moment``; None if there is none within five years."""
        first = moment.replace(second=0, microsecond=0) + timedelta(minutes=1)
        day = first.date()
        last = min(first.date().toordinal() + HORIZON_DAYS - 1, date.max.toordinal() - 31)
        while day.toordinal() <= last:
            if day.month not in self.months.values:
                day = (day.replace(day=1) + timedelta(days=31)).replace(day=1)
                continue
            found, day = day, day + timedelta(days=1)
            if not self._falls_on(found):
                continue
            earliest = (first.hour, first.minute) if found == first.date() else (0, 0)
            for hour in self.hours:
                for minute in self.minutes:
                    if (hour, minute) >= earliest:
                        return first.replace(
                            year=found.year, month=found.month, day=found.day, hour=hour, minute=minute
                        )
        return None

    def _falls_on(self, day: date) -> bool:
        """Return True for a matching day; if both day fields are restricted, one of them must match."""
        by_date = day.day in self.days.values
        by_weekday = day.isoweekday() % 7 in self.weekdays.values
        both_needed = self.days.any or self.weekdays.any
        return (by_date and by_weekday) if both_needed else (by_date or by_weekday)


def parse_schedule(text: str) -> Schedule:
    """Parse five fields, as in CronJobs and sync windows. Raises :class:`CronError` that names the field."""
    if len(text) > MAX_CHARS:
        raise CronError(f"a schedule has at most {MAX_CHARS} characters")
    if text.startswith("@"):
        raise CronError(f"parser does not accept descriptors: {text}")
    parts = text.split()
    if not text:
        raise CronError("empty spec string")
    if len(parts) != len(_FIELDS):
        raise CronError(f"expected exactly {len(_FIELDS)} fields, found {len(parts)}: [{' '.join(parts)}]")
    minutes, hours, days, months, weekdays = (_values(part, field) for part, field in zip(parts, _FIELDS, strict=True))
    return Schedule(
        tuple(sorted(minutes.values)), tuple(sorted(hours.values)), days=days, months=months, weekdays=weekdays
    )


def _values(text: str, field: _Field) -> _Values:
    found: set[int] = set()
    unrestricted = False
    for part in text.split(","):
        if not part:
            continue
        span, anything = _range(part, field)
        found |= set(span)
        unrestricted = unrestricted or anything
    return _Values(frozenset(found), unrestricted)


def _range(part: str, field: _Field) -> tuple[range, bool]:
    span, slash, step_text = part.partition("/")
    if "/" in step_text:
        raise CronError(f"too many slashes: {part}")
    low_text, dash, high_text = span.partition("-")
    if "-" in high_text:
        raise CronError(f"too many hyphens: {part}")
    star = low_text in ("*", "?")
    if star:
        low, high = field.low, field.high
    else:
        low = _number(low_text, field)
        high = _number(high_text, field) if dash else (field.high if slash else low)
    step = _digits(step_text) if slash else 1
    _check(low, high, step, field, part)
    return range(low, high + 1, step), star and step == 1


def _check(low: int, high: int, step: int, field: _Field, part: str) -> None:
    if low < field.low:
        raise CronError(f"beginning of range ({low}) below minimum ({field.low}): {part}")
    if high > field.high:
        raise CronError(f"end of range ({high}) above maximum ({field.high}): {part}")
    if low > high:
        raise CronError(f"beginning of range ({low}) beyond end of range ({high}): {part}")
    if step == 0:
        raise CronError(f"step of range should be a positive number: {part}")


def _number(text: str, field: _Field) -> int:
    if text.lower() in field.names:
        return field.names.index(text.lower()) + field.low
    return _digits(text)


def _digits(text: str) -> int:
    if not re.fullmatch("[0-9]{1,18}", text):
        raise CronError(f'failed to parse int from {text}: strconv.Atoi: parsing "{text}": invalid syntax')
    return int(text)
