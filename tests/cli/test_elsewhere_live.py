"""Verbs for an Application whose destination is another cluster: they look, read and act there."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.assembly.test_destinations_live import ask, secret_for, until
from tests.cli.test_verbs_live import CONFIG, WEB, Repository, Shell
from tests.live import Served, served_cluster

from syncline.assembly.gitops import GitOpsSettings
from syncline.assembly.settings import ClusterSettings
from syncline.gitops.application.observing.observe import AppSettings
from syncline.kube.objects import dig

BROKEN = """apiVersion: apps/v1
kind: Deployment
metadata: {name: stuck}
spec:
  selector: {matchLabels: {app: stuck}}
  template:
    metadata: {labels: {app: stuck}}
    spec: {nodeSelector: {disk: none}, containers: [{name: one, image: one}]}
"""


@pytest.fixture(scope="module")
def clusters(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Served, Served]]:
    folder = tmp_path_factory.mktemp("elsewhere")
    gitops = GitOpsSettings(folder / "mirrors", allow_local_repos=True, application=AppSettings(poll_s=600))
    with (
        served_cluster(folder / "far", ClusterSettings(nodes=1)) as far,
        served_cluster(folder / "home", ClusterSettings(), gitops) as home,
    ):
        ask(home, "POST", "/api/v1/namespaces/argocd/secrets", secret_for(far))
        yield home, far


@pytest.fixture
def shell(
    clusters: tuple[Served, Served], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Shell:
    monkeypatch.setenv("KUBECONFIG", str(clusters[0].kubeconfig))
    return Shell(capsys, [])


def test_an_application_in_another_cluster_by_its_verbs(
    shell: Shell, clusters: tuple[Served, Served], tmp_path: Path
) -> None:
    repository = Repository(tmp_path / "shop")
    repository.commit(menu=CONFIG % "tomato", web=WEB)
    shell(
        "app", "create", "shop", "--repo", str(repository.folder), "--dest-name", "far", "--dest-namespace", "default"
    )
    assert "create" in shell("plan", "shop", code=2)
    assert "+  soup: tomato" in shell("app", "diff", "shop", code=1)
    shell("app", "sync", "shop", "--timeout", "300")
    shell("app", "wait", "shop", "--timeout", "300")
    assert "nothing to do" in shell("plan", "shop").lower()
    assert shell("app", "diff", "shop") == ""
    assert "soup: tomato" in shell("app", "manifests", "shop", "--source", "live")
    assert {"Deployment", "ReplicaSet", "Pod"} <= {one["kind"] for one in shell.json("app", "resources", "shop")}
    assert "ReplicaSet/web-" in shell("app", "get", "shop", "-o", "tree")
    assert "restart" in shell("app", "actions", "list", "shop")
    shell("app", "actions", "run", "shop", "restart", "--kind", "Deployment")
    restarted = ask(clusters[1], "GET", "/apis/apps/v1/namespaces/default/deployments/web")
    assert "kubectl.kubernetes.io/restartedAt" in restarted["spec"]["template"]["metadata"]["annotations"]
    shell("app", "logs", "shop", "--kind", "Deployment")
    shell("app", "delete", "shop", "--yes", "--wait")


def test_what_blocks_an_application_is_explained_from_the_cluster_it_is_in(
    shell: Shell, clusters: tuple[Served, Served], tmp_path: Path
) -> None:
    repository = Repository(tmp_path / "stuck")
    repository.commit(stuck=BROKEN)
    shell(
        "app", "create", "stuck", "--repo", str(repository.folder), "--dest-name", "far", "--dest-namespace", "default"
    )
    shell("app", "sync", "stuck", "--timeout", "300")

    def unplaced() -> bool:
        pods = ask(clusters[1], "GET", "/api/v1/namespaces/default/pods")["items"]
        told = [each for pod in pods for each in dig(pod, "status", "conditions", default=[])]
        return any((each["type"], each["status"]) == ("PodScheduled", "False") for each in told)

    until(unplaced, True)
    said = shell("explain", "stuck", code=3)
    assert "0/1 nodes are available" in said and "didn't match Pod's node affinity/selector" in said
    shell("app", "delete", "stuck", "--yes", "--wait")


def test_a_cluster_that_does_not_answer_is_named(shell: Shell, clusters: tuple[Served, Served], tmp_path: Path) -> None:
    repository = Repository(tmp_path / "lost")
    repository.commit(menu=CONFIG % "tomato")
    lost = secret_for(clusters[1])
    lost["metadata"]["name"] = "cluster-lost"
    lost["data"] |= {"name": "bG9zdA==", "server": "aHR0cHM6Ly8xMjcuMC4wLjE6OQ=="}
    ask(clusters[0], "POST", "/api/v1/namespaces/argocd/secrets", lost)
    manifest = {
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "Application",
        "metadata": {"name": "lost"},
        "spec": {
            "project": "default",
            "source": {"repoURL": str(repository.folder), "path": "."},
            "destination": {"name": "lost", "namespace": "default"},
        },
    }
    (tmp_path / "app.yaml").write_text(json.dumps(manifest))
    assert "cluster https://127.0.0.1:9" in shell("plan", "-f", str(tmp_path / "app.yaml"), code=3)
    ask(clusters[0], "DELETE", "/api/v1/namespaces/argocd/secrets/cluster-lost")


def test_verbs_refuse_a_destination_that_the_settings_disable(
    shell: Shell, clusters: tuple[Served, Served], tmp_path: Path
) -> None:
    repository = Repository(tmp_path / "here")
    repository.commit(menu=CONFIG % "tomato")
    shell(
        *("app", "create", "here", "--repo", str(repository.folder), "--dest-namespace", "default"),
        *("--dest-server", "https://kubernetes.default.svc"),
    )
    maps = "/api/v1/namespaces/argocd/configmaps"
    settings = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "argocd-cm"}}
    ask(clusters[0], "POST", maps, settings | {"data": {"cluster.inClusterEnabled": "false"}})
    assert 'cluster "https://kubernetes.default.svc" is disabled' in shell("app", "actions", "list", "here", code=20)
    ask(clusters[0], "DELETE", f"{maps}/argocd-cm")
    shell("app", "delete", "here", "--yes", "--wait")
