"""The controller of OperatorGroups: the namespaces that they select, their service account, what is wrong with them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

from syncline.base.action import Action
from syncline.base.clock import format_time
from syncline.control.cache import Snapshot
from syncline.control.controller import Controller, Watch, differ
from syncline.control.plan import Patch, Plan, Stalled, awaiting_lists, set_status
from syncline.kube.kinds.operatorlifecycle import OPERATOR_GROUP
from syncline.kube.objects import (
    Obj,
    ObjectRef,
    annotations_of,
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
    ACCOUNTS,
    GROUPS,
    NAMESPACES,
    VERSIONS,
    by_name,
    unlisted,
)
from syncline.patterns.operators.groups import (
    MULTIPLE,
    NO_ACCOUNT,
    print_apis,
    provided_apis,
    read_apis,
    selected_namespaces,
)
from syncline.patterns.operators.names import PROVIDED_APIS
from syncline.patterns.operators.phases import NONE, PENDING, is_copied


@dataclass(frozen=True, slots=True)
class Looked:
    """``others``: how many more groups the namespace has; ``account``: the one that the group names."""

    group: Obj
    others: int
    namespaces: Mapping[str, Obj]
    account: Obj | None
    csvs: tuple[Obj, ...]
    unlisted: tuple[str, ...] = ()


def plan(looked: Looked, now: datetime) -> Plan:
    """Plan one reconcile of an OperatorGroup."""
    if looked.unlisted:
        return Plan(*awaiting_lists(looked.unlisted))
    group = looked.group
    try:
        namespaces = selected_namespaces(group, looked.namespaces)
    except ValueError as error:
        return Plan(outcome=Stalled(str(error), "change spec.targetNamespaces or spec.selector"), why=str(error))
    before = group.get("status") or {}
    status = {**before, "namespaces": list(namespaces)}
    conditions = _conditions(before.get("conditions") or (), looked, now)
    status.pop("conditions", None)
    if conditions:
        status["conditions"] = conditions
    status.pop("serviceAccountRef", None)
    if reference := _reference(looked):
        status["serviceAccountRef"] = reference
    if status != before:
        status["lastUpdated"] = format_time(now)
    return Plan(
        _pruned(looked),
        why=f"{len(namespaces)} namespaces are selected",
        status=set_status(group, status, "the selection"),
    )


def _conditions(before: Iterable[Obj], looked: Looked, now: datetime) -> list[Obj]:
    named = str(dig(looked.group, "spec", "serviceAccountName", default="") or "")
    wanted: dict[str, tuple[str, str]] = {}
    if looked.others:
        wanted[MULTIPLE] = ("MultipleOperatorGroupsFound", "Multiple OperatorGroup found in the same namespace")
    if named and looked.account is None:
        wanted[NO_ACCOUNT] = ("ServiceAccountNotFound", f"ServiceAccount {named} not found")
    known = {str(one.get("type")): one for one in before}
    kept = [one for kind, one in known.items() if kind not in (MULTIPLE, NO_ACCOUNT)]
    for kind, (reason, message) in wanted.items():
        since = known[kind]["lastTransitionTime"] if kind in known else format_time(now)
        new = {"type": kind, "status": "True", "reason": reason, "message": message, "lastTransitionTime": since}
        kept.append(new)
    return kept


def _reference(looked: Looked) -> Obj | None:
    if looked.account is None:
        return None
    where = {"namespace": namespace_of(looked.account), "name": name_of(looked.account)}
    return {"kind": "ServiceAccount", **where, "uid": uid_of(looked.account), "apiVersion": "v1"}


def _pruned(looked: Looked) -> tuple[tuple[Action, ...], ...]:
    """Return what takes APIs from the group's annotation that none of its operators provides any more."""
    group, annotation = looked.group, annotations_of(looked.group).get(PROVIDED_APIS)
    if not annotation or dig(group, "spec", "staticProvidedAPIs", default=False):
        return ()
    if any(
        not is_terminating(one) and dig(one, "status", "phase", default="") in (NONE, PENDING) for one in looked.csvs
    ):
        return ()
    provided = frozenset(api for one in looked.csvs for api in provided_apis(one))
    kept = read_apis(annotation) & provided
    if kept == read_apis(annotation):
        return ()
    body = {"metadata": {"annotations": {PROVIDED_APIS: print_apis(kept)}}}
    return ((Patch(OPERATOR_GROUP, namespace_of(group), name_of(group), body, "no operator provides them"),),)


def _observe(cache: Snapshot, ref: ObjectRef) -> Looked | None:
    group = cache.get(ref)
    if group is None or is_terminating(group):
        return None
    named = str(dig(group, "spec", "serviceAccountName", default="") or "")
    return Looked(
        group,
        len(cache.objects(GROUPS, ref.namespace)) - 1,
        by_name(cache.objects(NAMESPACES)) if dig(group, "spec", "selector", default=None) else {},
        cache.get(ObjectRef(*ACCOUNTS, ref.namespace, named)) if named else None,
        tuple(one for one in cache.objects(VERSIONS, ref.namespace) if not is_copied(one)),
        unlisted(cache, (GROUPS, NAMESPACES, VERSIONS)),
    )


def _neighbours(obj: Obj, cache: Snapshot) -> Iterable[ObjectRef]:
    return (ref_of(one) for one in cache.objects(GROUPS, namespace_of(obj)))


def _selecting(_namespace: Obj, cache: Snapshot) -> Iterable[ObjectRef]:
    return (ref_of(one) for one in cache.objects(GROUPS) if dig(one, "spec", "selector", default=None))


def group_controller() -> Controller[Looked]:
    return Controller(
        name="operator-group",
        kind=GROUPS,
        predicate=differ(generation, annotations_of),
        watches=(
            Watch(GROUPS, _neighbours, differ()),
            Watch(NAMESPACES, _selecting, differ(labels_of)),
            Watch(VERSIONS, _neighbours, differ(lambda one: dig(one, "status", "phase"))),
            Watch(ACCOUNTS, _neighbours, differ()),
        ),
        observe=_observe,
        plan=plan,
    )
