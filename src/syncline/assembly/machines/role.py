"""The role of the machine-config controllers: rendering, pools, drains, and node records."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Protocol

from syncline import __version__
from syncline.assembly.roles import Role
from syncline.cluster.access.users import service_account_user
from syncline.control.cache import Snapshot
from syncline.control.controller import Controller
from syncline.kube.kinds.holds import ROOM_LEASE
from syncline.kube.objects import Obj, ObjectRef, name_of
from syncline.machineconfig.agent.controller import AGENT, agent_controller
from syncline.machineconfig.agent.handler import HOST_STEPS, HostHandler
from syncline.machineconfig.agent.hosts import Hosts
from syncline.machineconfig.agent.metrics import agent_metrics
from syncline.machineconfig.agent.planning.observe import CLUSTER
from syncline.machineconfig.drain.controller import drain_controller
from syncline.machineconfig.drain.plan import DrainSettings
from syncline.machineconfig.generating.images.controller import image_controller
from syncline.machineconfig.generating.kubelet.controller import kubelet_config_controller
from syncline.machineconfig.generating.runtime.controller import runtime_config_controller
from syncline.machineconfig.generating.templates.controller import template_controller
from syncline.machineconfig.names import (
    CONTROLLER_CONFIG,
    CONTROLLER_CONFIG_NAME,
    MACHINE_CONFIG,
    MACHINE_CONFIG_NODE,
    POOL,
)
from syncline.machineconfig.nodes.controller import node_config_controller
from syncline.machineconfig.pinned.controller import pinned_images_controller
from syncline.machineconfig.pinned.selecting import PINNED_SELECTION_CONTROLLER
from syncline.machineconfig.policies.controller import POLICY_CONTROLLER
from syncline.machineconfig.pools.controller import pool_controller
from syncline.machineconfig.pools.lease import room_lease_controller
from syncline.machineconfig.pools.metrics import cluster_metrics, pool_metrics
from syncline.machineconfig.pools.observe import LEASES, NODE, OS_BUILD, OS_CONFIG
from syncline.machineconfig.pools.plan import PoolSettings
from syncline.machineconfig.pools.records import NODE_RECORD_CONTROLLER
from syncline.machineconfig.render.controller import render_controller
from syncline.machineconfig.render.observe import RenderSettings
from syncline.machineconfig.render.rendering import Release
from syncline.telemetry.metrics import gauges

MACHINE_CONFIG_MANAGER = "machine-config-controller"
"""Field manager and service account, as upstream's controller."""


class FollowedHosts(Hosts, Protocol):
    """Hosts that notify about their changes."""

    def follow(self, wake: Callable[[str], None]) -> Callable[[], None]: ...


@dataclass(frozen=True, slots=True)
class MachineConfigSettings:
    """``control_namespace``: namespace of the controllers' Lease. ``kept``: rendered configs that a pool keeps beyond
    those in use; None: all, as upstream."""

    control_namespace: str = "argocd"
    release: Release = field(default_factory=lambda: Release(f"syncline/{__version__}", __version__))
    kept: int | None = 20
    pools: PoolSettings = field(default_factory=PoolSettings)
    drains: DrainSettings = field(default_factory=DrainSettings)


def rendering_controllers(settings: MachineConfigSettings) -> tuple[Controller[Any], ...]:
    """Return the controllers that render user input into machine configs."""
    release = settings.release
    return (
        template_controller(release),
        render_controller(RenderSettings(release, settings.kept)),
        kubelet_config_controller(release),
        runtime_config_controller(release),
        image_controller(release),
        node_config_controller(release),
        POLICY_CONTROLLER,
        PINNED_SELECTION_CONTROLLER,
    )


def pool_controllers(settings: MachineConfigSettings) -> tuple[Controller[Any], ...]:
    """Return the controllers that roll configs out: targeting, drains, node records."""
    return (
        pool_controller(settings.pools),
        drain_controller(settings.drains),
        NODE_RECORD_CONTROLLER,
        room_lease_controller(settings.control_namespace),
    )


def machineconfig_role(
    settings: MachineConfigSettings,
    *,
    only: tuple[Controller[Any], ...] | None = None,
    hosts: FollowedHosts | None = None,
    objects: Sequence[Obj] = (),
) -> Role:
    """Return the role. ``only``: some controllers, for tests. ``hosts``: machines whose agents run here too."""
    controllers = only or (*rendering_controllers(settings), *pool_controllers(settings))
    role = Role(
        name="machineconfig",
        controllers=controllers,
        user=service_account_user(settings.control_namespace, MACHINE_CONFIG_MANAGER),
        manager=MACHINE_CONFIG_MANAGER,
        objects=tuple(objects),
    )
    if hosts is None:
        return role
    return replace(
        role,
        controllers=(*controllers, agent_controller(hosts), pinned_images_controller(hosts)),
        handlers=lambda _cache, _clock: dict.fromkeys(HOST_STEPS, HostHandler(hosts)),
        follow=lambda _loop, wake: hosts.follow(lambda name: wake(AGENT, ObjectRef("", "Node", "", name))),
    )


def machine_config_gauges(cache: Snapshot, now: datetime) -> str:
    """Return upstream's gauges of pools, drains and agents as Prometheus text; empty if our controllers do not manage
    the pools."""
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
