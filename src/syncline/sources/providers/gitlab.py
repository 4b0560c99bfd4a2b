"""Reads groups and merge requests of GitLab, also of one's own: :class:`GitLab`.

Rules: GitLab's REST API v4 (groups, projects, branches, repository files and trees, merge requests), and upstream's
fields and defaults. A file is asked for by HEAD, so that its content is not sent.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import msgspec

from syncline.sources.providers.client import Client, Query, base_address, during, file_path, segment
from syncline.sources.providers.filters import clone_url
from syncline.sources.providers.model import ProviderError, PullRequest, Repository

API = "api/v4/"


class _Namespace(msgspec.Struct):
    full_path: str = ""


class _Project(msgspec.Struct):
    id: int
    path: str
    namespace: _Namespace
    ssh_url_to_repo: str | None = None
    http_url_to_repo: str | None = None
    default_branch: str | None = None
    topics: list[str] | None = None
    tag_list: list[str] | None = None


class _Commit(msgspec.Struct):
    id: str


class _Branch(msgspec.Struct):
    name: str
    commit: _Commit


class _Author(msgspec.Struct):
    username: str = ""


class _Merge(msgspec.Struct):
    iid: int
    title: str
    source_branch: str
    target_branch: str
    sha: str | None = None
    labels: list[str] | None = None
    author: _Author | None = None


def api_address(api: str) -> str:
    """Return the address of the API version 4 (upstream's client)."""
    base = base_address(api)
    return base if base.endswith(f"/{API}") else base + API


class GitLab:
    """A group (``scmProvider.gitlab``)."""

    def __init__(self, client: Client, spec: Mapping[str, Any], clone_protocol: str) -> None:
        self._client, self._protocol, self._spec = client, clone_protocol, spec
        self._group = str(spec.get("group") or "")

    def repositories(self) -> Iterator[Repository]:
        query: dict[str, str | int | bool] = {
            "per_page": 100,
            "include_subgroups": self._spec.get("includeSubgroups") is True,
            "with_shared": self._spec.get("includeSharedProjects") is not False,
        }
        if topic := str(self._spec.get("topic") or ""):
            query["topic"] = topic
        if self._spec.get("includeArchivedRepos") is True:
            query["archived"] = True
        with during(f"listing projects for {self._group}"):
            path = f"groups/{segment(self._group, 'group')}/projects"
            for one in self._client.pages(list[_Project], path, query):
                urls = {"ssh": one.ssh_url_to_repo, "https": one.http_url_to_repo}
                url = clone_url(self._protocol, urls, "Gitlab")
                labels, branch = tuple(one.topics or one.tag_list or ()), one.default_branch or ""
                yield Repository(one.namespace.full_path, one.path, url, branch, "", labels, one.id)

    def branches(self, repository: Repository) -> Iterator[Repository]:
        path = f"projects/{repository.repository_id}/repository/branches"
        with during(f"listing branches for {repository.organization}/{repository.repository}"):
            for found in self._branches(path, repository.branch):
                yield replace(repository, branch=found.name, sha=found.commit.id)

    def _branches(self, path: str, default: str) -> Iterable[_Branch]:
        if self._spec.get("allBranches") is True:
            return self._listed(path)
        found = self._client.find(_Branch, f"{path}/{segment(default, 'branch')}") if default else None
        return [found.value] if found is not None else []

    def _listed(self, path: str) -> Iterator[_Branch]:
        """Yield all branches; a project without a repository has none and answers 404, as upstream takes it."""
        try:
            yield from self._client.pages(list[_Branch], path, {"per_page": 100})
        except ProviderError as error:
            if not error.not_found:
                raise

    def path_exists(self, branch: Repository, path: str) -> bool:
        place = f"projects/{branch.repository_id}/repository"
        file = file_path(path).replace("/", "%2F")
        if self._client.exists(f"{place}/files/{file}", {"ref": branch.branch}):
            return True
        query: Query = {"path": path, "ref": branch.branch, "per_page": 1}
        found = self._client.find(list[msgspec.Raw], f"{place}/tree", query)
        return found is not None and bool(found.value)


def pull_requests(client: Client, spec: Mapping[str, Any]) -> Iterator[PullRequest]:
    """Yield the merge requests in the state of ``pullRequest.gitlab``; all states if it names none, as upstream. Raises
    :class:`SourceError`."""
    project = str(spec.get("project") or "")
    query: dict[str, str | int | bool] = {"per_page": 100}
    if labels := spec.get("labels"):
        query["labels"] = ",".join(labels)
    if state := str(spec.get("pullRequestState") or ""):
        query["state"] = state
    with during(f"listing merge requests for project '{project}'"):
        for one in client.pages(list[_Merge], f"projects/{segment(project, 'project')}/merge_requests", query):
            author = one.author.username if one.author is not None else ""
            ends = one.source_branch, one.target_branch, one.sha or ""
            yield PullRequest(one.iid, one.title, *ends, tuple(one.labels or ()), author)
