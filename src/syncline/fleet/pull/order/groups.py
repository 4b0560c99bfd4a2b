"""Which Applications have an order in common, and whether it is in force.

A group is the pulled Applications of one ApplicationSet, or one that no set made. The order of a group is in force when
its Applications or its set ask for it, when a cluster of it has a wave or windows, or when people have written into its
FleetRollout. Without an order nothing here matters: works are written at once.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from syncline.argo.dependencies import DEPENDS_ON
from syncline.argo.rollout.strategy import is_rolling
from syncline.control.cache import OfKind, Snapshot
from syncline.fleet.hub.sets import SetError, is_member
from syncline.fleet.pull import names
from syncline.fleet.pull.observe import APPS, CLUSTERS, SETS
from syncline.fleet.pull.order.annotations import CLUSTER_WAVE, WINDOWS, asks_for_order
from syncline.kube.kinds.fleetrollouts import ROLLOUT
from syncline.kube.kinds.managedclusters import CLUSTER_SET
from syncline.kube.objects import Obj, ObjectRef, annotations_of, dig, labels_of, name_of, namespace_of

ROLLOUTS: Final = ROLLOUT.group_kind
CLUSTER_SETS: Final = CLUSTER_SET.group_kind
SINGLE: Final = ".app"
"""End of the name of the FleetRollout of an Application that no set made."""
BY_GROUP: Final = "order-group"
"""Index of carried Applications by ``NAMESPACE/ROLLOUT``."""
BY_ASKING: Final = "order-asking"
"""As :data:`BY_GROUP`, of those that ask for an order."""
BY_PLACE: Final = "order-place"
"""Index of carried Applications by ``NAMESPACE/ROLLOUT CLUSTER``."""
BY_NEED: Final = "order-need"
"""Index of carried Applications by what they depend on, as they name it; for a step of a set by the set."""
OF_APPSET: Final = "appset"
"""First part of a dependency on the Applications of a set."""
OF_CLUSTER, OF_SET = "order-clusters", "order-cluster-sets"
"""Indices of what puts every group on its clusters in order: ManagedClusters with a wave or windows, sets with windows;
the value is the name of the index."""


def group_of(app: Obj) -> ObjectRef:
    """Return the FleetRollout of a carried Application."""
    return ObjectRef(*ROLLOUTS, namespace_of(app), names.owning_set(app) or name_of(app) + SINGLE)


def key_of(group: ObjectRef) -> str:
    return f"{group.namespace}/{group.name}"


def needs_of(app: Obj) -> tuple[str, ...]:
    """Return what an Application depends on, as it names it, each once."""
    found = (text.strip() for text in annotations_of(app).get(DEPENDS_ON, "").split(","))
    return tuple(dict.fromkeys(text for text in found if text))


def _group(app: Obj) -> Iterable[str]:
    return (key_of(group_of(app)),) if names.is_carried(app) else ()


def _asking(app: Obj) -> Iterable[str]:
    return _group(app) if asks_for_order(app) else ()


def _place(app: Obj) -> Iterable[str]:
    return (f"{one} {annotations_of(app)[names.CLUSTER]}" for one in _group(app))


def _need(app: Obj) -> Iterable[str]:
    if names.is_carried(app):
        yield from {f"{namespace_of(app)} {_whole(one)}": None for one in needs_of(app)}


def _whole(need: str) -> str:
    """Return what a name is looked up by: of a step of a set the set."""
    parts = need.split("/")
    return "/".join(parts[:2]) if parts[0] == OF_APPSET and len(parts) == 3 else need


def _ordering_cluster(cluster: Obj) -> Iterable[str]:
    return (OF_CLUSTER,) if CLUSTER_WAVE in labels_of(cluster) or WINDOWS in annotations_of(cluster) else ()


def _ordering_set(one: Obj) -> Iterable[str]:
    return (OF_SET,) if WINDOWS in annotations_of(one) else ()


INDICES: Final = {
    BY_GROUP: OfKind(APPS, _group),
    BY_ASKING: OfKind(APPS, _asking),
    BY_PLACE: OfKind(APPS, _place),
    BY_NEED: OfKind(APPS, _need),
    OF_CLUSTER: OfKind(CLUSTERS, _ordering_cluster),
    OF_SET: OfKind(CLUSTER_SETS, _ordering_set),
}


def windows_of(cache: Snapshot, cluster: Obj) -> tuple[tuple[str, str], ...]:
    """Return the maintenance windows that count for a cluster: who has them, and the text."""
    found = []
    if (text := annotations_of(cluster).get(WINDOWS)) is not None:
        found.append((f"ManagedCluster {name_of(cluster)}", text))
    for one in cache.indexed(OF_SET, OF_SET):
        try:
            member = is_member(cluster, one)
        except SetError:
            member = True  # who is in it cannot be read: its windows are not left out
        if member:
            found.append((f"ManagedClusterSet {name_of(one)}", annotations_of(one)[WINDOWS]))
    return tuple(found)


class Ordering:
    """Whether the order of a group is in force. Remembers which clusters put groups in order, until clusters or sets
    change."""

    def __init__(self) -> None:
        self._seen: tuple[int, int] = (-1, -1)
        self._clusters: tuple[str, ...] = ()

    def clusters(self, cache: Snapshot) -> tuple[str, ...]:
        """Return the names of the clusters with a wave or windows."""
        seen = cache.changes(CLUSTERS), cache.changes(CLUSTER_SETS)
        if seen != self._seen:
            found = {name_of(one) for one in cache.indexed(OF_CLUSTER, OF_CLUSTER)}
            if cache.count(OF_SET, OF_SET):
                found |= {name_of(one) for one in cache.objects(CLUSTERS) if windows_of(cache, one)}
            self._seen, self._clusters = seen, tuple(sorted(found))
        return self._clusters

    def why(self, cache: Snapshot, group: ObjectRef) -> str:
        """Return why the order of a group is in force; empty: it is not."""
        key = key_of(group)
        if (one := cache.first(BY_ASKING, key)) is not None:
            return f"Application {name_of(one)} asks for it"
        found = cache.get(ObjectRef(*SETS, group.namespace, group.name))
        if found is not None and is_rolling(found):
            return "the ApplicationSet has a RollingSync"
        spec = dig(cache.get(group) or {}, "spec") or {}
        if any(spec.get(part) for part in ("stopped", "skip", "rollBack")):
            return "its FleetRollout says so"
        for cluster in self.clusters(cache):
            if cache.count(BY_PLACE, f"{key} {cluster}"):
                return f"cluster {cluster} has a wave or maintenance windows"
        return ""
