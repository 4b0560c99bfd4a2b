"""Placements: 2,000 clusters, 50 Placements, one changed cluster.

Started by ``python -m bench placements``. The controller's functions run on a cache without an API: which Placements a
change wakes, and the CPU time until all of them are planned. Every fifth Placement has a CEL expression.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

from bench.table import Table
from syncline.control.cache import Cache
from syncline.control.plan import Create, SetStatus
from syncline.fleet.hub.placement.controller import placement_controller
from syncline.fleet.hub.placement.observe import BINDINGS, CLUSTERS, DECISIONS, PLACEMENTS, SCORES, SETS
from syncline.fleet.hub.sets import CLUSTER_SET_LABEL
from syncline.kube.kinds.managedclusters import hub_cluster_crds
from syncline.kube.mapper import Mapper
from syncline.kube.objects import Obj, ObjectRef, ResourceInfo, dig, ref_of

CLUSTER_COUNT, PLACEMENT_COUNT, SET_COUNT = 2_000, 50, 4
EXPRESSION = (
    'semver(managedCluster.status.version.kubernetes.substring(1)).isGreaterThan(semver("1.30.0")) '
    '&& managedCluster.metadata.labels.env == "prod"'
)
NOW = datetime(2026, 1, 1, tzinfo=UTC)
GROUP = "cluster.open-cluster-management.io"


class Hub:
    """The controller on a cache; its writes go straight back into it."""

    def __init__(self) -> None:
        self.cache = Cache(_mapper())
        for kind in (CLUSTERS, SETS, BINDINGS, DECISIONS, SCORES, PLACEMENTS):
            self.cache.mark_synced(kind)
        self.controller = placement_controller()

    def plan(self, ref: ObjectRef) -> float:
        """Observe and plan one Placement; return the seconds of CPU that it took."""
        begin = time.process_time()
        observed = self.controller.observe(self.cache, ref)
        assert observed is not None
        plan = self.controller.plan(observed, NOW)
        took = time.process_time() - begin
        for action in plan.actions:
            if isinstance(action, Create):
                self.cache.put(DECISIONS, action.obj)
            elif isinstance(action, SetStatus):
                found = self.cache.get(action.target)
                assert found is not None
                self.cache.put(action.target.group_kind, {**found, "status": action.new})
        return took

    def change(self, name: str, part: str, value: Obj) -> tuple[float, list[ObjectRef]]:
        """Change metadata or spec of a cluster; return the seconds of CPU to find whom it concerns, and those."""
        old = self.cache.get(ObjectRef(*CLUSTERS, "", name))
        assert old is not None
        new = {**old, part: {**old[part], **value}}
        self.cache.put(CLUSTERS, new)
        begin = time.process_time()
        watch = next(one for one in self.controller.watches if one.kind == CLUSTERS)
        assert watch.when is not None
        matters = watch.when(old, new)
        keys = {each for state in (old, new) if matters for each in watch.keys(state, self.cache)}
        return time.process_time() - begin, sorted(keys)


def _mapper() -> Mapper:
    found = []
    for crd in hub_cluster_crds():
        names, version = dig(crd, "spec", "names"), dig(crd, "spec", "versions", 0, "name")
        found.append(
            ResourceInfo(GROUP, version, names["kind"], names["plural"], dig(crd, "spec", "scope") != "Cluster")
        )
    return Mapper(found)


def _cluster(number: int) -> Obj:
    labels = {
        CLUSTER_SET_LABEL: f"s{number % SET_COUNT}",
        "env": ("prod", "dev")[number % 2],
        "region": f"r{number % 7}",
    }
    status = {"version": {"kubernetes": "v1.31.0"}, "clusterClaims": [{"name": "platform", "value": "AWS"}]}
    return _object(
        "v1", "ManagedCluster", f"c{number:04}", spec={"hubAcceptsClient": True}, labels=labels, status=status
    )


def _placement(number: int) -> Obj:
    labels = {"env": "prod"} if number % 2 else {"region": f"r{number % 7}"}
    selector: Obj = {"labelSelector": {"matchLabels": labels}}
    if number % 5 == 0:
        selector = {"celSelector": {"celExpressions": [EXPRESSION]}}
    sets = [f"s{(number + more) % SET_COUNT}" for more in range(2)] if number % 3 else []
    spec = {"predicates": [{"requiredClusterSelector": selector}], "clusterSets": sets}
    return _object("v1beta1", "Placement", f"p{number}", spec=spec, namespace=f"ns{number % 10}", uid=f"u{number}")


def _object(version: str, kind: str, name: str, *, spec: Obj, status: Obj | None = None, **metadata: Any) -> Obj:
    head = {"apiVersion": f"{GROUP}/{version}", "kind": kind, "metadata": {"name": name, **metadata}, "spec": spec}
    return {**head, "status": status} if status else head


def _filled() -> tuple[Hub, list[ObjectRef]]:
    hub = Hub()
    for number in range(CLUSTER_COUNT):
        hub.cache.put(CLUSTERS, _cluster(number))
    for number in range(SET_COUNT):
        name = f"s{number}"
        hub.cache.put(SETS, _object("v1beta2", "ManagedClusterSet", name, spec={}))
        for space in range(10):
            binding = _object("v1beta2", "ManagedClusterSetBinding", name, spec={}, namespace=f"ns{space}")
            hub.cache.put(BINDINGS, binding)
    placements = [_placement(number) for number in range(PLACEMENT_COUNT)]
    for one in placements:
        hub.cache.put(PLACEMENTS, one)
    return hub, [ref_of(one) for one in placements]


def figures(table: Table, *, quick: bool) -> None:
    table.title(f"Placements: {CLUSTER_COUNT:,} clusters, {PLACEMENT_COUNT} Placements (CPU of one process)")
    hub, refs = _filled()
    _row(table, "first selection of all", 0.0, [hub.plan(ref) for ref in refs])
    _row(table, "all again, nothing has changed", 0.0, [hub.plan(ref) for ref in refs])
    changes: Iterable[tuple[str, str, str, Obj]] = (
        (
            "a label that only expressions could read",
            "c0001",
            "metadata",
            {"labels": {**_labels(hub, "c0001"), "x": "1"}},
        ),
        ("a label that some select by", "c0003", "metadata", {"labels": {**_labels(hub, "c0003"), "region": "r9"}}),
        ("a taint", "c0004", "spec", {"taints": [{"key": "k", "effect": "NoSelect"}]}),
    )
    for what, name, part, value in changes:
        found, keys = hub.change(name, part, value)
        _row(table, f"one cluster: {what}", found, [hub.plan(ref) for ref in keys])


def _labels(hub: Hub, name: str) -> Obj:
    return dict(dig(hub.cache.get(ObjectRef(*CLUSTERS, "", name)), "metadata", "labels"))


def _row(table: Table, name: str, found: float, took: list[float]) -> None:
    beside = f"{len(took)} Placements planned, {max(took, default=0) * 1000:.1f} ms at most for one"
    table.row(name, f"{(found + sum(took)) * 1000:.0f} ms", beside)
