"""Bitbucket Server and Bitbucket Cloud, as their REST documentation answers."""

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

SECRETS = {
    SecretReference("argocd", "creds", "token"): Secret("bb-token"),
    SecretReference("argocd", "creds", "password"): Secret("bb-password"),
}
BEARER = {"bearerToken": {"tokenRef": {"secretName": "creds", "key": "token"}}}
BASIC = {"basicAuth": {"username": "anna", "passwordRef": {"secretName": "creds", "key": "password"}}}
PROJECT = "/rest/api/1.0/projects/SHOP/repos"


def basic(user: str, password: str) -> str:
    return "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()


def server_repo(name: str, slug: str, number: int) -> dict[str, Any]:
    links = [
        {"href": f"https://bb.example/scm/shop/{slug}.git", "name": "http"},
        {"href": f"ssh://git@bb.example:7999/shop/{slug}.git", "name": "ssh"},
    ]
    return {"id": number, "slug": slug, "name": name, "project": {"key": "SHOP"}, "links": {"clone": links}}


def ref(name: str, sha: str) -> dict[str, Any]:
    return {"id": f"refs/heads/{name}", "displayId": name, "type": "BRANCH", "latestCommit": sha, "isDefault": True}


def server_page(*values: Any, following: int | None = None) -> Replay:
    last = {"isLastPage": following is None, "nextPageStart": following}
    return Replay({"size": len(values), "limit": 100, "start": 0, "values": list(values), **last})


def small_server() -> dict[str, Replay | list[Replay]]:
    return {
        f"{PROJECT}?limit=100": server_page(server_repo("Web Shop", "web-shop", 1), following=25),
        f"{PROJECT}?limit=100&start=25": server_page(server_repo("empty", "empty", 2), server_repo("bare", "bare", 3)),
        f"{PROJECT}/web-shop/branches/default": Replay(ref("main", "a" * 40)),
        f"{PROJECT}/bare/branches/default": Replay(raw=b"", status=204),
        f"{PROJECT}/web-shop/branches?limit=100": server_page(ref("main", "a" * 40), ref("x/y", "b" * 40)),
    }


def ask_server(host: ReplayHost, filters: list[Any] | None = None, **more: Any) -> tuple[Repository, ...]:
    protocol = more.pop("cloneProtocol", "")
    given = {"project": "SHOP", "api": host.url, **more}
    return repositories({"bitbucketServer": given, "filters": filters, "cloneProtocol": protocol}, SECRETS, Reach())


def test_server_repositories_are_asked_by_their_slug_and_empty_ones_are_left_out(serve: Serve) -> None:
    host = serve(small_server())
    found = ask_server(host, **BEARER)
    ssh = "ssh://git@bb.example:7999/shop/web-shop.git"
    assert found == (Repository("SHOP", "Web Shop", ssh, "main", "a" * 40, (), 1),)
    assert {one.headers["authorization"] for one in host.asked} == {"Bearer bb-token"}
    assert {one.headers["x-atlassian-token"] for one in host.asked} == {"no-check"}


def test_server_takes_a_password_another_protocol_and_all_branches(serve: Serve) -> None:
    host = serve(small_server())
    found = ask_server(host, **BASIC, cloneProtocol="https", allBranches=True)
    assert [(one.url, one.branch) for one in found] == [
        ("https://bb.example/scm/shop/web-shop.git", "main"),
        ("https://bb.example/scm/shop/web-shop.git", "x/y"),
    ]
    assert {one.headers["authorization"] for one in host.asked} == {basic("anna", "bb-password")}


@pytest.mark.parametrize("ending", ["", "/", "/rest", "/rest/"])
def test_server_finds_the_api_below_rest_and_paths_on_the_branch(serve: Serve, ending: str) -> None:
    answers = small_server() | {
        f"{PROJECT}/web-shop/browse/deploy?at=main&limit=100&type=true": Replay({"type": "DIRECTORY"})
    }
    host = serve(answers)
    for path, expected in (("deploy", 1), ("gone", 0)):
        found = ask_server(host, [{"pathsExist": [path]}], api=host.url + ending)
        assert len(found) == expected


def test_server_pages_that_do_not_advance_are_an_error(serve: Serve) -> None:
    host = serve({PROJECT: server_page(following=0)})
    with pytest.raises(ProviderError, match="the page at 0 says that the next one starts at 0") as error:
        ask_server(host)
    assert error.value.problem is Problem.INVALID


def test_server_pull_requests_have_no_labels(serve: Serve) -> None:
    def pull(number: int) -> dict[str, Any]:
        author = {"user": {"name": "anna", "slug": "anna", "displayName": "Anna"}, "role": "AUTHOR"}
        ends = {"fromRef": ref("feature", "c" * 40), "toRef": ref("main", "d" * 40)}
        return {"id": number, "title": f"change {number}", "state": "OPEN", "author": author, **ends}

    path = f"{PROJECT}/web/pull-requests"
    answers = {f"{path}?limit=100": server_page(pull(1), following=100), f"{path}?limit=100&start=100": server_page()}
    host = serve(answers)
    spec = {"project": "SHOP", "repo": "web", "api": host.url, **BASIC}
    found = pull_requests({"bitbucketServer": spec}, SECRETS, Reach())
    assert found == (PullRequest(1, "change 1", "feature", "main", "c" * 40, (), "anna"),)
    with pytest.raises(ProviderError) as error:
        pull_requests({"bitbucketServer": {**spec, "repo": "gone"}}, SECRETS, Reach())
    assert error.value.not_found


