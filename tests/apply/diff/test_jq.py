"""jq of ``jqPathExpressions`` (behaviour 47): what it takes away, what it cannot reach, and what it may take."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.gitops.evaluating import ANSWERS

from syncline.apply.asking import Found, Stopped
from syncline.apply.diff import Answers, DiffError, DiffSettings, IgnoreRule, Unknown, compare_objects
from syncline.apply.diff.jq import Addressed, JqQuestion, Unreadable, without
from syncline.assembly.scripts.expressions import TOO_MUCH, AnswersNow, Expressions
from syncline.kube.text.jq import JqFailed, addressed

DOC: dict[str, Any] = {
    "kind": "Deployment",
    "metadata": {"labels": {"a/b": "1", "c": "2"}},
    "spec": {"replicas": 3, "items": [{"name": "x", "n": 1}, {"name": "y", "n": 2}, {"name": "z"}]},
}


@pytest.fixture(scope="module")
def expressions() -> Iterator[Expressions]:
    made = Expressions(expression_s=0.3)
    yield made
    made.close()


def asked(expressions: Expressions, expression: str, *objects: dict[str, Any]) -> list[Found]:
    return expressions.answers([JqQuestion((((), (expression,)),), one) for one in objects or (DOC,)])


def taken(obj: dict[str, Any], *texts: str) -> dict[str, Any]:
    """``obj`` without what the expressions address, by the process for it."""
    rules = (((), texts),)
    found = ANSWERS.of(JqQuestion(rules, obj))
    assert isinstance(found, Addressed)
    trees = iter(found.trees)
    return without(obj, rules, lambda _expression, _obj: next(trees))


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
        (".spec.items[1:]", {"replicas": 3, "items": DOC["spec"]["items"][:1]}),
        (".spec.items[1:][0]", {"replicas": 3, "items": [DOC["spec"]["items"][0], {"name": "z"}]}),
        (
            ".spec.items[:-1][-1:], .spec.items[7], .spec.items[-7]",
            {"replicas": 3, "items": [{"name": "x", "n": 1}, {"name": "z"}]},
        ),
        (
            'def named(f): .spec.items[] | select(.name == f); named("z")',
            {"replicas": 3, "items": DOC["spec"]["items"][:2]},
        ),
        (
            '.spec.items[] | select(.name | ascii_upcase | test("X|Y"; "i")) | .n',
            {"replicas": 3, "items": [{"name": n} for n in "xyz"]},
        ),
        ('paths(type == "number") as $p | getpath($p)', {"items": [{"name": n} for n in "xyz"]}),
        ('.spec.items[] | select(IN(.name; "x", "y"))', {"replicas": 3, "items": [{"name": "z"}]}),
        (".", DOC["spec"]),
        ('.spec.items[] | select(has("n") | not)', {"replicas": 3, "items": DOC["spec"]["items"][:2]}),
    ],
)
def test_what_an_expression_addresses_is_deleted(expression: str, left: dict[str, Any]) -> None:
    assert taken(DOC, expression)["spec"] == left


def test_places_from_the_end_are_the_places_from_the_beginning() -> None:
    assert taken({"l": [1, 2, 3, 4]}, ".l[-1], .l[3], .l[0]") == {"l": [2, 3]}


def test_what_one_expression_took_the_next_one_does_not_see() -> None:
    assert taken({"l": [1, 2, 3, 4]}, ".l[0]", ".l[0]") == {"l": [3, 4]}


@pytest.mark.parametrize("expression", ['.metadata.labels["a/b"]', '.metadata.labels."a/b"'])
def test_keys_may_be_any_text(expression: str) -> None:
    assert taken(DOC, expression)["metadata"]["labels"] == {"c": "2"}


UNREADABLE = {
    "a bracket that is not closed": ".spec[",
    "nothing": "",
    "a bracket too much": ")",
    "a pipe without a beginning": "| .a",
    "a function that is not there": "frobnicate",
    "a comment that swallows the end": ".spec # all of it",
    "two arguments": ".spec; .metadata",
    "a module": 'import "mod" as m; m::f',
    "a module by its place": 'import "mod" as m {search: "PLACE"}; m::f',
    "data of a module": 'import "data" as $d {search: "PLACE"}; $d[]',
    "an included module": 'include "mod" {search: "PLACE"}; f',
    "arguments of a command": "$__prog_args",
    "named arguments": "$ARGS",
    "a variable": "$HOME",
}


@pytest.mark.parametrize("name", UNREADABLE)
def test_what_cannot_be_read_is_an_error_and_no_module_can(name: str, tmp_path: Path) -> None:
    (tmp_path / "mod.jq").write_text("def f: .spec;")
    (tmp_path / "data.json").write_text('"spec"')
    rule = IgnoreRule("*", "*", jq_expressions=(UNREADABLE[name].replace("PLACE", str(tmp_path)),))
    with pytest.raises(DiffError, match="failed to create diff normalizer"):
        compare_objects(DOC, DOC, DiffSettings(ignore=(rule,), jq=ANSWERS))


NOTHING = {
    "computed values": ".metadata.labels | to_entries",
    "a failure": ".spec.replicas | error",
    "a failure for this object": ".webhooks[].x",
    "a pattern that cannot be read": '.kind | test("(")',
    "an input": "input",
    "all inputs": "inputs",
    "an input beside": "select(input | true)",
    "the environment": "select(env | length > 0) | .spec",
    "the environment by its name": "select($ENV | length > 0) | .spec",
    "a variable of the environment": "select(env.PATH // $ENV.HOME // $ENV.PYTHONPATH) | .spec",
    "the name of a file": "select(input_filename) | .spec",
    "a place of modules": "select(get_search_list | length > 0) | .spec",
    "what a module says of itself": 'select("PLACE/mod" | modulemeta) | .spec',
    "a module beside the process": 'select("./mod" | modulemeta) | .spec',
    "the end": "halt",
    "an end that fails": '"x" | halt_error(1)',
}


@pytest.mark.parametrize("name", NOTHING)
def test_what_an_expression_cannot_reach_addresses_nothing(name: str, tmp_path: Path) -> None:
    (tmp_path / "mod.jq").write_text("module {}; def f: .spec;")
    assert taken(DOC, NOTHING[name].replace("PLACE", str(tmp_path))) == DOC


def test_what_is_said_beside_an_answer_is_no_answer() -> None:
    assert "replicas" not in taken(DOC, '.spec | debug | stderr | debug("{\\"trees\\": []}") | .replicas')["spec"]


@given(st.text(alphabet='.[]()|,"$?:=abc 019{}', max_size=40))
def test_no_text_breaks_the_reader(text: str) -> None:
    with contextlib.suppress(JqFailed):
        addressed(f"[{text}]", DOC)


WIDE = {"s": "x" * 900_000, "l": list(range(20_000))}
TOO_LONG = "ran longer than 0.3 s"
HOSTILE = {
    "without end": "def f: f; f",
    "without an end of results": "repeat(.s)",
    "all against all": ".l[] as $a | .l[] | select(. == $a)",
    "a text that doubles": ".s | until(false; . + .)",
    "itself in itself": "def f: 1 + f; f",
}


@pytest.mark.parametrize("name", HOSTILE)
def test_an_expression_that_takes_more_than_it_may_is_stopped(name: str, expressions: Expressions) -> None:
    (found,) = asked(expressions, HOSTILE[name], WIDE)
    assert isinstance(found, Stopped) and found.expression == HOSTILE[name]
    assert found.why in (TOO_LONG, TOO_MUCH)
    assert asked(expressions, ".spec.replicas") == [Addressed(({"spec": {"replicas": True}},))]


def test_the_expression_that_took_too_long_is_named_and_not_run_for_the_others(expressions: Expressions) -> None:
    rules = (((), (".spec", "def f: f; f")),)
    found = expressions.answers([JqQuestion(rules, {**DOC, "kind": str(number)}) for number in range(50)])
    assert found == [Stopped("def f: f; f", TOO_LONG)] * 50, "fifty seconds of computing otherwise"


def test_what_addresses_too_much_addresses_nothing() -> None:
    wide = {f"key-{number:06}": number for number in range(40_000)}
    patient = Expressions(expression_s=30)
    try:
        assert asked(patient, ".[]", wide) == [Addressed((None,))]
    finally:
        patient.close()


def test_an_expression_that_cannot_be_read_is_quoted(expressions: Expressions) -> None:
    (found,) = asked(expressions, ".spec[")
    assert isinstance(found, Unreadable) and found.why.startswith("'.spec[': error: syntax error")


def test_a_comparison_asks_all_its_questions_at_once() -> None:
    rule = IgnoreRule("*", "*", jq_expressions=(".spec.replicas",))
    settings = DiffSettings(ignore=(rule,), jq=Answers())
    with pytest.raises(Unknown) as caught:
        compare_objects(DOC, {**DOC, "other": 1}, settings)
    assert len(caught.value.questions) == 3, "whether it can be read, and what it addresses in each of two objects"


def test_a_comparison_whose_expression_takes_too_long_is_an_error_that_names_both(expressions: Expressions) -> None:
    rule = IgnoreRule("*", "*", jq_expressions=("def f: f; f",))
    obj = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}
    with pytest.raises(DiffError, match=r"take too long for ConfigMap a: 'def f: f; f' ran longer than 0.3 s"):
        compare_objects(obj, obj, DiffSettings(ignore=(rule,), jq=AnswersNow(evaluator=expressions)))
