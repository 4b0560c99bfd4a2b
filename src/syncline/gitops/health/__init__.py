"""Health of live objects. Start at :mod:`syncline.gitops.health.check`."""

from syncline.gitops.health.check import HOOK_FINALIZER, health_of
from syncline.gitops.health.verdict import Health, HealthStatus, worst

__all__ = ["HOOK_FINALIZER", "Health", "HealthStatus", "health_of", "worst"]
