"""Namespace limits: ranges per container, and totals.

The API calls it through :func:`syncline.cluster.validation.strategy.strategy_for`. Source: Kubernetes
``ValidateLimitRange`` and ``ValidateResourceQuotaSpec``.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

from syncline.cluster.validation.engine import rules as r
from syncline.cluster.validation.engine.base import IMMUTABLE, Context, Kind, spec_of
from syncline.cluster.validation.engine.causes import forbidden, invalid, required
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

LIMIT_TYPES = ("Pod", "Container", "PersistentVolumeClaim")
LIMIT_FIELDS = ("max", "min", "default", "defaultRequest", "maxLimitRequestRatio")
PLAIN_SCOPES = ("Terminating", "NotTerminating", "BestEffort", "NotBestEffort", "CrossNamespacePodAffinity")
SCOPES = (*PLAIN_SCOPES, "PriorityClass", "VolumeAttributesClass")
OPPOSITES = (("BestEffort", "NotBestEffort"), ("Terminating", "NotTerminating"))
POD_RESOURCES = frozenset(("cpu", "memory", "pods", "requests.cpu", "requests.memory", "limits.cpu", "limits.memory"))
COUNTED_BY = dict.fromkeys(SCOPES, POD_RESOURCES) | {
    "BestEffort": frozenset(("pods",)),
    "VolumeAttributesClass": frozenset(("persistentvolumeclaims", "requests.storage")),
}
"""The resources to which a scope applies."""
EXISTS_TEXT = (
    "must be 'Exists' when scope is any of ResourceQuotaScopeTerminating, ResourceQuotaScopeNotTerminating, "
    "ResourceQuotaScopeBestEffort, ResourceQuotaScopeNotBestEffort or ResourceQuotaScopeCrossNamespacePodAffinity"
)
NOT_COUNTED = "unsupported scope applied to resource"
ONE = parse_quantity("1")


# --- ranges --------------------------------------------------------------------------------------------------------


def _type_causes(kind: str, path: str) -> list[FieldCause]:
    standard = "/" in kind or kind in LIMIT_TYPES
    causes = [*r.qualified(kind, path)]
    return causes or ([] if standard else [invalid(path, kind, "must be a standard limit type or fully qualified")])


def _limit_causes(limit: Obj, where: str) -> Iterator[FieldCause]:
    kind = str(limit.get("type", ""))
    check = container_name_causes if kind in ("Pod", "Container") else resource_name_causes
    fields = LIMIT_FIELDS if kind != "Pod" else ("max", "min", "maxLimitRequestRatio")
    for key in ("default", "defaultRequest") if kind == "Pod" else ():
        if limit.get(key):
            yield forbidden(f"{where}.{key}", "may not be specified when `type` is 'Pod'")
    sizes = {key: dict(amounts(limit.get(key))) for key in fields}
    for key in fields:
        for name in sorted(sizes[key]):
            yield from check(name, f"{where}.{key}[{name}]")
    if kind == "PersistentVolumeClaim" and "storage" not in sizes["min"] and "storage" not in sizes["max"]:
        why = "either minimum or maximum storage value is required, but neither was provided"
        yield required(f"{where}.limits", why)
    for name in sorted({name for listed in sizes.values() for name in listed}):
        yield from _order_causes({key: sizes[key].get(name) for key in fields}, name, where)


def _order_causes(sizes: dict[str, Quantity | None], name: str, where: str) -> Iterator[FieldCause]:
    """Require the order minimum, default request, default limit, maximum. In two of the comparisons, Kubernetes names
    the wrong side."""
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
    for low, high, path, shown, text in rules:
        if low is not None and high is not None and low > high:
            yield invalid(path, str(shown), text.format(low, high))
    path = f"{where}.maxLimitRequestRatio[{name}]"
    if ratio is not None and ratio < ONE:
        yield invalid(path, str(ratio), f"ratio {ratio} is less than 1")
    if ratio is not None and least is not None and most is not None and least.nano:
        widest = most.nano / least.nano
        if ratio.nano / ONE.nano > widest:
            yield invalid(path, str(ratio), f"ratio {ratio} is greater than max/min = {widest:f}")
    shared = is_native(name) and not is_hugepages(name)
    if not shared and limit is not None and request is not None and limit != request:
        why = f"default value {limit} must equal to defaultRequest value {request} in {name}"
        yield invalid(asked, str(request), why)


class LimitRangeKind(Kind):
    rules = r.spec(r.each("limits", r.text("type", _type_causes), r.unique("type"), _limit_causes))

    def prepare_create(self, obj: Obj, ctx: Context) -> None:
        """Generate a missing name (limitrangeStrategy)."""
        super().prepare_create(obj, ctx)
        if not name_of(obj):
            obj["metadata"]["name"] = ctx.entropy.uid()


# --- quotas --------------------------------------------------------------------------------------------------------


def _is_standard(name: str) -> bool:
    known = name in STANDARD or name.startswith(("hugepages-", "requests.hugepages-"))
    return known and name != "storage"


def _hard_causes(hard: Any, path: str) -> Iterator[FieldCause]:
    for name, amount in sorted(amounts(hard)):
        where = f"{path}[{name}]"
        yield from resource_name_causes(name, where)
        if "/" not in name and not _is_standard(name):
            yield invalid(where, name, "must be a standard resource for quota")
        yield from quantity_causes(name, amount, where)


def _uncounted(spec: Obj, scope: str) -> int:
    """Return how many standard resources of a quota the scope does not apply to."""
    counted = COUNTED_BY.get(scope)
    return sum(_is_standard(name) and counted is not None and name not in counted for name in spec.get("hard") or {})


def _scope_causes(spec: Obj, path: str) -> Iterator[FieldCause]:
    scopes, path = spec.get("scopes") or [], f"{path}.scopes"
    for scope in scopes:
        if scope not in SCOPES:
            yield invalid(path, scopes, "unsupported scope")
        yield from [invalid(path, scopes, NOT_COUNTED)] * _uncounted(spec, scope)
    for pair in OPPOSITES:
        if set(pair) <= set(scopes):
            yield invalid(path, scopes, "conflicting scopes")


def _values_causes(expression: Obj, path: str) -> Iterator[FieldCause]:
    operator, values = expression.get("operator") or "", expression.get("values") or []
    if operator in ("In", "NotIn"):
        if not values:
            why = "must be at least one value when `operator` is 'In' or 'NotIn' for scope selector"
            yield required(f"{path}.values", why)
    elif operator not in ("Exists", "DoesNotExist"):
        yield invalid(f"{path}.operator", operator, "not a valid selector operator")
    elif values:
        why = "must be no value when `operator` is 'Exist' or 'DoesNotExist' for scope selector"
        yield invalid(f"{path}.values", values, why)


def _selector_causes(spec: Obj, at: str) -> Iterator[FieldCause]:
    """Validate the selector; causes name the list, not the expression, as in Kubernetes."""
    selector, path = spec.get("scopeSelector") or {}, f"{at}.scopeSelector.matchExpressions"
    seen: set[str] = set()
    for expression in r.list_of(selector, "matchExpressions"):
        scope, operator = str(expression.get("scopeName") or ""), str(expression.get("operator") or "")
        if scope not in SCOPES:
            yield invalid(f"{path}.scopeName", scope, "unsupported scope")
        yield from [invalid(path, selector, NOT_COUNTED)] * _uncounted(spec, scope)
        if scope in PLAIN_SCOPES and operator != "Exists":
            yield invalid(f"{path}.operator", operator, EXISTS_TEXT)
        yield from _values_causes(expression, path)
        seen.add(scope)
    for pair in OPPOSITES:
        if set(pair) <= seen:
            yield invalid(f"{at}.scopes", spec.get("scopes"), "conflicting scopes")


class ResourceQuotaKind(Kind):
    has_status = True
    empty_status: ClassVar[Obj | None] = {}
    rules = r.spec(r.field("hard", _hard_causes), _scope_causes, _selector_causes)
    status_rules = r.every(r.field("hard", _hard_causes), r.field("used", _hard_causes))

    def update_causes(self, new: Obj, old: Obj) -> list[FieldCause]:
        causes = metadata_update_causes(new, old)
        if (spec_of(new).get("scopes") or []) != (spec_of(old).get("scopes") or []):
            causes.append(invalid("spec.scopes", spec_of(new).get("scopes"), IMMUTABLE))
        return causes
