"""Binds node lifecycle to nodes, their leases and their pods."""

from __future__ import annotations

from datetime import datetime

from syncline.cluster.builtin.node_lifecycle import observe as observing
from syncline.cluster.builtin.node_lifecycle import plan as planning
from syncline.cluster.builtin.node_lifecycle.observe import LEASE, NODE, PODS_OF_NODE, Beats, Observed
from syncline.cluster.builtin.pods import POD
from syncline.control.cache import Snapshot
from syncline.control.controller import Watch
from syncline.control.plan import Plan
from syncline.kube.objects import GroupKind, ObjectRef

__all__ = ["NodeLifecycleController"]


class NodeLifecycleController:
    """Notices lost nodes; keeps taints in step with conditions; evicts pods that do not bear them."""

    name = "node-lifecycle"
    kind = NODE
    watches: tuple[Watch, ...] = (Watch(POD, observing.node_of_pod), Watch(LEASE, observing.node_of_lease))
    reads: tuple[GroupKind, ...] = ()
    indices = {PODS_OF_NODE: observing.placed_on}  # noqa: RUF012 - declared once, never changed

    def __init__(self, beats: Beats, *, tells: bool = False) -> None:
        self._beats = beats
        self._tells = tells

    def observe(self, cache: Snapshot, ref: ObjectRef) -> Observed | None:
        return observing.observe(cache, ref, self._beats, tells=self._tells)

    def plan(self, seen: Observed, now: datetime) -> Plan:
        return planning.plan(seen, now)
