"""The ClusterRoles that the agents of all clusters share: they exist as long as there is a cluster; pure plans.

Rules: ``pkg/registration/hub/clusterrole`` of upstream.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from syncline.control.cache import Snapshot
from syncline.control.controller import Controller, Watch, comes_or_goes, differ
from syncline.control.plan import Create, Delete, Done, Patch, Plan
from syncline.fleet.hub.registration.rights import common_roles
from syncline.kube.kinds.managedclusters import MANAGED_CLUSTER
from syncline.kube.objects import GroupKind, Obj, ObjectRef, gvk_of, is_terminating, name_of, ref_of


@dataclass(frozen=True, slots=True)
class SharedRole:
    """A role as it should be and as it is, and whether there is a cluster."""

    wanted: Obj
    live: Obj | None
    needed: bool


def plan_role(observed: SharedRole, _now: datetime) -> Plan:
    """Plan one reconcile of a shared role."""
    wanted, live = observed.wanted, observed.live
    if not observed.needed:
        gone = live is None or is_terminating(live)
        steps = () if gone or live is None else ((Delete.of(live, "no cluster is left"),),)
        return Plan(steps, Done(), "there is no cluster")
    if live is None:
        return Plan(((Create(wanted, "agents have these rights"),),), Done(), "the role is missing")
    if live.get("rules") == wanted["rules"]:
        return Plan(why="the role is as it should be")
    patch = Patch(gvk_of(wanted), "", name_of(wanted), {"rules": wanted["rules"]}, "agents have these rights")
    return Plan(((patch,),), Done(), "the role was changed")


def role_controller() -> Controller[SharedRole]:
    """Return the controller of the shared roles."""
    kind, clusters = GroupKind("rbac.authorization.k8s.io", "ClusterRole"), MANAGED_CLUSTER.group_kind
    wanted = {ref_of(one): one for one in common_roles()}

    def observe(cache: Snapshot, ref: ObjectRef) -> SharedRole | None:
        if ref not in wanted or not (cache.has_synced(kind) and cache.has_synced(clusters)):
            return None
        return SharedRole(wanted[ref], cache.get(ref), bool(cache.objects(clusters)))

    def keys(_cluster: Obj, _cache: Snapshot) -> Iterable[ObjectRef]:
        return wanted

    return Controller(
        name="cluster-roles",
        kind=kind,
        predicate=differ(lambda one: one.get("rules")),
        watches=(Watch(clusters, keys, comes_or_goes),),
        observe=observe,
        plan=plan_role,
    )
