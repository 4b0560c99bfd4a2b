"""The role of a hub: acceptance, leases, taints, cluster sets, Placements, works and roll-outs, in one loop.

``syncline up --hub`` runs it on the embedded cluster, ``syncline controller --roles hub`` on any API.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from syncline.assembly.roles import Role
from syncline.base.action import Handler
from syncline.base.clock import Clock
from syncline.cluster.access.users import service_account_user
from syncline.control.cache import Cache
from syncline.control.controller import Controller
from syncline.fleet.hub.addons.agentcontroller import template_controller, template_request_controller
from syncline.fleet.hub.addons.controller import cluster_addon_controller, managed_addon_controller, member_controller
from syncline.fleet.hub.addons.requests import Sign
from syncline.fleet.hub.addons.signing import SignHandler
from syncline.fleet.hub.budgets.controller import budget_controller
from syncline.fleet.hub.clustersets.controller import binding_controller, set_controller
from syncline.fleet.hub.clustersets.namespaces import namespace_controller
from syncline.fleet.hub.confinement import KEPT_KINDS, Reach, policies, webhooks
from syncline.fleet.hub.converting import conversion_controller
from syncline.fleet.hub.keeping import keeper
from syncline.fleet.hub.placement.controller import placement_controller
from syncline.fleet.hub.registration.approving import Approve, ApproveHandler, request_controller
from syncline.fleet.hub.registration.automatic import acceptance_controller
from syncline.fleet.hub.registration.controller import (
    clock_controller,
    cluster_controller,
    lease_controller,
    taint_controller,
)
from syncline.fleet.hub.registration.roles import role_controller
from syncline.fleet.hub.replicasets.controller import replica_set_controller
from syncline.fleet.hub.works.admission import MAX_BYTES
from syncline.fleet.hub.works.completed import completed_work_controller
from syncline.kube.objects import Obj

HUB_MANAGER: Final = "syncline-hub-controller"
"""Field manager and service account."""
HUB_NAMESPACE: Final = "open-cluster-management-hub"
"""Namespace of the hub's controllers, as upstream's."""
BOOTSTRAP_NAMESPACE: Final = "open-cluster-management"
"""Namespace of the account with which agents join, as upstream's."""


@dataclass(frozen=True, slots=True)
class HubSettings:
    """``control_namespace``: where Argo CD's objects live on the hub. ``auto_approve_users``: users whose requests for
    a first certificate are approved, and whose clusters are accepted, without people; empty: none.
    ``manifest_limit``: bytes of the manifests of a ManifestWork that people and tools write."""

    control_namespace: str = "argocd"
    auto_approve_users: tuple[str, ...] = ()
    manifest_limit: int = MAX_BYTES


def hub_controllers(
    settings: HubSettings, reach: Callable[[], Reach | None] = lambda: None
) -> tuple[Controller[Any], ...]:
    """Return the controllers of a hub. ``reach``: how the API server reaches its webhooks now; None: not yet."""
    users = settings.auto_approve_users
    return (
        *(keeper(kind, lambda: guards(reach())) for kind in KEPT_KINDS),
        conversion_controller(reach),
        cluster_controller(),
        role_controller(),
        request_controller(users),
        *((acceptance_controller(users),) if users else ()),
        lease_controller(),
        clock_controller(),
        taint_controller(),
        set_controller(),
        binding_controller(),
        namespace_controller(),
        placement_controller(),
        replica_set_controller(),
        budget_controller(),
        cluster_addon_controller(),
        managed_addon_controller(),
        member_controller(),
        template_controller(),
        completed_work_controller(),
        template_request_controller(),
    )


def _handlers(cache: Cache, clock: Clock) -> Mapping[type, Handler]:
    return {Approve: ApproveHandler(cache.mapper), Sign: SignHandler(cache.mapper, clock.now)}


def guards(reach: Reach | None) -> tuple[Obj, ...]:
    """Return the policies that confine agents, and the configurations of webhooks that can be reached."""
    return (*policies(), *(webhooks(reach) if reach is not None else ()))


def hub_role(
    settings: HubSettings, *, objects: Sequence[Obj] = (), reach: Callable[[], Reach | None] = lambda: None
) -> Role:
    """Return the role; ``objects``: what must exist first (``assembly/fleet/objects.py``), ``reach``: as in
    :func:`hub_controllers`."""
    return Role(
        name="hub",
        controllers=hub_controllers(settings, reach),
        user=service_account_user(HUB_NAMESPACE, HUB_MANAGER),
        manager=HUB_MANAGER,
        handlers=_handlers,
        objects=tuple(objects),
    )
