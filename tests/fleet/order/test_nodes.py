"""An agent says on the hub whether machines of its cluster are being updated, and the hub waits for them."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from syncline.base.clock import EPOCH, format_time
from syncline.control.plan import Done, Requeue, SetStatus
from syncline.fleet.conditions import find_condition
from syncline.fleet.hub.registration.leases import NODES_UPDATING
from syncline.fleet.spoke.nodes.controller import NodesSeen, plan_nodes

CLUSTER: Any = {
    "apiVersion": "cluster.open-cluster-management.io/v1",
    "kind": "ManagedCluster",
    "metadata": {"name": "c1", "resourceVersion": "1"},
    "status": {"conditions": []},
}
SAID: Any = {"type": NODES_UPDATING, "status": "True", "reason": "Updating", "message": "pool worker is updating"}
MINUTE = timedelta(minutes=1)


def pool(name: str, updating: str) -> Any:
    return {"metadata": {"name": name}, "status": {"conditions": [{"type": "Updating", "status": updating}]}}


def hold(ends: timedelta) -> Any:
    spec = {"owner": "app/db", "reason": "migration", "expiresAt": format_time(EPOCH + ends), "pools": ["worker"]}
    return {"metadata": {"name": "h"}, "spec": spec}


def said(seen: NodesSeen) -> tuple[str, str] | None:
    """Return status and message that are written; None: nothing is."""
    (write,) = plan_nodes(seen, EPOCH).status or (None,)
    if not isinstance(write, SetStatus):
        return None
    found = find_condition(write.new["conditions"], NODES_UPDATING) or {}
    return str(found.get("status")), str(found.get("message"))


@pytest.mark.parametrize(
    ("seen", "expected"),
    [
        (NodesSeen(CLUSTER), None),
        (NodesSeen(CLUSTER, (pool("worker", "False"),)), ("False", "no machines are being updated")),
        (NodesSeen(CLUSTER, (pool("worker", "True"),)), ("True", "pool worker is updating")),
        (NodesSeen(CLUSTER, (), (hold(MINUTE),)), ("True", "Hold h of app/db: migration")),
        (NodesSeen(CLUSTER, (), (hold(-MINUTE),)), None),
        (NodesSeen({**CLUSTER, "status": {"conditions": [SAID]}}), ("False", "no machines are being updated")),
        (NodesSeen({**CLUSTER, "status": {"conditions": [SAID]}}, (pool("worker", "True"),)), None),
        (NodesSeen(CLUSTER, unread="pools may not be listed"), ("Unknown", "pools may not be listed")),
        (NodesSeen(CLUSTER, (), (hold(MINUTE),), "pools?"), ("True", "Hold h of app/db: migration")),
    ],
    ids=[
        "a cluster without pools says nothing",
        "a cluster with pools says so before the first update",
        "a pool that is updated is named",
        "a Hold is named with its owner and reason",
        "an expired Hold does not count",
        "the end is said",
        "what the hub knows is not written again",
        "what may not be read is unknown, not idle",
        "what is known to be busy is busy, whatever else may not be read",
    ],
)
def test_an_agent_reports_its_machines(seen: NodesSeen, expected: tuple[str, str] | None) -> None:
    assert said(seen) == expected


def test_the_end_of_a_hold_is_looked_for() -> None:
    outcome = plan_nodes(NodesSeen(CLUSTER, (), (hold(MINUTE),)), EPOCH).outcome
    assert isinstance(outcome, Requeue) and outcome.after_s == 61.0
    assert isinstance(plan_nodes(NodesSeen(CLUSTER), EPOCH).outcome, Done)
