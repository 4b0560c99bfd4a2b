"""A person with the rights of one namespace, over HTTPS with RBAC: every verb works, and what may not be read is one
line with the Role to ask for."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.assembly.test_destinations_live import ask
from tests.cli.test_verbs_live import CONFIG, WEB, Repository, Shell
from tests.live import Served, served_cluster

from syncline.assembly.gitops import GitOpsSettings
from syncline.assembly.settings import ClusterSettings
from syncline.gitops.application.observing.observe import AppSettings
from syncline.kube.objects import Obj
from syncline.kube.yaml.loading import load

RBAC = "/apis/rbac.authorization.k8s.io/v1"
GROUP = "rbac.authorization.k8s.io"
ROLE = """apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: cook}
rules: [{apiGroups: [""], resources: [configmaps], verbs: [get]}]
"""


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("rights")
    gitops = GitOpsSettings(folder / "mirrors", allow_local_repos=True, application=AppSettings(poll_s=600))
    with served_cluster(folder, ClusterSettings(nodes=1), gitops) as found:
        yield found


def bind(cluster: Served, namespace: str, kind: str, role: str, rules: list[Obj] | None = None) -> None:
    if rules is not None:
        ask(cluster, "POST", f"{RBAC}/namespaces/{namespace}/roles", {"metadata": {"name": role}, "rules": rules})
    binding = {
        "metadata": {"name": role},
        "roleRef": {"apiGroup": GROUP, "kind": kind, "name": role},
        "subjects": [{"kind": "ServiceAccount", "name": "dev", "namespace": "shop"}],
    }
    ask(cluster, "POST", f"{RBAC}/namespaces/{namespace}/rolebindings", binding)


@pytest.fixture(scope="module")
def developer(cluster: Served) -> Path:
    """Who may edit in ``shop``, and read and write Applications in ``argocd``."""
    ask(cluster, "POST", "/api/v1/namespaces", {"metadata": {"name": "shop"}})
    ask(cluster, "POST", "/api/v1/namespaces/shop/serviceaccounts", {"metadata": {"name": "dev"}})
    verbs = ["get", "list", "watch", "update", "patch"]
    bind(cluster, "shop", "ClusterRole", "edit")
    bind(
        cluster,
        "argocd",
        "Role",
        "apps",
        [{"apiGroups": ["argoproj.io"], "resources": ["applications"], "verbs": verbs}],
    )
    made: Any = ask(cluster, "POST", "/api/v1/namespaces/shop/serviceaccounts/dev/token", {"spec": {}})
    access = json.loads(cluster.kubeconfig.read_text())
    access["users"] = [{"name": "dev", "user": {"token": made["status"]["token"]}}]
    for one in access["contexts"]:
        one["context"] |= {"user": "dev", "namespace": "shop"}
    path = cluster.kubeconfig.with_name("developer")
    path.write_text(json.dumps(access))
    return path


def roles_asked_for(printed: str) -> list[Any]:
    """The rules of each warning line; every line has some, or is about the project."""
    lines = [line for line in printed.splitlines() if line.startswith("warning: ")]
    assert all("ask for a " in line or "project default may not be read" in line for line in lines)
    return [load(line.partition(" with rules: ")[2]) for line in lines if "ask for a " in line]


def test_a_person_with_the_rights_of_a_namespace_goes_through_all_verbs(
    cluster: Served,
    developer: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    admin = Shell(capsys, [])
    monkeypatch.setenv("KUBECONFIG", str(cluster.kubeconfig))
    repository = Repository(tmp_path / "shop")
    repository.commit(menu=CONFIG % "tomato", web=WEB, cook=ROLE)
    admin("app", "create", "shop", "--repo", str(repository.folder), "--dest-namespace", "shop")

    monkeypatch.setenv("KUBECONFIG", str(developer))
    shell = Shell(capsys, [])
    planned = shell("plan", "shop", code=2)
    assert "+ create  ConfigMap shop/menu" in planned and "? unread  Role shop/cook" in planned
    rules = roles_asked_for(planned)
    assert len(rules) == 2 and [rule["resources"] for rule in rules[1]] == [["roles"]]
    assert {name for rule in rules[0] for name in rule["resources"]} == {"configmaps", "appprojects"}

    assert "1 objects may not be read and were not compared: Role shop/cook" in shell("app", "diff", "shop", code=20)
    shell("app", "sync", "shop", "--timeout", "300")
    shell("app", "wait", "shop", "--health", "--timeout", "300")
    assert "Role/cook" in shell("app", "get", "shop", "-o", "tree")
    tree = shell("app", "resources", "shop", "-o", "tree")
    assert "ReplicaSet" in tree and "Pod" in tree
    assert "Healthy" in shell("explain", "shop")
    shell("app", "logs", "shop", "--tail", "1")
    assert "unchanged" in shell("plan", "shop", "--all")
    assert "not seen" not in "".join(shell.printed) and "does not exist" not in "".join(shell.printed)

    bind(cluster, "shop", "Role", "more", rules[1])
    bind(cluster, "argocd", "Role", "more", rules[0])
    shell("app", "diff", "shop")
    assert "warning" not in "".join(shell.printed[-2:]), "with the Roles that were asked for everything is read"


def test_what_a_person_may_not_do_names_the_role_to_ask_for(
    developer: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KUBECONFIG", str(developer))
    shell = Shell(capsys, [])
    role = "ask for a Role in other with rules: "
    rule = '[{apiGroups: ["argoproj.io"], resources: ["applications"]'
    for verb in (("plan", "other/shop"), ("app", "get", "other/shop"), ("explain", "app/other/shop")):
        refused = shell(*verb, code=20 if verb[0] == "app" else 1)
        assert role + rule in refused and "does not exist" not in refused
    refused = shell("explain", "node/node-1", code=1)
    assert 'ask for a ClusterRole with rules: [{apiGroups: [""], resources: ["nodes"]' in refused
