"""What Jobs promise beyond counting: indexes judged alone, success and failure policies, other managers."""

from __future__ import annotations

from typing import Any

import pytest
from tests.cluster.world import World, job

from syncline.cluster.builtin.workloads.job.indexes import format_indexes, parse_indexes
from syncline.cluster.builtin.workloads.job.success_policy import satisfied
from syncline.kube.objects import Obj, annotations_of, labels_of, name_of

JOBS = "/apis/batch/v1/namespaces/default/jobs"
PODS = "/api/v1/namespaces/default/pods"
INDEX = "batch.kubernetes.io/job-completion-index"


def running(**spec: Any) -> World:
    world = World()
    world.settle()
    world.post(JOBS, job(**spec))
    world.settle()
    return world


def indexed(**spec: Any) -> World:
    return running(completions=3, parallelism=3, completionMode="Indexed", **spec)


def pod_of(world: World, index: int) -> Obj:
    """The active pod of an index."""
    found = [
        pod
        for pod in world.items(PODS)
        if labels_of(pod).get(INDEX) == str(index) and pod["status"].get("phase") in ("Pending", "Running")
    ]
    assert len(found) == 1
    return found[0]


def end(world: World, pod: Obj, phase: str, **more: Any) -> None:
    world.pod_status("default", name_of(pod), {"phase": phase} | more)
    world.settle()


def status(world: World) -> Obj:
    found: Obj = world.get(f"{JOBS}/work")["status"]
    return found


def verdicts(world: World) -> dict[str, str]:
    return {each["type"]: each["reason"] for each in status(world).get("conditions", ()) if each["status"] == "True"}


@pytest.mark.parametrize(
    ("indexes", "text"),
    [((), ""), ((4,), "4"), ((0, 1), "0,1"), ((0, 1, 2), "0-2"), ((0, 2, 3, 4, 6, 7), "0,2-4,6,7")],
)
def test_indexes_are_written_as_ranges_from_three_on(indexes: tuple[int, ...], text: str) -> None:
    assert format_indexes(indexes) == text
    assert parse_indexes(text, 10) == set(indexes)


def test_indexes_beyond_the_completions_and_unreadable_ones_are_left_out() -> None:
    assert parse_indexes("0-2,x,4-9,12", 6) == {0, 1, 2, 4, 5}


@pytest.mark.parametrize(
    ("rules", "done", "met"),
    [
        ([{"succeededIndexes": "0,2"}], {0, 1}, ""),
        ([{"succeededIndexes": "0,2"}], {0, 2}, "Matched rules at index 0"),
        ([{"succeededIndexes": "0-2", "succeededCount": 2}], {1, 2}, "Matched rules at index 0"),
        ([{"succeededIndexes": "0"}, {"succeededCount": 2}], {1, 2}, "Matched rules at index 1"),
        ([{"succeededCount": 1}], set(), ""),
    ],
    ids=["all that are named", "all there", "enough of those named", "enough of any", "nothing succeeded"],
)
def test_the_first_rule_that_is_satisfied_ends_the_job(rules: list[Obj], done: set[int], met: str) -> None:
    assert satisfied({"spec": {"successPolicy": {"rules": rules}}}, frozenset(done), 3) == met


def test_a_satisfied_success_policy_completes_the_job_and_removes_the_rest() -> None:
    world = indexed(successPolicy={"rules": [{"succeededIndexes": "1"}]})
    end(world, pod_of(world, 1), "Succeeded")
    assert verdicts(world) == {"SuccessCriteriaMet": "SuccessPolicy", "Complete": "SuccessPolicy"}
    assert status(world)["completedIndexes"] == "1"
    assert "failed" not in status(world)
    assert len(world.items(PODS)) == 1


def test_an_index_that_fails_too_often_is_given_up_and_the_job_fails_at_the_end() -> None:
    world = indexed(backoffLimitPerIndex=1)
    end(world, pod_of(world, 0), "Failed")
    assert status(world)["failedIndexes"] == ""
    world.advance(11)
    again = pod_of(world, 0)
    assert annotations_of(again)["batch.kubernetes.io/job-index-failure-count"] == "1"
    end(world, again, "Failed")
    assert status(world)["failedIndexes"] == "0"
    end(world, pod_of(world, 1), "Succeeded")
    assert verdicts(world) == {}
    end(world, pod_of(world, 2), "Succeeded")
    assert verdicts(world) == {"FailureTarget": "FailedIndexes", "Failed": "FailedIndexes"}


