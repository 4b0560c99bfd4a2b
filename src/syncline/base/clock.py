"""Where time comes from.

Called by drivers only: planners receive ``now`` as a value. The one module that reads the machine's clock;
everything else gets a :class:`Clock` or an instant. Never called inside a plan.
"""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Protocol

__all__ = [
    "EPOCH",
    "LONG_AGO",
    "Clock",
    "SystemClock",
    "VirtualClock",
    "format_micro_time",
    "format_time",
    "parse_time",
    "time_or_none",
]

MAX_TIME_CHARS = 64
"""Longer texts are no instants; they are refused without being remembered."""

EPOCH = datetime(2026, 1, 1, tzinfo=UTC)
"""Where virtual worlds begin unless told otherwise."""
LONG_AGO = datetime(1970, 1, 1, tzinfo=UTC)
"""Of what does not say since when it is so: nobody waits for it."""


class Clock(Protocol):
    """An aware UTC instant on demand."""

    def now(self) -> datetime: ...


class SystemClock:
    """The machine's clock."""

    def now(self) -> datetime:
        return datetime.now(UTC)

    @staticmethod
    def monotonic() -> float:
        """Seconds that only grow; for measuring, never for planning."""
        return time.monotonic()


class VirtualClock:
    """A clock that stands still until it is set. It never runs backwards."""

    def __init__(self, start: datetime = EPOCH) -> None:
        self._now = start

    def now(self) -> datetime:
        return self._now

    def set(self, instant: datetime) -> None:
        assert instant >= self._now, f"virtual time would run backwards: {self._now} -> {instant}"
        self._now = instant

    def advance(self, seconds: float) -> None:
        self.set(self._now + timedelta(seconds=seconds))


@lru_cache(maxsize=1024)
def format_time(instant: datetime) -> str:
    """RFC 3339 in whole seconds, UTC: ``2026-01-01T00:00:00Z`` (metav1.Time)."""
    return instant.astimezone(UTC).isoformat(timespec="seconds")[:19] + "Z"  # strftime takes ten times as long


@lru_cache(maxsize=1024)
def format_micro_time(instant: datetime) -> str:
    """RFC 3339 with microseconds, UTC (metav1.MicroTime)."""
    return instant.astimezone(UTC).isoformat(timespec="microseconds")[:26] + "Z"


def parse_time(text: str) -> datetime:
    """Read an RFC 3339 instant with any offset; raises ValueError that names the text."""
    if not isinstance(text, str) or len(text) > MAX_TIME_CHARS:
        return _read_time(text)
    return _remembered_time(text)


def time_or_none(text: object) -> datetime | None:
    """The instant that an object tells, None where it is missing or unreadable."""
    try:
        return parse_time(text) if isinstance(text, str) and text else None
    except ValueError:
        return None


def _read_time(text: str) -> datetime:
    try:
        instant = datetime.fromisoformat(text)
    except (ValueError, TypeError) as error:
        raise ValueError(f"{text!r} is not an RFC 3339 time such as 2026-01-01T00:00:00Z") from error
    if instant.tzinfo is None:
        raise ValueError(f"{text!r} has no time zone; write 2026-01-01T00:00:00Z")
    return instant.astimezone(UTC)


_remembered_time = lru_cache(maxsize=8192)(_read_time)
"""Controllers read the same few thousand instants at every look at an object."""
