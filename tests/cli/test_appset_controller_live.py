"""A life of an ApplicationSet by its verbs, over HTTP, on a served cluster with its controllers; and what a person sees
who may not read all that it takes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.cli.commanding import Repository, Shell
from tests.cli.test_appset_plan_live import a_set, of_git, written
from tests.live import Served, served_cluster

from syncline.assembly.gitops import GitOpsSettings
from syncline.assembly.settings import ClusterSettings
from syncline.cli.access.connection import Connection
from syncline.gitops.application.observing.observe import AppSettings
from syncline.kube.client import Request
from syncline.kube.objects import Obj

CONFIG = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: menu}\n"
RBAC = "/apis/rbac.authorization.k8s.io/v1/namespaces/argocd"


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("sets")
    gitops = GitOpsSettings(folder / "mirrors", allow_local_repos=True, application=AppSettings(poll_s=600))
    with served_cluster(folder, ClusterSettings(nodes=0), gitops) as found:
        yield found


@pytest.fixture
def shell(cluster: Served, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Shell:
    monkeypatch.setenv("KUBECONFIG", str(cluster.kubeconfig))
    return Shell(capsys, [])


def app_folder(repository: Repository, name: str) -> None:
    (repository.folder / "apps" / name).mkdir(parents=True)
    (repository.folder / "apps" / name / "menu.yaml").write_text(CONFIG)


def test_a_life_of_a_set_by_its_verbs(shell: Shell, tmp_path: Path) -> None:
    repository = Repository(tmp_path / "fleet")
    for name in ("bar", "grill"):
        app_folder(repository, name)
    repository.commit(readme="{}")
    found = of_git("cafe", str(repository.folder), directories=[{"path": "apps/*"}])
    found["spec"]["template"]["spec"] |= {
        "source": {"repoURL": str(repository.folder), "path": "{{path}}", "targetRevision": "main"},
        "syncPolicy": {"automated": {}, "syncOptions": ["CreateNamespace=true"]},
    }
    assert "+ create  cafe-bar" in shell("plan", "-f", written(tmp_path, found), code=2)
    shell("appset", "create", written(tmp_path, found), "--wait")
    assert "ApplicationSet 'cafe' resources are up to date\n" in shell.printed[-1]
    shell("app", "wait", "cafe-bar", "cafe-grill", "--timeout", "300")
    lines = [line.split() for line in shell("appset", "get", "cafe").splitlines()]
    assert ["cafe-bar", "Synced", "Healthy"] in lines and ["cafe-grill", "Synced", "Healthy"] in lines
    assert "nothing to do (2 unchanged)" in shell("plan", "appset/cafe")
    assert "up to date" in shell("explain", "appset/cafe")

    app_folder(repository, "till")
    repository.commit(readme="{a: 1}")
    assert "+ create  cafe-till  spec.generators[0].git row 3" in shell("plan", "appset/cafe", code=2)
    shell("appset", "create", written(tmp_path, found), "--wait")
    assert "ApplicationSet 'cafe' unchanged\n" in shell.printed[-1]
    shell("app", "wait", "cafe-till", "--timeout", "300")
    assert "makes it: from spec.generators[0].git row 3 (path=apps/till" in shell("explain", "app/cafe-till")

    shell("app", "delete", "cafe-till", "--yes", "--no-cascade")
    assert "ApplicationSet argocd/cafe controls it: while a row makes it, it comes back\n" in shell.printed[-1]
    shell("appset", "create", written(tmp_path, found), "--wait")
    shell("app", "wait", "cafe-till", "--timeout", "300")

    found["spec"]["generators"][0]["git"]["revision"] = "nosuch"
    shell("appset", "create", written(tmp_path, found), "--upsert")
    assert "unable to resolve 'nosuch' to a commit SHA" in shell("explain", "appset/cafe", code=3)
    assert len(shell("app", "list", "-o", "name").splitlines()) == 3, "an error of a source deletes nothing"

    assert shell("appset", "delete", "cafe", "--yes", "--wait") == "applicationset 'cafe' deleted\n"
    shell("app", "wait", "cafe-bar", "cafe-grill", "cafe-till", "--delete", "--timeout", "300")
    assert shell("app", "list", "-o", "name") == ""


def test_forbidden_is_not_absent(
    cluster: Served, shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shell("appset", "create", written(tmp_path, a_set("guarded", "red")), "--wait")
    shell("app", "get", "guarded-red", "--refresh", "--timeout", "300")
    rules = [{"apiGroups": ["argoproj.io"], "resources": ["applicationsets", "applications"], "verbs": ["get", "list"]}]
    monkeypatch.setenv("KUBECONFIG", str(reader(cluster, rules)))
    assert "guarded-red" in shell("appset", "get", "guarded")
    blocked = shell("plan", "appset/guarded", code=3)
    assert "blocked: " in blocked and "is forbidden" in blocked, "no Application is planned on half of what is there"
    assert "- delete" not in blocked and "ask for a Role in argocd with rules" in blocked
    said = shell("app", "get", "guarded-red")
    assert "ApplicationSet:     argocd/guarded" in said
    told = shell("explain", "app/guarded-red", code=3)
    assert "ApplicationSet argocd/guarded controls it: its rows cannot be known: " in told


def reader(cluster: Served, rules: list[Obj]) -> Path:
    """A kubeconfig of a service account with these rights in ``argocd``."""
    subject = {"kind": "ServiceAccount", "name": "reader", "namespace": "argocd"}
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "reader"}
    named = {"metadata": {"name": "reader"}}
    accounts = "/api/v1/namespaces/argocd/serviceaccounts"
    with Connection(str(cluster.kubeconfig)) as link:
        link.ask(Request("POST", accounts, body=named))
        link.ask(Request("POST", f"{RBAC}/roles", body=named | {"rules": rules}))
        link.ask(Request("POST", f"{RBAC}/rolebindings", body=named | {"subjects": [subject], "roleRef": role}))
        made: Any = link.ask(Request("POST", f"{accounts}/reader/token", body={"spec": {}}))
    access = json.loads(cluster.kubeconfig.read_text())
    access["users"] = [{"name": "reader", "user": {"token": made["status"]["token"]}}]
    for one in access["contexts"]:
        one["context"] |= {"user": "reader", "namespace": "argocd"}
    path = cluster.kubeconfig.with_name("reader")
    path.write_text(json.dumps(access))
    return path
