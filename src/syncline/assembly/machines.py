"""Machines for a cluster: simulated nodes and their kubelet, and the process runtime behind it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from syncline.assembly.core import ClusterCore
from syncline.assembly.settings import ClusterSettings
from syncline.base.action import Performer
from syncline.base.clock import Clock, VirtualClock
from syncline.cluster.verbs.exchange import LogSource
from syncline.control.controller import Controller
from syncline.control.loop import ControlLoop
from syncline.control.manager import LiveManager
from syncline.kube.mapper import Mapper

__all__ = ["LiveMachines", "VirtualMachines", "live_machines", "sandbox_problem", "virtual_machines"]


def _no_beat(_node: str) -> datetime | None:
    return None


@dataclass(slots=True)
class LiveMachines:
    """What the live cluster needs of its machines."""

    controllers: tuple[Controller, ...] = ()
    performers: Callable[[Mapper], dict[type, Performer]] = lambda _mapper: {}
    logs: LogSource | None = None
    beats: Callable[[str], datetime | None] = _no_beat

    def attach(self, manager: LiveManager, core: ClusterCore, url: str, ca_pem: str) -> None:
        """Called once the server listens."""

    def stop(self) -> None:
        """End every process."""


@dataclass(slots=True)
class VirtualMachines:
    """What a virtual world needs of its machines."""

    controllers: tuple[Controller, ...] = ()
    performers: Callable[[Mapper], dict[type, Performer]] = lambda _mapper: {}
    beats: Callable[[str], datetime | None] = _no_beat

    def attach(self, loop: ControlLoop) -> None:
        """Called once the loop exists."""


def live_machines(settings: ClusterSettings, clock: Clock) -> LiveMachines:
    return LiveMachines()


def virtual_machines(core: ClusterCore, clock: VirtualClock, nodes: int) -> VirtualMachines:
    return VirtualMachines()


def sandbox_problem() -> str:
    """Why local processes cannot be sandboxed on this machine; empty when they can."""
    return "the process runtime is not there yet"
