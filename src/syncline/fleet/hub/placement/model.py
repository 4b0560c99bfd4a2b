"""What scheduling reads and what it returns, frozen."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import IntEnum
from typing import Any, Final

from syncline.kube.objects import Obj, dig, is_terminating, labels_of, name_of

PLACEMENT_LABEL: Final = "cluster.open-cluster-management.io/placement"
GROUP_INDEX_LABEL: Final = "cluster.open-cluster-management.io/decision-group-index"
GROUP_NAME_LABEL: Final = "cluster.open-cluster-management.io/decision-group-name"
DISABLED: Final = "cluster.open-cluster-management.io/experimental-scheduling-disable"
"""Annotation of a Placement: ``"true"`` freezes its decisions."""


@dataclass(frozen=True, slots=True, eq=False)
class Cluster:
    """The parts of a ManagedCluster that scheduling reads."""

    obj: Obj
    name: str
    labels: Mapping[str, str]
    claims: Mapping[str, str]
    taints: tuple[Obj, ...]
    terminating: bool

    @classmethod
    def of(cls, obj: Obj) -> Cluster:
        listed = dig(obj, "status", "clusterClaims") or ()
        claims = {str(one.get("name") or ""): str(one.get("value") or "") for one in listed}
        taints = tuple(dig(obj, "spec", "taints") or ())
        return cls(obj, name_of(obj), labels_of(obj), claims, taints, is_terminating(obj))


@dataclass(frozen=True, slots=True)
class Hub:
    """What the hub knows when a Placement is scheduled."""

    clusters: Mapping[str, Cluster]
    """All clusters by name."""
    sets: Mapping[str, Obj]
    """All ManagedClusterSets by name."""
    bindings: tuple[Obj, ...] = ()
    """The ManagedClusterSetBindings in the Placement's namespace."""
    decisions: tuple[Obj, ...] = ()
    """The Placement's own PlacementDecisions, found by their label."""
    named: Mapping[str, Obj] = field(default_factory=dict)
    """The PlacementDecisions of the namespace by name."""
    elsewhere: Mapping[str, int] = field(default_factory=dict)
    """How often other Placements of all namespaces have selected each cluster."""
    scores: Mapping[tuple[str, str], Obj] = field(default_factory=dict)
    """AddOnPlacementScores by cluster and name."""

    selected_before: frozenset[str] = field(init=False)
    """The clusters of ``decisions``."""

    def __post_init__(self) -> None:
        found = frozenset(name for one in self.decisions for name in decided_names(one))
        object.__setattr__(self, "selected_before", found)


def decided_names(decision: Obj) -> list[str]:
    """Return the names of the clusters in a PlacementDecision."""
    return [str(one.get("clusterName") or "") for one in dig(decision, "status", "decisions") or ()]


class Code(IntEnum):
    """How scheduling ended, as upstream numbers it."""

    SUCCESS = 0
    WARNING = 1
    ERROR = 2
    MISCONFIGURED = 3


@dataclass(frozen=True, slots=True)
class Status:
    """How scheduling ended; ``plugin`` is the filter or prioritizer that says so, empty for none."""

    code: Code = Code.SUCCESS
    plugin: str = ""
    message: str = ""

    @property
    def failed(self) -> bool:
        return self.code in (Code.ERROR, Code.MISCONFIGURED)


SUCCESS: Final = Status()


class Misconfigured(ValueError):
    """A Placement that cannot be scheduled as it is; the text is upstream's."""

    def __init__(self, plugin: str, message: str) -> None:
        super().__init__(message)
        self.status = Status(Code.MISCONFIGURED, plugin, message)


@dataclass(frozen=True, slots=True)
class Filtered:
    """The clusters that one filter, after those before it, leaves."""

    name: str
    clusters: tuple[Cluster, ...]


@dataclass(frozen=True, slots=True)
class Prioritized:
    """The scores of one prioritizer, -100 to 100; a cluster without a score counts as 0."""

    name: str
    weight: int
    scores: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Schedule:
    """The result of scheduling one Placement."""

    bound: tuple[str, ...] = ()
    """The sets that are bound to its namespace."""
    eligible: tuple[str, ...] = ()
    """Those of them that it selects from."""
    candidates: tuple[Cluster, ...] = ()
    filters: tuple[Filtered, ...] = ()
    prioritizers: tuple[Prioritized, ...] = ()
    totals: Mapping[str, int] = field(default_factory=dict)
    """The weighted sum of scores of each cluster that passed all filters."""
    selected: tuple[Cluster, ...] = ()
    """By score, then by name."""
    unscheduled: int = 0
    status: Status = SUCCESS
    requeue_at: datetime | None = None
    """When a toleration of a selected cluster ends."""
    spread_out: Mapping[str, str] = field(default_factory=dict)
    """Why clusters that passed all filters were left out by ``spreadPolicy``."""


def spec_of(placement: Obj) -> dict[str, Any]:
    return dict(placement.get("spec") or {})