# -- Bitbucket Cloud ------------------------------------------------------------------------------------------------

CLOUD = "/2.0/repositories/acme"


def cloud_repo(slug: str, main: str | None = "main") -> dict[str, Any]:
    links = [
        {"name": "https", "href": f"https://anna@bitbucket.org/acme/{slug}.git"},
        {"name": "ssh", "href": f"git@bitbucket.org:acme/{slug}.git"},
    ]
    branch = {"type": "branch", "name": main} if main else None
    return {"slug": slug, "uuid": f"{{{slug}-uuid}}", "links": {"clone": links}, "mainbranch": branch}


def cloud_branch(name: str, sha: str) -> dict[str, Any]:
    return {"type": "branch", "name": name, "target": {"type": "commit", "hash": sha}}


def ask_cloud(host: ReplayHost, filters: list[Any] | None = None, **more: Any) -> tuple[Repository, ...]:
    given = {"owner": "acme", "user": "anna", "appPasswordRef": {"secretName": "creds", "key": "password"}, **more}
    return repositories(
        {"bitbucket": given, "filters": filters}, SECRETS, Reach(bases={"bitbucket": f"{host.url}/2.0"})
    )


def cloud(serve: Serve, elsewhere: str = "") -> ReplayHost:
    host = serve({})
    following = f"{elsewhere or host.url}{CLOUD}?page=2&role=member&pagelen=100"
    first = [cloud_repo("web"), cloud_repo("new", None)]
    answers = {
        f"{CLOUD}?pagelen=100&role=member": Replay({"values": first, "next": following}),
        f"{CLOUD}?page=2&pagelen=100&role=member": Replay({"values": [cloud_repo("api", "x/y")]}),
        f"{CLOUD}/web/refs/branches/main": Replay(cloud_branch("main", "a" * 40)),
        f"{CLOUD}/api/refs/branches/x/y": Replay(cloud_branch("x/y", "b" * 40)),
        f"{CLOUD}/web/refs/branches?pagelen=100": Replay({"values": [cloud_branch("main", "a" * 40)]}),
        f"{CLOUD}/api/refs/branches?pagelen=100": Replay({"values": []}),
        f"{CLOUD}/web/src/{'a' * 40}/deploy?format=meta": Replay({"type": "commit_directory"}),
    }
    host.answers.update({key: [one] for key, one in answers.items()})
    return host


def test_cloud_repositories_come_from_all_pages_and_empty_ones_are_left_out(serve: Serve) -> None:
    host = cloud(serve)
    found = ask_cloud(host)
    ssh = "git@bitbucket.org:acme/web.git"
    assert found[0] == Repository("acme", "web", ssh, "main", "a" * 40, (), "{web-uuid}")
    assert [(one.repository, one.branch) for one in found] == [("web", "main"), ("api", "x/y")]
    assert {one.headers["authorization"] for one in host.asked} == {basic("anna", "bb-password")}
    assert [one.repository for one in ask_cloud(host, allBranches=True)] == ["web"]
    assert [one.repository for one in ask_cloud(host, [{"pathsExist": ["deploy"]}])] == ["web"]


def test_cloud_is_never_asked_elsewhere_than_where_it_was_asked_first(serve: Serve) -> None:
    other = serve({})
    with pytest.raises(ProviderError, match=r"links to .* as the next page, which is another origin") as error:
        ask_cloud(cloud(serve, elsewhere=other.url))
    assert error.value.problem is Problem.REFUSED
    assert other.asked == []


def test_cloud_pull_requests_take_a_token_a_password_or_neither(serve: Serve) -> None:
    def pull(number: int) -> dict[str, Any]:
        ends = {
            "source": {"branch": {"name": "feature"}, "commit": {"hash": "c" * 12}},
            "destination": {"branch": {"name": "main"}, "commit": {"hash": "d" * 12}},
        }
        return {"id": number, "title": f"change {number}", "state": "OPEN", "author": {"nickname": "anna"}, **ends}

    host = serve({f"{CLOUD}/web/pullrequests?pagelen=50": Replay({"values": [pull(1)]})})
    spec = {"owner": "acme", "repo": "web", "api": f"{host.url}/2.0"}
    for credentials in (BEARER, BASIC, {}):
        found = pull_requests({"bitbucket": {**spec, **credentials}}, SECRETS, Reach())
        assert found == (PullRequest(1, "change 1", "feature", "main", "c" * 12, (), "anna"),)
    given = [one.headers.get("authorization") for one in host.asked]
    assert given == ["Bearer bb-token", basic("anna", "bb-password"), None]
    with pytest.raises(ProviderError) as error:
        pull_requests({"bitbucket": {**spec, "repo": "gone"}}, {}, Reach())
    assert error.value.not_found
