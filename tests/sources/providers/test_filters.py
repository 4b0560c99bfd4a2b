"""Filters of SCM providers over a list, and the recorded cases."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from tests.recorded import Case, cases_of

from syncline.sources.providers.filters import choose
from syncline.sources.providers.model import ProviderError, Repository


class Listed:
    """A provider of a list with one entry for each branch, as in the recordings; ``paths`` exist there."""

    def __init__(self, entries: list[Mapping[str, Any]]) -> None:
        self.entries = entries
        self.asked: list[str] = []

    def _each(self) -> Iterator[Repository]:
        for one in self.entries:
            place = one["Organization"], one["Repository"], one["URL"], one["Branch"], one["SHA"]
            yield Repository(*place, tuple(one["Labels"] or ()), one["RepositoryId"])

    def repositories(self) -> Iterator[Repository]:
        yield from {one.repository: one for one in reversed([*self._each()])}.values()

    def branches(self, repository: Repository) -> Iterator[Repository]:
        yield from (one for one in self._each() if one.repository == repository.repository)

    def path_exists(self, branch: Repository, path: str) -> bool:
        self.asked.append(f"{branch.repository}@{branch.branch}:{path}")
        found = [
            one for one in self.entries if (one["Repository"], one["Branch"]) == (branch.repository, branch.branch)
        ]
        return path in found[0]["paths"]


def entry(name: str, branch: str, labels: tuple[str, ...] = (), paths: tuple[str, ...] = ()) -> dict[str, Any]:
    place = {"Organization": "org", "Repository": name, "URL": f"https://git.example/{name}", "Branch": branch}
    return {**place, "SHA": "a", "Labels": list(labels), "RepositoryId": 1, "paths": list(paths)}


ENTRIES = [
    entry("apple", "main", ("fruit", "red"), ("k8s",)),
    entry("apple", "dev", ("fruit", "red")),
    entry("beet", "main", ("root",), ("k8s", "legacy")),
    entry("cherry", "trunk", ("fruit",)),
]
EVERYTHING = ["apple@dev", "apple@main", "beet@main", "cherry@trunk"]


@pytest.mark.parametrize(
    ("filters", "chosen"),
    [
        ([], EVERYTHING),
        ([{}], EVERYTHING),
        ([{"repositoryMatch": "^a"}], ["apple@dev", "apple@main"]),
        ([{"repositoryMatch": "^a"}, {"repositoryMatch": "^c"}], ["apple@dev", "apple@main", "cherry@trunk"]),
        ([{"repositoryMatch": "^a", "labelMatch": "root"}], []),
        ([{"labelMatch": "^fr"}], ["apple@dev", "apple@main", "cherry@trunk"]),
        ([{"branchMatch": "main"}], ["apple@main", "beet@main"]),
        ([{"repositoryMatch": "^a"}, {"branchMatch": "main"}], ["apple@main"]),
        ([{"repositoryMatch": "^a", "branchMatch": "main"}, {"branchMatch": "trunk"}], ["apple@main", "cherry@trunk"]),
        ([{"pathsExist": ["k8s/"]}], ["apple@main", "beet@main"]),
        ([{"pathsExist": ["k8s"], "pathsDoNotExist": ["legacy"]}], ["apple@main"]),
        ([{"pathsExist": []}, {"repositoryMatch": "^c"}], ["cherry@trunk"]),
        ([{"pathsDoNotExist": ["k8s"]}], ["apple@dev", "cherry@trunk"]),
    ],
    ids=json.dumps,
)
def test_b31_repository_filters_choose_first_and_branch_filters_choose_among_those(
    filters: list[Mapping[str, Any]], chosen: list[str]
) -> None:
    found = choose(Listed(ENTRIES), filters)
    assert sorted(f"{one.repository}@{one.branch}" for one in found) == chosen


def test_paths_are_asked_only_where_the_other_conditions_hold() -> None:
    listed = Listed(ENTRIES)
    choose(listed, [{"repositoryMatch": "^a", "branchMatch": "main", "pathsExist": ["k8s"]}])
    assert listed.asked == ["apple@main:k8s"]


def test_an_invalid_pattern_is_refused_in_upstreams_words_before_anything_is_asked() -> None:
    class Silent(Listed):
        def repositories(self) -> Iterator[Repository]:
            raise AssertionError("asked")

    with pytest.raises(ProviderError) as error:
        choose(Silent([]), [{"labelMatch": "a("}])
    assert (
        error.value.message == 'error compiling LabelMatch regexp "a(": error parsing regexp: missing closing ): `a(`'
    )


RECORDED = [one for one in cases_of("appset", "params") if "repositories" in one["input"]]


@pytest.mark.parametrize("case", RECORDED, ids=lambda one: one["id"])
def test_recorded_filters_choose_the_recorded_branches(case: Case) -> None:
    expect, generator = case["expect"], case["input"]["generator"]
    try:
        found = choose(Listed(case["input"]["repositories"]), generator["scmProvider"].get("filters") or [])
    except ProviderError as error:
        assert expect["error"] == f"error listing repos: {error.message}"
        return
    keys = ("repository", "branch", "sha", "url", "labels")
    listed = sorted((one.repository, one.branch, one.sha, one.url, ",".join(one.labels)) for one in found)
    assert not expect["error"]
    assert listed == sorted(tuple(one[key] for key in keys) for one in expect["sets"])
