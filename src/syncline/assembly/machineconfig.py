"""The role of the machine-config controllers: pools, drains, and the records of nodes."""

from __future__ import annotations

from syncline.base.action import Performer
from syncline.base.clock import Clock
from syncline.base.journal import Journal
from syncline.cluster.users import UserInfo, service_account_user
from syncline.control.controller import Controller
from syncline.control.executor import kube_performers
from syncline.control.loop import ControlLoop
from syncline.kube.mapper import Mapper
from syncline.machineconfig.drain.controller import DrainController
from syncline.machineconfig.pools.controller import PoolController
from syncline.machineconfig.pools.lease import RoomLeaseController
from syncline.machineconfig.pools.records import NodeRecordController

__all__ = ["MACHINE_CONFIG_MANAGER", "machineconfig_controllers", "machineconfig_loop", "machineconfig_user"]

MACHINE_CONFIG_MANAGER = "machine-config-controller"
"""Field manager and service account, as upstream's controller."""


def machineconfig_user(control_namespace: str) -> UserInfo:
    """Who the machine-config controllers are on the embedded cluster."""
    return service_account_user(control_namespace, MACHINE_CONFIG_MANAGER)


def machineconfig_controllers(control_namespace: str) -> tuple[Controller, ...]:
    """``control_namespace``: where the room's Lease is held."""
    return (
        PoolController(),
        DrainController(),
        NodeRecordController(),
        RoomLeaseController(control_namespace),
    )


def machineconfig_loop(
    clock: Clock, journal: Journal, control_namespace: str, *, more: tuple[Controller, ...] = (), strict: bool = False
) -> ControlLoop:
    """The loop of the machine-config controllers; ``more``: those of other parts of the room."""
    mapper = Mapper()
    performers: dict[type, Performer] = dict(kube_performers(mapper, clock, MACHINE_CONFIG_MANAGER))
    controllers = (*machineconfig_controllers(control_namespace), *more)
    return ControlLoop(controllers, mapper=mapper, performers=performers, clock=clock, journal=journal, strict=strict)
