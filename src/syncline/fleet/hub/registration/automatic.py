"""Acceptance of clusters whose first request a trusted user made: once, so that a later denial lasts; pure.

Upstream accepts every new cluster while its gate ManagedClusterAutoApproval is on. Here a request of one of the users
must exist, and no namespace of another use may have the name of the cluster: the agent would get rights in it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from syncline.base.clock import format_time
from syncline.control.cache import Snapshot
from syncline.control.controller import Controller, Watch, differ
from syncline.control.plan import Done, Emit, Plan, Stalled
from syncline.fleet.hub.registration.approving import BY_CLUSTER, REQUESTS, cluster_of_request, patch_of, pem_of
from syncline.fleet.hub.registration.leases import CLUSTER_NAME
from syncline.fleet.hub.registration.requests import bootstrap
from syncline.kube.kinds.managedclusters import MANAGED_CLUSTER
from syncline.kube.objects import GroupKind, Obj, ObjectRef, annotations_of, dig, is_terminating, labels_of, name_of

ACCEPTED_ON: Final = "open-cluster-management.io/automatically-accepted-on"
"""The annotation of a cluster that was accepted once."""
CLUSTERS: Final = MANAGED_CLUSTER.group_kind
NAMESPACES: Final = GroupKind("", "Namespace")


@dataclass(frozen=True, slots=True)
class Newcomer:
    """A cluster, the namespace of its name, and the user who requested its first certificate; empty: none whose
    requests are approved."""

    cluster: Obj
    namespace: Obj | None
    user: str


def plan_acceptance(observed: Newcomer, now: datetime) -> Plan:
    """Plan the one automatic acceptance of a cluster."""
    cluster, name = observed.cluster, name_of(observed.cluster)
    if ACCEPTED_ON in annotations_of(cluster) or is_terminating(cluster):
        return Plan(why="the cluster was accepted once, or is being deleted")
    if not observed.user:
        return Plan(why="no trusted user requested its certificate")
    space = observed.namespace
    if space is not None and labels_of(space).get(CLUSTER_NAME) != name:
        why = f"namespace {name} exists and is not of the cluster, whose agent would get rights in it"
        fix = "choose another name for the cluster, or accept it: syncline cluster accept"
        event = Emit(cluster, "ManagedClusterNotAccepted", f"{why}; {fix}", "managed-cluster-controller", warning=True)
        return Plan(((event,),), Stalled(why, fix), why)
    body: Obj = {"metadata": {"annotations": {ACCEPTED_ON: format_time(now)}}}
    if not dig(cluster, "spec", "hubAcceptsClient"):
        body["spec"] = {"hubAcceptsClient": True}
    why = f"user {observed.user} requested its first certificate"
    return Plan(((patch_of(MANAGED_CLUSTER, cluster, body, why),),), Done(), why)


def acceptance_controller(users: Collection[str]) -> Controller[Newcomer]:
    """Return the controller that accepts the clusters whose first request one of ``users`` made."""
    trusted = frozenset(users)

    def observe(cache: Snapshot, ref: ObjectRef) -> Newcomer | None:
        cluster = cache.get(ref)
        if cluster is None or not cache.has_synced(NAMESPACES):
            return None
        first = (one for one in cache.indexed(BY_CLUSTER, ref.name) if bootstrap(one, pem_of(one), trusted).approved)
        user = next((str(dig(one, "spec", "username")) for one in first), "")
        return Newcomer(cluster, cache.get(ObjectRef(*NAMESPACES, "", ref.name)), user)

    def requested(csr: Obj, _cache: Snapshot) -> Iterable[ObjectRef]:
        return [ObjectRef(*CLUSTERS, "", name) for name in cluster_of_request(csr)]

    def named(namespace: Obj, _cache: Snapshot) -> Iterable[ObjectRef]:
        return (ObjectRef(*CLUSTERS, "", name_of(namespace)),)

    return Controller(
        name="cluster-acceptance",
        kind=CLUSTERS,
        predicate=differ(lambda one: one.get("spec"), annotations_of, is_terminating),
        watches=(Watch(REQUESTS, requested, differ(labels_of)), Watch(NAMESPACES, named, differ(labels_of))),
        observe=observe,
        plan=plan_acceptance,
    )