def test_the_second_retry_of_an_index_waits_twice_as_long_and_others_do_not_wait() -> None:
    world = indexed(backoffLimitPerIndex=3)
    end(world, pod_of(world, 0), "Failed")
    world.advance(11)
    end(world, pod_of(world, 0), "Failed")
    end(world, pod_of(world, 1), "Failed")
    world.advance(11)
    assert pod_of(world, 1)
    assert not [
        pod for pod in world.items(PODS) if labels_of(pod)[INDEX] == "0" and pod["status"]["phase"] == "Pending"
    ]
    world.advance(11)
    assert pod_of(world, 0)


def test_more_failed_indexes_than_allowed_end_the_job_at_once() -> None:
    world = indexed(backoffLimitPerIndex=0, maxFailedIndexes=1)
    end(world, pod_of(world, 0), "Failed")
    assert verdicts(world) == {}
    end(world, pod_of(world, 1), "Failed")
    assert verdicts(world)["Failed"] == "MaxFailedIndexesExceeded"
    assert status(world)["failedIndexes"] == "0,1"


def test_a_fail_index_rule_gives_an_index_up_and_an_ignored_failure_counts_for_nothing() -> None:
    rules = [
        {"action": "FailIndex", "onPodConditions": [{"type": "Broken", "status": "True"}]},
        {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]},
    ]
    world = indexed(backoffLimitPerIndex=2, podFailurePolicy={"rules": rules})
    end(world, pod_of(world, 0), "Failed", conditions=[{"type": "Broken", "status": "True"}])
    assert status(world)["failedIndexes"] == "0"
    end(world, pod_of(world, 1), "Failed", conditions=[{"type": "DisruptionTarget", "status": "True"}])
    world.advance(11)
    notes = annotations_of(pod_of(world, 1))
    assert notes["batch.kubernetes.io/job-index-failure-count"] == "0"
    assert notes["batch.kubernetes.io/job-index-ignored-failure-count"] == "1"
    assert status(world)["failed"] == 1


def test_pods_that_a_job_gives_up_do_not_count_as_failed() -> None:
    world = running(completions=4, parallelism=3)
    world.merge(f"{JOBS}/work", {"spec": {"parallelism": 1}})
    world.settle()
    assert status(world)["active"] == 1
    world.merge(f"{JOBS}/work", {"spec": {"suspend": True}})
    world.settle()
    assert "failed" not in status(world)
    assert world.items(PODS) == []


def test_a_job_that_waits_for_a_failed_pod_to_be_replaced_shows_no_active_pods() -> None:
    world = running(completions=2, parallelism=2)
    end(world, world.items(PODS)[0], "Failed")
    assert "active" not in status(world)
    world.advance(11)
    assert status(world)["active"] == 2


def test_a_job_that_another_controller_manages_is_left_alone() -> None:
    world = running(managedBy="example.com/jobs")
    assert world.items(PODS) == []
    assert status(world) == {}


def test_an_adopted_pod_is_held_until_it_is_counted() -> None:
    world = World()
    world.settle()
    pod = {"metadata": {"name": "early", "labels": {"a": "b"}}, "spec": {"restartPolicy": "Never"}}
    pod["spec"] |= {"containers": [{"name": "c", "image": "x"}]}
    world.post(PODS, {"apiVersion": "v1", "kind": "Pod"} | pod)
    made = job(manualSelector=True, selector={"matchLabels": {"a": "b"}})
    made["spec"]["template"]["metadata"] = {"labels": {"a": "b"}}
    world.post(JOBS, made)
    world.settle()
    assert world.get(f"{PODS}/early")["metadata"]["finalizers"] == ["batch.kubernetes.io/job-tracking"]
    end(world, world.get(f"{PODS}/early"), "Succeeded")
    assert status(world)["succeeded"] == 1
    assert "finalizers" not in world.get(f"{PODS}/early")["metadata"]
