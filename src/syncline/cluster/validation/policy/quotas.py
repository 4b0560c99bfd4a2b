"""Limits of a namespace: ranges for each container, sums for all.

Called by the API through :func:`syncline.cluster.validation.strategy.strategy_for`. Source: Kubernetes
``ValidateLimitRange`` and ``ValidateResourceQuotaSpec``.
"""

from __future__ import annotations

from typing import Any, ClassVar

from syncline.cluster.validation.engine import names
from syncline.cluster.validation.engine.base import Context, Kind, spec_of
from syncline.cluster.validation.engine.causes import duplicate, forbidden, invalid, required
from syncline.cluster.validation.engine.fields import IMMUTABLE, each
from syncline.cluster.validation.engine.metadata import metadata_update_causes
from syncline.cluster.validation.pods.resources import (
    STANDARD,
    container_name_causes,
    is_hugepages,
    is_native,
    quantity_causes,
    resource_name_causes,
)
from syncline.kube.errors import FieldCause
from syncline.kube.objects import Obj, name_of
from syncline.kube.scheduling.podresources import amounts
from syncline.kube.text.quantity import Quantity, parse_quantity

__all__ = ["LimitRangeKind", "ResourceQuotaKind"]

LIMIT_TYPES = ("Pod", "Container", "PersistentVolumeClaim")
LIMIT_FIELDS = ("max", "min", "default", "defaultRequest", "maxLimitRequestRatio")
PLAIN_SCOPES = ("Terminating", "NotTerminating", "BestEffort", "NotBestEffort", "CrossNamespacePodAffinity")
SCOPES = (*PLAIN_SCOPES, "PriorityClass", "VolumeAttributesClass")
OPPOSITES = (("BestEffort", "NotBestEffort"), ("Terminating", "NotTerminating"))
POD_RESOURCES = frozenset(("cpu", "memory", "pods", "requests.cpu", "requests.memory", "limits.cpu", "limits.memory"))
CLAIM_RESOURCES = frozenset(("persistentvolumeclaims", "requests.storage"))
"""What a scope of classes of volumes can count."""
EXISTS_TEXT = (
    "must be 'Exists' when scope is any of ResourceQuotaScopeTerminating, ResourceQuotaScopeNotTerminating, "
    "ResourceQuotaScopeBestEffort, ResourceQuotaScopeNotBestEffort or ResourceQuotaScopeCrossNamespacePodAffinity"
)
ONE = parse_quantity("1")


# --- ranges --------------------------------------------------------------------------------------------------------


class LimitRangeKind(Kind):
    def prepare_create(self, obj: Obj, ctx: Context) -> None:
        """One without a name gets one (limitrangeStrategy)."""
        super().prepare_create(obj, ctx)
        if not name_of(obj):
            obj["metadata"]["name"] = ctx.entropy.uid()

    def content_causes(self, obj: Obj) -> list[FieldCause]:
        causes: list[FieldCause] = []
        seen: set[str] = set()
        for where, limit in each(spec_of(obj), "limits", "spec"):
            kind = str(limit.get("type", ""))
            causes += _type_causes(kind, f"{where}.type")
            if kind in seen:
                causes.append(duplicate(f"{where}.type", kind))
            seen.add(kind)
            causes += _limit_causes(limit, kind, where)
        return causes


def _type_causes(kind: str, path: str) -> list[FieldCause]:
    causes = [invalid(path, kind, problem) for problem in names.qualified_name(kind)]
    if not causes and "/" not in kind and kind not in LIMIT_TYPES:
        causes.append(invalid(path, kind, "must be a standard limit type or fully qualified"))
    return causes


def _limit_causes(limit: Obj, kind: str, where: str) -> list[FieldCause]:
    check = container_name_causes if kind in ("Pod", "Container") else resource_name_causes
    causes: list[FieldCause] = []
    fields: tuple[str, ...] = LIMIT_FIELDS
    if kind == "Pod":
        why = "may not be specified when `type` is 'Pod'"
        causes += [forbidden(f"{where}.{key}", why) for key in ("default", "defaultRequest") if limit.get(key)]
        fields = ("max", "min", "maxLimitRequestRatio")
    sizes = {key: dict(amounts(limit.get(key))) for key in fields}
    for key in fields:
        for name in sorted(sizes[key]):
            causes += check(name, f"{where}.{key}[{name}]")
    if kind == "PersistentVolumeClaim" and "storage" not in sizes["min"] and "storage" not in sizes["max"]:
        why = "either minimum or maximum storage value is required, but neither was provided"
        causes.append(required(f"{where}.limits", why))
    for name in sorted({name for listed in sizes.values() for name in listed}):
        causes += _order_causes({key: sizes[key].get(name) for key in fields}, name, where)
    return causes


