"""The commands of a fleet over HTTP, against one embedded hub with its controllers."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.cli.commanding import Shell
from tests.cli.fleethub import bound_set, placement
from tests.cli.test_completing import offered
from tests.fleet.hub.hubs import BOOTSTRAP, csr
from tests.fleet.test_pull_controllers import application
from tests.fleet.test_pull_whole import pulled_set
from tests.fleet.world import config_map, managed_cluster, manifest_work
from tests.live import Served, served_cluster

from syncline.assembly.fleet.hub import HubSettings
from syncline.assembly.settings import ClusterSettings
from syncline.cli.access.connection import Connection
from syncline.kube.client import Request

CSRS = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
CLUSTERS = "/apis/cluster.open-cluster-management.io/v1/managedclusters"


@pytest.fixture(scope="module")
def hub(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served_cluster(tmp_path_factory.mktemp("hub"), ClusterSettings(nodes=0), hub=HubSettings()) as found:
        yield found


@pytest.fixture
def shell(hub: Served, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Shell:
    monkeypatch.setenv("KUBECONFIG", str(hub.kubeconfig))
    return Shell(capsys, [])


def ask_to_join(hub: Served, name: str, request: str, *, first: bool = True) -> None:
    """What an agent does with the credentials that agents join with."""
    headers = {"impersonate-user": BOOTSTRAP.name}
    with Connection(str(hub.kubeconfig)) as link:
        if first:
            link.ask(Request("POST", CLUSTERS, headers=headers, body=managed_cluster(name, accepted=False)))
        link.ask(Request("POST", CSRS, headers=headers, body=csr(name, request)))


def test_a_cluster_is_accepted_denied_and_detached(hub: Served, shell: Shell) -> None:
    ask_to_join(hub, "c1", "c1-r1")
    assert "to be accepted: syncline cluster accept c1" in shell("fleet")
    said = shell("cluster", "accept", "c1")
    assert "certificatesigningrequest/c1-r1 approved: agent a1, asked by system:serviceaccount:" in said
    assert "managedcluster/c1 accepted\nnext: the hub makes namespace c1" in said
    assert "managedcluster/c1 was accepted before\nnext: no request of its agent is pending" in shell(
        "cluster", "accept", "c1"
    )
    assert [one["stage"] for one in shell.json("fleet", "c1")] == ["accepted"]
    (row,) = [one for one in shell.json("cluster", "list") if one["name"] == "c1"]
    assert row["joined"] == "accepted", "registered, too, as soon as the pull model has made its Secret"
    assert "State:         accepted" in shell("cluster", "get", "c1")
    ask_to_join(hub, "c1", "c1-r2", first=False)
    said = shell("cluster", "deny", "c1")
    assert "certificatesigningrequest/c1-r2 denied\nmanagedcluster/c1 denied\n" in said
    said = shell("cluster", "detach", "c1", "--yes")
    assert "managedcluster/c1: works: 0, of which 0 leave their objects behind; add-ons: 0\n" in said


def test_all_that_wait_are_shown_before_they_are_accepted(hub: Served, shell: Shell) -> None:
    for name in ("w1", "w2"):
        ask_to_join(hub, name, f"{name}-r1")
    ask_to_join(hub, "w2", "w2-r2", first=False)
    said = shell("cluster", "accept", "--all-pending", code=2)
    assert "would be approved" in said and "nothing was accepted: add --yes, or name the clusters" in said
    said = shell("cluster", "accept", "--all-pending", "--yes", code=1)
    assert "managedcluster/w1 accepted" in said
    assert "managedcluster/w2 not accepted: 2 requests with different keys ask for its name" in said
    assert "managedcluster/w2 accepted" in shell("cluster", "accept", "w2", "--request", "w2-r2")


def test_a_name_that_is_not_there_is_answered_with_a_similar_one(hub: Served, shell: Shell) -> None:
    ask_to_join(hub, "spelling", "s-r1")
    for words in (("cluster", "deny", "speling"), ("cluster", "detach", "speling"), ("cluster", "accept", "speling")):
        assert "ManagedCluster speling does not exist" in shell(*words, code=20)
    assert "Did you mean 'spelling'?" in shell("fleet", "speling", code=1)
    assert offered("cluster", "accept", "spell") == ["spelling"]


def test_placements_are_planned_applied_and_explained(hub: Served, shell: Shell, tmp_path: Path) -> None:
    ask_to_join(hub, "p1", "p1-r1")
    ask_to_join(hub, "p2", "p2-r1")
    tolerated = {"key": "cluster.open-cluster-management.io/unreachable", "operator": "Exists"}
    binding = [one for one in bound_set("global") if one["kind"] == "ManagedClusterSetBinding"]
    named = [
        {
            "requiredClusterSelector": {
                "celSelector": {"celExpressions": ["managedCluster.metadata.name.startsWith('p')"]}
            }
        }
    ]
    wanted = placement("pl", numberOfClusters=1, tolerations=[tolerated], predicates=named)
    file = tmp_path / "placement.yaml"
    file.write_text(yaml.safe_dump_all([*binding, wanted]), encoding="utf-8")
    said = shell("placement", "plan", "-f", str(file), code=2)
    assert "  + p1  score 100\n\nPlan: 1 to come\n" in said
    wrong = tmp_path / "wrong.yaml"
    wrong.write_text(yaml.safe_dump(placement("pl", numberOfClusters="x")), encoding="utf-8")
    assert "the hub would refuse Placement pl" in shell("placement", "plan", "-f", str(wrong), code=4)
    assert "Placement default/pl does not exist" in shell("placement", "explain", "pl", code=1)
    assert shell("placement", "list", "-o", "name") == ""


def test_works_are_listed_and_explained_with_their_cluster(hub: Served, shell: Shell) -> None:
    ask_to_join(hub, "x1", "x1-r1")
    shell("cluster", "accept", "x1")

    with Connection(str(hub.kubeconfig)) as link:
        link.send(Request("POST", "/api/v1/namespaces", body={"metadata": {"name": "x1"}}))
        path = "/apis/work.open-cluster-management.io/v1/namespaces/x1/manifestworks"
        link.ask(Request("POST", path, body=manifest_work("x1", "shop", config_map("menu"))))
    assert shell("work", "list", "-n", "x1", "-o", "name") == ("manifestwork.work.open-cluster-management.io/x1/shop\n")
    assert "0   ConfigMap default/menu   -" in shell("work", "get", "shop")
    said = shell("work", "explain", "x1/shop", code=3)
    assert "ManifestWork x1/shop Waiting" in said and "ManagedCluster x1 Accepted" in said
    assert "ManifestWork x1/shop Waiting" in shell("explain", "work/shop", "-n", "x1", code=3)
    assert "└─ConfigMap default/menu  waiting" in shell("work", "tree", "shop", "-n", "x1")
    assert "no cluster has a ManifestWork shap" in shell("work", "get", "shap", code=1)
    assert "ManagedCluster x1 Accepted" in shell("explain", "managedcluster/x1", code=3)
    assert offered("work", "get", "-n", "x1", "") == ["shop"]


def test_a_report_of_what_a_cluster_pulls(hub: Served, shell: Shell) -> None:
    app = application("shop", "nowhere")
    with Connection(str(hub.kubeconfig)) as link:
        link.ask(Request("POST", "/apis/argoproj.io/v1alpha1/namespaces/argocd/applications", body=app))
    said = shell("report", "app/shop", code=3)
    assert "nowhere   shop" in said and "the hub has no cluster" in said
    (document,) = [yaml.safe_load(shell("report", "app/shop", "-o", "json", code=3))]
    assert (document["needsAttention"], document["clusters"][0]["standing"]) == (True, "missing")
    assert shell("report", "app/shop", "-o", "html", code=3).startswith("<!doctype html>\n<html")
    assert "ApplicationSet argocd/shop does not exist; `-N` names its namespace" in shell("report", "shop", code=1)
    assert "write the name of an ApplicationSet, app/NAME, or --all" in shell("report", code=2)
    said = shell("explain", "app/shop", code=3)
    assert said.startswith("Application argocd/shop NotCarried") and "next: join cluster nowhere" in said


def test_a_set_leads_to_what_its_clusters_lack(hub: Served, shell: Shell) -> None:
    base = "/apis/argoproj.io/v1alpha1/namespaces/argocd"
    with Connection(str(hub.kubeconfig)) as link:
        anything = {"sourceRepos": ["*"], "destinations": [{"server": "*", "namespace": "*"}]}
        project = {"apiVersion": "argoproj.io/v1alpha1", "kind": "AppProject", "metadata": {"name": "default"}}
        link.ask(Request("POST", f"{base}/appprojects", body=project | {"spec": anything}))
        made = link.ask(Request("POST", f"{base}/applicationsets", body=pulled_set("nowhere")))
        owner = {key: made[key] for key in ("apiVersion", "kind")}
        owner |= {"name": "set", "uid": made["metadata"]["uid"], "controller": True}
        app = application("web-nowhere", "nowhere")
        app["metadata"]["ownerReferences"] = [owner]
        link.ask(Request("POST", f"{base}/applications", body=app))
    said = shell("explain", "appset/set", code=3)
    assert "ApplicationSet argocd/set Failing" in said
    assert "1 of 1 Applications need attention in their clusters" in said
    assert "Application argocd/web-nowhere NotCarried" in said
    (row,) = shell_json(shell, "report", "set")["clusters"]
    assert (row["application"], row["standing"]) == ("argocd/web-nowhere", "missing")
    every = shell_json(shell, "report", "--all")
    assert [one["name"] for one in every] == ["set"]


def shell_json(shell: Shell, *words: str) -> Any:
    """The document of a command that says that something needs attention."""
    return yaml.safe_load(shell(*words, "-o", "json", code=3))
