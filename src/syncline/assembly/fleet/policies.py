"""The role ``policies`` of a hub: copies of policies for clusters, and what these report.

It needs the role of the hub beside it (``hub.py``); on each cluster the agent carries the copies out (``agent.py``).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from syncline.assembly.fleet.hub import HUB_NAMESPACE
from syncline.assembly.roles import Role
from syncline.base.action import Handler
from syncline.base.clock import Clock
from syncline.base.entropy import Entropy
from syncline.cluster.access.users import service_account_user
from syncline.control.cache import Cache
from syncline.control.informer import Scope
from syncline.kube.kinds.governance import hub_policy_crds
from syncline.kube.kinds.hive import idle_hub_crds
from syncline.kube.kinds.managedclusters import hub_cluster_crds
from syncline.kube.objects import GroupKind, Obj
from syncline.patterns.operators.controllers.idle import HUB_KINDS, idle_controllers
from syncline.patterns.policies.hub.propagating import Propagation
from syncline.patterns.policies.hub.resolving import ResolveHub, ResolveHubHandler
from syncline.patterns.policies.hub.rights import rights_controller

POLICY_MANAGER: Final = "syncline-policy-controller"
"""Field manager and service account."""


def foreign_policy_objects() -> list[Obj]:
    """Return what the role needs on another team's cluster, whose owner grants its rights."""
    namespace: Obj = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": HUB_NAMESPACE}}
    return [namespace, *hub_cluster_crds(), *hub_policy_crds(), *idle_hub_crds()]


def policy_objects() -> list[Obj]:
    """As :func:`foreign_policy_objects`, with the account of the controllers and its rights, for the embedded
    cluster."""
    rbac = "rbac.authorization.k8s.io"
    account = {"name": POLICY_MANAGER, "namespace": HUB_NAMESPACE}
    binding = {
        "apiVersion": f"{rbac}/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": POLICY_MANAGER},
        "roleRef": {"apiGroup": rbac, "kind": "ClusterRole", "name": "cluster-admin"},
        "subjects": [{"kind": "ServiceAccount", **account}],
    }
    first, *rest = foreign_policy_objects()
    return [first, {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": account}, binding, *rest]


def policies_role(*, objects: tuple[Obj, ...] = (), entropy: Entropy | None = None, embedded: bool = False) -> Role:
    """Return the role. ``objects``: what must exist first; ``entropy``: of the keys that encrypt, None: the operating
    system's; ``embedded``: nothing but it works on the cluster, and objects of kinds without a controller say so."""
    draws = entropy or Entropy()
    idle = idle_controllers(HUB_KINDS) if embedded else ()

    def handlers(cache: Cache, _clock: Clock) -> Mapping[type, Handler]:
        return {ResolveHub: ResolveHubHandler(cache.mapper)}

    return Role(
        name="policies",
        controllers=(*Propagation(draws.key).controllers(), rights_controller(), *idle),
        user=service_account_user(HUB_NAMESPACE, POLICY_MANAGER),
        manager=POLICY_MANAGER,
        handlers=handlers,
        scopes={GroupKind("", "ConfigMap"): Scope(metadata=True), GroupKind("", "Secret"): Scope(metadata=True)},
        objects=objects,
    )
