"""The objects that a hub needs: definitions, namespaces, the account of agents that join, the sets that always exist.

Names and rights of the account: ``clusteradm init`` of upstream, so that ``clusteradm get token`` and ``join`` work.
"""

from __future__ import annotations

from typing import Final

from syncline.assembly.fleet.hub import BOOTSTRAP_NAMESPACE, HUB_MANAGER, HUB_NAMESPACE, guards
from syncline.fleet.hub.clustersets.defaults import SELECTORS, kept
from syncline.fleet.hub.confinement import Reach
from syncline.kube.kinds.content import transferred_crds
from syncline.kube.kinds.fleetrollouts import fleet_rollout_crd
from syncline.kube.kinds.governance import cluster_policy_crds
from syncline.kube.kinds.managedaddons import HERE, addon_crds
from syncline.kube.kinds.managedclusters import GROUP, cluster_claim_crd, hub_cluster_crds
from syncline.kube.kinds.manifestworks import applied_work_crd, manifest_work_crd, replica_set_crd
from syncline.kube.kinds.syncline import budget_crd
from syncline.kube.objects import Obj

BOOTSTRAP_ACCOUNT: Final = "agent-registration-bootstrap"
BOOTSTRAP_ROLE: Final = "open-cluster-management:bootstrap"
_RBAC: Final = "rbac.authorization.k8s.io"


def foreign_hub_objects(conversion: Obj | None = None, reach: Reach | None = None) -> list[Obj]:
    """Return what a hub needs on another team's cluster, whose owner grants the rights of the controllers.

    ``conversion``: who converts between the versions of add-ons (``kube/kinds/managedaddons.py``); ``reach``: how the
    webhooks are reached, None: not yet.
    """
    return [
        *(
            {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": n}}
            for n in (BOOTSTRAP_NAMESPACE, HUB_NAMESPACE)
        ),
        *hub_cluster_crds(),
        manifest_work_crd(),
        replica_set_crd(),
        budget_crd(),
        fleet_rollout_crd(),
        *addon_crds(conversion),
        *_bootstrap(),
        *(made for name in SELECTORS if (made := kept(name, None).create) is not None),
        *guards(reach),
    ]


def hub_objects(reach: Reach | None = None) -> list[Obj]:
    """As :func:`foreign_hub_objects`, with the account of the controllers and its rights, for the embedded cluster."""
    made = foreign_hub_objects(HERE, reach)
    spaces, rest = made[:2], made[2:]
    return [
        *spaces,
        _account(HUB_MANAGER, HUB_NAMESPACE),
        _binding(HUB_MANAGER, "cluster-admin", HUB_MANAGER, HUB_NAMESPACE),
        *rest,
    ]


def spoke_objects() -> list[Obj]:
    """Return what an agent needs on its own cluster."""
    return [applied_work_crd(), cluster_claim_crd(), *transferred_crds(), *cluster_policy_crds()]


def _bootstrap() -> tuple[Obj, Obj, Obj]:
    """Return the account of agents that have no certificate yet, and its rights: it may propose a cluster and request a
    certificate; both count only after the approval and the acceptance by people."""
    rules = [
        {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get"]},
        {
            "apiGroups": ["certificates.k8s.io"],
            "resources": ["certificatesigningrequests"],
            "verbs": ["create", "get", "list", "watch"],
        },
        {"apiGroups": [GROUP], "resources": ["managedclusters"], "verbs": ["get", "create", "list", "watch"]},
        {"apiGroups": [GROUP], "resources": ["managedclustersets/join"], "verbs": ["create"]},
    ]
    role = {"apiVersion": f"{_RBAC}/v1", "kind": "ClusterRole", "metadata": {"name": BOOTSTRAP_ROLE}, "rules": rules}
    binding = _binding(f"{BOOTSTRAP_ROLE}:agent-registration", BOOTSTRAP_ROLE, BOOTSTRAP_ACCOUNT, BOOTSTRAP_NAMESPACE)
    return _account(BOOTSTRAP_ACCOUNT, BOOTSTRAP_NAMESPACE), role, binding


def _account(name: str, namespace: str) -> Obj:
    return {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name, "namespace": namespace}}


def _binding(name: str, role: str, account: str, namespace: str) -> Obj:
    return {
        "apiVersion": f"{_RBAC}/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": name},
        "roleRef": {"apiGroup": _RBAC, "kind": "ClusterRole", "name": role},
        "subjects": [{"kind": "ServiceAccount", "name": account, "namespace": namespace}],
    }
