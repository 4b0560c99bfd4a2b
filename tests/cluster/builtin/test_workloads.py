"""Deployments, ReplicaSets, Jobs, namespaces and the garbage collector on the embedded API, in virtual time."""

from __future__ import annotations

from typing import Any

import pytest
from tests.cluster.world import World, deployment, job

from syncline.base.clock import format_time
from syncline.base.entropy import Entropy
from syncline.rehearsal.seams import CrashingTransport, Killed

APPS = "/apis/apps/v1/namespaces/default"
JOBS = "/apis/batch/v1/namespaces/default/jobs"
PODS = "/api/v1/namespaces/default/pods"


def rolled_out(**spec: Any) -> World:
    world = World()
    world.node("n1")
    world.post(f"{APPS}/deployments", deployment(**spec))
    world.run_until_ready("default")
    return world


def counts(world: World, name: str = "web") -> dict[str, int]:
    status = world.get(f"{APPS}/deployments/{name}")["status"]
    return {key: status.get(key, 0) for key in ("replicas", "updatedReplicas", "availableReplicas")}


def test_a_deployment_becomes_complete() -> None:
    world = rolled_out(replicas=3)
    assert counts(world) == {"replicas": 3, "updatedReplicas": 3, "availableReplicas": 3}


def test_a_rolling_update_never_falls_below_what_must_be_available() -> None:
    world = rolled_out(replicas=4)
    world.strategic(
        f"{APPS}/deployments/web", {"spec": {"template": {"spec": {"containers": [{"name": "c", "image": "x:2"}]}}}}
    )
    lowest, highest = 4, 4
    for _ in range(30):
        world.settle()
        pods = [pod for pod in world.items(PODS) if "deletionTimestamp" not in pod["metadata"]]
        lowest = min(lowest, sum(pod["status"].get("phase") == "Running" for pod in pods))
        highest = max(highest, len(pods))
        if not world.reap("default") + world.make_ready("default"):
            break
    assert (lowest, highest) == (3, 5)
    assert {pod["spec"]["containers"][0]["image"] for pod in world.items(PODS)} == {"x:2"}


def test_recreate_makes_no_new_pod_before_the_last_old_one_is_gone() -> None:
    world = rolled_out(strategy={"type": "Recreate"})
    old = {pod["metadata"]["name"] for pod in world.items(PODS)}
    template = {"spec": {"template": {"spec": {"containers": [{"name": "c", "image": "x:2"}]}}}}
    world.strategic(f"{APPS}/deployments/web", template)
    world.settle()
    here = world.items(PODS)
    assert {pod["metadata"]["name"] for pod in here} == old
    assert all("deletionTimestamp" in pod["metadata"] for pod in here)
    world.run_until_ready("default")
    assert counts(world) == {"replicas": 2, "updatedReplicas": 2, "availableReplicas": 2}


def test_a_settled_world_plans_nothing_more() -> None:
    world = rolled_out()
    before = len(world.journal)
    world.restart()
    world.settle()
    assert [entry.line() for entry in list(world.journal)[before:]] == []


def test_equal_seeds_write_equal_journals() -> None:
    first, second = rolled_out(replicas=3), rolled_out(replicas=3)
    assert first.journal.text() == second.journal.text()


@pytest.mark.parametrize("seed", range(5))
def test_the_order_of_keys_does_not_matter(seed: int) -> None:
    world = World(seed, shuffle=True)
    world.post(f"{APPS}/deployments", deployment(replicas=3))
    world.run_until_ready("default")
    assert counts(world) == {"replicas": 3, "updatedReplicas": 3, "availableReplicas": 3}


def crash_everywhere(make: Any, check: Any, most: int = 200) -> int:
    """Kill the controllers after their n-th write, for every n until none is left; restart; converge; check."""
    for after in range(1, most):
        world = World()
        crashing = CrashingTransport(world.transport, after)
        world.restart(crashing)
        make(world)
        try:
            world.run_until_ready("default")
            died = False
        except Killed:
            died = True
            world.restart()
            world.run_until_ready("default")
        check(world)
        if not died:
            return after
    raise AssertionError(f"still crashing after {most} writes")


