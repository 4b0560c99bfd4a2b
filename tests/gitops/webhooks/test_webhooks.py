"""Calls of Git hosts: who is believed, what is read, whom it concerns."""

from __future__ import annotations

import base64
import hmac
import json
from collections.abc import Mapping
from typing import Any

import pytest

from syncline.argo.webhooks import Push, Received, WebhookRefused, affected, receive, touches_dry_source
from syncline.argo.webhooks.match import same_place
from syncline.argo.webhooks.payload import MAX_PUSHES
from syncline.base.secret import Secret
from syncline.kube.objects import Obj

KEY = "k3y"
SECRETS = {
    f"webhook.{name}": Secret(KEY)
    for name in (
        "github.secret",
        "gitlab.secret",
        "gogs.secret",
        "bitbucketserver.secret",
        "bitbucket.uuid",
        "azuredevops.password",
    )
} | {"webhook.azuredevops.username": Secret("hook")}
MAIN = {"ref": "refs/heads/main"}
GITHUB: Obj = MAIN | {"repository": {"html_url": "https://github.com/org/app", "default_branch": "main"}}
GITLAB: Obj = MAIN | {"project": {"web_url": "https://gitlab.com/org/app", "default_branch": "main"}}
BITBUCKET: Obj = {
    "repository": {"links": {"html": {"href": "https://bitbucket.org/org/app"}}},
    "push": {"changes": [{"new": {"name": "main", "type": "branch"}}, {"new": None, "old": {"name": "gone"}}]},
}
SERVER: Obj = {
    "repository": {
        "links": {"clone": [{"href": "ssh://git@h:7999/org/app.git"}, {"href": "https://h/scm/org/app.git"}]}
    },
    "changes": [{"ref": {"id": "refs/heads/main"}}],
}
AZURE: Obj = {
    "eventType": "git.push",
    "resource": {
        "refUpdates": [{"name": "refs/heads/main"}, {"name": "refs/heads/dev"}],
        "repository": {
            "remoteUrl": "https://dev.azure.com/acme/team/_git/web",
            "defaultBranch": "refs/heads/main",
        },
    },
}


def signed(body: bytes, method: str = "sha256", key: str = KEY) -> str:
    return hmac.digest(key.encode(), body, method).hex()


def headers(provider: str, body: bytes, key: str = KEY) -> dict[str, str]:
    match provider:
        case "github":
            return {"x-github-event": "push", "x-hub-signature-256": f"sha256={signed(body, key=key)}"}
        case "github sha1":
            return {"x-github-event": "push", "x-hub-signature": f"sha1={signed(body, 'sha1', key)}"}
        case "gitlab":
            return {"x-gitlab-event": "Push Hook", "x-gitlab-token": key}
        case "gogs":
            return {"x-gogs-event": "push", "x-github-event": "push", "x-gogs-signature": signed(body, key=key)}
        case "gitea":
            return {"x-gitea-event": "push", "x-gitea-signature": signed(body, key=key)}
        case "bitbucket":
            return {"x-event-key": "repo:push", "x-hook-uuid": f"{{{key}}}"}
        case "azuredevops":
            credentials = base64.b64encode(f"hook:{key}".encode()).decode()
            return {"x-vss-activityid": "1", "authorization": f"Basic {credentials}"}
        case _:
            return {"x-event-key": "repo:refs_changed", "x-hub-signature": f"sha256={signed(body, key=key)}"}


def push(url: str = "https://github.com/org/app", ref: str = "refs/heads/main", head: bool = True) -> Push:
    return Push((url,), ref, head)


CALLS: list[tuple[str, Any, tuple[Push, ...]]] = [
    ("github", GITHUB, (push(),)),
    ("github sha1", GITHUB, (push(),)),
    ("gitlab", GITLAB, (push("https://gitlab.com/org/app"),)),
    ("gogs", GITHUB, (push(),)),
    ("gitea", GITHUB, (push(),)),
    (
        "bitbucket",
        BITBUCKET,
        (push("https://bitbucket.org/org/app", "main"), push("https://bitbucket.org/org/app", "gone")),
    ),
    (
        "bitbucketserver",
        SERVER,
        (Push(("ssh://git@h:7999/org/app.git", "https://h/scm/org/app.git"), "refs/heads/main", True),),
    ),
    (
        "azuredevops",
        AZURE,
        (
            push("https://dev.azure.com/acme/team/_git/web"),
            push("https://dev.azure.com/acme/team/_git/web", "refs/heads/dev", False),
        ),
    ),
]


@pytest.mark.parametrize(("provider", "payload", "pushes"), CALLS, ids=[call[0] for call in CALLS])
def test_a_genuine_call_tells_its_pushes(provider: str, payload: Any, pushes: tuple[Push, ...]) -> None:
    body = json.dumps(payload).encode()
    assert receive(headers(provider, body), body, SECRETS) == Received(pushes)


@pytest.mark.parametrize(("provider", "payload", "_pushes"), CALLS, ids=[call[0] for call in CALLS])
def test_a_call_signed_with_another_secret_is_refused_unread(provider: str, payload: Any, _pushes: Any) -> None:
    body = b"{ this is no JSON"
    with pytest.raises(WebhookRefused) as caught:
        receive(headers(provider, body, key="other"), body, SECRETS)
    assert caught.value.status == 401
    assert "other" not in str(caught.value)


@pytest.mark.parametrize("sent", [{}, {"x-hub-signature-256": "sha256="}, {"x-hub-signature": "md5=1"},
                                  {"x-hub-signature": "\udcff"}])  # fmt: skip
