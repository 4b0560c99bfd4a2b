"""The agent on simulated machines: from machine configs that people apply to files, services and reboots."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from tests.machineconfig.rendering import files, machine_config, pool
from tests.machineconfig.room import APIS, NODES, POOLS, RECORDS, PoolWorld

from syncline.assembly.machines.simulatedhosts import SimulatedHost
from syncline.cluster.machines.machine import Entry, EntryKind
from syncline.kube.client import Request, Response, Transport
from syncline.kube.errors import InternalError
from syncline.kube.objects import Obj, annotations_of, dig
from syncline.machineconfig.agent.hosts import CURRENT_CONFIG, FORCE_FILE
from syncline.machineconfig.names import CURRENT, DESIRED, DESIRED_DRAIN, LAST_DRAIN, REASON, STATE

CONFIGS = f"{APIS}/machineconfigs"
CLUSTER = f"{APIS.replace('machineconfiguration', 'operator')}/machineconfigurations"


def world(workers: int = 2, **options: Any) -> PoolWorld:
    one = PoolWorld({}, renders=True, machines=True, **options)
    for name in ("master", "worker"):
        one.send("POST", POOLS, pool(name))
    one.driver.until(lambda: target(one) != "", limit_s=120)
    for index in range(workers):
        one.add_node(f"worker-{index}", "worker", born="")
    one.driver.until(lambda: one.updated(target(one)) and one.counts()[0] == workers, limit_s=300)
    return one


def target(one: PoolWorld) -> str:
    return str(dig(one.get(f"{POOLS}/worker"), "spec", "configuration", "name", default=""))


def host(one: PoolWorld, node: str = "worker-0") -> SimulatedHost:
    assert one.hosts is not None
    return one.hosts.host(node)


def apply(one: PoolWorld, config: Obj) -> str:
    first = target(one)
    one.send("POST", CONFIGS, config)
    one.driver.until(lambda: target(one) != first, limit_s=60)
    return target(one)


def want(one: PoolWorld, config: str, node: str = "worker-0") -> None:
    one.merge(f"{NODES}/{node}", {"metadata": {"annotations": {DESIRED: config}}})


def drained(one: PoolWorld, reached: Callable[[], bool], limit_s: float = 900) -> None:
    """Until ``reached``. A paused pool begins no drain, so a person has drained the node whenever it asks."""

    def asks() -> str:
        have = annotations_of(one.nodes()["worker-0"])
        wanted = have.get(DESIRED_DRAIN, "")
        return wanted if wanted.startswith("drain-") and wanted != have.get(LAST_DRAIN) else ""

    one.driver.until(lambda: reached() or bool(asks()), limit_s=limit_s)
    while not reached():
        one.merge(f"{NODES}/worker-0", {"metadata": {"annotations": {LAST_DRAIN: asks()}}})
        one.driver.until(lambda: reached() or bool(asks()), limit_s=limit_s)


def reason(one: PoolWorld, node: str = "worker-0") -> str:
    return annotations_of(one.nodes()[node]).get(REASON, "")


def state(one: PoolWorld, node: str = "worker-0") -> str:
    return annotations_of(one.nodes()[node]).get(STATE, "")


def test_a_machine_that_joins_has_the_files_of_its_pool() -> None:
    one = world(1)
    have = annotations_of(one.nodes()["worker-0"])
    assert (have[CURRENT], have[DESIRED], have[STATE]) == (target(one), target(one), "Done")
    assert host(one).exists("/etc/machine-config-daemon/currentconfig")
    assert one.reboots() == {"worker-0": 1}, "born with it, not brought to it"
    assert one.get(f"{RECORDS}/worker-0")["spec"]["configVersion"] == {"desired": target(one)}


def test_a_file_is_written_its_machine_reboots_once_and_its_record_tells_every_phase() -> None:
    one = world(2)
    before = one.reboots()
    config = apply(one, machine_config("99-motd", files(("/etc/motd", "hello"))))
    one.until_updated(config)
    for node in ("worker-0", "worker-1"):
        assert host(one, node).read("/etc/motd") == b"hello"
        assert one.reboots()[node] - before[node] == 1
        record = one.get(f"{RECORDS}/{node}")
        told = {each["type"]: each["status"] for each in record["status"]["conditions"]}
        assert told["Updated"] == "True" and told["NodeDegraded"] == "False"
        assert record["status"]["configVersion"] == {"current": config, "desired": config}


def test_a_config_taken_back_takes_its_file_back() -> None:
    one = world(1)
    first = target(one)
    one.until_updated(apply(one, machine_config("99-extra", files(("/etc/extra", "x")))))
    assert host(one).exists("/etc/extra")
    one.send("DELETE", f"{CONFIGS}/99-extra")
    one.driver.until(lambda: target(one) == first, limit_s=60)
    one.until_updated(first)
    assert not host(one).exists("/etc/extra")


def test_kernel_arguments_are_in_force_after_the_reboot() -> None:
    one = world(1)
    config = machine_config("99-kernel", None)
    config["spec"]["kernelArguments"] = ["audit=0", "quiet"]
    one.until_updated(apply(one, config))
    assert host(one).machine.state.kernel_arguments == ("audit=0", "quiet")


def test_a_file_that_a_policy_covers_costs_no_reboot() -> None:
    """Reference machine-config 4: keys of core are taken over without a drain, a reboot, or a service."""
    one = world(1)
    before = one.reboots()
    users = {"passwd": {"users": [{"name": "core", "sshAuthorizedKeys": ["ssh-ed25519 AAAA me"]}]}}
    one.until_updated(apply(one, machine_config("99-ssh", {"ignition": {"version": "3.4.0"}} | users)))
    assert one.reboots() == before
    assert "ssh-ed25519 AAAA me" in host(one).read("/home/core/.ssh/authorized_keys.d/ignition").decode()
    assert one.events("SkipReboot") and not one.events("Reboot")


def test_drift_is_told_within_the_minute_and_healed_by_whoever_made_it() -> None:
    one = world(1)
    config = apply(one, machine_config("99-motd", files(("/etc/motd", "hello"))))
    one.until_updated(config)
    mine = host(one).machine.root.read("/etc/motd")
    assert mine is not None
    host(one).machine.root.write("/etc/motd", Entry(EntryKind.FILE, b"edited"))
    one.driver.advance(60)
    assert state(one) == "Degraded"
    assert "/etc/motd" in annotations_of(one.nodes()["worker-0"])[REASON]
    assert one.events("ConfigDriftDetected")
    host(one).machine.root.write("/etc/motd", mine)
    one.driver.advance(60)
    assert state(one) == "Done"


@pytest.mark.parametrize("content", [b"", b"garbage", b"[]", b"{}", b'{"metadata": 1}', b'{"metadata": {"name": "a"}}'])
def test_a_note_on_the_disk_that_nobody_can_read_is_told_with_the_way_out(content: bytes) -> None:
    one = world(1)
    root, before = host(one).machine.root, target(one)
    root.write(CURRENT_CONFIG, Entry(content=content))
    one.driver.until(lambda: state(one) == "Degraded", limit_s=60)
    assert reason(one).startswith(f"read {CURRENT_CONFIG}: damaged (") and "remove it" in reason(one)
    root.remove(CURRENT_CONFIG)
    one.driver.until(lambda: state(one) == "Done", limit_s=300)
    assert json.loads(host(one).read(CURRENT_CONFIG))["metadata"]["name"] == before


class Refusing:
    """Takes no notes of nodes until it is healed."""

    def __init__(self, inner: Transport) -> None:
        self._inner, self.refused, self.healed = inner, 0, False

    def send(self, request: Request) -> Response:
        if request.method == "PATCH" and f"{NODES}/" in request.path and not self.healed:
            self.refused += 1
            return Response.refused(InternalError("the disk of the API is full (injected)"))
        return self._inner.send(request)


def test_drift_that_the_server_did_not_take_is_told_once_it_does() -> None:
    one = world(1)
    one.until_updated(apply(one, machine_config("99-motd", files(("/etc/motd", "hello")))))
    api: list[Refusing] = []
    one.start_room(lambda inner: api.append(Refusing(inner)) or api[0])  # type: ignore[func-returns-value]
    one.driver.advance(60)
    host(one).machine.root.write("/etc/motd", Entry(content=b"edited"))
    one.driver.advance(60)
    assert api[0].refused and state(one) == "Done"
    api[0].healed = True
    one.driver.until(lambda: state(one) == "Degraded", limit_s=300)
    assert "/etc/motd" in reason(one)


def test_what_cannot_be_brought_to_a_running_machine_is_refused_and_changes_nothing() -> None:
    """Its pool would have refused it, too: somebody else makes the node want it."""
    one = world(1)
    first = target(one)
    one.merge(f"{POOLS}/worker", {"spec": {"paused": True}})
    disks = {"ignition": {"version": "3.4.0"}, "storage": {"disks": [{"device": "/dev/sdb", "wipeTable": True}]}}
    one.send("POST", CONFIGS, machine_config("rendered-worker-other", disks, role="nobody"))
    want(one, "rendered-worker-other")
    one.driver.advance(120)
    assert state(one) == "Unreconcilable"
    assert "ignition disks section contains changes" in reason(one)
    want(one, first)
    one.driver.until(lambda: state(one) == "Done", limit_s=600)
    assert one.reboots() == {"worker-0": 1} and reason(one) == ""


def test_a_file_where_a_directory_stands_is_tried_ever_more_rarely_and_taken_back_without_a_trace() -> None:
    """Neither what the agent notes of each attempt nor what it puts back is a reason for the next one."""
    one = world(1)
    first = target(one)
    apply(one, machine_config("99-etc", files(("/etc", "x"))))
    one.driver.advance(120)
    assert state(one) == "Degraded" and "file exists" in reason(one)
    before = int(one.get(NODES)["metadata"]["resourceVersion"])
    one.driver.advance(600)
    assert int(one.get(NODES)["metadata"]["resourceVersion"]) - before < 100
    one.send("DELETE", f"{CONFIGS}/99-etc")
    one.merge(f"{NODES}/worker-0", {"spec": {"unschedulable": None}})
    one.driver.until(lambda: one.updated(first), limit_s=300)
    assert host(one).stat("/etc") is not None and state(one) == "Done" and reason(one) == ""


def test_068_a_target_that_does_not_exist_is_told_and_taken_up_when_it_comes() -> None:
    one = world(1)
    one.merge(f"{POOLS}/worker", {"spec": {"paused": True}})
    want(one, "rendered-worker-late")
    one.driver.advance(60)
    assert state(one) == "Degraded" and '"rendered-worker-late" not found' in reason(one)
    one.send(
        "POST",
        CONFIGS,
        machine_config("rendered-worker-late", files(("/etc/late", "x")), role="nobody", osImageURL="x"),
    )
    drained(one, lambda: state(one) == "Done", limit_s=600)
    assert host(one).exists("/etc/late")


def test_the_file_that_forces_rewrites_a_drifted_disk_and_reboots() -> None:
    """Reference machine-config 4.2: whoever made it asks for no check, everything again, and a reboot."""
    one = world(1)
    config = apply(one, machine_config("99-motd", files(("/etc/motd", "hello"))))
    one.until_updated(config)
    before = one.reboots()
    root = host(one).machine.root
    root.write("/etc/motd", Entry(EntryKind.FILE, b"edited"))
    root.write(FORCE_FILE, Entry(EntryKind.FILE, b""))
    one.driver.until(lambda: one.reboots() != before and state(one) == "Done", limit_s=1200)
    assert host(one).read("/etc/motd") == b"hello" and not host(one).exists(FORCE_FILE)
