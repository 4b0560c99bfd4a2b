"""Built-in controllers, scheduler and kubelet converge when their process dies or their API misbehaves.

Each scene is played three ways: undisturbed, dying again and again, and with faults that heal. What is there at the
end must be the same.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from functools import cache
from typing import Any

import pytest
from tests.cluster.machines.machine_world import MachineWorld, deployment, job

from syncline.base.entropy import Entropy
from syncline.kube.client import Request, Response, Transport
from syncline.kube.objects import Obj, dig, labels_of, name_of
from syncline.rehearsal.seams import CrashingTransport, FaultRates, FaultyTransport, Killed

DEFAULT = "/api/v1/namespaces/default"
APPS = "/apis/apps/v1/namespaces/default"
NODES = 3
DISTURBED_S, CALM_S = 900.0, 900.0
MAX_LIVES = 600
"""Restarts in one run: more than any scene has requests."""

Act = Callable[[MachineWorld], Any]
Scene = tuple[tuple[float, Act], ...]


def _workload(kind: str, name: str, **spec: Any) -> Obj:
    made = deployment(name, **spec)
    for field in ("strategy",):
        made["spec"].pop(field, None)
    return made | {"kind": kind}


def _image(plural: str, name: str, image: str) -> Act:
    body = {"spec": {"template": {"spec": {"containers": [{"name": "c", "image": image}]}}}}
    return lambda world: world.strategic(f"{APPS}/{plural}/{name}", body)


def _post(path: str, body: Callable[[], Obj]) -> Act:
    return lambda world: world.post(path, body())


def _daemonset() -> Obj:
    made = _workload("DaemonSet", "agent")
    del made["spec"]["replicas"]
    return made


def _stateful() -> Obj:
    return _workload("StatefulSet", "base", replicas=2, serviceName="base")


def _job() -> Obj:
    made = job("work", completions=3, parallelism=2)
    made["spec"]["template"]["spec"]["restartPolicy"] = "OnFailure"
    made["spec"]["template"]["metadata"] = {"annotations": {"syncline.dev/exit-code": "1,0"}}
    return made


def _service() -> Obj:
    spec = {"selector": {"app": "web"}, "ports": [{"port": 80}]}
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web"}, "spec": spec}


def _budget() -> Obj:
    spec = {"minAvailable": 1, "selector": {"matchLabels": {"app": "web"}}}
    return {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "web"}, "spec": spec}


def _evict_one(world: MachineWorld) -> None:
    pod = name_of(world.items(f"{DEFAULT}/pods")[0])
    body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": pod}}
    world.transport.send(Request("POST", f"{DEFAULT}/pods/{pod}/eviction", {}, {}, body))


def _space(world: MachineWorld) -> None:
    world.post("/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team"}})


def _off(world: MachineWorld) -> None:
    machine = world.room.machines.get("node-0")
    assert machine is not None
    machine.power_off(world.clock.now())


def _on(world: MachineWorld) -> None:
    machine = world.room.machines.get("node-0")
    assert machine is not None
    machine.power_on(world.clock.now())


WEB = (0.0, _post(f"{APPS}/deployments", lambda: deployment("web", 2)))
SCENES: dict[str, Scene] = {
    "deployment": (WEB, (60.0, _image("deployments", "web", "x:2"))),
    "replicaset": (
        (0.0, _post(f"{APPS}/replicasets", lambda: _workload("ReplicaSet", "web", replicas=3))),
        (60.0, lambda world: world.merge(f"{APPS}/replicasets/web", {"spec": {"replicas": 1}})),
    ),
    "statefulset": (
        (0.0, _post(f"{APPS}/statefulsets", _stateful)),
        (60.0, _image("statefulsets", "base", "x:2")),
    ),
    "daemonset": ((0.0, _post(f"{APPS}/daemonsets", _daemonset)), (60.0, _image("daemonsets", "agent", "x:2"))),
    "job": ((0.0, _post("/apis/batch/v1/namespaces/default/jobs", _job)),),
    "garbage-collector": (WEB, (60.0, lambda world: world.delete(f"{APPS}/deployments/web", "Foreground"))),
    "orphans": (WEB, (60.0, lambda world: world.delete(f"{APPS}/deployments/web", "Orphan"))),
    "namespace": (
        (0.0, _space),
        (5.0, _post("/apis/apps/v1/namespaces/team/deployments", lambda: deployment("web", 2))),
        (60.0, lambda world: world.delete("/api/v1/namespaces/team")),
    ),
    "endpoints": (
        WEB,
        (1.0, _post(f"{DEFAULT}/services", _service)),
        (60.0, lambda world: world.merge(f"{APPS}/deployments/web/scale", {"spec": {"replicas": 3}})),
    ),
    "disruption-budget": (
        WEB,
        (1.0, _post("/apis/policy/v1/namespaces/default/poddisruptionbudgets", _budget)),
        (60.0, _evict_one),
    ),
    "node-lifecycle": (WEB, (60.0, _off), (480.0, _on)),
}


def outline(world: MachineWorld) -> dict[str, Any]:
    """The state without names, times and addresses that are drawn."""
    found: dict[str, Any] = {}
    for plural in ("deployments", "replicasets", "statefulsets", "daemonsets"):
        for each in world.items(f"/apis/apps/v1/{plural}"):
            counts = {key: value for key, value in each["status"].items() if isinstance(value, int)}
            found[f"{plural}/{name_of(each)}"] = counts
    for each in world.items("/apis/batch/v1/jobs"):
        done = [c["type"] for c in each["status"].get("conditions", ()) if c["status"] == "True"]
        found[f"jobs/{name_of(each)}"] = (each["status"].get("succeeded"), done)
    pods = Counter((labels_of(p).get("app", ""), dig(p, "status", "phase")) for p in world.items("/api/v1/pods"))
    found["pods"] = sorted(pods.items())
    found["namespaces"] = [name_of(each) for each in world.items("/api/v1/namespaces")]
    for node in world.items("/api/v1/nodes"):
        ready = [c["status"] for c in node["status"]["conditions"] if c["type"] == "Ready"]
        found[f"node/{name_of(node)}"] = (ready, node["spec"].get("taints"))
    for piece in world.items("/apis/discovery.k8s.io/v1/endpointslices"):
        ready = [each["conditions"]["ready"] for each in piece.get("endpoints") or ()]
        found[f"endpoints/{labels_of(piece).get('kubernetes.io/service-name')}"] = ready
    for each in world.items("/apis/policy/v1/poddisruptionbudgets"):
        found["budget"] = [each["status"][key] for key in ("currentHealthy", "disruptionsAllowed", "expectedPods")]
    return found


def _simulate(world: MachineWorld, scene: Scene, pass_time: Callable[[float], None]) -> dict[str, Any]:
    """The scene's acts at their times; then until the disturbance is over."""
    at = 0.0
    for when, act in scene:
        pass_time(when - at)
        act(world)
        at = when
    pass_time(DISTURBED_S - at)
    return outline(world)


