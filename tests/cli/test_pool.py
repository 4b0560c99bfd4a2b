"""``syncline pool``: Holds by hand, and ``spec.paused`` where it is asked for."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.live import Served, served_cluster
from tests.scenes.pools import GROUP, POOL, _definition

from syncline.assembly.gitops import GitOpsSettings
from syncline.assembly.settings import ClusterSettings
from syncline.cli.access.connection import Connection
from syncline.cli.main import main
from syncline.kube.client import Request
from syncline.kube.objects import dig

HOLDS = "/apis/syncline.dev/v1alpha1/holds"


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("pool")
    with served_cluster(folder, ClusterSettings(), GitOpsSettings(folder / "mirrors")) as cluster:
        with Connection(str(cluster.kubeconfig)) as link:
            body = _definition("machineconfigpools", "MachineConfigPool")
            link.ask(Request("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", body=body))
            _until_served(link)
            made = {
                "apiVersion": f"{GROUP}/v1",
                "kind": "MachineConfigPool",
                "metadata": {"name": "worker"},
                "spec": {},
            }
            link.ask(Request("POST", POOL.rpartition("/")[0], body=made))
        yield cluster


def _until_served(link: Connection) -> None:
    path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    named = f"metadata.name=machineconfigpools.{GROUP}"
    for event in link.watch(Request("GET", path, {"watch": "1", "fieldSelector": named, "timeoutSeconds": "300"})):
        conditions = dig(event, "object", "status", "conditions", default=[])
        if any(one.get("type") == "Established" and one.get("status") == "True" for one in conditions):
            return
    raise AssertionError("the definition was not established in 300 s")


def ask(served: Served, path: str) -> Any:
    with Connection(str(served.kubeconfig)) as link:
        return link.ask(Request("GET", path))


def syncline(served: Served, *words: str) -> int:
    return main(["pool", *words, "--kubeconfig", str(served.kubeconfig)])


def test_a_pause_by_hand_is_a_hold_with_an_end(served: Served, capsys: pytest.CaptureFixture[str]) -> None:
    assert syncline(served, "pause", "worker", "--reason", "disks", "--for", "2h", "--owner", "Ann B") == 0
    assert "machineconfigpool/worker held by Ann B until" in capsys.readouterr().out
    (hold,) = ask(served, HOLDS)["items"]
    assert (hold["metadata"]["name"], hold["spec"]["pools"], hold["spec"]["reason"]) == (
        "worker-ann-b",
        ["worker"],
        "disks",
    )
    assert syncline(served, "pause", "worker", "--reason", "more disks", "--owner", "Ann B") == 0
    assert syncline(served, "pause", "worker", "--owner", "ben") == 0
    capsys.readouterr()
    assert syncline(served, "list", "-o", "json") == 0
    (row,) = json.loads(capsys.readouterr().out)
    assert [(hold["owner"], hold["reason"]) for hold in row["holds"]] == [
        ("Ann B", "more disks"),
        ("ben", "paused by hand"),
    ]
    assert syncline(served, "list") == 0
    assert "Ann B, ben" in capsys.readouterr().out
    assert syncline(served, "resume", "worker", "--owner", "ben") == 0
    assert "still held by Ann B (worker-ann-b)" in capsys.readouterr().out
    assert syncline(served, "resume", "worker", "--all") == 0
    assert ask(served, HOLDS)["items"] == []


def test_the_spec_itself_is_set_where_it_is_asked_for(served: Served, capsys: pytest.CaptureFixture[str]) -> None:
    assert syncline(served, "pause", "worker", "--spec") == 0
    assert ask(served, POOL)["spec"]["paused"] is True
    capsys.readouterr()
    assert syncline(served, "resume", "worker") == 0
    assert "spec.paused is set by syncline-pool: add --spec to clear it" in capsys.readouterr().out
    assert syncline(served, "resume", "worker", "--spec") == 0
    assert ask(served, POOL)["spec"]["paused"] is False


def test_what_makes_no_sense_is_refused(served: Served, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert syncline(served, "pause", "nobody") == 1
    assert "MachineConfigPool nobody does not exist" in capsys.readouterr().err
    assert syncline(served, "pause", "worker", "--for", "soon") == 2
    assert "--for soon" in capsys.readouterr().err
    assert syncline(served, "pause", "worker", "--for", "-1h") == 2


def test_pools_are_shown_with_what_is_known_of_them(served: Served, capsys: pytest.CaptureFixture[str]) -> None:
    assert syncline(served, "list") == 0
    header = capsys.readouterr().out.splitlines()[0].split("  ")
    named = [each.strip() for each in header if each.strip()]
    assert named == ["NAME", "CONFIG", "STATE", "UPDATED", "PAUSED", "HELD BY", "SINCE", "UNTIL", "REASON"]
    assert syncline(served, "get", "worker") == 0
    assert "Name:           worker" in capsys.readouterr().out
    assert syncline(served, "get", "worker", "-o", "json") == 0
    assert json.loads(capsys.readouterr().out)["nodes"] == []
    assert syncline(served, "history", "worker") == 0
    assert capsys.readouterr().out.startswith("CONFIG")
    assert syncline(served, "get", "nobody") != 0
    assert "MachineConfigPool nobody does not exist" in capsys.readouterr().err


def test_a_pool_is_explained_by_the_word_that_commands_use(served: Served, capsys: pytest.CaptureFixture[str]) -> None:
    main(["explain", "pool/worker", "--kubeconfig", str(served.kubeconfig)])
    assert capsys.readouterr().out.startswith("MachineConfigPool worker ")
