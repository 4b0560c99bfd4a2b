"""A drain of the only worker: the budget blocks it, then the replacement waits in the scheduler's words."""

from __future__ import annotations

import pytest
from machine_world import MachineWorld, condition, deployment

from syncline.kube.errors import TooManyRequests

PODS = "/api/v1/namespaces/default/pods"
BUDGETS = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"
CONTROL_PLANE = {"key": "node-role.kubernetes.io/control-plane", "effect": "NoSchedule"}


def evict(world: MachineWorld, name: str) -> None:
    world.post(
        f"{PODS}/{name}/eviction",
        {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name, "namespace": "default"}},
    )


def test_a_drain_of_the_only_worker_waits_for_the_budget_and_then_for_a_node() -> None:
    world = MachineWorld(nodes=2)
    world.merge("/api/v1/nodes/node-1", {"spec": {"taints": [CONTROL_PLANE]}})
    world.post("/apis/apps/v1/namespaces/default/deployments", deployment("web", replicas=1))
    world.idle()
    (first,) = [each["metadata"] for each in world.items(PODS)]
    world.post(
        BUDGETS,
        {
            "apiVersion": "policy/v1",
            "kind": "PodDisruptionBudget",
            "metadata": {"name": "web"},
            "spec": {"minAvailable": 1, "selector": {"matchLabels": first["labels"]}},
        },
    )
    world.idle()
    world.merge("/api/v1/nodes/node-0", {"spec": {"unschedulable": True}})
    world.idle()
    with pytest.raises(TooManyRequests) as refused:
        evict(world, first["name"])
    assert str(refused.value) == "Cannot evict pod as it would violate the pod's disruption budget."
    causes = refused.value.to_status()["details"]["causes"]
    assert [each["message"] for each in causes] == [
        "The disruption budget web needs 1 healthy pods and has 1 currently"
    ]

    world.delete(f"{BUDGETS}/web")
    evict(world, first["name"])
    world.idle()
    (second,) = world.items(PODS)
    assert second["metadata"]["name"] != first["name"] and second["status"]["phase"] == "Pending"
    assert condition(second, "PodScheduled")["message"] == (
        "0/2 nodes are available: 1 node(s) had untolerated taint(s), 1 node(s) were unschedulable. "
        "no new claims to deallocate, preemption: 0/2 nodes are available: 2 Preemption is not helpful for scheduling."
    )

    world.merge("/api/v1/nodes/node-0", {"spec": {"unschedulable": None}})
    world.idle()
    assert [(each["spec"]["nodeName"], each["status"]["phase"]) for each in world.items(PODS)] == [
        ("node-0", "Running")
    ]
