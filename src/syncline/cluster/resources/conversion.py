"""Convert objects between the versions of their kind.

The verbs call :func:`convert` if a served version is not the stored one. Events (core and ``events.k8s.io``) and
horizontal pod autoscalers (v1 and v2) have two schemas; custom resources without a converter only change their
``apiVersion`` (conversion strategy None). The input is never mutated.
"""

from __future__ import annotations

from collections.abc import Callable

from syncline.cluster.validation.workloads.autoscalerversions import autoscaler_to_v1, autoscaler_to_v2
from syncline.kube.defaults.policies import fill_autoscaler
from syncline.kube.objects import GVK, Obj

_EVENT_CORE = GVK("", "v1", "Event")
_EVENT_NEW = GVK("events.k8s.io", "v1", "Event")
_HPA_V1 = GVK("autoscaling", "v1", "HorizontalPodAutoscaler")
_HPA_V2 = GVK("autoscaling", "v2", "HorizontalPodAutoscaler")

_HUBS = {_EVENT_NEW: _EVENT_CORE, _HPA_V1: _HPA_V2}


def hub_of(gvk: GVK) -> GVK:
    """Return the version in which objects of this kind are stored."""
    return _HUBS.get(gvk, gvk)


def convert(obj: Obj, target: GVK) -> Obj:
    """Return ``obj`` in version ``target``; the same object if it already has it."""
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


def _autoscaler_to_stored(obj: Obj) -> Obj:
    new = autoscaler_to_v2(obj)
    fill_autoscaler(_HPA_V2, new)
    return new


_CHANGES: dict[tuple[str, GVK], Callable[[Obj], Obj]] = {
    (_EVENT_NEW.api_version, _EVENT_CORE): _event_to_core,
    (_EVENT_CORE.api_version, _EVENT_NEW): _event_to_new,
    (_HPA_V1.api_version, _HPA_V2): _autoscaler_to_stored,
    (_HPA_V2.api_version, _HPA_V1): autoscaler_to_v1,
}
