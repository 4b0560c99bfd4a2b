"""Scale targets of HorizontalPodAutoscalers to their bounds, and report why they do not scale further.

Source: Kubernetes' horizontal controller. An embedded cluster has no metrics: the target's replicas are only brought
within the minimum and maximum, and every metric is reported as unavailable, in the words that Kubernetes uses in a
cluster without a metrics API.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from syncline.base.clock import format_time, time_or_none
from syncline.cluster.builtin.actions import FindScale
from syncline.cluster.builtin.gotext import go_selector
from syncline.cluster.builtin.said import Said
from syncline.control.cache import Snapshot
from syncline.control.controller import Controller
from syncline.control.plan import Emit, Patch, Plan, Requeue, Result, SetStatus, set_status
from syncline.kube.objects import (
    GVK,
    GroupKind,
    Obj,
    ObjectRef,
    dig,
    is_terminating,
    name_of,
    namespace_of,
    split_api_version,
    uid_of,
)

COMPONENT = "horizontal-pod-autoscaler"
AUTOSCALER = GroupKind("autoscaling", "HorizontalPodAutoscaler")
MAX_OBJECTS = 10_000
"""Autoscalers whose last check is cached."""
PERIOD_S = 15.0
"""``--horizontal-pod-autoscaler-sync-period``: between two checks, and before the first."""
NO_RESOURCES = (
    "unable to fetch metrics from resource metrics API: the server could not find the requested resource "
    "(get pods.metrics.k8s.io)"
)
NO_CUSTOM = "unable to fetch metrics from custom metrics API: no custom metrics API (custom.metrics.k8s.io) registered"
GET_SCALE = "the HPA controller was unable to get the target's current scale: "
REPEATED = frozenset(
    (
        *("FailedGetScale", "FailedComputeMetricsReplicas", "AmbiguousSelector", "SelectorRequired"),
        *("FailedGetResourceMetric", "FailedGetContainerResourceMetric", "FailedGetPodsMetric"),
        *("FailedGetObjectMetric", "FailedGetExternalMetric"),
    )
)
"""Reasons of Events that repeat at each check."""


@dataclass(frozen=True, slots=True)
class Observed:
    """``rivals``: all autoscalers of the target; ``looked``: when the scale was last read; ``scale``: its value."""

    autoscaler: Obj
    rivals: tuple[str, ...]
    looked: datetime | None = None
    scale: Obj | None = None

    @property
    def target(self) -> ObjectRef:
        return _target(self.autoscaler)


@dataclass(frozen=True, slots=True)
class _Unknown:
    """An unavailable metric. ``error`` is its message, ``whole`` that of the whole computation."""

    reason: str
    error: str
    whole: str


def _target(autoscaler: Obj) -> ObjectRef:
    reference = dig(autoscaler, "spec", "scaleTargetRef", default={})
    group, _ = split_api_version(str(reference.get("apiVersion") or ""))
    return ObjectRef(group, str(reference.get("kind")), namespace_of(autoscaler), str(reference.get("name")))


def observe(cache: Snapshot, ref: ObjectRef) -> Observed | None:
    autoscaler = cache.get(ref)
    if autoscaler is None or is_terminating(autoscaler):
        return None
    target = _target(autoscaler)
    others = (each for each in cache.objects(AUTOSCALER, ref.namespace) if _target(each) == target)
    return Observed(autoscaler, tuple(sorted(name_of(each) for each in others)))


def plan(observed: Observed, now: datetime) -> Plan:
    """Read the scale one period after the creation or the last check, whatever changes meanwhile; :func:`settle`
    continues with it."""
    since = observed.looked or time_or_none(dig(observed.autoscaler, "metadata", "creationTimestamp")) or now
    left = (since + timedelta(seconds=PERIOD_S) - now).total_seconds()
    if left > 0:
        again = observed.looked is not None
        return Plan(outcome=Requeue(left, "an autoscaler looks every period", background=again), why="it is not time")
    return Plan(
        ((FindScale(observed.target, "an autoscaler scales it"),),), outcome=_later(), why="its scale is asked for"
    )


def settle(observed: Observed, results: tuple[Result, ...], now: datetime) -> tuple[Observed, Plan] | None:
    """Plan the status from the scale; then record the result of scaling."""
    for result in results:
        if isinstance(result.action, FindScale):
            if not result.ok:
                return observed, _without_scale(observed, str(result.error), now)
            found = replace(observed, scale=result.value)
            return found, _judge(found, now)
        if isinstance(result.action, SetStatus) and result.ok and isinstance(result.value, dict):
            observed = replace(observed, autoscaler=result.value)
        if isinstance(result.action, Patch) and observed.scale is not None:
            return observed, _rescaled(observed, result, now)
    return None


def _later() -> Requeue:
    return Requeue(PERIOD_S, "an autoscaler looks every period", background=True)


def _event(observed: Observed, reason: str, message: str, *, warning: bool = True) -> Emit:
    return Emit(observed.autoscaler, reason, message, COMPONENT, warning=warning)


def _conditions(status: Obj, now: datetime, *new: tuple[str, str, str, str]) -> list[Obj]:
    """Set conditions given as (type, status, reason, message), without changing their order."""
    found = {str(one.get("type")): one for one in status.get("conditions") or ()}
    for kind, value, reason, message in new:
        old = found.get(kind) or {}
        since = old.get("lastTransitionTime") if old.get("status") == value else format_time(now)
        found[kind] = {"type": kind, "status": value, "lastTransitionTime": since, "reason": reason, "message": message}
    return list(found.values())


def _without_scale(observed: Observed, error: str, now: datetime) -> Plan:
    status = dict(observed.autoscaler.get("status") or {})
    status["conditions"] = _conditions(status, now, ("AbleToScale", "False", "FailedGetScale", GET_SCALE + error))
    writes = set_status(observed.autoscaler, status, "what is scaled cannot be found")
    return Plan(status=(*writes, _event(observed, "FailedGetScale", error)), outcome=_later(), why="there is no scale")


def _replicas(observed: Observed) -> int:
    return int(dig(observed.scale, "spec", "replicas", default=0))


def _bound(observed: Observed) -> tuple[int, str] | None:
    """Return the bound that the target violates, and its description."""
    spec, current = observed.autoscaler.get("spec") or {}, _replicas(observed)
    least, most = int(spec.get("minReplicas") or 1), int(spec.get("maxReplicas") or 1)
    if current > most:
        return most, "Current number of replicas above Spec.MaxReplicas"
    if 0 < current < least:
        return least, "Current number of replicas below Spec.MinReplicas"
    return None


def _judge(observed: Observed, now: datetime) -> Plan:
    bound = _bound(observed)
    if bound is not None:
        wanted, why = bound
        _, version = split_api_version(
            str(dig(observed.autoscaler, "spec", "scaleTargetRef", "apiVersion", default="v1"))
        )
        target = observed.target
        gvk = GVK(target.group, version, target.kind)
        patch = Patch(gvk, target.namespace, target.name, {"spec": {"replicas": wanted}}, why, subresource="scale")
        # Written first, so that it is known after a crash between the two.
        status = {**(observed.autoscaler.get("status") or {}), "desiredReplicas": wanted}
        steps = (set_status(observed.autoscaler, status, why), (patch,))
        return Plan(tuple(step for step in steps if step), outcome=_later(), why=why)
    able = ("AbleToScale", "True", "SucceededGetScale", "the HPA controller was able to get the target's current scale")
    if _replicas(observed) == 0:
        why = "scaling is disabled since the replica count of the target is zero"
        return _status(observed, now, able, ("ScalingActive", "False", "ScalingDisabled", why), desired=0)
    return _without_metrics(observed, able, now)


def _status(
    observed: Observed,
    now: datetime,
    *conditions: tuple[str, str, str, str],
    desired: int | None = None,
    metrics: int = 0,
    rescaled: bool = False,
    events: tuple[Emit, ...] = (),
) -> Plan:
    """Update the status. ``desired`` None: unchanged; ``metrics``: the number of unavailable metrics."""
    old = observed.autoscaler.get("status") or {}
    current = _replicas(observed)
    status: Obj = {"lastScaleTime": format_time(now)} if rescaled else {}
    if not rescaled and old.get("lastScaleTime"):
        status["lastScaleTime"] = old["lastScaleTime"]
    status |= {"currentReplicas": current} if current else {}
    status["desiredReplicas"] = int(old.get("desiredReplicas") or 0) if desired is None else desired
    status["currentMetrics"] = [{"type": ""}] * metrics or None
    status["conditions"] = _conditions(old, now, *conditions)
    writes = set_status(observed.autoscaler, status, "the target was read")
    return Plan(status=(*writes, *events), outcome=_later(), why="the target was read")


def _rescaled(observed: Observed, result: Result, now: datetime) -> Plan:
    bound = _bound(observed)
    assert bound is not None
    wanted, why = bound
    if not result.ok:
        text = f"New size: {wanted}; reason: {why}; error: {result.error}"
        message = f"the HPA controller was unable to update the target scale: {result.error}"
        failed = ("AbleToScale", "False", "FailedUpdateScale", message)
        return _status(observed, now, failed, events=(_event(observed, "FailedRescale", text),))
    done = f"the HPA controller was able to update the target scale to {wanted}"
    report = _event(observed, "SuccessfulRescale", f"New size: {wanted}; reason: {why}", warning=False)
    able = ("AbleToScale", "True", "SucceededRescale", done)
    return _status(observed, now, able, desired=wanted, rescaled=True, events=(report,))


# --- metrics that is unavailable ------------------------------------------------------------------------------------


def _without_metrics(observed: Observed, able: tuple[str, str, str, str], now: datetime) -> Plan:
    selector = str(dig(observed.scale, "status", "selector", default=""))
    if not selector:
        why = "the HPA target's scale is missing a selector"
        return _refused(observed, now, able, ("InvalidSelector", why), ("SelectorRequired", "selector is required"))
    if len(observed.rivals) > 1 and dig(observed.scale, "status", "replicas", default=0):
        keys = " ".join(f"{namespace_of(observed.autoscaler)}/{name}" for name in observed.rivals)
        why = f"pods by selector {selector} are controlled by multiple HPAs: [{keys}]"
        return _refused(observed, now, able, ("AmbiguousSelector", why), ("AmbiguousSelector", why))
    metrics = dig(observed.autoscaler, "spec", "metrics", default=[])
    unknown = [_SOURCES[str(metric["type"])](metric, namespace_of(observed.autoscaler)) for metric in metrics]
    first = unknown[0]
    whole = f"invalid metrics ({len(unknown)} invalid out of {len(unknown)}), first error is: {first.whole}"
    message = f"the HPA was unable to compute the replica count: {first.error}"
    lines = [_event(observed, one.reason, one.error) for one in unknown]
    lines.append(_event(observed, "FailedComputeMetricsReplicas", whole))
    active = ("ScalingActive", "False", first.reason, message)
    return _status(observed, now, able, active, metrics=len(unknown), events=tuple(lines))


def _refused(
    observed: Observed, now: datetime, able: tuple[str, str, str, str], why: tuple[str, str], report: tuple[str, str]
) -> Plan:
    events = (_event(observed, *report), _event(observed, "FailedComputeMetricsReplicas", report[1]))
    return _status(observed, now, able, ("ScalingActive", "False", *why), events=events)


def _usage(source: Obj) -> str:
    name = source.get("name")
    what = "usage" if dig(source, "target", "averageValue") is not None else "utilization"
    return f"failed to get {name} {what}: unable to get metrics for resource {name}: {NO_RESOURCES}"


def _resource(metric: Obj, _: str) -> _Unknown:
    error = _usage(metric["resource"])
    return _Unknown(
        "FailedGetResourceMetric", error, f"failed to get {metric['resource']['name']} resource metric value: {error}"
    )


def _container(metric: Obj, _: str) -> _Unknown:
    source = metric["containerResource"]
    error = _usage(source)
    whole = f"failed to get {source.get('container')} container metric value: {error}"
    return _Unknown("FailedGetContainerResourceMetric", error, whole)


def _pods(metric: Obj, _: str) -> _Unknown:
    error = f"unable to get metric {dig(metric, 'pods', 'metric', 'name')}: {NO_CUSTOM}"
    return _Unknown("FailedGetPodsMetric", error, f"failed to get pods metric value: {error}")


def _object(metric: Obj, namespace: str) -> _Unknown:
    source: Any = metric["object"]
    name, of = dig(source, "metric", "name"), source.get("describedObject") or {}
    error = f"unable to get metric {name}: {of.get('kind')} on {namespace} {of.get('name')}/{NO_CUSTOM}"
    whole = f"failed to get {name} object metric: {error}" if _averages(source) else error
    return _Unknown("FailedGetObjectMetric", error, f"failed to get object metric value: {whole}")


def _external(metric: Obj, namespace: str) -> _Unknown:
    source: Any = metric["external"]
    name, selector = dig(source, "metric", "name"), dig(source, "metric", "selector")
    shown = go_selector(selector) if isinstance(selector, dict) else "nil"
    where = f"the server could not find the requested resource (get {name}.external.metrics.k8s.io)"
    error = f"unable to get external metric {namespace}/{name}/{shown}: "
    error += f"unable to fetch metrics from external metrics API: {where}"
    what = f"{name} external metric" if _averages(source) else f"external metric {name}"
    return _Unknown(
        "FailedGetExternalMetric", error, f"failed to get {name} external metric value: failed to get {what}: {error}"
    )


def _averages(source: Obj) -> bool:
    return dig(source, "target", "averageValue") is not None


_SOURCES: dict[str, Callable[[Obj, str], _Unknown]] = {
    "Resource": _resource,
    "ContainerResource": _container,
    "Pods": _pods,
    "Object": _object,
    "External": _external,
}


def autoscaler_controller() -> Controller[Observed]:
    """Return the controller; it checks each autoscaler every period."""
    said = Said()
    looked: dict[str, datetime] = {}

    def with_look(cache: Snapshot, ref: ObjectRef) -> Observed | None:
        observed = observe(cache, ref)
        return None if observed is None else replace(observed, looked=looked.get(uid_of(observed.autoscaler)))

    def said_once(
        observed: Observed, plan: Plan, results: tuple[Result, ...], now: datetime
    ) -> tuple[Observed, Plan] | None:
        settled = settle(observed, results, now)
        if settled is None:
            return None
        further, planned = settled
        looked.pop(uid_of(observed.autoscaler), None)
        looked[uid_of(observed.autoscaler)] = now
        if len(looked) > MAX_OBJECTS:
            del looked[next(iter(looked))]
        return further, said.once(uid_of(observed.autoscaler), planned, REPEATED)

    return Controller(
        name="horizontal-pod-autoscaler",
        kind=AUTOSCALER,
        observe=with_look,
        plan=plan,
        settle=said_once,
    )