def test_a_deployment_converges_whatever_write_the_crash_follows() -> None:
    def check(world: World) -> None:
        assert counts(world) == {"replicas": 2, "updatedReplicas": 2, "availableReplicas": 2}
        assert len(world.items(f"{APPS}/replicasets")) == 1
        assert len(world.items(PODS)) == 2

    crashes = crash_everywhere(lambda world: world.post(f"{APPS}/deployments", deployment()), check)
    assert crashes > 10


def finish(world: World, phase: str, number: int = 1) -> None:
    world.advance(1)
    stamp = format_time(world.clock.now())
    ended = {"name": "c", "image": "job:1", "imageID": "x", "ready": False, "restartCount": 0}
    ended["state"] = {"terminated": {"exitCode": int(phase == "Failed"), "finishedAt": stamp}}
    for pod in [p for p in world.items(PODS) if p["status"]["phase"] == "Pending"][:number]:
        world.pod_status("default", pod["metadata"]["name"], {"phase": phase, "containerStatuses": [ended]})
    world.advance(1)


def job_status(world: World, name: str = "work") -> dict[str, Any]:
    status: dict[str, Any] = world.get(f"{JOBS}/{name}")["status"]
    return status


def ended(world: World, name: str = "work") -> dict[str, str]:
    return {c["type"]: c["reason"] for c in job_status(world, name).get("conditions", []) if c["status"] == "True"}


def test_a_job_counts_every_success_once() -> None:
    world = World()
    world.post(JOBS, job(completions=3, parallelism=2))
    for _ in range(3):
        finish(world, "Succeeded")
    assert ended(world) == {"SuccessCriteriaMet": "CompletionsReached", "Complete": "CompletionsReached"}
    assert job_status(world)["succeeded"] == 3
    assert all("finalizers" not in pod["metadata"] for pod in world.items(PODS))
    assert ("Completed", "Job completed") in world.events("default")


def test_a_job_counts_once_whatever_write_the_crash_follows() -> None:
    for after in range(1, 60):
        world = World()
        world.settle()
        crashing = CrashingTransport(world.transport, after)
        world.restart(crashing)
        died = False
        try:
            world.post(JOBS, job(completions=2, parallelism=1))
            finish(world, "Succeeded")
            finish(world, "Succeeded")
        except Killed:
            died = True
            world.restart()
            for _ in range(3):
                finish(world, "Succeeded")
        assert job_status(world)["succeeded"] == 2
        assert ended(world)["Complete"] == "CompletionsReached"
        assert len(world.items(PODS)) == 2
        if not died:
            assert after > 8
            return
    raise AssertionError("still crashing after 60 writes")


def test_failed_pods_are_replaced_after_ten_twenty_and_forty_seconds() -> None:
    world = World()
    world.post(JOBS, job(backoffLimit=3))
    for wait_s in (10, 20, 40):
        finish(world, "Failed")
        known = len(world.items(PODS))
        world.advance(wait_s - 2)
        assert len(world.items(PODS)) == known
        world.advance(2)
        assert len(world.items(PODS)) == known + 1
    finish(world, "Failed")
    assert ended(world) == {"FailureTarget": "BackoffLimitExceeded", "Failed": "BackoffLimitExceeded"}
    assert job_status(world)["failed"] == 4


def test_a_job_past_its_deadline_fails_and_its_pods_go() -> None:
    world = World()
    world.post(JOBS, job(activeDeadlineSeconds=30))
    world.settle()
    world.advance(29)
    assert ended(world) == {}
    world.advance(2)
    assert ended(world)["Failed"] == "DeadlineExceeded"
    assert world.items(PODS) == []


def test_a_finished_job_goes_when_its_time_to_live_is_over() -> None:
    world = World()
    world.post(JOBS, job(ttlSecondsAfterFinished=60))
    finish(world, "Succeeded")
    world.advance(57)
    assert world.exists(f"{JOBS}/work")
    world.advance(4)
    assert not world.exists(f"{JOBS}/work")


