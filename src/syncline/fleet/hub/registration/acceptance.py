"""Acceptance, denial and departure of clusters: what a hub writes for each; pure.

Rules: ``pkg/registration/hub/managedcluster`` of upstream (reference ocm-pull-model §1.5, §1.9).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from syncline.base.action import Action
from syncline.control.plan import (
    Create,
    Delete,
    Done,
    Emit,
    Patch,
    Plan,
    Requeue,
    Result,
    Retry,
    SetStatus,
    awaiting_lists,
)
from syncline.control.plan import set_status as written_status
from syncline.fleet.conditions import condition, is_true, with_condition
from syncline.fleet.hub.registration.cleanup import NOTHING_LEFT, next_to_go, remaining
from syncline.fleet.hub.registration.leases import ACCEPTED
from syncline.fleet.hub.registration.rights import common_roles, namespace, namespaced_rights, own_rights
from syncline.kube.errors import AlreadyExists, Conflict, Unanswered
from syncline.kube.kinds.managedclusters import MANAGED_CLUSTER
from syncline.kube.kinds.manifestworks import WORK_FINALIZER
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
GC_FINALIZER: Final = "cluster.open-cluster-management.io/resource-cleanup"
FINALIZERS: Final = (GC_FINALIZER, FINALIZER)
"""What keeps a deleted cluster until its rights, add-ons and works are gone; upstream has a controller for each."""
COMPONENT: Final = "managed-cluster-controller"
REMAINING: Final = "works remain in the namespace of the cluster"
LEFT: Final = "add-ons or works remain in the namespace of the cluster"
MAX_MESSAGE: Final = 4096
"""Characters of a condition about failed writes."""
_PASSING: Final = (AlreadyExists, Conflict, Unanswered)
"""Failures after which the key is planned again with what exists."""
RECHECK_S: Final = 5.0
"""Seconds until works that keep the rights of their agent are looked at again."""


@dataclass(frozen=True, slots=True)
class Observed:
    """A cluster, its namespace and rights as they exist, by reference, its works and add-ons.

    ``cluster``: None if there is none of this name; ``unlisted``: kinds that are not known yet; ``approved``: an agent
    of the cluster may have a certificate.
    """

    name: str
    cluster: Obj | None
    live: dict[ObjectRef, Obj]
    works: tuple[Obj, ...]
    addons: tuple[Obj, ...] = ()
    unlisted: tuple[str, ...] = ()
    approved: bool = False


def plan_cluster(observed: Observed, now: datetime) -> Plan:
    """Plan one reconcile of a ManagedCluster."""
    cluster = observed.cluster
    if observed.unlisted:
        return Plan(*awaiting_lists(observed.unlisted))
    if cluster is None:
        return _absence(observed)
    if is_terminating(cluster):
        return _departure(observed, cluster, now)
    if dig(cluster, "spec", "hubAcceptsClient"):
        return _acceptance(observed, cluster, now)
    if not is_true(dig(cluster, "status", "conditions") or (), ACCEPTED):
        # With its certificate an agent may read whether it is accepted.
        reads = _repairs(observed, own_rights(observed.name, accepted=False)) if observed.approved else ()
        marked = _marked(cluster, (GC_FINALIZER,))
        return Plan(tuple(step for step in (marked, reads) if step), Done(), "the cluster is not accepted")
    return _denial(observed, cluster, now)


def _acceptance(observed: Observed, cluster: Obj, now: datetime) -> Plan:
    name = observed.name
    wanted = (*common_roles(), *own_rights(name, accepted=True), *namespaced_rights(name))
    space = _repairs(observed, (namespace(name),))
    rest = _repairs(observed, wanted)
    marked = _marked(cluster, FINALIZERS)
    steps = tuple(step for step in (space, marked, rest) if step)
    why = "the cluster is accepted"
    if space or rest:
        # The condition says that the rights exist, so it waits for them: the writes come back as changes.
        return Plan(steps, Requeue(RECHECK_S, "the rights of the cluster are written"), why)
    new = condition(ACCEPTED, "True", "HubClusterAdminAccepted", "Accepted by hub cluster admin")
    return _with_condition(cluster, new, steps, now, "ManagedClusterAccepted", "accepted", why)


def _denial(observed: Observed, cluster: Obj, now: datetime) -> Plan:
    writes = _repairs(observed, own_rights(observed.name, accepted=False))
    removed = _unbound(observed)
    steps = tuple(step for step in (writes, *removed) if step)
    why = "the cluster is denied; its namespace stays"
    if observed.works:
        return Plan(steps, Requeue(RECHECK_S, REMAINING, background=True), why)
    new = condition(ACCEPTED, "False", "HubClusterAdminDenied", "Denied by hub cluster admin")
    return _with_condition(cluster, new, steps, now, "ManagedClusterDenied", "denied", why)


def _departure(observed: Observed, cluster: Obj, now: datetime) -> Plan:
    """Take back all rights; the work agent keeps its own until no work is left, and the cluster stays as long. Add-ons
    go before works: an add-on may remove with works what it left on the cluster."""
    why = "the cluster is being deleted"
    steps = _taken(observed)
    held = next(((name, left) for name, left in _contents(observed) if left), None)
    if held is not None:
        name, left = held
        going = tuple(Delete.of(one, why) for one in next_to_go(left) if not is_terminating(one))
        written = _deleting(cluster, remaining(name, left), now)
        return Plan((*steps, going), Requeue(RECHECK_S, LEFT, background=True), why, written)
    kept = [one for one in finalizers(cluster) if one not in FINALIZERS]
    if len(kept) == len(finalizers(cluster)):
        return Plan(steps, Done(), why)
    written = _deleting(cluster, NOTHING_LEFT, now)
    if written:
        return Plan((*steps, written), Requeue(RECHECK_S, "the condition is written"), why)
    text = f"resources in cluster {observed.name} are cleaned up"
    event = Emit(cluster, "ResourceCleanupCompleted", text, "gc-controller")
    return Plan((*steps, (_finalizers(cluster, kept),), (event,)), Done(), why)


def _absence(observed: Observed) -> Plan:
    """Take back the rights of a cluster that vanished without its finalizers. Its works stay: what deletes them on a
    cluster must be a deletion, and not an absence."""
    return Plan(_taken(observed), Done(), "there is no such cluster")


def _taken(observed: Observed) -> tuple[tuple[Action, ...], ...]:
    own = own_rights(observed.name, accepted=True)
    return tuple(step for step in (_deletions(observed, own), *_unbound(observed)) if step)


def _contents(observed: Observed) -> tuple[tuple[str, tuple[Obj, ...]], ...]:
    return ("managedclusteraddons", observed.addons), ("manifestworks", observed.works)


def _deleting(cluster: Obj, new: Obj, now: datetime) -> tuple[Action, ...]:
    live: Obj = cluster.get("status") or {}
    conditions = with_condition(live.get("conditions") or (), new, now)
    return written_status(cluster, {**live, "conditions": conditions}, "what keeps the deletion")


def settle_cluster(
    observed: Observed, plan: Plan, results: tuple[Result, ...], now: datetime
) -> tuple[Observed, Plan] | None:
    """Say in the conditions of the cluster what could not be written or deleted."""
    cluster = observed.cluster
    failed = [one.error for one in results if not one.ok and not isinstance(one.error, _PASSING)]
    if cluster is None or not failed or any(isinstance(one.action, SetStatus) for one in results):
        return None
    text = "\n".join(map(str, failed))[:MAX_MESSAGE]
    if is_terminating(cluster):
        new = condition("Deleting", "False", "ResourceError", text)
        said = f"failed to cleanup resources in cluster {observed.name}:{text}"
        event: tuple[Action, ...] = (Emit(cluster, "ResourceCleanupFail", said, "gc-controller", warning=True),)
    elif dig(cluster, "spec", "hubAcceptsClient"):
        new, event = condition(ACCEPTED, "False", "Error", text), ()
    else:
        return None
    written = _deleting(cluster, new, now)
    steps = (written, *((event,) if event else ())) if written else ()
    return observed, Plan(steps, Retry(text), plan.why)


def _unbound(observed: Observed) -> tuple[tuple[Action, ...], ...]:
    """Remove the RoleBindings. That for work keeps its finalizer while there are works, and loses it first else: a
    deletion changes the version that the write of finalizers requires."""
    bindings = namespaced_rights(observed.name)
    released: list[Action] = []
    for one in () if observed.works else bindings:
        live = observed.live.get(ref_of(one))
        if live is not None and WORK_FINALIZER in finalizers(live):
            released.append(_finalizers(live, [each for each in finalizers(live) if each != WORK_FINALIZER]))
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


def _marked(cluster: Obj, wanted: tuple[str, ...]) -> tuple[Action, ...]:
    missing = [one for one in wanted if one not in finalizers(cluster)]
    return (_finalizers(cluster, [*finalizers(cluster), *missing]),) if missing else ()


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
