"""Pools on the embedded cluster: who is updated, when, and what the pool says (numbers: reference machine-config 8)."""

from __future__ import annotations

from tests.machineconfig.room import NODES, POOLS, RECORDS, PoolWorld

from syncline.kube.objects import Obj, annotations_of, dig, name_of
from syncline.machineconfig.names import CURRENT, DESIRED, STATE

WORKERS: dict[str, tuple[str, ...]] = {f"worker-{n}": ("worker",) for n in range(3)}
A, B, C = "rendered-worker-a", "rendered-worker-b", "rendered-worker-c"


def world(roles: dict[str, tuple[str, ...]] | None = None, **spec: object) -> PoolWorld:
    found = PoolWorld(roles or WORKERS)
    found.pool(**spec)
    found.at_rest()
    assert found.updated(A), found.get(f"{POOLS}/worker")
    return found


def desired(one: PoolWorld, config: str) -> list[str]:
    return [name for name, node in one.nodes().items() if annotations_of(node).get(DESIRED) == config]


def taints(node: Obj) -> list[str]:
    return [taint["key"] for taint in dig(node, "spec", "taints", default=[])]


def test_034_a_rollout_takes_one_node_at_a_time_and_ends_with_every_node_rebooted_once() -> None:
    one = world(maxUnavailable=0)
    before = one.reboots()
    one.target(B)
    most = 0

    def done() -> bool:
        nonlocal most
        most = max(most, one.counts()[3])
        return one.updated(B)

    one.driver.until(done, limit_s=7200)
    assert most == 1
    assert one.counts() == (3, 3, 3, 0)
    assert {name: count - before[name] for name, count in one.reboots().items()} == dict.fromkeys(WORKERS, 1)
    assert f"Pool worker has completed update to MachineConfig {B}" in one.events("Completed")
    assert len(one.events("SetDesiredConfig")) == 3


def test_041_nodes_that_are_still_to_come_carry_the_taint_and_lose_it_once_targeted() -> None:
    one = world()
    one.target(B)
    one.driver.until(lambda: len(desired(one, B)) == 1, limit_s=60)
    one.driver.advance(2)
    chosen = desired(one, B)[0]
    tainted = {name for name, node in one.nodes().items() if "UpdateInProgress" in taints(node)}
    assert tainted == set(WORKERS) - {chosen}
    one.until_updated(B)
    assert not any("UpdateInProgress" in taints(node) for node in one.nodes().values())


def test_028_a_paused_pool_takes_a_new_target_and_updates_no_node() -> None:
    one = world(paused=True)
    one.target(B)
    one.driver.advance(600)
    assert desired(one, B) == []
    assert one.condition("Updated")["status"] == "False"
    assert one.condition("Updating")["status"] == "False"
    assert one.condition("Updating")["message"] == f"Pool is paused; will not update to MachineConfig {B}"
    assert one.get(f"{POOLS}/worker")["status"]["configuration"]["name"] == A


def test_029_several_changes_of_a_paused_pool_cost_one_reboot_each_node() -> None:
    one = world(paused=True)
    before = one.reboots()
    for config in (B, C, "rendered-worker-d"):
        one.target(config)
        one.driver.advance(60)
    one.merge(f"{POOLS}/worker", {"spec": {"paused": False}})
    one.until_updated("rendered-worker-d")
    assert {name: count - before[name] for name, count in one.reboots().items()} == dict.fromkeys(WORKERS, 1)


def test_030_a_change_that_is_taken_back_while_paused_costs_nothing() -> None:
    one = world(paused=True)
    before = one.reboots()
    one.target(B)
    one.driver.advance(60)
    one.target(A)
    one.merge(f"{POOLS}/worker", {"spec": {"paused": False}})
    one.driver.advance(600)
    assert one.updated(A)
    assert one.reboots() == before


def test_031_a_node_in_flight_completes_when_its_pool_is_paused_and_no_other_begins() -> None:
    one = world()
    one.target(B)
    one.driver.until(lambda: len(desired(one, B)) == 1, limit_s=60)
    one.merge(f"{POOLS}/worker", {"spec": {"paused": True}})
    one.driver.advance(3600)
    assert len(desired(one, B)) == 1
    done = one.nodes()[desired(one, B)[0]]
    assert (annotations_of(done)[CURRENT], annotations_of(done)[STATE]) == (B, "Done")
    assert not dig(done, "spec", "unschedulable")


