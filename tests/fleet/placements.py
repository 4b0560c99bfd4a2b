"""One pass of our placement controller over the objects of a case, in the words of the recordings."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any

from tests.fleet.recordings import sparse, untimed

from syncline.control.plan import Create, Delete, Emit, Patch, Requeue, Retry, SetStatus, Stalled
from syncline.fleet.hub.placement.grouping import Group, pages
from syncline.fleet.hub.placement.model import PLACEMENT_LABEL, Cluster, Code, Hub, decided_names
from syncline.fleet.hub.placement.plan import Observed, PlacementPlan, plan_placement
from syncline.kube.objects import Obj, labels_of, name_of, namespace_of
from syncline.kube.patching.patches import json_merge_patch

Pass = dict[str, Any]


def hub_of(given: Pass) -> Hub:
    placement = given["placement"]
    namespace, name = namespace_of(placement), name_of(placement)
    elsewhere: dict[str, int] = {}
    own, named = [], {}
    for one in given.get("decisions") or ():
        mine = namespace_of(one) == namespace and labels_of(one).get(PLACEMENT_LABEL) == name
        if namespace_of(one) == namespace:
            named[name_of(one)] = one
        if mine:
            own.append(one)
            continue
        for cluster in decided_names(one):
            elsewhere[cluster] = elsewhere.get(cluster, 0) + 1
    return Hub(
        clusters={name_of(one): Cluster.of(one) for one in given.get("clusters") or ()},
        sets={name_of(one): one for one in given.get("sets") or ()},
        bindings=tuple(one for one in given.get("bindings") or () if namespace_of(one) == namespace),
        decisions=tuple(own),
        named=named,
        elsewhere=elsewhere,
        scores={(namespace_of(one), name_of(one)): one for one in given.get("scores") or ()},
    )


def one_pass(given: Pass, now: datetime) -> Pass:
    placement = given["placement"]
    uid = placement["metadata"].setdefault("uid", "uid-placement")
    assert uid, "owners have a uid"
    plan = plan_placement(Observed(placement, hub_of(given)), now)
    after = {(namespace_of(one), name_of(one)): one for one in given.get("decisions") or ()}
    events, created = _carried_out(plan, after)
    found = plan.schedule
    status = next((one.new for one in plan.status if isinstance(one, SetStatus)), placement.get("status") or {})
    result: Pass = {
        "scheduled": found is not None,
        "placementStatus": status,
        "placementDecisions": [_shown(one) for one in after.values()],
        "events": _as_recorded(events, created),
        "error": _error(plan),
        "requeueAfter": plan.outcome.after_s if isinstance(plan.outcome, Requeue) else None,
    }
    if found is not None:
        result |= {
            "selected": [one.name for one in found.selected],
            "unscheduled": found.unscheduled,
            "filters": [{"name": one.name, "clusters": [each.name for each in one.clusters]} for one in found.filters],
            "prioritizers": [
                {"name": one.name, "weight": one.weight, "scores": dict(one.scores)} for one in found.prioritizers
            ],
            "scores": dict(found.totals),
            "status": {
                "code": int(found.status.code),
                "plugin": found.status.plugin,
                "message": found.status.message,
            },
        }
    return result


def _error(plan: PlacementPlan) -> str | None:
    """Return the error of the pass. That of a warning is one too where the end of a toleration comes first."""
    if isinstance(plan.outcome, Retry):
        return plan.outcome.error
    if isinstance(plan.outcome, Stalled):
        return plan.outcome.reason
    return plan.status_found.message if plan.status_found.code is Code.WARNING else None


def _carried_out(plan: PlacementPlan, after: dict[tuple[str, str], Obj]) -> tuple[list[Emit], set[str]]:
    """The writes of a plan on the decisions of a case; the Events, and the names of new decisions."""
    events: list[Emit] = []
    created: set[str] = set()
    for action in [each for step in plan.steps for each in step]:
        match action:
            case Create():
                after[namespace_of(action.obj), name_of(action.obj)] = action.obj
                created.add(name_of(action.obj))
            case SetStatus():
                key = (action.namespace, action.name)
                after[key] = {**after[key], "status": action.new}
            case Patch():
                key = (action.namespace, action.name)
                after[key] = json_merge_patch(after[key], action.body)
            case Delete():
                del after[action.namespace, action.name]
            case Emit():
                events.append(action)
            case _:
                raise AssertionError(action)
    return events, created


def _as_recorded(events: list[Emit], created: set[str]) -> list[str]:
    """The API of the recordings keeps the status of what is created, so a new page has no update."""
    shown = [f"{'Warning' if one.warning else 'Normal'} {one.event_reason} {one.message}" for one in events]
    later = tuple(f"Decision {name} is updated " for name in created)
    left = [one for one in shown if not one.split(" ", 2)[2].startswith(later or ("\0",))]
    updates = any(" DecisionUpdate " in one for one in left)
    return [one for one in left if updates or " ScoreUpdate " not in one]


def _shown(decision: Obj) -> Obj:
    metadata = decision["metadata"]
    return {
        "name": name_of(decision),
        "namespace": namespace_of(decision),
        "labels": labels_of(decision),
        "ownerReferences": metadata.get("ownerReferences"),
        "decisions": decided_names(decision),
    }


def differences(expect: Pass, got: Pass) -> dict[str, tuple[Any, Any]]:
    """The fields that differ, by the rules of the recordings."""
    found = {}
    for name, read in _READS.items():
        pair = (read(expect), read(got))
        if pair[0] != pair[1]:
            found[name] = pair
    return found


def _by_name(listed: Any) -> Any:
    return sorted(
        (one["name"], one["weight"], tuple(sorted((k, v) for k, v in (one["scores"] or {}).items() if v)))
        for one in listed or ()
    )


def _status(given: Pass) -> Any:
    status = {"numberOfSelectedClusters": 0, **(given["placementStatus"] or {})}
    return sparse({**status, "conditions": untimed(status.get("conditions"))})


def _rounded(seconds: float | None) -> int | None:
    return None if seconds is None else 5 * round(seconds / 5)


_CEL = "compilation failed: "


def _until_compiler(text: str) -> str:
    """The compiler's own text does not count."""
    return text.partition(_CEL)[0] + _CEL if _CEL in text else text


