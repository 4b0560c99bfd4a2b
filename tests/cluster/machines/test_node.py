"""Nodes of simulated machines: registration, reboots, power."""

from __future__ import annotations

import pytest
from machine_world import MachineWorld, condition

from syncline.cluster.machines.kubelet.node import node_object
from syncline.cluster.machines.machine import Entry, MachineSpec, Power, Unit

NODE = "/api/v1/nodes/node-0"


def test_a_machine_registers_its_node(world: MachineWorld) -> None:
    node = world.get(NODE)
    assert node["metadata"]["labels"]["kubernetes.io/hostname"] == "node-0"
    assert node["status"]["allocatable"]["cpu"] == "8" and node["status"]["nodeInfo"]["bootID"]
    assert [each["type"] for each in node["status"]["conditions"]][-1] == "Ready"
    assert condition(node, "Ready")["reason"] == "KubeletReady"
    assert not [taint for taint in node["spec"].get("taints", []) if taint["effect"] == "NoSchedule"]


def test_a_node_created_as_a_simulated_machine_has_one(world: MachineWorld) -> None:
    world.post("/api/v1/nodes", node_object(MachineSpec("edge", cpu="2", zone="a", labels={"role": "edge"})))
    world.idle()
    node = world.get("/api/v1/nodes/edge")
    assert node["status"]["capacity"]["cpu"] == "2" and condition(node, "Ready")["status"] == "True"
    assert node["spec"]["podCIDR"] != world.get(NODE)["spec"]["podCIDR"]


def test_a_node_of_a_stranger_is_left_alone(world: MachineWorld) -> None:
    world.post("/api/v1/nodes", {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "real"}})
    world.idle()
    assert world.room.machines.get("real") is None
    conditions = world.get("/api/v1/nodes/real").get("status", {}).get("conditions", [])
    assert "KubeletReady" not in [each.get("reason") for each in conditions]


def test_a_machine_goes_with_its_node(world: MachineWorld) -> None:
    world.delete(NODE)
    world.idle()
    assert not world.exists(NODE) and world.room.machines.get("node-0") is None


def test_a_node_removed_before_its_kubelet_came_up_stays_away(world: MachineWorld) -> None:
    def removed_at_once(name: str) -> None:
        if name == "edge" and world.exists("/api/v1/nodes/edge"):
            world.delete("/api/v1/nodes/edge")

    world.room.machines.listeners.append(removed_at_once)
    world.post("/api/v1/nodes", node_object(MachineSpec("edge")))
    world.idle()
    assert not world.exists("/api/v1/nodes/edge") and world.room.machines.get("edge") is None


@pytest.mark.parametrize("power", [Power.STOPPING, Power.BOOTING, Power.OFF])
def test_a_machine_goes_with_its_node_while_it_cannot_speak(world: MachineWorld, power: Power) -> None:
    machine = world.room.machines.get("node-0")
    assert machine is not None
    if power is Power.OFF:
        machine.fail(world.clock.now())
    else:
        machine.request_reboot("r1", world.clock.now())
    world.driver.until(lambda: machine.state.power is power)
    world.delete(NODE)
    world.idle()
    assert not world.exists(NODE) and world.room.machines.get("node-0") is None


def test_another_node_of_the_name_is_another_machine(world: MachineWorld) -> None:
    before = world.room.machines.get("node-0")
    world.delete(NODE)
    world.post("/api/v1/nodes", node_object(MachineSpec("node-0", cpu="3")))
    world.idle()
    after = world.room.machines.get("node-0")
    assert after is not None and after is not before and after.spec.cpu == "3"
    assert world.get(NODE)["status"]["capacity"]["cpu"] == "3"


def test_a_reboot_gives_a_new_boot_id_and_restarts_the_pods(world: MachineWorld) -> None:
    world.make_pod()
    world.idle()
    before = world.get(NODE)["status"]["nodeInfo"]["bootID"]
    machine = world.room.machines.get("node-0")
    assert machine is not None
    machine.request_reboot("r1", world.clock.now())
    world.settle()
    assert condition(world.get(NODE), "Ready")["status"] == "False"
    world.idle()
    node = world.get(NODE)
    assert node["status"]["nodeInfo"]["bootID"] != before and condition(node, "Ready")["status"] == "True"
    assert machine.state.reboot.done == "r1" and not machine.state.reboot.pending
    state = world.state()
    assert state["restartCount"] == 1 and state["lastState"]["terminated"]["exitCode"] == 255
    assert world.pod()["status"]["phase"] == "Running"


def test_a_reboot_asked_for_twice_happens_once(world: MachineWorld) -> None:
    machine = world.room.machines.get("node-0")
    assert machine is not None
    for _ in range(2):
        machine.request_reboot("r1", world.clock.now())
        world.idle()
    assert machine.state.boots == 2


def test_the_count_of_boots_survives_a_restart_of_this_process(world: MachineWorld) -> None:
    machine = world.room.machines.get("node-0")
    assert machine is not None
    machine.request_reboot("r1", world.clock.now())
    world.idle()
    boot = machine.state.boot_id
    world.restart()
    world.idle()
    again = world.room.machines.get("node-0")
    assert again is not None and again.state.boot_id == boot


def test_what_needs_a_boot_is_in_force_after_it(world: MachineWorld) -> None:
    machine = world.room.machines.get("node-0")
    assert machine is not None
    machine.set_kernel_arguments(("nosmt",))
    machine.set_os_image("quay.io/os:2")
    machine.set_unit(Unit("a.service", enabled=True))
    assert machine.state.kernel_arguments == () and machine.state.os_image == ""
    machine.request_reboot("r1", world.clock.now())
    world.idle()
    assert machine.state.kernel_arguments == ("nosmt",) and machine.state.os_image == "quay.io/os:2"
    assert machine.state.units["a.service"].active


def test_a_machine_without_power_is_unreachable_until_it_has_power(world: MachineWorld) -> None:
    machine = world.room.machines.get("node-0")
    assert machine is not None
    machine.power_off(world.clock.now())
    world.advance(120)
    assert machine.state.power is Power.OFF
    assert condition(world.get(NODE), "Ready")["status"] != "True"
    machine.power_on(world.clock.now())
    world.idle()
    assert condition(world.get(NODE), "Ready")["status"] == "True"


def test_the_root_tree_keeps_files_with_mode_and_owner(world: MachineWorld) -> None:
    machine = world.room.machines.get("node-0")
    assert machine is not None
    machine.root.write("/etc/motd", Entry(content=b"hello", mode=0o600, user="core"))
    assert list(machine.root.paths("/etc")) == ["/etc/motd"] and machine.root.read("/etc/motd") == Entry(
        content=b"hello", mode=0o600, user="core"
    )
    assert machine.root.remove("/etc") and machine.root.read("/etc/motd") is None
