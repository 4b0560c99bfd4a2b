"""Update the status of PodDisruptionBudgets: pods expected, healthy, and allowed to be evicted.

Source of the numbers: Kubernetes' disruption controller. The API's eviction subresource uses up the allowance. The
replicas of controllers that are not built in are read from their Scale during the reconcile.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from syncline.base.clock import format_time, time_or_none
from syncline.cluster.builtin.actions import ReadScale
from syncline.cluster.builtin.gotext import go_selector
from syncline.cluster.builtin.owners import controller_of, selector_of
from syncline.cluster.builtin.pods import POD, condition, is_ready
from syncline.cluster.builtin.workloads.shares import share
from syncline.control.cache import Snapshot
from syncline.control.controller import Controller, Watch, differ, spec_differs
from syncline.control.plan import Done, Emit, Plan, Requeue, Result, Retry, set_status
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
    owner_references,
    ref_of,
    split_api_version,
    uid_of,
)

COMPONENT = "controllermanager"
BUDGET = GroupKind("policy", "PodDisruptionBudget")
_SCALED = (
    *(GroupKind("apps", kind) for kind in ("Deployment", "ReplicaSet", "StatefulSet")),
    GroupKind("", "ReplicationController"),
)
_NUMBERS = {"currentHealthy": 0, "desiredHealthy": 0, "expectedPods": 0}
DISRUPTION_TIMEOUT_S = 120.0
"""How long an evicted pod counts as disrupted before it is expected to stay (DeletionTimeout)."""


@dataclass(frozen=True, slots=True)
class Observed:
    """``scales`` are the replicas of the pods' built-in controllers, by uid; ``foreign`` the other controllers, by uid,
    each with one of its pods; ``unmanaged`` pods have no controller."""

    budget: Obj
    pods: tuple[Obj, ...]
    scales: dict[str, int]
    foreign: dict[str, tuple[ReadScale, str]]
    unmanaged: tuple[str, ...] = ()

    @property
    def counts_controllers(self) -> bool:
        """Return whether the limit depends on controllers' replicas; an integer ``minAvailable`` does not."""
        available = dig(self.budget, "spec", "minAvailable")
        return dig(self.budget, "spec", "maxUnavailable") is not None or isinstance(available, str)


def observe(cache: Snapshot, ref: ObjectRef) -> Observed | None:
    budget = cache.get(ref)
    if budget is None or is_terminating(budget):
        return None
    selector = selector_of(budget)
    pods = tuple(cache.selected(POD, ref.namespace, selector))
    scales: dict[str, int] = {}
    foreign: dict[str, tuple[ReadScale, str]] = {}
    for pod in pods:
        owner = _scaled_owner(cache, pod)
        reference = controller_of(pod)
        if owner is not None:
            scales[uid_of(owner)] = int(dig(owner, "spec", "replicas", default=1))
        elif reference is not None:
            foreign.setdefault(str(reference.get("uid")), (_read_scale(reference, ref.namespace), name_of(pod)))
    unmanaged = tuple(name_of(pod) for pod in pods if controller_of(pod) is None)
    return Observed(budget, pods, scales, foreign, unmanaged)


def _read_scale(reference: Obj, namespace: str) -> ReadScale:
    group, version = split_api_version(str(reference.get("apiVersion")))
    target = ObjectRef(group, str(reference.get("kind")), namespace, str(reference.get("name")))
    return ReadScale(target, version, str(reference.get("uid")), "a budget counts what it wants")


def _scaled_owner(cache: Snapshot, obj: Obj) -> Obj | None:
    """Return the topmost controller with replicas: the Deployment rather than its ReplicaSet."""
    reference = controller_of(obj)
    if reference is None:
        return None
    group, _ = split_api_version(str(reference.get("apiVersion")))
    kind = GroupKind(group, str(reference.get("kind")))
    owner = cache.get(ObjectRef(kind.group, kind.kind, namespace_of(obj), str(reference.get("name"))))
    if kind not in _SCALED or owner is None or uid_of(owner) != reference.get("uid"):
        return None
    return _scaled_owner(cache, owner) or owner


def plan(observed: Observed, now: datetime) -> Plan:
    """Write one status; requeue for evicted pods that should be deleted by then. Scales of foreign controllers are read
    first, and :func:`settle` continues with them."""
    if observed.foreign and observed.counts_controllers:
        return Plan(
            (tuple(read for read, _ in observed.foreign.values()),), why="other controllers are asked for scales"
        )
    return _count(observed, observed.scales, now)


def settle(observed: Observed, results: tuple[Result, ...], now: datetime) -> tuple[Observed, Plan] | None:
    """Continue with the scales; if one is missing, fail safe and allow no eviction."""
    read = [(result.action.uid, result) for result in results if isinstance(result.action, ReadScale)]
    if not read:
        return None
    scales = dict(observed.scales)
    for uid, result in read:
        if not result.ok:
            return observed, _fail_safe(observed, str(result.error), now)
        if result.value is None:
            return observed, _fail_safe(observed, f'found no controllers for pod "{observed.foreign[uid][1]}"', now)
        scales[uid] = int(dig(result.value, "spec", "replicas", default=0))
    return observed, _count(observed, scales, now)


