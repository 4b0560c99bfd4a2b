"""Limits the concurrent requests of a client to what a server can handle: :class:`Pace`.

Pure: callers report when a request begins and ends. The limit grows while responses are as fast as the fastest of their
sort, holds when they begin to queue at the server, shrinks when the queue grows, and halves when the server reports
overload (429) or does not respond. As in TCP Vegas the queue is estimated as ``limit * (1 - least / now)``, where
``now`` is the current and ``least`` the shortest response time.
"""

from __future__ import annotations

from dataclasses import dataclass, field

FIRST = 4
MAX_AT_ONCE = 24
"""Each concurrent request costs both sides a connection."""
QUEUED_LOW, QUEUED_HIGH = 4.0, 8.0
"""Below the first the limit grows, above the second it shrinks. So slow responses alone, which may be slow for our own
reasons, leave a limit of the second; errors reduce it to one."""
FORGET_AFTER = 500
"""Responses of one sort after which its shortest time is measured again, since servers and networks change. Few
requests run at that moment, so that queueing does not count as the shortest time."""


@dataclass(slots=True)
class _Sort:
    """Requests with similar duration: reads, writes, queries."""

    least: float
    next_least: float
    observed: int = 0

    def learn(self, seconds: float) -> bool:
        """Record a duration; return True if the shortest time is to be measured again."""
        self.observed += 1
        self.next_least = min(self.next_least, seconds)
        self.least = min(self.least, seconds)
        if self.observed < FORGET_AFTER:
            return False
        self.least, self.next_least, self.observed = self.next_least, seconds, 0
        return True


@dataclass(slots=True)
class Pace:
    """The limit of one client with one server. Not thread-safe."""

    most: int = MAX_AT_ONCE
    under_way: int = 0
    _limit: float = float(FIRST)
    _sorts: dict[str, _Sort] = field(default_factory=dict)
    _starting: bool = True
    _deaf: int = 0
    """Requests sent before the last error; their errors say nothing new."""

    @property
    def limit(self) -> int:
        return int(self._limit)

    @property
    def room(self) -> bool:
        return self.under_way < self.limit

    def begins(self) -> None:
        self.under_way += 1

    def answered(self, sort: str, seconds: float) -> None:
        """Record a response of this sort after ``seconds``."""
        was_full = self.under_way >= self.limit
        self._ends()
        known = self._sorts.setdefault(sort, _Sort(seconds, seconds))
        if known.learn(seconds):
            self._limit, self._starting = min(self._limit, float(FIRST)), True
            return
        queued = self._limit * (1 - known.least / seconds) if seconds > 0 else 0.0
        if queued < QUEUED_LOW:
            if was_full:  # only a used limit shows that more is possible
                self._limit = min(self._limit + (1.0 if self._starting else 1 / self._limit), float(self.most))
        else:
            self._starting = False
            if queued > QUEUED_HIGH:
                self._limit -= 1 / self._limit

    def refused(self) -> None:
        """Record that the server reported overload, or did not respond."""
        old = self._deaf
        self._ends()
        self._starting = False
        if old == 0:
            self._limit = max(self._limit / 2, 1.0)
            self._deaf = self.under_way

    def dropped(self) -> None:
        """Record that a request was abandoned."""
        self._ends()

    def _ends(self) -> None:
        self.under_way -= 1
        self._deaf = max(self._deaf - 1, 0)
