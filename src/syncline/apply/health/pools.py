"""Health of a MachineConfigPool: our own check. Argo CD has none, so a pool is healthy there once applied."""

from __future__ import annotations

from syncline.apply.health.typed import conditions, integer, text
from syncline.apply.health.verdict import Health, HealthStatus
from syncline.kube.objects import Obj, dig

WOULD_HELP = "; would help: "
"""Separates, in the pool's condition, why a drain is blocked from the possible remedies."""


def machine_config_pool(obj: Obj) -> Health:
    """Return the health of a pool. A paused one is Healthy with a message: a gate must never wait for a pool that waits
    for the gate's own pause."""
    found = {text(c, "type"): c for c in conditions(obj)}
    for kind in ("RenderDegraded", "NodeDegraded", "Degraded"):
        if _is(found, kind, "True"):
            return Health(HealthStatus.DEGRADED, _with_drain(found, text(found[kind], "message") or f"{kind} is True"))
    if dig(obj, "spec", "paused", default=False) is True:
        return Health(HealthStatus.HEALTHY, "paused by spec.paused")
    observed = integer(obj, "status", "observedGeneration") or 0
    if (integer(obj, "metadata", "generation") or 0) > observed:
        return Health(HealthStatus.PROGRESSING, "waiting for the pool controller to see the change")
    if _is(found, "Updated", "True"):
        return Health(HealthStatus.HEALTHY)
    done = integer(obj, "status", "updatedMachineCount") or 0
    total = integer(obj, "status", "machineCount") or 0
    return Health(HealthStatus.PROGRESSING, _with_drain(found, f"{done} of {total} machines are updated"))


def _with_drain(found: dict[str, Obj], message: str) -> str:
    """Add to the message, once, the cause that blocks a drain."""
    blocked = text(found["DrainBlocked"], "message") if _is(found, "DrainBlocked", "True") else ""
    chain, help_, ways = blocked.partition(WOULD_HELP)
    if chain and chain in message:
        return f"{message}{help_}{ways}"
    return f"{message}; {blocked}" if blocked else message


def _is(found: dict[str, Obj], kind: str, status: str) -> bool:
    return kind in found and found[kind].get("status") == status
