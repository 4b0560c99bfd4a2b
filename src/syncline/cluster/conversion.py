"""One object in the versions of its kind.

Called by the verbs when a served version is not the stored one. Events (core and ``events.k8s.io``) and horizontal
pod autoscalers (v1 and v2) are one object with two faces; custom resources without a converter only change their
``apiVersion`` (conversion strategy None). Never mutates its input.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from syncline.kube.objects import GVK, Obj, dig

__all__ = ["convert", "hub_of"]

_EVENT_CORE = GVK("", "v1", "Event")
_EVENT_NEW = GVK("events.k8s.io", "v1", "Event")
_HPA_V1 = GVK("autoscaling", "v1", "HorizontalPodAutoscaler")
_HPA_V2 = GVK("autoscaling", "v2", "HorizontalPodAutoscaler")

_HUBS = {_EVENT_NEW: _EVENT_CORE, _HPA_V1: _HPA_V2}


def hub_of(gvk: GVK) -> GVK:
    """The version in which objects of this kind are stored."""
    return _HUBS.get(gvk, gvk)


def convert(obj: Obj, target: GVK) -> Obj:
    """``obj`` as ``target``; the same object when it is that already."""
    version = target.api_version
    if obj.get("apiVersion") == version:
        return obj
    change = _CHANGES.get((str(obj.get("apiVersion")), target))
    return change(obj) if change else {**obj, "apiVersion": version, "kind": target.kind}


_EVENT_NAMES = {
    "note": "message",
    "regarding": "involvedObject",
    "reportingController": "reportingComponent",
    "deprecatedSource": "source",
    "deprecatedFirstTimestamp": "firstTimestamp",
    "deprecatedLastTimestamp": "lastTimestamp",
    "deprecatedCount": "count",
}
_EVENT_NAMES_BACK = {old: new for new, old in _EVENT_NAMES.items()}


def _event_to_core(obj: Obj) -> Obj:
    core: Obj = {"apiVersion": "v1", "kind": "Event"}
    core.update({_EVENT_NAMES.get(key, key): value for key, value in obj.items() if key not in core})
    for key, empty in (("involvedObject", {}), ("source", {}), ("firstTimestamp", None), ("lastTimestamp", None)):
        core.setdefault(key, empty)
    core.setdefault("reportingComponent", "")
    core.setdefault("reportingInstance", "")
    return core


def _event_to_new(obj: Obj) -> Obj:
    new: Obj = {"apiVersion": "events.k8s.io/v1", "kind": "Event"}
    for key, value in obj.items():
        if key in new or value is None or (value in ("", {}) and key != "metadata"):
            continue
        new[_EVENT_NAMES_BACK.get(key, key)] = value
    for key, empty in (("eventTime", None), ("deprecatedFirstTimestamp", None), ("deprecatedLastTimestamp", None)):
        new.setdefault(key, empty)
    new.setdefault("regarding", {})
    new.setdefault("deprecatedSource", {})
    return new


def _hpa_to_v2(obj: Obj) -> Obj:
    spec = dict(obj.get("spec") or {})
    target = spec.pop("targetCPUUtilizationPercentage", None)
    if target is not None:
        spec["metrics"] = [_cpu_metric({"target": {"type": "Utilization", "averageUtilization": target}})]
    status = dict(obj.get("status") or {})
    current = status.pop("currentCPUUtilizationPercentage", None)
    if current is not None:
        status["currentMetrics"] = [_cpu_metric({"current": {"averageUtilization": current}})]
    return {**obj, "apiVersion": "autoscaling/v2", "spec": spec, "status": status}


def _cpu_metric(rest: Obj) -> Obj:
    return {"type": "Resource", "resource": {"name": "cpu", **rest}}


def _hpa_to_v1(obj: Obj) -> Obj:
    spec = dict(obj.get("spec") or {})
    percent = _cpu_percent(spec.pop("metrics", None), "target")
    spec.pop("behavior", None)
    if percent is not None:
        spec["targetCPUUtilizationPercentage"] = percent
    status = dict(obj.get("status") or {})
    current = _cpu_percent(status.pop("currentMetrics", None), "current")
    status.pop("conditions", None)
    if current is not None:
        status["currentCPUUtilizationPercentage"] = current
    status.setdefault("currentReplicas", 0)
    status.setdefault("desiredReplicas", 0)
    return {**obj, "apiVersion": "autoscaling/v1", "spec": spec, "status": status}


def _cpu_percent(metrics: Any, part: str) -> int | None:
    for metric in metrics if isinstance(metrics, list) else ():
        if dig(metric, "type") == "Resource" and dig(metric, "resource", "name") == "cpu":
            value = dig(metric, "resource", part, "averageUtilization")
            return value if isinstance(value, int) else None
    return None


_CHANGES: dict[tuple[str, GVK], Callable[[Obj], Obj]] = {
    (_EVENT_NEW.api_version, _EVENT_CORE): _event_to_core,
    (_EVENT_CORE.api_version, _EVENT_NEW): _event_to_new,
    (_HPA_V1.api_version, _HPA_V2): _hpa_to_v2,
    (_HPA_V2.api_version, _HPA_V1): _hpa_to_v1,
}
