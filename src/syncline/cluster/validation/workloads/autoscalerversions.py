"""Convert HorizontalPodAutoscalers between v1 and v2; v1 stores in annotations what it has no field for.

The conversion of stored objects calls it, and the kind, which validates v1 as v2. The input is never mutated.
Annotations that cannot be decoded are dropped. Source: Kubernetes ``pkg/apis/autoscaling/v1/conversion.go``.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, NamedTuple

from syncline.base.clock import format_time, parse_time
from syncline.kube.objects import Obj, dig
from syncline.kube.text.quantity import QuantityError, parse_quantity

PREFIX = "autoscaling.alpha.kubernetes.io/"
METRICS, BEHAVIOR = PREFIX + "metrics", PREFIX + "behavior"
CURRENT, CONDITIONS = PREFIX + "current-metrics", PREFIX + "conditions"
KEPT = (METRICS, BEHAVIOR, CURRENT, CONDITIONS, PREFIX + "scale-up-tolerance", PREFIX + "scale-down-tolerance")
DEFAULT_CPU_PERCENT = 80
INT32 = 2**31


class _Malformed(ValueError):
    """The annotation is not in v1's format."""


# --- typed values --------------------------------------------------------------------------------------------------


def _text(value: Any) -> str:
    if value is None:
        return ""
    if not isinstance(value, str):
        raise _Malformed
    return value


def _time(value: Any) -> str | None:
    return format_time(parse_time(_text(value))) if value is not None else None


def _int(value: Any) -> int:
    if value is None:
        return 0
    if not isinstance(value, int) or isinstance(value, bool) or not -INT32 <= value < INT32:
        raise _Malformed
    return value


def _size(value: Any) -> str:
    if value is None:
        return "0"
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise _Malformed
    try:
        return str(parse_quantity(value))
    except QuantityError:
        raise _Malformed from None


def _struct(value: Any) -> Obj:
    """Return a JSON object with lower-case keys, since Go ignores their case."""
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise _Malformed
    return {key.lower(): one for key, one in value.items()}


def _list(value: Any) -> list[Any]:
    if value is None:
        return []
    if not isinstance(value, list):
        raise _Malformed
    return value


def _reference(value: Any) -> Obj:
    given = _struct(value)
    reference = {"kind": _text(given.get("kind")), "name": _text(given.get("name"))}
    version = _text(given.get("apiversion"))
    return {**reference, "apiVersion": version} if version else reference


def _selector(value: Any) -> Obj:
    given = _struct(value)
    selector: Obj = {}
    labels, terms = given.get("matchlabels"), _list(given.get("matchexpressions"))
    if labels is not None and not isinstance(labels, dict):
        raise _Malformed
    if labels:
        selector["matchLabels"] = {key: _text(labels[key]) for key in sorted(labels)}
    if terms:
        selector["matchExpressions"] = [_requirement(_struct(term)) for term in terms]
    return selector


def _requirement(given: Obj) -> Obj:
    values = [_text(one) for one in _list(given.get("values"))]
    term: Obj = {"key": _text(given.get("key")), "operator": _text(given.get("operator"))}
    return {**term, "values": values} if values else term


# --- metrics -------------------------------------------------------------------------------------------------------


class _Field(NamedTuple):
    old: str
    """The key in v1."""
    new: tuple[str, ...]
    """The path in v2."""
    read: Callable[[Any], Any]
    optional: bool = False


_NAME = _Field("metricName", ("metric", "name"), _text)
_OF = _Field("target", ("describedObject",), _reference)
_SELECTED = _Field("selector", ("metric", "selector"), _selector, True)
_RESOURCE = _Field("name", ("name",), _text)
_CONTAINER = _Field("container", ("container",), _text)
_PERCENT = _Field("targetAverageUtilization", ("target", "averageUtilization"), _int, True)
_AVERAGE = _Field("targetAverageValue", ("target", "averageValue"), _size, True)
_NOW_PERCENT = _Field("currentAverageUtilization", ("current", "averageUtilization"), _int, True)
_NOW_AVERAGE = _Field("currentAverageValue", ("current", "averageValue"), _size)
_EXTERNAL_SELECTED = _SELECTED._replace(old="metricSelector")

