"""When a cron schedule is due: the standard five fields and the descriptors.

Schedules are validated before they are stored; one that cannot be read is never due.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from zoneinfo import ZoneInfo

__all__ = ["Schedule", "parse_schedule"]

MAX_DAYS = 5 * 366
"""How far to look for a matching day: 29 February comes within five years but for a century's end."""
_DESCRIPTORS = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_DAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_RANGES = ((0, 59, (), 0), (0, 23, (), 0), (1, 31, (), 0), (1, 12, _MONTHS, 1), (0, 6, _DAYS, 0))


@dataclass(frozen=True, slots=True)
class Schedule:
    """``free_day`` and ``free_weekday`` tell that a day field is a star: then the other one alone decides."""

    minutes: frozenset[int]
    hours: frozenset[int]
    days: frozenset[int]
    months: frozenset[int]
    weekdays: frozenset[int]
    free_day: bool
    free_weekday: bool
    zone: ZoneInfo | None = None

    def latest(self, after: datetime, until: datetime) -> datetime | None:
        """The last due time in (``after``, ``until``]."""
        here = self._local(until)
        for back in range(MAX_DAYS):
            day = here.date() - timedelta(days=back)
            if day < self._local(after).date():
                return None
            for moment in reversed(self._moments(day)):
                if moment <= until:
                    return moment if moment > after else None
        return None

    def following(self, after: datetime) -> datetime | None:
        """The first due time after ``after``."""
        here = self._local(after)
        for ahead in range(MAX_DAYS):
            for moment in self._moments(here.date() + timedelta(days=ahead)):
                if moment > after:
                    return moment
        return None

    def _local(self, moment: datetime) -> datetime:
        return moment.astimezone(self.zone or UTC)

    def _moments(self, day: date) -> list[datetime]:
        """All due times of a day, in order, as UTC instants."""
        if day.month not in self.months or not self._matches_day(day):
            return []
        zone = self.zone or UTC
        moments = {
            datetime.combine(day, time(hour, minute), zone).astimezone(UTC)
            for hour in self.hours
            for minute in self.minutes
        }
        return sorted(moments)

    def _matches_day(self, day: date) -> bool:
        by_day, by_weekday = day.day in self.days, day.isoweekday() % 7 in self.weekdays
        return by_day and by_weekday if self.free_day or self.free_weekday else by_day or by_weekday


def parse_schedule(text: str, zone: str = "") -> Schedule | None:
    """None for a schedule that cannot be read, and for ``@every``, which has no fixed times."""
    fields = _DESCRIPTORS.get(text, text).split()
    if len(fields) != len(_RANGES):
        return None
    try:
        minutes, hours, days, months, weekdays = (_field(text, *limits) for text, limits in zip(fields, _RANGES))
        place = ZoneInfo(zone) if zone else None
    except (ValueError, KeyError, OSError):
        return None
    free_day, free_weekday = fields[2][0] in "*?", fields[4][0] in "*?"
    return Schedule(minutes, hours, days, months, weekdays, free_day, free_weekday, place)


def _field(text: str, low: int, high: int, names: tuple[str, ...], first: int) -> frozenset[int]:
    found: set[int] = set()
    for part in text.split(","):
        span, stepped, step = part.partition("/")
        start, dash, end = span.partition("-")
        if start in ("*", "?"):
            begin, stop = low, high
        else:
            begin = _number(start, names, first)
            stop = _number(end, names, first) if dash else (high if stepped else begin)
        if not low <= begin <= stop <= high:
            raise ValueError(f"{part!r} is outside {low}-{high}")
        found |= set(range(begin, stop + 1, int(step) if stepped else 1))
    return frozenset(found)


def _number(text: str, names: tuple[str, ...], first: int) -> int:
    return names.index(text.lower()) + first if text.lower() in names else int(text)
