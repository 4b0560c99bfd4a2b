"""How many requests a client has under way with one server: as many as that server takes.

Pure: callers say when a request begins and how it ended. The number grows while answers come as quickly as the quickest
of their sort, holds when they begin to queue at the server, shrinks when the queue grows, and halves when the server
says that it has too much (429) or gives no answer. The queue is estimated as TCP Vegas does: of ``limit`` requests that
take ``now`` where one alone takes ``least``, ``limit * (1 - least / now)`` only wait.
"""

from __future__ import annotations

from dataclasses import dataclass, field

__all__ = ["Pace"]

FIRST = 4
MAX_AT_ONCE = 24
"""Each more costs both sides a connection."""
QUEUED_LOW, QUEUED_HIGH = 4.0, 8.0
"""Fewer, and one more may be asked for; more, and one less. So slow answers alone, which may be slow for our own sake,
leave as many as the second; refusals take it down to one."""
FORGET_AFTER = 500
"""Answers of one sort after which its quickest is found again, since servers and ways to them change. Few are asked at
that moment, so that answers which only queued are not taken for quick ones."""


@dataclass(slots=True)
class _Sort:
    """Requests that take equally long: reads, writes, questions."""

    least: float
    next_least: float
    observed: int = 0

    def learn(self, seconds: float) -> bool:
        """True where it is time to find the quickest again."""
        self.observed += 1
        self.next_least = min(self.next_least, seconds)
        self.least = min(self.least, seconds)
        if self.observed < FORGET_AFTER:
            return False
        self.least, self.next_least, self.observed = self.next_least, seconds, 0
        return True


@dataclass(slots=True)
class Pace:
    """Of one client with one server. One thread at a time."""

    most: int = MAX_AT_ONCE
    under_way: int = 0
    _limit: float = float(FIRST)
    _sorts: dict[str, _Sort] = field(default_factory=dict)
    _starting: bool = True
    _deaf: int = 0
    """Answers that were asked for before the last refusal, and so say nothing new of it."""

    @property
    def limit(self) -> int:
        return int(self._limit)

    @property
    def room(self) -> bool:
        return self.under_way < self.limit

    def begins(self) -> None:
        self.under_way += 1

    def answered(self, sort: str, seconds: float) -> None:
        """A request of this sort was answered after so long."""
        was_full = self.under_way >= self.limit
        self._ends()
        known = self._sorts.setdefault(sort, _Sort(seconds, seconds))
        if known.learn(seconds):
            self._limit, self._starting = min(self._limit, float(FIRST)), True
            return
        queued = self._limit * (1 - known.least / seconds) if seconds > 0 else 0.0
        if queued < QUEUED_LOW:
            if was_full:  # who does not use what there is learns nothing of more
                self._limit = min(self._limit + (1.0 if self._starting else 1 / self._limit), float(self.most))
        else:
            self._starting = False
            if queued > QUEUED_HIGH:
                self._limit -= 1 / self._limit

    def refused(self) -> None:
        """The server said that it has too much, or gave no answer."""
        old = self._deaf
        self._ends()
        self._starting = False
        if old == 0:
            self._limit = max(self._limit / 2, 1.0)
            self._deaf = self.under_way

    def dropped(self) -> None:
        """A request was given up: nothing was learnt."""
        self._ends()

    def _ends(self) -> None:
        self.under_way -= 1
        self._deaf = max(self._deaf - 1, 0)
