"""The controller of ManifestWorkReplicaSets: connects the planner with the cache and the watches.

Rules: upstream's ``manifestworkreplicasetcontroller`` (reference ocm-pull-model §7): the finalizer comes first, in a
pass of its own; a set that is deleted deletes its works and, with the policy Foreground, waits until they are gone.
"""

from __future__ import annotations

from datetime import datetime
from typing import Final

from syncline.base.action import Action
from syncline.control.controller import Controller, Watch, differ, spec_differs
from syncline.control.plan import Create, Done, Emit, Outcome, Patch, Plan, Requeue, Retry, awaiting_lists, set_status
from syncline.fleet.conditions import find_condition
from syncline.fleet.hub.budgets.observe import BUDGETS, CLUSTERS
from syncline.fleet.hub.replicasets.observe import (
    DECISIONS,
    PLACEMENTS,
    SETS,
    WORKS,
    Looked,
    every_set,
    indices,
    observe,
    set_of_work,
    sets_of_decision,
    sets_of_placement,
    waiting_sets,
)
from syncline.fleet.hub.replicasets.plan import SetPlan, finish, plan_set
from syncline.fleet.hub.replicasets.status import WAITING
from syncline.fleet.hub.replicasets.works import named
from syncline.kube.kinds.manifestworks import REPLICA_SET
from syncline.kube.objects import (
    Obj,
    dig,
    finalizers,
    generation,
    is_terminating,
    labels_of,
    name_of,
    namespace_of,
    resource_version,
    uid_of,
)

CONTROLLER: Final = "manifest-work-replica-set"
"""Name of the controller."""
FINALIZER: Final = "work.open-cluster-management.io/manifest-work-cleanup"
DEBOUNCE_S: Final = 0.2
"""Agents of many clusters report at the same time."""
MOST_IN_PLACE: Final = 200
"""Works up to which a set is planned on the event loop; with more, in a thread."""
UNKNOWN_S: Final = 10.0
"""Seconds until a set is looked at again that waits for something else than a place."""
LONGEST_S: Final = 1800.0
"""A recheck is never further away, as upstream's resync."""


def plan(looked: Looked, now: datetime) -> Plan:
    """Plan one reconcile of a set."""
    obj = looked.observed.obj
    if looked.unlisted:
        return Plan(*awaiting_lists(looked.unlisted))
    if looked.unread:
        why = "; ".join(looked.unread)
        return Plan((), Retry(why), why)
    if is_terminating(obj):
        return _finish(looked)
    if FINALIZER not in finalizers(obj):
        why = "its works are deleted before it is gone"
        return Plan(((_finalizers(obj, [*finalizers(obj), FINALIZER], why),),), why=f"add the finalizer: {why}")
    found = plan_set(looked.observed, now)
    actions = tuple(_named(one, uid_of(obj)) for one in found.actions)
    steps = tuple(step for step in (*found.reservations, actions) if step)
    status = (*set_status(obj, found.status, "how far the roll-out is"), *_events(obj, found))
    return Plan(steps, _outcome(found), _summary(found), status)


def _finish(looked: Looked) -> Plan:
    obj = looked.observed.obj
    if FINALIZER not in finalizers(obj):
        return Plan(why="the set is being deleted, and its works are not ours to delete")
    deletions, done = finish(looked.observed)
    last = _finalizers(obj, [one for one in finalizers(obj) if one != FINALIZER], "its works are deleted")
    steps = tuple(step for step in (deletions, (last,) if done else ()) if step)
    return Plan(steps, why=f"the set is being deleted; {len(looked.observed.works)} of its works are left")


def _finalizers(obj: Obj, wanted: list[str], why: str) -> Patch:
    metadata = {"uid": uid_of(obj), "resourceVersion": resource_version(obj), "finalizers": wanted}
    return Patch(REPLICA_SET, namespace_of(obj), name_of(obj), {"metadata": metadata}, why)


def _named(action: Action, uid: str) -> Action:
    return Create(named(action.obj, uid), action.reason) if isinstance(action, Create) else action


def _outcome(found: SetPlan) -> Outcome:
    if found.errors:
        return Retry("; ".join(found.errors))
    unknown = next((wait for wait in found.waits if not wait.budget), None)
    after = LONGEST_S if found.recheck is None else found.recheck.total_seconds()
    if unknown is not None and after > UNKNOWN_S:
        return Requeue(UNKNOWN_S, unknown.sentence(), background=True)
    if found.recheck is None:
        return Done()
    return Requeue(min(after, LONGEST_S), "a deadline or a minimal time of success ends")


def _summary(found: SetPlan) -> str:
    if found.errors:
        return "; ".join(found.errors)
    have = sum(len(part.clusters) for part in found.parts)
    selected = sum(len(part.selected) for part in found.parts)
    waits = sum(len(wait.clusters) for wait in found.waits)
    return f"{have} of {selected} clusters have the template" + (f", {waits} wait for a budget" if waits else "")


def _events(obj: Obj, found: SetPlan) -> tuple[Emit, ...]:
    """Return an Event when the set begins to wait for a budget, or waits for something else than before."""
    before, after = (
        find_condition(one.get("conditions") or (), WAITING) for one in (obj.get("status") or {}, found.status)
    )
    if after is None or after["status"] != "True" or (before or {}).get("message") == after["message"]:
        return ()
    return (Emit(obj, WAITING, after["message"], CONTROLLER, warning=True, limited=True),)


def replica_set_controller() -> Controller[Looked]:
    """Return the controller of ManifestWorkReplicaSets: one ManifestWork for each cluster that Placements select."""
    return Controller(
        name=CONTROLLER,
        kind=SETS,
        predicate=differ(generation, uid_of, labels_of, is_terminating, finalizers),
        watches=(
            Watch(WORKS, set_of_work, differ(generation, labels_of, is_terminating, _conditions)),
            Watch(DECISIONS, sets_of_decision, differ(labels_of, lambda one: dig(one, "status", "decisions"))),
            Watch(PLACEMENTS, sets_of_placement, differ(_selection)),
            Watch(BUDGETS, every_set, spec_differs),
            Watch(BUDGETS, waiting_sets, differ(lambda one: one.get("status"))),
        ),
        reads=(CLUSTERS,),
        debounce_s=DEBOUNCE_S,
        beside=lambda looked: namespace_of(looked.observed.obj) if len(looked.observed.works) > MOST_IN_PLACE else None,
        indices=indices(),
        observe=observe,
        plan=plan,
    )


def _conditions(work: Obj) -> object:
    return dig(work, "status", "conditions")


def _selection(placement: Obj) -> tuple[object, ...]:
    return dig(placement, "status", "numberOfSelectedClusters"), dig(placement, "status", "decisionGroups")
