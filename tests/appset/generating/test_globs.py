"""Patterns for files, as ``git ls-files`` and doublestar match them."""

from __future__ import annotations

import pytest

from syncline.appset.generators.globs import PatternError, file_matcher

PATHS = ("root.json", "a/x.json", "a/b/x.json", "a/b/y.yaml", "a-b/x.json", "Ä/[x].json", "a/.h.json")
JSON = ["root.json", "a/x.json", "a/b/x.json", "a-b/x.json", "Ä/[x].json", "a/.h.json"]


def matched(pattern: str, *, doublestar: bool = False) -> list[str]:
    wanted = file_matcher([pattern], doublestar=doublestar)
    return [path for path in PATHS if wanted(path)]


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("root.json", ["root.json"]),
        ("a", ["a/x.json", "a/b/x.json", "a/b/y.yaml", "a/.h.json"]),
        ("a/", ["a/x.json", "a/b/x.json", "a/b/y.yaml", "a/.h.json"]),
        ("", [*PATHS]),
        (".", [*PATHS]),
        ("*.json", JSON),
        ("**/x.json", ["a/x.json", "a/b/x.json", "a-b/x.json"]),
        ("a?b/x.json", ["a/b/x.json", "a-b/x.json"]),
        ("a[!/]b/*", ["a-b/x.json"]),
        ("a/./b//../x.json", ["a/x.json"]),
        ("[[:alpha:]]/*.yaml", ["a/b/y.yaml"]),
        ("*/[[]x].json", ["Ä/[x].json"]),
        ("Ä/[x].json", ["Ä/[x].json"]),
        ("{a,a-b}/x.json", []),
        ("[", []),
        ("[z-a]*", []),
        (":(glob)*.json", ["root.json"]),
        (":(glob)**/x.json", ["a/x.json", "a/b/x.json", "a-b/x.json"]),
        (":(icase)A/X.JSON", ["a/x.json"]),
        (":/a-b", ["a-b/x.json"]),
        (":(literal)a*", []),
    ],
)
def test_git_matches_across_directories_and_what_is_below_one(pattern: str, expected: list[str]) -> None:
    assert matched(pattern) == expected


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("*.json", ["root.json"]),
        ("*/*.json", ["a/x.json", "a-b/x.json", "Ä/[x].json", "a/.h.json"]),
        ("**/*.json", JSON),
        ("**/b/*", ["a/b/x.json", "a/b/y.yaml"]),
        ("{a,a-b}/x.json", ["a/x.json", "a-b/x.json"]),
        ("a/{b/{x.json,y.yaml},x.json}", ["a/x.json", "a/b/x.json", "a/b/y.yaml"]),
        ("a/b/[^x]*", ["a/b/y.yaml"]),
        ("none/**", []),
    ],
)
def test_doublestar_stops_at_directories(pattern: str, expected: list[str]) -> None:
    assert matched(pattern, doublestar=True) == expected


def test_b25_an_excluded_file_is_absent() -> None:
    wanted = file_matcher(["a"], ["*.yaml", "a/b/x.json"])
    assert [path for path in PATHS if wanted(path)] == ["a/x.json", "a/.h.json"]


@pytest.mark.parametrize(
    ("pattern", "doublestar", "text"),
    [
        ("../x", False, "outside repository"),
        ("/etc/passwd", False, "outside repository"),
        ("a/../../x", False, "outside repository"),
        (":(exclude)a", False, "pathspec magic that is not supported"),
        ("a" * 1001, False, "at most 1000 are allowed"),
        ("[", True, "syntax error in pattern"),
        ("{a", True, "syntax error in pattern"),
        ("{a,b}" * 12, True, "more than 500 patterns"),
        ("a/*", True, "matches the directory a/b"),
    ],
)
def test_a_pattern_that_cannot_be_used_is_an_error(pattern: str, doublestar: bool, text: str) -> None:
    with pytest.raises(PatternError, match=text):
        matched(pattern, doublestar=doublestar)


def test_many_stars_take_time_by_the_length_of_the_path() -> None:
    wanted = file_matcher(["*a" * 200 + "b"])
    assert not wanted("a" * 4_000)
