"""Health of live objects. Start at :mod:`syncline.apply.health.check`."""

from syncline.apply.health.check import health_of
from syncline.apply.health.verdict import Health, HealthStatus, worst

__all__ = ["Health", "HealthStatus", "health_of", "worst"]