def _order_causes(sizes: dict[str, Quantity | None], name: str, where: str) -> list[FieldCause]:
    """Minimum, default request, default limit and maximum stand in this order. Kubernetes names the wrong side of two
    of the comparisons."""
    least, most = sizes["min"], sizes["max"]
    limit, request, ratio = sizes.get("default"), sizes.get("defaultRequest"), sizes["maxLimitRequestRatio"]
    asked = f"{where}.defaultRequest[{name}]"
    rules = (
        (least, most, f"{where}.min[{name}]", least, "min value {} is greater than max value {}"),
        (least, request, asked, request, "min value {} is greater than default request value {}"),
        (request, most, asked, request, "default request value {} is greater than max value {}"),
        (request, limit, asked, request, "default request value {} is greater than default limit value {}"),
        (least, limit, f"{where}.default[{name}]", least, "min value {} is greater than default value {}"),
        (limit, most, f"{where}.default[{name}]", most, "default value {} is greater than max value {}"),
    )
    causes = [
        invalid(path, str(shown), text.format(low, high))
        for low, high, path, shown, text in rules
        if low is not None and high is not None and low > high
    ]
    path = f"{where}.maxLimitRequestRatio[{name}]"
    if ratio is not None and ratio < ONE:
        causes.append(invalid(path, str(ratio), f"ratio {ratio} is less than 1"))
    if ratio is not None and least is not None and most is not None and least.nano:
        widest = most.nano / least.nano
        if ratio.nano / ONE.nano > widest:
            causes.append(invalid(path, str(ratio), f"ratio {ratio} is greater than max/min = {widest:f}"))
    shared = is_native(name) and not is_hugepages(name)
    if not shared and limit is not None and request is not None and limit != request:
        why = f"default value {limit} must equal to defaultRequest value {request} in {name}"
        causes.append(invalid(asked, str(request), why))
    return causes


# --- quotas --------------------------------------------------------------------------------------------------------


class ResourceQuotaKind(Kind):
    has_status = True
    empty_status: ClassVar[Obj | None] = {}

    def content_causes(self, obj: Obj) -> list[FieldCause]:
        spec = spec_of(obj)
        causes = _hard_causes(spec.get("hard"), "spec.hard") + _scope_causes(spec)
        selector = spec.get("scopeSelector")
        return causes + (_selector_causes(spec, selector) if isinstance(selector, dict) else [])

    def update_causes(self, new: Obj, old: Obj) -> list[FieldCause]:
        causes = metadata_update_causes(new, old)
        if (spec_of(new).get("scopes") or []) != (spec_of(old).get("scopes") or []):
            causes.append(invalid("spec.scopes", spec_of(new).get("scopes"), IMMUTABLE))
        return causes

    def status_causes(self, new: Obj, old: Obj) -> list[FieldCause]:
        status: Obj = new.get("status") or {}
        return _hard_causes(status.get("hard"), "status.hard") + _hard_causes(status.get("used"), "status.used")


def _is_standard(name: str) -> bool:
    known = name in STANDARD or name.startswith(("hugepages-", "requests.hugepages-"))
    return known and name != "storage"


def _hard_causes(hard: Any, path: str) -> list[FieldCause]:
    causes: list[FieldCause] = []
    for name, amount in sorted(amounts(hard)):
        where = f"{path}[{name}]"
        causes += resource_name_causes(name, where)
        if "/" not in name and not _is_standard(name):
            causes.append(invalid(where, name, "must be a standard resource for quota"))
        causes += quantity_causes(name, amount, where)
    return causes


def _countable(scope: str, name: str) -> bool:
    """Whether a scope means anything for a resource."""
    match scope:
        case "BestEffort":
            return name == "pods"
        case "Terminating" | "NotTerminating" | "NotBestEffort" | "PriorityClass" | "CrossNamespacePodAffinity":
            return name in POD_RESOURCES
        case "VolumeAttributesClass":
            return name in CLAIM_RESOURCES
        case _:
            return True


def _scope_causes(spec: Obj) -> list[FieldCause]:
    scopes, path = spec.get("scopes") or [], "spec.scopes"
    standard = [name for name in spec.get("hard") or {} if _is_standard(name)]
    causes: list[FieldCause] = []
    for scope in scopes:
        if scope not in SCOPES:
            causes.append(invalid(path, scopes, "unsupported scope"))
        why = "unsupported scope applied to resource"
        causes += [invalid(path, scopes, why) for name in standard if not _countable(scope, name)]
    for one, other in OPPOSITES:
        if one in scopes and other in scopes:
            causes.append(invalid(path, scopes, "conflicting scopes"))
    return causes


def _selector_causes(spec: Obj, selector: Obj) -> list[FieldCause]:
    """Kubernetes names the list, not the expression."""
    path = "spec.scopeSelector.matchExpressions"
    standard = [name for name in spec.get("hard") or {} if _is_standard(name)]
    causes: list[FieldCause] = []
    seen: set[str] = set()
    for _, expression in each(selector, "matchExpressions", path):
        scope, operator = str(expression.get("scopeName") or ""), str(expression.get("operator") or "")
        values = expression.get("values") or []
        if scope not in SCOPES:
            causes.append(invalid(f"{path}.scopeName", scope, "unsupported scope"))
        why = "unsupported scope applied to resource"
        causes += [invalid(path, selector, why) for name in standard if not _countable(scope, name)]
        if scope in PLAIN_SCOPES and operator != "Exists":
            causes.append(invalid(f"{path}.operator", operator, EXISTS_TEXT))
        if operator in ("In", "NotIn"):
            if not values:
                why = "must be at least one value when `operator` is 'In' or 'NotIn' for scope selector"
                causes.append(required(f"{path}.values", why))
        elif operator in ("Exists", "DoesNotExist"):
            if values:
                why = "must be no value when `operator` is 'Exist' or 'DoesNotExist' for scope selector"
                causes.append(invalid(f"{path}.values", values, why))
        else:
            causes.append(invalid(f"{path}.operator", operator, "not a valid selector operator"))
        seen.add(scope)
    for one, other in OPPOSITES:
        if one in seen and other in seen:
            causes.append(invalid("spec.scopes", spec.get("scopes"), "conflicting scopes"))
    return causes
