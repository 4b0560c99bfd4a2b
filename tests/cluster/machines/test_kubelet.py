"""Pods on simulated machines, on the embedded API in virtual time."""

from __future__ import annotations

import pytest
from machine_world import MachineWorld, condition, deployment, job

from syncline.rehearsal.seams import CrashingTransport, Killed

CRASHING = {"syncline.dev/exit-code": "1", "syncline.dev/run-seconds": "1"}


def test_a_pod_becomes_ready_with_the_status_a_kubelet_writes(world: MachineWorld) -> None:
    world.make_pod()
    assert world.idle() < 5
    pod = world.pod()
    status = pod["status"]
    assert status["phase"] == "Running" and status["startTime"] and status["hostIP"] != status["podIP"]
    assert [each["type"] for each in status["conditions"]] == [
        "PodReadyToStartContainers",
        "Initialized",
        "Ready",
        "ContainersReady",
        "PodScheduled",
    ]
    assert all(each["status"] == "True" for each in status["conditions"])
    container = world.state()
    assert container["ready"] and container["started"] and container["containerID"].startswith("containerd://")
    assert set(world.told()) == {"NodeReady", "Pulling", "Pulled", "Created", "Started"}


def test_people_are_told_of_each_container_by_itself(world: MachineWorld) -> None:
    containers = [{"name": name, "image": "x:1"} for name in ("a", "b")]
    world.make_pod(containers=containers, initContainers=[{"name": "i", "image": "y:1"}])
    world.idle()
    events = world.items("/api/v1/namespaces/default/events")
    started = {each["involvedObject"]["fieldPath"] for each in events if each["message"] == "Container started"}
    assert started == {"spec.containers{a}", "spec.containers{b}", "spec.initContainers{i}"}
    pulled = {each["message"] for each in events if each["reason"] == "Pulled"}
    assert 'Successfully pulled image "y:1" in 1s (1s including waiting). Image size: 50000000 bytes.' in pulled
    assert 'Container image "x:1" already present on machine and can be accessed by the pod' in pulled


def test_a_container_is_creating_until_it_starts(world: MachineWorld) -> None:
    world.make_pod(annotations={"syncline.dev/pull-seconds": "30"})
    world.settle()
    assert world.pod()["status"]["phase"] == "Pending"
    assert world.state()["state"] == {"waiting": {"reason": "ContainerCreating"}}
    assert condition(world.pod(), "Ready")["message"] == "containers with unready status: [c]"
    world.advance(31)
    assert "running" in world.state()["state"]


def test_pods_on_a_machine_have_addresses_of_their_own(world: MachineWorld) -> None:
    for name in ("a", "b", "c"):
        world.make_pod(name)
    world.idle()
    assert len({world.pod(name)["status"]["podIP"] for name in ("a", "b", "c")}) == 3


@pytest.mark.parametrize(
    ("policy", "code", "phase"),
    [("Never", 0, "Succeeded"), ("Never", 3, "Failed"), ("OnFailure", 0, "Succeeded")],
)
def test_a_pod_ends_by_its_exit_code_and_restart_policy(
    world: MachineWorld, policy: str, code: int, phase: str
) -> None:
    world.make_pod(restartPolicy=policy, annotations={"syncline.dev/exit-code": str(code)})
    world.idle()
    assert world.pod()["status"]["phase"] == phase
    assert world.state()["state"]["terminated"]["exitCode"] == code
    assert world.state()["state"]["terminated"]["reason"] == ("Completed" if code == 0 else "Error")


def test_a_container_that_sleeps_runs_as_long_as_it_sleeps(world: MachineWorld) -> None:
    container = {"name": "c", "image": "x:1", "command": ["sleep", "5"]}
    world.make_pod(restartPolicy="Never", containers=[container])
    assert world.idle() == pytest.approx(6.5)


