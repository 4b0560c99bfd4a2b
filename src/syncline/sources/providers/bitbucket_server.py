"""Reads projects and pull requests of Bitbucket Server and Data Center: :class:`BitbucketServer`.

Rules: Bitbucket's REST API 1.0, and upstream's fields. A page says ``isLastPage`` and where the next one starts.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, Generic, TypeVar

import msgspec

from syncline.sources.providers.client import Client, base_address, during, file_path, segment
from syncline.sources.providers.filters import clone_url
from syncline.sources.providers.model import PullRequest, Repository

T = TypeVar("T")
HEADERS = {"X-Atlassian-Token": "no-check", "X-Requested-With": "XMLHttpRequest"}
"""Without them it takes a request for one that a page of another site made."""
PAGE = 100


class _Page(msgspec.Struct, Generic[T], rename="camel"):
    values: list[T]
    is_last_page: bool = True
    next_page_start: int | None = None


class _Project(msgspec.Struct):
    key: str


class _Link(msgspec.Struct):
    name: str = ""
    href: str = ""


class _Links(msgspec.Struct):
    clone: list[_Link] | None = None


class _Repository(msgspec.Struct):
    id: int
    name: str
    project: _Project
    slug: str | None = None
    links: _Links | None = None


class _Ref(msgspec.Struct, rename={"display": "displayId", "commit": "latestCommit"}):
    display: str
    commit: str | None = None


class _User(msgspec.Struct):
    name: str = ""


class _Participant(msgspec.Struct):
    user: _User | None = None


class _Pull(msgspec.Struct, rename={"source": "fromRef", "target": "toRef"}):
    id: int
    title: str
    source: _Ref
    target: _Ref
    author: _Participant | None = None


def api_address(api: str) -> str:
    """Return the address of the REST API (upstream's ``NormalizeBitbucketBasePath``)."""
    base = base_address(api)
    return f"{base if base.endswith('/rest/') else base + 'rest/'}api/1.0/"


def _pages(client: Client, kind: type[_Page[T]], path: str) -> Iterator[T]:
    """Yield the items of all pages. Raises :class:`SourceError`."""
    start = 0
    for _ in client.page_numbers():
        page = client.get(kind, path, {"limit": PAGE, "start": start} if start else {"limit": PAGE}).value
        client.listed(len(page.values))
        yield from page.values
        if page.is_last_page:
            return
        if page.next_page_start is None or page.next_page_start <= start:
            raise client.wrong(path, f"the page at {start} says that the next one starts at {page.next_page_start}")
        start = page.next_page_start
    raise client.many_pages(path)


class BitbucketServer:
    """A project (``scmProvider.bitbucketServer``). Repositories have a name, and a slug that addresses use."""

    def __init__(self, client: Client, spec: Mapping[str, Any], clone_protocol: str) -> None:
        self._client, self._protocol = client, clone_protocol
        self._project = str(spec.get("project") or "")
        self._all_branches = spec.get("allBranches") is True
        self._slugs: dict[tuple[str, str], str] = {}

    def repositories(self) -> Iterator[Repository]:
        with during(f"listing repositories for {self._project}"):
            path = f"projects/{segment(self._project, 'project')}/repos"
            for one in _pages(self._client, _Page[_Repository], path):
                links = {link.name: link.href for link in (one.links.clone if one.links else None) or ()}
                urls = {"ssh": links.get("ssh"), "https": links.get("http")}
                url = clone_url(self._protocol, urls, "Bitbucket Server")
                self._slugs[one.project.key, one.name] = one.slug or one.name
                found = Repository(one.project.key, one.name, url, "", "", (), one.id)
                default = self._default(found)
                if default is not None:  # an empty repository has none
                    yield replace(found, branch=default.display, sha=default.commit or "")

    def branches(self, repository: Repository) -> Iterator[Repository]:
        with during(f"listing branches for {repository.organization}/{repository.repository}"):
            for found in self._branches(repository):
                yield replace(repository, branch=found.display, sha=found.commit or "")

    def _branches(self, repository: Repository) -> Iterable[_Ref]:
        if self._all_branches:
            return _pages(self._client, _Page[_Ref], f"{self._place(repository)}/branches")
        return [_Ref(repository.branch, repository.sha)]

    def _default(self, repository: Repository) -> _Ref | None:
        found = self._client.find(_Ref, f"{self._place(repository)}/branches/default", empty=True)
        return found.value if found is not None else None

    def path_exists(self, branch: Repository, path: str) -> bool:
        place = f"{self._place(branch)}/browse/{file_path(path)}"
        return self._client.exists(place, {"at": branch.branch, "limit": PAGE, "type": True}, method="GET")

    def _place(self, repository: Repository) -> str:
        slug = self._slugs.get((repository.organization, repository.repository), repository.repository)
        return f"projects/{segment(repository.organization, 'project')}/repos/{segment(slug, 'repository')}"


def pull_requests(client: Client, spec: Mapping[str, Any]) -> Iterator[PullRequest]:
    """Yield the open pull requests of ``pullRequest.bitbucketServer``, which knows no labels. Raises
    :class:`SourceError`."""
    project, name = str(spec.get("project") or ""), str(spec.get("repo") or "")
    path = f"projects/{segment(project, 'project')}/repos/{segment(name, 'repo')}/pull-requests"
    with during(f"listing pull requests for {project}/{name}"):
        for one in _pages(client, _Page[_Pull], path):
            user = one.author.user if one.author is not None else None
            ends = one.source.display, one.target.display, one.source.commit or ""
            yield PullRequest(one.id, one.title, *ends, (), user.name if user is not None else "")
