"""One priority level: its seats, its queues, and the order of waiting requests.

``fairness.control`` calls it with the time in seconds. It never blocks: ``wake`` of a :class:`Ticket` signals that its
request has a seat. Shuffle sharding assigns each flow a hand of queues, a request joins the queue of its hand with the
least work, and virtual time orders the queues. Source: apiserver ``pkg/util/flowcontrol/fairqueuing/queueset`` and
``util/shufflesharding``.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable
from enum import Enum, auto
from functools import lru_cache

from syncline.cluster.fairness.limits import Bounds, Demand

EXPECTED_S = 0.003
"""Assumed duration of a request until it ends (``estimatedServiceDuration``)."""
SEATS_PERCENT = 15
"""Highest share of a level's seats assumed for one request."""


class Response(Enum):
    """Handling of a request if no seat is free."""

    EXEMPT = auto()
    REJECT = auto()
    QUEUE = auto()


class State(Enum):
    WAITING = auto()
    SEATED = auto()
    REFUSED = auto()
    OVER = auto()


class Ticket:
    """One request. ``wake`` is called once, when a waiting request gets its seat."""

    __slots__ = ("arrived", "flow", "level", "queue", "seated", "seats", "state", "virtual", "wake")

    def __init__(self, level: Level, flow: str, seats: int, now: float) -> None:
        self.level = level
        self.flow = flow
        """Name of its FlowSchema."""
        self.seats = seats
        self.state = State.WAITING
        self.queue: _Queue | None = None
        self.arrived = now
        self.seated = now
        self.virtual = 0.0
        self.wake: Callable[[], None] | None = None


class _Queue:
    __slots__ = ("executing", "index", "next", "seats", "waiting", "work")

    def __init__(self, index: int) -> None:
        self.index = index
        self.waiting: deque[Ticket] = deque()
        self.executing = 0
        self.seats = 0
        self.work = 0.0
        """Seat-seconds of waiting requests."""
        self.next = 0.0
        """Virtual time at which its next request starts."""


@lru_cache(maxsize=4096)
def hand_of(number: int, deck: int, size: int) -> tuple[int, ...]:
    """Return ``size`` different cards of a deck, dealt by a hash (``Dealer.Deal``)."""
    rests = []
    for dealt in range(size):
        number, rest = divmod(number, deck - dealt)
        rests.append(rest)
    hand = []
    for place, rest in enumerate(rests):
        card = rest
        for before in reversed(rests[:place]):
            card += card >= before
        hand.append(card)
    return tuple(hand)


