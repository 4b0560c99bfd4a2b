"""Disks of a config that running machines will never have: who takes them, who says so, and in which words."""

from __future__ import annotations

from typing import Any

import pytest
from tests.machineconfig.rendering import machine_config
from tests.machineconfig.room import POOLS, RECORDS, PoolWorld
from tests.machineconfig.test_machines_updated import CLUSTER, CONFIGS, state, target, world

from syncline.cli.views.pool import describe_node
from syncline.kube.objects import Obj, dig
from syncline.machineconfig.agent.files.jsondiff import differences
from syncline.machineconfig.agent.planning.irreconcilable import MOST_CHANGES, status_changes

FILESYSTEM = {"device": "/dev/disk/by-label/data", "format": "xfs", "path": "/var/lib/data"}


def disks(*filesystems: Obj) -> Obj:
    config = {"ignition": {"version": "3.4.0"}, "storage": {"filesystems": list(filesystems)}}
    return machine_config("99-disks", config)


def waiving(one: PoolWorld) -> None:
    """As a person who knows that only new machines will have it."""
    spec = {"irreconcilableValidationOverrides": {"storage": ["FileSystems"]}}
    body = {"apiVersion": "operator.openshift.io/v1", "kind": "MachineConfiguration", "metadata": {"name": "cluster"}}
    one.send("POST", CLUSTER, body | {"spec": spec | {"managementState": "Managed"}})
    one.driver.advance(30)


def reported(one: PoolWorld, node: str) -> Any:
    return dig(one.get(f"{RECORDS}/{node}"), "status", "irreconcilableChanges")


def test_a_config_for_new_machines_is_taken_without_a_reboot_and_running_ones_say_what_they_lack() -> None:
    one = world(1)
    waiving(one)
    before, first = one.reboots(), target(one)
    one.send("POST", CONFIGS, disks(FILESYSTEM))
    one.driver.until(lambda: target(one) != first and one.updated(target(one)), limit_s=600)
    assert one.reboots() == before
    [change] = reported(one, "worker-0")
    assert change["fieldPath"] == "spec.config.storage.filesystems"
    assert change["diff"].startswith('+ [{"device":"/dev/disk/by-label/data",')

    told = describe_node(
        one.nodes()["worker-0"], one.get(POOLS)["items"], one.get(f"{RECORDS}/worker-0"), one.clock.now()
    )
    assert "Never has:   spec.config.storage.filesystems: + [{" in told

    one.add_node("worker-9", "worker", born="")
    one.driver.until(lambda: state(one, "worker-9") == "Done", limit_s=300)
    assert reported(one, "worker-9") is None, "it was installed with them"

    one.send("DELETE", f"{CONFIGS}/99-disks")
    one.driver.until(lambda: target(one) == first and one.updated(first), limit_s=600)
    assert reported(one, "worker-0") is None
    assert [each["diff"][0] for each in reported(one, "worker-9")] == ["-"]


def test_without_the_waiver_no_pool_takes_it() -> None:
    one = world(1)
    first = target(one)
    one.send("POST", CONFIGS, disks(FILESYSTEM))
    one.driver.advance(60)
    assert target(one) == first and one.condition("RenderDegraded")["status"] == "True"
    assert reported(one, "worker-0") is None


def test_a_record_holds_only_so_much() -> None:
    changes = [{"fieldPath": f"spec.a[{at}]", "diff": "+ 1\n"} for at in range(MOST_CHANGES + 5)]
    assert status_changes(changes) == changes[:MOST_CHANGES]
    [long] = status_changes([{"fieldPath": "spec.a", "diff": "+ " + "x" * 5000 + "\n"}])
    assert len(long["diff"]) <= 4096 and long["diff"].endswith("…\n")


@pytest.mark.parametrize(
    ("old", "new", "text"),
    [
        ([1, 2, 3], [1, 3], "  1\n- 2\n  3\n"),
        ([], [1], "[\n+ 1\n]\n"),
        ([1], [], "[\n- 1\n]\n"),
        ({"a": 1}, {"a": True}, "- 1\n+ true\n"),
        ({"a": [1]}, {"a": {"b": 1}}, '- [1]\n+ {"b":1}\n'),
        ({"a": "<&>"}, {}, '- "\\u003c\\u0026\\u003e"\n'),
        ({"a": 1e21}, {"a": 1e20}, "- 1e+21\n+ 100000000000000000000\n"),
    ],
)
def test_differences_read_as_jd_writes_them(old: Any, new: Any, text: str) -> None:
    assert "".join(hunk.text for hunk in differences(old, new)) == text


@pytest.mark.parametrize(
    ("old", "new", "hunks"),
    [
        (
            [{"a": 1}, "x", [1, 2]],
            ["x", {"a": 2}, [2]],
            {(0,): '[\n- {"a":1}\n  "x"\n', (1,): '  "x"\n- [1,2]\n+ {"a":2}\n+ [2]\n]\n'},
        ),
        (
            ["a", "b", "c", "d"],
            ["b", "x", "d", "a"],
            {(0,): '[\n- "a"\n  "b"\n', (1,): '  "b"\n- "c"\n+ "x"\n  "d"\n', (3,): '  "d"\n+ "a"\n]\n'},
        ),
        ([1, {"a": 1}, 2], [3, {"a": 2}, 2], {(0,): '[\n- 1\n+ 3\n  {"a":1}\n', (1, "a"): "- 1\n+ 2\n"}),
        ([[1], [2]], [[1, 3], [2]], {(0, 1): "  1\n+ 3\n]\n"}),
        ({"a": [1, 1, 2]}, {"a": [1, 2, 1]}, {("a", 1): "  1\n+ 2\n  1\n", ("a", 3): "  1\n- 2\n]\n"}),
    ],
)
def test_elements_of_lists_are_paired_as_jd_pairs_them(old: Any, new: Any, hunks: Any) -> None:
    """Written by the library itself, beside which 60,000 random pairs of documents gave equal hunks."""
    assert {hunk.path: hunk.text for hunk in differences(old, new)} == hunks


def test_long_lists_without_a_common_element_are_compared_at_once() -> None:
    old, new = [list(range(start, start + 5000)) for start in (0, 10_000)]
    [hunk] = differences(old, new)
    assert (len(hunk.removed), len(hunk.added)) == (5000, 5000)
