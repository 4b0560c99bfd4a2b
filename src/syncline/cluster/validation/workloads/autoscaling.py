"""HorizontalPodAutoscalers: bounds, metrics, behaviour.

Called by the API through :func:`syncline.cluster.validation.strategy.strategy_for`; both served versions come here, the
older one with a single target. Source: Kubernetes ``pkg/apis/autoscaling/validation``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from syncline.cluster.validation.engine import names
from syncline.cluster.validation.engine.base import Context, Kind, spec_of
from syncline.cluster.validation.engine.causes import forbidden, invalid, required, unsupported
from syncline.cluster.validation.engine.fields import NATURAL, each, natural_numbers
from syncline.cluster.validation.engine.metadata import metadata_update_causes
from syncline.cluster.validation.engine.rules import amount
from syncline.cluster.validation.pods.resources import container_name_causes
from syncline.cluster.validation.workloads.autoscalerversions import autoscaler_to_v1, autoscaler_to_v2, drop_kept
from syncline.kube.errors import FieldCause
from syncline.kube.objects import Obj

__all__ = ["AutoscalerKind"]

V1 = "autoscaling/v1"
TYPES = ("ContainerResource", "External", "Object", "Pods", "Resource")
FIELDS = {
    "Object": "object",
    "External": "external",
    "Pods": "pods",
    "Resource": "resource",
    "ContainerResource": "containerResource",
}
TARGETS = ("Utilization", "Value", "AverageValue")
SELECTIONS = ("Disabled", "Max", "Min")
POLICIES = ("Percent", "Pods")
LONGEST_WINDOW_S, LONGEST_PERIOD_S = 3600, 1800


class AutoscalerKind(Kind):
    has_status = True
    empty_status: ClassVar[Obj | None] = {"desiredReplicas": 0, "currentMetrics": None}
    revalidates = False

    def prepare_create(self, obj: Obj, ctx: Context) -> None:
        hub = _as_v2(obj)
        super().prepare_create(hub, ctx)
        _take(obj, hub)

    def prepare_update(self, new: Obj, old: Obj, ctx: Context, subresource: str) -> None:
        hub = _as_v2(new)
        super().prepare_update(hub, _as_v2(old), ctx, subresource)
        _take(new, hub)

    def content_causes(self, obj: Obj) -> list[FieldCause]:
        spec = spec_of(_as_v2(obj))
        causes: list[FieldCause] = []
        least, most = spec.get("minReplicas"), spec.get("maxReplicas") or 0
        if isinstance(least, int) and least < 1:
            causes.append(invalid("spec.minReplicas", least, "must be greater than or equal to 1"))
        if most == 0:
            causes.append(required("spec.maxReplicas", "must be set and greater than 0"))
        elif most < 0:
            causes.append(invalid("spec.maxReplicas", most, "must be greater than or equal to 1"))
        if isinstance(least, int) and most < least:
            causes.append(invalid("spec.maxReplicas", most, "must be greater than or equal to `minReplicas`"))
        causes += _reference_causes(spec.get("scaleTargetRef") or {}, "spec.scaleTargetRef", grouped=True)
        for at, metric in each(spec, "metrics", "spec"):
            causes += _metric_causes(metric, at)
        if least == 0 and not any(one.get("type") in ("Object", "External") for _, one in each(spec, "metrics", "")):
            why = "must specify at least one Object or External metric to support scaling to zero replicas"
            causes.append(forbidden("spec.metrics", why))
        for key in ("scaleUp", "scaleDown"):
            rules = (spec.get("behavior") or {}).get(key)
            if isinstance(rules, dict):
                causes += _rule_causes(rules, f"spec.behavior.{key}")
        return causes

    def update_causes(self, new: Obj, old: Obj) -> list[FieldCause]:
        return metadata_update_causes(new, old) + self.content_causes(new)

    def status_causes(self, new: Obj, old: Obj) -> list[FieldCause]:
        return natural_numbers(new.get("status") or {}, "status", "currentReplicas", "desiredReplicas")


def _as_v2(obj: Obj) -> Obj:
    return autoscaler_to_v2(obj) if obj.get("apiVersion") == V1 else {**obj, "metadata": drop_kept(obj)}


def _take(obj: Obj, hub: Obj) -> None:
    """Make ``obj``, in its own version, what ``hub`` is."""
    made = autoscaler_to_v1(hub, exact=True) if obj.get("apiVersion") == V1 else hub
    obj.clear()
    obj.update(made)


def _reference_causes(reference: Obj, path: str, *, grouped: bool = False) -> list[FieldCause]:
    """``grouped``: of what is scaled, whose version must name a group, for core kinds cannot be scaled by it."""
    causes: list[FieldCause] = []
    for key in ("kind", "name"):
        value = str(reference.get(key) or "")
        if not value:
            causes.append(required(f"{path}.{key}"))
        causes += [invalid(f"{path}.{key}", value, one) for one in names.path_segment(value)]
    version, kind = str(reference.get("apiVersion") or ""), reference.get("kind")
    if version.count("/") > 1:
        causes.append(invalid(f"{path}.apiVersion", version, f"unexpected GroupVersion string: {version}"))
    elif grouped and "/" not in version and kind != "ReplicationController":
        causes.append(invalid(f"{path}.apiVersion", version, "apiVersion must specify API group"))
    return causes


def _metric_causes(metric: Obj, at: str) -> list[FieldCause]:
    kind = str(metric.get("type") or "")
    causes: list[FieldCause] = []
    if not kind:
        causes.append(required(f"{at}.type", "must specify a metric source type"))
    if kind not in TYPES:
        # Kubernetes says it twice.
        causes += [unsupported(f"{at}.type", kind, TYPES)] * 2
    present = [field for field in FIELDS.values() if isinstance(metric.get(field), dict)]
    if present:
        causes += _SOURCES[present[0]](metric[present[0]], f"{at}.{present[0]}")
    wanted = FIELDS.get(kind)
    if wanted and not isinstance(metric.get(wanted), dict):
        causes.append(required(f"{at}.{wanted}", "must populate information for the given metric source"))
    if len(present) != 1:
        why = "must populate the given metric source only"
        causes += [forbidden(f"{at}.{field}", why) for field in present if field != wanted]
    return causes


def _target_causes(source: Obj, path: str) -> list[FieldCause]:
    target, where = source.get("target") or {}, f"{path}.target"
    kind = str(target.get("type") or "")
    causes: list[FieldCause] = []
    if not kind:
        causes.append(required(f"{where}.type", "must specify a metric target type"))
    if kind not in TARGETS:
        causes.append(invalid(f"{where}.type", kind, "must be either Utilization, Value, or AverageValue"))
    for key in ("value", "averageValue"):
        size = amount(target.get(key))
        if size is not None and size.nano <= 0:
            causes.append(invalid(f"{where}.{key}", str(size), "must be positive"))
    percent = target.get("averageUtilization")
    if isinstance(percent, int) and percent < 1:
        causes.append(invalid(f"{where}.averageUtilization", percent, "must be greater than 0"))
    return causes


def _named_causes(source: Obj, path: str) -> list[FieldCause]:
    name = str((source.get("metric") or {}).get("name") or "")
    if not name:
        return [required(f"{path}.metric.name", "must specify a metric name")]
    return [invalid(f"{path}.metric.name", name, one) for one in names.path_segment(name)]


def _given(source: Obj, *keys: str) -> list[str]:
    target = source.get("target") or {}
    return [key for key in keys if target.get(key) is not None]


def _object(source: Obj, path: str) -> list[FieldCause]:
    causes = _reference_causes(source.get("describedObject") or {}, f"{path}.describedObject")
    causes += _named_causes(source, path) + _target_causes(source, path)
    if not _given(source, "value", "averageValue"):
        causes.append(required(f"{path}.target.averageValue", "must set either a target value or averageValue"))
    return causes


def _external(source: Obj, path: str) -> list[FieldCause]:
    causes = _named_causes(source, path) + _target_causes(source, path)
    given = _given(source, "value", "averageValue")
    if not given:
        why = "must set either a target value for metric or a per-pod target"
        causes.append(required(f"{path}.target.averageValue", why))
    if len(given) == 2:
        why = "may not set both a target value for metric and a per-pod target"
        causes.append(forbidden(f"{path}.target.value", why))
    return causes


def _pods(source: Obj, path: str) -> list[FieldCause]:
    causes = _named_causes(source, path) + _target_causes(source, path)
    if not _given(source, "averageValue"):
        causes.append(required(f"{path}.target.averageValue", "must specify a positive target averageValue"))
    return causes


def _resource(source: Obj, path: str) -> list[FieldCause]:
    causes = [] if source.get("name") else [required(f"{path}.name", "must specify a resource name")]
    return causes + _utilization_causes(source, path)


def _utilization_causes(source: Obj, path: str) -> list[FieldCause]:
    causes = _target_causes(source, path)
    given = _given(source, "averageUtilization", "averageValue")
    if not given:
        why = "must set either a target raw value or a target utilization"
        causes.append(required(f"{path}.target.averageUtilization", why))
    if len(given) == 2:
        why = "may not set both a target raw value and a target utilization"
        causes.append(forbidden(f"{path}.target.averageValue", why))
    return causes


def _container_resource(source: Obj, path: str) -> list[FieldCause]:
    name, container = str(source.get("name") or ""), str(source.get("container") or "")
    causes = container_name_causes(name, f"{path}.name")
    if not name:
        causes = [required(f"{path}.name", "must specify a resource name")]
    if container:
        causes += [invalid(f"{path}.container", container, one) for one in names.dns_label(container)]
    else:
        causes.append(required(f"{path}.container", "must specify a container"))
    return causes + _utilization_causes(source, path)


_SOURCES: dict[str, Callable[[Obj, str], list[FieldCause]]] = {
    "object": _object,
    "external": _external,
    "pods": _pods,
    "resource": _resource,
    "containerResource": _container_resource,
}


def _rule_causes(rules: Obj, path: str) -> list[FieldCause]:
    causes: list[FieldCause] = []
    window, select, tolerance = (rules.get(key) for key in ("stabilizationWindowSeconds", "selectPolicy", "tolerance"))
    where = f"{path}.stabilizationWindowSeconds"
    if isinstance(window, int) and window < 0:
        causes.append(invalid(where, window, "must be greater than or equal to zero"))
    if isinstance(window, int) and window > LONGEST_WINDOW_S:
        causes.append(invalid(where, window, f"must be less than or equal to {LONGEST_WINDOW_S}"))
    if select is not None and select not in SELECTIONS:
        causes.append(unsupported(f"{path}.selectPolicy", select, SELECTIONS))
    if not rules.get("policies"):
        causes.append(required(f"{path}.policies", "must specify at least one Policy"))
    for at, policy in each(rules, "policies", path):
        causes += _policy_causes(policy, at)
    size: Any = amount(tolerance)
    if size is not None and size.nano < 0:
        causes.append(invalid(f"{path}.tolerance", str(size), NATURAL))
    return causes


def _policy_causes(policy: Obj, at: str) -> list[FieldCause]:
    causes: list[FieldCause] = []
    kind, period = str(policy.get("type") or ""), policy.get("periodSeconds") or 0
    if kind not in POLICIES:
        causes.append(unsupported(f"{at}.type", kind, POLICIES))
    for key in ("value", "periodSeconds"):
        if (policy.get(key) or 0) <= 0:
            causes.append(invalid(f"{at}.{key}", policy.get(key) or 0, "must be greater than zero"))
    if period > LONGEST_PERIOD_S:
        causes.append(invalid(f"{at}.periodSeconds", period, f"must be less than or equal to {LONGEST_PERIOD_S}"))
    return causes
