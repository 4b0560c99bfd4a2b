"""Where faults get in between a controller and its API.

:class:`FaultyTransport` stands before a loop's transport and, as its seed decides, refuses writes with conflicts, loses
or delays watches, repeats events and answers lists from an older snapshot. The same seed gives the same faults.
:meth:`FaultyTransport.heal` ends them; what was delayed is delivered then. :class:`CrashingTransport` ends the process
after a write. Nothing is changed on the server's side, and no write that was answered is undone.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta

from syncline.base.clock import Clock
from syncline.base.entropy import Entropy
from syncline.kube.client import Request, Response, Stream, Transport
from syncline.kube.errors import Conflict

__all__ = ["CrashingTransport", "FaultRates", "FaultyTransport", "Killed"]

MAX_DELAY_S = 20.0
"""Longest delay of a watch: longer than the patience of a loop with its own writes (5 s)."""
MAX_SNAPSHOTS = 200
"""Old lists kept at a time, one per path."""


class Killed(BaseException):
    """A crash injected at a named request. Not an Exception: nothing may swallow it."""


class CrashingTransport:
    """The process dies right after one of its writes was carried out: the n-th, or as many as ``after`` gives for each
    life. Writes whose path contains one of ``spared`` do not count."""

    def __init__(self, inner: Transport, after: int | Iterator[int], spared: Collection[str] = ()) -> None:
        self._inner, self._spared = inner, spared
        self._left = after if isinstance(after, int) else next(after)
        self.requests = 0

    def send(self, request: Request) -> Response:
        answer = self._inner.send(request)
        if request.method != "GET" and not any(part in request.path for part in self._spared):
            self.requests += 1
            if self.requests == self._left:
                raise Killed(f"after request {self.requests}: {request.describe()}")
        return answer


@dataclass(frozen=True, slots=True)
class FaultRates:
    """Chances between 0 and 1: a conflict per write, an old answer per list, the others per batch of events."""

    conflict: float = 0.1
    stale_list: float = 0.3
    lost_watch: float = 0.1
    delayed_watch: float = 0.2
    duplicate: float = 0.2


class FaultyTransport:
    """A transport with faults; also an actor of the virtual driver, which wakes delayed watches in their time."""

    def __init__(self, inner: Transport, clock: Clock, entropy: Entropy, rates: FaultRates | None = None) -> None:
        self._inner = inner
        self._clock = clock
        self._entropy = entropy
        self.rates = rates or FaultRates()
        self.counts: dict[str, int] = {}
        """How often each fault happened, by name."""
        self._snapshots: dict[str, Response] = {}
        self._delayed: list[_FaultyStream] = []

    def strikes(self, fault: str, rate: float) -> bool:
        """Whether it happens now; counted."""
        if rate <= 0 or self._entropy.uniform(0, 1) >= rate:
            return False
        self.counts[fault] = self.counts.get(fault, 0) + 1
        return True

    def send(self, request: Request) -> Response:
        if request.method != "GET":
            if self.strikes("conflict", self.rates.conflict):
                return Response.refused(Conflict(f"{request.describe()}: the object has been modified (injected)"))
            return self._inner.send(request)
        answer = self._inner.send(request)
        if answer.stream is not None:
            answer.stream = _FaultyStream(self, answer.stream)
            return answer
        return self._perhaps_stale(request, answer)

    def _perhaps_stale(self, request: Request, answer: Response) -> Response:
        """Lists only: a GET of one object is how a controller makes sure."""
        if not answer.ok or not isinstance(answer.obj, dict) or "items" not in answer.obj:
            return answer
        older = self._snapshots.get(request.path)
        if older is not None and self.strikes("stale list", self.rates.stale_list):
            return older
        if len(self._snapshots) < MAX_SNAPSHOTS:
            self._snapshots[request.path] = answer
        return answer

    def delay(self) -> datetime:
        """Until when a watch is held back."""
        return self._clock.now() + timedelta(seconds=self._entropy.uniform(0.1, MAX_DELAY_S))

    def hold(self, stream: _FaultyStream) -> None:
        self._delayed.append(stream)

    def heal(self) -> None:
        """No more faults; delayed watches go on now."""
        self.rates = FaultRates(0, 0, 0, 0, 0)
        held, self._delayed = self._delayed, []
        for stream in held:
            stream.release()

    # -- actor ---------------------------------------------------------------------------------------------------

    def pump(self) -> bool:
        return False

    def next_due(self, *, foreground_only: bool) -> datetime | None:
        return min((each.until for each in self._delayed if each.until is not None), default=None)

    def step(self) -> bool:
        now = self._clock.now()
        due = [each for each in self._delayed if each.until is None or each.until <= now]
        for each in due:
            self._delayed.remove(each)
            each.release()
        return bool(due)

    def describe(self) -> str:
        return f"{len(self._delayed)} delayed watches" if self._delayed else ""


class _FaultyStream:
    """See ``kube.client.Stream``. Hands out bytes only, so that the way of a remote reader is taken."""

    def __init__(self, transport: FaultyTransport, inner: Stream) -> None:
        self._transport = transport
        self._inner = inner
        self._lost = False
        self.until: datetime | None = None
        """While set, nothing is handed out."""

    @property
    def on_ready(self) -> Callable[[], None] | None:
        return self._inner.on_ready

    @on_ready.setter
    def on_ready(self, wake: Callable[[], None] | None) -> None:
        self._inner.on_ready = wake

    def take(self, limit: int = 1000) -> list[bytes]:
        if self.until is not None or self._lost:
            return []
        rates = self._transport.rates
        if self._transport.strikes("delayed watch", rates.delayed_watch):
            self.until = self._transport.delay()
            self._transport.hold(self)
            return []
        taken = self._inner.take(limit)
        if taken and self._transport.strikes("lost watch", rates.lost_watch):
            self._lost = True
            self._inner.close()
            self._wake()
            return taken[: len(taken) // 2]
        if taken and self._transport.strikes("duplicate", rates.duplicate):
            return [line for line in taken for _ in range(2)]
        return taken

    def release(self) -> None:
        """The delay is over."""
        self.until = None
        self._wake()

    def _wake(self) -> None:
        if self._inner.on_ready is not None:
            self._inner.on_ready()

    @property
    def ended(self) -> bool:
        return self._lost or (self.until is None and self._inner.ended)

    def close(self) -> None:
        self._inner.close()