# In the order in which v1 writes them.
_WANTED: dict[str, tuple[_Field, ...]] = {
    "object": (
        _OF,
        _NAME,
        _Field("targetValue", ("target", "value"), _size),
        _SELECTED,
        _AVERAGE._replace(old="averageValue"),
    ),
    "pods": (_NAME, _AVERAGE._replace(optional=False), _SELECTED),
    "resource": (_RESOURCE, _PERCENT, _AVERAGE),
    "containerResource": (_RESOURCE, _PERCENT, _AVERAGE, _CONTAINER),
    "external": (_NAME, _EXTERNAL_SELECTED, _Field("targetValue", ("target", "value"), _size, True), _AVERAGE),
}
_MEASURED: dict[str, tuple[_Field, ...]] = {
    "object": (
        _OF,
        _NAME,
        _Field("currentValue", ("current", "value"), _size),
        _SELECTED,
        _NOW_AVERAGE._replace(old="averageValue", optional=True),
    ),
    "pods": (_NAME, _NOW_AVERAGE, _SELECTED),
    "resource": (_RESOURCE, _NOW_PERCENT, _NOW_AVERAGE),
    "containerResource": (_RESOURCE, _NOW_PERCENT, _NOW_AVERAGE, _CONTAINER),
    "external": (
        _NAME,
        _EXTERNAL_SELECTED,
        _Field("currentValue", ("current", "value"), _size),
        _NOW_AVERAGE._replace(optional=True),
    ),
}


def _metric_to_v1(metric: Obj, shapes: dict[str, tuple[_Field, ...]], *, exact: bool = False) -> Obj:
    """``exact``: a missing amount stays missing, though v1 writes some as zero."""
    old: Obj = {"type": metric.get("type") or ""}
    for source, shape in shapes.items():
        given = metric.get(source)
        if isinstance(given, dict):
            values = ((one, dig(given, *one.new)) for one in shape)
            old[source] = {
                one.old: None if exact and value is None and one.read is _size else one.read(value)
                for one, value in values
                if value is not None or not one.optional
            }
    return old


def _metric_to_v2(value: Any, shapes: dict[str, tuple[_Field, ...]]) -> Obj:
    metric = _struct(value)
    new: Obj = {"type": _text(metric.get("type"))}
    for source, shape in shapes.items():
        if metric.get(source.lower()) is None:
            continue
        given = _struct(metric[source.lower()])
        made: Obj = {"target": {}} if shapes is _WANTED else {"current": {}}
        for one in shape:
            found = given.get(one.old.lower(), 0 if one.read is _size and not one.optional else None)
            if found is not None or not (one.optional or one.read is _size):
                _put(made, one.new, one.read(found))
        if shapes is _WANTED:
            _say_type(source, made["target"])
        new[source] = made
    return new


def _put(into: Obj, path: tuple[str, ...], value: Any) -> None:
    for key in path[:-1]:
        into = into.setdefault(key, {})
    into[path[-1]] = value


def _say_type(source: str, target: Obj) -> None:
    """Set the target's type, which v1 lacks, according to its fields."""
    if source == "object":
        average = "averageValue" in target
        if average and target.get("value") == "0":
            del target["value"]
        target["type"] = "AverageValue" if average else "Value"
    elif source == "external":
        target["type"] = "Value" if "value" in target else "AverageValue"
    else:
        target["type"] = "Utilization" if "averageUtilization" in target else "AverageValue"


def _cpu_share(metric: Any, part: str) -> int | None:
    """Return a CPU metric's percentage, for which v1 has a field."""
    if dig(metric, "type") != "Resource" or dig(metric, "resource", "name") != "cpu":
        return None
    share = dig(metric, "resource", part, "averageUtilization")
    return share if isinstance(share, int) else None


def _cpu(part: str, percent: int, **more: str) -> Obj:
    return {"type": "Resource", "resource": {"name": "cpu", part: {**more, "averageUtilization": percent}}}


# --- behaviour and conditions --------------------------------------------------------------------------------------

# The annotation has the names of Go's fields, because it encodes the internal type.
_RULES = {"StabilizationWindowSeconds": _int, "SelectPolicy": _text, "Policies": None, "Tolerance": _size}
_POLICY: dict[str, Callable[[Any], Any]] = {"Type": _text, "Value": _int, "PeriodSeconds": _int}


def _small(name: str) -> str:
    return name[0].lower() + name[1:]


def _rules_to_v1(rules: Any) -> Obj | None:
    if not isinstance(rules, dict):
        return None
    old: Obj = {name: rules.get(_small(name)) for name in _RULES}
    if isinstance(old["Policies"], list):
        old["Policies"] = [
            {name: read(one.get(_small(name))) for name, read in _POLICY.items()} for one in old["Policies"]
        ]
    return old


def _rules_to_v2(value: Any) -> Obj | None:
    if value is None:
        return None
    given, rules = _struct(value), {}
    for name, read in _RULES.items():
        found = given.get(name.lower())
        if found is not None:
            rules[_small(name)] = read(found) if read else [_policy_to_v2(one) for one in _list(found)]
    return rules


def _policy_to_v2(value: Any) -> Obj:
    given = _struct(value)
    return {_small(name): read(given.get(name.lower())) for name, read in _POLICY.items()}


def _behavior_to_v2(value: Any) -> Obj | None:
    given = _struct(value)
    both = {"scaleUp": _rules_to_v2(given.get("scaleup")), "scaleDown": _rules_to_v2(given.get("scaledown"))}
    return {key: rules for key, rules in both.items() if rules is not None} or None


