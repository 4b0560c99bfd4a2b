"""Fair shares of a bounded number of slots: :class:`Places` decides which :class:`Ticket` works next.

Used by ``base/threads.py``. Each ticket belongs to shares (a project, a host). Limits keep one share from taking all
slots. The share with the fewest slots comes first, then the longest wait. No clock, no threads; callers report events,
from one thread at a time.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Mapping
from dataclasses import dataclass, field

Share = tuple[str, str]
"""Kind and name of a share: ``("project", "team-a")``."""


class Crowded(OSError):
    """Too many tickets wait already; another one is refused."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of slots. ``each``: the most slots of one share, by its kind. ``slow`` and ``slow_each``: extra slots for
    long-running work that mostly waits for another system; without a free one it keeps its ordinary slot."""

    places: int
    each: Mapping[str, int] = field(default_factory=dict)
    slow: int = 0
    slow_each: Mapping[str, int] = field(default_factory=dict)
    waiting: int = 20_000
    """The most waiting tickets; one share of the first kind may have half of them."""


@dataclass(eq=False, slots=True)
class Ticket:
    """A request for a slot. Slots are shared out fairly among the first shares."""

    shares: tuple[Share, ...]
    number: int = 0
    state: str = ""
    """``waiting``, ``working`` or ``slow``; empty before and after."""


@dataclass(slots=True)
class Places:
    """The slots of one kind of work."""

    limits: Limits
    _working: Counter[Share] = field(default_factory=Counter)
    _slow: Counter[Share] = field(default_factory=Counter)
    _waiting: dict[tuple[Share, ...], deque[Ticket]] = field(default_factory=dict)
    _queued: Counter[Share] = field(default_factory=Counter)
    _counts: Counter[str] = field(default_factory=Counter)
    _number: int = 0

    def counts(self) -> dict[str, int]:
        """Return the number of tickets that are working, slow and waiting."""
        return {state: self._counts[state] for state in ("working", "slow", "waiting")}

    def ask(self, ticket: Ticket) -> list[Ticket]:
        """Queue a ticket; return the tickets that have a slot now. Raises :class:`Crowded`."""
        first = ticket.shares[:1]
        if self._counts["waiting"] >= self.limits.waiting or any(
            self._queued[share] >= self.limits.waiting / 2 for share in first
        ):
            raise Crowded(f"{self._counts['waiting']} others wait already; this is tried again later")
        self._number += 1
        ticket.number = self._number
        self._enter(ticket, "waiting")
        self._queued.update(first)
        self._waiting.setdefault(ticket.shares, deque()).append(ticket)
        return self._admit()

    def slow(self, ticket: Ticket) -> list[Ticket]:
        """Move a long-running ticket to a slow slot if one is free; return the tickets that have a slot now."""
        if ticket.state != "working" or not self._fits(ticket.shares, self._slow, self.limits.slow, "slow"):
            return []
        self._leave(ticket)
        self._enter(ticket, "slow")
        return self._admit()

    def give_back(self, ticket: Ticket) -> list[Ticket]:
        """Free the slot, or withdraw the ticket; return the tickets that have a slot now."""
        if ticket.state == "waiting":
            self._withdraw(ticket)
        self._leave(ticket)
        return self._admit()

    # -- the books -----------------------------------------------------------------------------------------------

    def _table(self, state: str) -> Counter[Share] | None:
        return {"working": self._working, "slow": self._slow}.get(state)

    def _enter(self, ticket: Ticket, state: str) -> None:
        ticket.state = state
        self._counts[state] += 1
        table = self._table(state)
        if table is not None:
            table.update(ticket.shares)

    def _leave(self, ticket: Ticket) -> None:
        if not ticket.state:
            return
        self._counts[ticket.state] -= 1
        table = self._table(ticket.state)
        if table is not None:
            _take(table, ticket.shares)
        ticket.state = ""

    def _withdraw(self, ticket: Ticket) -> None:
        line = self._waiting[ticket.shares]
        line.remove(ticket)
        if not line:
            del self._waiting[ticket.shares]
        _take(self._queued, ticket.shares[:1])

    def _fits(self, shares: tuple[Share, ...], taken: Counter[Share], places: int, state: str) -> bool:
        each = self.limits.each if state == "working" else self.limits.slow_each
        return self._counts[state] < places and all(taken[share] < each.get(share[0], places) for share in shares)

    def _admit(self) -> list[Ticket]:
        admitted: list[Ticket] = []
        while self._waiting and self._counts["working"] < self.limits.places:
            free = (
                (self._working[shares[0]] if shares else 0, line[0].number, line[0])
                for shares, line in self._waiting.items()
                if self._fits(shares, self._working, self.limits.places, "working")
            )
            chosen = min(free, default=None, key=lambda one: one[:2])
            if chosen is None:
                break
            ticket = chosen[2]
            self._withdraw(ticket)
            self._leave(ticket)
            self._enter(ticket, "working")
            admitted.append(ticket)
        return admitted


def _take(table: Counter[Share], shares: tuple[Share, ...]) -> None:
    for share in shares:
        table[share] -= 1
        if not table[share]:
            del table[share]
