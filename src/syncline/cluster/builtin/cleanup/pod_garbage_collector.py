"""Delete pods that no kubelet can end: of deleted or out-of-service nodes, and those never scheduled.

Rules and texts are those of Kubernetes' pod garbage collector. Upstream runs every 20 seconds, and waits 40 after it
first misses a node; controllers here are stateless, so delays count from timestamps of the pod.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from syncline.base.clock import format_time, time_or_none
from syncline.cluster.builtin.conditions import put
from syncline.cluster.builtin.pods import condition, created_at, is_finished
from syncline.control.cache import Snapshot
from syncline.control.controller import Controller, Watch, differ
from syncline.control.plan import Delete, Plan, Requeue, SetStatus, set_status
from syncline.kube.objects import GroupKind, Obj, ObjectRef, dig, finalizers, is_terminating, meta, name_of, ref_of

POD = GroupKind("", "Pod")
NODE = GroupKind("", "Node")
QUARANTINE_S = 60.0
"""Upstream runs every 20 seconds and then waits 40: a node has this long to register."""


UNPLACED_S = 2.0
"""Delay before a terminating pod without a node is deleted; upstream takes up to 20 seconds."""
OUT_OF_SERVICE = "node.kubernetes.io/out-of-service"


@dataclass(frozen=True, slots=True)
class Observed:
    """A pod, and its node if it exists."""

    pod: Obj
    node: Obj | None


def plan(observed: Observed, now: datetime) -> Plan:
    """Set the condition first, then delete without grace."""
    pod, name = observed.pod, dig(observed.pod, "spec", "nodeName")
    if not name:
        deleted = time_or_none(meta(pod).get("deletionTimestamp")) or now
        return _remove(pod, deleted + timedelta(seconds=UNPLACED_S), now, "it never had a node")
    if observed.node is not None:
        return _remove(pod, now, now, f"node {name} is out of service")
    due = _given_at(pod) + timedelta(seconds=QUARANTINE_S)
    said = {"type": "DisruptionTarget", "status": "True", "reason": "DeletionByPodGC"}
    said |= {"message": "PodGC: node no longer exists", "lastTransitionTime": format_time(now)}
    return _remove(pod, due, now, f"node {name} does not exist", said)


def _remove(pod: Obj, due: datetime, now: datetime, why: str, said: Obj | None = None) -> Plan:
    if now < due:
        return Plan(outcome=Requeue((due - now).total_seconds(), why, background=True), why=why)
    steps = (_mark(pod, why, said), (Delete.of(pod, why, grace_period_s=0),) if _goes(pod) else ())
    return Plan(tuple(step for step in steps if step), why=f"{name_of(pod)} is left over: {why}")


def _goes(pod: Obj) -> bool:
    """Return False if only finalizers hold the pod, since deleting it again has no effect."""
    return not (is_terminating(pod) and finalizers(pod) and not meta(pod).get("deletionGracePeriodSeconds"))


def _mark(pod: Obj, why: str, said: Obj | None) -> tuple[SetStatus, ...]:
    if is_finished(pod):
        return ()
    status = dict(pod.get("status") or {}) | {"phase": "Failed"}
    if said is not None:
        status["conditions"] = put(dig(pod, "status", "conditions", default=[]), said)
    return set_status(pod, status, why)


def _given_at(pod: Obj) -> datetime:
    scheduled = condition(pod, "PodScheduled") or {}
    return max(time_or_none(scheduled.get("lastTransitionTime")) or created_at(pod), created_at(pod))


def _pods_of(node: Obj, cache: Snapshot) -> Iterable[ObjectRef]:
    here = cache.get(ref_of(node))
    if here is not None and not _is_out_of_service(here):
        return ()
    return (ref_of(pod) for pod in cache.objects(POD) if dig(pod, "spec", "nodeName") == name_of(node))


def _is_out_of_service(node: Obj) -> bool:
    tainted = any(taint.get("key") == OUT_OF_SERVICE for taint in dig(node, "spec", "taints", default=[]))
    return tainted and (condition(node, "Ready") or {}).get("status") != "True"


def _observe(cache: Snapshot, ref: ObjectRef) -> Observed | None:
    pod = cache.get(ref)
    if pod is None or not cache.has_synced(NODE):
        return None
    name = dig(pod, "spec", "nodeName")
    if not name:
        return Observed(pod, None) if is_terminating(pod) else None
    node = cache.get(ObjectRef("", NODE.kind, "", name))
    left = node is None or (is_terminating(pod) and _is_out_of_service(node))
    return Observed(pod, node) if left else None


POD_GARBAGE_COLLECTOR_CONTROLLER = Controller(
    name="pod-garbage-collector",
    kind=POD,
    watches=(Watch(NODE, _pods_of, differ(_is_out_of_service)),),
    predicate=differ(lambda pod: dig(pod, "spec", "nodeName"), is_terminating),
    observe=_observe,
    plan=plan,
)
"""Deletes such pods; its key is a pod, and a deleted or out-of-service node triggers it."""
