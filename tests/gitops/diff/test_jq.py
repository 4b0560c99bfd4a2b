"""The part of jq that ``jqPathExpressions`` need (behaviour 47)."""

from __future__ import annotations

import contextlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from syncline.gitops.diff.jq import MAX_STEPS, JqError, delete_paths

DOC: dict[str, Any] = {
    "kind": "Deployment",
    "metadata": {"labels": {"a/b": "1", "c": "2"}},
    "spec": {"replicas": 3, "items": [{"name": "x", "n": 1}, {"name": "y", "n": 2}, {"name": "z"}]},
}


@pytest.mark.parametrize(
    ("expression", "left"),
    [
        (".spec.replicas", {"items": DOC["spec"]["items"]}),
        (".spec.items[0]", {"replicas": 3, "items": DOC["spec"]["items"][1:]}),
        (".spec.items[-1], .spec.replicas", {"items": DOC["spec"]["items"][:2]}),
        (".spec.items[] | select(.n >= 2)", {"replicas": 3, "items": [DOC["spec"]["items"][0], {"name": "z"}]}),
        (
            '.spec.items[] | select(.name == "x" or (.name | startswith("y"))) | .n',
            {"replicas": 3, "items": [{"name": "x"}, {"name": "y"}, {"name": "z"}]},
        ),
        ('.spec | .["replicas"]', {"items": DOC["spec"]["items"]}),
        (". as $all | .spec.replicas", {"items": DOC["spec"]["items"]}),
        (".spec.items", {"replicas": 3}),
        (".spec.nope.deep", DOC["spec"]),
        (".nope[]?.x", DOC["spec"]),
        ('.. | select(type == "object") | .n', {"replicas": 3, "items": [{"name": n} for n in "xyz"]}),
        ('.spec.items[] | select(.name | test("^[yz]$"))', {"replicas": 3, "items": DOC["spec"]["items"][:1]}),
        ('.spec.items[] | select(has("n") | not)', {"replicas": 3, "items": DOC["spec"]["items"][:2]}),
    ],
)
def test_what_an_expression_addresses_is_deleted(expression: str, left: dict[str, Any]) -> None:
    assert delete_paths(DOC, expression)["spec"] == left


@pytest.mark.parametrize("expression", ['.metadata.labels["a/b"]', '.metadata.labels."a/b"'])
def test_keys_may_be_any_text(expression: str) -> None:
    assert delete_paths(DOC, expression)["metadata"]["labels"] == {"c": "2"}


@pytest.mark.parametrize("expression", [".spec[", "", ")", ".a..b", "| .a", "frobnicate", '.a | test("(")'])
def test_what_cannot_be_read_or_run_is_an_error(expression: str) -> None:
    with pytest.raises(JqError):
        delete_paths({"a": "text"}, expression)


@pytest.mark.parametrize("expression", [".metadata.labels | to_entries", ".spec.replicas | error", ".webhooks[].x"])
def test_computed_values_and_failures_delete_nothing(expression: str) -> None:
    with pytest.raises(JqError):
        delete_paths(DOC, expression)


def test_an_expression_ends_after_a_bounded_number_of_steps_a047() -> None:
    wide = {"a": list(range(MAX_STEPS // 10))}
    with pytest.raises(JqError, match="steps"):
        delete_paths(wide, ".a[] | select([1,2,3,4,5,6,7,8] | any(. == 0))")


@given(st.text(alphabet='.[]()|,"$?:=abc 019{}', max_size=40))
def test_no_text_breaks_the_reader(text: str) -> None:
    before = repr(DOC)
    with contextlib.suppress(JqError):
        delete_paths(DOC, text)
    assert repr(DOC) == before
