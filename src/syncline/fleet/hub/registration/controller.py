"""The controllers of registration: they connect the planners with the cache and the watches; they decide nothing."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from syncline.control.cache import Snapshot
from syncline.control.controller import Controller, Watch, differ
from syncline.fleet.hub.registration.acceptance import Observed, plan_cluster
from syncline.fleet.hub.registration.health import Beat, plan_lease, plan_taints
from syncline.fleet.hub.registration.leases import CLUSTER_NAME, LEASE
from syncline.fleet.hub.registration.rights import common_roles, namespace, namespaced_rights, own_rights
from syncline.kube.kinds.managedclusters import MANAGED_CLUSTER
from syncline.kube.kinds.manifestworks import MANIFEST_WORK
from syncline.kube.objects import (
    GroupKind,
    Obj,
    ObjectRef,
    dig,
    finalizers,
    is_terminating,
    labels_of,
    name_of,
    namespace_of,
    ref_of,
)

CLUSTERS: Final = GroupKind(MANAGED_CLUSTER.group, MANAGED_CLUSTER.kind)
LEASES: Final = GroupKind("coordination.k8s.io", "Lease")
WORKS: Final = GroupKind(MANIFEST_WORK.group, MANIFEST_WORK.kind)
_RBAC: Final = "rbac.authorization.k8s.io"
RIGHTS: Final = tuple(GroupKind(_RBAC, kind) for kind in ("ClusterRole", "ClusterRoleBinding", "RoleBinding"))
NAMESPACES: Final = GroupKind("", "Namespace")

_cluster_differs = differ(
    lambda one: one.get("spec"), lambda one: dig(one, "status", "conditions"), finalizers, is_terminating
)


def _named(name: str) -> ObjectRef:
    return ObjectRef(*CLUSTERS, "", name)


def _labelled(obj: Obj, cache: Snapshot) -> Iterable[ObjectRef]:
    """Return the cluster of an object; what all clusters share has an empty label."""
    name = labels_of(obj).get(CLUSTER_NAME)
    if name == "":
        return [ref_of(one) for one in cache.objects(CLUSTERS)]
    return (_named(name),) if name else ()


def _of_namespace(obj: Obj, _cache: Snapshot) -> Iterable[ObjectRef]:
    return (_named(namespace_of(obj)),)


def cluster_controller() -> Controller[Observed]:
    """Return the controller that accepts and denies clusters, and takes back their rights."""
    kinds = (NAMESPACES, *RIGHTS, WORKS)

    def observe(cache: Snapshot, ref: ObjectRef) -> Observed | None:
        cluster = cache.get(ref)
        if cluster is None:
            return None
        own = (*own_rights(ref.name, accepted=True), *namespaced_rights(ref.name))
        found = ((ref_of(one), cache.get(ref_of(one))) for one in (namespace(ref.name), *common_roles(), *own))
        unlisted = tuple(str(one) for one in kinds if not cache.has_synced(one))
        live = {key: one for key, one in found if one is not None}
        return Observed(cluster, live, tuple(cache.objects(WORKS, ref.name)), unlisted)

    return Controller(
        name="managed-cluster",
        kind=CLUSTERS,
        predicate=_cluster_differs,
        watches=(
            *(Watch(kind, _labelled) for kind in RIGHTS),
            Watch(NAMESPACES, _labelled),
            Watch(WORKS, _of_namespace, lambda old, new: old is None or new is None),
        ),
        observe=observe,
        plan=plan_cluster,
    )


def lease_controller() -> Controller[Beat]:
    """Return the controller that creates the leases of accepted clusters and sees when they are not renewed."""

    def observe(cache: Snapshot, ref: ObjectRef) -> Beat | None:
        cluster = cache.get(ref)
        if cluster is None:
            return None
        return Beat(cluster, cache.get(ObjectRef(*LEASES, ref.name, LEASE)), cache.has_synced(LEASES))

    def keys(lease: Obj, cache: Snapshot) -> Iterable[ObjectRef]:
        return _of_namespace(lease, cache) if name_of(lease) == LEASE else ()

    return Controller(
        name="cluster-lease",
        kind=CLUSTERS,
        predicate=_cluster_differs,
        watches=(Watch(LEASES, keys),),
        observe=observe,
        plan=plan_lease,
    )


def taint_controller() -> Controller[Obj]:
    """Return the controller that taints clusters that do not answer or do not work."""
    return Controller(
        name="cluster-taints",
        kind=CLUSTERS,
        predicate=_cluster_differs,
        observe=lambda cache, ref: cache.get(ref),
        plan=lambda cluster, _now: plan_taints(cluster),
    )
