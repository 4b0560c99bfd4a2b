"""What ``syncline pool`` and ``syncline node`` show of a roll-out, as text."""

from __future__ import annotations

from tests.machineconfig.room import APIS, HOLDS, NODES, POOLS, RECORDS, PoolWorld
from tests.machineconfig.test_drains import okd
from tests.machineconfig.test_pools import world

from syncline.assembly.inspection.snapshot import application_indices, snapshot_of_cluster
from syncline.assembly.machines.role import machine_config_gauges
from syncline.cli.views.pool import (
    describe_history,
    describe_node,
    describe_pool,
    history_rows,
    node_rows,
    node_table,
    pool_row,
    pool_table,
)
from syncline.control.executor import run_in_place
from syncline.kube.kinds.holds import holds_of
from syncline.kube.objects import Obj, name_of
from syncline.machineconfig.drain.progress import INSIST

B = "rendered-worker-b"


def listed(one: PoolWorld) -> list[list[str]]:
    holds = holds_of(one.get(HOLDS)["items"])
    pools = one.get(POOLS)["items"]
    rows = [pool_row(pool, [hold for hold in holds if name_of(pool) in hold.pools]) for pool in pools]
    return [line.split("   ") for line in pool_table(rows, one.clock.now()).splitlines()]


def test_the_list_says_who_holds_what_since_when_and_until_when() -> None:
    one = world()
    one.hold("mine", minutes=60)
    one.target(B)
    one.driver.advance(300)
    cells = [cell.strip() for cell in listed(one)[1] if cell.strip()]
    assert cells[:7] == ["worker", B, "Held", "0/3", "false", "ann", "5m"]
    assert cells[-1] == "a look at the disks"


def test_a_pool_whose_drain_was_blocked_is_listed_as_held_once_it_is() -> None:
    one = okd()
    one.target(B)
    one.driver.advance(120)

    def cells() -> list[str]:
        worker = next(row for row in listed(one) if row[0].startswith("worker"))
        return [cell.strip() for cell in worker if cell.strip()]

    assert "DrainBlocked" in cells()
    one.hold("mine")
    assert cells()[2] == "Held" and cells()[5] == "ann"


def test_a_pool_and_a_node_tell_of_a_drain_that_cannot_finish() -> None:
    one = okd()
    one.target(B)
    one.driver.advance(300)
    pool, pools, nodes = one.get(f"{POOLS}/worker"), one.get(POOLS)["items"], one.get(NODES)["items"]
    text = describe_pool(pool_row(pool, []), pool, node_rows(pool, pools, nodes), one.clock.now())
    assert "State:          DrainBlocked" in text and "DrainBlocked:   the drain of node okd-worker-01" in text
    node = one.nodes()["okd-worker-01"]
    told = describe_node(node, pools, one.get(f"{RECORDS}/okd-worker-01"), one.clock.now())
    assert "Would help:  add a worker node like okd-worker-01" in told
    assert "rendered-worker-a -> rendered-worker-b" in node_table(nodes, pools, one.clock.now())


def test_the_history_lists_rendered_configs_and_what_the_pool_told() -> None:
    one = world()
    pool: Obj = one.get(f"{POOLS}/worker")
    owner = {"apiVersion": pool["apiVersion"], "kind": "MachineConfigPool", "name": "worker"}
    owner |= {"uid": pool["metadata"]["uid"], "controller": True}
    for config in ("rendered-worker-a", B):
        one.make(f"{APIS}/machineconfigs", "MachineConfig", config, {}, ownerReferences=[owner])
        one.driver.advance(60)
    one.target(B)
    one.until_updated(B)
    pool = one.get(f"{POOLS}/worker")
    rows = history_rows(pool, one.get(f"{APIS}/machineconfigs")["items"], one.get(NODES)["items"])
    assert [(row["name"], row["nodes"], row["wanted"], row["reached"]) for row in rows] == [
        (B, 3, True, True),
        ("rendered-worker-a", 0, False, False),
    ]
    events = [e for e in one.get("/api/v1/events")["items"] if e["involvedObject"]["name"] == "worker"]
    text = describe_history(rows, events, one.clock.now())
    assert "wanted reached" in text and f"Completed: Pool worker has completed update to MachineConfig {B}" in text


def test_the_gauges_have_upstream_s_names_and_a_drain_of_more_than_an_hour_counts_as_failed() -> None:
    one = okd(budget={"maxUnavailable": 0})
    one.merge(f"{NODES}/okd-worker-01", {"metadata": {"annotations": {INSIST: "insist"}}})
    one.target(B)
    one.driver.advance(3000)
    assert 'mcc_drain_err{node="okd-worker-01"}' not in gauges_of(one)
    one.driver.advance(900)
    text = gauges_of(one)
    for line in (
        'mco_machine_count{pool="worker"} 1',
        'mco_updated_machine_count{pool="worker"} 0',
        'mco_degraded_machine_count{pool="worker"} 1',
        'mcc_drain_err{node="okd-worker-01"} 1',
        'mcc_pool_alert{node="okd-worker-01"} 0',
        'os_image_url_override{pool="worker"} 0',
    ):
        assert line in text.splitlines(), text
    assert 'mco_state{node="okd-worker-01",pool="worker",state=' in text


def gauges_of(one: PoolWorld) -> str:
    look = run_in_place(snapshot_of_cluster(application_indices(one.settings)), one.admin)
    return machine_config_gauges(look.cache, one.clock.now())
