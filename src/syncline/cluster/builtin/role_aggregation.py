"""Fills ClusterRoles that gather the rules of others by label (``aggregationRule``).

Source: Kubernetes' cluster role aggregation controller: rules in the order of the roles' names, each rule once.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from syncline.control.cache import Snapshot
from syncline.control.controller import Watch
from syncline.control.plan import Patch, Plan
from syncline.kube.objects import (
    GVK,
    GroupKind,
    Obj,
    ObjectRef,
    dig,
    labels_of,
    name_of,
    ref_of,
    resource_version,
    uid_of,
)
from syncline.kube.selectors import NOTHING, Selector, SelectorError, label_selector_from

__all__ = ["Observed", "RoleAggregationController", "plan"]

ROLE = GroupKind("rbac.authorization.k8s.io", "ClusterRole")


@dataclass(frozen=True, slots=True)
class Observed:
    """``gathered`` are the roles that the aggregation selects, by name."""

    role: Obj
    gathered: tuple[Obj, ...]


def _selectors(role: Obj) -> list[Selector]:
    return [_selector(each) for each in dig(role, "aggregationRule", "clusterRoleSelectors", default=[])]


def _selector(each: Obj) -> Selector:
    try:
        return label_selector_from(each)
    except SelectorError:
        return NOTHING


def observe(cache: Snapshot, ref: ObjectRef) -> Observed | None:
    """None for a role that is gone, and for one that gathers nothing."""
    role = cache.get(ref)
    if role is None or role.get("aggregationRule") is None:
        return None
    selectors = _selectors(role)
    others = (each for each in cache.objects(ROLE) if name_of(each) != ref.name)
    gathered = tuple(each for each in others if any(selector.matches(labels_of(each)) for selector in selectors))
    return Observed(role, gathered)


def plan(seen: Observed, now: datetime) -> Plan:
    rules: list[Obj] = []
    for each in seen.gathered:
        rules += [rule for rule in each.get("rules") or () if rule not in rules]
    if rules == (seen.role.get("rules") or []):
        return Plan(why="the rules are complete")
    metadata = {"uid": uid_of(seen.role), "resourceVersion": resource_version(seen.role)}
    body = {"metadata": metadata, "rules": rules or None}
    kind = GVK(ROLE.group, "v1", ROLE.kind)
    return Plan(((Patch(kind, "", name_of(seen.role), body, "gathered roles changed"),),), why="rules are gathered")


def _gatherers(role: Obj, cache: Snapshot) -> Iterable[ObjectRef]:
    """Roles that select this one, so that a changed part is seen in the whole."""
    for each in cache.objects(ROLE):
        if any(selector.matches(labels_of(role)) for selector in _selectors(each)):
            yield ref_of(each)


class RoleAggregationController:
    """One list of rules per gathering role."""

    name = "role-aggregation"
    kind = ROLE
    watches: tuple[Watch, ...] = (Watch(ROLE, _gatherers),)
    reads: tuple[GroupKind, ...] = ()

    def observe(self, cache: Snapshot, ref: ObjectRef) -> Observed | None:
        return observe(cache, ref)

    def plan(self, seen: Observed, now: datetime) -> Plan:
        return plan(seen, now)