def test_a_crash_loop_restarts_at_once_and_then_ever_later(world: MachineWorld) -> None:
    world.make_pod(annotations=CRASHING)
    world.advance(6)
    state = world.state()
    assert state["restartCount"] == 1
    assert state["state"]["waiting"]["reason"] == "CrashLoopBackOff"
    assert state["state"]["waiting"]["message"].startswith("back-off 10s restarting failed container=c pod=p_default(")
    assert state["lastState"]["terminated"]["exitCode"] == 1
    assert world.pod()["status"]["phase"] == "Running"
    world.advance(12)
    assert world.state()["restartCount"] == 2
    assert "BackOff" in world.told()


def test_a_restart_shows_the_back_off_until_the_next_attempt_runs(world: MachineWorld) -> None:
    world.make_pod(annotations={**CRASHING, "syncline.dev/start-seconds": "5"})
    world.advance(25)  # attempts end at 7 and 13 s; the third is created at 23 s
    assert world.state()["state"]["waiting"]["reason"] == "CrashLoopBackOff"
    assert world.state()["restartCount"] == 1
    world.advance(3)
    assert "running" in world.state()["state"]
    assert world.state()["restartCount"] == 2


def test_a_crash_loop_comes_to_rest(world: MachineWorld) -> None:
    world.make_pod(annotations=CRASHING)
    assert world.idle() < 600


def test_exit_codes_count_by_attempt(world: MachineWorld) -> None:
    world.make_pod(restartPolicy="OnFailure", annotations={"syncline.dev/exit-code": "1,1,0"})
    world.idle()
    assert world.pod()["status"]["phase"] == "Succeeded" and world.state()["restartCount"] == 2


def test_init_containers_run_one_after_the_other_before_the_rest(world: MachineWorld) -> None:
    init = [{"name": name, "image": "i:1", "command": ["sleep", "10"]} for name in ("one", "two")]
    world.make_pod(initContainers=init)
    world.advance(5)
    assert "running" in world.state(container="one")["state"]
    assert world.state(container="two")["state"] == {"waiting": {"reason": "PodInitializing"}}
    assert world.state()["state"] == {"waiting": {"reason": "PodInitializing"}}
    assert condition(world.pod(), "Initialized")["message"] == "containers with incomplete status: [one two]"
    world.idle()
    assert world.pod()["status"]["phase"] == "Running" and world.state(container="two")["ready"]
    assert condition(world.pod(), "Initialized")["status"] == "True"


def test_a_failed_init_container_fails_a_pod_that_is_never_restarted(world: MachineWorld) -> None:
    init = [{"name": "one", "image": "i:1"}]
    world.make_pod(initContainers=init, restartPolicy="Never", annotations={"syncline.dev/exit-code.one": "4"})
    world.idle()
    assert world.pod()["status"]["phase"] == "Failed"
    assert "waiting" in world.state()["state"]


def test_a_sidecar_starts_first_and_ends_with_the_rest(world: MachineWorld) -> None:
    sidecar = {"name": "side", "image": "s:1", "restartPolicy": "Always"}
    world.make_pod(initContainers=[sidecar], restartPolicy="Never")
    world.idle()
    assert world.pod()["status"]["phase"] == "Succeeded"
    assert "terminated" in world.state(container="side")["state"]


def test_a_missing_config_map_keeps_its_container_waiting_with_the_reason(world: MachineWorld) -> None:
    env = [{"name": "A", "valueFrom": {"configMapKeyRef": {"name": "settings", "key": "a"}}}]
    world.make_pod(containers=[{"name": "c", "image": "x:1", "env": env}])
    world.idle()
    waiting = world.state()["state"]["waiting"]
    assert waiting == {"reason": "CreateContainerConfigError", "message": 'configmap "settings" not found'}
    maps = "/api/v1/namespaces/default/configmaps"
    world.post(maps, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings"}, "data": {"b": "1"}})
    world.idle()
    assert world.state()["state"]["waiting"]["message"] == "couldn't find key a in ConfigMap default/settings"
    world.merge(f"{maps}/settings", {"data": {"a": "1"}})
    world.idle()
    assert world.pod()["status"]["phase"] == "Running"


def test_a_missing_secret_volume_keeps_the_whole_pod_creating(world: MachineWorld) -> None:
    world.make_pod(volumes=[{"name": "v", "secret": {"secretName": "keys"}}])
    world.idle()
    assert world.state()["state"]["waiting"]["reason"] == "ContainerCreating"
    messages = [message for reason, message in world.events("default") if reason == "FailedMount"]
    assert messages == ['MountVolume.SetUp failed for volume "v" : secret "keys" not found']
    world.post(
        "/api/v1/namespaces/default/secrets", {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "keys"}}
    )
    world.idle()
    assert world.pod()["status"]["phase"] == "Running"


