"""``syncline node``: simulated machines of a running cluster."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.live import Served, served_cluster

from syncline.assembly.settings import ClusterSettings
from syncline.cli.main import main
from syncline.cluster.machines.kubelet.power import POWER, REBOOT
from syncline.kube.client import Request
from syncline.kube.objects import Obj, annotations_of
from syncline.kube.transport.http import BlockingClient
from syncline.kube.transport.kubeconfig import load_kubeconfig


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served_cluster(tmp_path_factory.mktemp("node"), ClusterSettings(nodes=1)) as cluster:
        yield cluster


def syncline(served: Served, *words: str) -> int:
    return main(["node", *words, "--kubeconfig", str(served.kubeconfig)])


def found(served: Served, name: str) -> Obj | None:
    client = BlockingClient(load_kubeconfig(str(served.kubeconfig)))
    answer = client.send(Request("GET", f"/api/v1/nodes/{name}"))
    return None if answer.status == 404 else answer.or_raise()


def test_a_node_is_added_with_what_the_flags_say_and_removed(
    served: Served, capsys: pytest.CaptureFixture[str]
) -> None:
    flags = ["--label", "role=edge", "--taint", "kept=free:NoSchedule", "--zone", "a", "--cpu", "2", "--arch", "arm64"]
    assert syncline(served, "add", "edge", *flags) == 0
    node = found(served, "edge")
    assert node is not None
    labels = node["metadata"]["labels"]
    assert (labels["role"], labels["topology.kubernetes.io/zone"], labels["kubernetes.io/arch"]) == (
        "edge",
        "a",
        "arm64",
    )
    assert {"key": "kept", "value": "free", "effect": "NoSchedule"} in node["spec"]["taints"]
    assert syncline(served, "remove", "edge") == 0
    assert found(served, "edge") is None
    assert capsys.readouterr().out == "node/edge added\nnode/edge removed\n"


def test_power_and_reboots_are_asked_for_by_annotations(served: Served, capsys: pytest.CaptureFixture[str]) -> None:
    assert syncline(served, "add", "weak") == 0
    assert syncline(served, "reboot", "weak") == 0
    assert syncline(served, "fail", "weak") == 0
    node = found(served, "weak")
    assert node is not None and annotations_of(node)[POWER] == "off" and annotations_of(node)[REBOOT]
    assert syncline(served, "recover", "weak") == 0
    assert syncline(served, "recover", "weak") == 0
    said = capsys.readouterr().out
    assert "node/weak has power already" in said and "syncline node recover weak" in said
    node = found(served, "weak")
    assert node is not None and annotations_of(node)[POWER] == "on"


@pytest.mark.parametrize(
    ("words", "said", "code"),
    [
        (("add", "n", "--taint", "a=b"), "write KEY[=VALUE]:EFFECT", 2),
        (("add", "n", "--label", "a"), "write KEY=VALUE", 2),
        (("add", "n", "--cpu", "much"), "--cpu much", 2),
        (("add", "node-1"), 'nodes "node-1" already exists', 1),
        (("remove", "nobody"), "node nobody does not exist; `syncline node list` shows those that do", 1),
    ],
)
def test_what_cannot_be_done_is_one_clear_line(
    served: Served, capsys: pytest.CaptureFixture[str], words: tuple[str, ...], said: str, code: int
) -> None:
    assert syncline(served, *words) == code
    error = capsys.readouterr().err
    assert said in error and error.count("\n") == 1


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["apiserver", "--controllers", "deployment,no"], "--controllers deployment,no: 'no' is none; give all, none"),
        (["apiserver", "--no-tls", "--run-commands=sandboxed"], "--run-commands needs TLS"),
        (["apiserver", "--nodes", "-1"], "-1 is not in the range"),
        (["up", "--memory", "--data", "x"], "give --data or --memory, not both"),
        (["up", "--memory", "--zones", "a,,b"], "--zones a,,b: a zone has a name"),
    ],
)
def test_a_cluster_that_cannot_be_is_refused_before_it_starts(
    words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(words) == 2
    assert said in capsys.readouterr().err


def test_nodes_are_listed_with_what_they_are(served: Served, capsys: pytest.CaptureFixture[str]) -> None:
    assert syncline(served, "list") == 0
    header, row, *_ = capsys.readouterr().out.splitlines()
    assert header.split() == ["NAME", "STATUS", "ROLES", "POOL", "STATE", "CONFIG", "AGE"]
    assert row.split()[:5] == ["node-1", "Ready", "-", "-", "-"]
    assert syncline(served, "get", "node-1") == 0
    assert "Name:        node-1" in capsys.readouterr().out
    assert syncline(served, "get", "nobody") != 0
    assert "node nobody does not exist" in capsys.readouterr().err
