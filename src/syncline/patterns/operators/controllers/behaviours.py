"""The controller of installed operators: it does what the file of each says (``behaving.py``)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from syncline.base.action import Action
from syncline.base.clock import time_or_none
from syncline.control.cache import Snapshot
from syncline.control.controller import Controller, Watch, differ
from syncline.control.plan import Create, Done, Emit, Outcome, Patch, Plan, Requeue
from syncline.kube.objects import (
    GroupKind,
    Obj,
    ObjectRef,
    dig,
    generation,
    gvk_of,
    is_terminating,
    name_of,
    namespace_of,
    ref_of,
    uid_of,
)
from syncline.patterns.operators.behaving import Behaviour, Behaviours, Due, due
from syncline.patterns.operators.controllers.looking import SUBSCRIPTIONS, VERSIONS
from syncline.patterns.operators.phases import SUCCEEDED, is_copied

UNKNOWN: Final = "OperatorUnknown"
WAIT_S: Final = 30.0
"""Seconds until a line that waits for something is looked at again."""


@dataclass(frozen=True, slots=True)
class Looked:
    """``behaviour`` None: nothing is known about the operator of this package."""

    csv: Obj
    package: str
    behaviour: Behaviour | None
    objects: Mapping[GroupKind, Sequence[Obj]]
    existing: frozenset[ObjectRef]
    environment: Mapping[str, str]


def plan(looked: Looked, now: datetime) -> Plan:
    """Plan one reconcile of an installed operator."""
    csv = looked.csv
    if looked.behaviour is None:
        message = f"what the operator of package {looked.package} does is unknown here: it makes nothing"
        return Plan(why=message, status=(Emit(csv, UNKNOWN, message, "operator", limited=True),))
    since = time_or_none(dig(csv, "status", "lastTransitionTime"))
    if since is None:
        return Plan(why="it is not up yet")
    actions: list[Action] = []
    waits: list[tuple[float, str]] = []
    for one in due(looked.behaviour, since, looked.objects, now, looked.environment):
        if one.at > now:
            waits.append(((one.at - now).total_seconds(), f"{one.line.name} at {one.at:%H:%M:%S}"))
        elif one.waits_for and not _done(looked, one):
            waits.append((WAIT_S, f"{one.line.name} waits for {one.waits_for}"))
        else:
            actions += _carried_out(looked, one)
    outcome: Outcome = Done()
    if waits:
        after, why = min(waits)
        outcome = Requeue(max(after, 1.0), why, background=all("waits for" in text for _, text in waits))
    why = "; ".join(text for _, text in waits) or "all that is known of it is done"
    return Plan(tuple((one,) for one in actions), outcome, why)


def _done(looked: Looked, one: Due) -> bool:
    made = one.objects(namespace_of(looked.csv))
    return bool(made) and all(ref_of(obj) in looked.existing for obj in made)


def _carried_out(looked: Looked, one: Due) -> Iterable[Action]:
    """Yield what makes the objects that are missing. What a line saw stays in them: none is made twice."""
    why = f"{looked.package}: {one.line.name}"
    for obj in one.objects(namespace_of(looked.csv)):
        if ref_of(obj) not in looked.existing:
            yield Create(obj, why)
    if one.line.status is not None and one.obj is not None:
        before = one.obj.get("status") or {}
        if not one.line.status.items() <= before.items():
            gvk = gvk_of(one.obj)
            body = {"metadata": {"uid": uid_of(one.obj)}, "status": one.line.status}
            yield Patch(gvk, namespace_of(one.obj), name_of(one.obj), body, why, subresource="status")


def _subscription(cache: Snapshot, csv: Obj) -> Obj:
    """Return the Subscription of an installed operator; an empty one without."""
    for one in cache.objects(SUBSCRIPTIONS, namespace_of(csv)):
        if name_of(csv) in (dig(one, "status", "installedCSV"), dig(one, "status", "currentCSV")):
            return one
    return {}


def _package(subscription: Obj, csv: Obj) -> str:
    return str(dig(subscription, "spec", "name", default="") or name_of(csv).split(".")[0])


def _environment(subscription: Obj) -> dict[str, str]:
    given = dig(subscription, "spec", "config", "env", default=None) or ()
    return {str(one.get("name")): str(one.get("value") or "") for one in given}


def behaviour_controller(behaviours: Behaviours) -> Controller[Looked]:
    """Return the controller for all installed operators."""
    kinds = behaviours.kinds()

    def observe(cache: Snapshot, ref: ObjectRef) -> Looked | None:
        csv = cache.get(ref)
        if csv is None or is_copied(csv) or is_terminating(csv) or dig(csv, "status", "phase") != SUCCEEDED:
            return None
        subscription = _subscription(cache, csv)
        package = _package(subscription, csv)
        found = behaviours.of(package)
        wanted = {kind for line in found.lines for kind in line.kinds()} if found is not None else set()
        objects = {kind: [one for one in cache.objects(kind) if not is_terminating(one)] for kind in wanted}
        existing = frozenset(ref_of(one) for some in objects.values() for one in some)
        return Looked(csv, package, found, objects, existing, _environment(subscription))

    def installed(_obj: Obj, cache: Snapshot) -> Iterable[ObjectRef]:
        return (ref_of(one) for one in cache.objects(VERSIONS) if dig(one, "status", "phase") == SUCCEEDED)

    return Controller(
        name="operator",
        kind=VERSIONS,
        predicate=differ(lambda one: dig(one, "status", "phase"), is_terminating),
        watches=tuple(Watch(kind, installed, differ(generation)) for kind in sorted(kinds)),
        reads=(SUBSCRIPTIONS,),
        observe=observe,
        plan=plan,
    )
