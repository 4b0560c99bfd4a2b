"""The tables and texts of the command line, word for word (``golden/NAME.txt``); no cluster, no clock."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from pathlib import Path

import pytest

from syncline.argo.stores.secrets import secret_object
from syncline.assembly.inspection.differences import ObjectDifference
from syncline.assembly.inspection.resource_tree import ResourceNode
from syncline.base.clock import parse_time
from syncline.cli.frame.output import print_table
from syncline.cli.remotes.cluster import declared_cluster, managed_cluster
from syncline.cli.remotes.repo import declared_repositories
from syncline.cli.views.application import app_rows, describe_app, history_text, windows_lines
from syncline.cli.views.diff import describe_difference
from syncline.cli.views.project import describe_project, project_rows, window_rows
from syncline.cli.views.repository import Destination, cluster_rows, repository_rows
from syncline.cli.views.tree import app_tree, resource_table, resource_tree_table
from syncline.kube.objects import Obj, ObjectRef

GOLDEN = Path(__file__).parent / "golden"
NOW: datetime = parse_time("2026-03-01T12:00:00Z")
OLD, NEW = "0123456789abcdef0123456789abcdef01234567", "fedcba9876543210fedcba9876543210fedcba98"
REPO = "https://example.com/shop.git"
SOURCE = {"repoURL": REPO, "path": "deploy", "targetRevision": "main"}
APP: Obj = {
    "metadata": {"name": "shop", "namespace": "argocd"},
    "spec": {
        "project": "team",
        "source": SOURCE,
        "destination": {"server": "https://kubernetes.default.svc", "namespace": "shop"},
        "syncPolicy": {"automated": {"prune": True}},
    },
    "status": {
        "sync": {"status": "OutOfSync", "revision": NEW},
        "health": {"status": "Degraded", "message": "one of its objects is"},
        "conditions": [
            {"type": "SyncError", "message": "failed twice", "lastTransitionTime": "2026-03-01T11:00:00Z"},
        ],
        "history": [
            {"id": 0, "deployedAt": "2026-02-01T10:00:00Z", "revision": OLD, "source": SOURCE},
            {
                "id": 1,
                "deployedAt": "2026-02-02T10:00:00Z",
                "revisions": [NEW, "1.2.3"],
                "sources": [SOURCE, {"repoURL": "https://charts.example.com", "chart": "db", "targetRevision": "1.*"}],
            },
        ],
        "resources": [
            {"group": "apps", "kind": "Deployment", "namespace": "shop", "name": "web", "status": "OutOfSync",
             "health": {"status": "Degraded"}},
            {"kind": "ConfigMap", "namespace": "shop", "name": "menu", "status": "Synced"},
        ],
        "operationState": {
            "phase": "Failed",
            "message": "one or more objects failed to apply",
            "startedAt": "2026-03-01T11:00:00Z",
            "finishedAt": "2026-03-01T11:01:30Z",
            "syncResult": {
                "revision": NEW,
                "resources": [
                    {"group": "batch", "kind": "Job", "namespace": "shop", "name": "open", "hookType": "PreSync",
                     "hookPhase": "Succeeded", "status": "Synced", "message": "done"},
                    {"group": "apps", "kind": "Deployment", "namespace": "shop", "name": "web", "status": "SyncFailed",
                     "message": "field is immutable"},
                ],
            },
        },
    },
}  # fmt: skip
DENY: Obj = {"kind": "deny", "schedule": "0 11 * * *", "duration": "2h", "applications": ["*"], "manualSync": True}
ALLOW: Obj = {
    "kind": "allow",
    "schedule": "0 22 * * 1-5",
    "duration": "8h",
    "namespaces": ["a", "b"],
    "clusters": ["prod"],
    "timeZone": "Europe/Berlin",
    "andOperator": True,
}
PROJECT: Obj = {
    "metadata": {"name": "team"},
    "spec": {
        "description": "what the team runs",
        "destinations": [
            {"server": "https://kubernetes.default.svc", "namespace": "team-*"},
            {"name": "prod", "namespace": "*"},
        ],
        "sourceRepos": [REPO],
        "clusterResourceWhitelist": [{"group": "", "kind": "Namespace"}],
        "namespaceResourceBlacklist": [{"group": "batch", "kind": "Job"}, {"group": "", "kind": "Pod"}],
        "orphanedResources": {"warn": True, "ignore": [{"kind": "Secret"}]},
        "syncWindows": [DENY, ALLOW],
    },
}
EMPTY: Obj = {"metadata": {"name": "empty"}, "spec": {"namespaceResourceWhitelist": []}}


def node(group: str, kind: str, name: str, live: Obj | None, row: Obj, *children: ResourceNode) -> ResourceNode:
    if live is not None:
        version = f"{group}/v1" if group else "v1"
        metadata = {"name": name, "namespace": "shop", "creationTimestamp": "2026-03-01T11:55:00Z"}
        live = {"apiVersion": version, "kind": kind, "metadata": metadata, **live}
    return ResourceNode(ObjectRef(group, kind, "shop", name), live, row, children)


def pod(name: str, phase: str) -> ResourceNode:
    return node("", "Pod", name, {"spec": {}, "status": {"phase": phase, "message": "no room"}}, {})


TREE = (
    node(
        "apps",
        "Deployment",
        "web",
        {"spec": {"replicas": 2}, "status": {"replicas": 2, "updatedReplicas": 2, "availableReplicas": 1}},
        {"status": "OutOfSync"},
        node("apps", "ReplicaSet", "web-1", {"spec": {}, "status": {}}, {}, pod("web-1-a", "Failed")),
        node("apps", "ReplicaSet", "web-2", {"spec": {}, "status": {}}, {}, pod("web-2-b", "Pending")),
    ),
    node("", "ConfigMap", "menu", None, {"status": "OutOfSync"}),
)
ORPHANS = (node("", "Secret", "left", {}, {}),)
MENU = ObjectRef("", "ConfigMap", "shop", "menu")


def menu(soup: str) -> Obj:
    managed = [{"manager": "argocd-controller"}]
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "menu", "namespace": "shop", "managedFields": managed},
        "data": {"soup": soup, "bread": "rye"},
    }


def differences() -> str:
    found = (
        ObjectDifference(MENU, menu("leek"), menu("tomato"), True),
        ObjectDifference(
            ObjectRef("", "Namespace", "", "shop"), None, {"kind": "Namespace", "metadata": {"name": "shop"}}, True
        ),
        ObjectDifference(
            ObjectRef("batch", "Job", "shop", "old"), {"kind": "Job", "metadata": {"name": "old"}}, None, True
        ),
    )
    return "\n".join(map(describe_difference, found))


def repositories() -> str:
    secrets = [
        secret_object(
            "repository", "argocd", "a", {"url": REPO, "type": "git", "password": "hidden", "project": "team"}
        ),
        secret_object("repository", "argocd", "b", {"url": "oci://example.com/c", "type": "oci", "name": "charts"}),
        secret_object("repository", "argocd", "c", {"url": "https://me:hidden@git.example.com/x", "insecure": "true"}),
    ]
    return repository_rows(declared_repositories(secrets, [secret_object("repo-creds", "", "t", {"url": "oci://exa"})]))


def clusters() -> str:
    fields = {"server": "https://prod:6443", "name": "prod", "namespaces": "a,b", "config": "{}"}
    available = {"type": "ManagedClusterConditionAvailable", "status": "True", "message": "it answers"}
    managed: Obj = {
        "metadata": {"name": "edge-1"},
        "spec": {"managedClusterClientConfigs": [{"url": "https://edge-1:6443"}]},
        "status": {"version": {"kubernetes": "v1.36.0"}, "conditions": [available]},
    }
    here = Destination("https://kubernetes.default.svc", "in-cluster", "1.36.0", "Successful")
    return cluster_rows([here, declared_cluster(secret_object("cluster", "", "c", fields)), managed_cluster(managed)])


VIEWS: dict[str, Callable[[], str]] = {
    "app-list": lambda: app_rows([APP], wide=True),
    "app-get": lambda: describe_app(APP, windows_lines(PROJECT, APP, NOW)),
    "app-get-tree": lambda: app_tree(TREE, NOW),
    "app-get-tree-detailed": lambda: app_tree(TREE, NOW, detailed=True),
    "app-history": lambda: history_text(APP),
    "app-diff": differences,
    "app-resources": lambda: resource_table(TREE, ORPHANS),
    "app-resources-tree": lambda: resource_tree_table(TREE, ORPHANS, NOW),
    "app-resources-tree-detailed": lambda: resource_tree_table(TREE, ORPHANS, NOW, detailed=True),
    "proj-list": lambda: project_rows([EMPTY, PROJECT]),
    "proj-get": lambda: describe_project(PROJECT),
    "proj-get-empty": lambda: describe_project(EMPTY),
    "proj-windows-list": lambda: window_rows([DENY, ALLOW, {"kind": "deny", "schedule": "x"}], NOW),
    "repo-list": repositories,
    "cluster-list": clusters,
}


@pytest.mark.parametrize("name", VIEWS)
def test_what_is_printed_is_what_people_know(name: str) -> None:
    assert VIEWS[name]() + "\n" == (GOLDEN / f"{name}.txt").read_text(encoding="utf-8")


def test_every_golden_file_has_its_view() -> None:
    assert {path.stem for path in GOLDEN.glob("*.txt")} == set(VIEWS)


def test_ids_of_the_history_stand_alone() -> None:
    assert history_text(APP, ids_only=True) == "0\n1"


def test_credentials_in_an_address_are_masked_wherever_it_is_shown() -> None:
    source = SOURCE | {"repoURL": "https://me:hidden@example.com/x"}
    entry = {"id": 0, "deployedAt": "2026-02-01T10:00:00Z", "revision": OLD, "source": source}
    app = APP | {"spec": APP["spec"] | {"source": source}, "status": {"history": [entry]}}
    for text in (app_rows([app], wide=True), describe_app(app), history_text(app)):
        assert "https://***@example.com/x" in text and "hidden" not in text


def test_a_window_that_cannot_be_read_denies_and_says_why() -> None:
    lines = windows_lines({"spec": {"syncWindows": [DENY | {"schedule": "x"}]}}, APP, NOW)
    assert len(lines) == 1 and lines[0].startswith("SyncWindow:         Sync Denied (cannot parse schedule")


def test_a_list_of_nothing_says_so_past_the_table(capsys: pytest.CaptureFixture[str]) -> None:
    print_table("NAME\nworker", 1, "MachineConfigPools")
    print_table("NAME", 0, "MachineConfigPools")
    assert capsys.readouterr() == ("NAME\nworker\n", "No MachineConfigPools found.\n")
