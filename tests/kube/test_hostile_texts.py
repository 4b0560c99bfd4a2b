"""Texts of strangers in small languages: each is read or refused in work that its length bounds."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from syncline.cluster.verbs import body
from syncline.kube.client import Request
from syncline.kube.errors import ApiError
from syncline.kube.text.cron import parse_schedule
from syncline.kube.text.durations import DurationError, parse_duration
from syncline.kube.text.glob import MAX_TEXT, GlobError, glob_match, path_match, rule_matches
from syncline.sources.helm.strvals import SetError, set_with, typed

YAML = "application/yaml"


@pytest.mark.parametrize(
    ("pattern", "text", "matches"),
    [
        ("*a" * 2_000 + "b", "a" * 8_000, False),
        ("**/" * 1_000 + "x", "a/" * 4_000, False),
        ("{*a,*a}" * 500, "a" * 8_000, True),
        ("{" * 60 + "*a" + ",*b}" * 60, "a" * 8_000, True),
    ],
)
def test_stars_and_alternatives_do_not_multiply(pattern: str, text: str, matches: bool) -> None:
    assert glob_match(pattern, text, separators="/") is matches


def test_a_star_stops_at_separators_only() -> None:
    assert [glob_match("a*/c", text, separators="/") for text in ("a/c", "abb/c", "ab/b/c")] == [True, True, False]
    assert glob_match("a**c", "ab/b/c", separators="/")
    assert path_match("*a" * 2_000, "a" * 8_000) and not path_match("*", "a/b")


def test_a_text_too_long_to_be_judged_is_denied() -> None:
    long = "a" * (MAX_TEXT + 1)
    with pytest.raises(GlobError, match="at most 8192 are matched"):
        glob_match("a*", long)
    assert not rule_matches("a*", long) and not rule_matches("!b*", long)


def test_durations_are_read_up_to_a_thousand_characters() -> None:
    assert parse_duration("1s" * 500).total_seconds() == 500
    with pytest.raises(DurationError, match="of 200000 characters"):
        parse_duration("1h" * 100_000)


def test_indexes_within_indexes_are_bounded_like_names() -> None:
    with pytest.raises(SetError, match="nested level"):
        set_with({}, "a" + "[0]" * 3_000 + "=1", typed)
    made: dict[str, object] = {}
    set_with(made, "a[1][0]=x", typed)
    assert made == {"a": [None, ["x"]]}


@pytest.mark.parametrize(
    ("text", "begins"),
    [
        ("0 0 30 2 *", None),
        ("0 0 31 4,6,9,11 *", None),
        ("0 0 29 2 *", datetime(2028, 2, 29, tzinfo=UTC)),
        ("5 0 1 1 *", datetime(2027, 1, 1, 0, 5, tzinfo=UTC)),
        ("0 0 31 2 1", datetime(2027, 2, 1, tzinfo=UTC)),
    ],
)
def test_a_schedule_begins_when_a_calendar_says(text: str, begins: datetime | None) -> None:
    assert parse_schedule(text).next_after(datetime(2026, 11, 30, 23, 59, tzinfo=UTC)) == begins


def test_a_large_body_that_was_read_beforehand_is_not_read_again() -> None:
    text = ("items:\n" + "- a: 1\n" * 5_000).encode()
    request = Request("POST", "/", {}, {"content-type": YAML}, text)
    assert body.reads_slowly(request)
    body.remember_read(text, replace(body.read_apart(text), raw=b'{"items": []}'))
    made = [body.decode(request) for _ in range(2)]
    assert body.keys_given_twice(request) == ()
    assert made == [{"items": []}] * 2 and made[0] is not made[1]


@pytest.mark.parametrize("text", ["a: 1\na: 2\n", "a: [", "- a\n---\n- b\n", "a: " + "[" * 3_000, "n: 1e400\n"])
def test_a_large_body_is_refused_as_a_small_one_is(text: str) -> None:
    found = []
    for raw in (text.encode(), (text + "#" * body.LARGE_YAML).encode()):
        request = Request("POST", "/", {}, {"content-type": YAML}, raw)
        if body.reads_slowly(request):
            body.remember_read(raw, body.read_apart(raw))
        try:
            found.append((body.keys_given_twice(request), str(body.decode(request))))
        except ApiError as refusal:
            found.append(((), refusal.message))
    assert found[0] == found[1]


def test_json_that_is_called_yaml_is_read_in_place() -> None:
    raw = b'{"a": "' + b"x" * body.LARGE_YAML + b'"}'
    assert not body.reads_slowly(Request("POST", "/", {}, {"content-type": YAML}, raw))


@pytest.mark.parametrize(("kind", "size"), [("application/json", 100_000), (YAML, 100)])
def test_a_body_that_is_read_soon_is_read_in_place(kind: str, size: int) -> None:
    assert not body.reads_slowly(Request("POST", "/", {}, {"content-type": kind}, b"a" * size))
