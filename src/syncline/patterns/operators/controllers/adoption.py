"""What belongs to an operator: the label ``operators.coreos.com/PACKAGE.NAMESPACE`` on it, and the Operator object that
lists it (``adoption_controller.go``, ``operator_controller.go``)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from syncline.base.action import Action
from syncline.control.cache import Snapshot
from syncline.control.controller import Controller, Watch, differ
from syncline.control.plan import Create, Patch, Plan, awaiting_lists, set_status
from syncline.kube.kinds.operatorlifecycle import GROUP, OPERATOR
from syncline.kube.objects import (
    GroupKind,
    Obj,
    ObjectRef,
    api_version,
    dig,
    gvk_of,
    is_terminating,
    labels_of,
    name_of,
    namespace_of,
    owner_references,
    ref_of,
    resource_version,
    uid_of,
)
from syncline.patterns.operators.controllers.looking import (
    ACCOUNTS,
    BINDINGS,
    CLUSTER_BINDINGS,
    CLUSTER_ROLES,
    CONDITIONS,
    DEFINITIONS,
    DEPLOYMENTS,
    PLANS,
    ROLES,
    SUBSCRIPTIONS,
    VERSIONS,
    unlisted,
)
from syncline.patterns.operators.names import owner_labels

PREFIX: Final = f"{GROUP}/"
OPERATORS: Final = OPERATOR.group_kind
_PARTS: Final = (ACCOUNTS, ROLES, BINDINGS, DEPLOYMENTS, CONDITIONS)
_CLUSTER_PARTS: Final = (CLUSTER_ROLES, CLUSTER_BINDINGS)
_ALL: Final = (SUBSCRIPTIONS, PLANS, VERSIONS, DEFINITIONS, *_PARTS, *_CLUSTER_PARTS)
_VERSIONS: Final[Mapping[GroupKind, str]] = {
    **dict.fromkeys((SUBSCRIPTIONS, PLANS, VERSIONS), "v1alpha1"),
    CONDITIONS: "v2",
}
"""Versions of kinds whose first one is not ``v1``."""


def operator_name(subscription: Obj) -> str:
    return f"{dig(subscription, 'spec', 'name', default='')}.{namespace_of(subscription)}"


def component_label(operator: str) -> str:
    """Return the label of what belongs to an operator; the name is cut to what a label may hold."""
    return PREFIX + (operator if len(operator) <= 63 else operator[:63].rstrip("._-"))


@dataclass(frozen=True, slots=True)
class Looked:
    """``parts``: what belongs to the operator of a Subscription and has no label."""

    subscription: Obj
    operator: Obj | None
    parts: tuple[Obj, ...]
    unlisted: tuple[str, ...] = ()


def plan(looked: Looked, now: datetime) -> Plan:
    """Label what belongs to an operator, and make its Operator object."""
    if looked.unlisted:
        return Plan(*awaiting_lists(looked.unlisted))
    name = operator_name(looked.subscription)
    label = component_label(name)
    actions: list[Action] = [_labelled(one, label) for one in looked.parts]
    if looked.operator is None:
        body = {"apiVersion": OPERATOR.api_version, "kind": OPERATOR.kind, "metadata": {"name": name}}
        actions.append(Create(body, "a Subscription asks for it"))
    return Plan((tuple(actions),) if actions else (), why=f"{len(looked.parts)} objects get the label {label}")


def _labelled(obj: Obj, label: str) -> Patch:
    body = {"metadata": {"uid": uid_of(obj), "labels": {label: ""}}}
    return Patch(gvk_of(obj), namespace_of(obj), name_of(obj), body, "it belongs to the operator")


def _typed(obj: Obj, kind: GroupKind) -> Obj:
    """Return an object with its kind, which a list leaves out."""
    return {"apiVersion": api_version(kind.group, _VERSIONS.get(kind, "v1")), "kind": kind.kind, **obj}


def _observe(cache: Snapshot, ref: ObjectRef) -> Looked | None:
    subscription = cache.get(ref)
    if subscription is None or is_terminating(subscription):
        return None
    name = operator_name(subscription)
    label = component_label(name)
    found = [_typed(subscription, SUBSCRIPTIONS)]
    status = subscription.get("status") or {}
    plan_ref = dig(status, "installPlanRef", "name", default=None)
    for kind, wanted in ((PLANS, plan_ref), (VERSIONS, status.get("installedCSV"))):
        one = cache.get(ObjectRef(*kind, ref.namespace, str(wanted))) if wanted else None
        if one is not None:
            found.append(_typed(one, kind))
            found += _belonging(cache, one) if kind == VERSIONS else ()
    left = tuple(one for one in found if label not in labels_of(one) and not is_terminating(one))
    return Looked(subscription, cache.get(ObjectRef(*OPERATORS, "", name)), left, unlisted(cache, (OPERATORS, *_ALL)))


def _belonging(cache: Snapshot, csv: Obj) -> Iterable[Obj]:
    marks, namespace = owner_labels(name_of(csv), namespace_of(csv)), namespace_of(csv)
    for kind, where in (*((one, namespace) for one in _PARTS), *((one, "") for one in _CLUSTER_PARTS)):
        for one in cache.objects(kind, where):
            owned = any(each.get("uid") == uid_of(csv) for each in owner_references(one))
            if owned or marks.items() <= labels_of(one).items():
                yield _typed(one, kind)
    for described in dig(csv, "spec", "customresourcedefinitions", "owned", default=None) or ():
        definition = cache.get(ObjectRef(*DEFINITIONS, "", str(described.get("name"))))
        if definition is not None:
            yield _typed(definition, DEFINITIONS)


def _subscriptions(obj: Obj, cache: Snapshot) -> Iterable[ObjectRef]:
    return (ref_of(one) for one in cache.objects(SUBSCRIPTIONS, namespace_of(obj)))


def _installed(subscription: Obj) -> object:
    status = subscription.get("status") or {}
    return status.get("installedCSV"), dig(status, "installPlanRef", "name"), labels_of(subscription)


def adoption_controller() -> Controller[Looked]:
    """Return the controller that labels what belongs to the operator of a Subscription."""
    return Controller(
        name="adoption",
        kind=SUBSCRIPTIONS,
        predicate=differ(_installed),
        watches=(Watch(VERSIONS, _subscriptions, differ(lambda one: dig(one, "status", "phase"), labels_of)),),
        reads=(OPERATORS, PLANS, DEFINITIONS, *_PARTS, *_CLUSTER_PARTS),
        debounce_s=1.0,
        observe=_observe,
        plan=plan,
    )


@dataclass(frozen=True, slots=True)
class Listed:
    operator: Obj
    components: tuple[Obj, ...]
    unlisted: tuple[str, ...] = ()


def list_components(listed: Listed, now: datetime) -> Plan:
    """Write the references to all components of an operator."""
    if listed.unlisted:
        return Plan(*awaiting_lists(listed.unlisted))
    label = component_label(name_of(listed.operator))
    references = sorted(map(_reference, listed.components), key=_place)
    components: Obj = {"labelSelector": {"matchExpressions": [{"key": label, "operator": "Exists"}]}}
    if references:
        components["refs"] = references
    why = f"{len(references)} components"
    return Plan(why=why, status=set_status(listed.operator, {"components": components}, why))


def _place(reference: Obj) -> tuple[str, ...]:
    return tuple(str(reference.get(key) or "") for key in ("kind", "apiVersion", "namespace", "name"))


def _reference(obj: Obj) -> Obj:
    where = {"namespace": namespace_of(obj)} if namespace_of(obj) else {}
    made: Obj = {"apiVersion": obj["apiVersion"], "kind": obj["kind"], "name": name_of(obj), **where}
    conditions = _conditions(obj)
    return made | ({"conditions": conditions} if conditions else {})


def _conditions(obj: Obj) -> list[Obj]:
    """Return the conditions of a component; the phase of a ClusterServiceVersion counts as one."""
    status = obj.get("status") or {}
    kept = ("type", "status", "reason", "message", "lastTransitionTime", "lastUpdateTime")
    if obj.get("kind") == VERSIONS.kind:
        if not status.get("phase"):
            return []
        said = {"type": status["phase"], "status": "True"}
        return [said | {key: status[key] for key in kept[2:] if status.get(key)}]
    found = [one for one in status.get("conditions") or () if one.get("type") and one.get("status")]
    return [{key: one[key] for key in kept if one.get(key)} for one in found]


def _list(cache: Snapshot, ref: ObjectRef) -> Listed | None:
    operator = cache.get(ref)
    if operator is None:
        return None
    label = component_label(ref.name)
    found = (_typed(one, kind) for kind in _ALL for one in cache.objects(kind) if label in labels_of(one))
    return Listed(operator, tuple(found), unlisted(cache, _ALL))


def _operators(obj: Obj, cache: Snapshot) -> Iterable[ObjectRef]:
    labels = {key for key in labels_of(obj) if key.startswith(PREFIX)}
    if labels:
        yield from (ref_of(one) for one in cache.objects(OPERATORS) if component_label(name_of(one)) in labels)


def operator_controller() -> Controller[Listed]:
    """Return the controller of Operator objects."""
    return Controller(
        name="operator-components",
        kind=OPERATORS,
        predicate=differ(resource_version),
        watches=tuple(Watch(kind, _operators) for kind in _ALL),
        debounce_s=2.0,
        observe=_list,
        plan=list_components,
    )
