"""Crossplane: managed resources of the classic AWS provider, and packages."""

from __future__ import annotations

from syncline.apply.health.reading import CannotJudge, conditions, first
from syncline.apply.health.table import Rule, Settings
from syncline.apply.health.verdict import Health, HealthStatus
from syncline.kube.objects import Obj


def managed(obj: Obj, settings: Settings) -> Health:
    """Return the health by Ready and Synced; a pause is the reason of Synced. ``noun``: default is the kind."""
    noun = settings.get("noun", obj.get("kind"))
    found = conditions(obj)[::-1]
    if not isinstance((obj.get("status") or {}).get("conditions"), list):
        return Health(HealthStatus.PROGRESSING, f"Waiting for {noun} to be created")
    ready, synced = first(found, "Ready"), first(found, "Synced")
    is_ready = ready is not None and ready.get("status") == "True"
    is_synced = synced is not None and synced.get("status") == "True"
    paused = first(found, "Synced=*/ReconcilePaused") is not None
    if ready is not None and is_ready and is_synced:
        return Health(HealthStatus.HEALTHY, ready.get("reason") or "")
    if paused and not is_synced:
        return Health(HealthStatus.SUSPENDED, "ReconcilePaused")
    if is_synced and not paused:
        return Health(HealthStatus.PROGRESSING, f"Waiting for {noun} to be available")
    failed = first(found, "Synced=*/ReconcileError") or {}
    return Health(HealthStatus.DEGRADED, failed.get("message") or "")


def package(obj: Obj, settings: Settings) -> Health | None:
    """Return the health by Installed and Healthy; the message joins both reasons."""
    found = conditions(obj)[::-1]
    if not isinstance((obj.get("status") or {}).get("conditions"), list):
        return None
    installed, healthy = first(found, "Installed"), first(found, "Healthy")
    if installed is None or healthy is None or not installed.get("reason") or not healthy.get("reason"):
        raise CannotJudge("status.conditions: Installed and Healthy must both be there with a reason")
    good = installed.get("status") == "True" and healthy.get("status") == "True"
    status = HealthStatus.HEALTHY if good else HealthStatus.DEGRADED
    return Health(status, f"{installed['reason']} {healthy['reason']}")


RULES: dict[str, Rule] = {"crossplane managed": managed, "crossplane package": package}
