"""Go's ``time.Time`` to the nanosecond, in any year, with the zones of the system's database: :class:`Time`.

Go's local zone is UTC here, as in the controller's container.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import NamedTuple, Protocol
from zoneinfo import ZoneInfo

SECOND = 1_000_000_000
DAY = 86_400
INT64_MIN, INT64_MAX = -(1 << 63), (1 << 63) - 1
CYCLE_S = 146_097 * DAY
"""Seconds of 400 years, after which the calendar repeats."""
_EPOCH_ORDINAL = 719_162
"""Days from the year 1 to 1970."""


class Zone(Protocol):
    """A place's clock."""

    def at(self, unix: int) -> tuple[int, str]:
        """Return the seconds east of Greenwich and the abbreviation at an instant."""


@dataclass(frozen=True, slots=True)
class FixedZone:
    offset: int
    name: str

    def at(self, unix: int) -> tuple[int, str]:
        return self.offset, self.name


@dataclass(frozen=True, slots=True)
class NamedZone:
    """A zone of the database."""

    info: ZoneInfo

    def at(self, unix: int) -> tuple[int, str]:
        near = unix
        if not -62_000_000_000 < unix < 253_000_000_000:
            near = unix % CYCLE_S + (0 if unix < 0 else 5 * CYCLE_S - 2 * CYCLE_S)
            near = -62_000_000_000 if unix < 0 else near
        moment = (datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=near)).astimezone(self.info)
        offset = moment.utcoffset()
        return int(offset.total_seconds()) if offset is not None else 0, moment.tzname() or ""


UTC_ZONE = FixedZone(0, "UTC")


@lru_cache(maxsize=64)
def zone_of(name: str) -> Zone | None:
    """Return a zone by its name (``Europe/Oslo``, ``UTC``, ``Local``), None for an unknown one."""
    if name in ("", "UTC", "Local"):
        return UTC_ZONE
    if ".." in name or name[0] in "/\\" or len(name) > 100:
        return None
    try:
        return NamedZone(ZoneInfo(name))
    except (OSError, ValueError, KeyError):
        return None


class Civil(NamedTuple):
    """A date and time of day on the clock of a zone."""

    year: int
    month: int
    day: int
    hour: int
    minute: int
    second: int
    weekday: int
    """0 for Sunday."""
    yearday: int
    """From 1."""


def civil_of(local: int) -> Civil:
    """Return the civil time of seconds since 1970 on a zone's clock."""
    days, rest = divmod(local, DAY)
    cycles, days_in = divmod(days + _EPOCH_ORDINAL, 146_097)
    date = datetime.fromordinal(days_in + 1)
    year = date.year + 400 * cycles
    return Civil(
        year,
        date.month,
        date.day,
        rest // 3600,
        rest // 60 % 60,
        rest % 60,
        (days + 4) % 7,
        date.timetuple().tm_yday,
    )


def seconds_of(year: int, month: int, day: int, hour: int = 0, minute: int = 0, second: int = 0) -> int:
    """Return the seconds since 1970 of a civil time; months and days beyond their range count on."""
    year, month = year + (month - 1) // 12, (month - 1) % 12 + 1
    cycles, year_in = divmod(year - 1, 400)
    days = datetime(year_in + 1, month, 1).toordinal() + cycles * 146_097 + day - 2 - _EPOCH_ORDINAL
    return days * DAY + hour * 3600 + minute * 60 + second


def is_leap(year: int) -> bool:
    return year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)


def rounded_to_seconds(nanoseconds: int) -> int:
    """Round a duration to whole seconds, halves away from zero."""
    whole = (abs(nanoseconds) + SECOND // 2) // SECOND * SECOND
    return whole if nanoseconds >= 0 else -whole


def clamped(nanoseconds: int) -> int:
    """Return a duration within Go's 64 bits."""
    return min(max(nanoseconds, INT64_MIN), INT64_MAX)