@cache
def undisturbed(name: str) -> dict[str, Any]:
    world = MachineWorld(nodes=NODES)
    _simulate(world, SCENES[name], world.advance)
    world.advance(CALM_S)
    return outline(world)


def _with_deaths(
    name: str, gaps: Iterator[int], *, spared: tuple[str, ...] = (), seed: int
) -> tuple[dict[str, Any], int]:
    world = MachineWorld(seed, nodes=NODES)
    lives = 0

    def live_again() -> None:
        nonlocal lives
        lives += 1
        assert lives < MAX_LIVES, f"{name}: still writing after {MAX_LIVES} lives"
        world.restart(CrashingTransport(world.transport, gaps, spared), keep_machines=True)

    def pass_time(seconds: float) -> None:
        end = world.clock.now() + timedelta(seconds=seconds)
        while world.clock.now() < end:
            try:
                world.advance((end - world.clock.now()).total_seconds())
            except Killed:
                live_again()

    live_again()
    _simulate(world, SCENES[name], pass_time)
    world.restart(keep_machines=True)
    world.advance(CALM_S)
    return outline(world), lives


def _always(number: int) -> Iterator[int]:
    while True:
        yield number


def _drawn(entropy: Entropy, most: int) -> Iterator[int]:
    while True:
        yield 2 + entropy.randrange(most - 1)


@pytest.mark.parametrize("name", SCENES)
def test_a_process_that_dies_after_every_request_still_gets_there(name: str) -> None:
    found, lives = _with_deaths(name, _always(1), spared=("/events",), seed=1)
    assert found == undisturbed(name)
    assert lives > 3


@pytest.mark.parametrize("name", SCENES)
def test_a_process_that_dies_now_and_then_gets_there_too(name: str) -> None:
    found, lives = _with_deaths(name, _drawn(Entropy(f"{name} deaths"), 7), seed=2)
    assert found == undisturbed(name)
    assert lives > 2


@pytest.mark.parametrize("seed", [3, 4])
@pytest.mark.parametrize("name", SCENES)
def test_faults_that_heal_leave_no_trace(name: str, seed: int) -> None:
    """Conflicts, lost and delayed watches, stale lists, repeated events."""
    world = MachineWorld(seed, nodes=NODES, shuffle=True)
    faulty = FaultyTransport(world.transport, world.clock, Entropy(f"{name}/{seed}"), FaultRates())
    world.restart(faulty, keep_machines=True)
    world.driver.add(faulty)
    _simulate(world, SCENES[name], world.advance)
    faulty.heal()
    world.advance(CALM_S)
    assert outline(world) == undisturbed(name)
    assert sum(faulty.counts.values()) > 5, faulty.counts


def test_an_orphan_is_not_collected_while_its_watch_is_behind() -> None:
    """The owner is gone, the cache still holds the dependent with its reference: the server's state decides."""
    world = MachineWorld(nodes=1)
    WEB[1](world)
    world.advance(30)
    faulty = FaultyTransport(world.transport, world.clock, Entropy(1), FaultRates(0, 0, 0, 0, 0))
    world.restart(_Behind(faulty, "/apis/apps/v1/replicasets"), keep_machines=True)
    world.settle()
    world.delete(f"{APPS}/deployments/web", "Orphan")
    world.advance(5)
    assert not world.exists(f"{APPS}/deployments/web")
    assert [each["metadata"].get("ownerReferences") for each in world.items("/apis/apps/v1/replicasets")] == [None]


@dataclass
class _Behind:
    """Nothing comes from the watch of one path."""

    inner: Transport
    path: str

    def send(self, request: Request) -> Response:
        answer = self.inner.send(request)
        if answer.stream is not None and request.path == self.path:
            answer.stream.take = lambda limit=1000: []  # type: ignore[method-assign]
        return answer
