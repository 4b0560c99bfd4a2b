"""From machine configs that people apply to rebooted nodes: rendering, pools and drains together."""

from __future__ import annotations

from tests.machineconfig.rendering import files, machine_config, pool
from tests.machineconfig.room import APIS, POOLS, PoolWorld

from syncline.kube.objects import annotations_of, dig
from syncline.machineconfig.names import CURRENT, STATE

CONFIGS = f"{APIS}/machineconfigs"


def world() -> PoolWorld:
    one = PoolWorld({}, renders=True)
    for name in ("master", "worker"):
        one.send("POST", POOLS, pool(name))
    one.driver.until(lambda: target(one) != "", limit_s=120)
    for index in range(2):
        one.add_node(f"worker-{index}", "worker", born=target(one))
    one.driver.until(lambda: one.updated(target(one)) and one.counts()[0] == 2, limit_s=300)
    return one


def target(one: PoolWorld) -> str:
    return str(dig(one.get(f"{POOLS}/worker"), "spec", "configuration", "name", default=""))


def add(one: PoolWorld, name: str, content: str) -> None:
    one.send("POST", CONFIGS, machine_config(name, files((f"/etc/{name}", content))))


def boots(one: PoolWorld, before: dict[str, int]) -> dict[str, int]:
    return {name: count - before[name] for name, count in one.reboots().items()}


def test_configs_applied_together_cost_one_reboot_of_each_node() -> None:
    one = world()
    first, before = target(one), one.reboots()
    for name in ("99-a", "99-b", "99-c"):
        add(one, name, "x")
        one.driver.advance(1)
    one.driver.until(lambda: target(one) != first, limit_s=60)
    one.until_updated(target(one))
    assert boots(one, before) == {"worker-0": 1, "worker-1": 1}
    assert {annotations_of(node)[CURRENT] for node in one.nodes().values()} == {target(one)}


def test_waves_of_configs_under_a_hold_cost_one_reboot_of_each_node() -> None:
    """Rendering goes on, nodes wait (DECISIONS 28, 29)."""
    one = world()
    seen, before = {target(one)}, one.reboots()
    one.hold("sync")
    for name in ("99-a", "99-b", "99-c"):
        add(one, name, "x")
        one.driver.advance(120)
        seen.add(target(one))
    assert len(seen) == 4 and boots(one, before) == {"worker-0": 0, "worker-1": 0}
    one.send("DELETE", "/apis/syncline.dev/v1alpha1/holds/sync")
    one.until_updated(target(one))
    assert boots(one, before) == {"worker-0": 1, "worker-1": 1}


def test_030_a_config_that_is_taken_back_before_it_began_costs_nothing() -> None:
    one = world()
    first, before = target(one), one.reboots()
    one.hold("sync")
    add(one, "99-a", "x")
    one.driver.advance(60)
    one.send("DELETE", f"{CONFIGS}/99-a")
    one.driver.advance(60)
    one.send("DELETE", "/apis/syncline.dev/v1alpha1/holds/sync")
    one.driver.advance(600)
    assert target(one) == first and one.updated(first)
    assert boots(one, before) == {"worker-0": 0, "worker-1": 0}


def test_023_and_024_a_bad_config_degrades_its_pool_and_touches_no_node() -> None:
    one = world()
    first, before = target(one), one.reboots()
    one.send("POST", CONFIGS, machine_config("99-bad", files({"path": "/etc/x", "mode": 0o4755})))
    one.driver.until(lambda: one.condition("Degraded").get("status") == "True", limit_s=120)
    assert one.condition("RenderDegraded")["status"] == "True"
    assert one.condition("Degraded").get("message", "") == ""
    one.send("DELETE", f"{CONFIGS}/99-bad")
    one.driver.until(lambda: one.condition("Degraded").get("status") == "False", limit_s=120)
    assert target(one) == first and boots(one, before) == {"worker-0": 0, "worker-1": 0}
    assert {annotations_of(node)[STATE] for node in one.nodes().values()} == {"Done"}
