"""Authenticates a webhook call of a Git host and parses its pushes and pull requests."""

from __future__ import annotations

import base64
import hashlib
import hmac
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, assert_never

import msgspec

from syncline.argo.webhooks.pulls import ACTIONS, PullRequestEvent, pull_event, text_at
from syncline.base.secret import Secret
from syncline.kube.objects import dig

MAX_PUSHES = 100
"""Limit of branches and tags read from one call; Git hosts send far fewer."""


class Provider(StrEnum):
    """The supported Git hosts. Gitea uses Gogs's format."""

    GOGS = "gogs"
    GITHUB = "github"
    GITLAB = "gitlab"
    BITBUCKET = "bitbucket"
    BITBUCKET_SERVER = "bitbucketserver"
    AZURE = "azuredevops"


_SECRET_KEYS = {
    Provider.GOGS: "webhook.gogs.secret",
    Provider.GITHUB: "webhook.github.secret",
    Provider.GITLAB: "webhook.gitlab.secret",
    Provider.BITBUCKET: "webhook.bitbucket.uuid",
    Provider.BITBUCKET_SERVER: "webhook.bitbucketserver.secret",
    Provider.AZURE: "webhook.azuredevops.password",
}
"""Keys in the Secret ``argocd-secret``."""
_AZURE_USER = "webhook.azuredevops.username"

_EVENTS = {
    Provider.GOGS: ("push",),
    Provider.GITHUB: ("push",),
    Provider.GITLAB: ("Push Hook", "Tag Push Hook", "System Hook"),
    Provider.BITBUCKET: ("repo:push",),
    Provider.BITBUCKET_SERVER: ("repo:refs_changed",),
    Provider.AZURE: ("git.push",),
}
_PULL_EVENTS: Mapping[Provider, tuple[str, tuple[str, ...]]] = {
    Provider.GOGS: ("gitea", ("pull_request", "pull_request_label", "pull_request_sync")),
    Provider.GITHUB: ("github", ("pull_request",)),
    Provider.GITLAB: ("gitlab", ("Merge Request Hook", "System Hook")),
    Provider.BITBUCKET: ("bitbucket", tuple(sorted(ACTIONS["bitbucket"]))),
    Provider.BITBUCKET_SERVER: ("bitbucketServer", tuple(sorted(ACTIONS["bitbucketServer"]))),
    Provider.AZURE: ("azuredevops", tuple(sorted(ACTIONS["azuredevops"]))),
}
"""The field of a generator, and the events of pull requests."""


class WebhookRefused(Exception):
    """``status`` is the HTTP status code; the text contains nothing from the request."""

    def __init__(self, status: int, message: str) -> None:
        self.status = status
        super().__init__(message)


@dataclass(frozen=True, slots=True)
class Push:
    """One branch or tag that moved. ``urls``: addresses of the repository from its host."""

    urls: tuple[str, ...]
    ref: str
    """``refs/heads/main``, ``refs/tags/v1``; from Bitbucket the bare name."""
    touched_head: bool
    """Whether it is the default branch, or the host does not report that."""

    @property
    def revision(self) -> str:
        """Return the name that a targetRevision would use."""
        parts = self.ref.split("/", 2)
        return parts[2] if len(parts) == 3 and parts[0] == "refs" else self.ref


@dataclass(frozen=True, slots=True)
class Received:
    """What a call reports. Both are empty for other events."""

    pushes: tuple[Push, ...] = ()
    pull: PullRequestEvent | None = None

    def __bool__(self) -> bool:
        return bool(self.pushes) or self.pull is not None


def receive(headers: Mapping[str, str], body: bytes, secrets: Mapping[str, Secret]) -> Received:
    """Return the pushes, or the event of a pull request, of a call.

    ``headers`` have lower-case names; ``secrets`` are those of ``argocd-secret``. The signature is checked before the
    body is parsed; without a secret the call is trusted, as upstream: it can only cause a refresh. Raises
    :class:`WebhookRefused`.
    """
    provider = _provider(headers)
    secret = secrets.get(_SECRET_KEYS[provider])
    if secret is None and provider is Provider.AZURE and _AZURE_USER in secrets:
        secret = Secret("")  # upstream asks for both as soon as one of them is set
    if secret is not None and not _is_genuine(provider, headers, body, _credential(provider, secret, secrets)):
        raise WebhookRefused(401, f"{provider} webhook: the signature does not match {_SECRET_KEYS[provider]}")
    host, events = _PULL_EVENTS[provider]
    event = _event(provider, headers)
    if provider is not Provider.AZURE and event not in (*_EVENTS[provider], *events):
        return Received()
    try:
        payload = msgspec.json.decode(body)
    except (msgspec.DecodeError, RecursionError):
        raise WebhookRefused(400, f"{provider} webhook: the body is no JSON; choose application/json") from None
    event = event or text_at(payload, "eventType")  # Azure DevOps names it in the body alone
    pushes = _pushes(provider, payload)[:MAX_PUSHES] if event in _EVENTS[provider] else ()
    return Received(pushes, pull_event(host, event, payload) if event in events and not pushes else None)


def _credential(provider: Provider, secret: Secret, secrets: Mapping[str, Secret]) -> bytes:
    """Return what a call has to prove that it knows."""
    if provider is not Provider.AZURE:
        return secret.reveal().encode()
    user = secrets.get(_AZURE_USER)
    return f"{user.reveal() if user is not None else ''}:{secret.reveal()}".encode()


