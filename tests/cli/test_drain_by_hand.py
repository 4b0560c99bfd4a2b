"""``syncline node drain``, ``syncline pool wait``: nothing begins that cannot end; a wait says for whom."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from tests.assembly.test_destinations_live import ask, until
from tests.live import Served, served_cluster

from syncline.assembly.settings import ClusterSettings
from syncline.cli.frame.failure import CommandFailed
from syncline.cli.machines.pool import outstanding
from syncline.cli.main import main
from syncline.kube.objects import Obj
from syncline.machineconfig.names import DESIRED_DRAIN

PODS = "/api/v1/namespaces/default/pods"
BUDGETS = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"
NODE = "/api/v1/nodes/node-1"
QUICK = {"syncline.dev/pull-seconds": "0", "syncline.dev/start-seconds": "0", "syncline.dev/stop-seconds": "0"}


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served_cluster(tmp_path_factory.mktemp("drain"), ClusterSettings(nodes=1)) as cluster:
        template = {
            "metadata": {"labels": {"app": "web"}, "annotations": QUICK},
            "spec": {"containers": [{"name": "web", "image": "web:1"}]},
        }
        spec = {"replicas": 1, "selector": {"matchLabels": {"app": "web"}}, "template": template}
        made = {"metadata": {"name": "web"}, "spec": spec}
        ask(cluster, "POST", "/apis/apps/v1/namespaces/default/deployments", made)
        budget = {"minAvailable": 1, "selector": {"matchLabels": {"app": "web"}}}
        ask(cluster, "POST", BUDGETS, {"metadata": {"name": "web"}, "spec": budget})
        until(lambda: [one["status"]["phase"] for one in placed(cluster)], ["Running"])
        yield cluster


def run(served: Served, capsys: pytest.CaptureFixture[str], *words: str, code: int = 0) -> str:
    capsys.readouterr()
    ended = main(["node", *words, "--kubeconfig", str(served.kubeconfig)])
    out, err = capsys.readouterr()
    assert ended == code, out + err
    return out + err


def cordoned(served: Served) -> bool:
    return bool(ask(served, "GET", NODE)["spec"].get("unschedulable"))


def placed(served: Served) -> list[Any]:
    found: list[Any] = ask(served, "GET", PODS)["items"]
    return [one for one in found if one["spec"].get("nodeName")]


def test_a_drain_that_cannot_finish_does_not_begin(served: Served, capsys: pytest.CaptureFixture[str]) -> None:
    said = run(served, capsys, "drain", "node-1", code=3)
    assert "the drain of node node-1 cannot finish, so it is not cordoned" in said
    assert "is refused by budget " in said and "would help: " in said and "--insist" in said
    assert not cordoned(served)
    said = run(served, capsys, "drain", "node-1", "--insist", "--timeout", "1", code=3)
    assert "timed out after 1 s: node node-1 is cordoned, and still there are default/web-" in said
    assert "disruption budget" in said and cordoned(served)
    assert run(served, capsys, "uncordon", "node-1") == "node/node-1 uncordoned\n"
    assert run(served, capsys, "uncordon", "node-1") == "node/node-1 already uncordoned\n"


def test_a_drain_leaves_the_node_to_its_pool_while_that_drains_it(
    served: Served, capsys: pytest.CaptureFixture[str]
) -> None:
    before: Obj = ask(served, "GET", NODE)
    noted = before | {"metadata": before["metadata"] | {"annotations": {DESIRED_DRAIN: "drain-rendered-worker-1"}}}
    ask(served, "PUT", NODE, noted)
    for verb in ("drain", "cordon", "uncordon"):
        assert "is updated by its pool" in run(served, capsys, verb, "node-1", code=3)
    now: Obj = ask(served, "GET", NODE)
    ask(served, "PUT", NODE, now | {"metadata": now["metadata"] | {"annotations": {}}})


def test_a_drain_evicts_what_a_controller_replaces(served: Served, capsys: pytest.CaptureFixture[str]) -> None:
    ask(served, "DELETE", f"{BUDGETS}/web")
    (name,) = [one["metadata"]["name"] for one in placed(served)]
    dry = json.loads(run(served, capsys, "drain", "node-1", "--dry-run", "-o", "json"))
    assert dry["evicted"] == [f"default/{name}"] and dry["cordoned"] and not cordoned(served)
    done = json.loads(run(served, capsys, "drain", "node-1", "--timeout", "300", "-o", "json"))
    assert done == dry | {"dryRun": False} and placed(served) == []


def pool(updated: str, *, degraded: str = "False", reached: str = "new") -> tuple[dict[str, Any], Obj]:
    failing = {"type": "Degraded", "status": degraded, "message": "n1: disk"}
    conditions = [{"type": "Updated", "status": updated}, failing]
    row = {
        "name": "worker",
        "paused": True,
        "configuration": {"wanted": "new", "reached": reached},
        "machines": {"updated": 1, "total": 3},
        "holds": [{"owner": "ops", "expiresAt": "2026-05-01T06:00:00Z", "reason": "night"}],
    }
    return row, {"status": {"conditions": conditions}}


def test_a_wait_for_a_pool_says_who_stops_it() -> None:
    assert outstanding(*pool("True")) == ""
    assert outstanding(*pool("True", reached="old")) == outstanding(*pool("False"))
    assert outstanding(*pool("False")) == (
        "1 of 3 nodes have new; held by ops until 2026-05-01T06:00:00Z (night); paused by spec.paused"
    )
    with pytest.raises(CommandFailed, match="machineconfigpool/worker is degraded: n1: disk"):
        outstanding(*pool("True", degraded="True"))
