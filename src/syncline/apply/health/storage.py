"""Health of a PersistentVolumeClaim (gitops-engine ``pkg/health``)."""

from __future__ import annotations

from syncline.apply.health.typed import text
from syncline.apply.health.verdict import Health, HealthStatus
from syncline.kube.objects import Obj

_BY_PHASE = {
    "Lost": HealthStatus.DEGRADED,
    "Pending": HealthStatus.PROGRESSING,
    "Bound": HealthStatus.HEALTHY,
}


def persistent_volume_claim(obj: Obj) -> Health:
    return Health(_BY_PHASE.get(text(obj, "status", "phase"), HealthStatus.UNKNOWN))