def _provider(headers: Mapping[str, str]) -> Provider:
    """Return the provider. Gogs and Gitea are checked first, as they also send GitHub's headers."""
    if "x-gogs-event" in headers or "x-gitea-event" in headers:
        return Provider.GOGS
    if "x-github-event" in headers:
        return Provider.GITHUB
    if "x-gitlab-event" in headers:
        return Provider.GITLAB
    if "x-hook-uuid" in headers:
        return Provider.BITBUCKET
    if "x-event-key" in headers:
        return Provider.BITBUCKET_SERVER
    if "x-vss-activityid" in headers:
        return Provider.AZURE
    raise WebhookRefused(400, "Unknown webhook event")


def _event(provider: Provider, headers: Mapping[str, str]) -> str:
    match provider:
        case Provider.GOGS:
            return headers.get("x-gogs-event") or headers.get("x-gitea-event", "")
        case Provider.GITHUB:
            return headers.get("x-github-event", "")
        case Provider.GITLAB:
            return headers.get("x-gitlab-event", "")
        case Provider.BITBUCKET | Provider.BITBUCKET_SERVER:
            return headers.get("x-event-key", "")
        case Provider.AZURE:
            return ""
        case _ as never:
            assert_never(never)


def _is_genuine(provider: Provider, headers: Mapping[str, str], body: bytes, secret: bytes) -> bool:
    match provider:
        case Provider.GOGS:
            given = headers.get("x-gogs-signature") or headers.get("x-gitea-signature", "")
            return _same(given, hmac.digest(secret, body, hashlib.sha256).hex())
        case Provider.GITHUB | Provider.BITBUCKET_SERVER:
            return _signed(headers, body, secret)
        case Provider.GITLAB:
            return _same(headers.get("x-gitlab-token", ""), secret.decode())
        case Provider.BITBUCKET:
            return _same(headers.get("x-hook-uuid", "").strip("{}"), secret.decode().strip("{}"))
        case Provider.AZURE:
            return _same(headers.get("authorization", ""), f"Basic {base64.b64encode(secret).decode()}")
        case _ as never:
            assert_never(never)


def _signed(headers: Mapping[str, str], body: bytes, secret: bytes) -> bool:
    """Check ``X-Hub-Signature-256``, or ``X-Hub-Signature`` with the method before the equals sign."""
    given = headers.get("x-hub-signature-256") or headers.get("x-hub-signature", "")
    method, _, digest = given.partition("=")
    if method not in ("sha256", "sha1"):
        return False
    return _same(digest, hmac.digest(secret, body, method).hex())


def _same(given: str, wanted: str) -> bool:
    return hmac.compare_digest(given.encode("utf-8", "surrogateescape"), wanted.encode())


# -- what it says ---------------------------------------------------------------------------------------------------


def _pushes(provider: Provider, payload: Any) -> tuple[Push, ...]:
    match provider:
        case Provider.GOGS | Provider.GITHUB:
            return _one(payload, ("repository", "html_url"), ("repository", "default_branch"))
        case Provider.GITLAB:
            return _one(payload, ("project", "web_url"), ("project", "default_branch"))
        case Provider.BITBUCKET:
            return _bitbucket(payload)
        case Provider.BITBUCKET_SERVER:
            return _bitbucket_server(payload)
        case Provider.AZURE:
            return _azure(payload)
        case _ as never:
            assert_never(never)


def _one(payload: Any, url: tuple[str, ...], default_branch: tuple[str, ...]) -> tuple[Push, ...]:
    ref, default = text_at(payload, "ref"), text_at(payload, *default_branch)
    address = text_at(payload, *url)
    if not ref or not address:
        return ()
    return (Push((address,), ref, not default or ref == f"refs/heads/{default}"),)


def _bitbucket(payload: Any) -> tuple[Push, ...]:
    """Parse Bitbucket's payload, which does not name the default branch."""
    address = text_at(payload, "repository", "links", "html", "href")
    changes = _list(payload, "push", "changes")
    names = [text_at(change, "new", "name") or text_at(change, "old", "name") for change in changes]
    return tuple(Push((address,), name, True) for name in dict.fromkeys(names) if name and address)


def _bitbucket_server(payload: Any) -> tuple[Push, ...]:
    """Parse Bitbucket Server's payload: URLs of all protocols; it does not name the default branch."""
    links = _list(payload, "repository", "links", "clone")
    urls = tuple(url for url in (text_at(link, "href") for link in links) if url)
    refs = [text_at(change, "ref", "id") or text_at(change, "refId") for change in _list(payload, "changes")]
    return tuple(Push(urls, ref, True) for ref in dict.fromkeys(refs) if ref and urls)


def _azure(payload: Any) -> tuple[Push, ...]:
    """Parse Azure DevOps' payload, of which the default branch is a whole ref."""
    address = text_at(payload, "resource", "repository", "remoteUrl")
    default = text_at(payload, "resource", "repository", "defaultBranch")
    refs = [text_at(update, "name") for update in _list(payload, "resource", "refUpdates")]
    return tuple(Push((address,), ref, ref == default) for ref in dict.fromkeys(refs) if ref and address)


def _list(value: Any, *path: str) -> list[Any]:
    found = dig(value, *path, default=[])
    return found if isinstance(found, list) else []
