"""Health of live objects. Start at :mod:`syncline.gitops.health.check`."""

from syncline.gitops.health.check import health_of
from syncline.gitops.health.verdict import Health, HealthStatus, worst

__all__ = ["Health", "HealthStatus", "health_of", "worst"]
