"""Deployments and other workloads, jobs, budgets and autoscalers."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from syncline.base.clock import parse_time
from syncline.cluster.columns.column import (
    NONE,
    UNKNOWN,
    age,
    containers_and_images,
    human_duration,
    labels_text,
    selector_text,
    since,
)
from syncline.kube.objects import Obj, dig, name_of


def _count(obj: Obj, field: str) -> int:
    return int(dig(obj, "status", field, default=0))


def _template(obj: Obj) -> list[str]:
    return containers_and_images(dig(obj, "spec", "template", "spec"))


def _selector(obj: Obj) -> str:
    return selector_text(dig(obj, "spec", "selector"))


def _desired(obj: Obj) -> int:
    return int(dig(obj, "spec", "replicas", default=0))


def _deployment(obj: Obj, now: datetime) -> list[Any]:
    ready = f"{_count(obj, 'readyReplicas')}/{_desired(obj)}"
    updated, available = _count(obj, "updatedReplicas"), _count(obj, "availableReplicas")
    return [name_of(obj), ready, updated, available, age(obj, now), *_template(obj), _selector(obj)]


def _replica_set(obj: Obj, now: datetime) -> list[Any]:
    counts = [_desired(obj), _count(obj, "replicas"), _count(obj, "readyReplicas")]
    return [name_of(obj), *counts, age(obj, now), *_template(obj), _selector(obj)]


def _replication_controller(obj: Obj, now: datetime) -> list[Any]:
    row = _replica_set(obj, now)
    return [*row[:-1], labels_text(dig(obj, "spec", "selector"))]


def _stateful_set(obj: Obj, now: datetime) -> list[Any]:
    return [name_of(obj), f"{_count(obj, 'readyReplicas')}/{_desired(obj)}", age(obj, now), *_template(obj)]


def _daemon_set(obj: Obj, now: datetime) -> list[Any]:
    fields = (
        "desiredNumberScheduled",
        "currentNumberScheduled",
        "numberReady",
        "updatedNumberScheduled",
        "numberAvailable",
    )
    nodes = labels_text(dig(obj, "spec", "template", "spec", "nodeSelector"))
    return [name_of(obj), *(_count(obj, f) for f in fields), nodes, age(obj, now), *_template(obj), _selector(obj)]


def _controller_revision(obj: Obj, now: datetime) -> list[Any]:
    owner = next((o for o in dig(obj, "metadata", "ownerReferences", default=[]) if o.get("controller")), None)
    group = owner["apiVersion"].rpartition("/")[0] if owner else ""
    kind = owner["kind"].lower() if owner else ""
    shown = f"{kind}.{group}/{owner['name']}" if owner and group else f"{kind}/{owner['name']}" if owner else NONE
    return [name_of(obj), shown, obj.get("revision", 0), age(obj, now)]


# --- jobs ----------------------------------------------------------------------------------------------------------


def _job(obj: Obj, now: datetime) -> list[Any]:
    return [
        name_of(obj),
        _job_status(obj),
        _completions(obj),
        _duration(obj, now),
        age(obj, now),
        *_template(obj),
        _selector(obj),
    ]


def _job_status(obj: Obj) -> str:
    true = {c.get("type") for c in dig(obj, "status", "conditions", default=[]) if c.get("status") == "True"}
    if "Complete" in true:
        return "Complete"
    if "Failed" in true:
        return "Failed"
    if dig(obj, "metadata", "deletionTimestamp"):
        return "Terminating"
    if "Suspended" in true:
        return "Suspended"
    if "FailureTarget" in true:
        return "FailureTarget"
    return "SuccessCriteriaMet" if "SuccessCriteriaMet" in true else "Running"


def _completions(obj: Obj) -> str:
    done, wanted = _count(obj, "succeeded"), dig(obj, "spec", "completions")
    if wanted is not None:
        return f"{done}/{wanted}"
    parallel = dig(obj, "spec", "parallelism", default=0)
    return f"{done}/1 of {parallel}" if parallel > 1 else f"{done}/1"


def _duration(obj: Obj, now: datetime) -> str:
    start, end = dig(obj, "status", "startTime"), dig(obj, "status", "completionTime")
    if not start:
        return ""
    return human_duration(int(((parse_time(end) if end else now) - parse_time(start)).total_seconds()))


def _cron_job(obj: Obj, now: datetime) -> list[Any]:
    spec = obj.get("spec") or {}
    last = dig(obj, "status", "lastScheduleTime")
    template = spec.get("jobTemplate") or {}
    return [
        name_of(obj),
        spec.get("schedule", ""),
        spec.get("timeZone") or NONE,
        "True" if spec.get("suspend") else "False",
        len(dig(obj, "status", "active", default=[])),
        since(last, now) if last else NONE,
        age(obj, now),
        *containers_and_images(dig(template, "spec", "template", "spec")),
        selector_text(dig(template, "spec", "selector")) if dig(template, "spec", "selector") else NONE,
    ]


# --- budgets and autoscalers ---------------------------------------------------------------------------------------


def _budget(obj: Obj, now: datetime) -> list[Any]:
    least, most = dig(obj, "spec", "minAvailable"), dig(obj, "spec", "maxUnavailable")
    return [
        name_of(obj),
        "N/A" if least is None else str(least),
        "N/A" if most is None else str(most),
        _count(obj, "disruptionsAllowed"),
        age(obj, now),
    ]


MAX_METRICS_SHOWN = 2


def _autoscaler(obj: Obj, now: datetime) -> list[Any]:
    spec = obj.get("spec") or {}
    target = spec.get("scaleTargetRef") or {}
    least = spec.get("minReplicas")
    return [
        name_of(obj),
        f"{target.get('kind', '')}/{target.get('name', '')}",
        _metrics(spec, obj.get("status") or {}),
        "<unset>" if least is None else str(least),
        spec.get("maxReplicas", 0),
        _count(obj, "currentReplicas"),
        age(obj, now),
    ]


def _metrics(spec: Obj, status: Obj) -> str:
    if "targetCPUUtilizationPercentage" in spec:
        current = status.get("currentCPUUtilizationPercentage")
        shown = UNKNOWN if current is None else f"{current}%"
        return f"cpu: {shown}/{spec['targetCPUUtilizationPercentage']}%"
    metrics = spec.get("metrics") or []
    if not metrics:
        return NONE
    current = status.get("currentMetrics") or []
    texts = [_metric(metric, current[i] if i < len(current) else {}) for i, metric in enumerate(metrics)]
    if len(texts) > MAX_METRICS_SHOWN:
        return ", ".join(texts[:MAX_METRICS_SHOWN]) + f" + {len(texts) - MAX_METRICS_SHOWN} more..."
    return ", ".join(texts)


_METRIC_FIELDS = {
    "Resource": "resource",
    "ContainerResource": "containerResource",
    "Pods": "pods",
    "Object": "object",
    "External": "external",
}


def _metric(metric: Obj, current: Obj) -> str:
    field = _METRIC_FIELDS.get(str(metric.get("type")), "")
    body, now_body = metric.get(field) or {}, dig(current, field, "current", default={})
    target = body.get("target") or {}
    name = f"{body.get('name')}: " if field in ("resource", "containerResource") else ""
    average = " (avg)" if field in ("object", "external") and "averageValue" in target else ""
    if "averageUtilization" in target:
        value = now_body.get("averageUtilization")
        return f"{name}{UNKNOWN if value is None else f'{value}%'}/{target['averageUtilization']}%"
    key = "averageValue" if "averageValue" in target else "value"
    return f"{name}{now_body.get(key, UNKNOWN)}/{target.get(key, UNKNOWN)}{average}"


TABLES = {
    ("apps", "Deployment"): _deployment,
    ("apps", "ReplicaSet"): _replica_set,
    ("", "ReplicationController"): _replication_controller,
    ("apps", "StatefulSet"): _stateful_set,
    ("apps", "DaemonSet"): _daemon_set,
    ("apps", "ControllerRevision"): _controller_revision,
    ("batch", "Job"): _job,
    ("batch", "CronJob"): _cron_job,
    ("policy", "PodDisruptionBudget"): _budget,
    ("autoscaling", "HorizontalPodAutoscaler"): _autoscaler,
}
