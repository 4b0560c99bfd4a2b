"""The controller of labels on namespaces: by them webhooks find the namespaces of an OperatorGroup
(``syncNamespace``)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from syncline.control.cache import Snapshot
from syncline.control.controller import Controller, Watch, differ
from syncline.control.plan import Patch, Plan, awaiting_lists
from syncline.kube.objects import GVK, Obj, ObjectRef, is_terminating, labels_of, name_of, ref_of
from syncline.patterns.operators.controllers.looking import GROUPS, NAMESPACES, unlisted
from syncline.patterns.operators.groups import targets_of
from syncline.patterns.operators.names import ALL_NAMESPACES
from syncline.patterns.operators.serving import GROUP_LABEL, group_label

_NAMESPACE = GVK("", "v1", "Namespace")


@dataclass(frozen=True, slots=True)
class Looked:
    """``wanted``: the labels of groups that select the namespace."""

    namespace: Obj
    wanted: frozenset[str]
    unlisted: tuple[str, ...] = ()


def plan(looked: Looked, now: datetime) -> Plan:
    """Plan one reconcile of a namespace."""
    if looked.unlisted:
        return Plan(*awaiting_lists(looked.unlisted))
    found = {label for label in labels_of(looked.namespace) if label.startswith(GROUP_LABEL)}
    why = f"{len(looked.wanted)} OperatorGroups with a selection select it"
    if found == looked.wanted:
        return Plan(why=why)
    labels = {**dict.fromkeys(sorted(found - looked.wanted)), **dict.fromkeys(sorted(looked.wanted), "")}
    body = {"metadata": {"labels": labels}}
    return Plan(((Patch(_NAMESPACE, "", name_of(looked.namespace), body, why),),), why=why)


def _observe(cache: Snapshot, ref: ObjectRef) -> Looked | None:
    namespace = cache.get(ref)
    if namespace is None or is_terminating(namespace):
        return None
    groups = (one for one in cache.objects(GROUPS) if not is_terminating(one))
    mine = frozenset(group_label(one) for one in groups if ref.name in targets_of(one))
    return Looked(namespace, mine, unlisted(cache, (GROUPS,)))


def _selected(group: Obj, cache: Snapshot) -> Iterable[ObjectRef]:
    if targets_of(group) == (ALL_NAMESPACES,):
        return ()
    label = group_label(group)
    return (
        ref_of(one) for one in cache.objects(NAMESPACES) if name_of(one) in targets_of(group) or label in labels_of(one)
    )


def label_controller() -> Controller[Looked]:
    return Controller(
        name="operator-group-labels",
        kind=NAMESPACES,
        predicate=differ(labels_of, is_terminating),
        watches=(Watch(GROUPS, _selected, differ(targets_of, is_terminating)),),
        observe=_observe,
        plan=plan,
    )
