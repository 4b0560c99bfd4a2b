"""Derive a node's taints from its conditions, and how long pods tolerate the evicting ones.

Source: Kubernetes node lifecycle and taint eviction controllers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import Enum

from syncline.base.clock import format_time, time_or_none
from syncline.cluster.builtin.pods import condition
from syncline.kube.objects import Obj, dig, labels_of
from syncline.kube.scheduling.terms import tolerates

NOT_READY = "node.kubernetes.io/not-ready"
UNREACHABLE = "node.kubernetes.io/unreachable"
UNSCHEDULABLE = "node.kubernetes.io/unschedulable"
_PRESSURES = {
    "MemoryPressure": "node.kubernetes.io/memory-pressure",
    "DiskPressure": "node.kubernetes.io/disk-pressure",
    "PIDPressure": "node.kubernetes.io/pid-pressure",
    "NetworkUnavailable": "node.kubernetes.io/network-unavailable",
}
_FEW, _UNHEALTHY_SHARE, _LARGE_ZONE = 2, 0.55, 50
_OURS = {(key, "NoSchedule") for key in (NOT_READY, UNREACHABLE, UNSCHEDULABLE, *_PRESSURES.values())} | {
    (NOT_READY, "NoExecute"),
    (UNREACHABLE, "NoExecute"),
}


class Disruption(Enum):
    """How many nodes fail together (``ComputeZoneState``)."""

    NONE = "none"
    PARTIAL = "partial"
    """More than two nodes, and more than half, of a zone with at most 50 nodes are not ready."""
    TOTAL = "total"
    """No node of the cluster is ready."""


@dataclass(frozen=True, slots=True)
class Failing:
    """Number of nodes in a zone, of its unready nodes, and of ready nodes in the cluster."""

    nodes: int
    not_ready: int
    ready_anywhere: int


def disruption_of(zone: Failing) -> Disruption:
    """Return the disruption of a zone or of the whole cluster."""
    if not zone.ready_anywhere:
        return Disruption.TOTAL
    many = zone.not_ready > _FEW and zone.not_ready / zone.nodes >= _UNHEALTHY_SHARE
    return Disruption.PARTIAL if many and zone.nodes <= _LARGE_ZONE else Disruption.NONE


def works(node: Obj) -> bool:
    return (condition(node, "Ready") or {}).get("status") == "True"


def zone_of(node: Obj) -> str:
    labels = labels_of(node)
    return "/".join((labels.get("topology.kubernetes.io/region", ""), labels.get("topology.kubernetes.io/zone", "")))


def wanted_taints(node: Obj, now: datetime, disruption: Disruption = Disruption.NONE) -> list[Obj]:
    """Return the node's correct taints: foreign ones unchanged, ours by the conditions. While a zone fails as a whole,
    it gets no new evicting taint; while all nodes fail, none evicts, since the network is the likely cause."""
    present: list[Obj] = dig(node, "spec", "taints", default=[])
    ours = _by_conditions(node)
    if disruption is not Disruption.NONE:
        evicting = {each for each in ours if each[1] == "NoExecute"}
        ours -= evicting if disruption is Disruption.TOTAL else evicting - {_key(taint) for taint in present}
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


def taint_name(taint: Obj) -> str:
    return f"{taint.get('key')}={taint.get('value') or ''}:{taint.get('effect')}"


def eviction_time(pod: Obj, taints: list[Obj], now: datetime, since: Mapping[str, datetime]) -> datetime | None:
    """Return when a pod must leave a node with these taints; None if it may stay. ``since``: when taints without a time
    were first seen, by name."""
    times: list[datetime] = []
    for taint in taints:
        if taint.get("effect") != "NoExecute":
            continue
        bearing = [t for t in dig(pod, "spec", "tolerations", default=[]) if tolerates([t], taint)]
        begun = time_or_none(taint.get("timeAdded")) or since.get(taint_name(taint), now)
        limits = [t["tolerationSeconds"] for t in bearing if t.get("tolerationSeconds") is not None]
        if not bearing:
            times.append(begun)
        elif limits:
            times.append(begun + timedelta(seconds=max(min(limits), 0)))
    return min(times, default=None)
