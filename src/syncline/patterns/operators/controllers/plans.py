"""The controller of InstallPlans: checks, waits for approval, and carries out steps."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

from syncline.control.cache import Snapshot
from syncline.control.controller import Controller, Watch, differ
from syncline.control.plan import Apply, Create, Done, Outcome, Plan, Requeue, Result, awaiting_lists, set_status
from syncline.kube.errors import Forbidden
from syncline.kube.kinds.operatorlifecycle import SERVICE_VERSION
from syncline.kube.objects import (
    Obj,
    ObjectRef,
    annotations_of,
    copied,
    dig,
    generation,
    is_terminating,
    labels_of,
    name_of,
    namespace_of,
    ref_of,
    uid_of,
)
from syncline.patterns.operators.controllers.looking import (
    GROUPS,
    MANAGER,
    PLANS,
    SUBSCRIPTIONS,
    VERSIONS,
    by_name,
    unlisted,
)
from syncline.patterns.operators.groups import account_of, targets_of
from syncline.patterns.operators.installplans import INSTALLING, RETRY_S, Executed, check, transition
from syncline.patterns.operators.names import GENERATED_BY, MANAGED, owner_labels

_OTHERS = ("PriorityClass", "ConsoleLink", "ConsoleQuickStart", "ConsoleYAMLSample", "ConsoleCLIDownload")

CLUSTER_SCOPED = frozenset(("ClusterRole", "ClusterRoleBinding", "CustomResourceDefinition", *_OTHERS))
"""Kinds of bundles whose objects have no namespace."""
DONE = ("Created", "Present")
MANAGER_LENGTH = 128
"""Characters of the name of a field manager."""


@dataclass(frozen=True, slots=True)
class Looked:
    plan: Obj
    groups: tuple[Obj, ...]
    csvs: Mapping[str, Obj]
    subscriptions: Mapping[str, Obj]
    unlisted: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Step:
    """One step that is not done: what to do (None: it is there already), or that it waits for another one."""

    index: int
    action: Apply | Create | None = None
    waits: bool = False
    problem: str = ""


def plan(looked: Looked, now: datetime) -> Plan:
    """Plan one reconcile of an InstallPlan."""
    if looked.unlisted:
        return Plan(*awaiting_lists(looked.unlisted))
    checked = check(looked.plan, looked.groups, now)
    if not checked.ready:
        said = set_status(looked.plan, checked.status, checked.error) if checked.status is not None else ()
        outcome: Outcome = Requeue(RETRY_S, checked.error, background=True) if checked.error else Done()
        if said and not checked.error:
            outcome = Requeue(1.0, "the service account is noted, then the steps follow")
        return Plan(outcome=outcome, why=checked.error or "nothing is left to do", status=said)
    current = {**looked.plan, "status": checked.status or looked.plan.get("status") or {}}
    if current["status"].get("phase") != INSTALLING:
        status, _ = transition(current, Executed(), now)
        approval = "" if status.get("phase") == INSTALLING else "; waiting for spec.approved"
        why = f"phase {status.get('phase')}{approval}"
        return Plan(why=why, status=set_status(looked.plan, status, why))
    steps = _pending(looked)
    actions = tuple((one.action,) for one in steps if one.action is not None)
    if actions:
        return Plan(actions, Requeue(RETRY_S, "the steps are looked at again"), "the steps are carried out")
    return _after(looked, current, {}, now)


def _pending(looked: Looked) -> list[_Step]:
    """Return the steps that are not done, as far as they can be carried out in this pass."""
    made: list[_Step] = []
    user = _user(looked)
    for index, step in enumerate(dig(looked.plan, "status", "plan", default=None) or ()):
        if step.get("status") in DONE:
            continue
        obj = _manifest(step)
        if obj is None:
            name = step["resource"].get("name")
            made.append(_Step(index, problem=f"error parsing step manifest: {name}"))
            continue
        owner, resolving = looked.csvs.get(str(step.get("resolving") or "")), str(step.get("resolving") or "")
        kind = str(step["resource"].get("kind"))
        if kind == SERVICE_VERSION.kind:
            known = name_of(obj) in looked.csvs
            made.append(_Step(index, None if known else Create(_of_olm(obj), f"step {index + 1}", user=user)))
        elif kind == "Subscription":
            made.append(_Step(index, _subscription(looked, obj, index, user)))
        elif kind == "CustomResourceDefinition":
            made.append(_Step(index, Apply(_of_olm(obj), MANAGER, f"step {index + 1}", force=True, user=user)))
        elif resolving and owner is None:
            made.append(_Step(index, waits=True))
        else:
            wanted = _owned(obj, namespace_of(looked.plan), owner)
            # An account may belong to two versions during an upgrade: each is a manager of its own reference.
            manager = f"{MANAGER}/{resolving}"[:MANAGER_LENGTH]
            made.append(_Step(index, Apply(wanted, manager, f"step {index + 1}", force=True, user=user)))
    return made


def _manifest(step: Obj) -> Obj | None:
    """Return the object of a step; None: it is no object with kind and name."""
    try:
        found = json.loads(step["resource"].get("manifest") or "{}")
    except (ValueError, RecursionError):
        return None
    named = isinstance(found, dict) and isinstance(found.get("metadata"), dict) and found["metadata"].get("name")
    typed = named and isinstance(found.get("kind"), str) and isinstance(found.get("apiVersion"), str)
    return found if typed else None


def _user(looked: Looked) -> str:
    """Return the service account of the OperatorGroup, as whom the steps are carried out; "": as OLM."""
    account, _ = account_of([one for one in looked.groups if targets_of(one)])
    return f"system:serviceaccount:{account['namespace']}:{account['name']}" if account else ""


def _of_olm(obj: Obj) -> Obj:
    metadata = obj.get("metadata") or {}
    return {**obj, "metadata": {**metadata, "labels": {**labels_of(obj), MANAGED: "true"}}}


def _owned(obj: Obj, namespace: str, owner: Obj | None) -> Obj:
    """Return an object of a bundle with OLM's label, owned by its ClusterServiceVersion."""
    made: Obj = _of_olm(copied(obj))
    metadata = made["metadata"]
    metadata.pop("creationTimestamp", None)
    if str(obj.get("kind")) in CLUSTER_SCOPED:
        if owner is not None:
            metadata["labels"] |= owner_labels(name_of(owner), namespace)
        return made
    metadata["namespace"] = namespace
    if owner is not None:
        metadata["ownerReferences"] = [
            {
                "apiVersion": SERVICE_VERSION.api_version,
                "kind": SERVICE_VERSION.kind,
                "name": name_of(owner),
                "uid": uid_of(owner),
                "controller": False,
                "blockOwnerDeletion": False,
            }
        ]
    return made


