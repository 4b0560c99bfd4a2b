"""What a kubelet notices of a container by its probes, as tables, and what becomes of the pod."""

from __future__ import annotations

from typing import Any

import pytest
from machine_world import MachineWorld

from syncline.cluster.machines.probes import Behaviour, Probe, course_of

HTTP = {"httpGet": {"path": "/", "port": 80}}


def probe(**fields: Any) -> dict[str, Any]:
    return HTTP | {"periodSeconds": 10, "failureThreshold": 3, "successThreshold": 1} | fields


@pytest.mark.parametrize(
    ("fields", "behaves", "ready_s"),
    [
        ({}, Behaviour(), 0),
        ({"initialDelaySeconds": 5}, Behaviour(), 5),
        ({"initialDelaySeconds": 5}, Behaviour(ready_s=16), 25),
        ({"periodSeconds": 1}, Behaviour(ready_s=7.2), 8),
        ({"successThreshold": 3}, Behaviour(ready_s=10), 30),
        ({}, Behaviour(ready_s=None), None),
    ],
)
def test_a_container_is_ready_at_the_probe_after_it_answers(
    fields: dict[str, Any], behaves: Behaviour, ready_s: float | None
) -> None:
    assert course_of({"readinessProbe": probe(**fields)}, behaves).ready_s == ready_s


def test_readiness_is_lost_after_as_many_failures_as_are_tolerated() -> None:
    course = course_of({"readinessProbe": probe(periodSeconds=5, failureThreshold=2)}, Behaviour(unready_s=11))
    assert (course.ready_s, course.unready_s) == (0, 20)
    assert [(each.after_s, each.probe) for each in course.failures] == [(15, Probe.READINESS), (20, Probe.READINESS)]


@pytest.mark.parametrize(
    ("startup_s", "started_s", "killed_s"),
    [(0.0, 3, None), (4.0, 13, None), (23.0, 23, None), (24.0, None, 23), (None, None, 23)],
)
def test_a_slow_start_is_waited_for_as_long_as_its_probe_allows(
    startup_s: float | None, started_s: float | None, killed_s: float | None
) -> None:
    course = course_of({"startupProbe": probe(initialDelaySeconds=3)}, Behaviour(startup_s=startup_s))
    assert (course.started_s, course.killed_s) == (started_s, killed_s)


def test_other_probes_begin_when_the_container_has_started() -> None:
    container = {"startupProbe": probe(), "readinessProbe": probe(initialDelaySeconds=5), "livenessProbe": probe()}
    course = course_of(container, Behaviour(startup_s=20, live_s=1))
    assert (course.started_s, course.ready_s) == (20, 20)
    assert (course.killed_by, course.killed_s) == ("liveness", 40)


def test_a_container_that_hangs_is_restarted_and_people_are_told(world: MachineWorld) -> None:
    container = {"name": "c", "image": "x:1", "livenessProbe": probe(periodSeconds=5, failureThreshold=2)}
    world.make_pod(containers=[container], annotations={"syncline.dev/live-seconds": "8"})
    world.advance(20)
    state = world.state()
    assert state["restartCount"] == 1
    assert state["lastState"]["terminated"]["exitCode"] == 143
    said = {message for _, message in world.events("default")}
    assert "Liveness probe failed: HTTP probe failed with statuscode: 503" in said
    assert "Container c failed liveness probe, will be restarted" in said


def test_a_pod_that_is_never_restarted_fails_by_its_liveness_probe(world: MachineWorld) -> None:
    container = {"name": "c", "image": "x:1", "livenessProbe": probe(periodSeconds=1)}
    annotations = {"syncline.dev/live-seconds": "2", "syncline.dev/run-seconds": "forever"}
    world.make_pod(containers=[container], restartPolicy="Never", annotations=annotations)
    world.idle()
    assert world.pod()["status"]["phase"] == "Failed"
    assert "Container c failed liveness probe" in {message for _, message in world.events("default")}


def test_a_container_that_does_not_start_is_restarted(world: MachineWorld) -> None:
    container = {"name": "c", "image": "x:1", "startupProbe": probe(periodSeconds=2, failureThreshold=3)}
    world.make_pod(containers=[container], annotations={"syncline.dev/startup-seconds": "never"})
    world.advance(4)
    assert world.state()["started"] is False
    world.advance(6)
    assert world.state()["restartCount"] == 1
    assert "Container c failed startup probe, will be restarted" in {text for _, text in world.events("default")}


