"""Where faults get in: before the API of a process, before its machine, and into its clock.

All processes of a world count their writes by one :class:`Steps`; the world is asked at each of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Protocol

from syncline.assembly.simulatedhosts import SimulatedHost, SimulatedHosts
from syncline.base.clock import VirtualClock
from syncline.base.entropy import Entropy
from syncline.control.virtual import LoopActor
from syncline.kube.client import Request, Response, Stream, Transport
from syncline.kube.errors import Gone
from syncline.kube.objects import Obj
from syncline.machineconfig.agent.host import Done
from syncline.machineconfig.agent.hosts import HostFacts
from syncline.rehearsal.seams import FaultRates, FaultyTransport

QUERIES = (
    ("rpm", "-qf"),
    ("rpm", "-q"),
    ("rpm-ostree", "status"),
    ("systemctl", "is-enabled"),
    ("getent", "shadow"),
)
ENDLESS = 20_000
"""Steps of a world in which time stands still; those that rest take some hundred."""
NEVER = FaultRates(0, 0, 0, 0, 0)


@dataclass(frozen=True)
class Step:
    """One write. ``node``: the machine that it is about, if any; ``path``: the file of a change of a machine."""

    number: int
    who: str
    node: str
    text: str
    on_host: bool
    path: str = ""

    def __str__(self) -> str:
        return f"{self.number} {self.who}: {self.text}"


class World(Protocol):
    def before(self, step: Step) -> Response | None:
        """An answer instead of the step, which does not take place. Raises Killed, and HostError for a machine's."""
        ...

    def after(self, step: Step) -> Response | None:
        """An answer instead of the one that it got. Raises Killed."""
        ...


class EndlessError(Exception):
    pass


@dataclass
class Steps:
    """Counts writes; ``log`` has all of them."""

    world: World
    log: list[Step] = field(default_factory=list)
    counting: bool = False

    def next(self, who: str, node: str, text: str, *, on_host: bool, path: str = "") -> Step:
        if len(self.log) >= ENDLESS:
            raise EndlessError(f"{ENDLESS} steps, and no end: {who} does {text}")
        step = Step(len(self.log) + 1, who, node, text, on_host, path)
        self.log.append(step)
        return step


class Armed(FaultyTransport):
    """Strikes by name and number instead of by chance; its writes are steps."""

    def __init__(self, inner: Transport, clock: VirtualClock, entropy: Entropy, who: str, steps: Steps) -> None:
        super().__init__(inner, clock, entropy, FaultRates(0, 1, 1, 1, 1))
        self.left: dict[str, int] = {}
        self._who, self._steps = who, steps
        self.writing: Request | None = None
        """The write that is under way."""
        self._streams: list[Stream] = []

    def close(self) -> None:
        """Its process is gone."""
        for stream in self._streams:
            stream.on_ready = None
            stream.close()

    def arm(self, fault: str, times: int) -> None:
        self.left[fault] = self.left.get(fault, 0) + times

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
        answer = self._steps.world.before(step)
        if answer is None:
            answer = self._inner.send(request)
            answer = self._steps.world.after(step) or answer
        return answer

    @property
    def _node(self) -> str:
        return "" if self._who == "controllers" else self._who


class FaultyHost:
    """A simulated machine whose changes are steps."""

    def __init__(self, inner: SimulatedHost, steps: Steps) -> None:
        self._inner, self._steps = inner, steps
        self.node = inner.machine.name

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    @property
    def os(self) -> str:
        return self._inner.os

    def changes(self, text: str, path: str, do: Callable[[], Any]) -> Any:
        if not self._steps.counting:
            return do()
        step = self._steps.next(self.node, self.node, text, on_host=True, path=path)
        if self._steps.world.before(step) is not None:
            return None
        done = do()
        self._steps.world.after(step)
        return done

    def write(self, path: str, content: bytes, **how: Any) -> None:
        self.changes(f"write {path}", path, lambda: self._inner.write(path, content, **how))

    def copy(self, source: str, target: str) -> None:
        self.changes(f"copy {source} to {target}", target, lambda: self._inner.copy(source, target))

    def link(self, path: str, target: str) -> None:
        self.changes(f"link {path}", path, lambda: self._inner.link(path, target))

    def remove(self, path: str) -> None:
        self.changes(f"remove {path}", path, lambda: self._inner.remove(path))

    def remove_all(self, path: str) -> None:
        self.changes(f"remove all of {path}", path, lambda: self._inner.remove_all(path))

    def make_directories(self, path: str, mode: int = 0o755) -> None:
        self.changes(f"make {path}", "", lambda: self._inner.make_directories(path, mode))

    def run(self, command: Sequence[str]) -> Done:
        if tuple(command[:2]) in QUERIES:
            return self._inner.run(command)
        done: Done = self.changes(f"run {' '.join(command)}", "", lambda: self._inner.run(command))
        return done


class FaultyHosts:
    """The machine of one node, as its agent has it."""

    in_place = True

    def __init__(self, inner: SimulatedHosts, node: str, steps: Steps) -> None:
        self._inner, self._steps, self.node = inner, steps, node

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def facts(self, node: str) -> HostFacts | None:
        return self._inner.facts(node) if node == self.node else None

    def host(self, node: str) -> FaultyHost:
        return FaultyHost(self._inner.host(node), self._steps)

    def provision(self, node: str, config: Obj) -> None:
        self.host(node).changes("provision", "", lambda: self._inner.provision(node, config))

    def store(self, node: str, config: Obj, image: str = "") -> None:
        text = f"store {config['metadata']['name']}"
        self.host(node).changes(text, "", lambda: self._inner.store(node, config, image))

    def compared(self, node: str, *, booted: bool = False) -> None:
        self._inner.compared(node, booted=booted)

    def differs(self, node: str) -> None:
        self._inner.differs(node)

    def booted_image(self, node: str) -> str:
        return self._inner.booted_image(node)

    def command_line(self, node: str) -> str:
        return self._inner.command_line(node)

    def finalize_failure(self, node: str) -> str:
        return self._inner.finalize_failure(node)

    def reboot(self, node: str, request: str) -> None:
        self.host(node).changes(f"reboot {request}", "", lambda: self._inner.reboot(node, request))


class SkewedClock(VirtualClock):
    """As far off as it is told."""

    def __init__(self, true: VirtualClock) -> None:
        super().__init__(true.now())
        self._true = true
        self.off_s = 0.0

    def now(self) -> datetime:
        return self._true.now() + timedelta(seconds=self.off_s)


class SkewedActor(LoopActor):
    """A loop by a clock of its own: the driver is told in true time when it is due."""

    def __init__(self, *arguments: Any, clock: SkewedClock) -> None:
        loop, transport, shuffle = arguments
        super().__init__(loop, transport, clock, shuffle)
        self.skew = clock

    def next_due(self, *, foreground_only: bool) -> datetime | None:
        due = super().next_due(foreground_only=foreground_only)
        return None if due is None else due - timedelta(seconds=self.skew.off_s)


class Agenda:
    """Things that the world does at certain times; an actor of the driver."""

    def __init__(self, clock: VirtualClock) -> None:
        self._clock = clock
        self._due: list[tuple[datetime, int, Callable[[], None]]] = []
        self._count = 0

    def after(self, seconds: float, do: Callable[[], None]) -> None:
        self._count += 1
        self._due.append((self._clock.now() + timedelta(seconds=seconds), self._count, do))
        self._due.sort(key=lambda each: each[:2])

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
