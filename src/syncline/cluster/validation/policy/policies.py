"""Disruption budgets, autoscalers, ingresses, network policies, slices, priorities, webhooks, signing requests.

Called by the API through :func:`syncline.cluster.validation.strategy.strategy_for`. Source: the ``validation`` packages
of the groups policy, autoscaling, networking, discovery, scheduling, admissionregistration and certificates.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from syncline.cluster.validation.engine import names
from syncline.cluster.validation.engine import rules as r
from syncline.cluster.validation.engine.base import Kind
from syncline.cluster.validation.engine.causes import forbidden, invalid
from syncline.cluster.validation.engine.fields import (
    at_most_100_percent,
    count_or_percent,
    immutable,
    label_selector_causes,
)
from syncline.cluster.validation.engine.metadata import metadata_update_causes
from syncline.kube.errors import FieldCause
from syncline.kube.objects import Obj, dig

MAX_USER_PRIORITY = 1_000_000_000


condition_causes = r.every(
    r.need("type", r.qualified),
    r.text("status", r.choice("False", "True", "Unknown")),
    r.needs("lastTransitionTime", "reason"),
)
"""A condition in the newer format (``ValidateConditions``)."""
_COUNT = r.every(count_or_percent, at_most_100_percent)


class DisruptionBudgetKind(Kind):
    name_check = names.path_segment
    has_status = True
    has_generation = True
    empty_status: ClassVar[Obj | None] = {
        "disruptionsAllowed": 0,
        "currentHealthy": 0,
        "desiredHealthy": 0,
        "expectedPods": 0,
    }
    rules = r.spec(
        lambda spec, path: (
            [invalid(path, spec, "minAvailable and maxUnavailable cannot be both set")]
            if spec.get("minAvailable") is not None and spec.get("maxUnavailable") is not None
            else []
        ),
        r.field("minAvailable", _COUNT),
        r.field("maxUnavailable", _COUNT),
        r.field("unhealthyPodEvictionPolicy", r.choice("AlwaysAllow", "IfHealthyBudget")),
        r.field("selector", label_selector_causes),
    )
    status_rules = r.every(r.natural(*(empty_status or ())), r.each("conditions", condition_causes))

    def update_causes(self, new: Obj, old: Obj) -> list[FieldCause]:
        return []


_SYSTEM_PRIORITIES = {"system-node-critical": 2000001000, "system-cluster-critical": 2000000000}


def _system_fault(name: str, obj: Obj) -> str:
    """Return how a class with a system name differs from Kubernetes' own."""
    if name not in _SYSTEM_PRIORITIES:
        return f"{name} is not a known system priority class"
    if (obj.get("value") or 0) != _SYSTEM_PRIORITIES[name]:
        return f"value of {name} PriorityClass must be {_SYSTEM_PRIORITIES[name]}"
    return f"globalDefault of {name} PriorityClass must be false" if obj.get("globalDefault") else ""


def _name_and_value(obj: Obj, path: str) -> Iterator[FieldCause]:
    name = dig(obj, "metadata", "name", default="")
    if not name.startswith("system-"):
        if (obj.get("value") or 0) > MAX_USER_PRIORITY:
            why = f"maximum allowed value of a user defined priority is {MAX_USER_PRIORITY}"
            yield forbidden("value", why)
    elif fault := _system_fault(name, obj):
        why = "priority class names with 'system-' prefix are reserved for system use only. error: "
        yield forbidden("metadata.name", why + fault)


class PriorityClassKind(Kind):
    has_generation = True
    namespaced = False
    revalidates = False
    generation_follows: ClassVar[tuple[str, ...]] = ()
    rules = r.every(_name_and_value, r.text("preemptionPolicy", r.choice("PreemptLowerPriority", "Never")))

    def update_causes(self, new: Obj, old: Obj) -> list[FieldCause]:
        causes = metadata_update_causes(new, old)
        if new.get("value") != old.get("value"):
            causes.append(forbidden("value", "may not be changed in an update."))
        return causes + immutable(new, old, "", "preemptionPolicy")
