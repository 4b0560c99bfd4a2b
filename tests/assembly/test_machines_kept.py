"""Machines of a served cluster: zones in turn, and the same machines after a restart on the same data."""

from __future__ import annotations

import asyncio
import itertools
from pathlib import Path

import pytest
from tests.live import Served, served_cluster

from syncline.assembly.machines.virtual import node_specs
from syncline.assembly.settings import ClusterSettings
from syncline.base.clock import SystemClock
from syncline.cli.main import main
from syncline.cluster.machines.machine import Entry
from syncline.cluster.machines.simulated import SimulatedMachine
from syncline.kube.client import Request
from syncline.kube.objects import Obj, labels_of
from syncline.kube.transport.http import BlockingClient
from syncline.kube.transport.kubeconfig import load_kubeconfig

NODES = "/api/v1/nodes"


def test_zones_are_given_out_in_turn() -> None:
    specs = node_specs(5, ("a", "b", "c"), {"role": "edge"})
    assert [spec.zone for spec in specs] == list(itertools.islice(itertools.cycle("abc"), 5))
    assert [spec.name for spec in specs] == [f"node-{number}" for number in range(1, 6)]
    assert all(spec.labels == {"role": "edge"} for spec in specs)
    assert [spec.zone for spec in node_specs(2)] == ["", ""]


@pytest.mark.parametrize(
    ("flags", "problem"),
    [
        (["--zones", "a,,b"], "a zone has a name"),
        (["--zones", "a,b c"], "a valid label must be"),
        (["--label", "role"], "write KEY=VALUE"),
        (["--label", "a/b/c=d"], "a valid label key must consist of"),
    ],
)
def test_zones_and_labels_that_no_node_may_have_are_refused(
    flags: list[str], problem: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["up", "--memory", *flags]) == 2
    assert problem in capsys.readouterr().err


def nodes_of(served: Served) -> list[Obj]:
    """Once both tell their boot: within one watch."""
    client = BlockingClient(load_kubeconfig(str(served.kubeconfig)))
    for _ in client.watch(Request("GET", NODES, query={"watch": "1", "timeoutSeconds": "300"})):
        found: list[Obj] = client.send(Request("GET", NODES)).or_raise()["items"]
        if len(found) == 2 and all(each.get("status", {}).get("nodeInfo", {}).get("bootID") for each in found):
            return found
    raise AssertionError("the nodes did not register")


def machine_of(served: Served, name: str) -> SimulatedMachine:
    machine = served.cluster.machines.room.machines.get(name)
    assert machine is not None
    return machine


async def _break(machine: SimulatedMachine) -> None:
    machine.root.write("/etc/motd", Entry(content=b"hi", mode=0o600))
    machine.fail(SystemClock().now())


def test_a_restart_on_the_same_data_finds_the_same_machines(tmp_path: Path) -> None:
    settings = ClusterSettings(data=tmp_path / "data", nodes=2, zones=("a", "b"), simulated_storage=True)
    with served_cluster(tmp_path, settings) as served:
        nodes = nodes_of(served)
        assert [labels_of(each)["topology.kubernetes.io/zone"] for each in nodes] == ["a", "b"]
        machine = machine_of(served, "node-2")
        asyncio.run_coroutine_threadsafe(_break(machine), served.loop).result(300)
        state = machine.state
        boots = [each["status"]["nodeInfo"]["bootID"] for each in nodes]
    with served_cluster(tmp_path, settings) as served:
        client = BlockingClient(load_kubeconfig(str(served.kubeconfig)))
        classes = client.send(Request("GET", "/apis/storage.k8s.io/v1/storageclasses")).or_raise()["items"]
        assert [each["provisioner"] for each in classes] == ["syncline.dev/simulated"]
        assert machine_of(served, "node-2").state == state
        assert machine_of(served, "node-2").root.read("/etc/motd") == Entry(content=b"hi", mode=0o600)
        assert [each["status"]["nodeInfo"]["bootID"] for each in nodes_of(served)] == boots
