"""The virtual driver, :class:`VirtualDriver`: takes the next due item, sets the clock, runs it. No waits, sockets,
threads.

It runs the same loops as the live driver (``manager.py``) on a transport that responds at once. Runs with equal seeds
write byte-equal journals; ``shuffle`` draws among ready keys, so that code cannot rely on their order.

Watches have no timeout here, and bookmarks are not needed: they would only save a list after a lost watch. A watch that
a fault breaks resumes from its last event, or lists again if that is too old.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from heapq import heappop, heappush
from itertools import count
from typing import Any, Protocol

from syncline.base.action import Unfinished, Work
from syncline.base.clock import VirtualClock
from syncline.base.entropy import Entropy
from syncline.control.executor import run_in_place
from syncline.control.informer import CRDS, LOOK_S, Informer, Part
from syncline.control.loop import ControlLoop, Watched, awaits_kinds, informers_of, part_of
from syncline.control.workqueue import Key
from syncline.kube.client import Batch, Transport, taking
from syncline.kube.errors import ApiError, Forbidden, error_from_status
from syncline.kube.mapper import discover
from syncline.kube.objects import GroupKind
from syncline.kube.transport.outbound import Stream

MAX_STEPS = 2_000_000
"""Bound of one run: more steps than any honest scene needs; beyond it two controllers fight."""
RETRY = timedelta(seconds=1)
"""How long after its second failure a request of a watch is repeated."""
WATCH_BATCH = 1000
"""Events of one kind taken in one go."""


class NotIdleError(AssertionError):
    """The world did not become idle within its limit; the message names the keys that are due."""


class Actor(Protocol):
    """A part of the world that has work at certain times."""

    def pump(self) -> bool:
        """Take in events from elsewhere; return True if there were any."""
        ...

    def next_due(self, *, foreground_only: bool) -> datetime | None: ...

    def step(self) -> bool:
        """Perform one due item; return False if there was none."""
        ...

    def describe(self) -> str: ...


def _nothing(_limit: int) -> Batch:
    return []


@dataclass(slots=True)
class _Watching:
    """One watched kind. ``rank`` is the order in which kinds with events are processed, so that runs are
    reproducible."""

    rank: int
    informer: Informer
    stream: Stream | None = None
    take: Callable[[int], Batch] = _nothing


class WatchActor:
    """The watches of one cluster, on a transport that responds at once."""

    def __init__(self, watched: Watched, transport: Transport, clock: VirtualClock) -> None:
        self.watched = watched
        self._clock = clock
        self._transport = transport
        self._watching: dict[Part, _Watching] = {}
        self._news: dict[Part, None] = {}
        self._refused: set[Part] = set()
        """Kinds that cannot be read; they are requested again with every event."""
        self._ranks = 0
        self._stale_discovery = True
        watched.wanted_changed = self._rediscover
        self._failed: set[Part] = set()
        """Kinds whose last request failed."""
        self.stirred: Callable[[], None] = lambda: None
        """Called when there are events to take in, for drivers of very many actors."""
        self._look_at: datetime | None = None
        """When to look again for kinds that are wanted and not served."""
        self._again: datetime | None = None
        """When what failed twice is requested again: a server that does not answer is not asked all the time."""

    def next_due(self, *, foreground_only: bool) -> datetime | None:
        times = [one for one in (self._again, self._look_at) if one is not None and not foreground_only]
        return min(times, default=None)

    def step(self) -> bool:
        return False

    def describe(self) -> str:
        return ""

    def pump(self) -> bool:
        """Read the streams of kinds with new events: most steps concern one or two of sixty kinds."""
        if self._again is not None and self._clock.now() >= self._again:
            self._again = None
            self._news |= dict.fromkeys(sorted(self._failed))
        if self._look_at is not None and self._clock.now() >= self._look_at:
            self._look_at, self._stale_discovery = None, True
        moved = self._again is None and self._refresh_discovery()
        if not self._news:
            return moved
        news, self._news = self._news | dict.fromkeys(sorted(self._refused)), {}
        known = [part for part in news if part in self._watching]
        if len(known) > 1:
            known.sort(key=lambda part: self._watching[part].rank)
        for part in known:
            watching = self._watching.get(part)
            if watching is not None and self._pump_part(part, watching):
                moved = True
        return moved

    def _refresh_discovery(self) -> bool:
        if not self._stale_discovery:
            return False
        try:
            found = run_in_place(discover(), self._transport)
        except ApiError:
            self._again = self._clock.now() + RETRY
            return False
        self._stale_discovery, self._look_at = False, None
        self.watched.mapper.replace(found)
        if awaits_kinds(self.watched):
            self._look_at = self._clock.now() + timedelta(seconds=LOOK_S)
        wanted = self.watched.wanted_kinds() | {CRDS}
        for kind in sorted(wanted):
            info = self.watched.mapper.preferred(kind)
            for informer in informers_of(self.watched, info) if info is not None else ():
                part = part_of(informer)
                if part not in self._watching:
                    self._ranks += 1
                    self._watching[part] = _Watching(self._ranks, informer)
                    self._news[part] = None
        for part in sorted(set(self._watching)):
            if self.watched.mapper.preferred(part[0]) is None or part[0] not in wanted:
                self._forget(part)
        return True

    def _rediscover(self) -> None:
        self._stale_discovery = True

    def _forget(self, part: Part) -> None:
        watching = self._watching.pop(part)
        if watching.stream is not None:
            watching.stream.close()
        self.watched.cache.forget_kind(part[0])

    def _pump_part(self, part: Part, watching: _Watching) -> bool:
        informer, kind = watching.informer, part[0]
        try:
            if informer.needs_list:
                found = self._transport.send(informer.list_request()).or_raise()
                self.watched.unread(kind, "", informer.space)
                self._refused.discard(part)
                self._tell(kind, informer.listed(found))
            if watching.stream is None or watching.stream.ended:
                watching.stream = self._open(part, informer)
                watching.take = taking(watching.stream)
            batch = watching.take(WATCH_BATCH)
            changes, error = informer.received(batch)
            self._tell(kind, changes)
            if error is not None:
                raise error
            self._failed.discard(part)
            if len(batch) >= WATCH_BATCH or watching.stream.ended:
                self._news[part] = None
            return bool(batch)
        except ApiError as error:
            informer.failed(error)
            watching.stream = None
            if error.code == Forbidden.code:
                informer.relist()
                self._refused.add(part)
                self.watched.unread(kind, str(error), informer.space)
                return False
            if part in self._failed and error.code not in (404, 410):
                self._again = self._again or self._clock.now() + RETRY
                return False
            self._failed.add(part)
            self._news[part] = None
            if error.code == 404:
                self._stale_discovery = True
                self._forget(part)
            return True

    def _open(self, part: Part, informer: Informer) -> Stream:
        answer = self._transport.send(informer.watch_request())
        if answer.stream is None:
            raise error_from_status(answer.obj, answer.status)
        answer.stream.on_ready = partial(self._heard, part)
        return answer.stream

    def _heard(self, part: Part) -> None:
        self._news[part] = None
        self.stirred()

    def _tell(self, kind: GroupKind, changes: list) -> None:  # type: ignore[type-arg]
        if kind == CRDS and changes:
            self._stale_discovery = True
        self.watched.changed(kind, changes)


class LoopActor(WatchActor):
    """A control loop and the watches of its own cluster."""

    def __init__(
        self, loop: ControlLoop, transport: Transport, clock: VirtualClock, shuffle: Entropy | None = None
    ) -> None:
        super().__init__(loop, transport, clock)
        self.loop = loop
        self._clock = clock
        self.shuffle = shuffle
        """Draws among the keys that are ready; None: the oldest first."""
        self._late: list[tuple[datetime, int, Key, Work]] = []
        """Work that ends later, ordered by time."""
        self._numbers = count()

    def next_due(self, *, foreground_only: bool) -> datetime | None:
        due = self.loop.queue.next_due(foreground_only=foreground_only)
        late, again = self._late[0][0] if self._late else None, super().next_due(foreground_only=foreground_only)
        return min((time for time in (due, late, again) if time is not None), default=None)

    def step(self) -> bool:
        now = self._clock.now()
        if self._end_late(now):
            return True
        if self.shuffle is not None:
            ready = self.loop.queue.ready(now)
            if not ready:
                return False
            key = self.shuffle.choice(ready)
            self.loop.queue.take(key)
        else:
            popped = self.loop.queue.pop(now)
            if popped is None:
                return False
            key = popped
        run_in_place(self.loop.begin(key), self._transport, partial(self._run, key))
        return True

    def _run(self, key: Key, work: Work) -> Any:
        """Run work in place; work that takes longer than ``late`` allows ends later and wakes its key then."""
        if work.late is None or work.takes_s <= work.late.after_s:
            return work.run()
        heappush(self._late, (self._clock.now() + timedelta(seconds=work.takes_s), next(self._numbers), key, work))
        return Unfinished()

    def _end_late(self, now: datetime) -> bool:
        if not self._late or self._late[0][0] > now:
            return False
        _, _, key, work = heappop(self._late)
        assert work.late is not None, "it was late"
        try:
            result = work.run()
        except Exception as error:  # as the live driver passes it on
            result = error
        work.late.keep(result)
        self.loop.wake(*key)
        return True

    @property
    def is_current(self) -> bool:
        """Return whether no work is under way and every watch works: the cache has all that it was sent."""
        return not self._late and self._again is None and not self._news

    def describe(self) -> str:
        keys = self.loop.queue.ready(self._clock.now())
        return ", ".join(str(key) for key in keys[:5])


@dataclass(slots=True)
class VirtualDriver:
    """Runs actors in virtual time."""

    clock: VirtualClock
    actors: list[Actor] = field(default_factory=list)
    steps: int = 0
    looks: list[Callable[[], object]] = field(default_factory=list)
    """Called while time advances, at each instant at which everything due has been done."""

    def add(self, actor: Actor) -> None:
        self.actors.append(actor)

    def settle(self) -> None:
        """Do everything that is due now, without advancing the time. Raises NotIdleError if it never ends."""
        for _ in range(MAX_STEPS):
            moved = self._pump_all()
            for actor in self.actors:
                if actor.step():
                    self.steps += 1
                    moved = True
                    self._pump_all()
            if not moved:
                return
        raise NotIdleError(f"still busy after {MAX_STEPS} steps: {self._busy()}")

    def _pump_all(self) -> bool:
        moved = False
        for actor in self.actors:
            moved |= actor.pump()
        return moved

    def _busy(self) -> str:
        return "; ".join(text for text in (actor.describe() for actor in self.actors) if text)

    def _next(self, *, foreground_only: bool) -> datetime | None:
        times = [actor.next_due(foreground_only=foreground_only) for actor in self.actors]
        return min((time for time in times if time is not None), default=None)

    def advance(self, seconds: float) -> None:
        """Advance by ``seconds`` and do everything that becomes due on the way."""
        end = self.clock.now() + timedelta(seconds=seconds)
        self._settle_now()
        while (due := self._next(foreground_only=False)) is not None and due <= end:
            self.clock.set(max(due, self.clock.now()))
            self._settle_now()
        self.clock.set(end)

    def _settle_now(self) -> None:
        self.settle()
        for look in self.looks:
            look()

    def until_idle(self, limit_s: float = 3600) -> float:
        """Advance until only background requeues are left; return the elapsed virtual seconds. Raises NotIdleError."""
        return self.until(lambda: self._next(foreground_only=True) is None, limit_s=limit_s)

    def until(self, reached: Callable[[], bool], limit_s: float = 3600) -> float:
        """Advance until ``reached()``; return the elapsed virtual seconds. Raises NotIdleError at the limit."""
        start = self.clock.now()
        end = start + timedelta(seconds=limit_s)
        self.settle()
        while not reached():
            due = self._next(foreground_only=False)
            if due is None or due > end:
                raise NotIdleError(f"not reached within {limit_s:g} virtual seconds; next due {due}: {self._busy()}")
            self.clock.set(max(due, self.clock.now()))
            self.settle()
        return (self.clock.now() - start).total_seconds()
