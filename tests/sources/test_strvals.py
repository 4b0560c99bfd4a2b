"""Parameters as ``--set`` reads them; expected values are those of Helm's own parser."""

from __future__ import annotations

import importlib.util
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from syncline.sources.helm.strvals import MAX_INDEX, SetError, set_text, set_with, typed


def parsed(expression: str, values: dict[str, Any] | None = None) -> dict[str, Any]:
    found = dict(values or {})
    set_with(found, expression, typed)
    return found


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("a.b=1,c=x", {"a": {"b": 1}, "c": "x"}),
        ("a=TRUE,b=null,c=-3,d=0,e=007,f=1e3,g=99999999999999999999", None),
        ("a={1,x},b=3", {"a": [1, "x"], "b": 3}),
        ("a={}", {"a": [""]}),
        ("a[1]=x", {"a": [None, "x"]}),
        ("a[0].b[1]=2", {"a": [{"b": [None, 2]}]}),
        (r"a\.b=x\,y", {"a.b": "x,y"}),
        ("a=b=c", {"a": "b=c"}),
        ("a=", {"a": ""}),
    ],
)
def test_expressions_are_read_as_helm_reads_them(expression: str, expected: dict[str, Any] | None) -> None:
    if expected is None:
        expected = {"a": True, "b": None, "c": -3, "d": 0, "e": "007", "f": "1e3", "g": "99999999999999999999"}
    assert parsed(expression) == expected


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ("a", 'key "a" has no value'),
        ("a,b=1", r'key "a" has no value \(cannot end with ,\)'),
        ("a..b=1", 'key map "a" has no value'),
        ("a[-1]=x", "negative -1 index not allowed"),
        ("a[x]=1", "error parsing index"),
        ("a[0]b=1", "unexpected data at end of array index"),
        ("a={1", "list must terminate with '}'"),
        (f"a[{MAX_INDEX + 1}]=1", "greater than maximum supported index"),
        (".".join("a" * 40) + "=1", "greater than maximum supported nested level"),
        ("a=1,a.b=2", "is int64, not map"),
    ],
)
def test_what_cannot_be_read_is_refused_in_helms_words(expression: str, message: str) -> None:
    with pytest.raises(SetError, match=message):
        parsed(expression)


def test_an_index_changes_the_item_of_a_list_that_is_there() -> None:
    assert parsed("a[1].b=2", {"a": [{"b": 1}, {"b": 1, "c": 3}]}) == {"a": [{"b": 1}, {"b": 2, "c": 3}]}


def test_forced_text_and_files_are_never_numbers() -> None:
    values: dict[str, Any] = {}
    set_text(values, "a=1,b=true")
    set_with(values, "c=file", lambda _: "content,with=signs")
    assert values == {"a": "1", "b": "true", "c": "content,with=signs"}


PIECES = st.sampled_from(["a", "b", "=", "[0]", "[2]", ".", ",", "{", "}", "1", "true", "null", "x=1", "a.b=2", "\\,"])


@pytest.mark.skipif(importlib.util.find_spec("helm_python") is None, reason="helm_python is not installed")
@settings(max_examples=300, deadline=None)
@given(st.lists(PIECES, max_size=7).map("".join))
def test_whatever_is_readable_is_read_as_by_helm(expression: str) -> None:
    from helm_python import _native
    from helm_python.errors import HelmError

    try:
        ours = parsed(expression)
    except SetError:
        return
    if ".," in expression or expression.endswith(("=", "[0]", "[2]")):
        return  # Helm's parser loses the end of such an expression without a word.
    try:
        theirs = json.loads(_native.call_string("helm_strvals_parse", expression))
    except HelmError:
        theirs = None
    assert ours == theirs
