"""The pattern dialects against the recorded answers of Argo CD."""

from __future__ import annotations

import json
from collections.abc import Collection
from typing import Any

import pytest
from tests.recorded import CONFORMANCE, absent

from syncline.kube.text.glob import (
    MAX_PATTERN,
    GlobError,
    ListStyle,
    glob_match,
    glob_matches,
    list_matches,
    path_match,
    rule_matches,
)

RECORDED = CONFORMANCE / "gitops" / "glob.jsonl"
MATCHERS = {
    "glob": lambda pattern, text: glob_match(pattern, text),
    "glob-slash": lambda pattern, text: glob_match(pattern, text, separators="/"),
    "filepath": path_match,
}
LENIENT = {
    "project-source": lambda given: rule_matches(given["pattern"], given["text"], separators="/"),
    "project-destination": lambda given: rule_matches(given["pattern"], given["text"]),
    "window": lambda given: glob_matches(given["pattern"], given["text"]),
    "list-exact": lambda given: list_matches(given["patterns"], given["text"], ListStyle.EXACT),
    "list-glob": lambda given: list_matches(given["patterns"], given["text"], ListStyle.GLOB),
    "list-regexp": lambda given: list_matches(given["patterns"], given["text"], ListStyle.REGEXP),
}


def recorded(matchers: Collection[str]) -> list[Any]:
    if not RECORDED.exists():
        return [pytest.param(None, marks=pytest.mark.skip(reason=absent(RECORDED)))]
    cases = [json.loads(line) for line in RECORDED.read_text().splitlines()]
    return [pytest.param(case, id=case["id"]) for case in cases if case["input"]["matcher"] in matchers]


@pytest.mark.parametrize("case", recorded(MATCHERS))
def test_patterns_match_as_recorded(case: dict[str, Any]) -> None:
    given = case["input"]
    try:
        answer = {"match": MATCHERS[given["matcher"]](given["pattern"], given["text"]), "invalid": False}
    except GlobError:
        answer = {"match": False, "invalid": True}
    assert answer == case["expect"]


@pytest.mark.parametrize("case", recorded(LENIENT))
def test_lists_and_rules_match_as_recorded(case: dict[str, Any]) -> None:
    assert {"match": LENIENT[case["input"]["matcher"]](case["input"])} == case["expect"]


def test_a_pattern_has_a_length() -> None:
    for match in (glob_match, path_match):
        with pytest.raises(GlobError, match=str(MAX_PATTERN)):
            match("a" * (MAX_PATTERN + 1), "a")


def test_many_stars_take_no_time() -> None:
    assert not glob_match("*a" * 200 + "b", "a" * 4000)
    assert not path_match("*a" * 200 + "b", "a" * 4000)
    with pytest.raises(GlobError, match="nested"):
        glob_match("{" * 100, "a")