def test_032_a_paused_pool_with_nothing_pending_is_updated() -> None:
    one = world(paused=True)
    one.driver.advance(60)
    assert (one.condition("Updated")["status"], one.condition("Updating")["status"]) == ("True", "False")


def test_035_a_limit_that_is_none_updates_nobody() -> None:
    one = world(maxUnavailable="60")
    one.target(B)
    one.driver.advance(300)
    assert desired(one, B) == []


def test_036_and_038_a_node_cordoned_by_hand_takes_the_only_place_and_its_pool_says_updating() -> None:
    one = world()
    one.merge(f"{NODES}/worker-1", {"spec": {"unschedulable": True}})
    one.driver.advance(30)
    assert (one.condition("Updated")["status"], one.condition("Updating")["status"]) == ("False", "True")
    one.target(B)
    one.driver.advance(1800)
    assert desired(one, B) == []
    one.merge(f"{NODES}/worker-1", {"spec": {"unschedulable": None}})
    one.until_updated(B)


def test_037_a_node_that_is_down_leaves_one_of_two_places() -> None:
    one = world(maxUnavailable=2)
    labels = {"node-role.kubernetes.io/worker": ""}
    one.make(NODES, "Node", "dead", {}, labels=labels, annotations={"test/born-with": A})
    one.driver.until(lambda: one.counts() == (4, 4, 3, 1), limit_s=300)
    one.target(B)
    one.driver.until(lambda: len(desired(one, B)) == 1, limit_s=60)
    one.driver.settle()
    assert len(desired(one, B)) == 1


def test_042_a_node_of_two_custom_pools_counts_nowhere() -> None:
    one = world({**WORKERS, "odd": ("worker", "infra", "gpu")})
    for name in ("infra", "gpu"):
        one.pool(name, target="rendered-worker-a")
    one.driver.advance(30)
    assert [one.counts(name)[0] for name in ("worker", "infra", "gpu")] == [3, 0, 0]
    one.target(B)
    one.until_updated(B)
    assert "odd" not in desired(one, B)


def test_044_a_worker_that_is_relabelled_moves_to_its_custom_pool_and_its_config() -> None:
    one = world()
    one.pool("infra", target="rendered-infra-a")
    one.driver.advance(10)
    one.merge(f"{NODES}/worker-2", {"metadata": {"labels": {"node-role.kubernetes.io/infra": ""}}})
    one.driver.advance(1)
    assert (one.counts("worker")[0], one.counts("infra")[0]) == (2, 1)
    one.until_updated("rendered-infra-a", "infra")
    assert annotations_of(one.nodes()["worker-2"])[CURRENT] == "rendered-infra-a"
    assert one.get(f"{RECORDS}/worker-2")["spec"]["pool"]["name"] == "infra"


def test_045_an_empty_pool_is_updated_at_once() -> None:
    one = world()
    one.pool("infra", target="rendered-infra-a")
    one.driver.advance(10)
    one.target("rendered-infra-b", "infra")
    one.driver.advance(1)
    assert one.updated("rendered-infra-b", "infra")


def test_072_a_cordon_after_targeting_is_lifted_at_the_end_one_before_keeps_the_node() -> None:
    one = world({"worker-0": ("worker",)})
    one.target(B)
    one.driver.until(lambda: desired(one, B) != [], limit_s=60)
    one.merge(f"{NODES}/worker-0", {"spec": {"unschedulable": True}})
    one.until_updated(B)
    assert not dig(one.nodes()["worker-0"], "spec", "unschedulable")


def test_075_paused_pools_that_are_resumed_together_roll_together() -> None:
    one = PoolWorld({"worker-0": ("worker",), "master-0": ("master",)})
    one.pool("worker", paused=True)
    one.pool("master", target=A, paused=True)
    one.at_rest()
    for name in ("worker", "master"):
        one.target(B, name)
        one.merge(f"{POOLS}/{name}", {"spec": {"paused": False}})
    one.driver.until(lambda: len(desired(one, B)) == 2, limit_s=30)


def test_every_node_has_a_record_that_names_its_pool_and_goes_with_it() -> None:
    one = world({**WORKERS, "master-0": ("master",)})
    records = {name_of(each): each["spec"] for each in one.get(RECORDS)["items"]}
    assert records["worker-0"]["pool"]["name"] == "worker"
    assert records["master-0"]["pool"]["name"] == "not-yet-set"
    one.target(B)
    one.until_updated(B)
    assert one.get(f"{RECORDS}/worker-0")["spec"]["configVersion"]["desired"] == B
    one.send("DELETE", f"{NODES}/worker-0")
    one.driver.advance(60)
    assert "worker-0" not in {name_of(each) for each in one.get(RECORDS)["items"]}


