"""GitHub: organizations, branches, paths and pull requests, as its REST documentation answers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from tests.sources.providers.conftest import Serve
from tests.sources.providers.replay import Replay, ReplayHost

from syncline.base.secret import Secret
from syncline.sources.errors import Problem
from syncline.sources.providers.asking import pull_requests, repositories
from syncline.sources.providers.model import ProviderError, PullRequest, Repository, SecretReference
from syncline.sources.providers.reach import Reach

TOKEN = {SecretReference("argocd", "creds", "token"): Secret("ghp_secret")}
REF = {"tokenRef": {"secretName": "creds", "key": "token"}}


def repo(name: str, number: int, **more: Any) -> dict[str, Any]:
    return {
        "id": number,
        "name": name,
        "full_name": f"acme/{name}",
        "owner": {"login": "acme", "id": 1, "type": "Organization"},
        "private": True,
        "ssh_url": f"git@github.com:acme/{name}.git",
        "clone_url": f"https://github.com/acme/{name}.git",
        "default_branch": "main",
        "topics": ["team-a"],
        "archived": False,
        "permissions": {"pull": True},
        **more,
    }


def branch(name: str, sha: str) -> dict[str, Any]:
    return {"name": name, "commit": {"sha": sha, "url": "https://api.github.com/x"}, "protected": False}


def pull(number: int, **more: Any) -> dict[str, Any]:
    return {
        "number": number,
        "state": "open",
        "title": f"change {number}",
        "draft": False,
        "user": {"login": "octocat"},
        "labels": [{"id": 1, "name": "preview"}, {"id": 2, "name": "ready"}],
        "head": {"ref": f"feature-{number}", "sha": f"{number:040x}"},
        "base": {"ref": "main", "sha": "f" * 40},
        **more,
    }


def link(host: str, page: int) -> dict[str, str]:
    return {"Link": f'<{host}/x?per_page=100&page={page}>; rel="next", <{host}/x?page=9>; rel="last"'}


REPOS, V3 = "/api/v3/orgs/acme/repos?per_page=100", "/api/v3/repos/acme"
PULLS = "/api/v3/repos/acme/web/pulls?per_page=100"


def two_pages() -> dict[str, Replay | list[Replay]]:
    return {
        REPOS: Replay([repo("web", 1), repo("old", 2, archived=True)], headers=link("https://elsewhere.example", 2)),
        "/api/v3/orgs/acme/repos?page=2&per_page=100": Replay([repo("empty", 3), repo("api", 4, topics=None)]),
        f"{V3}/web/branches/main": Replay(branch("main", "a" * 40)),
        f"{V3}/old/branches/main": Replay(branch("main", "b" * 40)),
        f"{V3}/api/branches/main": Replay(branch("main", "c" * 40)),
    }


def ask(host: ReplayHost, reach: Reach | None = None, **github: Any) -> tuple[Repository, ...]:
    filters, protocol = github.pop("filters", []), github.pop("cloneProtocol", "")
    spec = {
        "github": {"organization": "acme", "api": host.url, **REF, **github},
        "filters": filters,
        "cloneProtocol": protocol,
    }
    return repositories(spec, TOKEN, reach or Reach())


def names(found: tuple[Repository, ...]) -> list[str]:
    return [f"{one.repository}@{one.branch}" for one in found]


def test_repositories_come_from_all_pages_and_empty_ones_are_left_out(serve: Serve) -> None:
    host = serve(two_pages())
    found = ask(host)
    assert names(found) == ["web@main", "old@main", "api@main"]
    expected = Repository("acme", "web", "git@github.com:acme/web.git", "main", "a" * 40, ("team-a",), 1)
    assert found[0] == expected
    assert found[2].labels == ()
    assert host.lines[:2] == [REPOS, "/api/v3/orgs/acme/repos?page=2&per_page=100"]
    assert {one.headers["authorization"] for one in host.asked} == {"Bearer ghp_secret"}
    assert {one.headers["accept"] for one in host.asked} == {"application/vnd.github+json"}


@pytest.mark.parametrize("garbage", [Replay(raw=b""), Replay(raw=b"", status=204), Replay(None), Replay({})])
def test_garbage_instead_of_a_branch_is_an_error_and_no_empty_repository(serve: Serve, garbage: Replay) -> None:
    with pytest.raises(ProviderError, match="the answer is not what its API promises") as error:
        ask(serve(two_pages() | {f"{V3}/web/branches/main": garbage}))
    assert error.value.problem is Problem.INVALID


@pytest.mark.parametrize(("hangs_up", "connections"), [(False, 1), (True, 6)])
def test_one_connection_serves_a_question_and_a_host_may_close_it(
    serve: Serve, hangs_up: bool, connections: int
) -> None:
    host = serve(two_pages())
    host.hangs_up = hangs_up
    assert len(ask(host)) == 3
    assert host.connections == connections
    assert len(host.asked) == 6, "nothing that was answered is asked twice"


def test_archived_repositories_are_left_out_on_request_and_https_is_a_protocol(serve: Serve) -> None:
    host = serve(two_pages())
    found = ask(host, excludeArchivedRepos=True, cloneProtocol="https")
    assert names(found) == ["web@main", "api@main"]
    assert found[0].url == "https://github.com/acme/web.git"


def test_all_branches_are_listed_page_by_page(serve: Serve) -> None:
    answers = {
        REPOS: Replay([repo("web", 1)]),
        f"{V3}/web/branches?per_page=100": Replay([branch("main", "a" * 40)], headers=link("http://x", 2)),
        f"{V3}/web/branches?page=2&per_page=100": Replay([branch("feature/x", "b" * 40)]),
    }
    assert names(ask(serve(answers), allBranches=True)) == ["web@main", "web@feature/x"]


def test_paths_are_looked_up_on_the_branch_without_reading_them(serve: Serve) -> None:
    answers = two_pages() | {f"{V3}/web/contents/deploy/kustomize%20d?ref=main": Replay([{"type": "file"}])}
    host = serve(answers)
    found = ask(host, filters=[{"pathsExist": ["deploy/kustomize d/"]}])
    assert names(found) == ["web@main"]
    assert {one.method for one in host.asked if "contents" in one.path} == {"HEAD"}
    assert names(ask(host, filters=[{"pathsDoNotExist": ["deploy/kustomize d"]}])) == ["old@main", "api@main"]


@pytest.mark.parametrize("path", ["../../orgs/other", "a/./b", "a\nb"])
def test_a_path_that_leaves_the_repository_is_refused_before_it_is_asked(serve: Serve, path: str) -> None:
    host = serve(two_pages())
    with pytest.raises(ProviderError, match="is no name") as error:
        ask(host, filters=[{"pathsExist": [path]}])
    assert error.value.problem is Problem.INVALID
    assert not [one for one in host.asked if "contents" in one.path]


def test_no_repositories_is_an_answer(serve: Serve) -> None:
    assert ask(serve({REPOS: Replay([])})) == ()


def test_a_missing_organization_is_not_found_and_named(serve: Serve) -> None:
    with pytest.raises(ProviderError) as error:
        ask(serve({}))
    assert error.value.not_found
    assert error.value.message.startswith("error listing repositories for acme: GitHub: GET http://127.0.0.1:")
    assert error.value.message.endswith("/api/v3/orgs/acme/repos: 404 Not Found: Not Found")


def test_the_api_of_an_enterprise_server_is_found_as_upstream_does(serve: Serve) -> None:
    host = serve({REPOS: Replay([])})
    for api in (host.url, f"{host.url}/", f"{host.url}/api/v3", f"{host.url}/api/v3/"):
        repositories({"github": {"organization": "acme", "api": api}}, {}, Reach())
    assert host.lines == [REPOS] * 4
    assert all("authorization" not in one.headers for one in host.asked)


def test_without_an_api_the_public_one_is_asked(serve: Serve) -> None:
    host = serve({"/api/v3/orgs/acme/repos?per_page=100": Replay([])})
    reach = Reach(bases={"github": f"{host.url}/api/v3/"})
    assert repositories({"github": {"organization": "acme"}}, {}, reach) == ()


def test_pull_requests_come_from_all_pages_with_what_templates_use(serve: Serve) -> None:
    answers = {
        PULLS: Replay([pull(1), pull(2, labels=[])], headers=link("http://x", 2)),
        "/api/v3/repos/acme/web/pulls?page=2&per_page=100": Replay([pull(3, draft=True, user=None)]),
    }
    spec = {"github": {"owner": "acme", "repo": "web", "api": serve(answers).url}}
    found = pull_requests(spec, {}, Reach())
    assert found[0] == PullRequest(1, "change 1", "feature-1", "main", f"{1:040x}", ("preview", "ready"), "octocat")
    assert [(one.number, one.labels, one.author) for one in found[1:]] == [
        (2, (), "octocat"),
        (3, ("preview", "ready"), ""),
    ]


@pytest.mark.parametrize(
    ("labels", "numbers"),
    [((), [1, 2]), (("preview",), [1]), (("preview", "ready"), [1]), (("preview", "other"), [])],
)
def test_b32_all_listed_labels_are_needed(serve: Serve, labels: tuple[str, ...], numbers: list[int]) -> None:
    host = serve({PULLS: Replay([pull(1), pull(2, labels=[])])})
    spec = {"github": {"owner": "acme", "repo": "web", "api": host.url, "labels": list(labels)}}
    assert [one.number for one in pull_requests(spec, {}, Reach())] == numbers


@pytest.mark.parametrize(
    ("filters", "numbers"),
    [
        ([], [1, 2]),
        ([{"branchMatch": "feature-1"}], [1]),
        ([{"branchMatch": "feature", "titleMatch": "2$"}], [2]),
        ([{"branchMatch": "feature-1"}, {"titleMatch": "2$"}], [1, 2]),
        ([{"targetBranchMatch": "release"}], []),
        ([{}], [1, 2]),
    ],
)
def test_conditions_of_a_pull_request_filter_add_up_and_filters_are_alternatives(
    serve: Serve, filters: list[Mapping[str, str]], numbers: list[int]
) -> None:
    host = serve({PULLS: Replay([pull(1), pull(2)])})
    spec = {"github": {"owner": "acme", "repo": "web", "api": host.url}, "filters": filters}
    assert [one.number for one in pull_requests(spec, {}, Reach())] == numbers


def test_a_missing_repository_can_be_told_from_other_errors(serve: Serve) -> None:
    host = serve({"/api/v3/repos/acme/broken/pulls": Replay({"message": "oops"}, 502)})
    for name, not_found in (("gone", True), ("broken", False)):
        with pytest.raises(ProviderError, match=f"error listing pull requests for acme/{name}") as error:
            pull_requests({"github": {"owner": "acme", "repo": name, "api": host.url}}, {}, Reach())
        assert error.value.not_found is not_found
        assert error.value.problem is Problem.UNREACHABLE
