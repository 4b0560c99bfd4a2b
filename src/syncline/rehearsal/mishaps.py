"""Mishaps of a rehearsed world that last for a while: :class:`Mishap`, carried out by :class:`Mishaps`.

The faults of ``faults.py`` strike at the writes of a process; these strike machines, containers, webhooks and the ways
between them, at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from enum import StrEnum
from fnmatch import fnmatchcase

from syncline.cluster.machines.machine import Power
from syncline.cluster.machines.scripted.stages import ANNOTATION_PREFIX
from syncline.cluster.machines.simulated import SimulatedMachine
from syncline.kube.client import PatchType, Request, Response, Transport
from syncline.kube.errors import Unavailable
from syncline.kube.objects import Obj, annotations_of, dig, namespace_of, owner_references, uid_of
from syncline.kube.schema.extensions import SIMULATED_SERVER, SIMULATED_WEBHOOKS
from syncline.kube.text.durations import format_duration
from syncline.kube.transport.outbound import Stream
from syncline.rehearsal.scenario import ScenarioError
from syncline.rehearsal.seams import SkewedClock, SkewedWay
from syncline.rehearsal.world import World

GITOPS, MACHINES = "gitops", "machine-config"
PROCESSES = (GITOPS, MACHINES)
HANGS = {f"{ANNOTATION_PREFIX}run-seconds": "forever"}
FAILS = {f"{ANNOTATION_PREFIX}exit-code": "1", f"{ANNOTATION_PREFIX}end-message": "failed by a fault"}


class Kind(StrEnum):
    """PARTITION: a node, or a process of :data:`PROCESSES`, does not reach the API. SLOW_PULL: images whose name
    matches take ``seconds`` to pull. FAILED_BOOT: a node does not come up from its next ``times`` boots; it comes up
    when that heals. HOOK_FAILS, HOOK_HANGS: the next ``times`` pods of a Job fail, or run for ever. WEBHOOK_DOWN: what
    the pods behind a Service would answer to the API server stays away. FULL_DISK: a node has no room on its disk.
    CLOCK: that of a process is off by ``seconds``."""

    PARTITION = "partition"
    SLOW_PULL = "slowPull"
    FAILED_BOOT = "failedBoot"
    HOOK_FAILS = "hookFails"
    HOOK_HANGS = "hookHangs"
    WEBHOOK_DOWN = "webhookDown"
    FULL_DISK = "fullDisk"
    CLOCK = "clock"


@dataclass(frozen=True, slots=True)
class Mishap:
    """``target``: a node, a process, NAMESPACE/NAME of a Job or Service, or a pattern of images, by the kind."""

    kind: Kind
    target: str
    seconds: float = 0.0
    times: int = 1

    @property
    def of_process(self) -> bool:
        """Whether it strikes a process of controllers, and not a machine or what runs there."""
        return self.kind in (Kind.PARTITION, Kind.CLOCK) and self.target in PROCESSES


@dataclass(frozen=True, slots=True)
class Timed:
    """A mishap that strikes ``at`` a time after the commit (0: right before it), for ``lasts``; None: to the end."""

    mishap: Mishap
    at: timedelta
    lasts: timedelta | None = None

    def __str__(self) -> str:
        lasts = f" for {format_duration(self.lasts)}" if self.lasts is not None else ""
        return f"{self.mishap.kind} {self.mishap.target} at +{format_duration(self.at)}{lasts}"

    def moments(self) -> Iterator[tuple[timedelta, bool, Mishap]]:
        """Yield when it strikes, and (True) heals."""
        yield self.at, False, self.mishap
        if self.lasts is not None:
            yield self.at + self.lasts, True, self.mishap


# -- the way between a process and the API ---------------------------------------------------------------------------


class Partition(SkewedWay):
    """The way of a process; while it is cut, nothing goes through, and its watches break."""

    def __init__(self, inner: Transport, clock: SkewedClock, *, is_cut: bool = False) -> None:
        super().__init__(clock)
        self._inner = inner
        self.is_cut = is_cut
        self._streams: list[_Line] = []

    def send(self, request: Request) -> Response:
        if self.is_cut:
            return Response.refused(Unavailable("the API is not reached (partition)"))
        answer = self._inner.send(request)
        if answer.stream is not None:
            self._streams = [line for line in self._streams if not line.ended]
            line = _Line(answer.stream)
            self._streams.append(line)
            answer.stream = line
        return answer

    def cut(self, is_cut: bool) -> None:
        self.is_cut = is_cut
        streams, self._streams = self._streams, []
        for line in streams:
            line.tear()


class _Line:
    """A watch that can be torn."""

    def __init__(self, inner: Stream) -> None:
        self._inner = inner
        self._torn = False

    @property
    def on_ready(self) -> Callable[[], None] | None:
        return self._inner.on_ready

    @on_ready.setter
    def on_ready(self, wake: Callable[[], None] | None) -> None:
        self._inner.on_ready = wake

    @property
    def ended(self) -> bool:
        return self._torn or self._inner.ended

    def take(self, limit: int = 1000) -> list[bytes]:
        return [] if self._torn else self._inner.take(limit)

    def close(self) -> None:
        self._inner.close()

    def tear(self) -> None:
        wake = self._inner.on_ready
        self._torn = True
        self._inner.close()
        if wake is not None:
            wake()


# -- all of them -------------------------------------------------------------------------------------------------------


@dataclass
class Mishaps:
    """The mishaps of one world. ``partitions``: the ways of its processes that can be cut, by name."""

    world: World
    partitions: Mapping[str, Partition] = field(default_factory=dict)
    _behaving: dict[Mishap, Callable[[Obj], Mapping[str, str]]] = field(default_factory=dict)
    _booting: dict[str, int] = field(default_factory=dict)
    """Boots that are still to fail, by node."""

    def switch(self, mishap: Mishap, *, on: bool) -> None:
        """Let it happen from now on, or end it. Raises ScenarioError if there is no such target."""
        match mishap.kind:
            case Kind.PARTITION:
                self._cut(mishap.target, on=on)
            case Kind.CLOCK:
                self._way_of(mishap.target).clock.off_s = mishap.seconds if on else 0.0
            case Kind.FULL_DISK:
                self._machine(mishap.target).fill_disk(on)
            case Kind.FAILED_BOOT:
                self._fail_boots(mishap, on=on)
            case Kind.WEBHOOK_DOWN:
                self._answer(mishap.target, None if on else SIMULATED_WEBHOOKS)
            case Kind.SLOW_PULL | Kind.HOOK_FAILS | Kind.HOOK_HANGS:
                self._behave(mishap, on=on)

    def _machine(self, name: str) -> SimulatedMachine:
        found = self.world.machines.room.machines.get(name)
        if found is None:
            names = ", ".join(self.world.machines.room.machines.names())
            raise ScenarioError(f"there is no node {name}; allowed: {names}")
        return found

    def _way_of(self, who: str) -> Partition:
        if who not in self.partitions:
            raise ScenarioError(f"there is no process {who} in this world; machine-config needs machineConfig: true")
        return self.partitions[who]

    def _cut(self, target: str, *, on: bool) -> None:
        if target in PROCESSES:
            self._way_of(target).cut(on)
        else:
            self._machine(target).cut_off(self.world.clock.now() if on else None)

    def _answer(self, service: str, what: str | None) -> None:
        space, name = service.split("/")
        body = {"metadata": {"annotations": {SIMULATED_SERVER: what}}}
        path = f"/api/v1/namespaces/{space}/services/{name}"
        found = self.world.admin.send(Request("GET", path))
        if what is None and annotations_of(found.obj).get(SIMULATED_SERVER) != SIMULATED_WEBHOOKS:
            said = f"Service {service}: answers no webhooks here" if found.ok else str(found.obj.get("message"))
            raise ScenarioError(f"{said}; allowed: one with {SIMULATED_SERVER}: {SIMULATED_WEBHOOKS}")
        answer = self.world.admin.send(Request("PATCH", path, {}, {"content-type": PatchType.MERGE}, body))
        if not answer.ok:
            raise ScenarioError(f"Service {service}: {answer.obj.get('message')}")

    def _fail_boots(self, mishap: Mishap, *, on: bool) -> None:
        machine, machines = self._machine(mishap.target), self.world.machines.room.machines
        if self._fail in machines.listeners:
            machines.listeners.remove(self._fail)
        self._booting[mishap.target] = mishap.times if on else 0
        if any(self._booting.values()):
            machines.listeners.append(self._fail)
        if not on:
            machine.power_on(self.world.clock.now())

    def _fail(self, name: str) -> None:
        """Cut the power of a machine that boots, as one that does not come up."""
        machine = self.world.machines.room.machines.get(name)
        if machine is not None and self._booting.get(name) and machine.state.power is Power.BOOTING:
            self._booting[name] -= 1
            machine.fail(self.world.clock.now())

    def _behave(self, mishap: Mishap, *, on: bool) -> None:
        behaviours = self.world.machines.room.behaviours
        known = self._behaving.pop(mishap, None)
        if known is not None:
            behaviours.remove(known)
        if on:
            self._behaving[mishap] = _slow(mishap) if mishap.kind is Kind.SLOW_PULL else _hook(mishap)
            behaviours.append(self._behaving[mishap])


def _slow(mishap: Mishap) -> Callable[[Obj], Mapping[str, str]]:
    def behaves(pod: Obj) -> Mapping[str, str]:
        return {
            f"{ANNOTATION_PREFIX}pull-seconds.{container.get('name')}": f"{mishap.seconds:g}"
            for container in _containers(pod)
            if fnmatchcase(str(container.get("image") or ""), mishap.target)
        }

    return behaves


def _containers(pod: Obj) -> Iterator[Obj]:
    for key in ("initContainers", "containers"):
        yield from dig(pod, "spec", key, default=[])


def _hook(mishap: Mishap) -> Callable[[Obj], Mapping[str, str]]:
    """Return what the pods of a Job do: the first ``times`` of them fail or hang."""
    space, name = mishap.target.split("/")
    struck: set[str] = set()

    def behaves(pod: Obj) -> Mapping[str, str]:
        jobs = (str(one.get("name")) for one in owner_references(pod) if one.get("kind") == "Job")
        if not fnmatchcase(namespace_of(pod), space) or not any(fnmatchcase(job, name) for job in jobs):
            return {}
        if uid_of(pod) not in struck and len(struck) >= mishap.times:
            return {}
        struck.add(uid_of(pod))
        return HANGS if mishap.kind is Kind.HOOK_HANGS else FAILS

    return behaves