def _condition(value: Any) -> Obj:
    given = _struct(value)
    condition: Obj = {"type": _text(given.get("type")), "status": _text(given.get("status"))}
    condition["lastTransitionTime"] = _time(given.get("lasttransitiontime"))
    for key in ("reason", "message"):
        if text := _text(given.get(key)):
            condition[key] = text
    return condition


# --- annotations ---------------------------------------------------------------------------------------------------


def _annotations(obj: Obj) -> Obj:
    found = dig(obj, "metadata", "annotations")
    return found if isinstance(found, dict) else {}


def drop_kept(obj: Obj, more: Obj | None = None) -> Obj:
    """Return the metadata of ``obj`` with ``more`` in place of the conversion's annotations."""
    metadata = dict(obj.get("metadata") or {})
    annotations = {key: value for key, value in _annotations(obj).items() if key not in KEPT} | (more or {})
    metadata.pop("annotations", None)
    if annotations:
        metadata["annotations"] = annotations
    return metadata


# Characters that Go's encoder escapes beyond JSON's rules.
_ESCAPED = str.maketrans({"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"})


def _encoded(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).translate(_ESCAPED)


def _decoded(annotations: Obj, key: str, read: Callable[[Any], Any]) -> Any:
    text = annotations.get(key)
    if not isinstance(text, str):
        return None
    try:
        return read(json.loads(text))
    except (ValueError, RecursionError):
        return None


# --- the two directions --------------------------------------------------------------------------------------------


def autoscaler_to_v2(obj: Obj) -> Obj:
    """Return a v1 autoscaler as v2, with its annotations converted to fields."""
    kept, spec, status = _annotations(obj), dict(obj.get("spec") or {}), dict(obj.get("status") or {})
    percent = spec.pop("targetCPUUtilizationPercentage", None)
    metrics = _decoded(kept, METRICS, lambda value: [_metric_to_v2(one, _WANTED) for one in _list(value)]) or []
    if percent is None and not metrics:
        percent = DEFAULT_CPU_PERCENT
    if percent is not None:
        metrics.append(_cpu("target", percent, type="Utilization"))
    spec["metrics"] = metrics
    behavior = _decoded(kept, BEHAVIOR, _behavior_to_v2)
    if behavior is not None:
        spec["behavior"] = behavior
    share = status.pop("currentCPUUtilizationPercentage", None)
    current = _decoded(kept, CURRENT, lambda value: [_metric_to_v2(one, _MEASURED) for one in _list(value)])
    if current is None and share is not None:
        current = [_cpu("current", share)]
    status["currentMetrics"] = current
    conditions = _decoded(kept, CONDITIONS, lambda value: [_condition(one) for one in _list(value)])
    if conditions:
        status["conditions"] = conditions
    status.setdefault("desiredReplicas", 0)
    if not status.get("currentReplicas"):
        status.pop("currentReplicas", None)
    return {**obj, "apiVersion": "autoscaling/v2", "metadata": drop_kept(obj), "spec": spec, "status": status}


def autoscaler_to_v1(obj: Obj, *, exact: bool = False) -> Obj:
    """Return a v2 autoscaler as v1, with annotations for missing fields. ``exact``: measurements can be converted back
    without loss."""
    spec, status = dict(obj.get("spec") or {}), dict(obj.get("status") or {})
    metrics, behavior = spec.pop("metrics", None) or [], spec.pop("behavior", None)
    current, conditions = status.pop("currentMetrics", None) or [], status.pop("conditions", None) or []
    kept: Obj = {}
    percents = [share for one in metrics if (share := _cpu_share(one, "target")) is not None]
    if percents:
        spec["targetCPUUtilizationPercentage"] = percents[0]
    others = [_metric_to_v1(one, _WANTED) for one in metrics if _cpu_share(one, "target") is None]
    if others:
        kept[METRICS] = _encoded(others)
    if current:
        kept[CURRENT] = _encoded([_metric_to_v1(one, _MEASURED, exact=exact) for one in current])
    shares = [share for one in current if (share := _cpu_share(one, "current")) is not None]
    if shares:
        status["currentCPUUtilizationPercentage"] = shares[-1]
    if isinstance(behavior, dict):
        kept[BEHAVIOR] = _encoded({name: _rules_to_v1(behavior.get(_small(name))) for name in ("ScaleUp", "ScaleDown")})
    if conditions:
        kept[CONDITIONS] = _encoded([_condition(one) for one in conditions])
    status.setdefault("currentReplicas", 0)
    status.setdefault("desiredReplicas", 0)
    return {**obj, "apiVersion": "autoscaling/v1", "metadata": drop_kept(obj, kept), "spec": spec, "status": status}
