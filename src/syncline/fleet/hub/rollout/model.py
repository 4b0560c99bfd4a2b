"""The data of a rollout: clusters in groups, the state of each, and the decision.

Words and rules: ``pkg/apis/cluster/v1alpha1/rollout.go`` of upstream's sdk-go (reference ocm-pull-model §7).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum


class State(StrEnum):
    """How far a cluster is."""

    TO_APPLY = "ToApply"
    """It does not have what is rolled out, or has not said yet how that goes."""
    PROGRESSING = "Progressing"
    SUCCEEDED = "Succeeded"
    FAILED = "Failed"
    TIMED_OUT = "TimeOut"
    """Progressing or failed for longer than the deadline."""
    SKIP = "Skip"
    """It takes no part."""


ENDED_BADLY = frozenset({State.FAILED, State.TIMED_OUT})


@dataclass(frozen=True, slots=True, order=True)
class Group:
    """The key of a decision group of a Placement."""

    index: int = 0
    name: str = ""


@dataclass(frozen=True, slots=True)
class ClusterState:
    """The state of one cluster. ``since``: when it began, if known; ``until``: when the deadline or the minimal time of
    success ends."""

    cluster: str
    state: State
    group: Group = Group()
    since: datetime | None = None
    until: datetime | None = None

    def at(self, until: datetime | None) -> ClusterState:
        return replace(self, until=until)

    @property
    def timed_out(self) -> ClusterState:
        return replace(self, state=State.TIMED_OUT)


@dataclass(frozen=True, slots=True)
class DecisionGroup:
    """A decision group and its clusters."""

    key: Group
    clusters: tuple[str, ...]


def clusters_of(groups: Iterable[DecisionGroup]) -> dict[str, Group]:
    """Return the group of each cluster, by name."""
    return dict(sorted((cluster, group.key) for group in groups for cluster in group.clusters))


@dataclass(frozen=True, slots=True)
class Decision:
    """What the rollout does now.

    ``to_roll_out`` are the clusters that take a place: those that get the change now (ToApply) and those that hold
    their place, because they progress, failed within the deadline, or have not been successful for long enough.
    """

    to_roll_out: tuple[ClusterState, ...] = ()
    timed_out: tuple[ClusterState, ...] = ()
    removed: tuple[ClusterState, ...] = ()
    """Clusters with a state that are not selected any more."""
    too_many_failures: bool = False
    """No further cluster begins."""
    recheck: timedelta | None = None
    """When time alone may change the decision."""


class RolloutError(ValueError):
    """A strategy that cannot be followed; the text is upstream's."""
