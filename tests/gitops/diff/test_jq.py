"""The part of jq that ``jqPathExpressions`` need (behaviour 47)."""

from __future__ import annotations

import contextlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from syncline.gitops.diff import DiffError, DiffSettings, IgnoreRule, compare_objects
from syncline.gitops.diff.jq import MAX_PASS_STEPS, MAX_STEPS, JqBudget, JqError, JqExhausted, delete_paths

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


WIDE = {"s": "x" * 900_000, "d": {f"k{number}": "v" for number in range(20_000)}, "l": list(range(20_000))}
HOSTILE = {
    "everything below everything": ".. | .. | ..",
    "all against all": ".l[] as $a | .l[] | select(. == $a)",
    "a text searched again and again": '.s as $s | .d[] | select($s | contains("y"))',
    "a text cut again and again": '.s as $s | .l[] | select($s[1:] == "y")',
    "a text matched again and again": '.s as $s | .l[] | select($s | test("(x+x+)+y"))',
    "a text folded again and again": '.s as $s | .l[] | select($s | ascii_downcase == "")',
    "keys sorted again and again": ". as $r | .l[] | select($r.d | keys | length > 0)",
    "entries made again and again": ". as $r | .l[] | select($r.d | to_entries | length > 0)",
    "lists contained in lists": ". as $r | select($r.l | contains($r.l))",
    "maps compared again and again": ". as $r | .l[] | select($r.d == $r.d)",
}


@pytest.mark.parametrize("expression", HOSTILE.values(), ids=HOSTILE)
def test_work_on_large_values_runs_out_of_steps(expression: str) -> None:
    budget = JqBudget()
    with pytest.raises(JqError, match="more than 100000 steps"):
        delete_paths(WIDE, expression, budget)
    assert budget.left >= MAX_PASS_STEPS - MAX_STEPS


@pytest.mark.parametrize("expression", [".d[]", ".l[]", ".l[-20000], .l[5], .l[-1]"])
def test_deleting_costs_in_proportion_to_what_is_there(expression: str) -> None:
    budget = JqBudget()
    delete_paths({"d": WIDE["d"], "l": WIDE["l"]}, expression, budget)
    assert budget.left > MAX_PASS_STEPS - MAX_STEPS


def test_places_from_the_end_are_the_places_from_the_beginning() -> None:
    assert delete_paths({"l": [1, 2, 3, 4]}, ".l[-1], .l[3], .l[0]") == {"l": [2, 3]}


def test_expressions_of_one_comparison_share_a_budget() -> None:
    budget = JqBudget(1_000)
    delete_paths({"l": list(range(100))}, ".l[]", budget)
    with pytest.raises(JqExhausted):
        for _ in range(100):
            delete_paths({"l": list(range(100))}, ".l[]", budget)


def test_a_comparison_whose_expressions_take_too_long_is_an_error_that_names_them() -> None:
    rule = IgnoreRule(kind="*", group="*", jq_expressions=(".. | .. | ..",) * 20)
    obj = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": WIDE["d"]}
    with pytest.raises(DiffError, match=r"'\.\. \| \.\. \| \.\.' for ConfigMap a all of them had taken the 500000"):
        compare_objects(obj, obj, DiffSettings(ignore=(rule,)))
