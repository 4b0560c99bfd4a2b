"""What no machine can be given is refused with its field before anything is cordoned or written."""

from __future__ import annotations

import base64
import gzip
from typing import Any

import pytest
from tests.machineconfig.rendering import files, machine_config
from tests.machineconfig.test_machines_updated import apply, host, reason, state, world

from syncline.kube.objects import Obj, annotations_of, dig
from syncline.machineconfig.agent.host import MAX_FILE
from syncline.machineconfig.agent.planning.impossible import impossible
from syncline.machineconfig.names import DESIRED_DRAIN

SERVICE = "[Service]\nExecStart=/bin/true\n"


def unit(name: str, **fields: Any) -> Obj:
    return {"systemd": {"units": [{"name": name} | fields]}}


def dropin(name: str) -> Obj:
    return unit("a.service", dropins=[{"name": name, "contents": SERVICE}])


def file(path: str = "/etc/a", **fields: Any) -> Obj:
    return {"storage": {"files": [{"path": path} | fields]}}


def packed(size: int) -> Obj:
    source = "data:;base64," + base64.b64encode(gzip.compress(bytes(size), mtime=0)).decode()
    return file(contents={"source": source, "compression": "gzip"})


def told(ignition: Obj) -> str:
    config = {"metadata": {"name": "a"}, "spec": {"config": {"ignition": {"version": "3.5.0"}} | ignition}}
    return impossible(config)


@pytest.mark.parametrize(
    ("ignition", "why"),
    [
        (unit("../a.service", contents=SERVICE), "systemd.units[0].name: found '../a.service'"),
        (unit("/etc/a.service"), "systemd.units[0].name: found '/etc/a.service'"),
        (unit("a b.service"), "systemd.units[0].name: found 'a b.service'"),
        (unit("a\n.service"), "systemd.units[0].name: found 'a\\n.service'"),
        (unit("a" * 256 + ".service"), "systemd.units[0].name: found 'aaa"),
        (dropin("../../a.conf"), "systemd.units[0].dropins[0].name: found '../../a.conf'"),
        (dropin("a\0.conf"), "systemd.units[0].dropins[0].name: found 'a\\x00.conf'"),
        (file("/"), "storage.files[0].path: found '/'"),
        (file("/etc/a\0"), "storage.files[0].path: found '/etc/a\\x00'"),
        (file("/dev/null"), "storage.files[0].path: found '/dev/null'"),
        (file("/proc/sysrq-trigger"), "storage.files[0].path: found '/proc/sysrq-trigger'"),
        (file("/sys"), "storage.files[0].path: found '/sys'"),
        (file(user={"id": -1}), "storage.files[0].user.id: found -1"),
        (file(group={"id": 1 << 32}), "storage.files[0].group.id: found 4294967296"),
        (packed(MAX_FILE + 1), "storage.files[0].contents: /etc/a has more than 64 MiB"),
    ],
)
def test_the_field_and_what_stands_there_are_told(ignition: Obj, why: str) -> None:
    assert told(ignition).startswith(f"spec.config.{why}")


@pytest.mark.parametrize(
    "ignition",
    [
        {},
        unit("-.mount"),
        unit("a@b-c.service", dropins=[{"name": "10-a b.conf"}]),
        unit(r"dev-disk-by\x2dlabel-a.swap"),
        file("/devices/a"),
        file("/etc/a b\n"),
        file(user={"id": 0}, group={"id": (1 << 32) - 2}),
        file(contents={"source": "no data", "compression": "gzip"}),
        packed(1 << 20),
    ],
)
def test_what_is_odd_and_works_passes(ignition: Obj) -> None:
    assert told(ignition) == ""


def test_what_nobody_can_read_is_told_by_others() -> None:
    assert impossible({"metadata": {"name": "a"}, "spec": {"config": 1}}) == ""


@pytest.mark.parametrize(
    ("name", "ignition"),
    [("a unit", unit("../a.service", contents=SERVICE)), ("a file", files(("/etc/a\0", "x")))],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_node_that_is_asked_for_it_is_not_cordoned_and_says_why(name: str, ignition: Obj) -> None:
    one = world(1)
    before = sorted(host(one).machine.root.paths("/"))
    apply(one, machine_config("99-odd", {"ignition": {"version": "3.4.0"}} | ignition))
    one.driver.until(lambda: state(one) == "Unreconcilable", limit_s=120)
    assert "spec.config." in reason(one) and f"found '{'../a' if name == 'a unit' else '/etc/a'}" in reason(one)
    node = one.nodes()["worker-0"]
    assert not dig(node, "spec", "unschedulable") and not annotations_of(node)[DESIRED_DRAIN].startswith("drain-")
    assert sorted(host(one).machine.root.paths("/")) == before
