"""The planner of Placements: :func:`plan_placement` schedules and decides what is written; pure.

PlacementDecisions are created and then get their status; labels of existing ones are repaired in a pass of its own, as
are those of upstream. The status of the Placement is written last. Rules: ``syncPlacement`` and ``bind`` of upstream.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final

from syncline.base.action import Action
from syncline.control.plan import (
    Create,
    Delete,
    Done,
    Emit,
    Outcome,
    Patch,
    Plan,
    Requeue,
    Retry,
    SetStatus,
    Stalled,
    awaiting_lists,
)
from syncline.control.plan import set_status as written_status
from syncline.fleet.hub.placement.grouping import Pages, grouped, pages
from syncline.fleet.hub.placement.memory import Memory
from syncline.fleet.hub.placement.model import DISABLED, SUCCESS, Code, Hub, Schedule, Status, decided_names
from syncline.fleet.hub.placement.ordering import layers
from syncline.fleet.hub.placement.scheduling import schedule
from syncline.fleet.hub.placement.status import status_of
from syncline.fleet.hub.sets import SetError
from syncline.kube.kinds.managedclusters import PLACEMENT_DECISION
from syncline.kube.objects import (
    Obj,
    annotations_of,
    dig,
    is_terminating,
    labels_of,
    name_of,
    namespace_of,
    resource_version,
    uid_of,
)

COMPONENT: Final = "placementController"
"""Who reports the Events, as upstream."""
MAX_SCORES_TEXT: Final = 1000
"""The most characters of scores in an Event."""


@dataclass(frozen=True, slots=True)
class Observed:
    """The planner's input. ``unlisted``: kinds without a first list; ``unread``: why kinds cannot be read."""

    placement: Obj
    hub: Hub
    unlisted: tuple[str, ...] = ()
    unread: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PlacementPlan(Plan):
    """A plan, and how it was found; None where nothing was scheduled."""

    schedule: Schedule | None = None
    status_found: Status = SUCCESS


def plan_placement(observed: Observed, now: datetime, memory: Memory | None = None) -> PlacementPlan:
    """Plan one reconcile of a Placement. ``memory`` keeps what was found before; the plan is the same without it."""
    placement = observed.placement
    if is_terminating(placement):
        return PlacementPlan(why="the Placement is being deleted")
    if annotations_of(placement).get(DISABLED) == "true":
        return PlacementPlan(why=f"the annotation {DISABLED} freezes the decisions")
    if observed.unlisted:
        return PlacementPlan(*awaiting_lists(observed.unlisted))
    if observed.unread:
        why = "; ".join(observed.unread)
        return PlacementPlan((), Retry(why), why)
    try:
        found = schedule(placement, observed.hub, now, memory)
    except SetError as error:
        why = f"a cluster set cannot be read: {error}"
        return PlacementPlan((), Retry(why), why)
    groups = grouped(placement, found.selected)
    status = groups.status if groups.status.failed else found.status
    made = pages(placement, groups.groups)
    steps = bind(placement, observed.hub, made, found, status)
    new = status_of(placement, found, status, made.groups, now)
    return PlacementPlan(
        steps,
        _outcome(found, status, now),
        summary(found, status),
        written_status(placement, new, "the result of scheduling"),
        schedule=found,
        status_found=status,
    )


def summary(found: Schedule, status: Status) -> str:
    """Return in one sentence how a Placement was scheduled."""
    if status.failed:
        return f"misconfigured: {status.message}"
    left = [f"{len(one.clusters)} pass {one.name.rpartition(',')[2]}" for one in found.filters]
    parts = [f"{len(found.candidates)} candidates of {len(found.eligible)} cluster sets", *left]
    parts.append(f"{len(found.selected)} selected")
    if found.unscheduled > 0:
        parts.append(f"{found.unscheduled} more wanted")
    return ", ".join(parts)


def _outcome(found: Schedule, status: Status, now: datetime) -> Outcome:
    if status.failed:
        return Stalled(status.message, "change spec of the Placement")
    if found.requeue_at is not None:  # also with a warning: a back-off may be longer
        after = max((found.requeue_at - now).total_seconds(), 0.0)
        return Requeue(after, "a toleration of a selected cluster ends")
    return Retry(status.message) if status.code is Code.WARNING else Done()


# -- PlacementDecisions ----------------------------------------------------------------------------------------


