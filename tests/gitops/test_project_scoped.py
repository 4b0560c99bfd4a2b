"""Repositories and clusters that belong to a project are permitted in it, and in it alone."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import pytest
from tests.explain.asking import folder
from tests.scenes.scenes import Stage, application

from syncline.argo.clusters import HERE, Cluster
from syncline.argo.project import permits_destination, permits_source
from syncline.argo.project.scoped import with_scoped
from syncline.kube.kinds.argoproj import APP_PROJECT
from syncline.kube.objects import Obj, dig

TEAM: Obj = {"metadata": {"name": "team"}, "spec": {"sourceRepos": [], "destinations": []}}
FAR = Cluster("https://far:6443", "far", "team")


def secret(kind: str, **fields: str) -> Obj:
    data = {key: base64.b64encode(value.encode()).decode() for key, value in fields.items()}
    metadata = {"name": "s", "namespace": "argocd", "labels": {"argocd.argoproj.io/secret-type": kind}}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": data}


@pytest.mark.parametrize(
    ("declared", "permitted"),
    [
        (secret("repository", url="https://h/r.git", project="team"), True),
        (secret("repository", url="https://h/r", project="other"), False),
        (secret("repository", url="https://h/r"), False),
        (secret("repo-creds", url="https://h/r", project="team"), False),
        (secret("repository", url="https://h/*", project="team"), False),
        (secret("repository", url="!https://other", project="team"), False),
        ({"metadata": {"labels": {"argocd.argoproj.io/secret-type": "repository"}}, "data": {"url": 5}}, False),
    ],
)
def test_a_repository_is_a_source_of_the_project_that_its_secret_names(declared: Obj, permitted: bool) -> None:
    assert permits_source(with_scoped(TEAM, [declared], ()), "https://h/r") is permitted


@pytest.mark.parametrize(
    ("cluster", "namespace", "permitted"),
    [
        (FAR, "web", True),
        (Cluster(FAR.server, "far", "team", ("web",)), "web", True),
        (Cluster(FAR.server, "far", "team", ("web",)), "db", False),
        (Cluster(FAR.server, "far", "other"), "web", False),
        (Cluster(FAR.server, "far"), "web", False),
    ],
)
def test_a_cluster_is_a_destination_of_the_project_in_the_namespaces_of_its_secret(
    cluster: Cluster, namespace: str, permitted: bool
) -> None:
    found = with_scoped(TEAM, (), (HERE, cluster))
    assert permits_destination(found, FAR.server, "far", namespace) is permitted


def test_a_denial_of_the_project_counts_for_its_own_resources_too() -> None:
    denying: dict[str, Any] = {
        "sourceRepos": ["!https://h/r"],
        "destinations": [{"server": "!https://far:6443", "namespace": "*"}],
    }
    found = with_scoped(TEAM | {"spec": denying}, [secret("repository", url="https://h/r", project="team")], (FAR,))
    assert not permits_source(found, "https://h/r")
    assert not permits_destination(found, FAR.server, "far", "web")
    assert with_scoped(TEAM, [], (HERE,)) is TEAM


def test_an_application_uses_the_repository_of_its_project_without_a_list(tmp_path: Path) -> None:
    stage = Stage(tmp_path)
    repo = folder(tmp_path, a="apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\n")
    app = application(repo, "app")
    app["spec"]["project"] = "team"
    url = app["spec"]["source"]["repoURL"]
    destinations = [{"server": "*", "namespace": "*"}]
    metadata = {"name": "team", "namespace": "argocd"}
    project = {"apiVersion": APP_PROJECT.api_version, "kind": "AppProject", "metadata": metadata}
    path = "/apis/argoproj.io/v1alpha1/namespaces/argocd/appprojects"
    stage.world.send("POST", path, project | {"spec": {"destinations": destinations}})
    stage.create(app)
    stage.world.driver.advance(5)
    assert "is not permitted in project 'team'" in str(dig(stage.app("app"), "status", "conditions"))
    stage.world.send("POST", "/api/v1/namespaces/argocd/secrets", secret("repository", url=url, project="team"))
    stage.world.driver.advance(200)
    assert not dig(stage.app("app"), "status", "conditions", default=[])
    assert dig(stage.app("app"), "status", "sync", "status") == "OutOfSync"
