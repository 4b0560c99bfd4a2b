"""The controllers of registration: they connect the planners with the cache and the watches; they decide nothing."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from syncline.control.cache import Snapshot
from syncline.control.controller import Controller, Watch, comes_or_goes, differ
from syncline.fleet.hub.registration.acceptance import Observed, plan_cluster, settle_cluster
from syncline.fleet.hub.registration.approving import (
    BY_CLUSTER,
    REQUESTS,
    cluster_of_request,
    is_decided,
    is_of_agent,
)
from syncline.fleet.hub.registration.health import Beat, plan_clock, plan_lease, plan_taints
from syncline.fleet.hub.registration.leases import CLUSTER_NAME, LEASE
from syncline.fleet.hub.registration.rights import common_roles, namespace, namespaced_rights, own_rights
from syncline.kube.kinds.managedaddons import MANAGED_ADDON
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
ADDONS: Final = MANAGED_ADDON.group_kind
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
    kinds = (CLUSTERS, NAMESPACES, *RIGHTS, WORKS)

    def observe(cache: Snapshot, ref: ObjectRef) -> Observed | None:
        own = (*own_rights(ref.name, accepted=True), *namespaced_rights(ref.name))
        found = ((ref_of(one), cache.get(ref_of(one))) for one in (namespace(ref.name), *common_roles(), *own))
        # Without the definition of add-ons there are none.
        needed = kinds if cache.mapper.preferred(ADDONS) is None else (*kinds, ADDONS)
        unlisted = tuple(str(one) for one in needed if not cache.has_synced(one))
        live = {key: one for key, one in found if one is not None}
        works, addons = (tuple(cache.objects(one, ref.name)) for one in (WORKS, ADDONS))
        approved = any(is_of_agent(one) for one in cache.indexed(BY_CLUSTER, ref.name))
        return Observed(ref.name, cache.get(ref), live, works, addons, unlisted, approved)

    def requested(csr: Obj, _cache: Snapshot) -> Iterable[ObjectRef]:
        return [_named(name) for name in cluster_of_request(csr)]

    return Controller(
        name="managed-cluster",
        kind=CLUSTERS,
        predicate=_cluster_differs,
        watches=(
            *(Watch(kind, _labelled) for kind in RIGHTS),
            Watch(NAMESPACES, _labelled),
            Watch(REQUESTS, requested, differ(is_decided)),
            *(Watch(kind, _of_namespace, comes_or_goes) for kind in (WORKS, ADDONS)),
        ),
        observe=observe,
        plan=plan_cluster,
        settle=settle_cluster,
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


def clock_controller() -> Controller[Beat]:
    """Return the controller that compares the clocks of agents with the hub's when they renew their leases."""

    def observe(cache: Snapshot, ref: ObjectRef) -> Beat | None:
        cluster, lease = cache.get(_named(ref.namespace)), cache.get(ref)
        return None if cluster is None or lease is None else Beat(cluster, lease)

    def renewed(old: Obj | None, new: Obj | None) -> bool:
        """Only a renewal that was seen says what the agent's clock was then; the first list does not."""
        if old is None or new is None or name_of(new) != LEASE:
            return False
        return bool(dig(old, "spec", "renewTime") != dig(new, "spec", "renewTime"))

    return Controller(
        name="cluster-clock",
        kind=LEASES,
        predicate=renewed,
        reads=(CLUSTERS,),
        observe=observe,
        plan=plan_clock,
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
