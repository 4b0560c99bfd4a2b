"""Define the node lifecycle controller for nodes, their leases and their pods."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import datetime

from syncline.cluster.builtin.node_lifecycle import observe as observing
from syncline.cluster.builtin.node_lifecycle import plan as planning
from syncline.cluster.builtin.node_lifecycle.observe import (
    LEASE,
    NODE,
    NODES_OF_ZONE,
    PODS_OF_NODE,
    Heartbeats,
    Observed,
)
from syncline.cluster.builtin.node_lifecycle.taints import Disruption, taint_name, zone_of
from syncline.cluster.builtin.pods import POD
from syncline.control.cache import OfKind, Snapshot
from syncline.control.controller import SPEC, Controller, Watch, differ
from syncline.kube.objects import Obj, ObjectRef, dig, name_of

NODE_LIFECYCLE = "node-lifecycle"
"""Name of the controller, by which machines trigger it."""

MAX_NODES = 10_000
"""Nodes whose taints are cached."""


def node_lifecycle_controller(heartbeats: Heartbeats, *, tells: bool = False) -> Controller[Observed]:
    """Return the controller: detect lost nodes, sync taints with conditions, evict pods that do not tolerate them."""
    noticed = _Noticed()
    return Controller(
        name=NODE_LIFECYCLE,
        kind=NODE,
        watches=(
            Watch(POD, observing.node_of_pod, reads=SPEC),
            Watch(LEASE, observing.node_of_lease),
            Watch(NODE, noticed.failing_with, differ(observing.readiness)),
        ),
        indices={
            PODS_OF_NODE: OfKind(POD, observing.placed_on, of_spec=True),
            NODES_OF_ZONE: OfKind(NODE, observing.in_zone),
        },
        observe=lambda cache, ref: observing.observe(cache, ref, heartbeats, tells=tells),
        plan=lambda observed, now: planning.plan(
            replace(observed, taints_since=noticed.first_seen(observed.node, now)), now
        ),
    )


class _Noticed:
    """State that the cluster does not record: when a taint was first seen, and each zone's last disruption."""

    def __init__(self) -> None:
        self._since: dict[str, dict[str, datetime]] = {}
        self._disruptions: dict[str, Disruption] = {}
        self._everywhere = False

    def failing_with(self, node: Obj, cache: Snapshot) -> Iterable[ObjectRef]:
        """Reconcile the other failing nodes when their zone, or the cluster, starts or stops failing as a whole,
        because that decides whether their pods are evicted. The last reported state of each zone is cached."""
        zone, now = zone_of(node), observing.disruption_around(node, cache)
        everywhere = now is Disruption.TOTAL
        if self._everywhere is not everywhere or len(self._disruptions) >= MAX_NODES:
            self._disruptions.clear()
        self._everywhere = everywhere
        if self._disruptions.get(zone) is now:
            return ()
        self._disruptions[zone] = now
        return observing.together_with(node, cache)

    def first_seen(self, node: Obj, now: datetime) -> Mapping[str, datetime]:
        """Return when taints without a time were first seen; their tolerations count from then, as in Kubernetes."""
        known = self._since.pop(name_of(node), {})
        names = {taint_name(each) for each in dig(node, "spec", "taints", default=[]) if not each.get("timeAdded")}
        if not names:
            return {}
        self._since[name_of(node)] = {name: known.get(name, now) for name in names}
        if len(self._since) > MAX_NODES:
            del self._since[next(iter(self._since))]
        return self._since[name_of(node)]
