"""Azure DevOps, as its REST documentation answers."""

from __future__ import annotations

import base64
from typing import Any

import pytest
from tests.sources.providers.conftest import Serve
from tests.sources.providers.replay import Replay, ReplayHost

from syncline.base.secret import Secret
from syncline.sources.errors import Problem
from syncline.sources.providers.asking import pull_requests, repositories
from syncline.sources.providers.model import ProviderError, PullRequest, Repository, SecretReference
from syncline.sources.providers.reach import Reach

SECRETS = {SecretReference("argocd", "creds", "pat"): Secret("azure-pat")}
REF = {"secretName": "creds", "key": "pat"}
GIT = "/acme/team%20one/_apis/git"
STATS = f"{GIT}/repositories/web/stats/branches"
IDENTITY = "2f3d611a-f012-4b39-b157-8db63f380226"


def repo(name: str, **more: Any) -> dict[str, Any]:
    url = f"https://acme@dev.azure.com/acme/team/_git/{name}"
    return {"id": IDENTITY, "name": name, "defaultBranch": "refs/heads/main", "remoteUrl": url, "size": 1, **more}


def stats(name: str, sha: str) -> dict[str, Any]:
    return {"name": name, "aheadCount": 0, "behindCount": 0, "isBaseVersion": True, "commit": {"commitId": sha}}


def azure_error(kind: str, text: str) -> dict[str, Any]:
    return {"$id": "1", "innerException": None, "message": text, "typeKey": kind, "errorCode": 0, "eventId": 3000}


def ask(host: ReplayHost, filters: list[Any] | None = None, **more: Any) -> tuple[Repository, ...]:
    given = {"organization": "acme", "teamProject": "team one", "api": host.url, "accessTokenRef": REF, **more}
    return repositories({"azureDevOps": given, "filters": filters}, SECRETS, Reach())


def small() -> dict[str, Replay | list[Replay]]:
    empty = {key: value for key, value in repo("empty").items() if key != "defaultBranch"}
    gone = azure_error("GitRepositoryNotFoundException", "TF401019: The Git repository gone does not exist")
    return {
        f"{GIT}/repositories?api-version=5.0": Replay({"count": 3, "value": [repo("web"), empty, repo("gone")]}),
        f"{STATS}?api-version=5.0&name=main": Replay(stats("main", "a" * 40)),
        f"{STATS}?api-version=5.0": Replay({"count": 2, "value": [stats("main", "a" * 40), stats("x/y", "b" * 40)]}),
        f"{GIT}/repositories/gone/stats/branches": Replay(gone, 404),
    }


def test_repositories_with_a_default_branch_and_those_that_vanish_meanwhile_are_left_out(serve: Serve) -> None:
    host = serve(small())
    url = "https://acme@dev.azure.com/acme/team/_git/web"
    assert ask(host) == (Repository("acme", "web", url, "main", "a" * 40, (), IDENTITY),)
    pat = "Basic " + base64.b64encode(b":azure-pat").decode()
    assert {one.headers["authorization"] for one in host.asked} == {pat}
    assert [one.branch for one in ask(host, allBranches=True)] == ["main", "x/y"]


def test_a_path_is_missing_only_if_the_host_says_so(serve: Serve) -> None:
    items = f"{GIT}/repositories/{IDENTITY}/items"
    missing = azure_error("GitItemNotFoundException", "TF401174: The item 'gone' could not be found")
    broken = azure_error("GitUnresolvableToCommitException", "TF401175: The version descriptor could not be resolved")
    answers = small() | {
        f"{items}?api-version=5.0&path=deploy&versionDescriptor.version=main": Replay({"path": "/deploy"}),
        f"{items}?api-version=5.0&path=gone&versionDescriptor.version=main": Replay(missing, 404),
        f"{items}?api-version=5.0&path=broken&versionDescriptor.version=main": Replay(broken, 404),
    }
    host = serve(answers)
    assert len(ask(host, [{"pathsExist": ["deploy"]}])) == 1
    assert ask(host, [{"pathsExist": ["gone"]}]) == ()
    with pytest.raises(ProviderError, match="TF401175"):
        ask(host, [{"pathsExist": ["broken"]}])


def test_a_token_is_required_for_repositories(serve: Serve) -> None:
    host = serve(small())
    with pytest.raises(ProviderError, match="no access token provided") as error:
        ask(host, accessTokenRef=None)
    assert error.value.problem is Problem.DENIED
    assert host.asked == []


def test_a_page_to_sign_in_is_no_answer(serve: Serve) -> None:
    page = Replay(raw=b"<html>Sign in", status=203, headers={"Content-Type": "text/html; charset=utf-8"})
    with pytest.raises(ProviderError, match="a web page, as if a person had to sign in") as error:
        ask(serve({f"{GIT}/repositories": page}))
    assert error.value.problem is Problem.DENIED


def pull(number: int, name: str = "web", **more: Any) -> dict[str, Any]:
    return {
        "repository": {"id": IDENTITY, "name": name},
        "pullRequestId": number,
        "status": "active",
        "title": f"change {number}",
        "sourceRefName": "refs/heads/feature/x",
        "targetRefName": "refs/heads/main",
        "isDraft": False,
        "lastMergeSourceCommit": {"commitId": "c" * 40},
        "labels": [{"id": "1", "name": "preview", "active": True}],
        "createdBy": {"displayName": "Anna", "uniqueName": "anna@acme.example"},
        **more,
    }


def ask_pulls(host: ReplayHost, **more: Any) -> tuple[PullRequest, ...]:
    given = {"organization": "acme", "project": "team one", "repo": "web", "api": host.url, "tokenRef": REF, **more}
    return pull_requests({"azuredevops": given}, SECRETS, Reach())


def test_pull_requests_of_the_repository_come_from_all_pages(serve: Serve) -> None:
    pulls = f"{GIT}/pullrequests"
    first = [pull(1), pull(2, "other"), pull(3, lastMergeSourceCommit=None), pull(4, labels=None)]
    answers = {
        f"{pulls}?$skip=0&$top=100&api-version=5.0": Replay({"value": first + [pull(9, "other")] * 96}),
        f"{pulls}?$skip=100&$top=100&api-version=5.0": Replay({"value": [pull(5)]}),
    }
    host = serve(answers)
    found = ask_pulls(host)
    assert found[0] == PullRequest(1, "change 1", "feature/x", "main", "c" * 40, ("preview",), "anna")
    assert [one.number for one in found] == [1, 4, 5]
    assert [one.number for one in ask_pulls(host, labels=["preview"])] == [1, 5]
    assert ask_pulls(host, repo="gone") == ()


@pytest.mark.parametrize(
    ("text", "not_found"),
    [
        ("TF200016: The following project does not exist: team one. Verify that the name is correct.", True),
        ("The resource cannot be found.", False),
    ],
)
def test_only_a_missing_project_counts_as_not_found(serve: Serve, text: str, not_found: bool) -> None:
    host = serve({f"{GIT}/pullrequests": Replay(azure_error("ProjectDoesNotExistWithNameException", text), 404)})
    with pytest.raises(ProviderError) as error:
        ask_pulls(host)
    assert error.value.not_found is not_found
