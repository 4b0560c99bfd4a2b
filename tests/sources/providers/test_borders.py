"""What a host may do to us, and where requests may go: origins, allowed addresses, sizes, counts, time, nonsense."""

from __future__ import annotations

import gzip
from typing import Any

import pytest
from tests.sources.providers.conftest import Serve
from tests.sources.providers.replay import Asked, Replay, ReplayHost

from syncline.base.clock import VirtualClock
from syncline.base.secret import Secret
from syncline.sources.errors import Problem, SourceError
from syncline.sources.providers.asking import check_allowed, pull_requests, references, repositories
from syncline.sources.providers.model import ProviderError, SecretReference
from syncline.sources.providers.reach import ProviderLimits, Reach
from syncline.sources.remote.address import parse_networks

TOKEN = {SecretReference("team", "creds", "token"): Secret("ghp_secret")}
REF = {"tokenRef": {"secretName": "creds", "key": "token"}}
PULLS = "/api/v3/repos/acme/web/pulls"
PULL = {
    "number": 1,
    "title": "t",
    "head": {"ref": "f", "sha": "a" * 40},
    "base": {"ref": "main", "sha": "b" * 40},
    "user": {"login": "anna"},
}


def spec(api: str, **more: Any) -> dict[str, Any]:
    return {"github": {"owner": "acme", "repo": "web", "api": api, **REF, **more}}


def refused(api: str, reach: Reach | None = None, *problems: Problem) -> SourceError:
    with pytest.raises(SourceError) as error:
        pull_requests(spec(api), TOKEN, reach or Reach())
    assert error.value.problem in problems, error.value
    assert "ghp_secret" not in str(error.value)
    return error.value


def following(page: int) -> dict[str, str]:
    return {"Link": f'<https://elsewhere.example/x?page={page}>; rel="next"'}


# -- where requests go ----------------------------------------------------------------------------------------------


def test_an_address_that_the_administrator_does_not_list_is_not_asked(serve: Serve) -> None:
    host = serve({PULLS: Replay([PULL])})
    reach = Reach(allowed=("https://git.example.com/", f"{host.url}/"))
    error = refused(host.url, reach, Problem.REFUSED)
    allowed = f"must use one of the following: https://git.example.com/, {host.url}/"
    assert error.message == f'scm provider "{host.url}" not allowed, {allowed}'
    assert host.asked == []
    assert len(pull_requests(spec(f"{host.url}/"), TOKEN, reach)) == 1


def test_without_an_address_the_list_does_not_matter() -> None:
    reach = Reach(allowed=("https://git.example.com/",))
    for given in ({"github": {}}, {"bitbucket": {}}, {"awsCodeCommit": {}}, {}):
        check_allowed(given, reach)


@pytest.mark.parametrize(
    "api",
    [
        "http://169.254.169.254/",
        "http://metadata.google.internal/",
        "http://[::ffff:169.254.169.254]/",
        "http://0.0.0.0/",
    ],
)
def test_forbidden_networks_are_not_asked(api: str) -> None:
    assert "lies in a network that repositories may not name" in str(refused(api, None, Problem.REFUSED))


def test_an_administrator_may_forbid_more_networks(serve: Serve) -> None:
    host = serve({PULLS: Replay([PULL])})
    refused(host.url, Reach(networks=parse_networks(["127.0.0.0/8"])), Problem.REFUSED)
    assert host.asked == []


@pytest.mark.parametrize(
    "api",
    ["ftp://git.example/", "file:///etc/passwd", "git.example", "https://", "https://git.example/?a=b", "http://[::1"],
)
def test_an_address_has_to_be_one_of_http(api: str) -> None:
    assert "is no http or https address" in str(refused(api, None, Problem.REFUSED))


def test_a_redirect_to_another_origin_is_not_followed(serve: Serve) -> None:
    other = serve({PULLS: Replay([PULL])})
    host = serve({PULLS: Replay(status=302, headers={"Location": f"{other.url}{PULLS}"})})
    assert "which is another origin" in str(refused(host.url, None, Problem.REFUSED))
    assert other.asked == []


def test_a_redirect_within_the_origin_keeps_the_credentials(serve: Serve) -> None:
    host = serve({PULLS: Replay(status=301, headers={"Location": "/moved"}), "/moved": Replay([PULL])})
    assert len(pull_requests(spec(host.url), TOKEN, Reach())) == 1
    assert [one.headers["authorization"] for one in host.asked] == ["Bearer ghp_secret"] * 2


