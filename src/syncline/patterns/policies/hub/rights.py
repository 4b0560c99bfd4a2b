"""What the agent of a cluster may do with policies on its hub, as objects: :func:`rights_of`; and the controller that
keeps them. Of the rights of upstream's add-on ``governance-policy-framework`` it has those that it uses."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final, NamedTuple

from syncline.control.cache import Snapshot
from syncline.control.controller import Controller, Watch, comes_or_goes, differ
from syncline.control.plan import Create, Patch, Plan, awaiting_lists
from syncline.kube.kinds.governance import GROUP
from syncline.kube.kinds.managedclusters import MANAGED_CLUSTER
from syncline.kube.objects import (
    GroupKind,
    Obj,
    ObjectRef,
    dig,
    gvk_of,
    is_terminating,
    name_of,
    namespace_of,
    ref_of,
)
from syncline.patterns.policies.names import KEY_SECRET

RIGHTS: Final = "syncline-policies"
"""Name of the Role, and of its binding, in the namespace of each cluster."""
_RBAC: Final = "rbac.authorization.k8s.io"
CLUSTERS: Final = MANAGED_CLUSTER.group_kind
NAMESPACES: Final = GroupKind("", "Namespace")
ROLES: Final = GroupKind(_RBAC, "Role")
ROLE_BINDINGS: Final = GroupKind(_RBAC, "RoleBinding")
_CLUSTER_LABEL: Final = "open-cluster-management.io/cluster-name"


class _Right(NamedTuple):
    group: str
    resource: str
    verbs: tuple[str, ...]
    name: str = ""


TABLE: Final = (
    _Right(GROUP, "policies", ("get", "list", "watch")),
    _Right(GROUP, "policies/status", ("patch", "update")),
    _Right("", "secrets", ("get", "list", "watch"), KEY_SECRET),
)
RULES: Final = [
    {
        "apiGroups": [one.group],
        "resources": [one.resource],
        **({"resourceNames": [one.name]} if one.name else {}),
        "verbs": list(one.verbs),
    }
    for one in TABLE
]


def rights_of(cluster: str) -> tuple[Obj, Obj]:
    """Return the Role of a cluster's agents in its namespace, and its binding."""
    metadata: Mapping[str, object] = {"name": RIGHTS, "namespace": cluster, "labels": {_CLUSTER_LABEL: cluster}}
    group = {"kind": "Group", "apiGroup": _RBAC, "name": f"system:open-cluster-management:{cluster}"}
    role: Obj = {"apiVersion": f"{_RBAC}/v1", "kind": "Role", "metadata": dict(metadata), "rules": RULES}
    binding: Obj = {
        "apiVersion": f"{_RBAC}/v1",
        "kind": "RoleBinding",
        "metadata": dict(metadata),
        "roleRef": {"apiGroup": _RBAC, "kind": "Role", "name": RIGHTS},
        "subjects": [group],
    }
    return role, binding


@dataclass(frozen=True, slots=True)
class RightsObserved:
    """``missing``: objects to create; ``older``: those with other rules."""

    missing: tuple[Obj, ...] = field(default=(), repr=False)
    older: tuple[Obj, ...] = field(default=(), repr=False)
    unlisted: tuple[str, ...] = ()


def rights_controller() -> Controller[RightsObserved]:
    """Return the controller of the Role of each accepted cluster."""

    def observe(cache: Snapshot, ref: ObjectRef) -> RightsObserved | None:
        cluster = cache.get(ref)
        if cluster is None or is_terminating(cluster) or not dig(cluster, "spec", "hubAcceptsClient"):
            return None
        if cache.get(ObjectRef(*NAMESPACES, "", ref.name)) is None:
            return None
        unlisted = tuple(kind.kind for kind in (ROLES, ROLE_BINDINGS) if not cache.has_synced(kind))
        live = [(one, cache.get(ref_of(one))) for one in rights_of(ref.name)]
        missing = tuple(one for one, found in live if found is None)
        older = tuple(one for one, found in live if found is not None and found.get("rules") != one.get("rules"))
        return RightsObserved(missing, older, unlisted)

    def plan(observed: RightsObserved, _now: datetime) -> Plan:
        if observed.unlisted:
            return Plan(*awaiting_lists(observed.unlisted))
        why = "the agent carries out the policies of its cluster"
        made = tuple((Create(one, why),) for one in observed.missing)
        changed = tuple(
            (Patch(gvk_of(one), namespace_of(one), name_of(one), {"rules": one["rules"]}, why),)
            for one in observed.older
        )
        return Plan((*made, *changed), why=why)

    def of_namespace(namespace: Obj, _cache: Snapshot) -> Iterable[ObjectRef]:
        return (ObjectRef(*CLUSTERS, "", name_of(namespace)),)

    def of_rights(obj: Obj, _cache: Snapshot) -> Iterable[ObjectRef]:
        return (ObjectRef(*CLUSTERS, "", namespace_of(obj)),) if name_of(obj) == RIGHTS else ()

    return Controller(
        name="policy-rights",
        kind=CLUSTERS,
        predicate=differ(lambda one: dig(one, "spec", "hubAcceptsClient"), is_terminating),
        watches=(
            Watch(NAMESPACES, of_namespace, comes_or_goes),
            Watch(ROLES, of_rights, differ(lambda one: one.get("rules"))),
            Watch(ROLE_BINDINGS, of_rights, comes_or_goes),
        ),
        observe=observe,
        plan=plan,
    )
