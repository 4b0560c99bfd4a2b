"""The live driver: :class:`LiveManager` runs an event loop, watches and workers.

It runs the same :class:`ControlLoop` as the virtual driver, by the wall clock, on a port: the embedded API in process
(:class:`DirectPort`) or any Kubernetes API over HTTP. One of the few modules that may wait.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Generator
from datetime import datetime, timedelta
from functools import partial
from typing import Any, Protocol, TypeVar

from syncline.base.action import Work
from syncline.base.clock import Clock, steady_now
from syncline.control.executor import Together
from syncline.control.informer import CRDS, LOOK_S, Informer, Part
from syncline.control.loop import ControlLoop, Watched, awaits_kinds, informers_of, part_of
from syncline.control.pools import Pools
from syncline.control.vitals import Complaints, Health, LeaseSigns, Signs, WatchSigns, verdict
from syncline.control.workqueue import Key, backoff_s
from syncline.kube.client import Batch, Request, Response, Transport, taking
from syncline.kube.errors import ApiError, Forbidden, Gone, NotFound, error_from_status
from syncline.kube.mapper import discover, server_version
from syncline.kube.objects import GroupKind, ObjectRef

log = logging.getLogger("syncline.control")

T = TypeVar("T")

MAX_WORKERS = 16
"""Concurrent reconciles per loop; planning is one logical thread, only requests and work overlap. Work runs in its own
threads, so a key that waits for work does not count."""
SLOW_S = 2.0
"""A longer reconcile does not count either: it waits for a cluster that hangs, which must not block other keys. Their
number is bounded by that of the keys."""
AT_ONCE = 8
"""Concurrent actions of one reconcile, where their order does not matter: enough to keep a server busy, and few enough
that a reconcile with thousands leaves room for others."""
MAX_IDLE_S = 30.0
"""The longest sleep of the dispatcher, in case a wake-up is lost."""
WATCH_BATCH = 100
"""Events taken before other tasks on the event loop run: about ten milliseconds of routing."""
REQUESTS_PER_TURN = 10
"""Requests of one reconcile before other tasks run: the same bound for reconciles with thousands."""
PASSES_PER_TURN = 4
"""Keys begun before other tasks run. In process every reconcile runs to its end at once, about two milliseconds."""
MAX_AWAY_S = 15.0
"""The longest wait between attempts to reach an unavailable server, so that its return is noticed soon."""
NOT_LISTED = (403, 404, 405)
"""Status codes that another attempt will not change soon: the kind counts as unreadable if another kind that the
controllers need is readable."""
LIST_ATTEMPTS = 5
"""Failed attempts (about six seconds) after which work begins without a kind, under the same condition: an unavailable
server shows nothing about a kind."""
STEADY_S = 5.0
"""A watch that lasted this long was no failure, whatever ended it."""


class Port(Protocol):
    """Access to a live API."""

    async def send(self, request: Request) -> Response: ...

    def watch(self, request: Request) -> AsyncIterator[Batch]:
        """Yield batches of events, also empty ones, until the watch ends; raises ApiError if it cannot begin."""
        ...


class DirectPort:
    """The embedded API in the same process: it responds at once, and watches wake the loop. ``settle`` makes the calls
    that a pending response waits for; without it no response may be pending."""

    def __init__(
        self, transport: Transport, settle: Callable[[Response], Coroutine[Any, Any, Response]] | None = None
    ) -> None:
        self._transport = transport
        self._settle = settle
        self._open: dict[asyncio.Event, bool] = {}
        """For each watch its wake-up event, and whether it must end."""

    async def send(self, request: Request) -> Response:
        answer = self._transport.send(request)
        if answer.pending is not None and self._settle is not None:
            return await self._settle(answer)
        return answer

    def expire_watches(self) -> None:
        """Make all watchers list again, because writes may have been rolled back."""
        for ready in self._open:
            self._open[ready] = True
            ready.set()

    async def watch(self, request: Request) -> AsyncIterator[Batch]:
        answer = self._transport.send(request)
        stream = answer.stream
        if stream is None:
            raise error_from_status(answer.obj, answer.status)
        loop = asyncio.get_running_loop()
        ready = asyncio.Event()

        def wake() -> None:
            loop.call_soon_threadsafe(ready.set)

        stream.on_ready = wake
        take = taking(stream)
        self._open[ready] = False
        try:
            while True:
                if self._open[ready]:
                    raise Gone("too old resource version: the last writes were taken back")
                ready.clear()
                batch = take(WATCH_BATCH)
                if batch:
                    yield batch
                    await asyncio.sleep(0)  # otherwise this loop never waits while there are events
                    continue
                if stream.ended:
                    return
                await ready.wait()
        finally:
            del self._open[ready]
            stream.close()


Draw = Callable[[], float]
"""Returns a number from 0 to 1, by chance."""


def wait_s(failures: int, refused: ApiError | None, draw: Draw | None = None) -> float:
    """Return the seconds before the next attempt: 0 for the first one, but at least what the server asks for.

    ``draw`` is for one of many clients of a server, which would come back to it at once: each wait is anywhere below a
    bound twice as long."""
    wait = min(backoff_s(failures), MAX_AWAY_S) if failures else 0.0
    if draw is not None:
        wait *= 2 * draw()
    return max(wait, refused.retry_after_s if refused is not None else 0.0)


async def drive(steps: Generator[Any, Any, T], port: Port, run: Callable[[Work], Awaitable[Any]] | None = None) -> T:
    """Run a generator of requests and work to its end and return its result; ``run`` runs work (None: new pools)."""
    run = run or Pools().run
    answer: Any = None
    failure: BaseException | None = None
    for turn in itertools.count(1):
        if turn % REQUESTS_PER_TURN == 0:
            await asyncio.sleep(0)
        try:
            wanted = steps.throw(failure) if failure is not None else steps.send(answer)
        except StopIteration as stop:
            result: T = stop.value
            return result
        failure, answer = None, None
        try:
            if isinstance(wanted, Together):
                answer = await _together(wanted, port, run)
            elif isinstance(wanted, Work):
                answer = await run(wanted)
            else:
                answer = await port.send(wanted)
        except Exception as error:  # the generator handles it or raises it
            failure = error
    raise AssertionError("unreachable: the count does not end")


async def _together(wanted: Together, port: Port, run: Callable[[Work], Awaitable[Any]]) -> list[Any]:
    """Run the parts, at most :data:`AT_ONCE` at a time; return the results in order. Raises the first failure."""
    results: list[Any] = [None] * len(wanted.parts)
    left = iter(enumerate(wanted.parts))

    async def some() -> None:
        for number, part in left:
            results[number] = await drive(part, port, run)
            await asyncio.sleep(0)  # a port in process answers at once, and a plan may have thousands of parts

    try:
        async with asyncio.TaskGroup() as group:
            for _ in range(min(AT_ONCE, len(results))):
                group.create_task(some())
    except ExceptionGroup as failed:
        raise failed.exceptions[0] from None
    return results


def _middle() -> float:
    return 0.5


def _name(part: Part) -> str:
    kind, space = part
    return f"{kind} in {space}" if space else str(kind)


class LiveWatches:
    """Discovers and watches one cluster until it is cancelled. It calls ``moved`` after each change."""

    def __init__(
        self,
        watched: Watched,
        port: Port,
        clock: Clock,
        moved: Callable[[], None],
        *,
        where: str = "the API",
        complaints: Complaints | None = None,
        draw: Draw | None = None,
    ) -> None:
        """``where`` names the server in logs; ``complaints`` is shared with other clients of the server; ``draw`` as in
        :func:`wait_s`."""
        self.watched = watched
        self.signs = Signs(steady_now(clock))
        self._where = where
        self._draw = draw
        self._complaints = complaints or Complaints()
        self._needed = watched.needed_kinds()
        self._port = port
        self._clock = clock
        self._moved = moved
        self._rediscover = asyncio.Event()
        watched.wanted_changed = self._rediscover.set
        self._informers: dict[Part, asyncio.Task[None]] = {}
        self._relists: dict[Part, Callable[[], None]] = {}
        self._looked: dict[GroupKind, asyncio.Event] = {}
        """For kinds with waiters, an event that is set at the next list."""
        self._unlisted: set[Part] = set()
        self.listed = asyncio.Event()
        """Set when every wanted kind was listed once, or cannot be."""

    async def run(self, group: asyncio.TaskGroup) -> None:
        """Discover the cluster, then return and continue in tasks of ``group``."""
        await self._discover(group)
        group.create_task(self._keep_discovering(group), name="discovery")

    # -- discovery and informers -------------------------------------------------------------------------------

    async def _discover(self, group: asyncio.TaskGroup) -> None:
        for attempt in range(1_000_000):
            try:
                self.watched.mapper.replace(await drive(discover(), self._port))
                self.watched.mapper.version = await drive(server_version(), self._port)
                break
            except ApiError as error:
                self._complain("what it serves", error)
                self.signs.discovery = str(error)
                await asyncio.sleep(wait_s(attempt + 1, error, self._draw))
        self.signs.discovery = ""
        wanted = self.watched.wanted_kinds() | {CRDS}
        for kind in sorted(wanted):
            info = self.watched.mapper.preferred(kind)
            for informer in informers_of(self.watched, info) if info is not None else ():
                part = part_of(informer)
                if part not in self._informers:
                    self._unlisted.add(part)
                    self.signs.watches[_name(part)] = WatchSigns(self._steady(), needed=kind in self._needed)
                    self._begin_watch(group, part, informer)
        for part in sorted(set(self._informers)):
            if self.watched.mapper.preferred(part[0]) is None or part[0] not in wanted:
                self._informers.pop(part).cancel()
                self._relists.pop(part)
                self.signs.watches.pop(_name(part), None)
                self.watched.cache.forget_kind(part[0])
                self._asked(part)

    def _begin_watch(self, group: asyncio.TaskGroup, part: Part, informer: Informer) -> None:
        task = group.create_task(self._inform(informer), name=f"watch {_name(part)}")
        self._informers[part] = task
        self._relists[part] = partial(self._relist, group, part, informer)

    def _relist(self, group: asyncio.TaskGroup, part: Part, informer: Informer) -> None:
        self._informers[part].cancel()
        informer.relist()
        self._begin_watch(group, part, informer)

    async def look_again(self, kind: GroupKind) -> None:
        """Wait until the kind was listed once more: the cache is as old as its watch is late. A caller that was
        interrupted calls again and waits for the same list."""
        whole = kind, ""
        if whole not in self._relists:
            return
        listed = self._looked.get(kind)
        if listed is None:
            listed = self._looked[kind] = asyncio.Event()
            if self.signs.watches[str(kind)].listed:
                self._relists[whole]()
        await listed.wait()
        self._looked.pop(kind, None)

    def _steady(self) -> datetime:
        return steady_now(self._clock)

    def _complain(self, what: str, error: ApiError) -> None:
        if self._complaints.due(error, self._steady()):
            log.warning("%s: cannot read %s, trying again: %s", self._where, what, error)

    async def _keep_discovering(self, group: asyncio.TaskGroup) -> None:
        while True:
            late = LOOK_S * (1 + (self._draw or _middle)()) / 1.5 if awaits_kinds(self.watched) else None
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(late):
                    await self._rediscover.wait()
            self._rediscover.clear()
            await self._discover(group)

    async def _inform(self, informer: Informer) -> None:
        kind, part = informer.info.group_kind, part_of(informer)
        name, failures = _name(part), 0
        while True:
            refused: ApiError | None = None
            began, resumes = self._steady(), not informer.needs_list
            self.signs.watched(name, began)
            try:
                if informer.needs_list:
                    found = await drive(informer.whole_list(), self._port)
                    self.watched.unread(kind, "", informer.space)
                    self._moved()  # also for an empty list, which brings no change
                    changes = informer.listed(found)
                    for start in range(0, len(changes), WATCH_BATCH):
                        self._changed(kind, changes[start : start + WATCH_BATCH])
                        await asyncio.sleep(0)
                    self.signs.watched(name, self._steady(), trouble="", listed=True)
                    self._asked(part)
                    if kind in self._looked:
                        self._looked[kind].set()
                async for batch in self._port.watch(informer.watch_request()):
                    changes, error = informer.received(batch)
                    if changes:
                        self._changed(kind, changes)
                    if error is not None:
                        raise error
                    self.signs.watched(name, self._steady(), trouble="")
            except ApiError as error:
                refused = error
                if resumes and error.code == Gone.code:
                    failures = 0  # the server is back and has a new history: list at once
                self._refused(informer, error, failures)
            if (self._steady() - began).total_seconds() >= STEADY_S:
                failures = 0
            await asyncio.sleep(wait_s(failures, refused, self._draw))
            failures += 1

    def _refused(self, informer: Informer, error: ApiError, failures: int) -> None:
        part = part_of(informer)
        name = _name(part)
        informer.failed(error)
        if error.code == 404:
            self._rediscover.set()
        if error.code != 410 or failures:
            self.signs.watched(name, self._steady(), trouble=str(error))
            self._complain(name, error)
        listed = self.signs.watches[name].listed
        settled = self._sees() and (error.code in NOT_LISTED or failures >= LIST_ATTEMPTS)
        if (error.code == Forbidden.code and not listed) or (settled and (error.code == Forbidden.code or not listed)):
            self._unread(informer, error)
        if settled:
            self._asked(part)

    def _unread(self, informer: Informer, error: ApiError) -> None:
        """Mark a kind as unreadable, since a kind that was not listed may have objects. A revoked right counts from the
        next refusal; after other errors the cached objects stay valid."""
        if error.code != NotFound.code:
            informer.relist()
            self.watched.unread(informer.info.group_kind, str(error), informer.space)
            self._moved()

    def _sees(self) -> bool:
        """Return True if a needed kind was listed and is watched: then a refusal concerns the refused kind, not the
        whole server."""
        signs = self.signs.watches.values()
        own = [sign for sign in signs if sign.needed] or signs
        return any(sign.listed and not sign.trouble for sign in own)

    def _asked(self, part: Part) -> None:
        """Note that a kind was listed, or cannot be. Work begins when this holds for all: half a cluster looks like
        deletions."""
        self._unlisted.discard(part)
        if not self._unlisted:
            self.listed.set()

    def _changed(self, kind: GroupKind, changes: list[Any]) -> None:
        if kind == CRDS and changes:
            self._rediscover.set()
        self.watched.changed(kind, changes)
        self._moved()


class LiveManager:
    """Runs one control loop until it is cancelled; see :class:`LiveWatches`."""

    def __init__(
        self,
        loop: ControlLoop,
        port: Port,
        clock: Clock,
        *,
        workers: int = MAX_WORKERS,
        pools: Pools | None = None,
        where: str = "the API",
        complaints: Complaints | None = None,
        draw: Draw | None = None,
    ) -> None:
        self.loop = loop
        self._wake = asyncio.Event()
        self.watches = LiveWatches(loop, port, clock, self._wake.set, where=where, complaints=complaints, draw=draw)
        self.signs = self.watches.signs
        self._port = port
        self._clock = clock
        self._workers = workers
        self.pools = pools or Pools()
        self._busy = 0
        self._event_loop: asyncio.AbstractEventLoop | None = None

    def wake(self, controller: str, ref: ObjectRef, cluster: str = "") -> None:
        """Queue a key because of something outside the API; callable from any thread."""
        if self._event_loop is None:
            self.loop.wake(controller, ref, cluster)  # not running yet, so no other thread uses it
            return

        def add() -> None:
            self.loop.wake(controller, ref, cluster)
            self._wake.set()

        with contextlib.suppress(RuntimeError):  # the event loop closed: nothing is left to wake
            self._event_loop.call_soon_threadsafe(add)

    async def run(self, ready: Callable[[], None] | None = None) -> None:
        """Discover, watch and work until cancelled or a bug raises; ``ready`` is called once discovery succeeded."""
        self._event_loop = asyncio.get_running_loop()
        async with asyncio.TaskGroup() as group:
            await self.watches.run(group)
            if ready is not None:
                ready()
            group.create_task(self._dispatch(group), name="dispatcher")

    def stir(self) -> None:
        """Wake the dispatcher: keys were queued in the loop's own thread."""
        self._wake.set()

    def health(self, leases: LeaseSigns | None = None, note: str = "") -> Health:
        """Return the health for probes."""
        due = self.loop.queue.next_due()
        overdue = max(self._clock.now() - due, timedelta(0)) if due is not None else timedelta(0)
        return verdict(self.signs, leases, overdue, steady_now(self._clock), note)

    # -- work --------------------------------------------------------------------------------------------------

    async def _dispatch(self, group: asyncio.TaskGroup) -> None:
        await self.watches.listed.wait()
        while True:
            self._wake.clear()
            begun = 0
            while self._busy < self._workers:
                key = self.loop.queue.pop(self._clock.now())
                if key is None:
                    break
                self._busy += 1
                self.signs.moved = steady_now(self._clock)
                group.create_task(self._work(key), name=str(key))
                begun += 1
                if begun % PASSES_PER_TURN == 0:
                    await asyncio.sleep(0)
            await self._nap()

    async def _nap(self) -> None:
        due = self.loop.queue.next_due()
        wait = timedelta(seconds=MAX_IDLE_S) if due is None else due - self._clock.now()
        if self._busy >= self._workers:
            wait = timedelta(seconds=MAX_IDLE_S)
        seconds = min(max(wait.total_seconds(), 0.0), MAX_IDLE_S)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):  # wait_for would swallow a cancellation that meets a wake-up
                await self._wake.wait()

    async def _work(self, key: Key) -> None:
        place = _Place(self._free)
        slow = asyncio.get_running_loop().call_later(SLOW_S, place.release)
        again = partial(self.wake, *key)

        async def run(work: Work) -> Any:
            place.release()
            return await self.pools.run(work, again)

        try:
            await drive(self.loop.begin(key), self._port, run)
        finally:
            slow.cancel()
            place.release()
            self._wake.set()  # the reconcile may have queued its key again after it freed the slot
            self.signs.moved = steady_now(self._clock)

    def _free(self) -> None:
        self._busy -= 1
        self._wake.set()


class _Place:
    """The slot of one running reconcile, freed once."""

    def __init__(self, free: Callable[[], None]) -> None:
        self._free: Callable[[], None] | None = free

    def release(self) -> None:
        free, self._free = self._free, None
        if free is not None:
            free()
