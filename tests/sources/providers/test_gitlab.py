"""GitLab: groups, subgroups, topics, paths and merge requests, as its REST documentation answers."""

from __future__ import annotations

from typing import Any

import pytest
from tests.sources.providers.conftest import Serve
from tests.sources.providers.replay import Replay, ReplayHost

from syncline.base.secret import Secret
from syncline.sources.providers.asking import pull_requests, repositories
from syncline.sources.providers.model import ProviderError, PullRequest, Repository, SecretReference
from syncline.sources.providers.reach import Reach

TOKEN = {SecretReference("argocd", "creds", "token"): Secret("glpat-secret")}
REF = {"tokenRef": {"secretName": "creds", "key": "token"}}
GROUP = "/api/v4/groups/acme%2Fplatform/projects"
LIST = f"{GROUP}?include_subgroups=false&per_page=100&with_shared=true"


def project(name: str, number: int, **more: Any) -> dict[str, Any]:
    return {
        "id": number,
        "name": name.title(),
        "path": name,
        "path_with_namespace": f"acme/platform/{name}",
        "namespace": {"id": 1, "kind": "group", "full_path": "acme/platform"},
        "ssh_url_to_repo": f"git@gitlab.com:acme/platform/{name}.git",
        "http_url_to_repo": f"https://gitlab.com/acme/platform/{name}.git",
        "default_branch": "main",
        "topics": ["team-a"],
        "tag_list": ["team-a"],
        "archived": False,
        **more,
    }


def branch(name: str, sha: str) -> dict[str, Any]:
    return {"name": name, "commit": {"id": sha, "short_id": sha[:8]}, "default": name == "main"}


def merge(number: int, **more: Any) -> dict[str, Any]:
    return {
        "id": 1000 + number,
        "iid": number,
        "title": f"change {number}",
        "state": "opened",
        "draft": False,
        "source_branch": f"feature-{number}",
        "target_branch": "main",
        "sha": f"{number:040x}",
        "labels": ["preview"],
        "author": {"username": "anna"},
        **more,
    }


def page(number: int | None) -> dict[str, str]:
    return {"X-Page": "1", "X-Next-Page": str(number or ""), "X-Total-Pages": "2"}


def ask(host: ReplayHost, filters: list[Any] | None = None, **gitlab: Any) -> tuple[Repository, ...]:
    spec = {"gitlab": {"group": "acme/platform", "api": host.url, **REF, **gitlab}, "filters": filters or []}
    return repositories(spec, TOKEN, Reach())


def small() -> dict[str, Replay | list[Replay]]:
    return {
        LIST: Replay([project("web", 7), project("tools", 8, default_branch=None)], headers=page(2)),
        f"{GROUP}?include_subgroups=false&page=2&per_page=100&with_shared=true": Replay(
            [project("api", 9, topics=[])], headers=page(None)
        ),
        "/api/v4/projects/7/repository/branches/main": Replay(branch("main", "a" * 40)),
        "/api/v4/projects/9/repository/branches/main": Replay(branch("main", "c" * 40)),
    }


def test_projects_come_from_all_pages_and_empty_ones_are_left_out(serve: Serve) -> None:
    host = serve(small())
    found = ask(host)
    ssh = "git@gitlab.com:acme/platform/web.git"
    assert found[0] == Repository("acme/platform", "web", ssh, "main", "a" * 40, ("team-a",), 7)
    assert [one.repository for one in found] == ["web", "api"]
    assert found[1].labels == ("team-a",)  # of GitLab before 14.5
    assert {one.headers["private-token"] for one in host.asked} == {"glpat-secret"}


@pytest.mark.parametrize(
    ("fields", "query"),
    [
        ({"includeSubgroups": True}, "include_subgroups=true&per_page=100&with_shared=true"),
        ({"includeSharedProjects": False}, "include_subgroups=false&per_page=100&with_shared=false"),
        ({"topic": "team a"}, "include_subgroups=false&per_page=100&topic=team a&with_shared=true"),
        ({"includeArchivedRepos": True}, "archived=true&include_subgroups=false&per_page=100&with_shared=true"),
    ],
)
def test_fields_of_the_generator_become_parameters(serve: Serve, fields: dict[str, Any], query: str) -> None:
    host = serve({GROUP: Replay([])})
    assert ask(host, **fields) == ()
    assert host.lines == [f"{GROUP}?{query}"]


def test_all_branches_are_listed_and_a_project_without_repository_has_none(serve: Serve) -> None:
    branches = "/api/v4/projects/7/repository/branches"
    answers = {
        LIST: Replay([project("web", 7), project("wiki", 8)]),
        f"{branches}?per_page=100": Replay([branch("main", "a" * 40)], headers=page(2)),
        f"{branches}?page=2&per_page=100": Replay([branch("x/y", "b" * 40)], headers=page(None)),
    }
    found = ask(serve(answers), allBranches=True)
    assert [(one.repository, one.branch, one.sha[:1]) for one in found] == [("web", "main", "a"), ("web", "x/y", "b")]


def test_a_path_is_a_file_or_a_directory(serve: Serve) -> None:
    files, tree = "/api/v4/projects/7/repository/files", "/api/v4/projects/7/repository/tree"
    answers = small() | {
        f"{files}/deploy%2Fapp.yaml?ref=main": Replay({}),
        f"{tree}?path=deploy&per_page=1&ref=main": Replay([{"name": "app.yaml", "type": "blob"}]),
        f"{tree}?path=gone&per_page=1&ref=main": Replay({"message": "404 Tree Not Found"}, 404),
    }
    host = serve(answers)
    for path, expected in (("deploy/app.yaml", ["web"]), ("deploy/", ["web"]), ("gone", [])):
        assert [one.repository for one in ask(host, [{"repositoryMatch": "web", "pathsExist": [path]}])] == expected


def test_merge_requests_come_from_all_pages(serve: Serve) -> None:
    path = "/api/v4/projects/acme%2Fweb/merge_requests"
    answers = {
        f"{path}?labels=preview,a b&per_page=100&state=opened": Replay([merge(1)], headers=page(2)),
        f"{path}?labels=preview,a b&page=2&per_page=100&state=opened": Replay([merge(2, sha=None)], headers=page(None)),
    }
    spec = {"project": "acme/web", "labels": ["preview", "a b"], "pullRequestState": "opened", **REF}
    host = serve(answers)
    found = pull_requests({"gitlab": {**spec, "api": f"{host.url}/api/v4/"}}, TOKEN, Reach())
    assert found[0] == PullRequest(1, "change 1", "feature-1", "main", f"{1:040x}", ("preview",), "anna")
    assert [(one.number, one.head_sha) for one in found[1:]] == [(2, "")]


def test_without_a_state_all_are_listed_as_upstream_does(serve: Serve) -> None:
    host = serve({"/api/v4/projects/7/merge_requests": Replay([])})
    assert pull_requests({"gitlab": {"project": "7", "api": host.url}}, {}, Reach()) == ()
    assert host.lines == ["/api/v4/projects/7/merge_requests?per_page=100"]


def test_a_missing_project_is_not_found(serve: Serve) -> None:
    with pytest.raises(ProviderError, match="error listing merge requests for project 'gone'") as error:
        pull_requests({"gitlab": {"project": "gone", "api": serve({}).url}}, {}, Reach())
    assert error.value.not_found
