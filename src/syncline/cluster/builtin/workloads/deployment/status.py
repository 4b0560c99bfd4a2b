"""Compute the status of a Deployment: counts, availability, and progress of the rollout."""

from __future__ import annotations

from datetime import datetime, timedelta

from syncline.base.clock import format_time, time_or_none
from syncline.cluster.builtin.conditions import find, put, without
from syncline.cluster.builtin.workloads.deployment.observe import Observed, spec_replicas
from syncline.kube.objects import Obj, dig, generation, name_of

AVAILABLE, PROGRESSING, REPLICA_FAILURE = "Available", "Progressing", "ReplicaFailure"
NEW_SET_AVAILABLE = "NewReplicaSetAvailable"
TIMED_OUT = "ProgressDeadlineExceeded"


def count(obj: Obj, field: str) -> int:
    """Return a number of ``status``; a missing one is zero."""
    return int(dig(obj, "status", field, default=0))


def progress_condition(status: str, reason: str, message: str, now: datetime) -> Obj:
    return _condition(PROGRESSING, status, reason, message, now)


def _condition(kind: str, status: str, reason: str, message: str, now: datetime) -> Obj:
    stamp = format_time(now)
    return {
        "type": kind,
        "status": status,
        "lastUpdateTime": stamp,
        "lastTransitionTime": stamp,
        "reason": reason,
        "message": message,
    }


def status_of(observed: Observed, current: Obj | None, conditions: list[Obj], now: datetime) -> Obj:
    """Return counts over all sets, and the condition Available (Kubernetes ``calculateStatus``)."""
    available = sum(count(each, "availableReplicas") for each in observed.sets)
    numbers = {
        "observedGeneration": generation(observed.deployment),
        "replicas": sum(count(each, "replicas") for each in observed.sets),
        "updatedReplicas": count(current, "replicas") if current else 0,
        "readyReplicas": sum(count(each, "readyReplicas") for each in observed.sets),
        "availableReplicas": available,
        "unavailableReplicas": max(sum(spec_replicas(each) for each in observed.sets) - available, 0),
    }
    status = {name: number for name, number in numbers.items() if number}
    terminating = [dig(each, "status", "terminatingReplicas") for each in observed.sets]
    if all(number is not None for number in terminating):
        status["terminatingReplicas"] = sum(terminating)
    if (collisions := dig(observed.deployment, "status", "collisionCount")) is not None:
        status["collisionCount"] = collisions
    if available >= observed.replicas - observed.max_unavailable:
        verdict = ("True", "MinimumReplicasAvailable", "Deployment has minimum availability.")
    else:
        verdict = ("False", "MinimumReplicasUnavailable", "Deployment does not have minimum availability.")
    return status | {"conditions": put(conditions, _condition(AVAILABLE, *verdict, now))}


def is_complete(observed: Observed, status: Obj) -> bool:
    """Return True if every replica is updated and available, and the spec was observed."""
    counts = [status.get(name, 0) for name in ("updatedReplicas", "replicas", "availableReplicas")]
    return all(number == observed.replicas for number in counts)


def rollout_status(observed: Observed, current: Obj | None, conditions: list[Obj], now: datetime) -> Obj:
    """Return the status during and after a rollout (Kubernetes ``syncRolloutStatus``)."""
    status = status_of(observed, current, conditions, now)
    conditions = status["conditions"]
    if observed.deadline_s is None:
        conditions = without(conditions, PROGRESSING)
    else:
        old = find(conditions, PROGRESSING)
        settled = status.get("replicas", 0) == status.get("updatedReplicas", 0)
        if not (settled and old is not None and old["reason"] == NEW_SET_AVAILABLE):
            conditions = _progressed(observed, current, status, conditions, now)
    failure = _replica_failure(observed, current)
    conditions = without(conditions, REPLICA_FAILURE) if failure is None else put(conditions, failure)
    return status | {"conditions": conditions}


def _progressed(
    observed: Observed, current: Obj | None, status: Obj, conditions: list[Obj], now: datetime
) -> list[Obj]:
    subject = f'Deployment "{name_of(observed.deployment)}"' if current is None else f'ReplicaSet "{name_of(current)}"'
    old = find(conditions, PROGRESSING)
    if is_complete(observed, status):
        message = f"{subject} has successfully progressed."
        return put(conditions, progress_condition("True", NEW_SET_AVAILABLE, message, now))
    if _moves(observed.deployment, status):
        new = progress_condition("True", "ReplicaSetUpdated", f"{subject} is progressing.", now)
        if old is not None and old["status"] == "True":
            new["lastTransitionTime"] = old["lastTransitionTime"]
        return [*without(conditions, PROGRESSING), new]  # progress updates lastUpdateTime, where the deadline begins
    if _timed_out(observed, old, now):
        return put(conditions, progress_condition("False", TIMED_OUT, f"{subject} has timed out progressing.", now))
    return conditions


def _moves(deployment: Obj, status: Obj) -> bool:
    """Return True if more are updated, ready or available, or fewer are old, than in the previous status."""

    def old(field: str) -> int:
        return count(deployment, field)

    def new(field: str) -> int:
        return int(status.get(field, 0))

    grown = any(new(name) > old(name) for name in ("updatedReplicas", "readyReplicas", "availableReplicas"))
    return grown or new("replicas") - new("updatedReplicas") < old("replicas") - old("updatedReplicas")


def _deadline(observed: Observed, progressing: Obj | None) -> datetime | None:
    if progressing is None or observed.deadline_s is None or progressing["reason"] in (NEW_SET_AVAILABLE, TIMED_OUT):
        return None
    since = time_or_none(progressing.get("lastUpdateTime"))
    return None if since is None else since + timedelta(seconds=observed.deadline_s)


def _timed_out(observed: Observed, progressing: Obj | None, now: datetime) -> bool:
    if progressing is not None and progressing["reason"] == TIMED_OUT:
        return True
    deadline = _deadline(observed, progressing)
    return deadline is not None and deadline < now


def seconds_until_deadline(observed: Observed, status: Obj, now: datetime) -> float | None:
    """Return the seconds until a stalled rollout reaches its deadline; None if it has none or is complete."""
    if is_complete(observed, status) or observed.paused:
        return None
    deadline = _deadline(observed, find(status["conditions"], PROGRESSING))
    # One second more, so that the deadline has passed at the next reconcile (times are whole seconds).
    return None if deadline is None else max((deadline - now).total_seconds(), 0) + 1


def _replica_failure(observed: Observed, current: Obj | None) -> Obj | None:
    """Return the current set's failure, or another set's (Kubernetes ``getReplicaFailures``)."""
    for each in (*((current,) if current else ()), *observed.sets):
        failure = find(dig(each, "status", "conditions", default=[]), REPLICA_FAILURE)
        if failure is not None:
            stamp = failure["lastTransitionTime"]
            return {key: failure[key] for key in ("type", "status", "reason", "message")} | {
                "lastUpdateTime": stamp,
                "lastTransitionTime": stamp,
            }
    return None
