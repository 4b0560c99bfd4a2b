"""Fault injection between a controller and its API.

:class:`FaultyTransport` wraps a loop's transport. Driven by a seed, it refuses writes with conflicts, loses or delays
watches, repeats events and returns lists from an older snapshot; the same seed gives the same faults.
:meth:`FaultyTransport.heal` ends them. :class:`CrashingTransport` ends the process after a write. :class:`Armed`
strikes at a numbered :class:`Step`, not by chance, and :class:`SkewedClock` is the clock of one process. The server is
never changed, and an acknowledged write is never undone.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Protocol

from syncline.assembly.roles import Role, SimulatedDriver, Wake
from syncline.base.clock import Clock, VirtualClock
from syncline.base.entropy import Entropy
from syncline.control.loop import ControlLoop
from syncline.control.virtual import LoopActor
from syncline.kube.client import Request, Response, Transport
from syncline.kube.errors import Conflict, Gone
from syncline.kube.transport.outbound import Stream

MAX_DELAY_S = 20.0
"""Longest delay of a watch: longer than the patience of a loop with its own writes (5 s)."""
ENDLESS = 20_000
"""Maximum steps at one point of virtual time; normal worlds need some hundred."""
MAX_SNAPSHOTS = 200
"""Maximum number of cached lists, one per path."""


class Killed(BaseException):
    """A crash injected at a named request. Not an Exception, so that no handler swallows it."""


class CrashingTransport:
    """Ends the process right after the n-th of its writes, where ``after`` gives n for each life of the process. Writes
    whose path contains an entry of ``spared`` do not count."""

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
    """Probabilities from 0 to 1: a conflict per write, a stale response per list, the others per batch of events."""

    conflict: float = 0.1
    stale_list: float = 0.3
    lost_watch: float = 0.1
    delayed_watch: float = 0.2
    duplicate: float = 0.2


class FaultyTransport:
    """A transport with random faults; also an actor of the virtual driver, which resumes delayed watches."""

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
        """Return whether a fault happens now, and count it."""
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
        """Return an older list by chance. A GET of one object is never stale: controllers verify with it."""
        if not answer.ok or not isinstance(answer.obj, dict) or "items" not in answer.obj:
            return answer
        older = self._snapshots.get(request.path)
        if older is not None and self.strikes("stale list", self.rates.stale_list):
            return older
        if len(self._snapshots) < MAX_SNAPSHOTS:
            self._snapshots[request.path] = answer
        return answer

    def delay(self) -> datetime:
        """Return until when a watch is delayed."""
        return self._clock.now() + timedelta(seconds=self._entropy.uniform(0.1, MAX_DELAY_S))

    def hold(self, stream: _FaultyStream) -> None:
        self._delayed.append(stream)

    @property
    def withholds(self) -> bool:
        """Return whether events of a watch are delayed."""
        return bool(self._delayed)

    def heal(self) -> None:
        """End all faults and resume delayed watches."""
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
    """A ``kube.client.Stream`` with faults, which yields only bytes, as a remote one."""

    def __init__(self, transport: FaultyTransport, inner: Stream) -> None:
        self._transport = transport
        self._inner = inner
        self._lost = False
        self.until: datetime | None = None
        """Until when data is delayed; None: no delay."""

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
        """End the delay."""
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


# -- named steps -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Step:
    """One write. ``node``: the machine concerned, if any; ``path``: the file that a change of a machine writes."""

    number: int
    who: str
    node: str
    text: str
    on_host: bool
    path: str = ""

    def __str__(self) -> str:
        return f"{self.number} {self.who}: {self.text}"


class Striking(Protocol):
    def before(self, step: Step) -> Response | None:
        """Return a response in place of the step, which is then skipped. Raises Killed, or HostError on a machine."""
        ...

    def after(self, step: Step) -> Response | None:
        """Return a response in place of the real one, or None. Raises Killed."""
        ...


class EndlessError(Exception):
    """The run takes more steps than any scenario needs."""


@dataclass
class Steps:
    """Counts the writes; ``log`` lists them."""

    world: Striking
    log: list[Step] = field(default_factory=list)
    counting: bool = False

    def next(self, who: str, node: str, text: str, *, on_host: bool, path: str = "") -> Step:
        if len(self.log) >= ENDLESS:
            raise EndlessError(f"{ENDLESS} steps, and no end: {who} does {text}")
        step = Step(len(self.log) + 1, who, node, text, on_host, path)
        self.log.append(step)
        return step


class Armed(FaultyTransport):
    """A transport whose writes are numbered steps, at which faults strike."""

    def __init__(self, inner: Transport, clock: VirtualClock, entropy: Entropy, who: str, steps: Steps) -> None:
        super().__init__(inner, clock, entropy, FaultRates(0, 1, 1, 1, 1))
        self.left: dict[str, int] = {}
        self._who, self._steps = who, steps
        self.writing: Request | None = None
        """The write in progress."""
        self._streams: list[Stream] = []

    def close(self) -> None:
        """End the connection, since the process has died."""
        for stream in self._streams:
            stream.on_ready = None
            stream.close()

    def arm(self, fault: str, times: int) -> None:
        self.left[fault] = self.left.get(fault, 0) + times

    def armed(self) -> list[tuple[str, int]]:
        """Return the faults that are still to strike, and how often."""
        return sorted((fault, times) for fault, times in self.left.items() if times)

    def strikes(self, fault: str, rate: float) -> bool:
        if not self.left.get(fault):
            return False
        self.left[fault] -= 1
        return True

    def send(self, request: Request) -> Response:
        if request.method == "GET":
            if request.query.get("watch") and self.strikes("gone", 1):
                return Response.refused(Gone("too old resource version (injected)"))
            answer = super().send(request)
            if answer.stream is not None:
                self._streams.append(answer.stream)
            return answer
        if not self._steps.counting or "/leases" in request.path:
            return self._inner.send(request)
        node = request.path.split("/nodes/")[-1].split("/")[0] if "/nodes/" in request.path else ""
        step = self._steps.next(self._who, node or self._node, request.describe(), on_host=False)
        self.writing = request
        instead = self._steps.world.before(step)
        if instead is not None:
            return instead
        answer = self._inner.send(request)
        return self._steps.world.after(step) or answer

    @property
    def _node(self) -> str:
        return "" if self._who == "controllers" else self._who


# -- time --------------------------------------------------------------------------------------------------------------


class SkewedClock(VirtualClock):
    """A clock that is off by ``off_s`` seconds."""

    def __init__(self, true: VirtualClock) -> None:
        super().__init__(true.now())
        self._true = true
        self.off_s = 0.0

    def now(self) -> datetime:
        return self._true.now() + timedelta(seconds=self.off_s)


class SkewedActor(LoopActor):
    """A loop with a skewed clock; the driver gets its due times in true time."""

    def __init__(self, loop: ControlLoop, transport: Transport, shuffle: Entropy | None, *, clock: SkewedClock) -> None:
        super().__init__(loop, transport, clock, shuffle)
        self.skew = clock

    def next_due(self, *, foreground_only: bool) -> datetime | None:
        due = super().next_due(foreground_only=foreground_only)
        return None if due is None else due - timedelta(seconds=self.skew.off_s)


class SkewedWay:
    """The way to the API of a process with a clock of its own."""

    def __init__(self, clock: SkewedClock) -> None:
        self.clock = clock

    def send(self, request: Request) -> Response:
        raise NotImplementedError


class SkewedDriver(SimulatedDriver):
    """Drives a process whose clock may be off; its journal has the times of that clock."""

    def drive(self, role: Role, loop: ControlLoop) -> Wake:
        assert isinstance(self.clock, SkewedClock), "it is made with such a clock"
        self.actor = SkewedActor(loop, self.transport, self.order, clock=self.clock)
        return loop.wake


class Agenda:
    """Scheduled actions of the world; an actor of the driver."""

    def __init__(self, clock: VirtualClock) -> None:
        self._clock = clock
        self._due: list[tuple[datetime, int, Callable[[], object]]] = []
        self._count = 0

    def after(self, seconds: float, do: Callable[[], object]) -> None:
        self._count += 1
        self._due.append((self._clock.now() + timedelta(seconds=seconds), self._count, do))
        self._due.sort(key=lambda each: each[:2])

    def waiting(self) -> list[tuple[int, Callable[[], object]]]:
        """Return what is to come, in order, with the seconds until then."""
        now = self._clock.now()
        return [(round((at - now).total_seconds()), do) for at, _, do in self._due]

    @property
    def last(self) -> datetime | None:
        return self._due[-1][0] if self._due else None

    def pump(self) -> bool:
        return False

    def next_due(self, *, foreground_only: bool) -> datetime | None:
        return self._due[0][0] if self._due else None

    def step(self) -> bool:
        if not self._due or self._due[0][0] > self._clock.now():
            return False
        self._due.pop(0)[2]()
        return True

    def describe(self) -> str:
        return f"{len(self._due)} things to come" if self._due else ""
