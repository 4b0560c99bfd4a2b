"""Reads repositories of AWS CodeCommit: :class:`CodeCommit`.

Rules: the JSON protocol of AWS' CodeCommit and Resource Groups Tagging APIs, and upstream's fields. The identity is
that of the process, or a role that it assumes. As upstream, a branch comes without the commit.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, TypeVar

import msgspec

from syncline.sources.errors import Problem
from syncline.sources.providers.aws import PROCESS, AwsRequest, endpoint, identity_for, region_of, signed
from syncline.sources.providers.client import Client, Host, during
from syncline.sources.providers.filters import clone_url
from syncline.sources.providers.model import ProviderError, Repository
from syncline.sources.providers.reach import Reach

T = TypeVar("T", bound=msgspec.Struct)
_TARGETS = {"codecommit": "CodeCommit_20150413", "tagging": "ResourceGroupsTaggingAPI_20170126"}
_CONTENT = "application/x-amz-json-1.1"
_PLAIN, _FIPS = "https://git-codecommit.", "https://git-codecommit-fips."
_NOTHING_THERE = ("RepositoryDoesNotExistException", "CommitDoesNotExistException", "FolderDoesNotExistException")


class _Named(msgspec.Struct, rename="camel"):
    repository_name: str


class _Repositories(msgspec.Struct, rename="camel"):
    repositories: list[_Named] | None = None
    next_token: str | None = None


class _Resource(msgspec.Struct, rename={"arn": "ResourceARN"}):
    arn: str = ""


class _Resources(msgspec.Struct, rename="pascal"):
    resource_tag_mapping_list: list[_Resource] | None = None
    pagination_token: str | None = None


class _Metadata(msgspec.Struct, rename="camel"):
    account_id: str = ""
    repository_id: str = ""
    repository_name: str = ""
    default_branch: str | None = None
    clone_url_ssh: str | None = None
    clone_url_http: str | None = None


class _Found(msgspec.Struct, rename="camel"):
    repository_metadata: _Metadata | None = None


class _Branches(msgspec.Struct, rename="camel"):
    branches: list[str] | None = None
    next_token: str | None = None


class _Entry(msgspec.Struct, rename="camel"):
    relative_path: str | None = None


class _Folder(msgspec.Struct, rename="camel"):
    sub_folders: list[_Entry] | None = None
    files: list[_Entry] | None = None
    symbolic_links: list[_Entry] | None = None
    sub_modules: list[_Entry] | None = None


class CodeCommit:
    """The repositories of an account in a region (``scmProvider.awsCodeCommit``)."""

    def __init__(self, spec: Mapping[str, Any], clone_protocol: str, reach: Reach) -> None:
        self._spec, self._protocol, self._reach = spec, clone_protocol, reach
        self._region = region_of(str(spec.get("region") or ""), reach.environment)
        self._identity = identity_for(str(spec.get("role") or ""), self._region, reach)
        self._clients: dict[str, Client] = {}

    def close(self) -> None:
        """Close the connections."""
        for client in self._clients.values():
            client.close()

    def repositories(self) -> Iterator[Repository]:
        with during("listing codecommit repositories"):
            for name in self._names():
                one = self._asked(_Found, "codecommit", "GetRepository", {"repositoryName": name}).repository_metadata
                if one is None or not one.default_branch:  # an empty repository has no default branch
                    continue
                urls = {"ssh": one.clone_url_ssh, "https": one.clone_url_http}
                fips = self._protocol == "https-fips"
                url = _fips(one.clone_url_http or "") if fips else clone_url(self._protocol, urls, "codecommit")
                place = one.account_id, one.repository_name, url, one.default_branch
                yield Repository(*place, repository_id=one.repository_id)

    def branches(self, repository: Repository) -> Iterator[Repository]:
        if self._spec.get("allBranches") is not True:
            yield repository
            return
        with during(f"listing branches for {repository.organization}/{repository.repository}"):
            body = {"repositoryName": repository.repository}
            for page in self._pages(_Branches, "codecommit", "ListBranches", body, "nextToken"):
                for name in page.branches or ():
                    yield replace(repository, branch=name)

    def path_exists(self, branch: Repository, path: str) -> bool:
        """Look the path up in its folder, so that no content is sent."""
        folder, name = posixpath.split(posixpath.normpath("/" + path))
        if not name:
            return True
        body = {"repositoryName": branch.repository, "commitSpecifier": branch.branch, "folderPath": folder}
        try:
            found = self._asked(_Folder, "codecommit", "GetFolder", body)
        except ProviderError as error:
            if error.kind not in _NOTHING_THERE:
                raise
            return False
        kinds = (found.sub_folders, found.files, found.symbolic_links, found.sub_modules)
        return any(entry.relative_path == name for kind in kinds for entry in kind or ())

    def _names(self) -> Iterator[str]:
        """Yield the names of all repositories, or of those with the tags."""
        tags: dict[str, list[str]] = {}
        for one in self._spec.get("tagFilters") or ():
            tags.setdefault(str(one.get("key") or ""), []).extend([str(one["value"])] if one.get("value") else [])
        if not tags:
            for page in self._pages(_Repositories, "codecommit", "ListRepositories", {}, "nextToken"):
                yield from (one.repository_name for one in page.repositories or ())
            return
        filters = [{"Key": key, **({"Values": values} if values else {})} for key, values in tags.items()]
        body = {"ResourceTypeFilters": ["codecommit:repository"], "TagFilters": filters}
        for tagged in self._pages(_Resources, "tagging", "GetResources", body, "PaginationToken"):
            for resource in tagged.resource_tag_mapping_list or ():
                if resource.arn.startswith("arn:") and resource.arn.count(":") >= 5:
                    yield resource.arn.split(":", 5)[5]

    def _pages(self, kind: type[T], service: str, action: str, body: Mapping[str, Any], token: str) -> Iterator[T]:
        given, seen, client = dict(body), set[str](), self._client(service)
        for _ in client.page_numbers():
            page = self._asked(kind, service, action, given)
            following = getattr(page, "next_token", None) or getattr(page, "pagination_token", None)
            lists: list[list[Any]] = [found for found in msgspec.structs.astuple(page) if isinstance(found, list)]
            client.listed(sum(len(found) for found in lists))
            yield page
            if not following:
                return
            if following in seen:
                raise client.wrong(action, "a page names one that came before as the next one")
            seen.add(following)
            given[token] = following
        raise client.many_pages(action)

    def _client(self, service: str) -> Client:
        if service not in self._clients:
            role = str(self._spec.get("role") or "") or PROCESS
            host = Host(f"AWS {service}", endpoint(service, self._region, self._reach), identity=role)
            self._clients[service] = Client(host, self._reach)
        return self._clients[service]

    def _asked(self, kind: type[T], service: str, action: str, body: Mapping[str, Any]) -> T:
        client, sent = self._client(service), msgspec.json.encode(body)
        headers = {"Content-Type": _CONTENT, "X-Amz-Target": f"{_TARGETS[service]}.{action}"}
        request = AwsRequest(client.host.base, service, self._region, headers=headers, body=sent)
        return client.decoded(
            kind, client.post(sent, headers, signed(request, self._identity, self._reach.clock.now()))
        ).value


def _fips(url: str) -> str:
    """Return the address of the FIPS endpoint. Raises :class:`SourceError`."""
    if url.startswith(_FIPS):
        return url
    if not url.startswith(_PLAIN):
        raise ProviderError(Problem.INVALID, f"{url!r} has no FIPS endpoint", field="cloneProtocol")
    return _FIPS + url.removeprefix(_PLAIN)
