"""Holds on pools, and nodes on which our own controllers work (DECISIONS 28-30)."""

from __future__ import annotations

import json

from tests.machineconfig.room import HOLDS, NODES, POOLS, PoolWorld

from syncline.base.clock import format_micro_time, format_time
from syncline.control.leader import NODE as HOST
from syncline.kube.kinds.holds import HELD, ROOM_LEASE
from syncline.kube.objects import annotations_of, dig
from syncline.machineconfig.names import DESIRED
from syncline.machineconfig.pools.candidates import CANARIES, ORDER

A, B, C = "rendered-worker-a", "rendered-worker-b", "rendered-worker-c"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/argocd/leases"


def world(nodes: int = 3, **spec: object) -> PoolWorld:
    one = PoolWorld({f"worker-{n}": ("worker",) for n in range(nodes)})
    one.pool(**spec)
    one.at_rest()
    return one


def desired(one: PoolWorld, config: str) -> list[str]:
    return [name for name, node in one.nodes().items() if annotations_of(node).get(DESIRED) == config]


def test_a_held_pool_takes_targets_and_updates_nobody_until_the_hold_is_given_back() -> None:
    one = world()
    before = one.reboots()
    one.hold("mine")
    one.driver.advance(1)
    assert json.loads(annotations_of(one.get(f"{POOLS}/worker"))[HELD]) == ["mine"]
    for config in (B, C):
        one.target(config)
        one.driver.advance(300)
    assert desired(one, B) == desired(one, C) == []
    said = one.condition("Updating")
    assert said["status"] == "False"
    assert said["message"].startswith("Pool is paused by Hold mine of ann until ")
    assert said["message"].endswith(f"(a look at the disks); will not update to MachineConfig {C}")
    assert dig(one.get(f"{POOLS}/worker"), "spec", "paused") is None, "spec.paused is the person's switch"
    one.send("DELETE", f"{HOLDS}/mine")
    one.until_updated(C)
    assert {name: count - before[name] for name, count in one.reboots().items()} == {f"worker-{n}": 1 for n in range(3)}
    assert HELD not in annotations_of(one.get(f"{POOLS}/worker"))


def test_a_hold_that_nobody_renews_ends_by_itself() -> None:
    one = world()
    one.hold("mine", minutes=10)
    one.target(B)
    one.driver.advance(590)
    assert desired(one, B) == []
    one.until_updated(B)


def test_a_hold_lets_nodes_in_flight_end() -> None:
    one = world()
    one.target(B)
    one.driver.until(lambda: len(desired(one, B)) == 1, limit_s=60)
    one.hold("mine")
    one.driver.advance(1800)
    assert len(desired(one, B)) == 1
    assert one.counts()[1] == 1


def test_a_hold_on_another_pool_is_none_of_ours() -> None:
    one = world()
    one.hold("mine", pool="infra")
    one.target(B)
    one.until_updated(B)


def test_the_room_holds_its_lease_so_that_the_bridge_leaves_spec_paused_alone() -> None:
    one = world()
    lease = one.get(f"{LEASES}/{ROOM_LEASE}")
    assert lease["spec"]["holderIdentity"] == "syncline"
    one.driver.advance(300)
    assert one.get(f"{LEASES}/{ROOM_LEASE}")["spec"]["renewTime"] != lease["spec"]["renewTime"]
    one.hold("mine")
    one.driver.advance(120)
    assert dig(one.get(f"{POOLS}/worker"), "spec", "paused") is None


def test_a_node_on_which_a_sync_runs_is_updated_last_and_at_the_latest_after_a_quarter_of_an_hour() -> None:
    one = world()
    annotations = {HOST: "worker-0"}
    lease = {"holderIdentity": "x", "leaseDurationSeconds": 36000, "renewTime": format_micro_time(one.clock.now())}
    one.make(LEASES, "Lease", "syncline-application-controller", lease, annotations=annotations)
    apps = "/apis/argoproj.io/v1alpha1/namespaces/argocd/applications"
    app = {"destination": {"server": "https://kubernetes.default.svc"}, "project": "default"}
    one.make(apps, "Application", "shop", app | {"source": {"repoURL": "https://git/x.git"}})
    state = {"phase": "Running", "startedAt": format_time(one.clock.now()), "operation": {"sync": {}}}
    one.merge(f"{apps}/shop", {"status": {"operationState": state}})
    one.target(B)
    one.driver.until(lambda: len(desired(one, B)) == 2, limit_s=800)
    assert desired(one, B) == ["worker-1", "worker-2"]
    assert any(
        "worker-0: a controller that syncs Application argocd/shop runs there" in e
        for e in one.events("DeferringNodeUpdate")
    )
    one.until_updated(B)


def test_nodes_go_in_the_order_that_people_give_them() -> None:
    one = world()
    for name, order in (("worker-2", "-1"), ("worker-0", "5")):
        one.merge(f"{NODES}/{name}", {"metadata": {"annotations": {ORDER: order}}})
    one.target(B)
    seen: list[str] = []

    def done() -> bool:
        seen.extend(name for name in desired(one, B) if name not in seen)
        return one.updated(B)

    one.driver.until(done, limit_s=7200)
    assert seen == ["worker-2", "worker-1", "worker-0"]


def test_canaries_have_to_succeed_before_any_other_node_begins() -> None:
    one = world(4, maxUnavailable=4)
    one.merge(f"{POOLS}/worker", {"metadata": {"annotations": {CANARIES: "1"}}})
    one.merge(f"{NODES}/worker-3", {"metadata": {"annotations": {ORDER: "-1", "test/broken": B}}})
    one.target(B)
    one.driver.advance(3600)
    assert desired(one, B) == ["worker-3"], "the canary is degraded, nobody follows"
    one.merge(f"{NODES}/worker-3", {"metadata": {"annotations": {"test/broken": None}}})
    one.until_updated(B)
