"""Disruption budgets, autoscalers, ingresses, network policies, slices, priorities, webhooks, signing requests.

Called by the API through :func:`syncline.cluster.kinds.strategy.strategy_for`. Source: the ``validation`` packages of
the groups policy, autoscaling, networking, discovery, scheduling, admissionregistration and certificates.
"""

from __future__ import annotations

from typing import ClassVar

from syncline.cluster.kinds import names
from syncline.cluster.kinds.base import Kind, spec_of
from syncline.cluster.kinds.causes import duplicate, forbidden, invalid, required, unsupported
from syncline.cluster.kinds.fields import (
    at_most_100_percent,
    count_or_percent,
    each,
    immutable,
    label_selector_causes,
    natural_numbers,
)
from syncline.cluster.kinds.metadata import NameCheck, metadata_update_causes
from syncline.kube.errors import FieldCause
from syncline.kube.objects import Obj, dig

__all__ = [
    "DisruptionBudgetKind",
    "PriorityClassKind",
    "WebhookKind",
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
    generation_follows: ClassVar[tuple[str, ...]] = ("value", "globalDefault", "description", "preemptionPolicy")

    def content_causes(self, obj: Obj) -> list[FieldCause]:
        causes: list[FieldCause] = []
        name = dig(obj, "metadata", "name", default="")
        if name.startswith("system-") and name not in ("system-cluster-critical", "system-node-critical"):
            why = (
                "priority class names with 'system-' prefix are reserved for system use only. error: "
                f"{name} is not a known system priority class"
            )
            causes.append(forbidden("metadata.name", why))
        elif (obj.get("value") or 0) > MAX_USER_PRIORITY and not name.startswith("system-"):
            why = f"maximum allowed value of a user defined priority is {MAX_USER_PRIORITY}"
            causes.append(forbidden("value", why))
        policy = obj.get("preemptionPolicy")
        if policy not in ("Never", "PreemptLowerPriority"):
            causes.append(unsupported("preemptionPolicy", policy or "", ("Never", "PreemptLowerPriority")))
        return causes

    def update_causes(self, new: Obj, old: Obj) -> list[FieldCause]:
        causes = metadata_update_causes(new, old)
        if new.get("value") != old.get("value"):
            causes.append(forbidden("value", "may not be changed in an update."))
        return causes + immutable(new, old, "", "preemptionPolicy")


class WebhookKind(Kind):
    """Validating and mutating webhook configurations."""

    has_generation = True
    namespaced = False
    generation_follows: ClassVar[tuple[str, ...]] = ("webhooks",)

    def content_causes(self, obj: Obj) -> list[FieldCause]:
        causes: list[FieldCause] = []
        seen: set[str] = set()
        for where, hook in each(obj, "webhooks", ""):
            path, name = where.removeprefix("."), str(hook.get("name") or "")
            causes += _webhook_causes(hook, path)
            if name in seen:
                causes.append(duplicate(f"{path}.name", name))
            seen.add(name)
        return causes


def _webhook_causes(hook: Obj, path: str) -> list[FieldCause]:
    name = str(hook.get("name") or "")
    causes = _full_name_causes(name, f"{path}.name")
    if not hook.get("admissionReviewVersions"):
        causes.append(required(f"{path}.admissionReviewVersions", "must specify one of v1, v1beta1"))
    for key, allowed in (("failurePolicy", ("Fail", "Ignore")), ("matchPolicy", ("Equivalent", "Exact"))):
        if hook.get(key) not in (None, *allowed):
            causes.append(unsupported(f"{path}.{key}", hook[key], allowed))
    effects = hook.get("sideEffects")
    if effects is None:
        causes.append(required(f"{path}.sideEffects", "must specify one of None, NoneOnDryRun"))
    elif effects not in ("None", "NoneOnDryRun"):
        causes.append(unsupported(f"{path}.sideEffects", effects, ("None", "NoneOnDryRun")))
    timeout = hook.get("timeoutSeconds")
    if isinstance(timeout, int) and not 1 <= timeout <= MAX_WEBHOOK_TIMEOUT_S:
        why = f"the timeout value must be between 1 and {MAX_WEBHOOK_TIMEOUT_S} seconds"
        causes.append(invalid(f"{path}.timeoutSeconds", timeout, why))
    config = hook.get("clientConfig") or {}
    if (config.get("url") is None) == (config.get("service") is None):
        causes.append(required(f"{path}.clientConfig", "exactly one of url or service is required"))
    return causes


def _full_name_causes(name: str, path: str) -> list[FieldCause]:
    if not name:
        return [required(path)]
    causes = [invalid(path, name, problem) for problem in names.dns_subdomain(name)]
    if not causes and name.count(".") < 2:
        causes.append(invalid(path, name, "should be a domain with at least three segments separated by dots"))
    return causes
