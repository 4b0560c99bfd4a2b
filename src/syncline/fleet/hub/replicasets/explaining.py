"""What happens next to each cluster of a ManifestWorkReplicaSet, and why; pure. :func:`explained`.

It asks the plan of the controller, so what it says is what a reconcile with the same objects does.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from syncline.base.action import Action
from syncline.base.clock import format_time
from syncline.control.plan import Create, Delete, Patch
from syncline.fleet.conditions import find_condition
from syncline.fleet.hub.budgets.reserve import Wait, some
from syncline.fleet.hub.replicasets.plan import Part, SetObserved, finish, plan_set
from syncline.fleet.hub.replicasets.status import WAITING
from syncline.fleet.hub.replicasets.works import PLACEMENT_LABEL
from syncline.fleet.hub.rollout.model import ClusterState, Group, State
from syncline.fleet.hub.rollout.states import says_progress
from syncline.fleet.hub.rollout.strategy import Kind
from syncline.kube.objects import Obj, dig, is_terminating, labels_of, name_of, namespace_of


class Next(StrEnum):
    """What happens to a cluster next."""

    CREATE = "create"
    UPDATE = "update"
    DELETE = "delete"
    WAIT = "wait"
    """Its turn has not come, or nothing may begin now."""
    RUN = "run"
    """Its agent is at work."""
    SOAK = "soak"
    """It has succeeded, not for long enough yet."""
    NOTHING = "nothing"
    FAILED = "failed"
    STAY = "stay"
    """It is not selected any more, but is not deleted either as long as that is not sure."""


@dataclass(frozen=True, slots=True)
class Outlook:
    """One cluster of one placement. ``state``: of the roll-out, empty without a work as the template; ``budget``: the
    FleetDisruptionBudget it waits for; ``until``: when time changes the outlook."""

    cluster: str
    placement: str
    group: Group
    state: str
    next: Next
    why: str
    work: str = ""
    budget: str = ""
    until: datetime | None = None


@dataclass(frozen=True, slots=True)
class Explained:
    """The clusters of a set by placement and name, what stands in the way of the whole set, since when it waits for a
    budget (RFC 3339, empty if it does not), and what is done to budgets."""

    clusters: tuple[Outlook, ...]
    problems: tuple[str, ...] = ()
    waits: tuple[Wait, ...] = ()
    waiting_since: str = ""
    reservations: tuple[Action, ...] = ()


def explained(observed: SetObserved, now: datetime) -> Explained:
    """Return what the next reconcile does to each cluster of the set."""
    if is_terminating(observed.obj):
        return _ending(observed)
    plan = plan_set(observed, now)
    waits = {cluster: wait for wait in plan.waits for cluster in wait.clusters}
    deleted = [one for one in plan.actions if isinstance(one, Delete)]
    rows = [row for part in plan.parts for row in _Part(observed, part, waits, now).rows()]
    planned = {part.name for part in plan.parts}
    rows += [
        Outlook(one.namespace, "", Group(), "", Next.DELETE, one.reason, one.name)
        for one in deleted
        if _placement_of(observed, one) not in planned
    ]
    condition = find_condition(dig(observed.obj, "status", "conditions") or (), WAITING) or {}
    since = str(condition.get("lastTransitionTime") or "") if condition.get("status") == "True" else ""
    return Explained(
        tuple(sorted(rows, key=lambda row: (row.placement, row.cluster))),
        (*plan.errors, *_missing(observed), *_unnamed(plan.status)),
        plan.waits,
        since if plan.waits else "",
        tuple(action for step in plan.reservations for action in step),
    )


def _ending(observed: SetObserved) -> Explained:
    _, done = finish(observed)
    text = "the set is being deleted"
    rows = tuple(
        Outlook(
            namespace_of(one), labels_of(one).get(PLACEMENT_LABEL, ""), Group(), "", Next.DELETE, text, name_of(one)
        )
        for one in observed.works
    )
    waits = f"{text}; it waits until {len(rows)} works are gone (cascadeDeletionPolicy Foreground)"
    return Explained(rows, () if done else (waits,))


def _missing(observed: SetObserved) -> Iterator[str]:
    """Say which placements do not exist; those after the first one are not looked at, as upstream."""
    names = [str(one.get("name") or "") for one in dig(observed.obj, "spec", "placementRefs") or ()]
    missing = next((name for name in names if name not in observed.placements), None)
    if missing is not None:
        yield f"Placement {missing} does not exist; the works of it and of the placements after it stay as they are"


def _unnamed(status: Obj) -> Iterator[str]:
    condition = find_condition(status.get("conditions") or (), "ManifestworkApplied") or {}
    if condition.get("reason") == "InvalidManifestWorkName":
        yield str(condition.get("message"))


def _placement_of(observed: SetObserved, deletion: Delete) -> str:
    found = (one for one in observed.works if (namespace_of(one), name_of(one)) == (deletion.namespace, deletion.name))
    return next((labels_of(one).get(PLACEMENT_LABEL, "") for one in found), "")


class _Part:
    """The outlook of one placement's clusters."""

    def __init__(self, observed: SetObserved, part: Part, waits: Mapping[str, Wait], now: datetime) -> None:
        self._observed, self._part, self._waits, self._now = observed, part, waits, now
        mine = (one for one in observed.works if labels_of(one).get(PLACEMENT_LABEL) == part.name)
        self._works = {namespace_of(one): one for one in mine}
        self._actions = {_cluster_of(one): one for one in part.actions}
        self._held = {one.cluster: one for one in (*part.decision.to_roll_out, *part.decision.timed_out)}

    def rows(self) -> Iterator[Outlook]:
        for cluster in sorted({*self._part.selected, *self._works}):
            known = self._held.get(cluster) or self._part.states.get(cluster)
            move, why, until = self._outlook(cluster, known)
            wait = self._waits.get(cluster) if move is Next.WAIT else None
            yield Outlook(
                cluster,
                self._part.name,
                self._part.selected.get(cluster, Group()),
                known.state.value if known is not None and cluster in self._part.states else "",
                move,
                why if wait is None else wait.why,
                name_of(self._works[cluster]) if cluster in self._works else "",
                wait.budget if wait is not None else "",
                until,
            )

    def _outlook(self, cluster: str, known: ClusterState | None) -> tuple[Next, str, datetime | None]:
        action = self._actions.get(cluster)
        if isinstance(action, Delete):
            return Next.DELETE, action.reason, None
        if action is not None:
            return (Next.CREATE if isinstance(action, Create) else Next.UPDATE), action.reason, None
        if cluster not in self._part.selected:
            return Next.STAY, self._part.error or f"Placement {self._part.name} does not select it any more", None
        if known is None or cluster not in self._part.states:
            return Next.WAIT, self._turn(cluster), None
        return self._under_way(cluster, known)

    def _under_way(self, cluster: str, known: ClusterState) -> tuple[Next, str, datetime | None]:
        until = known.until
        by = f" until {format_time(until)}" if until is not None else ""
        match known.state:
            case State.SUCCEEDED if until is not None and self._now < until:
                return Next.SOAK, f"its work has succeeded; that must last{by} (minSuccessTime)", until
            case State.SUCCEEDED:
                return Next.NOTHING, "its work has succeeded", None
            case State.PROGRESSING:
                return Next.RUN, f"its agent applies the work{by}", until
            case State.FAILED:
                text = f"its work is degraded; it keeps its place{by}" + ("" if by else " (no progressDeadline)")
                return Next.FAILED, text, until
            case State.TIMED_OUT:
                return Next.FAILED, f"its work has not succeeded{by} (progressDeadline)", None
            case _:
                return Next.RUN, self._to_apply(cluster), None

    def _to_apply(self, cluster: str) -> str:
        work = self._works[cluster]
        applied = find_condition(dig(work, "status", "conditions") or (), "Applied") or {}
        about = dig(work, "metadata", "generation")
        if applied.get("status") != "True" or applied.get("observedGeneration") != about:
            said = applied.get("message") if applied.get("observedGeneration") == about else ""
            return "its agent has not applied the work" + (f": {said}" if said else " yet")
        if not says_progress(work):
            return (
                "its work is applied, but no condition rule says how it progresses, so it never counts as succeeded; "
                "add a rule for the condition Progressing to manifestWorkTemplate.manifestConfigs"
            )
        return "its work is applied; its agent has not said how it progresses"

    def _turn(self, cluster: str) -> str:
        """Say why a cluster that is selected does not begin."""
        part = self._part
        if part.error:
            return part.error
        if part.decision.too_many_failures:
            failed = sorted(one.cluster for one in self._held.values() if one.state in (State.FAILED, State.TIMED_OUT))
            return f"more clusters have failed than maxFailures allows ({some(failed)}); no further one begins"
        held = sorted(one.cluster for one in part.decision.to_roll_out if one.cluster not in self._waits)
        if not held:
            first = sorted(self._waits.keys() & part.selected.keys())
            for_what = {wait.budget or "other reasons" for wait in self._waits.values()}
            return f"it comes after {some(first)}, held back by {', '.join(sorted(for_what))}"
        if part.kind is Kind.PROGRESSIVE and part.selected[cluster].index in {part.selected[one].index for one in held}:
            return f"all places of the roll-out are taken by {some(held)} (maxConcurrency)"
        group = min((part.selected[one] for one in held), default=Group())
        name = f" {group.name!r}" if group.name else ""
        return f"decision group {group.index}{name} comes first: {some(held)}"


def _cluster_of(action: Action) -> str:
    if isinstance(action, Create):
        return namespace_of(action.obj)
    assert isinstance(action, Patch | Delete), "a roll-out creates, patches and deletes"
    return action.namespace
