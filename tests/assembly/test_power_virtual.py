"""Machines without power in virtual time, where nobody writes heartbeats."""

from __future__ import annotations

from tests.machineconfig.room import NODES, NoSource

from syncline.kube.objects import dig, name_of
from syncline.rehearsal.world import World


def readiness(one: World) -> dict[str, str]:
    found = {}
    for node in one.send("GET", NODES)["items"]:
        conditions = dig(node, "status", "conditions", default=[])
        found[name_of(node)] = next(each["status"] for each in conditions if each["type"] == "Ready")
    return found


def switch(one: World, power: str) -> None:
    body = {"metadata": {"annotations": {"syncline.dev/power": power}}}
    one.send("PATCH", f"{NODES}/node-1", body, "application/merge-patch+json")


def test_a_machine_whose_power_is_cut_is_lost_after_the_grace_and_found_when_it_is_back() -> None:
    one = World(NoSource(), nodes=2)  # type: ignore[arg-type]
    one.driver.advance(60)
    switch(one, "off")
    one.driver.advance(49)
    assert readiness(one) == {"node-1": "True", "node-2": "True"}
    one.driver.advance(2)
    assert readiness(one) == {"node-1": "Unknown", "node-2": "True"}
    switch(one, "on")
    one.driver.advance(60)
    assert readiness(one) == {"node-1": "True", "node-2": "True"}
