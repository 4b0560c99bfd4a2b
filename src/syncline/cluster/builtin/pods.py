"""Readers of a pod's state for workload controllers: active, ready, available, and since when.

Pods come from the cache and are never changed.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta

from syncline.base.clock import time_or_none
from syncline.control.plan import Done, Outcome, Requeue
from syncline.kube.objects import GroupKind, Obj, dig, is_terminating, meta

POD = GroupKind("", "Pod")
_BEGINNING = datetime(1, 1, 1, tzinfo=UTC)


def phase(pod: Obj) -> str:
    return str(dig(pod, "status", "phase", default=""))


def is_finished(pod: Obj) -> bool:
    """Return True if its containers will not run again."""
    return phase(pod) in ("Succeeded", "Failed")


def is_active(pod: Obj) -> bool:
    """Return True for a replica that is neither finished nor terminating (Kubernetes ``IsPodActive``)."""
    return not is_finished(pod) and not is_terminating(pod)


def condition(obj: Obj, kind: str) -> Obj | None:
    """Return an object's status condition of a type, or None."""
    for item in dig(obj, "status", "conditions", default=[]):
        if isinstance(item, dict) and item.get("type") == kind:
            return item
    return None


def is_ready(pod: Obj) -> bool:
    ready = condition(pod, "Ready")
    return ready is not None and ready.get("status") == "True"


def created_at(obj: Obj) -> datetime:
    """Return the creation time; an object without one counts as the oldest."""
    return time_or_none(meta(obj).get("creationTimestamp")) or _BEGINNING


def ready_since(pod: Obj) -> datetime | None:
    ready = condition(pod, "Ready")
    if ready is None or ready.get("status") != "True":
        return None
    return time_or_none(ready.get("lastTransitionTime")) or _BEGINNING


def available_at(pod: Obj, min_ready_s: int) -> datetime | None:
    """Return when a ready pod becomes available; None while it is not ready."""
    since = ready_since(pod)
    return None if since is None else since + timedelta(seconds=min_ready_s)


def is_available(pod: Obj, min_ready_s: int, now: datetime) -> bool:
    """Return True if ready for at least ``min_ready_s`` seconds (Kubernetes ``IsPodAvailable``)."""
    at = available_at(pod, min_ready_s)
    return at is not None and at <= now


def until_available(pods: Iterable[Obj], min_ready_s: int, now: datetime) -> Outcome:
    """Requeue when the next ready pod becomes available; Done if none is waiting."""
    times = [at for pod in pods if (at := available_at(pod, min_ready_s)) is not None and at > now]
    return Requeue((min(times) - now).total_seconds(), "a ready pod becomes available") if times else Done()
