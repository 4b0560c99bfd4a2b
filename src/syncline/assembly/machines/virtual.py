"""The machines of a cluster: simulated nodes with their kubelet, and the process runtime behind it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from syncline.assembly.embedded.core import ClusterCore
from syncline.assembly.roles import Wake
from syncline.assembly.settings import MACHINES, SCRATCH, ClusterSettings, RunCommands
from syncline.base.clock import Clock, VirtualClock
from syncline.base.scratch import sweep
from syncline.cluster.access.users import service_account_user
from syncline.cluster.builtin.node_lifecycle.controller import NODE_LIFECYCLE
from syncline.cluster.machines.disk import MachineDisk
from syncline.cluster.machines.machine import MachineSpec
from syncline.cluster.machines.processes.launching import sandbox_problem
from syncline.cluster.machines.processes.process import ProcessSettings
from syncline.cluster.machines.room import MachineSettings, MachinesRoom
from syncline.cluster.machines.scripted.stages import Timing
from syncline.cluster.machines.simulated import BootTimes, Machines
from syncline.cluster.verbs.exchange import LogSource
from syncline.control.loop import ControlLoop
from syncline.kube.objects import ObjectRef

__all__ = ["LiveMachines", "live_machines", "sandbox_problem", "virtual_machines"]


def node_name(index: int) -> str:
    """Return the node name that ``--nodes N`` gives to machine ``index``."""
    return f"node-{index + 1}"


def node_specs(
    count: int, zones: Sequence[str] = (), labels: Mapping[str, str] | None = None
) -> tuple[MachineSpec, ...]:
    """Return ``count`` machines, with the zones assigned in turn."""
    return tuple(
        MachineSpec(node_name(index), zone=zones[index % len(zones)] if zones else "", labels=dict(labels or {}))
        for index in range(count)
    )


def _room(clock: Clock, specs: Sequence[MachineSpec], settings: MachineSettings, machines: Machines) -> MachinesRoom:
    room = MachinesRoom(clock, settings, machines)
    for spec in specs:
        room.machines.add(spec)
    return room


@dataclass(slots=True)
class LiveMachines:
    """The machines of a live cluster."""

    room: MachinesRoom
    logs: LogSource | None = None
    run_commands: RunCommands = RunCommands.OFF
    folder: Path | None = None
    """Directory in the cluster's data for files that commands read."""
    _stops: list[Callable[[], None]] = field(default_factory=list)

    def attach(self, loop: ControlLoop, wake: Wake, *, core: ClusterCore, url: str, ca_pem: str) -> Callable[[], None]:
        """Connect the machines once the server listens; returns the function that ends all processes."""
        if self.run_commands is not RunCommands.OFF:
            self._run_processes(wake, url, ca_pem)
            core.api.backend.commands = self.room.commands
        self.room.connect(loop, wake)
        return self._stop

    def _run_processes(self, wake: Wake, url: str, ca_pem: str) -> None:
        """Run commands as processes. Clients in a pod always use TLS, so without TLS this raises ValueError."""
        address = urlsplit(url)
        if address.scheme != "https":
            raise ValueError(f"commands of pods reach the API by TLS only, and it serves {url}; turn TLS on")
        host = address.hostname or "127.0.0.1"
        sandboxed = self.run_commands is RunCommands.SANDBOXED
        settings = ProcessSettings(host, address.port or 443, ca_pem, sandboxed, folder=self.folder)
        self._stops.append(self.room.add_processes(settings, wake))

    def _stop(self) -> None:
        for stop in self._stops:
            stop()


@dataclass(slots=True)
class VirtualMachines:
    """The machines of a virtual world."""

    room: MachinesRoom

    def attach(self, loop: ControlLoop, wake: Wake) -> Callable[[], None]:
        """Connect the machines to the loop."""
        self.room.connect(loop, wake)

        def changed(name: str) -> None:
            # A machine without power sends nothing, and no kubelet reads one that was well before.
            wake(NODE_LIFECYCLE, ObjectRef("", "Node", "", name))

        self.room.machines.listeners.append(changed)
        return lambda: None


def live_machines(settings: ClusterSettings, clock: Clock) -> LiveMachines:
    """Return the machines of ``settings`` and their container runtime. With a data directory they are stored there, so
    its lock must be held. Raises DiskError for damaged data."""
    specs = node_specs(settings.nodes, settings.zones, settings.node_labels)
    keeper = None if settings.data is None else MachineDisk(settings.data / MACHINES)
    room = _room(clock, specs, MachineSettings(heartbeats=True), Machines(keeper=keeper))
    folder = None if settings.data is None else settings.data / SCRATCH
    sweep(folder)
    return LiveMachines(room, room.logs, settings.run_commands, folder)


def virtual_machines(
    core: ClusterCore,
    clock: VirtualClock,
    nodes: int,
    timing: Timing | None = None,
    boots: BootTimes | None = None,
) -> VirtualMachines:
    """Return the nodes of a virtual world: without heartbeats, as the node lifecycle reads the machine."""
    settings = MachineSettings(heartbeats=False, timing=timing or Timing())
    room = _room(clock, node_specs(nodes), settings, Machines(boots or BootTimes()))
    room.add_scripts(lambda namespace, name: core.transport(service_account_user(namespace, name)))
    return VirtualMachines(room)
