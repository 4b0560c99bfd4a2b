"""Annotations of a Node ask for power and reboots; the machine obeys once."""

from __future__ import annotations

from typing import Any

import pytest
from machine_world import MachineWorld, condition

from syncline.cluster.machines.kubelet.power import (
    POWER,
    REBOOT,
    REBOOT_DONE,
    ChangePower,
    ObservedPower,
    RebootMachine,
    plan_power,
)
from syncline.cluster.machines.machine import Handshake, MachineState, Power
from syncline.kube.objects import annotations_of

NODE = "/api/v1/nodes/node-0"


def ask(world: MachineWorld, **annotations: str) -> None:
    named = {f"syncline.dev/{key}": value for key, value in annotations.items()}
    world.merge(NODE, {"metadata": {"annotations": named}})


def boot_id(world: MachineWorld) -> str:
    return str(world.get(NODE)["status"]["nodeInfo"]["bootID"])


def test_a_reboot_is_carried_out_once_for_an_id_and_told_when_it_has_ended(world: MachineWorld) -> None:
    world.make_pod()
    world.idle()
    first = boot_id(world)
    ask(world, reboot="r1")
    world.settle()
    assert REBOOT_DONE not in annotations_of(world.get(NODE)), "it is under way"
    world.idle()
    second = boot_id(world)
    assert annotations_of(world.get(NODE))[REBOOT_DONE] == "r1" and second != first
    assert world.pod()["status"]["phase"] == "Running"
    world.restart()
    world.idle()
    assert boot_id(world) == second, "a restart of this process asks for no second reboot"
    ask(world, reboot="r2")
    world.idle()
    assert annotations_of(world.get(NODE))[REBOOT_DONE] == "r2" and boot_id(world) != second


def test_a_kubelet_does_not_stand_in_its_own_way_after_a_boot(world: MachineWorld) -> None:
    """It writes that it has booted and how it is: the second write knows the first, and Events are said once."""
    world.idle()
    ask(world, reboot="r1")
    world.idle()
    mine = [entry.what for entry in world.journal if entry.who == "kubelet-node"]
    assert any("patch" in what for what in mine)
    assert not [what for what in mine if "refused" in what]
    told = [each for each in world.items("/api/v1/events") if each["involvedObject"]["name"] == "node-0"]
    assert {each["reason"]: each.get("count", 1) for each in told if "eady" in each["reason"]} == {
        "NodeReady": 2,
        "NodeNotReady": 1,
    }


def test_a_failed_machine_falls_silent_at_once_and_boots_when_it_recovers(world: MachineWorld) -> None:
    before = boot_id(world)
    ask(world, power="off")
    world.settle()
    machine = world.room.machines.get("node-0")
    assert machine is not None and machine.state.power is Power.OFF
    assert condition(world.get(NODE), "Ready")["reason"] == "KubeletReady", "it could not say anything any more"
    world.advance(60)
    assert condition(world.get(NODE), "Ready")["status"] == "Unknown"
    ask(world, power="on")
    world.idle()
    assert condition(world.get(NODE), "Ready")["status"] == "True" and boot_id(world) != before


@pytest.mark.parametrize(
    ("asked", "state", "expected"),
    [
        ({}, {"power": Power.OFF}, ()),
        ({POWER: "off"}, {"power": Power.OFF}, ()),
        ({POWER: "off"}, {"power": Power.BOOTING}, (ChangePower,)),
        ({POWER: "off", REBOOT: "r"}, {}, (ChangePower,)),
        ({POWER: "on"}, {"power": Power.OFF}, (ChangePower,)),
        ({POWER: "on"}, {"power": Power.STOPPING}, ()),
        ({REBOOT: "r"}, {}, (RebootMachine,)),
        ({REBOOT: "r"}, {"reboot": Handshake("r", "")}, ()),
        ({REBOOT: "r", REBOOT_DONE: "r"}, {}, ()),
        ({REBOOT: "r2", REBOOT_DONE: "r"}, {"reboot": Handshake("r", "r")}, (RebootMachine,)),
    ],
)
def test_power_is_changed_only_where_it_is_asked_for(
    asked: dict[str, str], state: dict[str, Any], expected: tuple[type, ...]
) -> None:
    node = {"metadata": {"name": "n", "annotations": asked}}
    plan = plan_power(ObservedPower(node, MachineState("boot", **state)), "n")
    assert tuple(type(action) for step in plan.steps for action in step) == expected
    assert plan.why
