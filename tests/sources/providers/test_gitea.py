"""Gitea and Forgejo, as their API documentation answers."""

from __future__ import annotations

from typing import Any

import pytest
from tests.sources.providers.conftest import Serve
from tests.sources.providers.replay import Replay, ReplayHost

from syncline.base.secret import Secret
from syncline.sources.errors import Problem
from syncline.sources.providers.asking import pull_requests, repositories
from syncline.sources.providers.model import ProviderError, PullRequest, Repository, SecretReference
from syncline.sources.providers.reach import Reach

TOKEN = {SecretReference("argocd", "creds", "token"): Secret("gitea-secret")}
REF = {"tokenRef": {"secretName": "creds", "key": "token"}}
V1 = "/api/v1/repos/acme"


def repo(name: str, number: int, **more: Any) -> dict[str, Any]:
    return {
        "id": number,
        "name": name,
        "full_name": f"acme/{name}",
        "owner": {"id": 1, "login": "acme"},
        "ssh_url": f"git@gitea.example:acme/{name}.git",
        "html_url": f"https://gitea.example/acme/{name}",
        "clone_url": f"https://gitea.example/acme/{name}.git",
        "default_branch": "main",
        "archived": False,
        "empty": False,
        **more,
    }


def branch(name: str, sha: str) -> dict[str, Any]:
    return {"name": name, "commit": {"id": sha, "message": "m"}, "protected": False}


def small() -> dict[str, Replay | list[Replay]]:
    more = {"Link": '<https://gitea.example/api/v1/orgs/acme/repos?limit=50&page=2>; rel="next"', "X-Total-Count": "3"}
    return {
        "/api/v1/orgs/acme/repos?limit=50": Replay([repo("web", 1), repo("new", 2, empty=True)], headers=more),
        "/api/v1/orgs/acme/repos?limit=50&page=2": Replay([repo("old", 3, archived=True)]),
        f"{V1}/web/labels": Replay([{"id": 1, "name": "bug"}, {"id": 2, "name": "deploy"}]),
        f"{V1}/old/labels": Replay([]),
        f"{V1}/web/branches/main": Replay(branch("main", "a" * 40)),
        f"{V1}/old/branches/main": Replay(branch("main", "b" * 40)),
        f"{V1}/web/branches?limit=50": Replay([branch("main", "a" * 40), branch("x/y", "c" * 40)]),
        f"{V1}/old/branches?limit=50": Replay([]),
    }


def ask(host: ReplayHost, filters: list[Any] | None = None, **more: Any) -> tuple[Repository, ...]:
    protocol = more.pop("cloneProtocol", "")
    spec = {"gitea": {"owner": "acme", "api": host.url, **REF, **more}, "filters": filters, "cloneProtocol": protocol}
    return repositories(spec, TOKEN, Reach())


def test_repositories_come_with_their_issue_labels_and_the_branch(serve: Serve) -> None:
    host = serve(small())
    found = ask(host)
    ssh = "git@gitea.example:acme/web.git"
    assert found[0] == Repository("acme", "web", ssh, "main", "a" * 40, ("bug", "deploy"), 1)
    assert [one.repository for one in found] == ["web", "old"]
    assert {one.headers["authorization"] for one in host.asked} == {"token gitea-secret"}


def test_archived_ones_are_left_out_and_https_is_the_page_of_the_repository_as_upstream(serve: Serve) -> None:
    found = ask(serve(small()), excludeArchivedRepos=True, cloneProtocol="https", allBranches=True)
    assert [(one.url, one.branch) for one in found] == [
        ("https://gitea.example/acme/web", "main"),
        ("https://gitea.example/acme/web", "x/y"),
    ]


def test_a_missing_default_branch_is_an_error_as_upstream(serve: Serve) -> None:
    answers = small()
    del answers[f"{V1}/web/branches/main"]
    with pytest.raises(ProviderError, match="error listing branches for acme/web"):
        ask(serve(answers))


def test_paths_are_looked_up(serve: Serve) -> None:
    answers = small() | {f"{V1}/web/contents/deploy?ref=main": Replay([{"name": "a.yaml"}])}
    assert [one.repository for one in ask(serve(answers), [{"pathsExist": ["deploy"]}])] == ["web"]


def test_pull_requests_are_open_ones_with_all_labels(serve: Serve) -> None:
    def pull(number: int, *labels: str) -> dict[str, Any]:
        return {
            "id": 90 + number,
            "number": number,
            "title": f"change {number}",
            "state": "open",
            "user": {"login": "anna", "username": "anna"},
            "labels": [{"id": 1, "name": label} for label in labels],
            "head": {"ref": "feature", "sha": "d" * 40},
            "base": {"ref": "main", "sha": "e" * 40},
        }

    host = serve({f"{V1}/web/pulls?limit=50&state=open": Replay([pull(1, "preview", "x"), pull(2)])})
    spec = {"owner": "acme", "repo": "web", "api": f"{host.url}/", "labels": ["preview"]}
    found = pull_requests({"gitea": spec}, {}, Reach())
    assert found == (PullRequest(1, "change 1", "feature", "main", "d" * 40, ("preview", "x"), "anna"),)
    with pytest.raises(ProviderError) as error:
        pull_requests({"gitea": {**spec, "repo": "gone"}}, {}, Reach())
    assert error.value.not_found


def test_an_address_is_required(serve: Serve) -> None:
    with pytest.raises(ProviderError, match="gitea needs an api") as error:
        repositories({"gitea": {"owner": "acme"}}, {}, Reach())
    assert error.value.problem is Problem.INVALID
