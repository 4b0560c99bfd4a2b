"""Observe a ReplicaSet, its pods, and the pods of its siblings."""

from __future__ import annotations

from dataclasses import dataclass

from syncline.cluster.builtin.owners import candidates, claim, controller_of
from syncline.cluster.builtin.pods import POD, is_active
from syncline.control.cache import Snapshot
from syncline.control.plan import Patch
from syncline.kube.objects import GroupKind, Obj, ObjectRef, dig, is_terminating, uid_of

REPLICASET = GroupKind("apps", "ReplicaSet")
REPLICATION_CONTROLLER = GroupKind("", "ReplicationController")
"""The older kind, with another form of selector and status."""


@dataclass(frozen=True, slots=True)
class Observed:
    """``pods`` are claimed (adoptions included), ``patches`` write adoptions and releases; ``crowd`` counts the active
    pods of sets with the same controller, by node."""

    replicaset: Obj
    pods: tuple[Obj, ...]
    patches: tuple[Patch, ...]
    crowd: dict[str, int]
    namespace_ends: bool = False
    """The namespace is terminating: its pods are deleted first, and the API refuses new ones."""

    @property
    def replicas(self) -> int:
        return int(dig(self.replicaset, "spec", "replicas", default=1))

    @property
    def min_ready_s(self) -> int:
        return int(dig(self.replicaset, "spec", "minReadySeconds", default=0))


def observe(cache: Snapshot, ref: ObjectRef) -> Observed | None:
    """Return None if the set is deleted."""
    replicaset = cache.get(ref)
    if replicaset is None:
        return None
    claimed = claim(replicaset, (p for p in candidates(cache, POD, replicaset) if not _settled_elsewhere(p)))
    namespace = cache.get(ObjectRef("", "Namespace", "", ref.namespace))
    ends = namespace is not None and is_terminating(namespace)
    return Observed(replicaset, claimed.owned, claimed.patches, _crowd(cache, replicaset), ends)


def _settled_elsewhere(pod: Obj) -> bool:
    """Return whether a finished pod has no controller; it is not adopted, since it would not count."""
    return controller_of(pod) is None and not is_active(pod)


def _crowd(cache: Snapshot, replicaset: Obj) -> dict[str, int]:
    controller = controller_of(replicaset)
    siblings = [replicaset] if controller is None else cache.owned(str(controller.get("uid")), REPLICASET)
    crowd: dict[str, int] = {}
    for sibling in siblings:
        for pod in cache.owned(uid_of(sibling), POD):
            node = str(dig(pod, "spec", "nodeName", default=""))
            if node and is_active(pod):
                crowd[node] = crowd.get(node, 0) + 1
    return crowd
