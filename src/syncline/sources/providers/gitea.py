"""Reads organizations and pull requests of Gitea and Forgejo: :class:`Gitea`.

Rules: Gitea's API v1 (organizations, branches, contents, labels, pulls), and upstream's fields. Upstream reads the
first page of each list; all are read here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import msgspec

from syncline.sources.providers.client import Client, base_address, during, file_path, segment
from syncline.sources.providers.filters import clone_url, labelled
from syncline.sources.providers.model import PullRequest, Repository

API = "api/v1/"
PAGE = 50
"""What Gitea gives at most unless it is configured."""


class _Repository(msgspec.Struct):
    id: int
    name: str
    ssh_url: str | None = None
    html_url: str | None = None
    default_branch: str | None = None
    archived: bool | None = None
    empty: bool | None = None


class _Label(msgspec.Struct):
    name: str


class _Commit(msgspec.Struct):
    id: str


class _Branch(msgspec.Struct):
    name: str
    commit: _Commit


class _User(msgspec.Struct):
    login: str = ""


class _End(msgspec.Struct):
    ref: str
    sha: str


class _Pull(msgspec.Struct):
    number: int
    title: str
    head: _End
    base: _End
    labels: list[_Label] | None = None
    user: _User | None = None


def api_address(api: str) -> str:
    """Return the address of the API version 1."""
    return base_address(api) + API


class Gitea:
    """An organization (``scmProvider.gitea``)."""

    def __init__(self, client: Client, spec: Mapping[str, Any], clone_protocol: str) -> None:
        self._client, self._protocol = client, clone_protocol
        self._owner = str(spec.get("owner") or "")
        self._all_branches = spec.get("allBranches") is True
        self._without_archived = spec.get("excludeArchivedRepos") is True

    def repositories(self) -> Iterator[Repository]:
        with during(f"listing repositories for {self._owner}"):
            path = f"orgs/{segment(self._owner, 'owner')}/repos"
            for one in self._client.pages(list[_Repository], path, {"limit": PAGE}):
                url = clone_url(self._protocol, {"ssh": one.ssh_url, "https": one.html_url}, "Gitea")
                if (self._without_archived and one.archived) or one.empty:
                    continue
                listed = self._client.pages(list[_Label], f"{self._place(one.name)}/labels", {"limit": PAGE})
                labels = tuple(label.name for label in listed)
                yield Repository(self._owner, one.name, url, one.default_branch or "", "", labels, one.id)

    def branches(self, repository: Repository) -> Iterator[Repository]:
        path = f"{self._place(repository.repository)}/branches"
        with during(f"listing branches for {repository.organization}/{repository.repository}"):
            for found in self._branches(path, repository.branch):
                yield replace(repository, branch=found.name, sha=found.commit.id)

    def _branches(self, path: str, default: str) -> Iterable[_Branch]:
        if self._all_branches:
            return self._client.pages(list[_Branch], path, {"limit": PAGE})
        return [self._client.get(_Branch, f"{path}/{segment(default, 'branch')}").value]

    def path_exists(self, branch: Repository, path: str) -> bool:
        place = f"{self._place(branch.repository)}/contents/{file_path(path)}"
        return self._client.exists(place, {"ref": branch.branch}, method="GET")

    def _place(self, name: str) -> str:
        return f"repos/{segment(self._owner, 'owner')}/{segment(name, 'repository')}"


def pull_requests(client: Client, spec: Mapping[str, Any]) -> Iterator[PullRequest]:
    """Yield the open pull requests with all labels of ``pullRequest.gitea``. Raises :class:`SourceError`."""
    owner, name = str(spec.get("owner") or ""), str(spec.get("repo") or "")
    path = f"repos/{segment(owner, 'owner')}/{segment(name, 'repo')}/pulls"
    with during(f"listing pull requests for {owner}/{name}"):
        for one in client.pages(list[_Pull], path, {"limit": PAGE, "state": "open"}):
            labels = tuple(label.name for label in one.labels or ())
            if labelled(labels, spec.get("labels") or ()):
                author = one.user.login if one.user is not None else ""
                yield PullRequest(one.number, one.title, one.head.ref, one.base.ref, one.head.sha, labels, author)
