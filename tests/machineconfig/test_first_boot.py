"""Machines that join: blank ones and installed ones, what their first boot does, and deaths in between."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.machineconfig.rendering import machine_config, pool
from tests.machineconfig.room import POOLS, ROLE, PoolWorld, dying_at_work
from tests.machineconfig.test_machines_updated import CONFIGS, host, reason, state, target, world

from syncline.base.clock import SystemClock
from syncline.cluster.machines.machine import Entry, MachineSpec
from syncline.cluster.machines.simulated import SimulatedMachine
from syncline.hosts.linuxhost import LinuxHost, LinuxHosts
from syncline.hosts.nodeservice import FIRST_BOOT, Service, install_service
from syncline.kube.objects import Obj, annotations_of
from syncline.machineconfig.agent.handler import HostHandler
from syncline.machineconfig.agent.hosts import Joining
from syncline.machineconfig.agent.provisioning.firstboot import FIPS_ENABLED, REBOOT_NOTE
from syncline.machineconfig.agent.steps import HostStep
from syncline.machineconfig.names import CURRENT, DESIRED, ENCAPSULATED, FIRST_PIVOT, INSTALLED, NODE_ANNOTATIONS
from syncline.rehearsal.seams import Killed

WORKER = "worker-0"
MOST_REQUESTS = 150
"""More than joining takes; who needs more goes round in circles."""


def with_arguments(*arguments: str, **spec: object) -> PoolWorld:
    """A cluster without workers whose pool asks for these."""
    one = world(0)
    first = target(one)
    config = machine_config("99-kernel", None)
    config["spec"] |= {"kernelArguments": list(arguments), **spec}
    one.send("POST", CONFIGS, config)
    one.driver.until(lambda: target(one) != first, limit_s=60)
    one.at_rest()
    return one


def join(one: PoolWorld, limit_s: float = 600) -> None:
    one.add_node(WORKER, "worker", born="")
    one.driver.until(lambda: state(one, WORKER) == "Done", limit_s=limit_s)


def notes(one: PoolWorld) -> dict[str, str]:
    return annotations_of(one.nodes()[WORKER])


def test_a_machine_with_the_boot_image_and_no_arguments_joins_without_a_reboot() -> None:
    one = world(0)
    join(one)
    have = notes(one)
    assert one.reboots() == {WORKER: 1}
    assert (have[CURRENT], have[DESIRED], have[FIRST_PIVOT]) == (target(one),) * 3
    assert not host(one).exists(ENCAPSULATED) and not host(one).exists(f"{ENCAPSULATED}.bak")
    assert not host(one).exists(NODE_ANNOTATIONS), "the node says it"
    assert json.loads(host(one).read(INSTALLED))["metadata"]["name"] == target(one), "kept for comparisons"


def test_kernel_arguments_take_a_reboot_before_the_machine_joins() -> None:
    one = with_arguments("audit=0", "quiet")
    join(one)
    assert host(one).machine.state.kernel_arguments == ("audit=0", "quiet")
    assert one.reboots() == {WORKER: 2}
    assert not host(one).exists(ENCAPSULATED) and host(one).exists(f"{ENCAPSULATED}.bak")
    assert not host(one).exists(REBOOT_NOTE)
    assert one.events("Reboot") == [f"Completing firstboot provisioning to {target(one)}"]


def test_extensions_and_another_kernel_come_with_the_first_boot() -> None:
    one = with_arguments(extensions=["usbguard"], kernelType="realtime")
    join(one)
    layers = host(one).machine.state.layers
    assert "usbguard" in layers.packages and "kernel-rt-core" in layers.packages and "kernel-core" in layers.removals
    assert one.reboots() == {WORKER: 2} and not one.events("OSUpdateStagedAgain")


def test_an_image_of_somebodys_own_is_pivoted_to_at_the_first_boot() -> None:
    one = with_arguments(osImageURL="quay.io/mine/os@sha256:7")
    join(one)
    assert host(one).machine.state.os_image == "quay.io/mine/os@sha256:7"
    assert one.reboots() == {WORKER: 2}


def test_a_machine_of_a_pool_with_fips_is_installed_with_it() -> None:
    one = PoolWorld({}, renders=True, machines=True)
    one.send("POST", CONFIGS, machine_config("99-fips", None) | {"spec": {"fips": True}})
    one.send("POST", POOLS, pool("worker"))
    one.driver.until(lambda: target(one) != "", limit_s=120)
    join(one)
    assert host(one).read(FIPS_ENABLED) == b"1\n" and one.reboots() == {WORKER: 1}


def blank(one: PoolWorld) -> SimulatedMachine:
    """A machine that no node is made for yet."""
    return one.machines.room.machines.add(MachineSpec(WORKER, labels={f"{ROLE}/worker": ""}))


def installed(one: PoolWorld, **changes: object) -> None:
    """As the config server and Ignition leave a machine that boots for the first time."""
    name = target(one)
    config: Obj = one.get(f"{CONFIGS}/{name}")
    spec = config["spec"] | {"config": {"ignition": {"version": "3.5.0"}}} | changes
    machine, said = blank(one), {CURRENT: name, DESIRED: name}
    machine.root.write(ENCAPSULATED, Entry(content=json.dumps({"metadata": {"name": name}, "spec": spec}).encode()))
    machine.root.write(NODE_ANNOTATIONS, Entry(content=json.dumps(said).encode()))


def test_what_cannot_be_done_at_the_first_boot_is_told_and_the_machine_does_not_join() -> None:
    one = world(0)
    installed(one, fips=True)
    one.add_node(WORKER, "worker", born="")
    one.driver.advance(30)
    assert state(one) == "Degraded" and CURRENT not in notes(one)
    assert reason(one).endswith("detected change to FIPS flag; refusing to modify FIPS on a running cluster")


def test_a_first_boot_that_cannot_be_read_says_which_file() -> None:
    one = world(0)
    blank(one).root.write(ENCAPSULATED, Entry(content=b"{"))
    one.add_node(WORKER, "worker", born="")
    one.driver.advance(30)
    assert reason(one).startswith("failed to parse MachineConfig: ")


def test_an_installed_machine_whose_disk_is_not_what_it_was_installed_with_says_so() -> None:
    """Its node says what it was to say, and the first look at the disk finds the files missing."""
    one = world(0)
    installed(one, osImageURL="")
    one.add_node(WORKER, "worker", born="")
    one.driver.advance(60)
    assert state(one) == "Degraded" and notes(one)[CURRENT] == target(one)
    assert one.events("OnDiskStateValidationFailed")


def test_a_node_that_works_is_not_rebooted_by_a_first_boot_that_nobody_finished() -> None:
    """Upstream puts the file away, too, and says so in its log."""
    one = world(1)
    before = one.reboots()
    left = {"metadata": {"name": target(one)}, "spec": {"osImageURL": "other", "kernelArguments": ["x"]}}
    host(one).machine.root.write(ENCAPSULATED, Entry(content=json.dumps(left).encode()))
    one.driver.advance(60)
    assert not host(one).exists(ENCAPSULATED) and host(one).exists(f"{ENCAPSULATED}.bak")
    assert one.reboots() == before and state(one) == "Done"
    assert one.events("FirstBootMissed")


def joined_once(one: PoolWorld, node: str) -> bool:
    """With one reboot, also after a death of its agent; says whether there was one."""
    died = False
    while True:
        try:
            one.driver.until(
                lambda: state(one, node) == "Done" and CURRENT in annotations_of(one.nodes()[node]), limit_s=900
            )
            one.driver.advance(30)
            break
        except Killed:
            died = True
            one.start_room()
    assert host(one, node).machine.state.kernel_arguments == ("audit=0",), node
    assert one.reboots()[node] == 2, node
    left = (ENCAPSULATED, NODE_ANNOTATIONS, REBOOT_NOTE)
    assert not any(host(one, node).exists(path) for path in left), node
    return died


def test_it_joins_with_one_reboot_whatever_request_the_agents_death_follows() -> None:
    one = with_arguments("audit=0")
    for after in range(1, MOST_REQUESTS):
        one.start_room(lambda inner, after=after: dying_at_work(inner, after))
        one.add_node(f"worker-{after}", "worker", born="")
        if not joined_once(one, f"worker-{after}"):
            assert after > 3
            return
    raise AssertionError(f"still writing after {MOST_REQUESTS} requests")


def test_it_joins_with_one_reboot_whatever_host_step_the_agents_death_follows(monkeypatch: pytest.MonkeyPatch) -> None:
    one, handle = with_arguments("audit=0"), HostHandler._do
    for after in range(1, 20):
        steps = iter(range(1, after + 1))

        def dying(self: HostHandler, action: HostStep, steps: Iterator[int] = steps, after: int = after) -> Any:
            done = handle(self, action)
            if next(steps, 0) == after:
                raise Killed(f"after {action.describe()}")
            return done

        monkeypatch.setattr(HostHandler, "_do", dying)
        one.add_node(f"worker-{after}", "worker", born="")
        if not joined_once(one, f"worker-{after}"):
            assert after > 10, "every step of joining had its death"
            return
    raise AssertionError("it never joined without a death")


def test_a_node_made_anew_says_what_its_disk_has() -> None:
    """Upstream: annotations that were lost come back from the disk."""
    one = world(1)
    before, name = one.reboots(), target(one)
    one.merge("/api/v1/nodes/worker-0", {"metadata": {"annotations": {CURRENT: None, DESIRED: None}}})
    one.driver.until(lambda: notes(one).get(CURRENT) == name and state(one) == "Done", limit_s=300)
    assert one.reboots() == before


def test_a_linux_machine_tells_what_its_install_left(tmp_path: Path) -> None:
    hosts = LinuxHosts("edge", LinuxHost(tmp_path, SystemClock()))

    def left(path: str, text: str) -> None:
        (tmp_path / path[1:]).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path[1:]).write_text(text)

    def joining() -> Joining:
        facts = hosts.facts("edge")
        assert facts is not None and not facts.blank, "a machine of somebody's own is never written over"
        return facts.joining

    assert joining() == Joining()
    left(NODE_ANNOTATIONS, json.dumps({CURRENT: "rendered-a", "odd": 1}))
    left(ENCAPSULATED, '{"metadata": {"name": "rendered-a"}}')
    left(REBOOT_NOTE, "boot-1\n")
    assert joining() == Joining({"metadata": {"name": "rendered-a"}}, {CURRENT: "rendered-a"}, "boot-1")
    left(NODE_ANNOTATIONS, "[]")
    assert joining().damage == "failed to unmarshal initial annotations: it is no JSON object"


def test_the_service_of_the_first_boot_is_enabled_with_the_agents_and_runs_before_the_kubelet(tmp_path: Path) -> None:
    (tmp_path / "etc/systemd/system").mkdir(parents=True)
    install_service(LinuxHost(tmp_path, SystemClock()), Service("/opt/my tools/syncline"), b"{}")
    units = tmp_path / "etc/systemd/system"
    text = (units / FIRST_BOOT).read_text()
    assert 'ExecStart="/opt/my tools/syncline" node-agent firstboot\n' in text
    assert f"ConditionPathExists=|{ENCAPSULATED}\nConditionPathExists=|{REBOOT_NOTE}\n" in text
    assert "Before=kubelet.service crio.service syncline-node-agent.service\n" in text
    assert (units / "multi-user.target.wants" / FIRST_BOOT).is_symlink()