def test_an_image_that_cannot_be_had_is_backed_off(world: MachineWorld) -> None:
    world.make_pod(annotations={"syncline.dev/image-pull": "fail"})
    world.settle()
    assert world.state()["state"]["waiting"]["reason"] == "ErrImagePull"
    world.idle()
    assert world.state()["state"]["waiting"]["reason"] == "ImagePullBackOff"
    world.merge("/api/v1/namespaces/default/pods/p", {"metadata": {"annotations": {"syncline.dev/image-pull": None}}})
    world.idle()
    assert world.pod()["status"]["phase"] == "Running"


def test_an_image_is_pulled_again_ever_later_until_it_can_be_had(world: MachineWorld) -> None:
    world.make_pod(annotations={"syncline.dev/image-pull": "fail,fail,ok"})
    world.advance(9)
    assert world.told().count("Pulling") == 1
    world.advance(2)
    assert world.pod()["status"]["phase"] == "Pending" and world.state()["restartCount"] == 0
    world.advance(18)
    assert world.state()["state"]["waiting"]["reason"] == "ImagePullBackOff"
    world.advance(5)
    assert world.pod()["status"]["phase"] == "Running"
    events = world.items("/api/v1/namespaces/default/events")
    assert [each["count"] for each in events if each["reason"] == "Pulling"] == [3]
    assert [each["count"] for each in events if each["message"] == "Error: ErrImagePull"] == [2]


def test_a_pod_may_never_become_ready(world: MachineWorld) -> None:
    world.make_pod(annotations={"syncline.dev/ready": "never"})
    world.idle()
    assert condition(world.pod(), "Ready")["reason"] == "ContainersNotReady"


def test_probes_delay_readiness(world: MachineWorld) -> None:
    probe = {"initialDelaySeconds": 20, "httpGet": {"path": "/", "port": 80}}
    world.make_pod(containers=[{"name": "c", "image": "x:1", "readinessProbe": probe}])
    assert world.idle() == pytest.approx(21.5)


def test_a_pod_that_runs_too_long_is_ended(world: MachineWorld) -> None:
    world.make_pod(restartPolicy="Never", activeDeadlineSeconds=30, annotations={"syncline.dev/run-seconds": "forever"})
    world.advance(40)
    status = world.pod()["status"]
    assert (status["phase"], status["reason"]) == ("Failed", "DeadlineExceeded")
    assert world.state()["state"]["terminated"]["exitCode"] == 143


def test_a_deleted_pod_stops_in_its_time_and_goes(world: MachineWorld) -> None:
    world.make_pod(annotations={"syncline.dev/stop-seconds": "7"})
    world.idle()
    world.delete("/api/v1/namespaces/default/pods/p")
    world.settle()
    assert world.pod()["metadata"]["deletionTimestamp"]
    assert world.idle() == pytest.approx(7)
    assert not world.exists("/api/v1/namespaces/default/pods/p")
    assert "Killing" in world.told()