def bind(placement: Obj, hub: Hub, wanted: Pages, found: Schedule, status: Status) -> tuple[tuple[Action, ...], ...]:
    """Return the steps that make the PlacementDecisions as wanted, and the Events about them."""
    creates: list[Action] = []
    labels: list[Action] = []
    writes: dict[str, Action] = {}
    events: list[Action] = []
    text = _once(lambda: scores_text(found))
    for decision in wanted.decisions:
        live = hub.named.get(name_of(decision))
        if live is None:
            creates.append(Create(_without_status(decision), "a page of decisions is new"))
            events.append(_event(placement, "Create", _said(placement, decision, "created")))
        if _decided(live or {}) != _decided(decision):
            writes[name_of(decision)] = _status(decision, live)
            events.append(_updated(placement, decision, status))
            if found.totals:
                events.append(_event(placement, "Update", text(), subject="Score"))
        elif live is not None and labels_of(live) != labels_of(decision):
            labels.append(_relabelled(decision, live))
    names = {name_of(one) for one in wanted.decisions}
    for live in hub.decisions:
        if name_of(live) not in names:
            writes[name_of(live)] = Delete.of(live, "the page is not needed any more")
            events.append(_event(placement, "Delete", _said(placement, live, "deleted")))
    steps = (creates, labels, *_ordered(hub, wanted, writes), _distinct(events))
    return tuple(tuple(step) for step in steps if step)


def _ordered(hub: Hub, wanted: Pages, writes: dict[str, Action]) -> Iterator[list[Action]]:
    """Yield the writes of pages in the order that hides no cluster (``ordering.py``)."""
    before = {name_of(one): frozenset(decided_names(one)) for one in hub.decisions}
    after = {name_of(one): frozenset(decided_names(one)) for one in wanted.decisions}
    written: set[str] = set()
    for layer in layers(before, after):
        step: list[Action] = []
        for name in sorted(layer.keys() & writes.keys()):
            action = writes[name]
            if isinstance(action, SetStatus) and layer[name] != after[name]:
                decided = [{"clusterName": one, "reason": ""} for one in sorted(layer[name])]
                step.append(replace(action, new={**action.new, "decisions": decided}))
            else:
                step.append(_after_another(action) if name in written else action)
                del writes[name]
            written.add(name)
        yield step
    yield list(writes.values())


def _after_another(action: Action) -> Action:
    """Return a write that follows one of the same plan: the version that was seen is not that of the page any more."""
    if isinstance(action, SetStatus):
        return replace(action, old={**action.old, "decisions": None}, resource_version="")
    return action


def scores_text(found: Schedule) -> str:
    """Return ``cluster:score`` of each scored cluster by name, cut as upstream cuts it."""
    text = ""
    for name in sorted(found.totals):
        part = f"{name}:{found.totals[name]} "
        if len(text) + len(part) > MAX_SCORES_TEXT:
            return text + "......"
        text += part
    return text


def _once(make: Callable[[], str]) -> Callable[[], str]:
    made: list[str] = []

    def value() -> str:
        if not made:
            made.append(make())
        return made[0]

    return value


def _distinct(events: Iterable[Action]) -> list[Action]:
    found: list[Action] = []
    for one in events:
        if one not in found:
            found.append(one)
    return found


def _decided(decision: Obj) -> list[tuple[Any, Any]]:
    listed: Sequence[Obj] = dig(decision, "status", "decisions") or ()
    return [(one.get("clusterName") or "", one.get("reason") or "") for one in listed]


def _without_status(decision: Obj) -> Obj:
    return {key: value for key, value in decision.items() if key != "status"}


def _status(decision: Obj, live: Obj | None) -> SetStatus:
    """Return the write of a page's decisions; that of a new page follows its creation."""
    old: Obj = (live or {}).get("status") or {}
    return SetStatus(
        PLACEMENT_DECISION,
        namespace_of(decision),
        name_of(decision),
        old,
        {**old, "decisions": decision["status"]["decisions"]},
        "the selected clusters have changed",
        resource_version=resource_version(live) if live else "",
        uid=uid_of(live) if live else "",
    )


def _relabelled(decision: Obj, live: Obj) -> Patch:
    wanted: dict[str, str | None] = {**dict.fromkeys(labels_of(live)), **labels_of(decision)}
    changed = {key: value for key, value in wanted.items() if labels_of(live).get(key) != value}
    metadata = {"uid": uid_of(live), "resourceVersion": resource_version(live), "labels": changed}
    body = {"metadata": {key: value for key, value in metadata.items() if value}}
    return Patch(PLACEMENT_DECISION, namespace_of(live), name_of(live), body, "its labels are not those of its group")


def _said(placement: Obj, decision: Obj, what: str) -> str:
    where = f"placement {name_of(placement)} in namespace {namespace_of(placement)}"
    return f"Decision {name_of(decision)} is {what} with {where}"


def _updated(placement: Obj, decision: Obj, status: Status) -> Emit:
    text = _said(placement, decision, "updated")
    if status.code is not Code.WARNING:
        return _event(placement, "Update", text)
    return _event(placement, "Update", f"{text}: {status.message} in plugin {status.plugin}", warning=True)


def _event(placement: Obj, verb: str, message: str, *, subject: str = "Decision", warning: bool = False) -> Emit:
    reason = f"{subject}{verb}"
    return Emit(placement, reason, message, COMPONENT, warning=warning, event_action=f"{reason}d")