def test_a_call_without_a_right_signature_is_refused(sent: Mapping[str, str]) -> None:
    with pytest.raises(WebhookRefused) as caught:
        receive({"x-github-event": "push", **sent}, b"{}", SECRETS)
    assert caught.value.status == 401


def test_a_host_without_a_configured_secret_is_believed_as_upstream() -> None:
    assert receive({"x-github-event": "push"}, json.dumps(GITHUB).encode(), {}) == Received((push(),))


def test_an_unknown_caller_is_told_so_in_upstreams_words() -> None:
    with pytest.raises(WebhookRefused, match=r"^Unknown webhook event$") as caught:
        receive({"content-type": "application/json"}, b"{}", {})
    assert caught.value.status == 400


def test_other_events_of_a_known_host_concern_nobody() -> None:
    assert not receive({"x-github-event": "ping"}, b"{}", {})
    assert not receive({"x-event-key": "diagnostics:ping"}, b"no JSON", {})


@pytest.mark.parametrize("body", [b"", b"[" * 100_000, b"\xff", b"payload=%7B%7D"])
def test_a_body_that_is_no_json_is_refused(body: bytes) -> None:
    with pytest.raises(WebhookRefused, match="is no JSON"):
        receive({"x-github-event": "push"}, body, {})


@pytest.mark.parametrize("body", [[], {}, 1, None, {"ref": 1, "repository": []}, {"repository": {"html_url": {}}}])
def test_json_of_another_shape_tells_nothing(body: Any) -> None:
    for provider in ("github", "gitlab", "bitbucket", "bitbucketserver"):
        assert not receive(headers(provider, b""), json.dumps(body).encode(), {})


def test_the_branches_of_one_call_are_bounded() -> None:
    changes = [{"new": {"name": f"b{n}"}} for n in range(MAX_PUSHES * 2)]
    body = json.dumps(BITBUCKET | {"push": {"changes": changes}}).encode()
    assert len(receive(headers("bitbucket", body), body, {}).pushes) == MAX_PUSHES


# -- whom it concerns -----------------------------------------------------------------------------------------------


def app(name: str, *sources: tuple[str, str]) -> Obj:
    listed = [{"repoURL": url, "targetRevision": revision} for url, revision in sources]
    return {
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "Application",
        "metadata": {"name": name, "namespace": "argocd"},
        "spec": {"source": listed[0]} if len(listed) == 1 else {"sources": listed},
    }


@pytest.mark.parametrize(
    "url",
    [
        "https://github.com/org/app",
        "https://github.com/Org/App.git",
        "http://github.com:8080/org/app/",
        "git@github.com:org/app.git",
        "ssh://git@github.com/org/app",
        "ssh://git@ssh.github.com:443/org/app.git",
        "https://user:token@github.com/org/app",
        "git@altssh.github.com:org/app",
    ],
)
def test_addresses_are_the_same_whatever_scheme_user_port_and_ending(url: str) -> None:
    assert same_place(url) == ("github.com", "org/app")
    assert [ref.name for ref in affected([app("a", (url, "main"))], [push()])] == ["a"]


@pytest.mark.parametrize("url", ["https://github.com/org/app2", "https://github.com.evil.org/org/app", "", "x" * 5000])
def test_another_repository_is_not_concerned(url: str) -> None:
    assert affected([app("a", (url, "main"))], [push()]) == ()


@pytest.mark.parametrize(
    ("target", "pushed", "head", "concerned"),
    [
        ("main", "refs/heads/main", False, True),
        ("refs/heads/main", "refs/heads/main", False, True),
        ("feature/x", "refs/heads/feature/x", False, True),
        ("x", "refs/heads/feature/x", False, False),
        ("other", "refs/heads/main", True, False),
        ("", "refs/heads/main", True, True),
        ("HEAD", "refs/heads/main", True, True),
        ("HEAD", "refs/heads/feature", False, False),
        ("1.x", "refs/tags/v1.4.0", False, True),
        ("1.x", "refs/tags/v2.0.0", False, False),
        ("v1.4.0", "refs/tags/v1.4.0", False, True),
        ("1.4.0", "refs/tags/v1.4.0", False, False),
    ],
)
def test_86_an_application_is_concerned_when_what_it_tracks_may_have_moved(
    target: str, pushed: str, head: bool, concerned: bool
) -> None:
    found = affected([app("a", ("https://github.com/org/app", target))], [push(ref=pushed, head=head)])
    assert bool(found) is concerned


def test_any_source_of_several_counts_and_each_application_is_named_once() -> None:
    apps = [
        app("b", ("https://github.com/org/other", "main"), ("https://github.com/org/app", "main")),
        app("a", ("https://github.com/org/app", "main")),
        app("c", ("https://github.com/org/other", "main")),
    ]
    assert [ref.name for ref in affected(apps, [push(), push()])] == ["a", "b"]


def test_a_push_to_a_dry_source_asks_to_hydrate_and_one_to_the_hydrated_branch_to_refresh() -> None:
    dry = {"repoURL": "https://github.com/org/app", "path": "web", "targetRevision": "main"}
    hydrator = {"drySource": dry, "syncSource": {"targetBranch": "env/test", "path": "web"}}
    one = {**app("a"), "spec": {"sourceHydrator": hydrator}}
    for ref, touched, hydrates in (("main", True, True), ("env/test", True, False), ("other", False, False)):
        pushes = [push(ref=f"refs/heads/{ref}", head=False)]
        assert bool(affected([one], pushes)) is touched, ref
        assert touches_dry_source(one, pushes) is hydrates, ref
