"""The scheduler on the embedded API, in virtual time."""

from __future__ import annotations

from typing import Any

from tests.cluster.world import World

from syncline.rehearsal.seams import CrashingTransport, Killed

PODS = "/api/v1/namespaces/default/pods"


def pod(name: str, cpu: str = "1", **spec: Any) -> dict[str, Any]:
    container = {"name": "c", "image": "x:1", "resources": {"requests": {"cpu": cpu}}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": {"containers": [container]} | spec}


def ready_world(*nodes: str) -> World:
    world = World()
    world.settle()
    for name in nodes:
        world.node(name, cpu="2")
    return world


def places(world: World) -> dict[str, str]:
    return {each["metadata"]["name"]: each["spec"].get("nodeName", "") for each in world.items(PODS)}


def test_no_node_gets_more_than_it_has() -> None:
    world = ready_world("a", "b")
    for number in range(5):
        world.post(PODS, pod(f"p{number}"))
    world.settle()
    assert sorted(places(world).values()) == ["", "a", "a", "b", "b"]


def test_room_that_becomes_free_is_used() -> None:
    world = ready_world("a")
    world.post(PODS, pod("big", "2"))
    world.settle()
    world.post(PODS, pod("waits"))
    world.settle()
    assert places(world)["waits"] == ""
    world.delete(f"{PODS}/big", gracePeriodSeconds=0)
    world.settle()
    assert places(world)["waits"] == "a"


def test_a_gated_pod_waits_for_its_gate() -> None:
    world = ready_world("a")
    world.post(PODS, pod("gated", schedulingGates=[{"name": "example.com/wait"}]))
    world.settle()
    assert places(world) == {"gated": ""}
    world.merge(f"{PODS}/gated", {"spec": {"schedulingGates": None}})
    world.settle()
    assert places(world) == {"gated": "a"}


def test_pods_of_another_scheduler_are_left_alone() -> None:
    world = ready_world("a")
    world.post(PODS, pod("foreign", schedulerName="nobody"))
    world.settle()
    assert places(world) == {"foreign": ""}


def test_a_refusal_is_told_once_and_a_placement_too() -> None:
    world = World()
    world.settle()
    world.post(PODS, pod("p"))
    world.settle()
    world.settle()
    refused = [event for event in world.events("default") if event[0] == "FailedScheduling"]
    assert refused == [("FailedScheduling", "no nodes available to schedule pods")]
    world.node("a")
    world.settle()
    assert ("Scheduled", "Successfully assigned default/p to a") in world.events("default")


def test_placing_survives_a_crash_after_any_write() -> None:
    for after in range(1, 30):
        world = ready_world("a", "b")
        world.settle()
        world.restart(CrashingTransport(world.transport, after))
        died = False
        try:
            for number in range(3):
                world.post(PODS, pod(f"p{number}"))
            world.settle()
        except Killed:
            died = True
            world.restart()
            world.settle()
        assert "" not in places(world).values()
        if not died:
            assert after > 4
            return
    raise AssertionError("still crashing after 30 writes")


def priority(world: World, name: str, value: int, **more: Any) -> None:
    body = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": name}, "value": value}
    world.post("/apis/scheduling.k8s.io/v1/priorityclasses", body | more)


def test_an_important_pod_takes_the_room_of_a_lesser_one() -> None:
    world = ready_world("a")
    priority(world, "high", 1000)
    for name in ("x", "y"):
        world.post(PODS, pod(name))
    world.settle()
    made = world.post(PODS, pod("vip", "2", priorityClassName="high"))
    world.settle()
    observed = world.get(f"{PODS}/vip")
    assert observed["status"]["nominatedNodeName"] == "a" and not observed["spec"].get("nodeName")
    victims = [world.get(f"{PODS}/{name}") for name in ("x", "y")]
    assert all("deletionTimestamp" in each["metadata"] for each in victims)
    (condition,) = [c for c in victims[0]["status"]["conditions"] if c["type"] == "DisruptionTarget"]
    assert (condition["reason"], condition["message"]) == (
        "PreemptionByScheduler",
        "default-scheduler: preempting to accommodate a higher priority pod",
    )
    told = [event for event in world.events("default") if event[0] == "Preempted"]
    assert told == [("Preempted", f"Preempted by pod {made['metadata']['uid']} on node a")] * 2
    world.post(PODS, pod("sneaks-in"))
    world.reap("default")
    world.settle()
    assert places(world) == {"vip": "a", "sneaks-in": ""}
    assert "nominatedNodeName" not in world.get(f"{PODS}/vip")["status"]
    sentences = [event[1] for event in world.events("default") if "Insufficient" in event[1]]
    assert "0/1 nodes are available: 1 Insufficient cpu." in sentences


def test_a_pod_waits_for_its_victims_without_taking_more() -> None:
    world = ready_world("a", "b")
    priority(world, "high", 1000)
    for name in ("x", "y"):
        world.post(PODS, pod(name, "2"))
    world.settle()
    world.post(PODS, pod("vip", "2", priorityClassName="high"))
    world.settle()
    world.advance(5)
    going = [each for each in world.items(PODS) if "deletionTimestamp" in each["metadata"]]
    assert len(going) == 1
    said = [message for _, message in world.events("default") if message.startswith("0/")]
    assert said and all(message.endswith("Insufficient cpu.") for message in said), "what was said first stands"


def test_a_pod_that_never_preempts_waits() -> None:
    world = ready_world("a")
    priority(world, "polite", 1000, preemptionPolicy="Never")
    world.post(PODS, pod("x", "2"))
    world.settle()
    world.post(PODS, pod("vip", "2", priorityClassName="polite"))
    world.settle()
    assert places(world) == {"x": "a", "vip": ""}
    never = "preemption: not eligible due to preemptionPolicy=Never."
    assert [message for _, message in world.events("default") if message.endswith(never)]
    assert not [each for each in world.items(PODS) if "deletionTimestamp" in each["metadata"]]


def test_preemption_survives_a_crash_after_any_write() -> None:
    for after in range(1, 40):
        world = ready_world("a")
        priority(world, "high", 1000)
        world.post(PODS, pod("x", "2"))
        world.settle()
        world.restart(CrashingTransport(world.transport, after))
        died = False
        try:
            world.post(PODS, pod("vip", "2", priorityClassName="high"))
            world.settle()
            world.reap("default")
            world.settle()
        except Killed:
            died = True
            world.restart()
            world.settle()
            world.reap("default")
            world.settle()
        assert places(world) == {"vip": "a"}
        if not died:
            assert after > 4
            return
    raise AssertionError("still crashing after 40 writes")
