"""Events of pull requests: payloads as the hosts document them, and the generators that they concern."""

from __future__ import annotations

import base64
import hmac
import json
from typing import Any

import pytest

from syncline.argo.webhooks import PullRequestEvent, Received, WebhookRefused, concerns, receive
from syncline.argo.webhooks.pulls import ACTIONS
from syncline.base.secret import Secret

GITHUB: dict[str, Any] = {
    "action": "opened",
    "number": 2,
    "pull_request": {"number": 2, "state": "open", "head": {"ref": "changes"}, "base": {"ref": "main"}},
    "repository": {
        "name": "Hello-World",
        "full_name": "Codertocat/Hello-World",
        "owner": {"login": "Codertocat"},
        "html_url": "https://github.com/Codertocat/Hello-World",
        "url": "https://api.github.com/repos/Codertocat/Hello-World",
    },
}
GITLAB: dict[str, Any] = {
    "object_kind": "merge_request",
    "event_type": "merge_request",
    "project": {
        "id": 1,
        "web_url": "https://gitlab.example.com/gitlabhq/gitlab-test",
        "path_with_namespace": "gitlabhq/gitlab-test",
    },
    "object_attributes": {"iid": 16, "target_project_id": 14, "source_project_id": 14, "action": "open"},
}
AZURE: dict[str, Any] = {
    "eventType": "git.pullrequest.created",
    "publisherId": "tfs",
    "resource": {
        "repository": {"name": "Fabrikam", "project": {"name": "Fabrikam Fiber"}},
        "pullRequestId": 1,
        "status": "active",
    },
}
GITEA: dict[str, Any] = {
    "action": "synchronized",
    "number": 5,
    "pull_request": {"number": 5, "state": "open"},
    "repository": {
        "name": "web",
        "full_name": "acme/web",
        "owner": {"login": "acme"},
        "html_url": "https://gitea.example.com/acme/web",
    },
}
CLOUD: dict[str, Any] = {
    "pullrequest": {"id": 1, "state": "OPEN"},
    "repository": {"full_name": "acme/web", "links": {"html": {"href": "https://bitbucket.org/acme/web"}}},
}
SERVER: dict[str, Any] = {
    "eventKey": "pr:opened",
    "pullRequest": {
        "id": 1,
        "toRef": {
            "id": "refs/heads/main",
            "repository": {
                "slug": "web",
                "project": {"key": "SHOP"},
                "links": {"self": [{"href": "https://bb.example.com/projects/SHOP/repos/web/browse"}]},
            },
        },
    },
}
EVENTS = {
    "github": PullRequestEvent("github", "Codertocat", "Hello-World", "opened", "api.github.com"),
    "gitlab": PullRequestEvent("gitlab", "14", "gitlabhq/gitlab-test", "open", "gitlab.example.com"),
    "azuredevops": PullRequestEvent("azuredevops", "Fabrikam Fiber", "Fabrikam", "git.pullrequest.created"),
    "gitea": PullRequestEvent("gitea", "acme", "web", "synchronized", "gitea.example.com"),
    "bitbucket": PullRequestEvent("bitbucket", "acme", "web", "pullrequest:updated"),
    "bitbucketServer": PullRequestEvent("bitbucketServer", "SHOP", "web", "pr:opened", "bb.example.com"),
}
CALLS: list[tuple[dict[str, str], Any, PullRequestEvent]] = [
    ({"x-github-event": "pull_request"}, GITHUB, EVENTS["github"]),
    ({"x-gitlab-event": "Merge Request Hook"}, GITLAB, EVENTS["gitlab"]),
    ({"x-gitlab-event": "System Hook"}, GITLAB, EVENTS["gitlab"]),
    ({"x-vss-activityid": "1"}, AZURE, EVENTS["azuredevops"]),
    ({"x-gitea-event": "pull_request", "x-github-event": "pull_request"}, GITEA, EVENTS["gitea"]),
    ({"x-event-key": "pullrequest:updated", "x-hook-uuid": "u"}, CLOUD, EVENTS["bitbucket"]),
    ({"x-event-key": "pr:opened"}, SERVER, EVENTS["bitbucketServer"]),
]


@pytest.mark.parametrize(("headers", "payload", "event"), CALLS, ids=[str(call[2].host) for call in CALLS])
def test_a_call_tells_its_pull_request(headers: dict[str, str], payload: Any, event: PullRequestEvent) -> None:
    assert receive(headers, json.dumps(payload).encode(), {}) == Received(pull=event)


