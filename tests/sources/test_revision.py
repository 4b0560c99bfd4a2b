"""Which tag a version range chooses."""

from __future__ import annotations

import pytest

from syncline.sources.revision import Ref, Refs, choose, parse_constraint

TAGS = [
    "v0.1.0",
    "v0.2.3",
    "0.2.9",
    "v1.0.0",
    "v1.2.0",
    "v1.2.7",
    "v1.10.0",
    "v2.0.0-rc.1",
    "v2.0.0",
    "v2.1.0-beta.2",
    "latest",
]
REFS = Refs(tuple(Ref(f"refs/tags/{tag}", f"{index:040x}") for index, tag in enumerate(TAGS)))


@pytest.mark.parametrize(
    ("revision", "tag"),
    [
        ("*", "v2.0.0"), ("x", "v2.0.0"), ("1.x", "v1.10.0"), ("v1.*", "v1.10.0"), ("1.2.x", "v1.2.7"),
        ("~1.2", "v1.2.7"),
        ("~1.2.0", "v1.2.7"), ("^1.2.0", "v1.10.0"), ("^0.2.3", "0.2.9"), ("^0.1", "v0.1.0"), (">=1.0 <2", "v1.10.0"),
        (">=1.0, <1.3", "v1.2.7"), (">1.2", "v2.0.0"), ("<=1.2", "v1.2.7"), ("<1", "0.2.9"), ("0.1 - 1.2", "v1.2.7"),
        ("^3 || ~0.2", "0.2.9"), (">=2.1.0-0", "v2.1.0-beta.2"), ("!=2.0.0", "v1.10.0"),
        ("=1.2", "v1.2.7"), ("^5", None),
        ("v1.2.0", "v1.2.0"), ("latest", "latest"), ("1.2.7", None), ("1.2", None),
    ],
)  # fmt: skip
def test_a_range_takes_the_highest_matching_tag_and_an_exact_version_is_a_name(revision: str, tag: str | None) -> None:
    found = choose(revision, REFS)
    assert (found.ref if found else None) == (f"refs/tags/{tag}" if tag else None)


@pytest.mark.parametrize("text", ["main", "release-1.x", "feature/x", "", "1.2.x-", "v", "^", ">= a", "1.x main"])
def test_names_are_no_ranges(text: str) -> None:
    assert parse_constraint(text) is None


def test_a_branch_wins_over_a_tag_of_the_same_name() -> None:
    refs = Refs((Ref("refs/heads/a", "1" * 40), Ref("refs/tags/a", "2" * 40)))
    found = choose("a", refs)
    assert found is not None
    assert found.sha == "1" * 40