def test_a_container_that_does_not_stop_in_time_is_killed(world: MachineWorld) -> None:
    finalizers = {"metadata": {"finalizers": ["example.com/keep"]}}
    world.make_pod(annotations={"syncline.dev/stop-seconds": "700"})
    world.merge("/api/v1/namespaces/default/pods/p", finalizers)
    world.idle()
    world.delete("/api/v1/namespaces/default/pods/p", gracePeriodSeconds=5)
    assert world.idle() == pytest.approx(5)
    assert world.state()["state"]["terminated"]["exitCode"] == 137
    assert world.pod()["status"]["phase"] == "Failed"


def test_nothing_is_left_of_a_pod_that_was_removed_by_force(world: MachineWorld) -> None:
    made = world.make_pod()
    world.idle()
    world.delete("/api/v1/namespaces/default/pods/p", gracePeriodSeconds=0)
    world.idle()
    assert world.room.table.containers(made["metadata"]["uid"]) == ()
    assert world.room.table.sandbox(made["metadata"]["uid"]) is None


def test_a_job_runs_to_its_end(world: MachineWorld) -> None:
    world.post("/apis/batch/v1/namespaces/default/jobs", job())
    world.idle()
    assert world.get("/apis/batch/v1/namespaces/default/jobs/work")["status"]["succeeded"] == 1


def test_a_deployment_rolls_to_a_new_image(world: MachineWorld) -> None:
    world.post("/apis/apps/v1/namespaces/default/deployments", deployment(replicas=3))
    world.idle()
    world.strategic(
        "/apis/apps/v1/namespaces/default/deployments/web",
        {"spec": {"template": {"spec": {"containers": [{"name": "c", "image": "x:2"}]}}}},
    )
    world.idle()
    status = world.get("/apis/apps/v1/namespaces/default/deployments/web")["status"]
    assert status["readyReplicas"] == status["updatedReplicas"] == 3
    images = {pod["spec"]["containers"][0]["image"] for pod in world.items("/api/v1/namespaces/default/pods")}
    assert images == {"x:2"}


def test_a_pod_deleted_shortly_before_its_container_ends_by_itself_goes(world: MachineWorld) -> None:
    """The end comes sooner than stopping would: it is asked once, and not again for ever."""
    world.make_pod(annotations={"syncline.dev/run-seconds": "20", "syncline.dev/stop-seconds": "7"})
    world.advance(15)
    assert "running" in world.state()["state"]
    world.delete("/api/v1/namespaces/default/pods/p")
    assert world.idle() < 7
    assert not world.exists("/api/v1/namespaces/default/pods/p")


def test_after_a_restart_of_this_process_staged_containers_go_on(world: MachineWorld) -> None:
    world.make_pod()
    world.make_pod("j", restartPolicy="Never", annotations={"syncline.dev/run-seconds": "100"})
    world.advance(20)
    before = world.state()
    world.restart()
    world.idle()
    assert world.state() == before
    assert world.pod("j")["status"]["phase"] == "Succeeded"


@pytest.mark.parametrize("after", range(1, 9))
def test_a_crash_after_any_request_changes_no_outcome(after: int) -> None:
    world = MachineWorld()
    world.restart(CrashingTransport(world.transport, after))
    try:
        world.make_pod(restartPolicy="OnFailure", annotations={"syncline.dev/exit-code": "1,0"})
        world.idle()
    except Killed:
        world.restart()
        world.idle()
    assert world.pod()["status"]["phase"] == "Succeeded"


def test_equal_seeds_give_equal_journals() -> None:
    def run() -> str:
        world = MachineWorld(7, nodes=2, shuffle=True)
        world.post("/apis/apps/v1/namespaces/default/deployments", deployment(replicas=4))
        world.make_pod(restartPolicy="OnFailure", annotations={"syncline.dev/exit-code": "1,0"})
        world.idle()
        return str(world.journal.text())

    assert run() == run()


def test_a_world_at_rest_writes_nothing_more(world: MachineWorld) -> None:
    world.post("/apis/apps/v1/namespaces/default/deployments", deployment(replicas=2))
    world.idle()
    revision = world.store.revision
    world.restart(keep_machines=True)
    world.idle()
    assert world.store.revision == revision