def test_the_link_to_the_next_page_counts_by_its_number_alone(serve: Serve) -> None:
    answers = {
        f"{PULLS}?per_page=100": Replay([PULL], headers=following(2)),
        f"{PULLS}?page=2&per_page=100": Replay([{**PULL, "number": 2}]),
    }
    assert [one.number for one in pull_requests(spec(serve(answers).url), TOKEN, Reach())] == [1, 2]


# -- how much ---------------------------------------------------------------------------------------------------------


def test_pages_that_never_end_are_an_error(serve: Serve) -> None:
    class Endless(ReplayHost):
        def answer(self, one: Asked) -> Replay:
            return Replay([PULL], headers=following(int(one.query.get("page", "1")) + 1))

    host = Endless({})
    limits = ProviderLimits(pages=5)
    error = refused(host.url, Reach(limits=limits), Problem.TOO_LARGE)
    host.close()
    assert "has more than 5 pages" in str(error)
    assert len(host.asked) == 5


def test_a_page_that_names_itself_is_an_error(serve: Serve) -> None:
    host = serve({PULLS: Replay([PULL], headers=following(1))})
    assert "page 1 names page 1 as the next one" in str(refused(host.url, None, Problem.INVALID))


def test_items_requests_and_time_are_limited(serve: Serve) -> None:
    host = serve({PULLS: Replay([PULL] * 30, headers=following(2)), f"{PULLS}?page=2&per_page=100": Replay([])})
    cases = {
        "lists more than 20 items": ProviderLimits(items=20),
        "needs more than 1 requests": ProviderLimits(requests=1),
        "is not listed within 0 seconds": ProviderLimits(wall_s=0),
    }
    for text, limits in cases.items():
        assert text in str(refused(host.url, Reach(limits=limits), Problem.TOO_LARGE))


def test_time_passes_between_requests(serve: Serve) -> None:
    clock = VirtualClock()

    class Slow(ReplayHost):
        def answer(self, one: Asked) -> Replay:
            clock.advance(50)
            return Replay([PULL], headers=following(int(one.query.get("page", "1")) + 1))

    host = Slow({})
    error = refused(host.url, Reach(clock=clock, limits=ProviderLimits(wall_s=120)), Problem.TOO_LARGE)
    host.close()
    assert "is not listed within 120 seconds" in str(error)
    assert len(host.asked) == 3


def test_a_huge_answer_is_not_read_to_its_end(serve: Serve) -> None:
    packed = gzip.compress(b"[" + b" " * 3_000_000 + b"]")
    reach = Reach(limits=ProviderLimits(bytes=1_000_000))
    plain = Replay(raw=b"[" + b" " * 1_500_000 + b"]")
    for answer in (plain, Replay(raw=packed, headers={"Content-Encoding": "gzip"})):
        assert "larger than 1000000 bytes" in str(refused(serve({PULLS: answer}).url, reach, Problem.TOO_LARGE))


# -- nonsense -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"{",
        b"null",
        b'{"message": "not a list"}',
        b"[1]",
        b'[{"number": "1"}]',
        b'[{"number": 1, "title": null}]',
        b"\xff\xfe[]",
        b"[" * 100_000,
        b'[{"number": 1, "title": "t", "head": {"ref": "f", "sha": 7}, "base": {"ref": "m", "sha": "b"}}]',
    ],
    ids=lambda raw: repr(raw[:30]),
)
def test_an_answer_that_the_api_does_not_promise_is_an_error_that_names_the_host(serve: Serve, raw: bytes) -> None:
    error = refused(serve({PULLS: Replay(raw=raw)}).url, None, Problem.INVALID)
    assert "GitHub: http://127.0.0.1" in str(error) and "the answer is not what its API promises" in str(error)


@pytest.mark.parametrize(
    ("status", "problem"),
    [
        (401, Problem.DENIED),
        (403, Problem.DENIED),
        (404, Problem.UNREACHABLE),
        (410, Problem.UNREACHABLE),
        (418, Problem.INVALID),
        (422, Problem.INVALID),
        (500, Problem.UNREACHABLE),
        (503, Problem.UNREACHABLE),
    ],
)
def test_the_status_says_whether_trying_again_helps(serve: Serve, status: int, problem: Problem) -> None:
    said = {"message": "because\n\x1b[31m of ghp_secret " + "x" * 1000}
    error = refused(serve({PULLS: Replay(said, status)}).url, None, problem)
    assert "because  [31m of ***" in error.message and len(error.message) < 600
    assert "\x1b" not in error.message