def test_the_actions_of_github_gitlab_and_azure_are_those_of_upstream() -> None:
    assert sorted(ACTIONS["github"]) == ["closed", "labeled", "opened", "reopened", "synchronize", "unlabeled"]
    assert sorted(ACTIONS["gitlab"]) == ["close", "merge", "open", "reopen", "update"]
    assert sorted(ACTIONS["azuredevops"]) == [f"git.pullrequest.{one}" for one in ("created", "merged", "updated")]


@pytest.mark.parametrize("action", ["assigned", "edited", "", None, 3])
def test_other_actions_change_no_rows(action: Any) -> None:
    body = json.dumps(GITHUB | {"action": action}).encode()
    assert not receive({"x-github-event": "pull_request"}, body, {})


@pytest.mark.parametrize("payload", [[], 1, None, {}, {"action": "opened"}, {"action": "opened", "repository": []}])
def test_json_of_another_shape_tells_nothing(payload: Any) -> None:
    for headers, _, _ in CALLS:
        assert not receive(headers, json.dumps(payload).encode(), {})


def test_a_call_that_is_not_genuine_is_refused() -> None:
    body = json.dumps(GITHUB).encode()
    secrets = {"webhook.github.secret": Secret("k3y")}
    genuine = {"x-hub-signature-256": "sha256=" + hmac.digest(b"k3y", body, "sha256").hex()}
    assert receive({"x-github-event": "pull_request", **genuine}, body, secrets).pull == EVENTS["github"]
    with pytest.raises(WebhookRefused):
        receive({"x-github-event": "pull_request", "x-hub-signature-256": "sha256=00"}, body, secrets)


@pytest.mark.parametrize(
    ("secrets", "given", "genuine"),
    [
        ({}, "", True),
        ({"username": "hook", "password": "p"}, "hook:p", True),
        ({"username": "hook", "password": "p"}, "hook:q", False),
        ({"username": "hook", "password": "p"}, "", False),
        ({"username": "hook"}, "hook:", True),
        ({"username": "hook"}, "other:", False),
        ({"password": "p"}, ":p", True),
    ],
)
def test_azure_devops_authenticates_by_name_and_password(secrets: Any, given: str, genuine: bool) -> None:
    known = {f"webhook.azuredevops.{key}": Secret(value) for key, value in secrets.items()}
    headers = {"x-vss-activityid": "1", "authorization": f"Basic {base64.b64encode(given.encode()).decode()}"}
    body = json.dumps(AZURE).encode()
    if genuine:
        assert receive(headers, body, known).pull == EVENTS["azuredevops"]
        return
    with pytest.raises(WebhookRefused):
        receive(headers, body, known)


@pytest.mark.parametrize(
    ("host", "generator", "expected"),
    [
        ("github", {"owner": "codertocat", "repo": "hello-world"}, True),
        ("github", {"owner": "codertocat", "repo": "hello-world", "api": "https://api.github.com/"}, True),
        ("github", {"owner": "codertocat", "repo": "hello-world", "api": "https://git.example.com/api/v3"}, False),
        ("github", {"owner": "codertocat", "repo": "other"}, False),
        ("github", {"owner": "other", "repo": "hello-world"}, False),
        ("github", {"owner": "{{ .owner }}", "repo": "hello-world"}, True),
        ("github", {"owner": "{{ .owner }}", "repo": "other"}, False),
        ("gitlab", {"project": "14", "api": "https://gitlab.example.com/"}, True),
        ("gitlab", {"project": "gitlabhq/gitlab-test", "api": "https://gitlab.example.com/"}, True),
        ("gitlab", {"project": "14"}, False),
        ("gitlab", {"project": "15", "api": "https://gitlab.example.com/"}, False),
        ("azuredevops", {"project": "Fabrikam Fiber", "repo": "Fabrikam"}, True),
        ("azuredevops", {"project": "fabrikam fiber", "repo": "Fabrikam"}, False),
        ("gitea", {"owner": "acme", "repo": "web", "api": "https://gitea.example.com/"}, True),
        ("gitea", {"owner": "acme", "repo": "web", "api": "https://other.example.com/"}, False),
        ("bitbucket", {"owner": "acme", "repo": "web"}, True),
        ("bitbucketServer", {"project": "SHOP", "repo": "web", "api": "https://bb.example.com/rest"}, True),
        ("bitbucketServer", {"project": "SHOP", "repo": "web", "api": "https://xx.example.com/rest"}, False),
    ],
)
def test_an_event_concerns_generators_of_its_repository(host: str, generator: Any, expected: bool) -> None:
    assert concerns(EVENTS[host], {host: generator}) is expected
    assert not concerns(EVENTS[host], {"other": generator})
    assert not concerns(EVENTS[host], {})
