"""A MachineConfigPool gates a wave by its conditions, and never waits for its own pause."""

from __future__ import annotations

from typing import Any

import pytest

from syncline.apply.health import Health, HealthStatus, health_of, worst


def pool(paused: bool = False, observed: int = 2, **conditions: str) -> dict[str, Any]:
    listed = [{"type": kind, "status": status, "message": f"{kind} says so"} for kind, status in conditions.items()]
    return {
        "apiVersion": "machineconfiguration.openshift.io/v1",
        "kind": "MachineConfigPool",
        "metadata": {"name": "worker", "generation": 2},
        "spec": {"paused": paused},
        "status": {"observedGeneration": observed, "machineCount": 3, "updatedMachineCount": 1, "conditions": listed},
    }


@pytest.mark.parametrize(
    ("obj", "health"),
    [
        (pool(Updated="True"), Health(HealthStatus.HEALTHY)),
        (pool(Updating="True", Updated="False"), Health(HealthStatus.PROGRESSING, "1 of 3 machines are updated")),
        (pool(NodeDegraded="True"), Health(HealthStatus.DEGRADED, "NodeDegraded says so")),
        (pool(paused=True, Updated="False"), Health(HealthStatus.HEALTHY, "paused by spec.paused")),
        (pool(paused=True, Degraded="True"), Health(HealthStatus.DEGRADED, "Degraded says so")),
    ],
)
def test_a_pool_is_as_healthy_as_its_conditions(obj: dict[str, Any], health: Health) -> None:
    assert health_of(obj) == health


def test_an_update_that_the_controller_has_not_seen_is_not_healthy() -> None:
    health = health_of(pool(observed=1, Updated="True"))
    assert health is not None
    assert health.status is HealthStatus.PROGRESSING


def test_the_engine_alone_knows_no_pools() -> None:
    assert health_of(pool(Updated="True"), scripted=False) is None


def test_the_worst_of_all_decides_and_nothing_is_healthy() -> None:
    assert worst([HealthStatus.SUSPENDED, HealthStatus.DEGRADED, HealthStatus.MISSING]) is HealthStatus.DEGRADED
    assert worst([]) is HealthStatus.HEALTHY