def test_an_indexed_job_runs_every_index() -> None:
    world = World()
    world.post(JOBS, job(completions=4, parallelism=2, completionMode="Indexed"))
    world.settle()
    indexes = {pod["metadata"]["labels"]["batch.kubernetes.io/job-completion-index"] for pod in world.items(PODS)}
    assert indexes == {"0", "1"}
    for _ in range(4):
        finish(world, "Succeeded")
    assert (job_status(world)["completedIndexes"], job_status(world)["succeeded"]) == ("0-3", 4)
    assert ended(world)["Complete"] == "CompletionsReached"


def test_background_deletion_takes_the_whole_tree() -> None:
    world = rolled_out()
    world.delete(f"{APPS}/deployments/web", "Background")
    world.settle()
    assert world.reap("default") == 2
    world.settle()
    assert world.items(f"{APPS}/replicasets") == []
    assert world.items(PODS) == []


def test_foreground_deletion_keeps_the_owner_until_the_last_pod_is_gone() -> None:
    world = rolled_out()
    world.delete(f"{APPS}/deployments/web", "Foreground")
    world.settle()
    assert world.exists(f"{APPS}/deployments/web")
    assert world.reap("default") == 2
    world.settle()
    assert not world.exists(f"{APPS}/deployments/web")
    assert world.items(f"{APPS}/replicasets") == []


def test_orphan_deletion_leaves_the_replica_set() -> None:
    world = rolled_out()
    world.delete(f"{APPS}/deployments/web", "Orphan")
    world.settle()
    left = world.items(f"{APPS}/replicasets")
    assert [each["metadata"].get("ownerReferences") for each in left] == [None]
    assert len(world.items(PODS)) == 2


def test_a_namespace_ends_after_its_content() -> None:
    world = World()
    world.post("/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "demo"}})
    held = {"metadata": {"name": "held", "finalizers": ["example.com/hold"]}}
    world.post("/api/v1/namespaces/demo/configmaps", {"apiVersion": "v1", "kind": "ConfigMap"} | held)
    world.settle()
    world.delete("/api/v1/namespaces/demo")
    world.settle()
    assert [cm["metadata"]["name"] for cm in world.items("/api/v1/namespaces/demo/configmaps")] == ["held"]
    world.merge("/api/v1/namespaces/demo/configmaps/held", {"metadata": {"finalizers": None}})
    world.settle()
    assert not world.exists("/api/v1/namespaces/demo")


def test_pods_leave_a_lost_node_when_their_toleration_is_over() -> None:
    world = rolled_out()
    world.node("n2")
    start = world.clock.now()
    world.heartbeats = lambda node: start if node == "n1" else world.clock.now()
    world.advance(60)
    taints = {(t["key"], t["effect"]) for t in world.get("/api/v1/nodes/n1")["spec"]["taints"]}
    assert ("node.kubernetes.io/unreachable", "NoExecute") in taints
    assert all("deletionTimestamp" not in pod["metadata"] for pod in world.items(PODS))
    world.advance(310)
    doomed = [pod for pod in world.items(PODS) if pod["spec"].get("nodeName") == "n1"]
    assert len(doomed) == 2
    assert all("deletionTimestamp" in pod["metadata"] for pod in doomed)


def test_where_every_node_falls_silent_no_pod_is_evicted() -> None:
    world = rolled_out()
    start = world.clock.now()
    world.heartbeats = lambda _node: start
    world.advance(600)
    taints = {(t["key"], t["effect"]) for t in world.get("/api/v1/nodes/n1")["spec"]["taints"]}
    assert taints == {("node.kubernetes.io/unreachable", "NoSchedule")}
    assert all("deletionTimestamp" not in pod["metadata"] for pod in world.items(PODS))


def test_shuffled_worlds_finish_jobs_too() -> None:
    for seed in range(3):
        world = World(seed, shuffle=True)
        world.post(JOBS, job(completions=2, parallelism=2))
        finish(world, "Succeeded", Entropy(seed).randrange(2) + 1)
        finish(world, "Succeeded", 2)
        assert ended(world)["Complete"] == "CompletionsReached"
