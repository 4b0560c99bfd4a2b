"""The plan of a ManifestWorkReplicaSet: which works are written and deleted, and its status; pure. :func:`plan_set`.

Rules: the deploy and the status part of upstream's controller (reference ocm-pull-model §7). Each placement of the set
rolls out by its own strategy; a cluster in two placements gets two works, as upstream.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from syncline.base.action import Action
from syncline.control.plan import Delete, Patch
from syncline.fleet.conditions import condition, with_condition
from syncline.fleet.hub.budgets.model import NO_BUDGETS, Fleet, Holder
from syncline.fleet.hub.budgets.reserve import Reserving, Wait
from syncline.fleet.hub.placement.model import GROUP_INDEX_LABEL, GROUP_NAME_LABEL
from syncline.fleet.hub.placement.model import PLACEMENT_LABEL as DECISION_LABEL
from syncline.fleet.hub.replicasets.status import Counts, applied_condition, count_works, summary, waiting_condition
from syncline.fleet.hub.replicasets.works import (
    PLACEMENT_LABEL,
    set_key,
    template_differs,
    work_of,
    write_work,
)
from syncline.fleet.hub.rollout.decide import decide
from syncline.fleet.hub.rollout.model import (
    ClusterState,
    Decision,
    DecisionGroup,
    Group,
    RolloutError,
    State,
    clusters_of,
)
from syncline.fleet.hub.rollout.states import is_settled, state_of
from syncline.fleet.hub.rollout.strategy import Kind, Strategy, strategy_of
from syncline.kube.kinds.manifestworks import MANIFEST_WORK
from syncline.kube.objects import (
    Obj,
    dig,
    is_terminating,
    labels_of,
    name_of,
    namespace_of,
    resource_version,
    uid_of,
)
from syncline.kube.selectors import label_value_problems

VERIFIED, ROLLED_OUT, APPLIED = "PlacementVerified", "PlacementRolledOut", "ManifestworkApplied"


@dataclass(frozen=True, slots=True)
class SetObserved:
    """What a plan needs: the set, its works (:func:`~syncline.fleet.hub.replicasets.works.works_of_set`), Placements
    and PlacementDecisions of its namespace, and the disruption budgets with the clusters that they count."""

    obj: Obj
    works: tuple[Obj, ...] = ()
    placements: Mapping[str, Obj] = field(default_factory=dict)
    decisions: tuple[Obj, ...] = ()
    fleet: Fleet = NO_BUDGETS


@dataclass(frozen=True, slots=True)
class Part:
    """What one placement of the set gets. ``clusters``: those that have, or get now, what is rolled out."""

    name: str
    actions: tuple[Action, ...] = ()
    clusters: frozenset[str] = frozenset()
    succeeded: int = 0
    recheck: timedelta | None = None
    error: str = ""
    states: Mapping[str, ClusterState] = field(default_factory=dict)
    """Of the clusters whose work is as the template."""
    selected: Mapping[str, Group] = field(default_factory=dict)
    decision: Decision = field(default_factory=Decision)
    kind: Kind = Kind.ALL


@dataclass(frozen=True, slots=True)
class SetPlan:
    """``reservations`` are steps before the ``actions``. ``errors`` make the key be tried again; ``recheck``: when time
    may go on with a rollout. ``waits``: what a disruption budget holds back."""

    actions: tuple[Action, ...]
    status: Obj
    errors: tuple[str, ...] = ()
    recheck: timedelta | None = None
    reservations: tuple[tuple[Action, ...], ...] = ()
    waits: tuple[Wait, ...] = ()
    parts: tuple[Part, ...] = ()


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
    reserving = _reserving(observed, now)
    parts: list[Part] = []
    verified = True
    for name, reference in zip(names, references, strict=True):
        verified = name in observed.placements
        if not verified:
            break
        parts.append(_deploy(observed, name, reference.get("rolloutStrategy") or {}, reserving, now))
    waits = reserving.waits()
    if verified:
        status = _status(status, observed, parts, now)
    else:
        status = _with(status, now, condition(VERIFIED, "False", "PlacementDecisionNotFound"))
    rechecks = [one for one in (*(part.recheck for part in parts if verified), reserving.recheck()) if one is not None]
    return SetPlan(
        (*actions, *(action for part in parts for action in part.actions)),
        _with(status, now, *waiting_condition(status, waits)),
        tuple(part.error for part in parts if part.error) if verified else (),
        min(rechecks, default=None),
        _reservations(observed, reserving),
        waits,
        tuple(parts),
    )


def _reserving(observed: SetObserved, now: datetime) -> Reserving:
    """Return the places of the set: those of its works that have not succeeded stay, whatever the template says now."""
    if not observed.fleet.budgets:  # also while they are not known: then nothing is written to them
        return Reserving(observed.fleet, Holder.of(observed.obj), now)
    unsettled = {
        namespace_of(work): f"ManifestWork {name_of(work)} has not succeeded"
        for work in observed.works
        if not is_terminating(work) and not is_settled(work)
    }
    seen = {namespace_of(work) for work in observed.works if not is_terminating(work)}
    reserving = Reserving(observed.fleet, Holder.of(observed.obj), now, seen - unsettled.keys())
    for cluster, why in unsettled.items():
        reserving.keep(cluster, why)
    return reserving


def _reservations(observed: SetObserved, reserving: Reserving) -> tuple[tuple[Action, ...], ...]:
    """Return the writes of places. Before one is given back, a patch that changes nothing and names the version of the
    work makes sure that the work is still the one that has succeeded: a cache may be behind."""
    given_back = reserving.given_back()
    checks = tuple(
        _check(work) for work in observed.works if namespace_of(work) in given_back and not is_terminating(work)
    )
    return tuple(step for step in (checks, *reserving.steps()) if step)


def _check(work: Obj) -> Patch:
    metadata = {"uid": uid_of(work), "resourceVersion": resource_version(work)}
    why = "it has succeeded; make sure that it has not changed since"
    return Patch(MANIFEST_WORK, namespace_of(work), name_of(work), {"metadata": metadata}, why)


def _deploy(observed: SetObserved, name: str, given: Obj, reserving: Reserving, now: datetime) -> Part:
    works = {namespace_of(one): one for one in observed.works if labels_of(one).get(PLACEMENT_LABEL) == name}
    states = {at: state_of(one) for at, one in works.items() if not template_differs(observed.obj, one, name)}
    try:
        groups = decision_groups(name, observed.decisions)
        strategy = strategy_of(given)
        decision = decide(strategy, groups, states.values(), now)
        selected = clusters_of(groups)
        if reserving.refused([*_beginning(decision, states), *_overtaken(strategy, selected, states)]):
            decision = decide(strategy, groups, states.values(), now, reserving.shut(selected.keys() - states.keys()))
    except RolloutError as error:
        return Part(name, error=str(error), states=states)
    leaving = [work for cluster, work in works.items() if cluster not in selected]
    unsure = _unsure(observed.placements[name], selected) if leaving else ""
    actions: list[Action] = []
    clusters = set(states)
    for state in decision.to_roll_out:
        if state.state is not State.TO_APPLY:
            continue
        if state.cluster not in states and not reserving.take(state.cluster, f"Placement {name}: {_why(state)}"):
            continue
        clusters.add(state.cluster)
        write = write_work(work_of(observed.obj, state.cluster, name), works.get(state.cluster), _why(state))
        actions += [write] if write else []
    if not unsure:
        actions += [Delete.of(work, f"Placement {name} does not select the cluster any more") for work in leaving]
        clusters -= {namespace_of(work) for work in leaving}
    return Part(
        name,
        tuple(actions),
        frozenset(clusters),
        sum(one.state is State.SUCCEEDED for one in states.values()),
        decision.recheck,
        unsure,
        states,
        selected,
        decision,
        strategy.kind,
    )


def _beginning(decision: Decision, states: Mapping[str, ClusterState]) -> list[str]:
    return [one.cluster for one in decision.to_roll_out if one.state is State.TO_APPLY and one.cluster not in states]


def _overtaken(strategy: Strategy, selected: Mapping[str, Group], states: Mapping[str, ClusterState]) -> list[str]:
    """Return the clusters whose turn by name has come, and that have not begun: if a budget holds them back, they wait
    also while others take all places of the roll-out."""
    last = max(states, default="")
    return [one for one in selected if one < last and one not in states] if strategy.kind is Kind.PROGRESSIVE else []


def _unsure(placement: Obj, selected: Mapping[str, Group]) -> str:
    """Return why no work may be deleted now, empty if the decisions are complete: the pages of a Placement are written
    one after the other, and a new page is empty at first."""
    listed, counted = len(selected), _selected(placement)
    if listed == counted:
        return ""
    return (
        f"Placement {name_of(placement)} selects {counted} clusters and its PlacementDecisions list {listed}; "
        "no work is deleted until they agree"
    )


def _why(state: ClusterState) -> str:
    group = f" {state.group.name!r}" if state.group.name else ""
    return f"the rollout has reached the cluster (decision group {state.group.index}{group})"


def decision_groups(placement: str, decisions: Iterable[Obj]) -> list[DecisionGroup]:
    """Return the decision groups of a Placement, from the labels of its PlacementDecisions. Raises
    :class:`RolloutError` for one without a number."""
    found: dict[Group, list[str]] = {}
    for one in decisions:
        labels = labels_of(one)
        if labels.get(DECISION_LABEL) != placement:
            continue
        index = labels.get(GROUP_INDEX_LABEL, "")
        if not (index.isascii() and index.isdigit()):
            why = f'strconv.Atoi: parsing "{index}": invalid syntax'
            raise RolloutError(f"incorrect group index: {why}")
        clusters = found.setdefault(Group(int(index), labels.get(GROUP_NAME_LABEL, "")), [])
        clusters += [str(each.get("clusterName") or "") for each in dig(one, "status", "decisions") or ()]
    return [DecisionGroup(key, tuple(found[key])) for key in sorted(found)]


def _status(status: Obj, observed: SetObserved, parts: Sequence[Part], now: datetime) -> Obj:
    """Return the status: counts of the placements, then the conditions they make."""
    done = [part for part in parts if part.clusters or not part.error]
    selected = sum(_selected(observed.placements[part.name]) for part in done)
    total = sum(len(part.clusters) for part in done)
    counts = {part.name: _counted(observed, part) for part in done} if total else {}
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


def _counted(observed: SetObserved, part: Part) -> Counts:
    works = (one for one in observed.works if labels_of(one).get(PLACEMENT_LABEL) == part.name)
    return count_works(one for one in works if namespace_of(one) in part.states)


def _selected(placement: Obj) -> int:
    return int(dig(placement, "status", "numberOfSelectedClusters") or 0)


def _placement_summary(observed: SetObserved, part: Part, counts: Counts) -> Obj:
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
