"""What an explanation looks at by rows that a tenant planted in the status of his Application."""

from __future__ import annotations

from typing import Any

import pytest
from tests.explain.test_waiting import told
from tests.gitops.behaviours.sim import APPS, NOWHERE, Simulation, config, deployment
from tests.gitops.borders.test_conditions import tenant

from syncline.kube.objects import Obj

FOREIGN = {"group": "apps", "version": "v1", "kind": "Deployment", "namespace": "payments", "name": "till"}
START = "2026-01-01T00:00:00Z"


def planted(status: Obj, **fields: Any) -> Simulation:
    sim = tenant(config("a"))
    till = deployment("till", pod=NOWHERE)
    sim.world.send("POST", "/apis/apps/v1/namespaces/payments/deployments", till)
    sim.driver.advance(30)
    settled = {"sync": {"status": "Synced"}, "health": {"status": "Healthy"}}
    sim.world.send("PATCH", f"{APPS}/app", {"status": settled | status, **fields}, "application/merge-patch+json")
    return sim


def state(phase: str, **row: str) -> Obj:
    rows = [FOREIGN | {"status": "Synced", "syncPhase": "Sync", "message": "m"} | row]
    result = {"revision": "a", "resources": rows}
    operation: Obj = {"sync": {}}
    return {
        "operationState": {
            "operation": operation, "phase": phase, "startedAt": START, "finishedAt": START, "message": "m",
            "syncResult": result,
        }
    }  # fmt: skip


@pytest.mark.parametrize(
    "status",
    [
        {"health": {"status": "Degraded"}, "resources": [FOREIGN | {"health": {"status": "Degraded"}}]},
        state("Failed", hookPhase="Failed", hookType="Sync"),
        state("Error", hookPhase="Error", hookType="PreSync"),
    ],
    ids=["health", "failed row", "error row"],
)
def test_an_explanation_does_not_follow_a_row_to_what_the_project_may_not_see(status: Obj) -> None:
    text = "\n".join(told(planted(status)))
    assert "till" in text, "the row itself is shown"
    assert "replica" not in text.lower() and "node affinity" not in text and "Pod " not in text
