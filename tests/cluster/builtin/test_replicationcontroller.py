"""ReplicationControllers: the engine of ReplicaSets, under the older kind."""

from __future__ import annotations

from tests.cluster.world import World

from syncline.kube.objects import Obj

PODS = "/api/v1/namespaces/default/pods"
SETS = "/api/v1/namespaces/default/replicationcontrollers"


def controller(replicas: int = 2) -> Obj:
    template = {"metadata": {"labels": {"app": "old"}}, "spec": {"containers": [{"name": "c", "image": "x:1"}]}}
    spec = {"replicas": replicas, "selector": {"app": "old"}, "template": template}
    return {"apiVersion": "v1", "kind": "ReplicationController", "metadata": {"name": "old"}, "spec": spec}


def ready_world() -> World:
    world = World()
    world.settle()
    world.node("a")
    world.settle()
    return world


def test_pods_are_made_counted_and_replaced() -> None:
    world = ready_world()
    world.post(SETS, controller())
    world.run_until_ready("default")
    pods = world.items(PODS)
    owner = pods[0]["metadata"]["ownerReferences"][0]
    assert len(pods) == 2 and (owner["apiVersion"], owner["kind"], owner["name"]) == (
        "v1",
        "ReplicationController",
        "old",
    )
    status = {"replicas": 2, "fullyLabeledReplicas": 2, "readyReplicas": 2, "availableReplicas": 2}
    assert world.get(f"{SETS}/old")["status"] == status | {"observedGeneration": 1}
    world.delete(f"{PODS}/{pods[0]['metadata']['name']}", gracePeriodSeconds=0)
    world.run_until_ready("default")
    assert len(world.items(PODS)) == 2
    told = [e for e in world.items("/api/v1/namespaces/default/events") if e["reason"] == "SuccessfulCreate"]
    assert len(told) == 3 and {each["source"]["component"] for each in told} == {"replication-controller"}


def test_scaling_adoption_and_release_follow_the_selector() -> None:
    world = ready_world()
    stray = {"metadata": {"name": "stray", "labels": {"app": "old"}}, "spec": controller()["spec"]["template"]["spec"]}
    world.post(PODS, {"apiVersion": "v1", "kind": "Pod"} | stray)
    world.post(SETS, controller(1))
    world.run_until_ready("default")
    assert [each["metadata"]["name"] for each in world.items(PODS)] == ["stray"], "it was adopted"
    world.merge(f"{PODS}/stray", {"metadata": {"labels": {"app": "mine"}}})
    world.run_until_ready("default")
    assert "ownerReferences" not in world.get(f"{PODS}/stray")["metadata"] and len(world.items(PODS)) == 2
    world.merge(f"{SETS}/old/scale", {"spec": {"replicas": 0}})
    world.run_until_ready("default")
    assert [each["metadata"]["name"] for each in world.items(PODS)] == ["stray"]


def test_its_pods_go_with_it() -> None:
    world = ready_world()
    world.post(SETS, controller())
    world.run_until_ready("default")
    world.delete(f"{SETS}/old", "Background")
    world.run_until_ready("default")
    assert world.items(PODS) == []


def test_a_budget_counts_its_replicas() -> None:
    world = ready_world()
    world.post(SETS, controller(3))
    budget = {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "b"}}
    spec = {"maxUnavailable": 1, "selector": {"matchLabels": {"app": "old"}}}
    world.post("/apis/policy/v1/namespaces/default/poddisruptionbudgets", budget | {"spec": spec})
    world.run_until_ready("default")
    status = world.get("/apis/policy/v1/namespaces/default/poddisruptionbudgets/b")["status"]
    assert (status["expectedPods"], status["disruptionsAllowed"]) == (3, 1)