class Level:
    """Seats and queues of a PriorityLevelConfiguration. ``seats`` is the current limit, changed by borrowing."""

    def __init__(self, name: str, now: float) -> None:
        self.name = name
        self.uid = ""
        self.response = Response.REJECT
        self.bounds = Bounds(0, 0, 0)
        self.seats = 0
        self.smooth = 0.0
        self.demand = Demand()
        self.queue_count = 0
        self.hand_size = 0
        self.queue_length = 0
        self.executing = 0
        self.taken = 0
        """Seats in use."""
        self.waiting = 0
        self.wanted = 0
        """Seats that waiting requests would fill."""
        self._queues: dict[int, _Queue] = {}
        self._enqueued = 0
        self._virtual = 0.0
        self._moved = now
        self._meter = _Meter(now)

    def configure(
        self, uid: str, response: Response, bounds: Bounds, *, queues: int = 0, hand: int = 0, length: int = 0
    ) -> None:
        """Apply the object's configuration. Waiting requests stay in their queues, even if there are fewer now."""
        self.uid, self.response, self.bounds = uid, response, bounds
        self.queue_count, self.hand_size, self.queue_length = queues, hand, length

    @property
    def most_seats(self) -> int:
        """The maximum of seats assumed for one request."""
        if not self.hand_size:
            return 10
        nominal = self.bounds.nominal
        return max(1, min(math.ceil(nominal * SEATS_PERCENT / 100), nominal // self.hand_size))

    def enter(self, flow: str, hash_value: int, seats: int, now: float) -> Ticket:
        """Return a ticket that is seated, waiting or refused."""
        ticket = Ticket(self, flow, seats, now)
        if self.response is Response.EXEMPT:
            self._sit(ticket, None, now)
            return ticket
        self._advance(now)
        if self.response is Response.REJECT or self.queue_count < 1:
            if self._fits(seats):
                self._sit(ticket, None, now)
            else:
                ticket.state = State.REFUSED
            return ticket
        queue = self._choose(hash_value)
        if self.taken >= self.seats and len(queue.waiting) >= self.queue_length:
            ticket.state = State.REFUSED
            self._forget(queue)
            return ticket
        self._enqueue(ticket, queue, now)
        self._dispatch(now)
        return ticket

    def leave(self, ticket: Ticket, now: float) -> None:
        """End a request in any state and seat the next ones. Idempotent."""
        state, ticket.state = ticket.state, State.OVER if ticket.state is not State.REFUSED else State.REFUSED
        if state is State.SEATED:
            self._advance(now)
            self._stand_up(ticket, now)
        elif state is State.WAITING:
            self._advance(now)
            self._unqueue(ticket, now)
        else:
            return
        if self.waiting:
            self._dispatch(now)

    def limit(self, seats: int, now: float) -> None:
        """Set a new limit, from configuration or borrowing."""
        self._advance(now)
        self.seats = seats
        if self.waiting:
            self._dispatch(now)

    def observe(self, now: float) -> Demand:
        """Return the demand since the last call."""
        self.demand = self._meter.reset(now)
        return self.demand

    # -- moves ----------------------------------------------------------------------------------------------------

    def _sit(self, ticket: Ticket, queue: _Queue | None, now: float) -> None:
        ticket.state, ticket.seated, ticket.queue = State.SEATED, now, queue
        self.executing += 1
        self.taken += ticket.seats
        if queue is not None:
            queue.executing += 1
            queue.seats += ticket.seats
        self._meter.set(self.taken + self.wanted, now)

    def _stand_up(self, ticket: Ticket, now: float) -> None:
        self.executing -= 1
        self.taken -= ticket.seats
        queue = ticket.queue
        if queue is not None:
            queue.executing -= 1
            queue.seats -= ticket.seats
            # Replace the expected duration that the queue was charged by the actual one.
            queue.next -= ticket.seats * (EXPECTED_S - (now - ticket.seated))
            self._bound(queue)
            self._forget(queue)
        self._meter.set(self.taken + self.wanted, now)

    def _enqueue(self, ticket: Ticket, queue: _Queue, now: float) -> None:
        if not queue.waiting and not queue.executing:
            queue.next = self._virtual
        ticket.queue, ticket.virtual = queue, self._virtual
        queue.waiting.append(ticket)
        queue.work += ticket.seats * EXPECTED_S
        self.waiting += 1
        self.wanted += ticket.seats
        self._meter.set(self.taken + self.wanted, now)

    def _unqueue(self, ticket: Ticket, now: float) -> None:
        queue = ticket.queue
        assert queue is not None, "who waits stands in a queue"
        queue.waiting.remove(ticket)
        self._taken_out(ticket, queue)
        self._forget(queue)
        self._meter.set(self.taken + self.wanted, now)

    def _taken_out(self, ticket: Ticket, queue: _Queue) -> None:
        queue.work -= ticket.seats * EXPECTED_S
        self.waiting -= 1
        self.wanted -= ticket.seats

    def _dispatch(self, now: float) -> None:
        """Seat requests in order while seats are free; a small one never overtakes a large one."""
        while self.waiting:
            queue = min(
                (each for each in self._queues.values() if each.waiting),
                key=lambda each: (each.next + each.waiting[0].seats * EXPECTED_S, each.index),
            )
            ticket = queue.waiting[0]
            if not self._fits(ticket.seats):
                return
            queue.waiting.popleft()
            self._taken_out(ticket, queue)
            self._sit(ticket, queue, now)
            queue.next += ticket.seats * EXPECTED_S
            self._bound(queue)
            if ticket.wake is not None:
                ticket.wake()

    def _fits(self, seats: int) -> bool:
        if seats > self.seats:
            return not self.executing
        return self.taken + seats <= self.seats

    # -- queues ---------------------------------------------------------------------------------------------------

    def _choose(self, hash_value: int) -> _Queue:
        """Return the queue of the hand with the least waiting work; the start rotates to spread ties."""
        hand = hand_of(hash_value, self.queue_count, min(self.hand_size, self.queue_count))
        start = self._enqueued % len(hand)
        self._enqueued += 1
        best: _Queue | None = None
        for index in hand[start:] + hand[:start]:
            queue = self._queues.get(index)
            if queue is None:
                queue = self._queues[index] = _Queue(index)
                return queue
            if best is None or queue.work < best.work:
                best = queue
        assert best is not None, "a hand holds at least one card"
        return best

    def _forget(self, queue: _Queue) -> None:
        """Delete an empty queue, since a level may have millions; it is recreated on demand."""
        if not queue.waiting and not queue.executing:
            self._queues.pop(queue.index, None)

    def _bound(self, queue: _Queue) -> None:
        """Advance an idle queue to the current virtual time, so that it has no credit."""
        if queue.waiting:
            queue.next = max(queue.next, queue.waiting[0].virtual)

    def _advance(self, now: float) -> None:
        """Advance virtual time at the rate at which a queue may work."""
        passed, self._moved = now - self._moved, now
        active = len(self._queues)
        if active and passed > 0:
            self._virtual += passed * min(self.taken + self.wanted, self.seats) / active


class _Meter:
    """Maximum, mean and deviation of a number over time."""

    __slots__ = ("_area", "_highest", "_since", "_squares", "_start", "_value")

    def __init__(self, now: float) -> None:
        self._value = 0.0
        self._start = self._since = now
        self._area = self._squares = self._highest = 0.0

    def set(self, value: float, now: float) -> None:
        passed = now - self._since
        self._area += self._value * passed
        self._squares += self._value * self._value * passed
        self._since, self._value = now, value
        if value > self._highest:
            self._highest = value

    def reset(self, now: float) -> Demand:
        self.set(self._value, now)
        length = now - self._start
        mean = self._area / length if length > 0 else self._value
        variance = self._squares / length - mean * mean if length > 0 else 0.0
        found = Demand(self._highest, mean, math.sqrt(max(variance, 0.0)))
        self._start, self._area, self._squares, self._highest = now, 0.0, 0.0, self._value
        return found
