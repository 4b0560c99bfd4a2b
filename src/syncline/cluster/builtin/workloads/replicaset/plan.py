"""Plan a ReplicaSet: create or delete pods until their number is right."""

from __future__ import annotations

from datetime import datetime
from typing import TypeAlias

from syncline.cluster.builtin.pods import is_active, until_available
from syncline.cluster.builtin.workloads.replicaset.observe import Observed
from syncline.cluster.builtin.workloads.replicaset.ranking import deletion_order
from syncline.cluster.builtin.workloads.replicaset.status import Failure, replicaset_status
from syncline.cluster.builtin.workloads.slow_start import slow_start
from syncline.cluster.builtin.workloads.templates import pod_from_template
from syncline.control.plan import Create, Delete, Done, Emit, Plan, Result, Retry, set_status
from syncline.kube.objects import Obj, dig, gvk_of, is_terminating, name_of

BURST_REPLICAS = 500
"""Pods created or deleted per reconcile, as in Kubernetes, so that one set cannot occupy the server."""
COMPONENTS = {"ReplicaSet": "replicaset-controller", "ReplicationController": "replication-controller"}

Steps: TypeAlias = tuple[tuple[Create | Delete, ...], ...]


def plan(observed: Observed, now: datetime) -> Plan:
    """Claim pods, then create or delete the difference; the status reports observed pods, not planned ones."""
    if observed.patches:
        return Plan((observed.patches,), why="pods are adopted or released by the selector")
    steps = () if is_terminating(observed.replicaset) else _scale(observed)
    if steps:
        return Plan(steps, why=f"{name_of(observed.replicaset)} wants {observed.replicas} pods")
    status = set_status(observed.replicaset, replicaset_status(observed, now), "the pods changed")
    wait = until_available((pod for pod in observed.pods if is_active(pod)), observed.min_ready_s, now)
    return Plan(outcome=wait, status=status, why="the number of pods is right")


def _scale(observed: Observed) -> Steps:
    active = tuple(pod for pod in observed.pods if is_active(pod))
    surplus = len(active) - observed.replicas
    if surplus > 0:
        doomed = deletion_order(active, observed.crowd)[: min(surplus, BURST_REPLICAS)]
        return (tuple(Delete.of(pod, f"{surplus} more than the {observed.replicas} wanted") for pod in doomed),)
    if observed.namespace_ends:
        return ()
    reason = f"{len(active)} of {observed.replicas} exist"
    template = dig(observed.replicaset, "spec", "template", default={})
    pod = pod_from_template(observed.replicaset, template)
    return slow_start(Create(pod, reason), min(-surplus, BURST_REPLICAS))


def settle(observed: Observed, results: tuple[Result, ...], now: datetime) -> tuple[Observed, Plan] | None:
    """Emit events for pods created and deleted; set the condition ReplicaFailure if one was refused."""
    events = tuple(event for result in results if (event := _event(observed.replicaset, result)) is not None)
    if not events:
        return None
    failure = next((_failure(result) for result in results if not result.ok), None)
    status = set_status(observed.replicaset, replicaset_status(observed, now, failure), "the pods changed")
    outcome = Done() if failure is None else Retry(failure[1])
    return observed, Plan((events,), outcome, "tell what became of the pods", status)


def _failure(result: Result) -> Failure:
    return ("FailedCreate" if isinstance(result.action, Create) else "FailedDelete", str(result.error))


def _event(replicaset: Obj, result: Result) -> Emit | None:
    component = COMPONENTS[gvk_of(replicaset).kind]
    match result.action, result.ok:
        case Create(), True:
            return Emit(replicaset, "SuccessfulCreate", f"Created pod: {name_of(result.value)}", component)
        case Create(), False:
            return Emit(replicaset, "FailedCreate", f"Error creating: {result.error}", component, warning=True)
        case Delete(name=name), True:
            return Emit(replicaset, "SuccessfulDelete", f"Deleted pod: {name}", component)
        case Delete(name=_), False:
            return Emit(replicaset, "FailedDelete", f"Error deleting: {result.error}", component, warning=True)
        case _:
            return None
