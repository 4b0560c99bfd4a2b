"""Reads organizations and pull requests of GitHub, also of an Enterprise Server: :class:`GitHub`.

Rules: GitHub's REST API (repositories, branches, contents, pulls), and upstream's fields and defaults.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any
from urllib.parse import urlsplit

import msgspec

from syncline.sources.providers.client import Client, base_address, during, file_path, segment
from syncline.sources.providers.filters import clone_url, labelled
from syncline.sources.providers.model import PullRequest, Repository

HEADERS = {"Accept": "application/vnd.github+json", "X-GitHub-Api-Version": "2022-11-28"}


class _Account(msgspec.Struct):
    login: str = ""


class _Repository(msgspec.Struct):
    name: str
    owner: _Account
    id: int = 0
    ssh_url: str | None = None
    clone_url: str | None = None
    default_branch: str | None = None
    topics: list[str] | None = None
    archived: bool | None = None


class _Commit(msgspec.Struct):
    sha: str


class _Branch(msgspec.Struct):
    name: str
    commit: _Commit


class _Label(msgspec.Struct):
    name: str | None = None


class _End(msgspec.Struct):
    ref: str
    sha: str


class _Pull(msgspec.Struct):
    number: int
    title: str
    head: _End
    base: _End
    labels: list[_Label] | None = None
    user: _Account | None = None


def api_address(api: str) -> str:
    """Return the address of the API: an Enterprise Server has it under ``api/v3/`` (upstream's client)."""
    base, host = base_address(api), urlsplit(api).netloc
    public = base.endswith("/api/v3/") or host.startswith("api.") or ".api." in host
    return base if public else f"{base}api/v3/"


class GitHub:
    """An organization (``scmProvider.github``)."""

    def __init__(self, client: Client, spec: Mapping[str, Any], clone_protocol: str) -> None:
        self._client, self._protocol = client, clone_protocol
        self._organization = str(spec.get("organization") or "")
        self._all_branches = spec.get("allBranches") is True
        self._without_archived = spec.get("excludeArchivedRepos") is True

    def repositories(self) -> Iterator[Repository]:
        path = f"orgs/{segment(self._organization, 'organization')}/repos"
        with during(f"listing repositories for {self._organization}"):
            for one in self._client.pages(list[_Repository], path, {"per_page": 100}):
                urls = {"ssh": one.ssh_url, "https": one.clone_url}
                url = clone_url(self._protocol, urls, "GitHub")
                if self._without_archived and one.archived:
                    continue
                branch, labels = one.default_branch or "", tuple(one.topics or ())
                yield Repository(one.owner.login, one.name, url, branch, "", labels, one.id)

    def branches(self, repository: Repository) -> Iterator[Repository]:
        path = f"{_place(repository)}/branches"
        with during(f"listing branches for {repository.organization}/{repository.repository}"):
            for found in self._branches(path, repository.branch):
                yield replace(repository, branch=found.name, sha=found.commit.sha)

    def _branches(self, path: str, default: str) -> Iterable[_Branch]:
        if self._all_branches:
            return self._client.pages(list[_Branch], path, {"per_page": 100})
        found = self._client.find(_Branch, f"{path}/{segment(default, 'branch')}") if default else None
        return [found.value] if found is not None else []  # an empty repository has a default branch by name only

    def path_exists(self, branch: Repository, path: str) -> bool:
        return self._client.exists(f"{_place(branch)}/contents/{file_path(path)}", {"ref": branch.branch})


def _place(repository: Repository) -> str:
    organization = segment(repository.organization, "organization")
    return f"repos/{organization}/{segment(repository.repository, 'repository')}"


def pull_requests(client: Client, spec: Mapping[str, Any]) -> Iterator[PullRequest]:
    """Yield the open pull requests with all labels of ``pullRequest.github``. Raises :class:`SourceError`."""
    owner, name = str(spec.get("owner") or ""), str(spec.get("repo") or "")
    wanted: Sequence[str] = spec.get("labels") or ()
    path = f"repos/{segment(owner, 'owner')}/{segment(name, 'repo')}/pulls"
    with during(f"listing pull requests for {owner}/{name}"):
        for one in client.pages(list[_Pull], path, {"per_page": 100}):
            labels = tuple(label.name for label in one.labels or () if label.name)
            if labelled(labels, wanted):
                author = one.user.login if one.user is not None else ""
                yield PullRequest(one.number, one.title, one.head.ref, one.base.ref, one.head.sha, labels, author)