def _subscription(looked: Looked, obj: Obj, index: int, user: str) -> Create | None:
    if name_of(obj) in looked.subscriptions:
        return None
    annotations = {**annotations_of(obj), GENERATED_BY: name_of(looked.plan)}
    return Create({**obj, "metadata": {**obj["metadata"], "annotations": annotations}}, f"step {index + 1}", user=user)


def _after(looked: Looked, current: Obj, results: Mapping[ObjectRef, Result], now: datetime) -> Plan:
    """Return the plan that writes what became of the steps."""
    steps: list[Obj] = list(dig(current, "status", "plan", default=None) or ())
    error, forbidden, waits = "", False, False
    for one in _pending(looked):
        if one.problem:
            error = one.problem
            continue
        if one.waits:
            waits = True
            continue
        result = results.get(one.action.target) if one.action is not None else None
        if one.action is None:
            steps[one.index] = {**steps[one.index], "status": "Present"}
        elif result is None:
            waits = True
        elif result.ok:
            steps[one.index] = {**steps[one.index], "status": "Created"}
        else:
            error, forbidden = str(result.error), isinstance(result.error, Forbidden)
    status, _ = transition(current, Executed(error, forbidden, waits, tuple(steps)), now)
    busy = status.get("phase") == INSTALLING
    why = error or f"phase {status.get('phase')}"
    outcome: Outcome = Requeue(RETRY_S, why) if busy else Done()
    return Plan(outcome=outcome, why=why, status=set_status(looked.plan, status, why))


def follow_up(looked: Looked, done: Plan, results: tuple[Result, ...], now: datetime) -> tuple[Looked, Plan] | None:
    """Continue once steps were carried out."""
    found = {one.action.target: one for one in results if isinstance(one.action, Apply | Create)}
    if not found:
        return None
    checked = check(looked.plan, looked.groups, now)
    current = {**looked.plan, "status": checked.status or looked.plan.get("status") or {}}
    return looked, _after(looked, current, found, now)


def _observe(cache: Snapshot, ref: ObjectRef) -> Looked | None:
    found = cache.get(ref)
    if found is None or is_terminating(found):
        return None
    namespace = ref.namespace
    return Looked(
        found,
        tuple(cache.objects(GROUPS, namespace)),
        by_name(cache.objects(VERSIONS, namespace)),
        by_name(cache.objects(SUBSCRIPTIONS, namespace)),
        unlisted(cache, (GROUPS, VERSIONS, SUBSCRIPTIONS)),
    )


def _neighbours(obj: Obj, cache: Snapshot) -> Iterable[ObjectRef]:
    """Map an object to the InstallPlans of its namespace that are not done."""
    for one in cache.objects(PLANS, namespace_of(obj)):
        if dig(one, "status", "phase", default="") == INSTALLING:
            yield ref_of(one)


def plan_controller() -> Controller[Looked]:
    return Controller(
        name="install-plan",
        kind=PLANS,
        predicate=differ(
            generation, lambda one: dig(one, "status", "phase"), lambda one: bool(dig(one, "status", "plan"))
        ),
        watches=(
            Watch(VERSIONS, _neighbours, differ()),
            Watch(GROUPS, _neighbours, differ(lambda one: one.get("status"))),
        ),
        reads=(SUBSCRIPTIONS,),
        observe=_observe,
        plan=plan,
        settle=follow_up,
    )
