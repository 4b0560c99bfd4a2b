"""Reads workspaces and pull requests of Bitbucket Cloud: :class:`BitbucketCloud`.

Rules: Bitbucket's REST API 2.0, and upstream's fields. A page holds the address of the next one, which has to be of the
same origin. Upstream reads the first ten branches; all are read here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, Generic, TypeVar

import msgspec

from syncline.sources.providers.client import Client, Query, during, file_path, segment
from syncline.sources.providers.filters import clone_url
from syncline.sources.providers.model import PullRequest, Repository

T = TypeVar("T")


class _Page(msgspec.Struct, Generic[T]):
    values: list[T] | None = None
    next: str | None = None


class _Link(msgspec.Struct):
    name: str = ""
    href: str = ""


class _Links(msgspec.Struct):
    clone: list[_Link] | None = None


class _Named(msgspec.Struct):
    name: str = ""


class _Repository(msgspec.Struct):
    slug: str
    uuid: str = ""
    links: _Links | None = None
    mainbranch: _Named | None = None


class _Target(msgspec.Struct):
    hash: str


class _Branch(msgspec.Struct):
    name: str
    target: _Target


class _Commit(msgspec.Struct):
    hash: str = ""


class _End(msgspec.Struct):
    branch: _Named
    commit: _Commit | None = None


class _Author(msgspec.Struct):
    nickname: str | None = None


class _Pull(msgspec.Struct):
    id: int
    title: str
    source: _End
    destination: _End
    author: _Author | None = None


def _pages(client: Client, kind: type[_Page[T]], path: str, query: Query) -> Iterator[T]:
    """Yield the items of all pages. Raises :class:`SourceError`."""
    seen: set[str] = set()
    for _ in client.page_numbers():
        page = client.get(kind, path, query).value
        values = page.values or []
        client.listed(len(values))
        yield from values
        if not page.next:
            return
        if page.next in seen:
            raise client.wrong(path, "a page names one that came before as the next one")
        seen.add(page.next)
        path, query = client.below(page.next), {}
    raise client.many_pages(path)


class BitbucketCloud:
    """A workspace (``scmProvider.bitbucket``)."""

    def __init__(self, client: Client, spec: Mapping[str, Any], clone_protocol: str) -> None:
        self._client, self._protocol = client, clone_protocol
        self._owner = str(spec.get("owner") or "")
        self._all_branches = spec.get("allBranches") is True

    def repositories(self) -> Iterator[Repository]:
        with during(f"listing repositories for {self._owner}"):
            path = f"repositories/{segment(self._owner, 'owner')}"
            for one in _pages(self._client, _Page[_Repository], path, {"pagelen": 100, "role": "member"}):
                links = {link.name: link.href for link in (one.links.clone if one.links else None) or ()}
                url = clone_url(self._protocol, {"ssh": "", "https": ""} | links, "Bitbucket cloud")
                if one.mainbranch is not None and one.mainbranch.name:  # an empty repository has none
                    yield Repository(self._owner, one.slug, url, one.mainbranch.name, "", (), one.uuid)

    def branches(self, repository: Repository) -> Iterator[Repository]:
        path = f"{self._place(repository)}/refs/branches"
        with during(f"listing branches for {repository.organization}/{repository.repository}"):
            for found in self._branches(path, repository.branch):
                yield replace(repository, branch=found.name, sha=found.target.hash)

    def _branches(self, path: str, default: str) -> Iterable[_Branch]:
        if self._all_branches:
            return _pages(self._client, _Page[_Branch], path, {"pagelen": 100})
        return [self._client.get(_Branch, f"{path}/{file_path(default)}").value]

    def path_exists(self, branch: Repository, path: str) -> bool:
        place = f"{self._place(branch)}/src/{segment(branch.sha, 'commit')}/{file_path(path)}"
        return self._client.exists(place, {"format": "meta"}, method="GET")

    def _place(self, repository: Repository) -> str:
        return f"repositories/{segment(self._owner, 'owner')}/{segment(repository.repository, 'repository')}"


def pull_requests(client: Client, spec: Mapping[str, Any]) -> Iterator[PullRequest]:
    """Yield the open pull requests of ``pullRequest.bitbucket``, which knows no labels. Raises :class:`SourceError`."""
    owner, name = str(spec.get("owner") or ""), str(spec.get("repo") or "")
    path = f"repositories/{segment(owner, 'owner')}/{segment(name, 'repo')}/pullrequests"
    with during(f"listing pull requests for {owner}/{name}"):
        for one in _pages(client, _Page[_Pull], path, {"pagelen": 50}):
            author = (one.author.nickname if one.author is not None else "") or ""
            sha = one.source.commit.hash if one.source.commit is not None else ""
            yield PullRequest(one.id, one.title, one.source.branch.name, one.destination.branch.name, sha, (), author)
