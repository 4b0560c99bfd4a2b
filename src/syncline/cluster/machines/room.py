"""The simulated machines of a cluster, as ``assembly`` and tests start them.

A :class:`MachinesRoom` has the registry, the records and the runtimes; its controllers run on the control loop beside
the built-in ones, and its handlers are registered with theirs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from syncline.base.action import Handler
from syncline.base.clock import Clock
from syncline.cluster.machines.containers import Container, ContainerTable, Order, Runtime
from syncline.cluster.machines.kubelet.actions import (
    CreateSandbox,
    ForgetPod,
    GoOn,
    KillContainer,
    NoteFailures,
    PodHandler,
    RefreshVolumes,
    StartContainer,
)
from syncline.cluster.machines.kubelet.controller import KUBELET, kubelet_controller
from syncline.cluster.machines.kubelet.node import (
    NODE_KEEPER,
    AddMachine,
    HasNode,
    NodeHandler,
    PassTime,
    Registered,
    RemoveMachine,
    node_controller,
)
from syncline.cluster.machines.kubelet.observe import PODS_ON_NODE
from syncline.cluster.machines.kubelet.power import (
    POWER_KEEPER,
    ChangePower,
    PowerHandler,
    RebootMachine,
    power_controller,
)
from syncline.cluster.machines.logs import LogStore, MachineLogs
from syncline.cluster.machines.processes.launching import installed
from syncline.cluster.machines.processes.process import ProcessRuntime, ProcessSettings
from syncline.cluster.machines.runtimes import Behaves, Runtimes
from syncline.cluster.machines.scripted.images import ImageCache
from syncline.cluster.machines.scripted.programs import runs_as_process, simulated_note
from syncline.cluster.machines.scripted.script import Identity, ScriptRuntime
from syncline.cluster.machines.scripted.staged import StagedRuntime
from syncline.cluster.machines.scripted.stages import Timing
from syncline.cluster.machines.simulated import Machines
from syncline.control.controller import Controller
from syncline.control.loop import ControlLoop
from syncline.kube.objects import Obj, ObjectRef, name_of, namespace_of

Wake = Callable[[str, ObjectRef], None]


@dataclass(frozen=True, slots=True)
class MachineSettings:
    """``heartbeats``: write node leases (live); not in virtual time."""

    heartbeats: bool = False
    timing: Timing = field(default_factory=Timing)


class MachinesRoom:
    """Registry, records, runtimes, controllers."""

    def __init__(self, clock: Clock, settings: MachineSettings | None = None, machines: Machines | None = None) -> None:
        self.settings = settings or MachineSettings()
        self.machines = machines or Machines()
        self.table = ContainerTable()
        self.book = LogStore()
        self.logs = MachineLogs(self.book, self.table)
        self._clock = clock
        self._staged = StagedRuntime(self.table, self.settings.timing)
        self._by_name: dict[str, Runtime] = {"staged": self._staged}
        self.commands: ProcessRuntime | None = None
        """Runs commands in containers; None: exec is not supported."""
        self._choices: list[tuple[str, Callable[[Order], bool]]] = []
        self.behaviours: list[Behaves] = []
        """What pods do otherwise than their annotations say: faults of a rehearsal."""

    def add_runtime(self, name: str, runtime: Runtime, takes: Callable[[Order], bool]) -> None:
        """Add a runtime for the orders that ``takes`` accepts; in order of addition, before stages."""
        self._by_name[name] = runtime
        self._choices.append((name, takes))

    def add_scripts(self, identity: Identity) -> None:
        """Interpret small scripts (virtual time); ``identity`` returns the transport of a service account."""
        runtime = ScriptRuntime(self.table, self.book, self.settings.timing, identity, self._clock)
        self.add_runtime(runtime.name, runtime, runtime.takes)

    def add_processes(self, settings: ProcessSettings, wake: Wake) -> Callable[[], None]:
        """Run commands as local processes (live); return a function to end them. ``wake``: ``LiveManager.wake``."""
        runtime = ProcessRuntime(self.table, self.book, self._clock, settings, wake)
        self.commands = runtime
        self._staged.tell = self._say_simulated
        self.add_runtime(runtime.name, runtime, runtime.takes)
        return runtime.close

    def _say_simulated(self, order: Order, record: Container) -> None:
        """Write to the log of a simulated container that it is no process, if others are."""
        key = record.pod_uid, record.name, record.attempt
        self.book.write(*key, simulated_note(order.container).encode(), record.started_at or self._clock.now())

    def _ends_with_us(self, pod: Obj, container: Obj, images: ImageCache) -> bool:
        return ProcessRuntime.name in self._by_name and runs_as_process(pod, container, images, installed)

    def controllers(self) -> list[Controller[Any]]:
        node = node_controller(self.machines, heartbeats=self.settings.heartbeats)
        kubelet = kubelet_controller(self.machines, self.table, self._ends_with_us)
        return [kubelet, node, power_controller(self.machines)]

    def handlers(self) -> dict[type, Handler]:
        runtimes = Runtimes(self._by_name, self._choices, self.behaviours)
        pods = PodHandler(self.machines, self.table, runtimes, self._clock)
        nodes = NodeHandler(self.machines, self._clock)
        pod_actions: tuple[type, ...] = (
            CreateSandbox,
            StartContainer,
            GoOn,
            KillContainer,
            RefreshVolumes,
            NoteFailures,
            ForgetPod,
        )
        node_actions: tuple[type, ...] = (AddMachine, RemoveMachine, Registered, HasNode, PassTime)
        power = PowerHandler(self.machines, self._clock)
        power_actions: tuple[type, ...] = (ChangePower, RebootMachine)
        return {
            **dict.fromkeys(pod_actions, pods),
            **dict.fromkeys(node_actions, nodes),
            **dict.fromkeys(power_actions, power),
        }

    def connect(self, loop: ControlLoop, wake: Wake | None = None) -> None:
        """Wake a machine's keys when it changes; ``wake`` is ``LiveManager.wake`` live, the loop's otherwise.

        Known machines are woken at once, so that they register.
        """
        tell = wake or loop.wake

        def changed(name: str) -> None:
            tell(NODE_KEEPER, ObjectRef("", "Node", "", name))
            tell(POWER_KEEPER, ObjectRef("", "Node", "", name))
            for pod in loop.cache.indexed(PODS_ON_NODE, name):
                tell(KUBELET, ObjectRef("", "Pod", namespace_of(pod), name_of(pod)))

        self.machines.listeners[:] = [changed]
        for name in self.machines.names():
            changed(name)

    def heartbeat(self, node: str) -> datetime | None:
        """Return a simulated machine's last heartbeat, for ``BuiltinSettings.heartbeats``."""
        return self.machines.heartbeat(node, self._clock.now())
