"""HorizontalPodAutoscalers: bounds, metrics, behaviour.

The API calls it through :func:`syncline.cluster.validation.strategy.strategy_for` for both served versions; v1 has a
single target. Source: Kubernetes ``pkg/apis/autoscaling/validation``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, ClassVar

from syncline.cluster.validation.engine import rules as r
from syncline.cluster.validation.engine.base import Context, Kind
from syncline.cluster.validation.engine.causes import forbidden, invalid, required, unsupported
from syncline.cluster.validation.pods.resources import container_name_causes
from syncline.cluster.validation.workloads.autoscalerversions import autoscaler_to_v1, autoscaler_to_v2, drop_kept
from syncline.kube.errors import FieldCause
from syncline.kube.objects import Obj

V1 = "autoscaling/v1"
TYPES = ("ContainerResource", "External", "Object", "Pods", "Resource")
FIELDS = {
    "Object": "object",
    "External": "external",
    "Pods": "pods",
    "Resource": "resource",
    "ContainerResource": "containerResource",
}


def _as_v2(obj: Obj) -> Obj:
    return autoscaler_to_v2(obj) if obj.get("apiVersion") == V1 else {**obj, "metadata": drop_kept(obj)}


def _take(obj: Obj, hub: Obj) -> None:
    """Replace the content of ``obj`` by that of ``hub``, in the version of ``obj``."""
    made = autoscaler_to_v1(hub, exact=True) if obj.get("apiVersion") == V1 else hub
    obj.clear()
    obj.update(made)


# --- metrics -------------------------------------------------------------------------------------------------------


def _size(low: int, why: str) -> r.Rule:
    """Require a quantity of at least ``low``; 1 means above zero."""

    def judge(value: Any, path: str) -> list[FieldCause]:
        size = r.amount(value)
        return [invalid(path, str(size), why)] if size is not None and size.nano < low else []

    return judge


def _version_causes(reference: Obj, path: str, *, grouped: bool) -> Iterator[FieldCause]:
    """Validate a version. ``grouped``: it is a scale target's and needs a group, because core kinds cannot be scaled by
    it."""
    version = str(reference.get("apiVersion") or "")
    if version.count("/") > 1:
        yield invalid(f"{path}.apiVersion", version, f"unexpected GroupVersion string: {version}")
    elif grouped and "/" not in version and reference.get("kind") != "ReplicationController":
        yield invalid(f"{path}.apiVersion", version, "apiVersion must specify API group")


def _reference(*, grouped: bool) -> r.Table:
    return r.every(r.need("kind", r.segment), r.need("name", r.segment), partial(_version_causes, grouped=grouped))


def _lacking(*keys: str) -> Callable[[Obj], bool]:
    return lambda source: not r.has(*keys)(source.get("target") or {})


def _doubled(*keys: str) -> Callable[[Obj], bool]:
    return lambda source: all((source.get("target") or {}).get(key) is not None for key in keys)


_TARGET = r.part(
    "target",
    r.need("type", why="must specify a metric target type"),
    r.text(
        "type",
        r.must(
            lambda kind: kind in ("Utilization", "Value", "AverageValue"),
            "must be either Utilization, Value, or AverageValue",
        ),
    ),
    r.field("value", _size(1, "must be positive")),
    r.field("averageValue", _size(1, "must be positive")),
    r.field("averageUtilization", r.at_least(1, "must be greater than 0")),
)
_METRIC = r.part("metric", r.need("name", r.segment, why="must specify a metric name"))
_UTILIZATION = r.every(
    _TARGET,
    r.demand(
        _lacking("averageUtilization", "averageValue"),
        "target.averageUtilization",
        "must set either a target raw value or a target utilization",
    ),
    r.forbid(
        _doubled("averageUtilization", "averageValue"),
        "target.averageValue",
        "may not set both a target raw value and a target utilization",
    ),
)
_SOURCES: dict[str, r.Rule] = {
    "object": r.every(
        r.part("describedObject", _reference(grouped=False)),
        _METRIC,
        _TARGET,
        r.demand(
            _lacking("value", "averageValue"),
            "target.averageValue",
            "must set either a target value or averageValue",
        ),
    ),
    "external": r.every(
        _METRIC,
        _TARGET,
        r.demand(
            _lacking("value", "averageValue"),
            "target.averageValue",
            "must set either a target value for metric or a per-pod target",
        ),
        r.forbid(
            _doubled("value", "averageValue"),
            "target.value",
            "may not set both a target value for metric and a per-pod target",
        ),
    ),
    "pods": r.every(
        _METRIC,
        _TARGET,
        r.demand(_lacking("averageValue"), "target.averageValue", "must specify a positive target averageValue"),
    ),
    "resource": r.every(r.need("name", why="must specify a resource name"), _UTILIZATION),
    "containerResource": r.every(
        r.need("name", container_name_causes, why="must specify a resource name"),
        r.need("container", r.label, why="must specify a container"),
        _UTILIZATION,
    ),
}


def _metric_causes(metric: Obj, at: str) -> Iterator[FieldCause]:
    kind = str(metric.get("type") or "")
    if not kind:
        yield required(f"{at}.type", "must specify a metric source type")
    if kind not in TYPES:
        # Kubernetes reports it twice.
        yield from [unsupported(f"{at}.type", kind, TYPES)] * 2
    present = [field for field in FIELDS.values() if isinstance(metric.get(field), dict)]
    if present:
        yield from _SOURCES[present[0]](metric[present[0]], f"{at}.{present[0]}")
    wanted = FIELDS.get(kind)
    if wanted and wanted not in present:
        yield required(f"{at}.{wanted}", "must populate information for the given metric source")
    for field in present if len(present) != 1 else ():
        if field != wanted:
            yield forbidden(f"{at}.{field}", "must populate the given metric source only")


# --- the whole -----------------------------------------------------------------------------------------------------

_POLICY = r.every(
    r.text("type", r.choice("Percent", "Pods")),
    r.number("value", r.at_least(1, "must be greater than zero")),
    r.number("periodSeconds", r.at_least(1, "must be greater than zero")),
    r.number("periodSeconds", r.at_most(1800, "must be less than or equal to 1800")),
)
_RULES = r.every(
    r.field(
        "stabilizationWindowSeconds",
        r.at_least(0, "must be greater than or equal to zero"),
        r.at_most(3600, "must be less than or equal to 3600"),
    ),
    r.field("selectPolicy", r.choice("Disabled", "Max", "Min")),
    r.need("policies", why="must specify at least one Policy"),
    r.each("policies", _POLICY),
    r.field("tolerance", r.not_negative),
)


def _replica_causes(spec: Obj, path: str) -> Iterator[FieldCause]:
    least, most = spec.get("minReplicas"), spec.get("maxReplicas") or 0
    if least is not None and least < 1:
        yield invalid(f"{path}.minReplicas", least, "must be greater than or equal to 1")
    if most == 0:
        yield required(f"{path}.maxReplicas", "must be set and greater than 0")
    elif most < 0:
        yield invalid(f"{path}.maxReplicas", most, "must be greater than or equal to 1")
    if least is not None and most < least:
        yield invalid(f"{path}.maxReplicas", most, "must be greater than or equal to `minReplicas`")


_SPEC = r.spec(
    _replica_causes,
    r.part("scaleTargetRef", _reference(grouped=True)),
    r.each("metrics", _metric_causes),
    r.forbid(
        lambda spec: (
            spec.get("minReplicas") == 0
            and not any(one.get("type") in ("Object", "External") for one in r.list_of(spec, "metrics"))
        ),
        "metrics",
        "must specify at least one Object or External metric to support scaling to zero replicas",
    ),
    r.part("behavior", r.field("scaleUp", _RULES), r.field("scaleDown", _RULES)),
)


class AutoscalerKind(Kind):
    has_status = True
    empty_status: ClassVar[Obj | None] = {"desiredReplicas": 0, "currentMetrics": None}
    revalidates = False
    judged_again = True
    status_rules = r.natural("currentReplicas", "desiredReplicas")

    def prepare_create(self, obj: Obj, ctx: Context) -> None:
        hub = _as_v2(obj)
        super().prepare_create(hub, ctx)
        _take(obj, hub)

    def prepare_update(self, new: Obj, old: Obj, ctx: Context, subresource: str) -> None:
        hub = _as_v2(new)
        super().prepare_update(hub, _as_v2(old), ctx, subresource)
        _take(new, hub)

    def content_causes(self, obj: Obj) -> list[FieldCause]:
        return list(_SPEC(_as_v2(obj), ""))
