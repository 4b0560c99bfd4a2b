"""Reads team projects and pull requests of Azure DevOps: :class:`AzureDevOps`.

Rules: Azure DevOps' REST API (Git), and upstream's fields. Errors have a ``typeKey``. Upstream reads the first 101
pull requests; all are read here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import msgspec

from syncline.sources.errors import Problem
from syncline.sources.providers.client import Client, Query, during, segment
from syncline.sources.providers.filters import labelled
from syncline.sources.providers.model import ProviderError, PullRequest, Repository

VERSION = {"api-version": "5.0"}
"""Of Azure DevOps Server 2019 and later, and of the service."""
PAGE = 100
HEADS = "refs/heads/"
PROJECT_MISSING = "The following project does not exist"


class _Repository(msgspec.Struct, rename="camel"):
    id: str | None = None
    name: str | None = None
    default_branch: str | None = None
    remote_url: str | None = None


class _Repositories(msgspec.Struct):
    value: list[_Repository]


class _Commit(msgspec.Struct, rename="camel"):
    commit_id: str | None = None


class _Branch(msgspec.Struct):
    name: str
    commit: _Commit


class _Branches(msgspec.Struct):
    value: list[_Branch]


class _Named(msgspec.Struct):
    name: str | None = None


class _Person(msgspec.Struct, rename="camel"):
    unique_name: str = ""


class _Pull(msgspec.Struct, rename="camel"):
    title: str = ""
    pull_request_id: int | None = None
    repository: _Named | None = None
    source_ref_name: str | None = None
    target_ref_name: str | None = None
    last_merge_source_commit: _Commit | None = None
    labels: list[_Named] | None = None
    created_by: _Person | None = None


class _Pulls(msgspec.Struct):
    value: list[_Pull]


class AzureDevOps:
    """A team project (``scmProvider.azureDevOps``). The clone protocol is always https."""

    def __init__(self, client: Client, spec: Mapping[str, Any], _clone_protocol: str) -> None:
        if client.is_anonymous:
            raise ProviderError(Problem.DENIED, "no access token provided", field="azureDevOps.accessTokenRef")
        self._client = client
        self._organization = str(spec.get("organization") or "")
        project = str(spec.get("teamProject") or "")
        self._project = project
        self._place = f"{segment(self._organization, 'organization')}/{segment(project, 'teamProject')}/_apis/git"
        self._all_branches = spec.get("allBranches") is True

    def repositories(self) -> Iterator[Repository]:
        with during(f"listing repositories for {self._project}"):
            found = self._client.get(_Repositories, f"{self._place}/repositories", VERSION).value.value
            self._client.listed(len(found))
            for one in found:
                if one.id and one.name and one.default_branch and one.remote_url:  # an empty one has no default branch
                    yield Repository(self._organization, one.name, one.remote_url, one.default_branch, "", (), one.id)

    def branches(self, repository: Repository) -> Iterator[Repository]:
        path = f"{self._place}/repositories/{segment(repository.repository, 'repository')}/stats/branches"
        with during(f"listing branches for {self._project}/{repository.repository}"):
            for found in self._branches(path, repository.branch.removeprefix(HEADS)):
                yield replace(repository, branch=found.name, sha=found.commit.commit_id or "")

    def _branches(self, path: str, default: str) -> list[_Branch]:
        """Return the branches; none for a repository that vanished meanwhile."""
        try:
            if not self._all_branches:
                return [self._client.get(_Branch, path, {**VERSION, "name": default}).value]
            found = self._client.get(_Branches, path, VERSION).value.value
        except ProviderError as error:
            if error.kind != "GitRepositoryNotFoundException":
                raise
            return []
        self._client.listed(len(found))
        return found

    def path_exists(self, branch: Repository, path: str) -> bool:
        place = f"{self._place}/repositories/{segment(str(branch.repository_id), 'repository')}/items"
        query: Query = {**VERSION, "path": path, "versionDescriptor.version": branch.branch}
        try:
            self._client.get(msgspec.Raw, place, query)
        except ProviderError as error:
            if error.kind != "GitItemNotFoundException":
                raise
            return False
        return True


def pull_requests(client: Client, spec: Mapping[str, Any]) -> Iterator[PullRequest]:
    """Yield the active pull requests of the repository with all labels of ``pullRequest.azuredevops``. A missing
    repository has none; a missing project is not found. Raises :class:`SourceError`."""
    project, name = str(spec.get("project") or ""), str(spec.get("repo") or "")
    organization = segment(str(spec.get("organization") or ""), "organization")
    path = f"{organization}/{segment(project, 'project')}/_apis/git/pullrequests"
    with during(f"listing pull requests for {project}/{name}"):
        for one in _pulls(client, path):
            commit, of = one.last_merge_source_commit, one.repository.name if one.repository is not None else None
            if of != name or commit is None or commit.commit_id is None or one.pull_request_id is None:
                continue
            if one.source_ref_name is None or one.target_ref_name is None:
                continue
            labels = tuple(label.name for label in one.labels or () if label.name)
            if labelled(labels, spec.get("labels") or ()):
                author = one.created_by.unique_name.partition("@")[0] if one.created_by is not None else ""
                source, target = one.source_ref_name.replace(HEADS, "", 1), one.target_ref_name.replace(HEADS, "", 1)
                yield PullRequest(one.pull_request_id, one.title, source, target, commit.commit_id, labels, author)


def _pulls(client: Client, path: str) -> Iterator[_Pull]:
    """Yield the pull requests of all pages; one that is not full is the last."""
    for number in client.page_numbers():
        query: Query = {**VERSION, "$top": PAGE, "$skip": number * PAGE}
        try:
            found = client.get(_Pulls, path, query).value.value
        except ProviderError as error:
            error.not_found = PROJECT_MISSING in error.message  # upstream's rule; an organization may be missing, too
            raise
        client.listed(len(found))
        yield from found
        if len(found) < PAGE:
            return
    raise client.many_pages(path)
