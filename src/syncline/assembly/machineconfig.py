"""The role of the machine-config controllers: rendering, pools, drains, and the records of nodes."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime

from syncline import __version__
from syncline.assembly.metrics import gauges
from syncline.base.action import Performer
from syncline.base.clock import Clock
from syncline.base.journal import Journal
from syncline.cluster.users import UserInfo, service_account_user
from syncline.control.cache import Snapshot
from syncline.control.controller import Controller
from syncline.control.executor import kube_performers
from syncline.control.loop import ControlLoop
from syncline.kube.holds import ROOM_LEASE
from syncline.kube.mapper import Mapper
from syncline.kube.objects import ObjectRef, name_of
from syncline.machineconfig.agent.controller import AgentController
from syncline.machineconfig.agent.hosts import Hosts
from syncline.machineconfig.agent.metrics import agent_metrics
from syncline.machineconfig.agent.observe import CLUSTER
from syncline.machineconfig.agent.perform import HOST_STEPS, HostPerformer
from syncline.machineconfig.drain.controller import DrainController
from syncline.machineconfig.drain.plan import DrainSettings
from syncline.machineconfig.images.controller import ImageController
from syncline.machineconfig.kubelet.controller import KubeletConfigController
from syncline.machineconfig.names import (
    CONTROLLER_CONFIG,
    CONTROLLER_CONFIG_NAME,
    MACHINE_CONFIG,
    MACHINE_CONFIG_NODE,
    POOL,
)
from syncline.machineconfig.nodes.controller import NodeConfigController
from syncline.machineconfig.pinned.controller import PinnedImagesController
from syncline.machineconfig.pinned.selecting import PinnedSelectionController
from syncline.machineconfig.policies.controller import PolicyController
from syncline.machineconfig.pools.controller import PoolController
from syncline.machineconfig.pools.lease import RoomLeaseController
from syncline.machineconfig.pools.metrics import cluster_metrics, pool_metrics
from syncline.machineconfig.pools.observe import LEASES, NODE, OS_BUILD, OS_CONFIG
from syncline.machineconfig.pools.plan import PoolSettings
from syncline.machineconfig.pools.records import NodeRecordController
from syncline.machineconfig.render.controller import RenderController
from syncline.machineconfig.render.observe import RenderSettings
from syncline.machineconfig.render.rendering import Release
from syncline.machineconfig.runtime.controller import RuntimeConfigController
from syncline.machineconfig.templates.controller import TemplateController

__all__ = [
    "MACHINE_CONFIG_MANAGER",
    "MachineConfigSettings",
    "machine_config_gauges",
    "machineconfig_loop",
    "machineconfig_user",
    "pool_controllers",
    "rendering_controllers",
]

MACHINE_CONFIG_MANAGER = "machine-config-controller"
"""Field manager and service account, as upstream's controller."""


@dataclass(frozen=True, slots=True)
class MachineConfigSettings:
    """``control_namespace``: where the room's Lease is held. ``kept``: rendered configs that a pool keeps beyond those
    in use; None: all, as upstream."""

    control_namespace: str = "argocd"
    release: Release = field(default_factory=lambda: Release(f"syncline/{__version__}", __version__))
    kept: int | None = 20
    pools: PoolSettings = field(default_factory=PoolSettings)
    drains: DrainSettings = field(default_factory=DrainSettings)


def machineconfig_user(control_namespace: str) -> UserInfo:
    """Who the machine-config controllers are on the embedded cluster."""
    return service_account_user(control_namespace, MACHINE_CONFIG_MANAGER)


def rendering_controllers(settings: MachineConfigSettings) -> tuple[Controller, ...]:
    """From what people write to what machines are to have."""
    release = settings.release
    return (
        TemplateController(release),
        RenderController(RenderSettings(release, settings.kept)),
        KubeletConfigController(release),
        RuntimeConfigController(release),
        ImageController(release),
        NodeConfigController(release),
        PolicyController(),
        PinnedSelectionController(),
    )


def pool_controllers(settings: MachineConfigSettings) -> tuple[Controller, ...]:
    """Which machine gets it, when, and what has to leave it before."""
    return (
        PoolController(settings.pools),
        DrainController(settings.drains),
        NodeRecordController(),
        RoomLeaseController(settings.control_namespace),
    )


def machineconfig_loop(
    clock: Clock,
    journal: Journal,
    settings: MachineConfigSettings,
    *,
    only: tuple[Controller, ...] | None = None,
    hosts: Hosts | None = None,
    strict: bool = False,
) -> ControlLoop:
    """The loop of the machine-config controllers; ``only``: a part of them, for tests. ``hosts``: machines whose agent
    runs here, too."""
    mapper = Mapper()
    performers: dict[type, Performer] = dict(kube_performers(mapper, clock, MACHINE_CONFIG_MANAGER))
    controllers = only or (*rendering_controllers(settings), *pool_controllers(settings))
    if hosts is not None:
        controllers += (AgentController(hosts), PinnedImagesController(hosts))
        performers |= dict.fromkeys(HOST_STEPS, HostPerformer(hosts))
    return ControlLoop(controllers, mapper=mapper, performers=performers, clock=clock, journal=journal, strict=strict)


def machine_config_gauges(cache: Snapshot, now: datetime) -> str:
    """Upstream's gauges of pools, drains and agents as Prometheus' text; nothing where our room does not keep the
    pools."""
    mine = any(name_of(lease) == ROOM_LEASE for lease in cache.objects(LEASES))
    pools = cache.objects(POOL) if mine else []
    if not pools:
        return ""
    nodes, records = cache.objects(NODE), {name_of(each): each for each in cache.objects(MACHINE_CONFIG_NODE)}
    families = pool_metrics(pools, nodes, cache.objects(MACHINE_CONFIG), now)
    controller_config = cache.get(ObjectRef(*CONTROLLER_CONFIG, "", CONTROLLER_CONFIG_NAME))
    images = cache.objects(OS_CONFIG), cache.objects(OS_BUILD)
    families += cluster_metrics(cache.get(CLUSTER), controller_config, pools, *images)
    return gauges([*families, *agent_metrics(nodes, records, now)])
