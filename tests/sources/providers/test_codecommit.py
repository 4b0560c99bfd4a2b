"""AWS CodeCommit: signatures as AWS documents them, identities of the process, repositories."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import pytest
from tests.sources.providers.replay import Asked, Replay, ReplayHost

from syncline.base.clock import VirtualClock
from syncline.base.secret import Secret
from syncline.sources.errors import Problem
from syncline.sources.providers.asking import repositories
from syncline.sources.providers.aws import AwsRequest, Identity, own_identity, signed
from syncline.sources.providers.model import ProviderError, Repository
from syncline.sources.providers.reach import Reach

NOW = datetime(2015, 8, 30, 12, 36, 0, tzinfo=UTC)
EXAMPLE = Identity("AKIDEXAMPLE", Secret("wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"))
FORM = {"content-type": "application/x-www-form-urlencoded; charset=utf-8"}
LIST_USERS = "https://iam.amazonaws.com/?Action=ListUsers&Version=2010-05-08"
SUITE = "https://example.amazonaws.com/"


@pytest.mark.parametrize(
    ("request_", "names", "signature"),
    [
        (
            AwsRequest(LIST_USERS, "iam", "us-east-1", "GET", FORM),
            "content-type;host;x-amz-date",
            "5d672d79c15b13162d9279b0855cfba6789a8edb4c82c400e06b5924a6f2b5d7",
        ),
        (
            AwsRequest(SUITE, "service", "us-east-1", "GET"),
            "host;x-amz-date",
            "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31",
        ),
        (
            AwsRequest(SUITE, "service", "us-east-1", "POST"),
            "host;x-amz-date",
            "5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b",
        ),
    ],
    ids=["IAM ListUsers of the guide", "get-vanilla", "post-vanilla"],
)
def test_requests_are_signed_as_aws_documents_it(request_: AwsRequest, names: str, signature: str) -> None:
    headers = signed(request_, EXAMPLE, NOW)
    scope = f"AKIDEXAMPLE/20150830/us-east-1/{request_.service}/aws4_request"
    value = f"AWS4-HMAC-SHA256 Credential={scope}, SignedHeaders={names}, Signature={signature}"
    assert headers == {"X-Amz-Date": "20150830T123600Z", "Authorization": value}


# -- identities -----------------------------------------------------------------------------------------------------

KEYS = {"AWS_ACCESS_KEY_ID": "AKIA1", "AWS_SECRET_ACCESS_KEY": "shh"}
ROLE = "arn:aws:iam::123456789012:role/reader"
ASSUMED = """<AssumeRoleResponse><AssumeRoleResult><Credentials><AccessKeyId>ASIA2</AccessKeyId>
<SecretAccessKey>also+shh</SecretAccessKey><SessionToken>session</SessionToken></Credentials></AssumeRoleResult>
</AssumeRoleResponse>"""


class Cloud(ReplayHost):
    """The services of AWS that are used, by target and then by the body of the request."""

    def __init__(self, targets: Mapping[str, Any] | None = None) -> None:
        super().__init__({"/v2/credentials": Replay({"AccessKeyId": "ASIA3", "SecretAccessKey": "s", "Token": "t"})})
        self.targets: Mapping[str, Any] = targets or {}

    def answer(self, one: Asked) -> Replay:
        if one.method == "GET":
            return super().answer(one)
        target = one.headers.get("x-amz-target", "").rpartition(".")[2]
        if not target:
            return Replay(raw=ASSUMED.encode(), headers={"Content-Type": "text/xml"})
        found: Callable[[Any], Any] | Any = self.targets[target]
        value = found(json.loads(one.body)) if callable(found) else found
        return value if isinstance(value, Replay) else Replay(value)

    def reach(self, **environment: str) -> Reach:
        bases = dict.fromkeys(("codecommit", "tagging", "sts"), f"{self.url}/")
        return Reach(bases=bases, environment=environment, clock=VirtualClock(NOW))


@pytest.fixture
def cloud() -> Any:
    hosts: list[Cloud] = []

    def start(**targets: Any) -> Cloud:
        hosts.append(Cloud(targets))
        return hosts[-1]

    yield start
    for host in hosts:
        host.close()


def form_of(one: Asked) -> dict[str, str]:
    return {name: values[0] for name, values in parse_qs(one.body.decode()).items()}


def test_keys_of_the_environment_come_first(cloud: Any) -> None:
    found = own_identity("eu-west-1", cloud().reach(**KEYS, AWS_SESSION_TOKEN="st"))
    assert (found.key, found.secret.reveal(), found.session) == ("AKIA1", "shh", Secret("st"))


def test_a_web_identity_is_exchanged_without_a_signature(cloud: Any, tmp_path: Path) -> None:
    token, host = tmp_path / "token", cloud()
    token.write_text("jwt\n")
    found = own_identity("eu-west-1", host.reach(AWS_WEB_IDENTITY_TOKEN_FILE=str(token), AWS_ROLE_ARN=ROLE))
    assert (found.key, found.session) == ("ASIA2", Secret("session"))
    form = form_of(host.asked[0])
    assert (form["Action"], form["WebIdentityToken"], form["RoleArn"]) == ("AssumeRoleWithWebIdentity", "jwt", ROLE)
    assert "authorization" not in host.asked[0].headers


def test_a_container_is_asked_with_its_token(cloud: Any, tmp_path: Path) -> None:
    token, host = tmp_path / "token", cloud()
    token.write_text("pod-token")
    environment = {"AWS_CONTAINER_CREDENTIALS_FULL_URI": f"{host.url}/v2/credentials"}
    found = own_identity("eu-west-1", host.reach(**environment, AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE=str(token)))
    assert (found.key, found.session) == ("ASIA3", Secret("t"))
    assert host.asked[0].headers["authorization"] == "pod-token"


@pytest.mark.parametrize(
    ("environment", "text", "problem"),
    [
        ({}, "the controller has no identity", Problem.DENIED),
        ({"AWS_WEB_IDENTITY_TOKEN_FILE": "/nonexistent", "AWS_ROLE_ARN": ROLE}, "cannot be read", Problem.DENIED),
        ({"AWS_CONTAINER_CREDENTIALS_FULL_URI": "http://evil.example/"}, "no address of a container", Problem.REFUSED),
    ],
)
def test_without_an_identity_the_error_says_what_is_missing(
    cloud: Any, environment: dict[str, str], text: str, problem: Problem
) -> None:
    with pytest.raises(ProviderError, match=text) as error:
        own_identity("eu-west-1", cloud().reach(**environment))
    assert error.value.problem is problem


# -- repositories ---------------------------------------------------------------------------------------------------


def metadata(body: Any) -> Any:
    name = body["repositoryName"]
    found = {
        "accountId": "123456789012",
        "repositoryId": f"id-{name}",
        "repositoryName": name,
        "cloneUrlSsh": f"ssh://git-codecommit.eu-west-1.amazonaws.com/v1/repos/{name}",
        "cloneUrlHttp": f"https://git-codecommit.eu-west-1.amazonaws.com/v1/repos/{name}",
    }
    return {"repositoryMetadata": found | ({"defaultBranch": "main"} if name != "empty" else {})}


def listing(body: Any) -> Any:
    if body.get("nextToken"):
        return {"repositories": [{"repositoryName": "api", "repositoryId": "2"}]}
    return {"repositories": [{"repositoryName": "web"}, {"repositoryName": "empty"}], "nextToken": "more"}


def ask(host: Cloud, filters: Any = (), environment: dict[str, str] | None = None, **more: Any) -> Any:
    protocol = more.pop("cloneProtocol", "")
    spec = {"awsCodeCommit": {"region": "eu-west-1", **more}, "filters": filters, "cloneProtocol": protocol}
    return repositories(spec, {}, host.reach(**(KEYS if environment is None else environment)))


def test_repositories_come_from_all_pages_and_empty_ones_are_left_out(cloud: Any) -> None:
    host = cloud(ListRepositories=listing, GetRepository=metadata)
    found = ask(host)
    ssh = "ssh://git-codecommit.eu-west-1.amazonaws.com/v1/repos/web"
    assert found[0] == Repository("123456789012", "web", ssh, "main", repository_id="id-web")
    assert [one.repository for one in found] == ["web", "api"]
    assert host.asked[0].headers["x-amz-target"] == "CodeCommit_20150413.ListRepositories"
    scope = "Credential=AKIA1/20150830/eu-west-1/codecommit/aws4_request"
    assert all(scope in one.headers["authorization"] for one in host.asked)


@pytest.mark.parametrize(
    ("protocol", "url"),
    [
        ("https", "https://git-codecommit.eu-west-1.amazonaws.com/v1/repos/web"),
        ("https-fips", "https://git-codecommit-fips.eu-west-1.amazonaws.com/v1/repos/web"),
    ],
)
def test_the_protocols_are_those_of_upstream(cloud: Any, protocol: str, url: str) -> None:
    host = cloud(ListRepositories=listing, GetRepository=metadata)
    assert ask(host, cloneProtocol=protocol)[0].url == url


def test_tags_are_grouped_by_key_and_a_role_is_assumed_with_a_signature(cloud: Any) -> None:
    arns = ["arn:aws:codecommit:eu-west-1:123456789012:web", "no arn"]
    resources = {"ResourceTagMappingList": [{"ResourceARN": arn} for arn in arns], "PaginationToken": ""}
    host = cloud(GetResources=resources, GetRepository=metadata)
    tags = [{"key": "team", "value": "a"}, {"key": "team", "value": "b"}, {"key": "gitops"}]
    found = ask(host, role=ROLE, tagFilters=tags, region="", environment={**KEYS, "AWS_REGION": "eu-west-1"})
    assert [one.repository for one in found] == ["web"]
    assert form_of(host.asked[0])["RoleArn"] == ROLE
    assert "Credential=AKIA1/20150830/eu-west-1/sts/" in host.asked[0].headers["authorization"]
    body = json.loads(host.asked[1].body)
    assert body["TagFilters"] == [{"Key": "team", "Values": ["a", "b"]}, {"Key": "gitops"}]
    assert "Credential=ASIA2/20150830/eu-west-1/tagging/" in host.asked[1].headers["authorization"]
    assert host.asked[1].headers["x-amz-security-token"] == "session"


def test_all_branches_and_paths_of_every_kind(cloud: Any) -> None:
    def folder(body: Any) -> Any:
        if body["folderPath"] == "/gone":
            kind = "com.amazonaws.codecommit#FolderDoesNotExistException"
            return Replay({"__type": kind, "message": "no such folder"}, 400)
        entries = {"files": [{"relativePath": "app.yaml"}], "subFolders": [{"relativePath": "base"}]}
        return entries | {"subModules": [{"relativePath": "sub"}], "symbolicLinks": [{"relativePath": "link"}]}

    branches = {"branches": ["main", "dev"]}
    host = cloud(ListRepositories=listing, GetRepository=metadata, ListBranches=branches, GetFolder=folder)
    assert [one.branch for one in ask(host, [{"repositoryMatch": "web"}], allBranches=True)] == ["main", "dev"]
    for path, expected in {
        **dict.fromkeys(("deploy/app.yaml", "deploy/base/", "sub", "link", "/"), True),
        **dict.fromkeys(("deploy/none", "gone/app.yaml"), False),
    }.items():
        found = ask(host, [{"repositoryMatch": "web"}, {"pathsExist": [path]}])
        assert bool(found) is expected, path


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"region": "evil.example/"}, "AWS region 'evil.example/' is no region"),
        ({"region": ""}, "AWS region '' is no region"),
        ({"role": "me"}, "role 'me' is no ARN of a role"),
    ],
)
def test_what_would_name_another_host_is_refused(cloud: Any, fields: dict[str, str], text: str) -> None:
    host = cloud()
    with pytest.raises(ProviderError) as error:
        ask(host, **fields)
    assert error.value.message == text and error.value.problem is Problem.INVALID
    assert host.asked == []


def test_throttling_says_when_to_ask_again_and_other_errors_are_named(cloud: Any) -> None:
    throttled = Replay({"__type": "ThrottlingException", "message": "Rate exceeded"}, 400)
    with pytest.raises(ProviderError) as error:
        ask(cloud(ListRepositories=throttled))
    assert error.value.problem is Problem.UNREACHABLE and error.value.retry_at is not None
    denied = Replay({"__type": "AccessDeniedException", "Message": "User is not authorized"}, 400)
    with pytest.raises(ProviderError) as error:
        ask(cloud(ListRepositories=denied))
    assert (error.value.kind, error.value.problem) == ("AccessDeniedException", Problem.DENIED)
    assert "User is not authorized" in error.value.message
