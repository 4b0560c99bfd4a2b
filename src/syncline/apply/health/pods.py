"""Health of a Pod (gitops-engine ``pkg/health``).

A pod that always restarts is judged by its containers; one that completes is usually a hook, so trouble with its image
must not count as its end.
"""

from __future__ import annotations

from syncline.apply.annotations import is_hook
from syncline.apply.health.typed import conditions, integer, items, text
from syncline.apply.health.verdict import Health, HealthStatus
from syncline.kube.objects import Obj, annotations_of, dig

IGNORE_RESTART_POLICY = "argocd.argoproj.io/ignore-restart-policy"
"""``true``: judge a pod as one that runs forever, whatever its restart policy; not for hooks."""


def pod(obj: Obj) -> Health:
    policy = text(obj, "spec", "restartPolicy")
    if annotations_of(obj).get(IGNORE_RESTART_POLICY) == "true" and not is_hook(obj):
        policy = "Always"
    containers = items(obj, "status", "containerStatuses")
    if policy == "Always":
        broken = [text(c, "state", "waiting", "message") for c in containers if _is_broken(c)]
        if broken:
            return Health(HealthStatus.DEGRADED, ", ".join(broken))
    message = text(obj, "status", "message")
    match text(obj, "status", "phase"):
        case "Pending":
            return Health(HealthStatus.PROGRESSING, message)
        case "Succeeded":
            return Health(HealthStatus.HEALTHY, message)
        case "Failed":
            return Health(HealthStatus.DEGRADED, message or _why_failed(obj, containers))
        case "Running" if policy == "Always":
            return Health(_running_for_ever(obj, containers), message)
        case "Running" if policy in ("OnFailure", "Never"):
            return Health(HealthStatus.PROGRESSING, message)
        case _:
            return Health(HealthStatus.UNKNOWN, message)


def _is_broken(container: Obj) -> bool:
    reason = text(container, "state", "waiting", "reason")
    return reason.startswith("Err") or reason.endswith(("Error", "BackOff"))


def _why_failed(obj: Obj, containers: list[Obj]) -> str:
    for container in items(obj, "status", "initContainerStatuses") + containers:
        end = dig(container, "state", "terminated", default={})
        if text(end, "message"):
            return text(end, "message")
        if text(end, "reason") == "OOMKilled":
            return "OOMKilled"
        if integer(end, "exitCode"):
            return f'container "{text(container, "name")}" failed with exit code {integer(end, "exitCode")}'
    return ""


def _running_for_ever(obj: Obj, containers: list[Obj]) -> HealthStatus:
    if any(c.get("type") == "Ready" and c.get("status") == "True" for c in conditions(obj)):
        return HealthStatus.HEALTHY
    if any(dig(c, "lastState", "terminated") is not None for c in containers):
        return HealthStatus.DEGRADED
    return HealthStatus.PROGRESSING
