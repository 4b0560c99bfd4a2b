"""Acceptance, denial and departure of clusters: what a hub writes for each; pure.

Rules: ``pkg/registration/hub/managedcluster`` of upstream (reference ocm-pull-model §1.5, §1.9).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from syncline.base.action import Action
from syncline.control.plan import Create, Delete, Done, Emit, Patch, Plan, Requeue
from syncline.control.plan import set_status as written_status
from syncline.fleet.conditions import condition, is_true, with_condition
from syncline.fleet.hub.registration.cleanup import next_to_go, remaining
from syncline.fleet.hub.registration.health import UNLISTED_S
from syncline.fleet.hub.registration.leases import ACCEPTED
from syncline.fleet.hub.registration.rights import (
    WORK_CLEANUP,
    common_roles,
    namespace,
    namespaced_rights,
    own_rights,
)
from syncline.kube.kinds.managedclusters import MANAGED_CLUSTER
from syncline.kube.objects import (
    Obj,
    ObjectRef,
    dig,
    finalizers,
    gvk_of,
    is_terminating,
    labels_of,
    name_of,
    namespace_of,
    ref_of,
    resource_version,
    uid_of,
)

FINALIZER: Final = "cluster.open-cluster-management.io/api-resource-cleanup"
COMPONENT: Final = "managed-cluster-controller"
REMAINING: Final = "works remain in the namespace of the cluster"
RECHECK_S: Final = 5.0
"""Seconds until works that keep the rights of their agent are looked at again."""


@dataclass(frozen=True, slots=True)
class Observed:
    """A cluster, its namespace and rights as they exist, by reference, and its works.

    ``unlisted``: kinds that are not known yet.
    """

    cluster: Obj
    live: dict[ObjectRef, Obj]
    works: tuple[Obj, ...]
    unlisted: tuple[str, ...] = ()


def plan_cluster(observed: Observed, now: datetime) -> Plan:
    """Plan one reconcile of a ManagedCluster."""
    cluster = observed.cluster
    if observed.unlisted:
        why = f"waiting for the first list of {', '.join(observed.unlisted)}"
        return Plan((), Requeue(UNLISTED_S, why), why)
    if is_terminating(cluster):
        return _departure(observed, now)
    if dig(cluster, "spec", "hubAcceptsClient"):
        return _acceptance(observed, now)
    if not is_true(dig(cluster, "status", "conditions") or (), ACCEPTED):
        return Plan(why="the cluster is not accepted")
    return _denial(observed, now)


def _acceptance(observed: Observed, now: datetime) -> Plan:
    cluster, name = observed.cluster, name_of(observed.cluster)
    wanted = (*common_roles(), *own_rights(name, accepted=True), *namespaced_rights(name))
    space = _repairs(observed, (namespace(name),))
    rest = _repairs(observed, wanted)
    marked = () if FINALIZER in finalizers(cluster) else (_finalizers(cluster, [*finalizers(cluster), FINALIZER]),)
    steps = tuple(step for step in (space, marked, rest) if step)
    why = "the cluster is accepted"
    if space or rest:
        # The condition says that the rights exist, so it waits for them: the writes come back as changes.
        return Plan(steps, Requeue(RECHECK_S, "the rights of the cluster are written"), why)
    new = condition(ACCEPTED, "True", "HubClusterAdminAccepted", "Accepted by hub cluster admin")
    return _with_condition(cluster, new, steps, now, "ManagedClusterAccepted", "accepted", why)


def _denial(observed: Observed, now: datetime) -> Plan:
    cluster, name = observed.cluster, name_of(observed.cluster)
    writes = _repairs(observed, own_rights(name, accepted=False))
    removed = _unbound(observed)
    steps = tuple(step for step in (writes, *removed) if step)
    why = "the cluster is denied; its namespace stays"
    if observed.works:
        return Plan(steps, Requeue(RECHECK_S, REMAINING, background=True), why)
    new = condition(ACCEPTED, "False", "HubClusterAdminDenied", "Denied by hub cluster admin")
    return _with_condition(cluster, new, steps, now, "ManagedClusterDenied", "denied", why)


def _departure(observed: Observed, now: datetime) -> Plan:
    """Take back all rights; the work agent keeps its own until no work is left, and the cluster stays as long."""
    cluster, why = observed.cluster, "the cluster is being deleted"
    own = own_rights(name_of(cluster), accepted=True)
    steps = tuple(step for step in (_deletions(observed, own), *_unbound(observed)) if step)
    if observed.works:
        going = tuple(Delete.of(one, why) for one in next_to_go(observed.works) if not is_terminating(one))
        live: Obj = cluster.get("status") or {}
        conditions = with_condition(live.get("conditions") or (), remaining("manifestworks", observed.works), now)
        written = written_status(cluster, {**live, "conditions": conditions}, why)
        return Plan((*steps, going), Requeue(RECHECK_S, REMAINING, background=True), why, written)
    if FINALIZER not in finalizers(cluster):
        return Plan(steps, Done(), why)
    left = _finalizers(cluster, [one for one in finalizers(cluster) if one != FINALIZER])
    return Plan((*steps, (left,)), Done(), why)


def _unbound(observed: Observed) -> tuple[tuple[Action, ...], ...]:
    """Remove the RoleBindings. That for work keeps its finalizer while there are works, and loses it first else: a
    deletion changes the version that the write of finalizers requires."""
    bindings = namespaced_rights(name_of(observed.cluster))
    released: list[Action] = []
    for one in () if observed.works else bindings:
        live = observed.live.get(ref_of(one))
        if live is not None and WORK_CLEANUP in finalizers(live):
            released.append(_finalizers(live, [each for each in finalizers(live) if each != WORK_CLEANUP]))
    return tuple(released), _deletions(observed, bindings)


def _deletions(observed: Observed, objects: Iterable[Obj]) -> tuple[Action, ...]:
    live = (observed.live.get(ref_of(one)) for one in objects)
    return tuple(
        Delete.of(one, "the cluster has no such right") for one in live if one is not None and not is_terminating(one)
    )


def _repairs(observed: Observed, objects: Iterable[Obj]) -> tuple[Action, ...]:
    """Return what creates missing objects and changes others; a role that a binding refers to never changes."""
    found: list[Action] = []
    for one in objects:
        live = observed.live.get(ref_of(one))
        if live is None:
            found.append(Create(one, "the rights of an agent"))
            continue
        fields: Obj = {key: one[key] for key in ("rules", "subjects") if key in one and one[key] != live.get(key)}
        labels = {key: value for key, value in labels_of(one).items() if labels_of(live).get(key) != value}
        if labels:
            fields["metadata"] = {"labels": labels}
        if fields:
            found.append(Patch(gvk_of(one), namespace_of(one), name_of(one), fields, "the rights of an agent"))
    return tuple(found)


def _finalizers(obj: Obj, wanted: list[str]) -> Patch:
    precondition = {"uid": uid_of(obj), "resourceVersion": resource_version(obj)}
    body = {"metadata": {**precondition, "finalizers": wanted}}
    return Patch(gvk_of(obj), namespace_of(obj), name_of(obj), body, "finalizers")


def _with_condition(
    cluster: Obj, new: Obj, steps: tuple[tuple[Action, ...], ...], now: datetime, reason: str, done: str, why: str
) -> Plan:
    live: Obj = cluster.get("status") or {}
    status = {**live, "conditions": with_condition(live.get("conditions") or (), new, now)}
    written = written_status(cluster, status, why)
    if not written:
        return Plan(steps, Done(), why)
    text = f"managed cluster {name_of(cluster)} is {done} by hub cluster admin"
    regarding = {"apiVersion": f"{MANAGED_CLUSTER.group}/{MANAGED_CLUSTER.version}", "kind": MANAGED_CLUSTER.kind}
    event = Emit({**regarding, "metadata": cluster["metadata"]}, reason, text, COMPONENT)
    # Not as the plan's status: that is written also after a failure, and would say what is not true yet.
    return Plan((*steps, written, (event,)), Done(), why)
