"""Which taints a node's conditions stand for, and how long pods bear those that evict.

Source: Kubernetes node lifecycle and taint eviction controllers.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from syncline.base.clock import format_time
from syncline.cluster.builtin.pods import condition, instant
from syncline.kube.objects import Obj, dig
from syncline.kube.scheduling_terms import tolerates

__all__ = ["NOT_READY", "UNREACHABLE", "UNSCHEDULABLE", "eviction_time", "wanted_taints"]

NOT_READY = "node.kubernetes.io/not-ready"
UNREACHABLE = "node.kubernetes.io/unreachable"
UNSCHEDULABLE = "node.kubernetes.io/unschedulable"
_PRESSURES = {
    "MemoryPressure": "node.kubernetes.io/memory-pressure",
    "DiskPressure": "node.kubernetes.io/disk-pressure",
    "PIDPressure": "node.kubernetes.io/pid-pressure",
    "NetworkUnavailable": "node.kubernetes.io/network-unavailable",
}
_OURS = {(key, "NoSchedule") for key in (NOT_READY, UNREACHABLE, UNSCHEDULABLE, *_PRESSURES.values())} | {
    (NOT_READY, "NoExecute"),
    (UNREACHABLE, "NoExecute"),
}


def wanted_taints(node: Obj, now: datetime) -> list[Obj]:
    """The node's taints as they should be: other people's as they are, ours by the conditions."""
    present: list[Obj] = dig(node, "spec", "taints", default=[])
    if condition(node, "Ready") is None:
        ours = {(NOT_READY, "NoSchedule")} & {_key(taint) for taint in present}  # until the kubelet says something
    else:
        ours = _by_conditions(node)
    if dig(node, "spec", "unschedulable", default=False):
        ours.add((UNSCHEDULABLE, "NoSchedule"))
    kept = [taint for taint in present if _key(taint) not in _OURS or _key(taint) in ours]
    missing = sorted(ours - {_key(taint) for taint in present})
    return kept + [{"key": key, "effect": effect, "timeAdded": format_time(now)} for key, effect in missing]


def _key(taint: Obj) -> tuple[str, str]:
    return str(taint.get("key")), str(taint.get("effect"))


def _by_conditions(node: Obj) -> set[tuple[str, str]]:
    ours: set[tuple[str, str]] = set()
    for item in dig(node, "status", "conditions", default=[]):
        kind, status = item.get("type"), item.get("status")
        if kind == "Ready" and status in ("False", "Unknown"):
            key = NOT_READY if status == "False" else UNREACHABLE
            ours |= {(key, "NoSchedule"), (key, "NoExecute")}
        elif kind in _PRESSURES and status == "True":
            ours.add((_PRESSURES[kind], "NoSchedule"))
    return ours


def eviction_time(pod: Obj, taints: list[Obj], now: datetime) -> datetime | None:
    """When a pod must leave a node with these taints; None: it may stay."""
    times: list[datetime] = []
    for taint in taints:
        if taint.get("effect") != "NoExecute":
            continue
        bearing = [t for t in dig(pod, "spec", "tolerations", default=[]) if tolerates([t], taint)]
        since = instant(taint.get("timeAdded")) or now
        limits = [t["tolerationSeconds"] for t in bearing if t.get("tolerationSeconds") is not None]
        if not bearing:
            times.append(since)
        elif limits:
            times.append(since + timedelta(seconds=max(min(limits), 0)))
    return min(times, default=None)
