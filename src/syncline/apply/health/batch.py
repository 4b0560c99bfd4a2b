"""Health of workloads that complete: Job and Argo Workflow (gitops-engine ``pkg/health``)."""

from __future__ import annotations

from syncline.apply.health.typed import conditions, text
from syncline.apply.health.verdict import Health, HealthStatus
from syncline.kube.objects import Obj, dig


def job(obj: Obj) -> Health:
    """Return the health of a Job: conditions count by type alone; only Suspended needs status True. Failed wins."""
    failed = complete = suspended = False
    why = message = ""
    for condition in conditions(obj):
        match condition.get("type"):
            case "Failed":
                failed = complete = True
                why = text(condition, "message")
            case "Complete":
                complete = True
                message = text(condition, "message")
            case "Suspended":
                complete = True
                message = text(condition, "message")
                suspended = suspended or condition.get("status") == "True"
    if not complete:
        return Health(HealthStatus.PROGRESSING, message)
    if failed:
        return Health(HealthStatus.DEGRADED, why)
    return Health(HealthStatus.SUSPENDED if suspended else HealthStatus.HEALTHY, message)


def workflow(obj: Obj) -> Health:
    """Return the health of a Workflow of any version, from phase and message if they are texts."""
    phase = dig(obj, "status", "phase", default="")
    message = dig(obj, "status", "message", default="")
    message = message if isinstance(message, str) else ""
    match phase if isinstance(phase, str) else "":
        case "" | "Pending" | "Running":
            return Health(HealthStatus.PROGRESSING, message)
        case "Succeeded":
            return Health(HealthStatus.HEALTHY, message)
        case "Failed" | "Error":
            return Health(HealthStatus.DEGRADED, message)
        case _:
            return Health(HealthStatus.UNKNOWN, message)
