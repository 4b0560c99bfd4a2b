"""Chooses repositories, branches, pull requests and addresses: :func:`choose`. Pure but for what the provider asks.

Rules: upstream's ``scm_provider/utils.go`` and behaviour 31. Filters with conditions on the repository alone choose
repositories, any of them; those with a condition on branch or paths then choose branches, any of them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from syncline.kube.text.re2 import Pattern, compile_pattern
from syncline.sources.errors import Problem
from syncline.sources.providers.model import ProviderError, PullRequest, Repository

DEFAULT_PROTOCOL = "ssh"
"""Of ``cloneProtocol``."""


class Provider(Protocol):
    """One organization, group or project of a host."""

    def repositories(self) -> Iterable[Repository]:
        """Yield each repository once, with its default branch."""
        ...

    def branches(self, repository: Repository) -> Iterable[Repository]:
        """Yield the branches that are wanted of it: all, or the default one."""
        ...

    def path_exists(self, branch: Repository, path: str) -> bool:
        """Return whether a file or directory exists on the branch."""
        ...


@dataclass(frozen=True, slots=True)
class _Filter:
    repository: Pattern | None
    label: Pattern | None
    branch: Pattern | None
    exist: tuple[str, ...]
    absent: tuple[str, ...]
    of_branches: bool
    """Whether it belongs to the second phase; an empty filter belongs to none."""

    @property
    def of_repositories(self) -> bool:
        return not self.of_branches and (self.repository is not None or self.label is not None)

    def takes(self, provider: Provider, one: Repository) -> bool:
        if self.repository is not None and not matches(self.repository, one.repository):
            return False
        if self.branch is not None and not matches(self.branch, one.branch):
            return False
        if self.label is not None and not any(matches(self.label, label) for label in one.labels):
            return False
        if not all(provider.path_exists(one, path) for path in self.exist):
            return False
        return not any(provider.path_exists(one, path) for path in self.absent)


def choose(provider: Provider, filters: Sequence[Mapping[str, Any]]) -> tuple[Repository, ...]:
    """Return the branches that the filters of ``scmProvider`` take. Raises :class:`SourceError`."""
    compiled = [_compiled(one) for one in filters]
    first = [one for one in compiled if one.of_repositories]
    second = [one for one in compiled if one.of_branches]
    chosen: list[Repository] = []
    for repository in [one for one in provider.repositories() if _taken(provider, one, first)]:
        chosen += provider.branches(repository)
    return tuple(one for one in chosen if _taken(provider, one, second))


def _taken(provider: Provider, one: Repository, filters: Sequence[_Filter]) -> bool:
    return not filters or any(each.takes(provider, one) for each in filters)


def _compiled(given: Mapping[str, Any]) -> _Filter:
    exist, absent, branch = given.get("pathsExist"), given.get("pathsDoNotExist"), compiled(given, "branchMatch")
    return _Filter(
        repository=compiled(given, "repositoryMatch"),
        label=compiled(given, "labelMatch"),
        branch=branch,
        exist=tuple(str(path).rstrip("/") for path in exist or ()),
        absent=tuple(str(path).rstrip("/") for path in absent or ()),
        of_branches=any(one is not None for one in (exist, absent, branch)),
    )


def compiled(given: Mapping[str, Any], key: str) -> Pattern | None:
    """Return the pattern under ``key``, None without one. Raises :class:`SourceError` with upstream's text."""
    text = given.get(key)
    if text is None:
        return None
    try:
        return compile_pattern(str(text))
    except re.error as error:
        name = key[:1].upper() + key[1:]
        message = f"error compiling {name} regexp {json.dumps(str(text), ensure_ascii=False)}"
        raise ProviderError(Problem.INVALID, f"{message}: error parsing regexp: {error}", field=key) from None


def matches(pattern: Pattern, text: str) -> bool:
    """Return whether the pattern occurs in ``text``. Raises :class:`SourceError` if a search would cost too much."""
    try:
        return pattern.search(text) is not None
    except re.error as error:
        raise ProviderError(Problem.INVALID, f"filter: {error}") from None


def choose_pull_requests(
    listed: Iterable[PullRequest], filters: Sequence[Mapping[str, Any]]
) -> tuple[PullRequest, ...]:
    """Return what one of the filters of ``pullRequest`` takes, everything without filters. Raises
    :class:`SourceError`."""
    keys = {"branchMatch": "branch", "targetBranchMatch": "target_branch", "titleMatch": "title"}
    patterns = [{name: compiled(one, key) for key, name in keys.items()} for one in filters]

    def taken(pull: PullRequest, wanted: Mapping[str, Pattern | None]) -> bool:
        return all(pattern is None or matches(pattern, getattr(pull, name)) for name, pattern in wanted.items())

    return tuple(pull for pull in listed if not patterns or any(taken(pull, wanted) for wanted in patterns))


def clone_url(protocol: str, urls: Mapping[str, str | None], host: str) -> str:
    """Return the address for ``cloneProtocol``, ssh if it is empty. Raises :class:`SourceError` for an unknown one."""
    wanted = protocol or DEFAULT_PROTOCOL
    if wanted not in urls:
        message = f"unknown clone protocol for {host} {protocol}"
        raise ProviderError(Problem.INVALID, message, field="cloneProtocol", fix=f"one of {', '.join(sorted(urls))}")
    return urls[wanted] or ""


def labelled(labels: Collection[str], wanted: Collection[str]) -> bool:
    """Return True if every wanted label is there (behaviour 32)."""
    return all(one in labels for one in wanted)
