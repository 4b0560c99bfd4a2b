"""Health of Service, Ingress and APIService (gitops-engine ``pkg/health``)."""

from __future__ import annotations

from syncline.apply.health.typed import conditions, items, text
from syncline.apply.health.verdict import Health, HealthStatus
from syncline.kube.objects import Obj, dig


def service(obj: Obj) -> Health:
    """Return the health of a Service: only a load balancer waits, for its address."""
    waits = text(obj, "spec", "type") == "LoadBalancer" and not items(obj, "status", "loadBalancer", "ingress")
    return Health(HealthStatus.PROGRESSING if waits else HealthStatus.HEALTHY)


def ingress(obj: Obj) -> Health:
    addresses = dig(obj, "status", "loadBalancer", "ingress")
    ready = isinstance(addresses, list) and bool(addresses)
    return Health(HealthStatus.HEALTHY if ready else HealthStatus.PROGRESSING)


def api_service(obj: Obj) -> Health:
    for condition in conditions(obj):
        if condition.get("type") == "Available":
            ready = condition.get("status") == "True"
            return Health(
                HealthStatus.HEALTHY if ready else HealthStatus.PROGRESSING,
                f"{text(condition, 'reason')}: {text(condition, 'message')}",
            )
    return Health(HealthStatus.PROGRESSING, "Waiting to be processed")
