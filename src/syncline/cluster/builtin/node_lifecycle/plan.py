"""Plan for a silent or unhealthy node: status Unknown, taints, unready pods, evictions.

Reasons and messages are those of Kubernetes' node lifecycle and taint eviction controllers.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from syncline.base.clock import format_time
from syncline.cluster.builtin.conditions import put
from syncline.cluster.builtin.node_lifecycle.observe import Observed
from syncline.cluster.builtin.node_lifecycle.taints import eviction_time, wanted_taints
from syncline.cluster.builtin.pods import condition, created_at, is_finished, is_ready
from syncline.control.plan import Delete, Emit, Patch, Plan, Requeue, SetStatus, set_status
from syncline.kube.objects import (
    GVK,
    Obj,
    dig,
    is_terminating,
    name_of,
    namespace_of,
    resource_version,
    uid_of,
)

GRACE_S = 50.0
"""Seconds without a heartbeat after which a node is lost (node-monitor-grace-period)."""
STARTUP_GRACE_S = 60.0
"""The same for a node that never reported (node-startup-grace-period)."""
WELL_S = 3600.0
"""Next check of a node whose running machine would report a stop."""
COMPONENT = "node-controller"
DISRUPTED: Obj = {
    "type": "DisruptionTarget",
    "status": "True",
    "reason": "DeletionByTaintManager",
    "message": "Taint manager: deleting due to NoExecute taint",
}
_WATCHED = ("Ready", "MemoryPressure", "DiskPressure", "PIDPressure")


def plan(observed: Observed, now: datetime) -> Plan:
    """Plan the silence, then taints, then pods, then the next reconcile."""
    lost = _lost(observed, now)
    if lost:
        return Plan(status=lost, why=f"{name_of(observed.node)} is silent")
    taints = wanted_taints(observed.node, now, observed.disruption)
    if taints != dig(observed.node, "spec", "taints", default=[]):
        metadata = {"uid": uid_of(observed.node), "resourceVersion": resource_version(observed.node)}
        body = {"metadata": metadata, "spec": {"taints": taints or None}}
        patch = Patch(GVK("", "v1", "Node"), "", name_of(observed.node), body, "taints follow the conditions")
        return Plan(((patch,),), why="taints follow the conditions")
    unready = _unready_pods(observed, now)
    marks, evictions, later = _evictions(observed, taints, now)
    steps = tuple(step for step in (unready, marks, evictions) if step)
    return Plan(steps, _look_again(observed, later, now), why=f"{name_of(observed.node)} is looked after")


def _limit(observed: Observed) -> datetime:
    if observed.heard is None:
        return created_at(observed.node) + timedelta(seconds=STARTUP_GRACE_S)
    return observed.heard + timedelta(seconds=GRACE_S)


def _lost(observed: Observed, now: datetime) -> tuple[SetStatus | Emit, ...]:
    """Set the conditions of a node without a recent heartbeat."""
    ready = condition(observed.node, "Ready")
    if now <= _limit(observed) or (ready is not None and ready.get("status") == "Unknown"):
        return ()
    reason, message = "NodeStatusUnknown", "Kubelet stopped posting node status."
    if ready is None:
        reason, message = "NodeStatusNeverUpdated", "Kubelet never posted node status."
    old: list[Obj] = dig(observed.node, "status", "conditions", default=[])
    kept = [item for item in old if item.get("type") not in _WATCHED]
    conditions = [_unknown(observed.node, kind, reason, message, now) for kind in _WATCHED]
    status = dict(observed.node.get("status") or {}) | {"conditions": conditions + kept}
    text = f"Node {name_of(observed.node)} status is now: NodeNotReady"
    return (*set_status(observed.node, status, message), Emit(observed.node, "NodeNotReady", text, COMPONENT))


def _unknown(node: Obj, kind: str, reason: str, message: str, now: datetime) -> Obj:
    old = condition(node, kind)
    if old is not None and old.get("status") == "Unknown":
        return old
    heard = (old or {}).get("lastHeartbeatTime") or dig(node, "metadata", "creationTimestamp")
    times = {"lastHeartbeatTime": heard, "lastTransitionTime": format_time(now)}
    return {"type": kind, "status": "Unknown"} | times | {"reason": reason, "message": message}


def _unready_pods(observed: Observed, now: datetime) -> tuple[SetStatus | Emit, ...]:
    """Mark the pods of an unready node as unready, since its kubelet cannot."""
    ready = condition(observed.node, "Ready")
    if ready is None or ready.get("status") == "True":
        return ()
    actions: list[SetStatus | Emit] = []
    for pod in observed.pods:
        if is_ready(pod) and not is_terminating(pod):
            conditions = [_not_ready(item, now) for item in dig(pod, "status", "conditions", default=[])]
            status = dict(pod["status"]) | {"conditions": conditions}
            actions += set_status(pod, status, "its node is not ready")
            actions.append(Emit(pod, "NodeNotReady", "Node is not ready", COMPONENT, warning=True))
    return tuple(actions)


def _not_ready(item: Obj, now: datetime) -> Obj:
    if item.get("type") != "Ready":
        return item
    return item | {"status": "False", "lastTransitionTime": format_time(now)}


def _evictions(
    observed: Observed, taints: list[Obj], now: datetime
) -> tuple[tuple[SetStatus, ...], tuple[Emit | Delete, ...], datetime | None]:
    """Return conditions and deletions of pods that no longer tolerate the taints, and the time of the next one."""
    marks: list[SetStatus] = []
    actions: list[Emit | Delete] = []
    later: list[datetime] = []
    for pod in observed.pods:
        at = None if is_terminating(pod) or is_finished(pod) else eviction_time(pod, taints, now, observed.taints_since)
        if at is not None and at <= now:
            text = f"Marking for deletion Pod {namespace_of(pod)}/{name_of(pod)}"
            actions.append(Emit(pod, "TaintManagerEviction", text, "taint-eviction-controller"))
            why = "it does not bear the taints of its node any longer"
            said = DISRUPTED | {"lastTransitionTime": format_time(now)}
            conditions = put(dig(pod, "status", "conditions", default=[]), said)
            marks += set_status(pod, dict(pod.get("status") or {}) | {"conditions": conditions}, why)
            actions.append(Delete.of(pod, why))
        elif at is not None:
            later.append(at)
    return tuple(marks), tuple(actions), min(later, default=None)


def _look_again(observed: Observed, later: datetime | None, now: datetime) -> Requeue:
    if later is not None:
        return Requeue((later - now).total_seconds(), "a pod has to leave")
    left_s = max((_limit(observed) - now).total_seconds(), 0.0) + 1
    status = (condition(observed.node, "Ready") or {}).get("status")
    if observed.tells and observed.heard == now and status == "True":
        return Requeue(WELL_S, "is the node still heard of?", background=True)
    return Requeue(GRACE_S if status == "Unknown" else left_s, "is the node still heard of?", background=True)
