"""Selectors select and refuse as Kubernetes does."""

from __future__ import annotations

from typing import Any

import pytest

from syncline.kube.selectors import (
    EVERYTHING,
    NOTHING,
    SelectorError,
    label_selector_from,
    parse_field_selector,
    parse_label_selector,
)

WEB_FRONT = {"app": "web", "tier": "front", "level": "7"}
DB = {"app": "db"}


@pytest.mark.parametrize(
    ("text", "web_front", "db"),
    [
        ("", True, True),
        ("app=web", True, False),
        ("app==web,tier!=back", True, False),
        ("tier!=front", False, True),
        ("app in (db, web)", True, True),
        ("app notin (db)", True, False),
        ("tier notin (front)", False, True),
        ("tier", True, False),
        ("!tier", False, True),
        ("level>6", True, False),
        ("level<7", False, False),
        ("app=", False, False),
        ("app in (,web)", True, False),
        ("app in ()", False, False),
        ("in in (x)", False, False),
        ("example.com/a-b_c.d != z", True, True),
    ],
)
def test_a_label_selector_matches_what_kubernetes_matches(text: str, web_front: bool, db: bool) -> None:
    selector = parse_label_selector(text)
    assert (selector.matches(WEB_FRONT), selector.matches(DB)) == (web_front, db)
    assert parse_label_selector(str(selector)) == selector


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("app in web", "unable to parse requirement: found 'web' expected: '('"),
        ("app=web,", "found '', expected: identifier after ','"),
        ("=web", "found '=', expected: !, identifier, or 'end of string'"),
        ("app web", "unable to parse requirement: found 'web', expected: in, notin, =, ==, !=, gt, lt"),
        ("app in (a b)", "unable to parse requirement: found 'b', expected: ',' or ')'"),
        ("app=web tier=x", "found 'tier', expected: ',' or 'end of string'"),
        (
            "a>x",
            "unable to parse requirement: values[0]: Invalid value: \"x\": for 'Gt', 'Lt' operators, the value must "
            "be an integer",
        ),
    ],
)
def test_a_bad_label_selector_is_refused_in_kubernetes_words(text: str, message: str) -> None:
    with pytest.raises(SelectorError) as refused:
        parse_label_selector(text)
    assert str(refused.value) == message


def test_a_missing_label_selector_object_selects_nothing_and_an_empty_one_everything() -> None:
    assert label_selector_from(None) == NOTHING
    assert label_selector_from({}) == EVERYTHING
    assert not NOTHING.matches(DB)


def test_a_label_selector_object_joins_labels_and_expressions() -> None:
    selector = label_selector_from(
        {"matchLabels": {"app": "web"}, "matchExpressions": [{"key": "tier", "operator": "In", "values": ["front"]}]}
    )
    assert selector.matches(WEB_FRONT)
    assert not selector.matches({"app": "web"})
    with pytest.raises(SelectorError, match='"Near" is not a valid label selector operator'):
        label_selector_from({"matchExpressions": [{"key": "a", "operator": "Near"}]})


def test_a_field_selector_compares_fields_and_a_missing_field_is_empty() -> None:
    fields = {"metadata.name": "a", "status.phase": "Running"}
    value_of = lambda path: fields.get(path, "")  # noqa: E731
    assert parse_field_selector("metadata.name=a,status.phase!=Failed").matches(value_of)
    assert parse_field_selector("spec.nodeName=").matches(value_of)
    assert not parse_field_selector("metadata.name==b").matches(value_of)
    assert parse_field_selector("metadata.name=a").exact("metadata.name") == "a"


def test_a_field_selector_unescapes_values() -> None:
    assert parse_field_selector("a=x\\,y\\=z\\\\").exact("a") == "x,y=z\\"
    assert str(parse_field_selector("a=x\\,y")) == "a=x\\,y"
    assert parse_field_selector("a=x\\\\,b=y").exact("a") == "x\\"


@pytest.mark.parametrize("text", ["a", "a=\\x", "a=b=c"])
def test_a_bad_field_selector_is_refused(text: str) -> None:
    with pytest.raises(SelectorError):
        parse_field_selector(text)


@pytest.mark.parametrize(
    ("selector", "told"),
    [
        ({"key": "a", "operator": "In", "values": ["y", "x", "y"]}, "a in (x,y,y)"),
        ({"key": "a", "operator": "NotIn", "values": ["b", "b"]}, "a notin (b,b)"),
    ],
)
def test_values_of_an_object_are_printed_as_often_as_they_are_given(selector: dict[str, Any], told: str) -> None:
    assert str(label_selector_from({"matchExpressions": [selector]})) == told


def test_everything_that_is_wrong_with_a_term_is_told_at_once() -> None:
    with pytest.raises(SelectorError) as refused:
        label_selector_from({"matchExpressions": [{"key": "a b", "operator": "In"}]})
    assert str(refused.value).startswith('[key: Invalid value: "a b": name part must consist')
    assert str(refused.value).endswith(
        "values: Invalid value: null: for 'in', 'notin' operators, values set can't be empty]"
    )
    with pytest.raises(SelectorError, match=r"values\[1\]\[a\]: Invalid value: \"#\""):
        label_selector_from({"matchExpressions": [{"key": "a", "operator": "In", "values": ["x", "#"]}]})


TERMS = ["a=1", "a!=1", "a in (1,2)", "a notin (2,3)", "a", "!a", "a>1", "a<3", "b=x", "b!=y", "!b", "b"]


@pytest.mark.parametrize("number", range(0, 220, 11))
def test_many_terms_mean_what_each_of_them_means(number: int) -> None:
    """Selectors of many terms are judged by the labels of an object; of few, term by term."""
    chosen = [TERMS[(number * 7 + at * (1 + number % 5)) % len(TERMS)] for at in range(1 + number % 4)]
    padding = [f"pad{at} notin (x)" for at in range(20)]
    few, many = parse_label_selector(",".join(chosen)), parse_label_selector(",".join([*chosen, *padding]))
    for a in (None, "1", "2", "3", "x"):
        for b in (None, "x", "y"):
            labels = {key: value for key, value in (("a", a), ("b", b)) if value is not None}
            assert many.matches(labels) is few.matches(labels), (chosen, labels)
