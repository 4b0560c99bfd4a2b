"""Observe a node, the last heartbeat of its kubelet, and its pods."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from syncline.base.clock import time_or_none
from syncline.cluster.builtin.node_lifecycle.taints import (
    Disruption,
    Failing,
    disruption_of,
    works,
    zone_of,
)
from syncline.cluster.builtin.pods import POD, condition
from syncline.control.cache import Snapshot
from syncline.kube.objects import GroupKind, Obj, ObjectRef, dig, name_of, namespace_of, ref_of

NODE = GroupKind("", "Node")
LEASE = GroupKind("coordination.k8s.io", "Lease")
LEASE_NAMESPACE = "kube-node-lease"
PODS_OF_NODE = "node-lifecycle/pods"
NODES_OF_ZONE = "node-lifecycle/zones"
"""Index: nodes by zone and readiness."""
READY = "ready"

Heartbeats = Callable[[str], datetime | None]
"""Returns a simulated machine's last heartbeat, so that none is written in virtual time; None: read the objects."""


@dataclass(frozen=True, slots=True)
class Observed:
    """``heard`` is the latest heartbeat of lease, status or machine, or None. ``tells``: a stopping machine updates its
    Node, so a healthy node needs no polling. ``disruption``: how many other nodes fail with this one; ``taints_since``:
    when taints without a time were first seen."""

    node: Obj
    heard: datetime | None
    pods: tuple[Obj, ...]
    tells: bool = False
    disruption: Disruption = Disruption.NONE
    taints_since: Mapping[str, datetime] = field(default_factory=dict)


def placed_on(obj: Obj) -> Iterable[str]:
    """Index key: the node of a pod."""
    node = dig(obj, "spec", "nodeName") if obj.get("kind") == POD.kind else None
    return (str(node),) if node else ()


def observe(cache: Snapshot, ref: ObjectRef, heartbeats: Heartbeats, *, tells: bool = False) -> Observed | None:
    """Return None if the node is deleted."""
    node = cache.get(ref)
    if node is None:
        return None
    lease = cache.get(ObjectRef(LEASE.group, LEASE.kind, LEASE_NAMESPACE, ref.name))
    ready = condition(node, "Ready")
    report = (dig(lease, "spec", "renewTime"), dig(ready, "lastHeartbeatTime"))
    signs = [heartbeats(ref.name), *map(time_or_none, report)]
    heard = max((sign for sign in signs if sign is not None), default=None)
    disruption = Disruption.NONE if works(node) else disruption_around(node, cache)
    return Observed(node, heard, tuple(cache.indexed(PODS_OF_NODE, ref.name)), tells, disruption)


def readiness(node: Obj) -> str:
    """Return the status of the condition Ready; "" before the kubelet has reported."""
    return str((condition(node, "Ready") or {}).get("status") or "")


def in_zone(obj: Obj) -> Iterable[str]:
    """Index keys of :data:`NODES_OF_ZONE`."""
    zone = f"zone {zone_of(obj)}"
    return (zone, READY) if works(obj) else (zone, f"failing {zone}", "failing")


def disruption_around(node: Obj, cache: Snapshot) -> Disruption:
    """Return the current disruption of the zone of ``node``, or of the whole cluster."""
    zone = f"zone {zone_of(node)}"
    counts = (cache.count(NODES_OF_ZONE, value) for value in (zone, f"failing {zone}", READY))
    return disruption_of(Failing(*counts))


def together_with(node: Obj, cache: Snapshot) -> Iterable[ObjectRef]:
    """Return the failing nodes, whose evictions depend on the number of failures."""
    return (ref_of(other) for other in cache.indexed(NODES_OF_ZONE, "failing"))


def node_of_pod(pod: Obj, cache: Snapshot) -> Iterable[ObjectRef]:
    """Return the node of a pod if it is unhealthy, since its pods are marked or evicted."""
    return (ref for name in placed_on(pod) if not _is_well(cache.get(ref := ObjectRef("", NODE.kind, "", name))))


def _is_well(node: Obj | None) -> bool:
    """Return True if the node is ready and has no taints."""
    ready = condition(node, "Ready") if node is not None else None
    return ready is not None and ready.get("status") == "True" and not dig(node, "spec", "taints")


def node_of_lease(lease: Obj, _cache: Snapshot) -> Iterable[ObjectRef]:
    return (ObjectRef("", NODE.kind, "", name_of(lease)),) if namespace_of(lease) == LEASE_NAMESPACE else ()
