"""The decision of a rollout: which clusters get the change now; pure. :func:`decide`.

Works and add-ons use it. A cluster keeps its place while it progresses, while it has failed within the deadline, and
while its success is younger than ``minSuccessTime``; further clusters begin as places get free, mandatory groups first.
Failures stop further clusters, never those that have begun. Rules: ``rollout.go`` of upstream's sdk-go.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Set
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from syncline.fleet.hub.rollout.model import (
    ENDED_BADLY,
    ClusterState,
    Decision,
    DecisionGroup,
    RolloutError,
    State,
    clusters_of,
)
from syncline.fleet.hub.rollout.strategy import Kind, Size, Strategy, mandatory_first, size_of


def decide(
    strategy: Strategy,
    groups: Sequence[DecisionGroup],
    states: Iterable[ClusterState],
    now: datetime,
    passed_over: Set[str] = frozenset(),
) -> Decision:
    """Return what the rollout does at ``now``.

    ``groups`` are the decision groups of the Placement, ``states`` those of the clusters that have what is rolled out.
    ``passed_over`` are clusters that cannot begin now (a budget has no place for them): where clusters begin one by one
    they take no place of those that can; a group still waits for all of its own. Raises :class:`RolloutError` for a
    size that is neither a number nor a percentage.
    """
    selected, listed = clusters_of(groups), list(states)
    current = [one for one in listed if one.cluster in selected]
    removed = tuple(sorted((one for one in listed if one.cluster not in selected), key=lambda one: one.cluster))
    look = _Look(strategy.min_success, strategy.deadline, now, passed_over)
    if strategy.kind is Kind.ALL:
        found = look.by_cluster(groups, len(selected), len(selected), current)
    else:
        found = _progressive(strategy, groups, current, look)
    return replace(found, removed=removed)


def _progressive(
    strategy: Strategy, groups: Sequence[DecisionGroup], current: list[ClusterState], look: _Look
) -> Decision:
    failures = _size("maxFailures", strategy.max_failures, len(clusters_of(groups)), 0)
    mandatory, others = mandatory_first(groups, strategy.mandatory)
    if mandatory:
        found = look.by_group(mandatory, 0, current)
        if found.to_roll_out or found.timed_out:
            return found
    if strategy.kind is Kind.PER_GROUP:
        return look.by_group(others, strategy.max_failures, current)
    total = len(clusters_of(others))
    places = _size("maxConcurrency", strategy.max_concurrency, total, total)
    return look.by_cluster(others, places, failures, current)


def _size(name: str, size: Size, total: int, default: int) -> int:
    try:
        return size_of(size, total, default)
    except RolloutError as error:
        raise RolloutError(f"failed to parse the provided {name}: {error}") from error


@dataclass(slots=True)
class _Places:
    """The clusters that hold a place, and those whose deadline has passed."""

    taken: list[ClusterState] = field(default_factory=list)
    timed_out: list[ClusterState] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _Look:
    """The rules of time of one decision."""

    min_success: timedelta
    deadline: timedelta | None
    now: datetime
    passed_over: Set[str]

    def by_cluster(
        self, groups: Iterable[DecisionGroup], places: int, failures: int, current: list[ClusterState]
    ) -> Decision:
        """Clusters by name, at most ``places`` at a time, none new after more than ``failures``."""
        held, failed = _Places(), 0
        for one in sorted(current, key=lambda one: one.cluster):
            if failed <= failures or one.state is not State.TO_APPLY:
                failed += self._place(one, held) in ENDED_BADLY
            if len(held.taken) >= places:
                return self._decision(held, failed > failures)
        if failed > failures:
            return self._decision(held, True)
        known = {one.cluster for one in current}
        for cluster, group in clusters_of(groups).items():
            if cluster not in known and cluster not in self.passed_over:
                held.taken.append(ClusterState(cluster, State.TO_APPLY, group))
                if len(held.taken) >= places:
                    break
        return self._decision(held, False)

    def by_group(self, groups: Iterable[DecisionGroup], failures: Size, current: list[ClusterState]) -> Decision:
        """All clusters of a group at once; the next group when each of this one has succeeded or ended badly."""
        held, failed, stopped = _Places(), 0, False
        known: dict[str, State] = {}
        for one in current:
            if one.state is not State.TO_APPLY:
                known[one.cluster] = self._place(one, held)
        for group in groups:
            limit, bad = size_of(failures, len(group.clusters), 0), 0
            for cluster in sorted(group.clusters):
                if cluster not in known:
                    held.taken.append(ClusterState(cluster, State.TO_APPLY, group.key))
                elif known[cluster] in ENDED_BADLY:
                    bad += 1
                    stopped = bad > limit
            failed += bad
            if len(held.taken) > failed or stopped:
                break
        return self._decision(held, stopped)

    def _place(self, one: ClusterState, held: _Places) -> State:
        """Give a cluster its place, if it holds one, and return its state after that."""
        if one.state is State.TO_APPLY:
            held.taken.append(one)
        elif one.state is State.SUCCEEDED:
            until = (one.since or self.now) + self.min_success
            if self.now < until:
                held.taken.append(one.at(until))
        elif one.state not in (State.TIMED_OUT, State.SKIP):
            until_deadline = None if self.deadline is None else (one.since or self.now) + self.deadline
            if until_deadline is None or self.now < until_deadline:
                held.taken.append(one.at(until_deadline))
            else:
                held.timed_out.append(one.timed_out.at(until_deadline))
                return State.TIMED_OUT
        return one.state

    def _decision(self, held: _Places, stopped: bool) -> Decision:
        waits = [one.until - self.now for one in held.taken if one.until is not None and one.until > self.now]
        return Decision(
            tuple(held.taken), tuple(held.timed_out), too_many_failures=stopped, recheck=min(waits, default=None)
        )
