"""A day of a cluster in virtual time, in a reduced form; ``python -m bench virtual`` plays the full one."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from functools import cache

import pytest
from bench.day import REDUCED, Day, live_through, outline

HOURS = replace(REDUCED, hours=2)


SPENT: list[float] = []
"""CPU seconds of each run."""


def lived(seed: int = 1, *, shuffle: bool = False) -> Day:
    begun = time.process_time()
    day = live_through(HOURS, seed, shuffle=shuffle)
    SPENT.append(time.process_time() - begun)
    return day


@cache
def usual() -> Day:
    return lived()


def test_the_same_seed_gives_the_same_day_byte_for_byte(figure: Callable[[str, str], None]) -> None:
    """Generated names, orders, times and reasons: everything that the journal and the API tell."""
    again = lived()
    assert again.world.journal.text() == usual().world.journal.text()
    assert len(usual().world.journal) > 2000
    lists = ["/api/v1/pods", "/api/v1/events", "/apis/apps/v1/replicasets", "/api/v1/nodes"]
    for path in lists:
        assert again.world.send("GET", path) == usual().world.send("GET", path)
    text = f"2 runs of {HOURS.hours:g} hours and {HOURS.nodes} nodes, {len(again.world.journal):,} equal lines"
    figure("virtual time, one seed", f"{text}, {2 * HOURS.hours / sum(SPENT[-2:]):.2f} virtual hours per CPU second")


@pytest.mark.parametrize("seed", [7, 11, 23])
def test_another_seed_and_order_end_in_the_same_state(seed: int, figure: Callable[[str, str], None]) -> None:
    other = lived(seed, shuffle=True)
    figure(f"virtual time, shuffled with seed {seed}", f"{len(outline(other))} parts of the final state as usual")
    assert other.world.journal.text() != usual().world.journal.text()
    assert outline(other) == outline(usual())


def test_in_the_evening_everything_is_well() -> None:
    day = usual()
    assert day.evictions > 0 and day.losses > 0, "the day has drains and lost nodes"
    for node in day.world.send("GET", "/api/v1/nodes")["items"]:
        assert [c["status"] for c in node["status"]["conditions"] if c["type"] == "Ready"] == ["True"]
        assert "taints" not in node["spec"] and "unschedulable" not in node["spec"]
    for each in day.world.send("GET", "/apis/apps/v1/deployments")["items"]:
        assert each["status"]["availableReplicas"] == each["status"]["replicas"] == each["spec"]["replicas"]
    reasons = {each["reason"] for each in day.world.send("GET", "/api/v1/events")["items"]}
    assert reasons >= {"Rebooted", "NodeNotReady", "Killing", "BackOff", "Scheduled", "ScalingReplicaSet", "Completed"}


def test_a_node_that_dies_is_noticed_though_healthy_ones_are_not_polled() -> None:
    day = Day(replace(REDUCED, nodes=2))
    driver, machines = day.world.driver, day.world.machines.room.machines
    driver.advance(1000)
    passes = driver.steps
    driver.advance(1000)
    assert driver.steps - passes < 20, "nothing happens, so next to nothing is looked at"
    machine = machines.get("node-1")
    assert machine is not None
    machine.power_off(day.world.clock.now())
    driver.advance(70)
    node = day.world.send("GET", "/api/v1/nodes/node-1")
    assert [c["status"] for c in node["status"]["conditions"] if c["type"] == "Ready"] == ["Unknown"]
    assert {taint["key"] for taint in node["spec"]["taints"]} == {"node.kubernetes.io/unreachable"}
