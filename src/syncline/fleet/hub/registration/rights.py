"""The namespace of an accepted cluster and the rights of its agents, as objects; pure.

Rules: ``pkg/registration/hub/manifests/rbac`` of upstream (reference ocm-pull-model §1.5).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from syncline.fleet.hub.registration.leases import CLUSTER_NAME
from syncline.kube.kinds.manifestworks import WORK_FINALIZER
from syncline.kube.objects import Obj

REGISTRATION, WORK = "registration", "work"
_RBAC: Final = "rbac.authorization.k8s.io"
_PREFIX: Final = "open-cluster-management:managedcluster:"
_HUB: Final = "cluster.open-cluster-management.io"


def _rule(groups: Sequence[str], resource: str, *verbs: str, name: str = "") -> Obj:
    names = {"resourceNames": [name]} if name else {}
    return {"apiGroups": list(groups), "resources": [resource], **names, "verbs": list(verbs)}


def _object(kind: str, name: str, cluster: str, **fields: object) -> Obj:
    metadata = {"name": name, "labels": {CLUSTER_NAME: cluster}}
    return {"apiVersion": f"{_RBAC}/v1", "kind": kind, "metadata": metadata, **fields}


def _bound(role: str, cluster: str) -> Obj:
    groups = (f"system:open-cluster-management:{cluster}", f"open-cluster-management:{cluster}")
    return {
        "roleRef": {"apiGroup": _RBAC, "kind": "ClusterRole", "name": role},
        "subjects": [{"kind": "Group", "apiGroup": _RBAC, "name": one} for one in groups],
    }


def namespace(cluster: str) -> Obj:
    """Return the namespace of a cluster; it stays when the cluster is denied or deleted."""
    metadata = {"name": cluster, "labels": {CLUSTER_NAME: cluster}}
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}


def cluster_name_of(cluster: str) -> str:
    """Return the name of the ClusterRole, and of the ClusterRoleBinding, of a cluster's agents."""
    return _PREFIX + cluster


def binding_name_of(cluster: str, part: str) -> str:
    """Return the name of a RoleBinding in the namespace of a cluster; ``part``: registration or work."""
    return f"{_PREFIX}{cluster}:{part}"


def own_rights(cluster: str, *, accepted: bool) -> tuple[Obj, Obj]:
    """Return the ClusterRole and ClusterRoleBinding of a cluster's agents: their ManagedCluster, and renewal of their
    certificates; before the cluster is accepted, only to read the former."""
    hub = (_HUB,)
    if accepted:
        rules = [
            _rule(("certificates.k8s.io",), "certificatesigningrequests", "create", "get", "list", "watch"),
            _rule(("register.open-cluster-management.io",), "managedclusters/clientcertificates", "renew"),
            _rule(hub, "managedclusters", "get", "list", "update", "watch", name=cluster),
            _rule(hub, "managedclusters/status", "patch", "update", name=cluster),
        ]
    else:
        rules = [_rule(hub, "managedclusters", "get", "list", "watch", name=cluster)]
    name = cluster_name_of(cluster)
    role = _object("ClusterRole", name, cluster, rules=rules)
    return role, _object("ClusterRoleBinding", name, cluster, **_bound(name, cluster))


def namespaced_rights(cluster: str) -> tuple[Obj, Obj]:
    """Return the RoleBindings of the agents for registration and for work, in the namespace of the cluster."""
    made = []
    for part in (REGISTRATION, WORK):
        one = _object("RoleBinding", binding_name_of(cluster, part), cluster, **_bound(_PREFIX + part, cluster))
        one["metadata"]["namespace"] = cluster
        made.append(one)
    made[1]["metadata"]["finalizers"] = [WORK_FINALIZER]
    return made[0], made[1]


def common_roles() -> tuple[Obj, Obj]:
    """Return the ClusterRoles that the RoleBindings of all clusters refer to."""
    addons, works = "addon.open-cluster-management.io", "work.open-cluster-management.io"
    registration = [
        _rule(("coordination.k8s.io",), "leases", "get", "list", "watch", "update"),
        _rule((addons,), "managedclusteraddons", "get", "list", "watch"),
        _rule((addons,), "managedclusteraddons/status", "patch", "update"),
        _rule(("events.k8s.io",), "events", "create"),
    ]
    work = [
        _rule(("", "events.k8s.io"), "events", "create", "patch", "update"),
        _rule((works,), "manifestworks", "get", "list", "watch", "update", "patch"),
        _rule((works,), "manifestworks/status", "patch", "update"),
    ]
    return (
        _object("ClusterRole", _PREFIX + REGISTRATION, "", rules=registration),
        _object("ClusterRole", _PREFIX + WORK, "", rules=work),
    )