def test_a_host_that_is_not_there_is_unreachable(serve: Serve) -> None:
    host = serve({})
    host.close()
    refused(host.url, None, Problem.UNREACHABLE)


@pytest.mark.parametrize(("owner", "repo"), [("", "web"), ("..", "web"), ("acme", "."), ("a\nb", "web")])
def test_names_that_would_change_the_path_are_refused(serve: Serve, owner: str, repo: str) -> None:
    host = serve({})
    with pytest.raises(ProviderError, match="is no name") as error:
        pull_requests(spec(host.url, owner=owner, repo=repo), TOKEN, Reach())
    assert error.value.problem is Problem.INVALID
    assert host.asked == []


def test_names_are_escaped(serve: Serve) -> None:
    host = serve({})
    with pytest.raises(ProviderError):
        pull_requests(spec(host.url, owner="a/../b?c#d%2e", repo="ü"), TOKEN, Reach())
    assert [one.path for one in host.asked] == ["/api/v3/repos/a%2F..%2Fb%3Fc%23d%252e/%C3%BC/pulls"]


# -- Secrets --------------------------------------------------------------------------------------------------------


def in_team(name: str, key: str, **more: Any) -> SecretReference:
    return SecretReference("team", name, key, **more)


TOKEN_REF = {"secretName": "s", "key": "k"}
CA = {"caRef": {"configMapName": "ca", "key": "pem"}}


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ({"github": {"organization": "o"}}, ()),
        ({"github": {"tokenRef": TOKEN_REF}}, (in_team("s", "k"),)),
        ({"gitlab": {"tokenRef": TOKEN_REF, **CA}}, (in_team("s", "k"), in_team("ca", "pem", kind="ConfigMap"))),
        ({"gitea": {"tokenRef": TOKEN_REF}}, (in_team("s", "k"),)),
        ({"bitbucketServer": {"basicAuth": {"username": "u", "passwordRef": TOKEN_REF}}}, (in_team("s", "k"),)),
        ({"bitbucketServer": {"bearerToken": {"tokenRef": TOKEN_REF}}}, (in_team("s", "k"),)),
        ({"bitbucket": {"user": "u", "appPasswordRef": TOKEN_REF}}, (in_team("s", "k"),)),
        ({"bitbucket": {"bearerToken": {"tokenRef": TOKEN_REF}}}, (in_team("s", "k"),)),
        ({"azureDevOps": {"accessTokenRef": TOKEN_REF}}, (in_team("s", "k"),)),
        ({"azuredevops": {"tokenRef": TOKEN_REF}}, (in_team("s", "k"),)),
        ({"awsCodeCommit": {"role": "r"}}, ()),
        ({}, ()),
    ],
)
def test_references_name_what_has_to_be_read_from_the_sets_namespace(given: Any, named: Any) -> None:
    assert references(given, "team") == named


def test_a_github_app_is_a_secret_of_the_control_namespace() -> None:
    found = references({"github": {"appSecretName": "app", "tokenRef": TOKEN_REF}}, "team", "control")
    assert {(one.namespace, one.name, one.purpose) for one in found} == {("control", "app", "github-app")}
    assert {one.key for one in found if not one.optional} == {"githubAppID", "githubAppPrivateKey"}


def test_a_reference_that_was_not_read_is_named_before_anything_is_asked(serve: Serve) -> None:
    host = serve({})
    with pytest.raises(ProviderError, match="Secret creds has no key 'token'") as error:
        pull_requests(spec(host.url), {}, Reach())
    assert error.value.problem is Problem.DENIED
    assert host.asked == []


def test_a_generator_without_a_host_is_an_error() -> None:
    with pytest.raises(ProviderError, match="no SCM provider implementation configured"):
        repositories({"cloneProtocol": "ssh"}, {}, Reach())
    with pytest.raises(ProviderError, match="no Pull Request provider implementation configured"):
        pull_requests({"awsCodeCommit": {}}, {}, Reach())


def test_an_unknown_clone_protocol_is_refused_in_upstreams_words(serve: Serve) -> None:
    repo = {"id": 1, "name": "web", "owner": {"login": "acme"}}
    host = serve({"/api/v3/orgs/acme/repos": Replay([repo])})
    with pytest.raises(ProviderError, match="unknown clone protocol for GitHub ftp; one of https, ssh"):
        repositories({"github": {"organization": "acme", "api": host.url}, "cloneProtocol": "ftp"}, {}, Reach())
