"""Observe the pods that wait for a node, and the nodes with their pods."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from syncline.control.cache import IndexFn, OfKind, Snapshot
from syncline.kube.objects import (
    GroupKind,
    Obj,
    ObjectRef,
    dig,
    is_terminating,
    labels_of,
    name_of,
    namespace_of,
    ref_of,
)
from syncline.kube.scheduling.filters import Counted
from syncline.kube.scheduling.volumes import Storage, attach_limits, claim_names

SCHEDULER = "default-scheduler"
POD, NODE, NAMESPACE = GroupKind("", "Pod"), GroupKind("", "Node"), GroupKind("", "Namespace")
CLAIM, VOLUME = GroupKind("", "PersistentVolumeClaim"), GroupKind("", "PersistentVolume")
STORAGE_CLASS = GroupKind("storage.k8s.io", "StorageClass")
CSI_NODE = GroupKind("storage.k8s.io", "CSINode")
BUDGET = GroupKind("policy", "PodDisruptionBudget")
STORAGE = (CLAIM, VOLUME, STORAGE_CLASS, CSI_NODE)
SCHEDULER_REF = ObjectRef("", "Node", "", "")
"""The scheduler's only key: one reconcile places all waiting pods, so that no two use the same capacity."""
WAITING = "scheduler/waiting"
BY_NODE = "scheduler/placed"


@dataclass(frozen=True, slots=True)
class Observed:
    """``waiting`` is in the order of placement; ``placed`` are all pods on nodes. ``complete`` is False if claims of
    waiting pods are not listed yet."""

    waiting: tuple[Obj, ...]
    nodes: tuple[Obj, ...]
    placed: tuple[Obj, ...]
    namespaces: Mapping[str, Mapping[str, str]]
    storage: Storage = field(default_factory=Storage)
    budgets: tuple[Obj, ...] = ()
    complete: bool = True
    counted: Counted = field(default_factory=Counted, compare=False, repr=False)


def is_waiting(obj: Obj) -> bool:
    """Return whether our scheduler must place the pod: no node, no scheduling gate, not terminating."""
    spec = obj.get("spec") or {}
    return (
        obj.get("kind") == POD.kind
        and not spec.get("nodeName")
        and not spec.get("schedulingGates")
        and spec.get("schedulerName", SCHEDULER) == SCHEDULER
        and not is_terminating(obj)
        and dig(obj, "status", "phase") not in ("Succeeded", "Failed")
    )


def _placed(obj: Obj) -> bool:
    return obj.get("kind") == POD.kind and bool(dig(obj, "spec", "nodeName"))


def indices() -> dict[str, IndexFn]:
    """Index waiting and placed pods, so that a reconcile does not read all others."""
    return {
        WAITING: OfKind(POD, lambda obj: ("",) if is_waiting(obj) else ()),
        BY_NODE: OfKind(POD, lambda obj: ("",) if _placed(obj) else (), of_spec=True),
    }


def observe(cache: Snapshot, ref: ObjectRef, counted: Counted | None = None) -> Observed | None:
    """Return None if no pod waits, or nodes and pods are not listed yet."""
    if ref != SCHEDULER_REF or not (cache.has_synced(NODE) and cache.has_synced(POD)):
        return None
    waiting = sorted(cache.indexed(WAITING, ""), key=_turn)
    if not waiting:
        return None
    namespaces = {name_of(each): labels_of(each) for each in cache.objects(NAMESPACE)}
    placed = tuple(cache.indexed(BY_NODE, ""))
    observed = Observed(
        tuple(waiting),
        tuple(cache.objects(NODE)),
        placed,
        namespaces,
        budgets=tuple(cache.objects(BUDGET)),
        counted=counted or Counted(),
    )
    if not any(claim_names(pod) for pod in waiting):
        return observed
    return replace(observed, storage=_storage(cache), complete=all(cache.has_synced(kind) for kind in STORAGE))


def _storage(cache: Snapshot) -> Storage:
    return Storage(
        {(namespace_of(each), name_of(each)): each for each in cache.objects(CLAIM)},
        {name_of(each): each for each in cache.objects(VOLUME)},
        {name_of(each): each for each in cache.objects(STORAGE_CLASS)},
        {name_of(each): limits for each in cache.objects(CSI_NODE) if (limits := attach_limits(each))},
    )


def _turn(pod: Obj) -> tuple[int, str, ObjectRef]:
    """Sort key: higher priority first, then older, then by name."""
    priority = int(dig(pod, "spec", "priority", default=0))
    return -priority, str(dig(pod, "metadata", "creationTimestamp", default="")), ref_of(pod)


def concerned_by_pod(pod: Obj, cache: Snapshot) -> Iterable[ObjectRef]:
    """Return the scheduler's key for a waiting pod, and for a pod on a node while another waits."""
    return (SCHEDULER_REF,) if is_waiting(pod) or (_placed(pod) and cache.indexed(WAITING, "")) else ()


def concerned_by_storage(_obj: Obj, cache: Snapshot) -> Iterable[ObjectRef]:
    return (SCHEDULER_REF,) if cache.indexed(WAITING, "") else ()


def concerned_by_node(_node: Obj, cache: Snapshot) -> Iterable[ObjectRef]:
    return (SCHEDULER_REF,) if cache.indexed(WAITING, "") else ()
