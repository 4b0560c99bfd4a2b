"""The source of time: :class:`SystemClock` for live processes, :class:`VirtualClock` for virtual ones.

Only drivers call it: planners receive ``now`` as a value. It is the only module that reads the machine's clock;
everything else gets a :class:`Clock` or an instant.

A machine's clock can be set while processes run. Measure durations inside one process with :func:`steady_now`, which no
setting moves. Compare deadlines that are stored in the API with :meth:`SystemClock.now`, which spreads a jump over
time: after an hour forward the deadlines of that hour do not all expire at once, after an hour back nothing waits for
an hour.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Protocol

log = logging.getLogger("syncline.clock")

MAX_TIME_CHARS = 64
"""Longer texts are no instants; they are refused and not cached."""

EPOCH = datetime(2026, 1, 1, tzinfo=UTC)
"""The default start time of virtual worlds."""
LONG_AGO = datetime(1970, 1, 1, tzinfo=UTC)
"""The start time of a state that does not record one, so that nothing waits for it."""


class Clock(Protocol):
    """Returns the current time as an aware UTC instant."""

    def now(self) -> datetime: ...


def steady_now(clock: Clock) -> datetime:
    """Return an instant of a scale that only grows, as fast as time passes. Use it for durations inside one process,
    never store or show it. A virtual clock uses its ordinary scale."""
    own = getattr(clock, "steady", None)
    return own() if own is not None else clock.now()


JUMP = timedelta(seconds=1)
"""A smaller difference between the machine's clock and the elapsed time is drift, and is followed at once."""
DRIFT = 0.001
"""The part of the elapsed time that an adjusted clock may gain or lose; NTP changes half of it."""
MAX_SPREAD = timedelta(hours=2)
"""Longer jumps are followed at once: a clock that was days wrong (no battery) would be wrong for days more."""
MAX_JUMPS = 16
"""The number of jumps that are remembered."""
READ_S = 0.1
"""Two clocks read within this time count as simultaneous; a process that was suspended in between reads again."""
READ_TRIES = 5


def _wall() -> float:
    return time.time()


def _since_boot() -> float:
    """Return the seconds since boot, including the time the machine slept where the system counts it."""
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))


@dataclass(frozen=True, slots=True)
class Jump:
    """One jump of a clock by ``by``. ``number`` counts from 1; ``spread``: the jump is followed gradually."""

    number: int
    by: timedelta
    spread: bool

    def __str__(self) -> str:
        way = "forward" if self.by > timedelta(0) else "back"
        how = "deadlines and waits follow gradually" if self.spread else "everything follows at once"
        return f"the machine's clock jumped {way} by {abs(self.by.total_seconds()):.0f} s; {how}"


class SystemClock:
    """The machine's clock with jumps spread. After a jump forward :meth:`now` runs at double speed, after one back at
    half speed, until both agree again. It runs backwards only for jumps of more than two hours."""

    def __init__(self, wall: Callable[[], float] = _wall, steady: Callable[[], float] = _since_boot) -> None:
        """``wall`` returns the machine's time, ``steady`` the time since some fixed moment, both in seconds."""
        self._wall, self._steady = wall, steady
        self._lock = threading.Lock()
        self._owed = timedelta(0)
        """How much of past jumps :meth:`now` has still to follow."""
        self._jumps: deque[Jump] = deque(maxlen=MAX_JUMPS)
        self._looked = timedelta(seconds=steady())
        self._ahead = self._began = timedelta(seconds=wall()) - self._looked
        """By how much the machine's clock was ahead of the time that passed, at the last look and at the first."""

    def now(self) -> datetime:
        with self._lock:
            wall, at = self._read()
            passed, self._looked = at - self._looked, at
            moved, self._ahead = wall - at - self._ahead, wall - at
            if abs(moved) > JUMP + passed * DRIFT:
                self._jumped(moved)
            if self._owed > timedelta(0):
                self._owed -= min(self._owed, passed)
            elif self._owed:
                self._owed += min(-self._owed, passed / 2)
            return LONG_AGO + wall - self._owed

    def steady(self) -> datetime:
        """See :func:`steady_now`."""
        return LONG_AGO + self._began + timedelta(seconds=self._steady())

    @property
    def owed(self) -> timedelta:
        """The part of past jumps that :meth:`now` has not followed yet; positive if it is behind the machine's
        clock."""
        return self._owed

    def jumps(self, after: int = 0) -> list[Jump]:
        """Return the remembered jumps whose number is higher than ``after``."""
        with self._lock:
            return [jump for jump in self._jumps if jump.number > after]

    @staticmethod
    def monotonic() -> float:
        """Return seconds that only grow; for measuring, never for planning."""
        return time.monotonic()

    def _read(self) -> tuple[timedelta, timedelta]:
        """Return wall and steady time of the same moment."""
        for _ in range(READ_TRIES):
            before = self._steady()
            wall, after = self._wall(), self._steady()
            if after - before < READ_S:
                return timedelta(seconds=wall), timedelta(seconds=before)
        # On a machine this busy a jump looks like slowness; the next read decides.
        return timedelta(seconds=after) + self._ahead, timedelta(seconds=after)

    def _jumped(self, by: timedelta) -> None:
        self._owed += by
        spread = abs(self._owed) <= MAX_SPREAD
        if not spread:
            self._owed = timedelta(0)
        jump = Jump(self._jumps[-1].number + 1 if self._jumps else 1, by, spread)
        self._jumps.append(jump)
        log.warning("%s", jump)


class VirtualClock:
    """A clock that stands still until it is set; it never runs backwards."""

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
    """Return the instant of a field, or None if it is missing or unreadable."""
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
"""A cache: controllers parse the same few thousand instants each time they read an object."""
