"""The role of a hub: acceptance, leases, taints, cluster sets, Placements and works, in one loop.

``syncline up --hub`` runs it on the embedded cluster, ``syncline controller --roles hub`` on any API.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from syncline.assembly.roles import Role
from syncline.cluster.access.users import service_account_user
from syncline.control.controller import Controller
from syncline.fleet.hub.clustersets.controller import binding_controller, set_controller
from syncline.fleet.hub.placement.controller import placement_controller
from syncline.fleet.hub.registration.controller import cluster_controller, lease_controller, taint_controller
from syncline.kube.objects import Obj

HUB_MANAGER: Final = "syncline-hub-controller"
"""Field manager and service account."""
HUB_NAMESPACE: Final = "open-cluster-management-hub"
"""Namespace of the hub's controllers, as upstream's."""
BOOTSTRAP_NAMESPACE: Final = "open-cluster-management"
"""Namespace of the account with which agents join, as upstream's."""


@dataclass(frozen=True, slots=True)
class HubSettings:
    """``control_namespace``: where Argo CD's objects live on the hub."""

    control_namespace: str = "argocd"


def hub_controllers(_settings: HubSettings) -> tuple[Controller[Any], ...]:
    """Return the controllers of a hub."""
    return (
        cluster_controller(),
        lease_controller(),
        taint_controller(),
        set_controller(),
        binding_controller(),
        placement_controller(),
    )


def hub_role(settings: HubSettings, *, objects: Sequence[Obj] = ()) -> Role:
    """Return the role; ``objects``: what must exist first (``assembly/fleet/objects.py``)."""
    return Role(
        name="hub",
        controllers=hub_controllers(settings),
        user=service_account_user(HUB_NAMESPACE, HUB_MANAGER),
        manager=HUB_MANAGER,
        objects=tuple(objects),
    )
