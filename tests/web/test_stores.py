"""Repositories, credentials, clusters, certificates, keys and ApplicationSets through the port of the server."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import grpc
import pytest
from tests.web.test_server import Installation
from tests.web.test_server import installed as installed

from syncline.kube.client import Request

SECRETS = "/api/v1/namespaces/argocd/secrets"
REPOSITORY = "/repository.RepositoryService/"
CREDENTIALS = "/repocreds.RepoCredsService/"


def refused(installed: Installation, path: str, request: dict[str, Any], token: str) -> tuple[grpc.StatusCode, str]:
    with pytest.raises(grpc.RpcError) as found:
        installed.call(path, request, token=token)
    return found.value.code(), found.value.details()


@pytest.fixture
def repository(tmp_path: Path) -> str:
    subprocess.run(["git", "init", "-q", "-b", "main", tmp_path], check=True)
    return f"file://{tmp_path}"


def test_a_repository_is_declared_changed_and_taken_back(installed: Installation, repository: str) -> None:
    token = installed.login()
    wanted = {"repo": repository, "type": "git"}
    for _ in range(2):  # what is declared already is declared again without a word
        said = installed.call(REPOSITORY + "CreateRepository", {"repo": wanted}, token=token)
        assert (said["repo"], said["type"]) == (repository, "git")
    other = wanted | {"username": "me", "password": "hidden-canary"}
    code, text = refused(installed, REPOSITORY + "CreateRepository", {"repo": other}, token)
    assert code is grpc.StatusCode.INVALID_ARGUMENT
    assert text == (
        'existing repository spec is different; use upsert flag to force update; difference in keys "Password,Username"'
    )
    installed.call(REPOSITORY + "CreateRepository", {"repo": other, "upsert": True}, token=token)
    (listed,) = installed.call(REPOSITORY + "ListRepositories", token=token)["items"]
    assert (listed["username"], listed["connectionState"]["status"]) == ("me", "Successful")
    assert "hidden-canary" not in json.dumps(listed)
    (secret,) = installed.client.send(
        Request("GET", f"{SECRETS}?labelSelector=argocd.argoproj.io/secret-type%3Drepository")
    ).or_raise()["items"]
    assert secret["metadata"]["annotations"]["managed-by"] == "argocd.argoproj.io"
    assert secret["metadata"]["name"].startswith("repo-")
    installed.call(REPOSITORY + "DeleteRepository", {"repo": repository}, token=token)
    assert installed.call(REPOSITORY + "ListRepositories", token=token).get("items", []) == []
    denied = refused(installed, REPOSITORY + "Get", {"repo": repository}, token)
    assert denied == (grpc.StatusCode.PERMISSION_DENIED, "permission denied")


def test_credentials_below_a_url_are_inherited_and_never_shown(installed: Installation, repository: str) -> None:
    token = installed.login()
    shared = {"url": repository[:-3], "username": "team", "password": "hidden-canary"}
    installed.call(CREDENTIALS + "CreateRepositoryCredentials", {"creds": shared}, token=token)
    installed.call(REPOSITORY + "CreateRepository", {"repo": {"repo": repository, "type": "git"}}, token=token)
    found = installed.call(REPOSITORY + "Get", {"repo": repository}, token=token)
    assert (found["inheritedCreds"], found["username"]) == (True, "team")
    listed = installed.call(CREDENTIALS + "ListRepositoryCredentials", token=token)
    assert listed["items"] == [{"url": shared["url"], "username": "team"}]
    assert "hidden-canary" not in json.dumps([found, listed])
    installed.call(REPOSITORY + "DeleteRepository", {"repo": repository}, token=token)
    installed.call(CREDENTIALS + "DeleteRepositoryCredentials", {"url": shared["url"]}, token=token)
    code, text = refused(installed, CREDENTIALS + "DeleteRepositoryCredentials", {"url": shared["url"]}, token)
    assert (code, text) == (
        grpc.StatusCode.NOT_FOUND,
        f"repository credentials '{shared['url']}' not found",
    )


def test_what_is_asked_reaches_no_forbidden_network(installed: Installation, repository: str) -> None:
    token = installed.login()
    there = "http://169.254.169.254/latest"
    code, text = refused(installed, REPOSITORY + "ValidateAccess", {"repo": there}, token)
    assert code is grpc.StatusCode.UNKNOWN
    assert text.startswith("error testing repository connectivity: ")
    assert "lies in a network that repositories may not name" in text
    for field in ("proxy", "githubAppEnterpriseBaseUrl"):
        wanted = {"repo": "https://git.example.invalid/a", "project": "default", field: there}
        code, text = refused(installed, REPOSITORY + "CreateRepository", {"repo": wanted}, token)
        assert (code, field in text) == (grpc.StatusCode.INVALID_ARGUMENT, True)


def test_a_secret_of_people_only_loses_its_label(installed: Installation, repository: str) -> None:
    token = installed.login()
    labels = {"argocd.argoproj.io/secret-type": "repository", "team": "a"}
    body = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "ours", "labels": labels}}
    installed.write("POST", SECRETS, body | {"stringData": {"url": repository}})
    name = installed.call(REPOSITORY + "ValidateAccess", {"repo": repository}, token=token)
    assert name == {}
    while not installed.call(REPOSITORY + "List", token=token).get("items"):
        pass
    installed.call(REPOSITORY + "Delete", {"repo": repository}, token=token)
    kept = installed.client.send(Request("GET", f"{SECRETS}/ours")).or_raise()
    assert kept["metadata"]["labels"] == {"team": "a"}
