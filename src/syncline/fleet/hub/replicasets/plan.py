"""The plan of a ManifestWorkReplicaSet: which works are written and deleted, and its status; pure. :func:`plan_set`.

Rules: the deploy and the status part of upstream's controller (reference ocm-pull-model §7). Each placement of the set
rolls out by its own strategy; a cluster in two placements gets two works, as upstream.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final

from syncline.base.action import Action
from syncline.control.plan import Delete
from syncline.fleet.conditions import condition, with_condition
from syncline.fleet.hub.placement.model import GROUP_INDEX_LABEL, GROUP_NAME_LABEL
from syncline.fleet.hub.replicasets.status import Counts, applied_condition, count_works, summary
from syncline.fleet.hub.replicasets.works import (
    PLACEMENT_LABEL,
    set_key,
    template_differs,
    work_of,
    write_work,
)
from syncline.fleet.hub.rollout.decide import decide
from syncline.fleet.hub.rollout.model import ClusterState, DecisionGroup, Group, RolloutError, State, clusters_of
from syncline.fleet.hub.rollout.states import state_of
from syncline.fleet.hub.rollout.strategy import strategy_of
from syncline.kube.objects import Obj, dig, labels_of, name_of, namespace_of
from syncline.kube.selectors import label_value_problems

VERIFIED, ROLLED_OUT, APPLIED = "PlacementVerified", "PlacementRolledOut", "ManifestworkApplied"
_DECISION_LABEL: Final = "cluster.open-cluster-management.io/placement"


@dataclass(frozen=True, slots=True)
class SetObserved:
    """What a plan needs: the set, its works (:func:`~syncline.fleet.hub.replicasets.works.works_of_set`), and the
    Placements and PlacementDecisions of its namespace."""

    obj: Obj
    works: tuple[Obj, ...] = ()
    placements: Mapping[str, Obj] = field(default_factory=dict)
    decisions: tuple[Obj, ...] = ()


@dataclass(frozen=True, slots=True)
class SetPlan:
    """``errors`` make the key be tried again; ``recheck``: when time alone may go on with a rollout."""

    actions: tuple[Action, ...]
    status: Obj
    errors: tuple[str, ...] = ()
    recheck: timedelta | None = None


def plan_set(observed: SetObserved, now: datetime) -> SetPlan:
    """Return the plan of one set that is not being deleted."""
    obj = observed.obj
    status: Obj = {"summary": summary(0, Counts()), **(obj.get("status") or {})}
    key = set_key(obj)
    if problems := label_value_problems(key):
        message = (
            f'ManifestWork owner reference "{key}" (namespace.name) is not a valid label value: {"; ".join(problems)}; '
            "recreate the ManifestWorkReplicaSet with a shorter namespace and/or name so the combined length is at "
            "most 63 characters"
        )
        return SetPlan((), _with(status, now, condition(APPLIED, "False", "InvalidManifestWorkName", message)))
    references = dig(obj, "spec", "placementRefs") or []
    names = [str(one.get("name") or "") for one in references]
    actions: list[Action] = [
        Delete.of(work, "its placement is not in the set any more")
        for work in observed.works
        if labels_of(work).get(PLACEMENT_LABEL) not in names
    ]
    parts: list[_Part] = []
    for name, reference in zip(names, references, strict=True):
        if name not in observed.placements:
            verified = condition(VERIFIED, "False", "PlacementDecisionNotFound")
            made = tuple(actions) + tuple(action for part in parts for action in part.actions)
            return SetPlan(made, _with(status, now, verified))
        parts.append(_deploy(observed, name, reference.get("rolloutStrategy") or {}, now))
    status = _status(status, observed, parts, now)
    rechecks = [part.recheck for part in parts if part.recheck is not None]
    return SetPlan(
        (*actions, *(action for part in parts for action in part.actions)),
        status,
        tuple(part.error for part in parts if part.error),
        min(rechecks, default=None),
    )


@dataclass(frozen=True, slots=True)
class _Part:
    """What one placement of the set gets. ``clusters``: those that have, or get now, what is rolled out."""

    name: str
    actions: tuple[Action, ...] = ()
    clusters: frozenset[str] = frozenset()
    succeeded: int = 0
    recheck: timedelta | None = None
    error: str = ""


def _deploy(observed: SetObserved, name: str, strategy: Obj, now: datetime) -> _Part:
    works = {namespace_of(one): one for one in observed.works if labels_of(one).get(PLACEMENT_LABEL) == name}
    states = {at: state_of(one) for at, one in works.items() if not template_differs(observed.obj, one, name)}
    succeeded = sum(one.state is State.SUCCEEDED for one in states.values())
    try:
        groups = decision_groups(name, observed.decisions)
        decision = decide(strategy_of(strategy), groups, states.values(), now)
    except RolloutError as error:
        return _Part(name, error=str(error))
    selects = _selected(observed.placements[name])
    if works and selects and not groups:
        why = f"Placement {name} selects {selects} clusters but has no PlacementDecisions; its works stay until it has"
        return _Part(name, clusters=frozenset(states), succeeded=succeeded, error=why)
    actions: list[Action] = []
    clusters = set(states)
    for state in decision.to_roll_out:
        if state.state is State.TO_APPLY:
            clusters.add(state.cluster)
            write = write_work(work_of(observed.obj, state.cluster, name), works.get(state.cluster), _why(state))
            actions += [write] if write else []
    selected = clusters_of(groups)
    for cluster, work in works.items():
        if cluster not in selected:
            clusters.discard(cluster)
            actions.append(Delete.of(work, f"Placement {name} does not select the cluster any more"))
    return _Part(name, tuple(actions), frozenset(clusters), succeeded, decision.recheck)


def _why(state: ClusterState) -> str:
    group = f" {state.group.name!r}" if state.group.name else ""
    return f"the rollout has reached the cluster (decision group {state.group.index}{group})"


def decision_groups(placement: str, decisions: Iterable[Obj]) -> list[DecisionGroup]:
    """Return the decision groups of a Placement, from the labels of its PlacementDecisions. Raises
    :class:`RolloutError` for one without a number."""
    found: dict[Group, list[str]] = {}
    for one in decisions:
        labels = labels_of(one)
        if labels.get(_DECISION_LABEL) != placement:
            continue
        index = labels.get(GROUP_INDEX_LABEL, "")
        if not (index.isascii() and index.isdigit()):
            why = f'strconv.Atoi: parsing "{index}": invalid syntax'
            raise RolloutError(f"incorrect group index: {why}")
        clusters = found.setdefault(Group(int(index), labels.get(GROUP_NAME_LABEL, "")), [])
        clusters += [str(each.get("clusterName") or "") for each in dig(one, "status", "decisions") or ()]
    return [DecisionGroup(key, tuple(found[key])) for key in sorted(found)]


def _status(status: Obj, observed: SetObserved, parts: Sequence[_Part], now: datetime) -> Obj:
    """Return the status: counts of the placements, then the conditions they make."""
    done = [part for part in parts if part.clusters or not part.error]
    selected = sum(_selected(observed.placements[part.name]) for part in done)
    total = sum(len(part.clusters) for part in done)
    counts = {part.name: _counted(observed, part.name) for part in done} if total else {}
    all_counts = sum(counts.values(), Counts())
    verified = ("True", "AsExpected") if total else ("False", "PlacementDecisionEmpty")
    complete = selected == sum(part.succeeded for part in done)
    rolled_out = ("True", "Complete") if complete else ("False", "Progressing")
    status = {
        **status,
        "summary": summary(total, all_counts),
        "placementSummary": [_placement_summary(observed, part, counts.get(part.name, Counts())) for part in done],
    }
    return _with(
        status,
        now,
        condition(VERIFIED, *verified),
        condition(ROLLED_OUT, *rolled_out),
        applied_condition(APPLIED, total, all_counts),
    )


def _counted(observed: SetObserved, name: str) -> Counts:
    works = [one for one in observed.works if labels_of(one).get(PLACEMENT_LABEL) == name]
    return count_works(one for one in works if not template_differs(observed.obj, one, name))


def _selected(placement: Obj) -> int:
    return int(dig(placement, "status", "numberOfSelectedClusters") or 0)


def _placement_summary(observed: SetObserved, part: _Part, counts: Counts) -> Obj:
    placement = observed.placements[part.name]
    groups = len(dig(placement, "status", "decisionGroups") or ())
    text = f"{groups} ({len(part.clusters)} / {_selected(placement)} clusters applied)"
    return {"name": part.name, "availableDecisionGroups": text, "summary": summary(len(part.clusters), counts)}


def _with(status: Obj, now: datetime, *conditions: Obj) -> Obj:
    made = list(status.get("conditions") or ())
    for one in conditions:
        made = with_condition(made, one, now)
    return {**status, "conditions": made}


def finish(observed: SetObserved) -> tuple[tuple[Action, ...], bool]:
    """Return how a set that is being deleted lets its works go, and whether its finalizer may go, too: with the policy
    Foreground only when none is left."""
    left = tuple(Delete.of(one, f"{name_of(observed.obj)} is being deleted") for one in observed.works)
    foreground = dig(observed.obj, "spec", "cascadeDeletionPolicy") == "Foreground"
    return left, not (foreground and left)
