"""Arithmetic of PodDisruptionBudgets over a set of pods; pure.

Source: Kubernetes' disruption controller (counts) and eviction subresource (pods that need no budget).
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import Any

import msgspec

from syncline.kube.objects import (
    Obj,
    dig,
    generation,
    is_terminating,
    labels_of,
    namespace_of,
    owner_references,
)
from syncline.kube.selectors import Selector, SelectorError, label_selector_from

NO_CONTROLLER = "it is about what controllers want, and its pods have none"
NO_LIMIT = "it has neither minAvailable nor maxUnavailable"


def covers(budget: Obj, pod: Obj) -> bool:
    """Return whether evictions of the pod count against the budget; an invalid selector covers nothing."""
    if namespace_of(budget) != namespace_of(pod):
        return False
    found = selector_of(budget)
    return found is not None and found.matches(labels_of(pod))


def selector_of(budget: Obj) -> Selector | None:
    """Return the budget's selector, or None if it is missing or invalid."""
    selector = dig(budget, "spec", "selector")
    return _selector(_encode(selector)) if selector is not None else None


_encode = msgspec.json.Encoder(order="sorted").encode


@lru_cache(maxsize=1024)
def _selector(text: bytes) -> Selector | None:
    """Return the parsed selector, cached since every budget is matched with every pod."""
    try:
        return label_selector_from(msgspec.json.decode(text))
    except SelectorError:
        return None


def is_ready(pod: Obj) -> bool:
    """Return whether a budget counts the pod as healthy."""
    conditions = dig(pod, "status", "conditions", default=[])
    ready = any(each.get("type") == "Ready" and each.get("status") == "True" for each in conditions)
    return ready and not is_terminating(pod)


def is_finished(pod: Obj) -> bool:
    return dig(pod, "status", "phase") in ("Succeeded", "Failed")


def unbudgeted(pod: Obj) -> bool:
    """Return whether the pod's eviction needs no budget: it does not run yet, or has finished."""
    return dig(pod, "status", "phase") == "Pending" or is_finished(pod) or is_terminating(pod)


def spared_by_policy(budget: Obj, pod: Obj, healthy: int, desired: int) -> bool:
    """Return whether ``unhealthyPodEvictionPolicy`` allows the eviction of a running pod that is not ready."""
    if is_ready(pod):
        return False
    if dig(budget, "spec", "unhealthyPodEvictionPolicy") == "AlwaysAllow":
        return True
    return healthy >= desired > 0


def counts_controllers(budget: Obj) -> bool:
    """Return whether the budget counts against the scale of controllers; an integer ``minAvailable`` counts pods."""
    spec = budget.get("spec") or {}
    return spec.get("maxUnavailable") is not None or isinstance(spec.get("minAvailable"), str)


def expected_pods(budget: Obj, covered: Iterable[Obj]) -> int:
    """Return the expected number of pods: from the budget's status if it counts controllers, else the covered pods."""
    if not counts_controllers(budget):
        return sum(1 for _ in covered)
    status = budget.get("status") or {}
    report = int(status.get("expectedPods") or 0) if status.get("observedGeneration") == generation(budget) else 0
    return report or sum(map(_has_controller, covered))


def _has_controller(pod: Obj) -> bool:
    return not is_finished(pod) and any(owner.get("controller") for owner in owner_references(pod))


def needed(budget: Obj, expected: int) -> int:
    """Return how many of ``expected`` pods must stay healthy; percentages are rounded up."""
    down = dig(budget, "spec", "maxUnavailable")
    if down is not None:
        return max(expected - _share(down, expected), 0)
    up = dig(budget, "spec", "minAvailable")
    return _share(up, expected) if up is not None else 0


def uncounted(budget: Obj, expected: int) -> str:
    """Return why the budget allows no evictions regardless of health; empty if its numbers decide."""
    conditions = dig(budget, "status", "conditions", default=[])
    failed = next((each for each in conditions if each.get("reason") == "SyncFailed"), None)
    if failed is not None:
        return f"its pods cannot be counted: {failed.get('message') or 'SyncFailed'}"
    spec = budget.get("spec") or {}
    if spec.get("maxUnavailable") is None and spec.get("minAvailable") is None:
        return NO_LIMIT
    return "" if expected > 0 else NO_CONTROLLER


def allowed(budget: Obj, healthy: int, desired: int, expected: int) -> int:
    """Return how many healthy pods may be evicted."""
    return 0 if uncounted(budget, expected) else max(healthy - desired, 0)


def _share(limit: Any, total: int) -> int:
    if isinstance(limit, int):
        return limit
    digits = str(limit).removesuffix("%")
    return -(-int(digits) * total // 100) if digits.isdigit() else 0
