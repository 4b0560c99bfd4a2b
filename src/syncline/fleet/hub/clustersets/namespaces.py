"""The namespaces that sets manage on their clusters, copied into the status of each cluster.

Rules: ``managed_namespace_controller.go`` of upstream.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from syncline.control.cache import Snapshot
from syncline.control.controller import Controller, Watch, differ, spec_differs
from syncline.control.plan import Done, Plan, set_status
from syncline.fleet.hub.sets import SetError, members, sets_of
from syncline.kube.kinds.managedclusters import CLUSTER_SET, MANAGED_CLUSTER
from syncline.kube.objects import Obj, ObjectRef, dig, is_terminating, labels_of, name_of, ref_of


@dataclass(frozen=True, slots=True)
class Managed:
    """A cluster and the sets that it is a member of."""

    cluster: Obj
    sets: tuple[Obj, ...]


def namespaces_of(sets: Iterable[Obj]) -> list[Obj]:
    """Return the entries of a cluster's status: the namespaces of its sets, by set and name. The conditions of an entry
    are the agent's, and are kept by :func:`plan_namespaces`."""
    found = [
        {"name": str(one.get("name")), "clusterSet": name_of(each)}
        for each in sets
        if not is_terminating(each)
        for one in dig(each, "spec", "managedNamespaces") or ()
    ]
    return sorted(found, key=lambda one: (one["clusterSet"], one["name"]))


def plan_namespaces(observed: Managed, _now: datetime) -> Plan:
    """Plan the namespaces in the status of a cluster."""
    cluster = observed.cluster
    if is_terminating(cluster):
        return Plan(why="the cluster is being deleted")
    live: Obj = cluster.get("status") or {}
    known = {(one.get("clusterSet"), one.get("name")): one for one in live.get("managedNamespaces") or ()}
    wanted = [known.get((one["clusterSet"], one["name"]), one) for one in namespaces_of(observed.sets)]
    status = {key: value for key, value in live.items() if key != "managedNamespaces"}
    if wanted:
        status["managedNamespaces"] = wanted
    return Plan((), Done(), "the sets manage them", set_status(cluster, status, "the namespaces that its sets manage"))


def namespace_controller() -> Controller[Managed]:
    """Return the controller that copies the managed namespaces of sets to their clusters."""
    clusters, sets = MANAGED_CLUSTER.group_kind, CLUSTER_SET.group_kind

    def observe(cache: Snapshot, ref: ObjectRef) -> Managed | None:
        cluster = cache.get(ref)
        if cluster is None or not cache.has_synced(sets):
            return None
        return Managed(cluster, tuple(sets_of(cluster, cache.objects(sets))))

    def keys(cluster_set: Obj, cache: Snapshot) -> Iterable[ObjectRef]:
        """Return the members, and the clusters whose status names the set."""
        every, name = cache.objects(clusters), name_of(cluster_set)
        try:
            found = members(cluster_set, every) if dig(cluster_set, "spec", "managedNamespaces") else []
        except SetError:
            found = []
        named = (one for one in every if any(each.get("clusterSet") == name for each in _written(one)))
        return [ref_of(one) for one in (*found, *named)]

    return Controller(
        name="managed-namespaces",
        kind=clusters,
        predicate=differ(labels_of, is_terminating),
        watches=(Watch(sets, keys, spec_differs),),
        observe=observe,
        plan=plan_namespaces,
    )


def _written(cluster: Obj) -> list[Obj]:
    return dig(cluster, "status", "managedNamespaces") or []
