"""Keeps the status of PodDisruptionBudgets: how many pods there should be, are healthy, and may go.

Source of the numbers: Kubernetes' disruption controller. The eviction subresource of the API spends what is allowed.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from syncline.base.clock import format_time
from syncline.cluster.builtin.owners import controller_of, selector_of
from syncline.cluster.builtin.pods import POD, condition, instant, is_ready
from syncline.cluster.builtin.shares import share
from syncline.control.cache import Snapshot
from syncline.control.controller import Watch
from syncline.control.plan import Done, Plan, Requeue, set_status
from syncline.kube.objects import (
    GroupKind,
    Obj,
    ObjectRef,
    dig,
    generation,
    is_terminating,
    labels_of,
    name_of,
    namespace_of,
    ref_of,
    split_api_version,
    uid_of,
)

__all__ = ["DisruptionBudgetController", "Observed", "plan"]

BUDGET = GroupKind("policy", "PodDisruptionBudget")
_SCALED = (
    *(GroupKind("apps", kind) for kind in ("Deployment", "ReplicaSet", "StatefulSet")),
    GroupKind("", "ReplicationController"),
)
DISRUPTION_TIMEOUT_S = 120.0
"""How long an evicted pod counts as going before it is believed to stay (DeletionTimeout)."""


@dataclass(frozen=True, slots=True)
class Observed:
    """``scales`` are the replicas of each controller of the pods, by uid."""

    budget: Obj
    pods: tuple[Obj, ...]
    scales: dict[str, int]


def observe(cache: Snapshot, ref: ObjectRef) -> Observed | None:
    budget = cache.get(ref)
    if budget is None or is_terminating(budget):
        return None
    selector = selector_of(budget)
    pods = tuple(pod for pod in cache.objects(POD, ref.namespace) if selector.matches(labels_of(pod)))
    scales: dict[str, int] = {}
    for pod in pods:
        owner = _scaled_owner(cache, pod)
        if owner is not None:
            scales[uid_of(owner)] = int(dig(owner, "spec", "replicas", default=1))
    return Observed(budget, pods, scales)


def _scaled_owner(cache: Snapshot, obj: Obj) -> Obj | None:
    """The topmost controller with replicas: the Deployment rather than its ReplicaSet."""
    reference = controller_of(obj)
    if reference is None:
        return None
    group, _ = split_api_version(str(reference.get("apiVersion")))
    kind = GroupKind(group, str(reference.get("kind")))
    owner = cache.get(ObjectRef(kind.group, kind.kind, namespace_of(obj), str(reference.get("name"))))
    if kind not in _SCALED or owner is None or uid_of(owner) != reference.get("uid"):
        return None
    return _scaled_owner(cache, owner) or owner


def plan(seen: Observed, now: datetime) -> Plan:
    """One status; looked at again when a pod that was evicted should have gone."""
    expected, desired = _expectation(seen)
    going = _going(seen, now)
    healthy = sum(is_ready(pod) and not is_terminating(pod) and name_of(pod) not in going for pod in seen.pods)
    allowed = max(healthy - desired, 0) if expected > 0 else 0
    status: Obj = {"observedGeneration": generation(seen.budget)}
    status |= {"disruptionsAllowed": allowed, "currentHealthy": healthy}
    status |= {"desiredHealthy": desired, "expectedPods": expected}
    status["conditions"] = [_allowed_condition(seen.budget, allowed > 0, now)]
    if going:
        status["disruptedPods"] = {name: format_time(at) for name, at in going.items()}
    oldest = min(going.values(), default=None)
    outcome = Done() if oldest is None else Requeue(_left_s(oldest, now), "an evicted pod should be gone")
    return Plan(status=set_status(seen.budget, status, "the pods changed"), outcome=outcome, why="the pods are counted")


def _left_s(since: datetime, now: datetime) -> float:
    return max((since + timedelta(seconds=DISRUPTION_TIMEOUT_S) - now).total_seconds(), 0.0) + 1


def _expectation(seen: Observed) -> tuple[int, int]:
    """Pods expected, and how many of them must stay healthy."""
    scale = sum(seen.scales.values())
    unavailable = dig(seen.budget, "spec", "maxUnavailable")
    if unavailable is not None:
        return scale, max(scale - share(unavailable, scale, up=True), 0)
    available = dig(seen.budget, "spec", "minAvailable")
    if isinstance(available, int):
        return len(seen.pods), available
    return (scale, share(available, scale, up=True)) if available is not None else (scale, 0)


def _going(seen: Observed, now: datetime) -> dict[str, datetime]:
    """Evicted pods that are still there and not yet being deleted."""
    noted = dig(seen.budget, "status", "disruptedPods", default={})
    present = {name_of(pod) for pod in seen.pods if not is_terminating(pod)}
    times = {name: at for name, text in sorted(noted.items()) if (at := instant(text)) and name in present}
    return {name: at for name, at in times.items() if at + timedelta(seconds=DISRUPTION_TIMEOUT_S) > now}


def _allowed_condition(budget: Obj, allowed: bool, now: datetime) -> Obj:
    status, reason = ("True", "SufficientPods") if allowed else ("False", "InsufficientPods")
    old = condition(budget, "DisruptionAllowed")
    since = old["lastTransitionTime"] if old is not None and old.get("status") == status else format_time(now)
    return {
        "type": "DisruptionAllowed",
        "status": status,
        "observedGeneration": generation(budget),
        "lastTransitionTime": since,
        "reason": reason,
        "message": "",
    }


def _budgets_of_pod(pod: Obj, cache: Snapshot) -> Iterable[ObjectRef]:
    for budget in cache.objects(BUDGET, namespace_of(pod)):
        if selector_of(budget).matches(labels_of(pod)):
            yield ref_of(budget)


def _budgets_nearby(obj: Obj, cache: Snapshot) -> Iterable[ObjectRef]:
    """Replicas changed: every budget of the namespace counts again."""
    return (ref_of(budget) for budget in cache.objects(BUDGET, namespace_of(obj)))


class DisruptionBudgetController:
    """One status per budget."""

    name = "disruption-budget"
    kind = BUDGET
    watches: tuple[Watch, ...] = (Watch(POD, _budgets_of_pod), *(Watch(kind, _budgets_nearby) for kind in _SCALED))
    reads: tuple[GroupKind, ...] = ()

    def observe(self, cache: Snapshot, ref: ObjectRef) -> Observed | None:
        return observe(cache, ref)

    def plan(self, seen: Observed, now: datetime) -> Plan:
        return plan(seen, now)
