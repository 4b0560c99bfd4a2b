"""Disruption budgets, autoscalers, ingresses, network policies, slices, priorities, webhooks, signing requests.

Called by the API through :func:`syncline.cluster.validation.strategy.strategy_for`. Source: the ``validation`` packages
of the groups policy, autoscaling, networking, discovery, scheduling, admissionregistration and certificates.
"""

from __future__ import annotations

from typing import ClassVar

from syncline.cluster.validation.engine import names
from syncline.cluster.validation.engine.base import Kind, spec_of
from syncline.cluster.validation.engine.causes import forbidden, invalid, required, unsupported
from syncline.cluster.validation.engine.fields import (
    at_most_100_percent,
    count_or_percent,
    each,
    immutable,
    label_selector_causes,
    natural_numbers,
)
from syncline.cluster.validation.engine.metadata import NameCheck, metadata_update_causes
from syncline.kube.errors import FieldCause
from syncline.kube.objects import Obj, dig

__all__ = [
    "DisruptionBudgetKind",
    "PriorityClassKind",
]

PATH_TYPES = ("Exact", "ImplementationSpecific", "Prefix")
ADDRESS_TYPES = ("FQDN", "IPv4", "IPv6")
MAX_USER_PRIORITY = 1_000_000_000
MAX_WEBHOOK_TIMEOUT_S = 30


class DisruptionBudgetKind(Kind):
    name_check: ClassVar[NameCheck] = staticmethod(names.path_segment)
    has_status = True
    has_generation = True
    empty_status: ClassVar[Obj | None] = {
        "disruptionsAllowed": 0,
        "currentHealthy": 0,
        "desiredHealthy": 0,
        "expectedPods": 0,
    }

    def content_causes(self, obj: Obj) -> list[FieldCause]:
        spec = spec_of(obj)
        causes: list[FieldCause] = []
        if spec.get("minAvailable") is not None and spec.get("maxUnavailable") is not None:
            causes.append(invalid("spec", spec, "minAvailable and maxUnavailable cannot be both set"))
        for key in ("minAvailable", "maxUnavailable"):
            if spec.get(key) is not None:
                causes += count_or_percent(spec[key], f"spec.{key}")
                causes += at_most_100_percent(spec[key], f"spec.{key}")
        policy = spec.get("unhealthyPodEvictionPolicy")
        if policy not in (None, "IfHealthyBudget", "AlwaysAllow"):
            allowed = ("AlwaysAllow", "IfHealthyBudget")
            causes.append(unsupported("spec.unhealthyPodEvictionPolicy", policy, allowed))
        return causes + label_selector_causes(spec.get("selector"), "spec.selector")

    def update_causes(self, new: Obj, old: Obj) -> list[FieldCause]:
        return []

    def status_causes(self, new: Obj, old: Obj) -> list[FieldCause]:
        causes = natural_numbers(new.get("status") or {}, "status", *(self.empty_status or {}))
        for where, condition in each(new.get("status"), "conditions", "status"):
            causes += condition_causes(condition, where)
        return causes


def condition_causes(condition: Obj, where: str) -> list[FieldCause]:
    """A condition of the newer form (``ValidateConditions``)."""
    kind, status = str(condition.get("type") or ""), condition.get("status") or ""
    causes = [] if kind else [required(f"{where}.type")]
    causes += [invalid(f"{where}.type", kind, problem) for problem in names.qualified_name(kind) if kind]
    if status not in ("True", "False", "Unknown"):
        causes.append(unsupported(f"{where}.status", status, ("False", "True", "Unknown")))
    causes += [required(f"{where}.{key}") for key in ("lastTransitionTime", "reason") if not condition.get(key)]
    return causes


class PriorityClassKind(Kind):
    has_generation = True
    namespaced = False
    revalidates = False
    generation_follows: ClassVar[tuple[str, ...]] = ()

    def content_causes(self, obj: Obj) -> list[FieldCause]:
        causes: list[FieldCause] = []
        name = dig(obj, "metadata", "name", default="")
        if name.startswith("system-"):
            if fault := _system_fault(name, obj):
                why = "priority class names with 'system-' prefix are reserved for system use only. error: "
                causes.append(forbidden("metadata.name", why + fault))
        elif (obj.get("value") or 0) > MAX_USER_PRIORITY:
            why = f"maximum allowed value of a user defined priority is {MAX_USER_PRIORITY}"
            causes.append(forbidden("value", why))
        policy = obj.get("preemptionPolicy")
        if policy not in ("Never", "PreemptLowerPriority"):
            causes.append(unsupported("preemptionPolicy", policy or "", ("PreemptLowerPriority", "Never")))
        return causes

    def update_causes(self, new: Obj, old: Obj) -> list[FieldCause]:
        causes = metadata_update_causes(new, old)
        if new.get("value") != old.get("value"):
            causes.append(forbidden("value", "may not be changed in an update."))
        return causes + immutable(new, old, "", "preemptionPolicy")


_SYSTEM_PRIORITIES = {"system-node-critical": 2000001000, "system-cluster-critical": 2000000000}


def _system_fault(name: str, obj: Obj) -> str:
    """How a class with a system's name differs from the one that Kubernetes makes itself."""
    if name not in _SYSTEM_PRIORITIES:
        return f"{name} is not a known system priority class"
    if (obj.get("value") or 0) != _SYSTEM_PRIORITIES[name]:
        return f"value of {name} PriorityClass must be {_SYSTEM_PRIORITIES[name]}"
    return f"globalDefault of {name} PriorityClass must be false" if obj.get("globalDefault") else ""
