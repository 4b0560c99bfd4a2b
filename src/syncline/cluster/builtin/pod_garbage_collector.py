"""Removes pods of nodes that no longer exist: nobody is left who could end them.

Rules and texts are those of Kubernetes' pod garbage collector. Upstream waits 40 seconds after it first misses the
node; controllers here remember nothing, so the wait counts from the moment the pod was given to its node.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from syncline.base.clock import format_time
from syncline.cluster.builtin.conditions import put
from syncline.cluster.builtin.pods import condition, created_at, instant, is_finished
from syncline.control.cache import Snapshot
from syncline.control.controller import Watch, differ
from syncline.control.plan import Delete, Plan, Requeue, SetStatus, set_status
from syncline.kube.objects import GroupKind, Obj, ObjectRef, dig, name_of, ref_of

__all__ = ["QUARANTINE_S", "Observed", "PodGarbageCollector", "plan"]

POD = GroupKind("", "Pod")
NODE = GroupKind("", "Node")
QUARANTINE_S = 60.0
"""Upstream looks every 20 seconds and then waits 40: a node that is being registered has this long to appear."""


@dataclass(frozen=True, slots=True)
class Observed:
    """A pod whose node does not exist."""

    pod: Obj


def plan(seen: Observed, now: datetime) -> Plan:
    """First say why, then delete without grace."""
    due = _given_at(seen.pod) + timedelta(seconds=QUARANTINE_S)
    node = dig(seen.pod, "spec", "nodeName")
    if now < due:
        again = Requeue((due - now).total_seconds(), f"is there still no node {node}?", background=True)
        return Plan(outcome=again, why=f"node {node} does not exist")
    steps = (_mark(seen.pod, now), (Delete.of(seen.pod, "its node no longer exists", grace_period_s=0),))
    return Plan(tuple(step for step in steps if step), why=f"{name_of(seen.pod)} is left over from node {node}")


def _mark(pod: Obj, now: datetime) -> tuple[SetStatus, ...]:
    if is_finished(pod):
        return ()
    said = {
        "type": "DisruptionTarget",
        "status": "True",
        "reason": "DeletionByPodGC",
        "message": "PodGC: node no longer exists",
        "lastTransitionTime": format_time(now),
    }
    conditions = put(dig(pod, "status", "conditions", default=[]), said)
    status = dict(pod.get("status") or {}) | {"phase": "Failed", "conditions": conditions}
    return set_status(pod, status, "its node no longer exists")


def _given_at(pod: Obj) -> datetime:
    scheduled = condition(pod, "PodScheduled") or {}
    return max(instant(scheduled.get("lastTransitionTime")) or created_at(pod), created_at(pod))


def _pods_of(node: Obj, cache: Snapshot) -> Iterable[ObjectRef]:
    if cache.get(ref_of(node)) is not None:
        return ()
    return (ref_of(pod) for pod in cache.objects(POD) if dig(pod, "spec", "nodeName") == name_of(node))


class PodGarbageCollector:
    """Keyed by pod; woken when a node goes."""

    name = "pod-garbage-collector"
    kind = POD
    watches: tuple[Watch, ...] = (Watch(NODE, _pods_of, differ()),)
    concerns = staticmethod(differ(lambda pod: dig(pod, "spec", "nodeName")))
    reads: tuple[GroupKind, ...] = ()

    def observe(self, cache: Snapshot, ref: ObjectRef) -> Observed | None:
        pod = cache.get(ref)
        node = dig(pod, "spec", "nodeName") if pod is not None else None
        if pod is None or not node or not cache.has_synced(NODE):
            return None
        return Observed(pod) if cache.get(ObjectRef("", NODE.kind, "", node)) is None else None

    def plan(self, seen: Observed, now: datetime) -> Plan:
        return plan(seen, now)
