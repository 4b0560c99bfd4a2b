"""Fill ClusterRoles that aggregate others by labels (``aggregationRule``): admin, edit, view, and users' own.

Only the authorizer depends on the result, and it reads only ``rules``.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from syncline.cluster.access.rbac import aggregated_rules
from syncline.control.cache import Snapshot
from syncline.control.controller import Controller, Watch
from syncline.control.plan import Apply, Plan
from syncline.kube.objects import GroupKind, Obj, ObjectRef, is_terminating, name_of, ref_of

CLUSTER_ROLE = GroupKind("rbac.authorization.k8s.io", "ClusterRole")
MANAGER = "clusterrole-aggregation-controller"
"""Field manager of Kubernetes' controller, as users see it in managedFields."""


@dataclass(frozen=True, slots=True)
class Observed:
    """One ClusterRole, and all ClusterRoles that it may aggregate."""

    role: Obj
    others: tuple[Obj, ...]


def plan(observed: Observed, now: datetime) -> Plan:
    """Apply the aggregated rules if they differ; ignore roles without an aggregation rule."""
    rules = aggregated_rules(observed.role, observed.others)
    if rules is None or rules == (observed.role.get("rules") or []):
        return Plan(why="the rules are right")
    body = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": CLUSTER_ROLE.kind,
        "metadata": {"name": name_of(observed.role)},
        "rules": rules,
    }
    apply = Apply(body, MANAGER, "the roles that it gathers changed", force=True)
    return Plan(((apply,),), why=f"{name_of(observed.role)} gathers {len(rules)} rules")


def _gathering(_changed: Obj, cache: Snapshot) -> Iterable[ObjectRef]:
    """Return every aggregating role: labels may have changed, so the old selection may not match."""
    return (ref_of(role) for role in cache.objects(CLUSTER_ROLE) if role.get("aggregationRule"))


def _observe(cache: Snapshot, ref: ObjectRef) -> Observed | None:
    role = cache.get(ref)
    if role is None or is_terminating(role) or not role.get("aggregationRule"):
        return None
    return Observed(role, tuple(cache.objects(CLUSTER_ROLE)))


CLUSTER_ROLE_AGGREGATION_CONTROLLER = Controller(
    name="clusterrole-aggregation",
    kind=CLUSTER_ROLE,
    watches=(Watch(CLUSTER_ROLE, _gathering),),
    observe=_observe,
    plan=plan,
)
"""Aggregates ClusterRoles; its key is a ClusterRole."""
