"""Parses events of pull requests and finds the generators that they concern: :func:`pull_event`, :func:`concerns`.

Pure. Rules: upstream ``applicationset/webhook/webhook.go`` for GitHub, GitLab and Azure DevOps, with its lists of
actions; Gitea and Bitbucket, which upstream does not hear, by their documentation.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from syncline.kube.objects import dig


@dataclass(frozen=True, slots=True)
class PullRequestEvent:
    """A pull request that was opened, changed or closed."""

    host: str
    """The field of ``pullRequest``: ``github``, ``gitlab``, ``gitea``, ``bitbucket``, ``bitbucketServer``,
    ``azuredevops``."""
    owner: str
    """Owner, workspace or project; of GitLab the number of the target project."""
    repository: str
    """The name; of GitLab the path of the project with its groups."""
    action: str
    server: str = ""
    """Host name of the API or the web pages; empty if the event does not say it."""


ACTIONS: Mapping[str, frozenset[str]] = {
    "github": frozenset(("opened", "closed", "synchronize", "labeled", "reopened", "unlabeled")),
    "gitlab": frozenset(("open", "close", "reopen", "update", "merge")),
    "azuredevops": frozenset(("git.pullrequest.created", "git.pullrequest.merged", "git.pullrequest.updated")),
    "gitea": frozenset(("opened", "closed", "synchronized", "reopened", "edited", "label_updated", "label_cleared")),
    "bitbucket": frozenset(
        ("pullrequest:created", "pullrequest:updated", "pullrequest:fulfilled", "pullrequest:rejected")
    ),
    "bitbucketServer": frozenset(
        ("pr:opened", "pr:from_ref_updated", "pr:modified", "pr:merged", "pr:declined", "pr:deleted")
    ),
}
"""What changes the rows of a generator, by host."""

_PUBLIC = {"github": "api.github.com", "gitlab": "gitlab.com"}
"""Servers of generators without ``api``; others are not compared by server."""


def pull_event(host: str, event: str, payload: Any) -> PullRequestEvent | None:
    """Return the event of a call, None if it changes no generator's rows. ``event``: the name in the headers."""
    found = _PARSERS[host](event, payload)
    return found if found.repository and found.action in ACTIONS[host] else None


def concerns(event: PullRequestEvent, generator: Mapping[str, Any]) -> bool:
    """Return whether a ``pullRequest`` generator lists the repository of the event. Of a templated name only what is
    not templated counts."""
    given = generator.get(event.host)
    if not isinstance(given, Mapping):
        return False
    api = str(given.get("api") or "")
    server = _server(api) or _PUBLIC.get(event.host, "")
    if server and event.server and "{{" not in api and server.lower() != event.server.lower():
        return False
    if event.host == "gitlab":
        return any(_same(given.get("project"), name) for name in (event.owner, event.repository))
    if event.host == "azuredevops":
        return _equal(given.get("project"), event.owner) and _equal(given.get("repo"), event.repository)
    owner = given.get("project") if event.host == "bitbucketServer" else given.get("owner")
    return _same(owner, event.owner) and _same(given.get("repo"), event.repository)


def _same(given: object, name: str) -> bool:
    """Compare names as these hosts do: without case."""
    return _equal(str(given or "").lower(), name.lower())


def _equal(given: object, name: str) -> bool:
    return given == name or "{{" in str(given or "")


def _server(url: str) -> str:
    try:
        return urlsplit(url).hostname or ""
    except ValueError:
        return ""


# -- hosts ------------------------------------------------------------------------------------------------------------


def _github(_event: str, payload: Any) -> PullRequestEvent:
    owner, name = text_at(payload, "repository", "owner", "login"), text_at(payload, "repository", "name")
    server = _server(text_at(payload, "repository", "url"))
    return PullRequestEvent("github", owner, name, text_at(payload, "action"), server)


def _gitlab(_event: str, payload: Any) -> PullRequestEvent:
    """A system hook has the same body as the hook of a project."""
    number = dig(payload, "object_attributes", "target_project_id", default=0)
    action = text_at(payload, "object_attributes", "action") if _kind(payload) == "merge_request" else ""
    server, path = _server(text_at(payload, "project", "web_url")), text_at(payload, "project", "path_with_namespace")
    owner = str(number) if isinstance(number, int) and number else ""
    return PullRequestEvent("gitlab", owner, path or owner, action, server)


def _kind(payload: Any) -> str:
    return text_at(payload, "object_kind") or text_at(payload, "event_type")


def _azure(_event: str, payload: Any) -> PullRequestEvent:
    owner = text_at(payload, "resource", "repository", "project", "name")
    name = text_at(payload, "resource", "repository", "name")
    return PullRequestEvent("azuredevops", owner, name, text_at(payload, "eventType"))


def _gitea(_event: str, payload: Any) -> PullRequestEvent:
    owner, name = text_at(payload, "repository", "owner", "login"), text_at(payload, "repository", "name")
    server = _server(text_at(payload, "repository", "html_url"))
    return PullRequestEvent("gitea", owner, name, text_at(payload, "action"), server)


def _bitbucket(event: str, payload: Any) -> PullRequestEvent:
    owner, _, name = text_at(payload, "repository", "full_name").partition("/")
    return PullRequestEvent("bitbucket", owner, name, event)


def _bitbucket_server(event: str, payload: Any) -> PullRequestEvent:
    place = ("pullRequest", "toRef", "repository")
    owner, name = text_at(payload, *place, "project", "key"), text_at(payload, *place, "slug")
    links = dig(payload, *place, "links", "self", default=[])
    server = _server(text_at(links[0], "href")) if isinstance(links, list) and links else ""
    return PullRequestEvent("bitbucketServer", owner, name, event, server)


_PARSERS: Mapping[str, Callable[[str, Any], PullRequestEvent]] = {
    "github": _github,
    "gitlab": _gitlab,
    "azuredevops": _azure,
    "gitea": _gitea,
    "bitbucket": _bitbucket,
    "bitbucketServer": _bitbucket_server,
}


def text_at(value: Any, *path: str) -> str:
    """Return a text of a payload, empty if there is none."""
    found = dig(value, *path, default="")
    return found if isinstance(found, str) else ""
