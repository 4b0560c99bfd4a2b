"""The kubelet's runtime actions: sandboxes and containers.

All are idempotent: a container is identified by pod uid, name and attempt, and is never started twice.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass, replace
from typing import Any, TypeAlias, assert_never

from syncline.base.action import Action
from syncline.base.clock import Clock
from syncline.cluster.machines.containers import Container, ContainerTable, Order, Sandbox
from syncline.cluster.machines.runtimes import Runtimes
from syncline.cluster.machines.simulated import Machines
from syncline.kube.objects import Obj, ObjectRef, dig, name_of, namespace_of, ref_of, uid_of


@dataclass(frozen=True, slots=True)
class CreateSandbox(Action):
    """Allocate an address for the pod on its machine, in the current boot."""

    pod: Obj
    node: str
    boot_id: str
    reason: str

    @property
    def target(self) -> ObjectRef:
        return ref_of(self.pod)

    def describe(self) -> str:
        return f"create sandbox of {self.target}"


@dataclass(frozen=True, slots=True)
class StartContainer(Action):
    order: Order
    reason: str

    @property
    def target(self) -> ObjectRef:
        return ref_of(self.order.pod)

    def describe(self) -> str:
        return f"start {self.order.container.get('name')} of {self.target}, attempt {self.order.attempt}"


@dataclass(frozen=True, slots=True)
class GoOn(Action):
    """Let the runtime continue with a container whose ``wakes_at`` has come."""

    pod: Obj
    container: Container
    reason: str

    @property
    def target(self) -> ObjectRef:
        return ref_of(self.pod)

    def describe(self) -> str:
        return f"go on with {self.container.name} of {self.target}"


@dataclass(frozen=True, slots=True)
class KillContainer(Action):
    pod: Obj
    container: Container
    grace_s: float
    reason: str

    @property
    def target(self) -> ObjectRef:
        return ref_of(self.pod)

    def describe(self) -> str:
        return f"stop {self.container.name} of {self.target}"


@dataclass(frozen=True, slots=True)
class RefreshVolumes(Action):
    """Update a container's volumes after changes of ConfigMaps, Secrets or the pod."""

    order: Order
    container: Container
    reason: str

    @property
    def target(self) -> ObjectRef:
        return ref_of(self.order.pod)

    def describe(self) -> str:
        return f"refresh volumes of {self.container.name} of {self.target}"


@dataclass(frozen=True, slots=True)
class NoteFailures(Action):
    """Record that the first ``reported`` failed probes of a container have Events."""

    pod: Obj
    container: Container
    reported: int
    reason: str

    @property
    def target(self) -> ObjectRef:
        return ref_of(self.pod)

    def describe(self) -> str:
        return f"note failed probes of {self.container.name} of {self.target}"


@dataclass(frozen=True, slots=True)
class ForgetPod(Action):
    """Remove all traces of the pod from its machine."""

    target: ObjectRef
    uid: str
    reason: str

    def describe(self) -> str:
        return f"forget {self.target}"


PodAction: TypeAlias = CreateSandbox | StartContainer | GoOn | KillContainer | RefreshVolumes | NoteFailures | ForgetPod


class PodHandler:
    """Executes these actions on the runtimes of this process."""

    def __init__(self, machines: Machines, table: ContainerTable, runtimes: Runtimes, clock: Clock) -> None:
        self._machines = machines
        self._table = table
        self._runtimes = runtimes
        self._clock = clock

    def handle(self, action: PodAction) -> Generator[Any, Any, Any]:
        now = self._clock.now()
        match action:
            case CreateSandbox():
                return self._sandbox(action)
            case StartContainer(order=order):
                order = self._runtimes.behaving(order)
                return (yield from self._runtimes.choose(order).start(order, now))
            case GoOn(container=container):
                return (yield from self._runtimes.of(container).go_on(container, now))
            case KillContainer(container=container, grace_s=grace_s):
                return (yield from self._runtimes.of(container).stop(container, grace_s, now))
            case RefreshVolumes(order=order, container=container):
                return (yield from self._runtimes.of(container).refresh(order, container, now))
            case NoteFailures(container=container, reported=reported):
                now_known = self._table.find(container.pod_uid, container.name, container.attempt) or container
                return self._table.put(replace(now_known, reported=reported))  # a process may have ended meanwhile
            case ForgetPod(uid=uid):
                self._runtimes.forget(uid)
                self._table.forget(uid)
                return None
            case _ as never:
                assert_never(never)

    def _sandbox(self, action: CreateSandbox) -> Sandbox:
        uid = uid_of(action.pod)
        known = self._table.sandbox(uid)
        if known is not None and known.boot_id == action.boot_id:
            return known
        host_network = bool(dig(action.pod, "spec", "hostNetwork"))
        ip = (
            "" if host_network else self._address(uid, action.node, str(dig(action.pod, "status", "podIP", default="")))
        )
        where = namespace_of(action.pod), name_of(action.pod)
        return self._table.put_sandbox(Sandbox(uid, *where, action.boot_id, ip, self._clock.now()))

    def _address(self, uid: str, node: str, had: str) -> str:
        """Return the pod's previous address if it is free, else the machine's lowest free one."""
        number = self._machines.number(node)
        prefix = f"10.{128 + number // 256}.{number % 256}."
        if had.startswith(prefix) and self._table.holder(had) in ("", uid):
            return had
        for host in range(2, 255):
            if not self._table.holder(prefix + str(host)):
                return prefix + str(host)
        raise OSError(f"machine {node} has no free pod address; 253 are all in use")