def _scheduler_status(given: Pass) -> Any:
    status = given.get("status") or {}
    return (status.get("code"), status.get("plugin"), _until_compiler(status.get("message") or ""))


_READS = {
    "scheduled": lambda x: x["scheduled"],
    "selected": lambda x: x.get("selected") or [],
    "unscheduled": lambda x: x.get("unscheduled") or 0,
    "filters": lambda x: [(one["name"], sorted(one["clusters"] or ())) for one in x.get("filters") or ()],
    "prioritizers": lambda x: _by_name(x.get("prioritizers")),
    "scores": lambda x: {k: v for k, v in (x.get("scores") or {}).items() if v},
    "status": _scheduler_status,
    "requeueAfter": lambda x: _rounded(x.get("requeueAfter")),
    "placementStatus": lambda x: _cut(_status(x)),
    "placementDecisions": lambda x: sorted(repr(_sorted(sparse(one))) for one in x["placementDecisions"] or ()),
    "events": lambda x: sorted(set(x.get("events") or ())),
    "error": lambda x: bool(x.get("error")),
}


def _sorted(value: Any) -> Any:
    if isinstance(value, dict):
        return [(key, _sorted(value[key])) for key in sorted(value)]
    return [_sorted(one) for one in value] if isinstance(value, list) else value


def _cut(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _cut(one) for key, one in value.items()}
    return _until_compiler(value) if isinstance(value, str) else value


Paged = dict[str, frozenset[str]]


def paged(*groups: Iterable[str]) -> Paged:
    """The clusters of each page of decision groups."""
    placement = {"metadata": {"name": "pl", "namespace": "ns", "uid": "u"}}
    made = pages(placement, [Group(str(at), tuple(sorted(one))) for at, one in enumerate(groups)])
    return {name_of(one): frozenset(decided_names(one)) for one in made.decisions}
