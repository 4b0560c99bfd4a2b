"""Drains on the embedded cluster: budgets, the ladder of retries, and drains that cannot finish."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.machineconfig.room import HOLDS, NODES, POOLS, RECORDS, ROLE, PoolWorld

from syncline.kube.objects import Obj, annotations_of, dig, name_of
from syncline.machineconfig.drain.progress import BLOCKED, INSIST, PROGRESS
from syncline.machineconfig.names import CURRENT, DESIRED, DESIRED_DRAIN, LAST_DRAIN, STATE

A, B, C = "rendered-worker-a", "rendered-worker-b", "rendered-worker-c"
MASTERS: dict[str, tuple[str, ...]] = {f"master-{n}": ("master",) for n in range(3)}
SPACE = "openshift-ingress"
PODS = f"/api/v1/namespaces/{SPACE}/pods"
BUDGETS = f"/apis/policy/v1/namespaces/{SPACE}/poddisruptionbudgets"
DEPLOYMENTS = f"/apis/apps/v1/namespaces/{SPACE}/deployments"
ROUTER = {"app": "router-default"}


def router(one: PoolWorld, replicas: int = 2, budget: Obj | None = None, **pod: Any) -> None:
    """Two pods that run on workers only, and their budget."""
    one.make("/api/v1/namespaces", "Namespace", SPACE, {})
    container = {"name": "router", "image": "router", "resources": {"requests": {"cpu": "100m"}}}
    spec = {"containers": [container], "nodeSelector": {f"{ROLE}/worker": ""}} | pod
    template = {"metadata": {"labels": ROUTER}, "spec": spec}
    selector = {"matchLabels": ROUTER}
    deployment = {"replicas": replicas, "selector": selector, "template": template}
    one.make(DEPLOYMENTS, "Deployment", "router-default", deployment)
    limit = {"minAvailable": 1} if budget is None else budget
    one.make(BUDGETS, "PodDisruptionBudget", "router-default", {"selector": selector} | limit)
    one.driver.advance(60)


def okd(**budget: Any) -> PoolWorld:
    """Three masters that take no pods, one worker with the router on it."""
    one = PoolWorld(MASTERS | {"okd-worker-01": ("worker",)})
    one.pool()
    for name in MASTERS:
        one.merge(f"{NODES}/{name}", {"spec": {"taints": [{"key": f"{ROLE}/master", "effect": "NoSchedule"}]}})
    one.at_rest()
    router(one, **budget)
    return one


def running(one: PoolWorld) -> list[Obj]:
    return [pod for pod in one.get(PODS)["items"] if "deletionTimestamp" not in pod["metadata"]]


def cordoned(one: PoolWorld, name: str = "okd-worker-01") -> bool:
    return bool(dig(one.nodes()[name], "spec", "unschedulable"))


def notes(one: PoolWorld, name: str = "okd-worker-01") -> dict[str, str]:
    return annotations_of(one.nodes()[name])


# -- drains that cannot finish ---------------------------------------------------------------------------------------


def test_a_drain_that_cannot_finish_is_not_begun_and_the_pool_says_which_pod_which_budget_and_what_helps() -> None:
    one = okd()
    before = {name_of(pod) for pod in running(one)}
    one.target(B)
    one.driver.advance(900)
    assert not cordoned(one)
    assert {name_of(pod) for pod in running(one)} == before, "nobody was evicted"
    said = one.condition("DrainBlocked")
    assert said["status"] == "True"
    for part in (
        "the drain of node okd-worker-01 cannot finish, so it is not cordoned",
        f" ← eviction of pod {SPACE}/router-default-",
        "is refused by budget router-default (allows 0: 1 of 2 healthy, 1 needed)",
        f" ← replacement of {SPACE}/router-default-",
        " ← 0/4 nodes are available: 1 node(s) were unschedulable (okd-worker-01, to be drained), "
        "3 node(s) had untolerated taint(s) (master-0, master-1, master-2)",
        "add a worker node like okd-worker-01: syncline node add NAME",
        "make the masters schedulable (master-0, master-1, master-2)",
        "relax budget openshift-ingress/router-default (minAvailable 0)",
    ):
        assert part in said["message"], said["message"]
    assert one.events("DrainBlocked"), "an Event tells it, too"


def test_a_second_worker_lets_a_blocked_drain_go_on_by_itself() -> None:
    one = okd()
    one.target(B)
    one.driver.advance(300)
    assert one.condition("DrainBlocked")["status"] == "True"
    one.add_node("okd-worker-02", "worker")
    one.until_updated(B)
    assert one.condition("DrainBlocked")["status"] == "False"
    assert len(running(one)) == 2
    assert BLOCKED not in notes(one) and PROGRESS not in notes(one)


@pytest.mark.parametrize("how", ["hold", "pause"])
def test_a_blocked_drain_does_not_begin_while_its_pool_is_held_or_paused(how: str) -> None:
    """The node was targeted before; what blocked it goes away meanwhile."""
    one = okd()
    one.target(B)
    one.driver.advance(120)
    assert BLOCKED in notes(one) and one.condition("DrainBlocked")["status"] == "True"
    before = one.reboots()
    if how == "hold":
        one.hold("mine")
    else:
        one.merge(f"{POOLS}/worker", {"spec": {"paused": True}})
    one.driver.advance(5)
    one.merge(f"{BUDGETS}/router-default", {"spec": {"minAvailable": 0}})
    one.driver.advance(1800)
    assert not cordoned(one) and one.reboots() == before and PROGRESS not in notes(one)
    assert one.condition("DrainBlocked")["status"] == "False", "it is not due"
    assert one.condition("Updating")["message"].startswith("Pool is paused")
    if how == "hold":
        one.send("DELETE", f"{HOLDS}/mine")
    else:
        one.merge(f"{POOLS}/worker", {"spec": {"paused": False}})
    one.until_updated(B)
    assert one.reboots()["okd-worker-01"] == before["okd-worker-01"] + 1


def test_a_drain_that_was_asked_for_before_begins_when_the_hold_expires() -> None:
    one = okd(budget={"minAvailable": 0})
    before = one.reboots()["okd-worker-01"]
    one.hold("mine", minutes=10)
    one.driver.advance(1)
    one.merge(f"{NODES}/okd-worker-01", {"metadata": {"annotations": {DESIRED: B}}})
    one.driver.advance(590)
    assert notes(one)[DESIRED_DRAIN] == f"drain-{B}" and not cordoned(one)
    one.driver.until(lambda: one.reboots()["okd-worker-01"] > before, limit_s=600)


def test_a_drain_that_has_begun_goes_on_although_its_pool_is_held() -> None:
    one = okd()
    one.merge(f"{POOLS}/worker", {"metadata": {"annotations": {INSIST: "insist"}}})
    one.target(B)
    one.driver.advance(120)
    assert cordoned(one)
    one.hold("mine")
    one.driver.advance(5)
    one.merge(f"{BUDGETS}/router-default", {"spec": {"minAvailable": 0}})
    one.until_updated(B)


def test_each_of_the_proposals_unblocks_the_drain() -> None:
    """What the message proposes is typed in: masters that take pods, a budget that allows one more."""
    for acts in (
        [(f"{NODES}/{m}", {"metadata": {"labels": {f"{ROLE}/worker": ""}}, "spec": {"taints": None}}) for m in MASTERS],
        [(f"{BUDGETS}/router-default", {"spec": {"minAvailable": 0}})],
    ):
        one = okd()
        one.target(B)
        one.driver.advance(120)
        assert not cordoned(one)
        for path, body in acts:
            one.merge(path, body)
        one.driver.until(lambda one=one: annotations_of(one.nodes()["okd-worker-01"])[CURRENT] == B, limit_s=3600)


def test_055_and_056_with_insistence_the_drain_hangs_for_an_hour_degrades_and_goes_on_when_it_can() -> None:
    one = okd()
    one.merge(f"{POOLS}/worker", {"metadata": {"annotations": {INSIST: "insist"}}})
    one.target(B)
    one.driver.advance(120)
    assert cordoned(one)
    assert "refused by budget router-default" in one.condition("DrainBlocked")["message"]
    one.driver.advance(4200)
    assert notes(one)[STATE] == "Degraded"
    assert one.condition("NodeDegraded")["status"] == "True"
    assert one.condition("Degraded")["status"] == "True"
    assert one.events("DrainFailed"), "told again with each attempt"
    assert len(running(one)) == 2 and cordoned(one), "the pod is never deleted, attempts go on"
    one.merge(f"{BUDGETS}/router-default", {"spec": {"minAvailable": 0}})
    one.until_updated(B)
    assert one.condition("Degraded")["status"] == "False"
    assert not cordoned(one)


def test_no_alarm_while_a_rollout_is_just_under_way() -> None:
    one = PoolWorld({f"worker-{n}": ("worker",) for n in range(3)})
    one.pool()
    one.at_rest()
    router(one, replicas=3, budget={"maxUnavailable": 1})
    slow = {"metadata": {"labels": ROUTER, "annotations": {"syncline.dev/ready-seconds": "120"}}}
    one_by_one = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}}
    one.merge(f"{DEPLOYMENTS}/router-default", {"spec": {"template": slow, "strategy": one_by_one}})
    one.driver.advance(20)
    assert one.get(f"{BUDGETS}/router-default")["status"]["disruptionsAllowed"] == 0
    one.target(B)
    one.until_updated(B)
    assert one.events("DrainBlocked") == []


def test_a_node_that_needs_another_one_back_waits_without_alarm() -> None:
    one = PoolWorld({"worker-0": ("worker",), "worker-1": ("worker",)})
    one.pool(maxUnavailable=2)
    one.at_rest()
    router(one)
    one.target(B)
    most = 0

    def done() -> bool:
        nonlocal most
        most = max(most, sum(bool(dig(node, "spec", "unschedulable")) for node in one.nodes().values()))
        return one.updated(B)

    one.driver.until(done, limit_s=7200)
    assert most == 1, "the second one waits for the first"
    assert one.events("DrainBlocked") == []


# -- the ladder ------------------------------------------------------------------------------------------------------


def test_053_and_054_a_budget_is_asked_again_and_again_ever_more_rarely_and_no_pod_is_deleted() -> None:
    one = okd(budget={"maxUnavailable": 0})
    one.merge(f"{NODES}/okd-worker-01", {"metadata": {"annotations": {INSIST: "insist"}}})
    pods = {pod["metadata"]["uid"] for pod in running(one)}
    one.target(B)
    one.driver.until(lambda: cordoned(one), limit_s=60)
    one.driver.advance(100)
    progress = json.loads(notes(one)[PROGRESS])
    assert progress["retry"], "the first attempt has ended after 90 seconds"
    assert one.events("DrainThresholdExceeded") == []
    one.driver.advance(900)
    told = one.events("DrainThresholdExceeded")
    assert told and "Waiting 5 minutes then retrying" in told[0] and "global timeout reached: 1m30s" in told[0]

    def said() -> str:
        phases = one.get(f"{RECORDS}/okd-worker-01")["status"]["conditions"]
        drained = next(each for each in phases if each["type"] == "Drained")
        assert drained["status"] == "Unknown"
        return str(drained["message"])

    one.driver.until(lambda: "Node Drain has not succeeded" in said(), limit_s=400)
    assert {pod["metadata"]["uid"] for pod in running(one)} == pods


def test_057_a_node_that_waits_for_a_drain_keeps_its_target_and_is_updated_again_afterwards() -> None:
    one = okd(budget={"maxUnavailable": 0})
    one.merge(f"{NODES}/okd-worker-01", {"metadata": {"annotations": {INSIST: "insist"}}})
    one.target(B)
    one.driver.until(lambda: cordoned(one), limit_s=60)
    one.target(C)
    one.driver.advance(600)
    assert notes(one)[DESIRED_DRAIN] == f"drain-{B}"
    one.merge(f"{BUDGETS}/router-default", {"spec": {"maxUnavailable": 2}})
    one.until_updated(C)


def test_058_pods_of_daemon_sets_stay_and_bare_ones_are_evicted() -> None:
    one = PoolWorld({"worker-0": ("worker",)})
    one.pool()
    one.at_rest()
    container = {"name": "c", "image": "i"}
    labels = {"app": "agent"}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [container]}}
    one.make(
        "/apis/apps/v1/namespaces/default/daemonsets",
        "DaemonSet",
        "agent",
        {"selector": {"matchLabels": labels}, "template": template},
    )
    bare = {"containers": [container], "volumes": [{"name": "v", "emptyDir": {}}]}
    one.make("/api/v1/namespaces/default/pods", "Pod", "bare", bare)
    one.driver.advance(60)
    one.target(B)
    one.driver.until(lambda: notes(one, "worker-0").get(LAST_DRAIN) == f"drain-{B}", limit_s=600)
    left = [name_of(pod) for pod in one.get("/api/v1/namespaces/default/pods")["items"]]
    assert len(left) == 1 and left[0].startswith("agent-")


def test_059_a_cordon_that_somebody_lifts_during_the_drain_comes_back() -> None:
    one = okd(budget={"maxUnavailable": 0})
    one.merge(f"{NODES}/okd-worker-01", {"metadata": {"annotations": {INSIST: "insist"}}})
    one.target(B)
    one.driver.until(lambda: cordoned(one), limit_s=60)
    one.driver.advance(200)
    one.merge(f"{NODES}/okd-worker-01", {"spec": {"unschedulable": None}})
    one.driver.settle()
    assert cordoned(one)
    assert notes(one).get(LAST_DRAIN) != f"drain-{B}"
    again = json.loads(notes(one)[PROGRESS])
    assert again["began"] < again["attempt"], "this attempt still counts as one of the old drain"
    one.driver.advance(100)
    assert json.loads(notes(one)[PROGRESS])["began"] == again["attempt"], "the timer starts anew"


def test_the_ladder_goes_on_where_it_was_after_a_restart() -> None:
    one = okd(budget={"maxUnavailable": 0})
    one.merge(f"{NODES}/okd-worker-01", {"metadata": {"annotations": {INSIST: "insist"}}})
    one.target(B)
    one.driver.until(lambda: cordoned(one), limit_s=60)
    began = json.loads(notes(one)[PROGRESS])["began"]
    one.driver.advance(700)
    one.start_room()
    one.driver.advance(700)
    assert json.loads(notes(one)[PROGRESS])["began"] == began
    assert one.events("DrainThresholdExceeded")