def test_changes_within_the_first_seconds_are_taken_together() -> None:
    one = world()
    before = one.reboots()
    for config in (B, C):
        one.target(config)
        one.driver.advance(2)
    one.until_updated(C)
    assert desired(one, B) == []
    assert {name: count - before[name] for name, count in one.reboots().items()} == dict.fromkeys(WORKERS, 1)


def drift(one: PoolWorld, name: str) -> None:
    """As the agent says it of a file that somebody changed."""
    reason = 'content mismatch for file "/etc/foo"'
    notes = {STATE: "Degraded", "machineconfiguration.openshift.io/reason": reason, "test/broken": A}
    one.merge(f"{NODES}/{name}", {"metadata": {"annotations": notes}})
    one.driver.advance(5)


def test_061_drift_takes_a_place_and_degrades_the_pool_but_cordons_nobody() -> None:
    one = world()
    drift(one, "worker-0")
    status = one.get(f"{POOLS}/worker")["status"]
    counted = [status[f"{key}MachineCount"] for key in ("updated", "ready", "unavailable", "degraded")]
    assert counted == [2, 2, 1, 1]
    said = {kind: one.condition(kind)["status"] for kind in ("Updated", "Updating", "Degraded")}
    assert said == {"Updated": "False", "Updating": "True", "Degraded": "True"}
    assert not dig(one.nodes()["worker-0"], "spec", "unschedulable")


def test_063_a_drifted_node_stops_a_rollout_of_one_at_a_time_and_not_one_of_two() -> None:
    one = world()
    drift(one, "worker-0")
    fails_before_it_begins = {"metadata": {"annotations": {"test/broken": f"{A},{B}"}}}
    one.merge(f"{NODES}/worker-0", fails_before_it_begins)
    one.target(B)
    one.driver.advance(600)
    assert desired(one, B) == []
    one.merge(f"{POOLS}/worker", {"spec": {"maxUnavailable": 2}})
    one.driver.until(lambda: set(desired(one, B)) - {"worker-0"} != set(), limit_s=60)
    assert len(set(desired(one, B)) - {"worker-0"}) == 1, "one other node"


def test_064_a_node_that_failed_after_its_drain_stays_cordoned_until_somebody_uncordons_it() -> None:
    one = world({"worker-0": ("worker",)})
    bad = {STATE: "Degraded", DESIRED: B, "test/broken": B}
    one.merge(f"{NODES}/worker-0", {"metadata": {"annotations": bad}, "spec": {"unschedulable": True}})
    one.driver.advance(600)
    assert annotations_of(one.nodes()["worker-0"])[DESIRED] == B
    one.merge(f"{NODES}/worker-0", {"spec": {"unschedulable": None}})
    one.driver.until(lambda: annotations_of(one.nodes()["worker-0"])[DESIRED] == A, limit_s=60)


def test_027_a_pool_that_selects_every_node_is_refused_with_an_event() -> None:
    one = world()
    one.make(POOLS, "MachineConfigPool", "all", {"nodeSelector": {}, "configuration": {"name": A}})
    one.driver.advance(10)
    assert one.events("SelectingAll")
    assert one.get(f"{POOLS}/all").get("status", {}).get("machineCount") in (None, 0)


def test_040_the_master_that_runs_the_operator_goes_last() -> None:
    one = PoolWorld({f"master-{n}": ("master",) for n in range(3)})
    one.pool("master", target=A)
    one.at_rest()
    labels = {"k8s-app": "machine-config-operator"}
    spec = {"nodeName": "master-0", "containers": [{"name": "c", "image": "i"}]}
    one.make("/api/v1/namespaces/default/pods", "Pod", "operator", spec, labels=labels)
    one.driver.advance(10)
    one.target(B, "master")
    one.driver.until(lambda: desired(one, B) != [], limit_s=60)
    assert desired(one, B) == ["master-1"]
    assert "Deferring update of machine config operator node master-0" in one.events("DeferringOperatorNodeUpdate")


def test_043_a_master_of_a_custom_pool_counts_as_master() -> None:
    one = PoolWorld({"master-0": ("master", "infra")})
    one.pool("master", target=A)
    one.pool("infra", target=A)
    one.at_rest()
    assert (one.counts("master")[0], one.counts("infra")[0]) == (1, 0)
    assert "node-role.kubernetes.io/control-plane" in one.nodes()["master-0"]["metadata"]["labels"]