def test_a_pod_falls_out_of_service_when_its_readiness_probe_fails(world: MachineWorld) -> None:
    container = {"name": "c", "image": "x:1", "readinessProbe": probe(periodSeconds=1)}
    world.make_pod(containers=[container], annotations={"syncline.dev/unready-seconds": "30"})
    world.advance(20)
    assert world.state()["ready"] is True
    world.advance(20)
    state = world.state()
    assert state["ready"] is False and state["restartCount"] == 0 and "running" in state["state"]


def test_a_sidecar_holds_the_rest_until_its_startup_probe_passes(world: MachineWorld) -> None:
    sidecar = {"name": "s", "image": "x:1", "restartPolicy": "Always", "startupProbe": probe(periodSeconds=10)}
    world.make_pod(initContainers=[sidecar], annotations={"syncline.dev/startup-seconds.s": "12"})
    world.advance(15)
    assert world.state()["state"] == {"waiting": {"reason": "PodInitializing"}}
    world.advance(15)
    assert "running" in world.state()["state"]


def test_a_failing_post_start_hook_ends_its_container(world: MachineWorld) -> None:
    world.make_pod(
        restartPolicy="Never", annotations={"syncline.dev/post-start": "fail", "syncline.dev/run-seconds": "9"}
    )
    world.idle()
    assert world.pod()["status"]["phase"] == "Failed"
    assert {"PostStartHook failed", "FailedPostStartHook"} <= {message for _, message in world.events("default")}


def test_a_pre_stop_hook_takes_its_time(world: MachineWorld) -> None:
    container = {"name": "c", "image": "x:1", "lifecycle": {"preStop": {"sleep": {"seconds": 6}}}}
    world.make_pod(containers=[container])
    world.idle()
    world.delete("/api/v1/namespaces/default/pods/p")
    assert world.idle() == pytest.approx(7)


def test_sidecars_go_after_the_rest_the_last_to_come_first(world: MachineWorld) -> None:
    sidecars = [{"name": name, "image": "x:1", "restartPolicy": "Always"} for name in ("one", "two")]
    world.make_pod(initContainers=sidecars)
    world.idle()
    world.delete("/api/v1/namespaces/default/pods/p")
    assert world.idle() == pytest.approx(3)
    stopped = [text for _, text in world.events("default") if text.startswith("Stopping container")]
    assert sorted(stopped) == [f"Stopping container {name}" for name in ("c", "one", "two")]


def test_an_end_tells_its_reason_and_message(world: MachineWorld) -> None:
    annotations = {"syncline.dev/end-reason": "OOMKilled", "syncline.dev/end-message": "too much"}
    world.make_pod(restartPolicy="Never", annotations=annotations)
    world.idle()
    ended = world.state()["state"]["terminated"]
    assert (ended["exitCode"], ended["reason"], ended["message"]) == (137, "OOMKilled", "too much")


def test_a_world_whose_probes_fail_comes_to_rest(world: MachineWorld) -> None:
    container = {"name": "c", "image": "x:1", "readinessProbe": probe()}
    world.make_pod(containers=[container], annotations={"syncline.dev/ready": "never"})
    assert world.idle() < 5
    assert world.told().count("Unhealthy") == 1


def test_a_debug_container_joins_a_pod_that_runs_and_counts_for_nothing_else(world: MachineWorld) -> None:
    path = "/api/v1/namespaces/default/pods/p"
    world.make_pod()
    world.idle()
    debug = {"name": "debug", "image": "busybox:1", "targetContainerName": "c", "stdin": True, "tty": True}
    world.strategic(f"{path}/ephemeralcontainers", {"spec": {"ephemeralContainers": [debug]}})
    world.idle()
    status = world.pod()["status"]
    (added,) = status["ephemeralContainerStatuses"]
    assert "running" in added["state"] and added["ready"] is False and "started" not in added
    assert status["phase"] == "Running" and [each["name"] for each in status["containerStatuses"]] == ["c"]
    assert all(each["status"] == "True" for each in status["conditions"])
    world.delete(path)
    world.idle()
    assert not world.exists(path)