def _fail_safe(observed: Observed, why: str, now: datetime) -> Plan:
    old = observed.budget.get("status") or {}
    new = _condition(observed.budget, "False", "SyncFailed", why, int(old.get("observedGeneration") or 0), now)
    status = _NUMBERS | old | {"disruptionsAllowed": 0, "conditions": [new]}
    text = f"Failed to calculate the number of expected pods: {why}"
    event = Emit(observed.budget, "CalculateExpectedPodCountFailed", text, COMPONENT, warning=True)
    writes = set_status(observed.budget, status, "the pods cannot be counted")
    return Plan(status=(*writes, *((event,) if writes else ())), outcome=Retry(why), why=why)


def _count(observed: Observed, scales: dict[str, int], now: datetime) -> Plan:
    expected, desired = _expectation(observed, scales)
    going = _going(observed, now)
    healthy = sum(is_ready(pod) and not is_terminating(pod) and name_of(pod) not in going for pod in observed.pods)
    allowed = max(healthy - desired, 0) if expected > 0 else 0
    status: Obj = {"observedGeneration": generation(observed.budget)}
    status |= {"disruptionsAllowed": allowed, "currentHealthy": healthy}
    status |= {"desiredHealthy": desired, "expectedPods": expected}
    chosen = ("True", "SufficientPods") if allowed > 0 else ("False", "InsufficientPods")
    status["conditions"] = [_condition(observed.budget, *chosen, "", generation(observed.budget), now)]
    if going:
        status["disruptedPods"] = {name: format_time(at) for name, at in going.items()}
    oldest = min(going.values(), default=None)
    outcome = Done() if oldest is None else Requeue(_left_s(oldest, now), "an evicted pod should be gone")
    writes = set_status(observed.budget, status, "the pods changed")
    return Plan(status=(*writes, *(_events(observed) if writes else ())), outcome=outcome, why="the pods are counted")


def _events(observed: Observed) -> tuple[Emit, ...]:
    if not observed.pods:
        return (Emit(observed.budget, "NoPods", "No matching pods found", COMPONENT),)
    if not observed.unmanaged or not observed.counts_controllers:
        return ()
    selector = go_selector(dig(observed.budget, "spec", "selector", default={}))
    text = (
        f"Pods selected by this PodDisruptionBudget (selector: {selector}) were found to be unmanaged. As a result, "
        "the status of the PDB cannot be calculated correctly, which may result in undefined behavior. To account for "
        'these pods please set ".spec.minAvailable" field of the PDB to an integer value.'
    )
    return (Emit(observed.budget, "UnmanagedPods", text, COMPONENT, warning=True),)


def _left_s(since: datetime, now: datetime) -> float:
    return max((since + timedelta(seconds=DISRUPTION_TIMEOUT_S) - now).total_seconds(), 0.0) + 1


def _expectation(observed: Observed, scales: dict[str, int]) -> tuple[int, int]:
    """Return the expected pods, and how many must stay healthy. Percentages are rounded up for both limits."""
    scale = sum(scales.values())
    unavailable = dig(observed.budget, "spec", "maxUnavailable")
    if unavailable is not None:
        return scale, max(scale - share(unavailable, scale, up=True), 0)
    available = dig(observed.budget, "spec", "minAvailable")
    if isinstance(available, int):
        return len(observed.pods), available
    return (scale, share(available, scale, up=True)) if available is not None else (0, 0)


def _going(observed: Observed, now: datetime) -> dict[str, datetime]:
    """Return evicted pods that still exist and are not yet terminating."""
    noted = dig(observed.budget, "status", "disruptedPods", default={})
    present = {name_of(pod) for pod in observed.pods if not is_terminating(pod)}
    times = {name: at for name, text in sorted(noted.items()) if (at := time_or_none(text)) and name in present}
    return {name: at for name, at in times.items() if at + timedelta(seconds=DISRUPTION_TIMEOUT_S) > now}


def _condition(budget: Obj, status: str, reason: str, message: str, observed: int, now: datetime) -> Obj:
    old = condition(budget, "DisruptionAllowed")
    since = old["lastTransitionTime"] if old is not None and old.get("status") == status else format_time(now)
    found: Obj = {"type": "DisruptionAllowed", "status": status}
    found |= {"observedGeneration": observed} if observed else {}
    return found | {"lastTransitionTime": since, "reason": reason, "message": message}


def _budgets_of_pod(pod: Obj, cache: Snapshot) -> Iterable[ObjectRef]:
    for budget in cache.objects(BUDGET, namespace_of(pod)):
        if selector_of(budget).matches(labels_of(pod)):
            yield ref_of(budget)


def _budgets_nearby(obj: Obj, cache: Snapshot) -> Iterable[ObjectRef]:
    """Return every budget of the namespace, since replicas changed."""
    return (ref_of(budget) for budget in cache.objects(BUDGET, namespace_of(obj)))


_counts_differ = differ(is_ready, is_terminating, labels_of, owner_references)


def _settle(observed: Observed, plan: Plan, results: tuple[Result, ...], now: datetime) -> tuple[Observed, Plan] | None:
    return settle(observed, results, now)


def _at_rest(obj: Obj) -> bool:
    """Return True: the status derives from pods and scales, and the check of evicted pods is scheduled."""
    return True


DISRUPTION_BUDGET_CONTROLLER = Controller(
    name="disruption-budget",
    kind=BUDGET,
    watches=(
        Watch(POD, _budgets_of_pod, _counts_differ),
        *(Watch(kind, _budgets_nearby, spec_differs) for kind in _SCALED),
    ),
    observe=observe,
    plan=plan,
    settle=_settle,
    at_rest=_at_rest,
)
"""Maintains one status per budget."""
