"""What an expression costs, in steps that stand for time: sizes count, whatever reads them. Judged by steps alone."""

from __future__ import annotations

import contextlib
import re

import pytest

from syncline.cluster.admission.dynamic.conditions import Budget, OutOfBudget
from syncline.cluster.admission.dynamic.policies import Variables, policy_of
from syncline.kube.cel.metering import MAX_STEPS
from syncline.kube.cel.nodes import CelError
from syncline.kube.cel.program import CostExceeded, compile_program
from syncline.kube.cel.types import DYN
from syncline.kube.cel.values import EvaluationError
from syncline.kube.schema.custom.rules import OUT_OF_BUDGET, check_rules
from syncline.kube.schema.model import Schema
from syncline.kube.text.glob import ListStyle, list_matches
from syncline.kube.text.re2 import MAX_WORK, compile_pattern

LARGE = {
    "s": "x" * 300_000,
    "n": "1" * 300_000,
    "list": list(range(20_000)),
    "lists": [[number] for number in range(20_000)],
    "words": [f"t{number}" for number in range(20_000)],
}
MANY = "lists.range(10000).all(x, {})"
HOSTILE = {
    "a text searched for a text": "!object.s.contains('xy')",
    "a text searched from its start": "object.s.indexOf('xxxxxxxy') < 0",
    "a text searched from its end": "object.s.lastIndexOf('yxxxxxxx') < 0",
    "a text matched": "!object.s.matches('x*y')",
    "a text matched by a pattern with groups": "!object.s.matches('(x+x+)+y')",
    "a pattern of thousands of states": "!object.s.matches('.{0,999}y')",
    "patterns compiled one by one": "!'a'.matches('(a{1,30}){1,30}' + string(x))",
    "patterns too large to compile": "'a'.matches('(\\\\pL|x){900}' + string(x)) || true",
    "a text in which all is found": "object.s.findAll('x').size() > 0",
    "a text in which nothing is found": "object.s.find('x*y') == ''",
    "texts compared": "object.s + 'a' != object.s + 'b'",
    "a text that is no address": "!isIP(object.s)",
    "a text that is no URL": "!isURL(object.s)",
    "a text that is no name": "format.dns1123Label().validate(object.s).hasValue()",
    "a text that is no number": "int(object.n) == 0 || true",
    "an entry that is not there": "!(-1 in object.list)",
    "a list sorted": "object.words.sort().size() > 0",
    "a list summed": "object.list.sum() > 0",
    "the least of a list": "object.list.min() == 0",
    "a long literal list": "[" + "1, " * 1_000 + "1].size() > 0",
    "a long literal map": "{" + ", ".join(f"{number}: 1" for number in range(1_000)) + "}.size() > 0",
    "a row of conditions": " && ".join(["true"] * 100),
    "a row of fields": " && ".join(["has(object.s)"] * 100),
    "zones that have to be looked for": "timestamp('2020-01-01T00:00:00Z').getHours('A/' + string(x)) > 0 || true",
}


@pytest.mark.parametrize("inner", HOSTILE.values(), ids=HOSTILE)
def test_work_on_large_values_runs_out_of_budget(inner: str) -> None:
    spent: list[int] = []
    with pytest.raises(EvaluationError, match="actual cost limit exceeded"):
        compile_program(MANY.format(inner), {"object": DYN}).evaluate({"object": LARGE}, spent.append)
    assert spent[0] <= MAX_STEPS


@pytest.mark.parametrize(
    ("text", "least"),
    [
        ("object.lists.distinct().size() == 0", MAX_STEPS),
        ("sets.contains(object.lists, object.lists)", MAX_STEPS),
        ("sets.intersects(object.lists, [[-1]])", 10_000),
        ("object.words.distinct().size() > 0", 10_000),
    ],
)
def test_pairs_are_paid_for(text: str, least: int) -> None:
    spent: list[int] = []
    with contextlib.suppress(CostExceeded):
        compile_program(text, {"object": DYN}).evaluate({"object": LARGE}, spent.append)
    assert spent[0] >= least


def test_a_loop_that_ends_early_does_not_pay_for_the_rest() -> None:
    spent: list[int] = []
    compile_program("object.list.exists(x, true)", {"object": DYN}).evaluate({"object": LARGE}, spent.append)
    assert spent[0] < 50


def test_what_a_loop_gathers_costs_in_proportion_to_its_rounds() -> None:
    costs = []
    for count in (1_000, 10_000):
        compile_program(f"lists.range({count}).map(x, x)", {}).evaluate({}, costs.append)
    assert costs[1] < 11 * costs[0]


def test_a_limit_below_the_largest_is_kept() -> None:
    with pytest.raises(CostExceeded) as end:
        compile_program("lists.range(1000).all(x, true)", {}).evaluate({}, limit=500)
    assert end.value.limit == 500


DOUBLING = {
    "a type that doubles": "[1]" + ".map(a, {a: a})" * 40,
    "a type that quadruples": "[1]" + ".map(a, [{a: a}])" * 40,
    "sorted again and again": "object.list" + ".sortBy(x, x)" * 40,
    "mapped again and again": "optional.of(1)" + ".optMap(x, x)" * 40,
    "looked into again and again": "object.?a" + ".optFlatMap(x, x.?a)" * 40,
}


@pytest.mark.parametrize("text", DOUBLING.values(), ids=DOUBLING)
def test_what_doubles_with_each_letter_is_not_compiled(text: str) -> None:
    with pytest.raises(CelError, match=r"of more than 200 parts|2000 nodes that macros repeat"):
        compile_program(text, {"object": DYN})


def test_faults_beyond_a_hundred_are_counted_only() -> None:
    with pytest.raises(CelError) as error:
        compile_program("[" + "z, " * 5_000 + "1]", {})
    assert str(error.value).endswith("\n4900 more errors were truncated")
    assert len(str(error.value)) < 1_000_000


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("duration(object.n + 's') > duration('1s')", "type conversion error"),
        ("int(object.n) > 0", "type conversion error from 'string' to 'int'"),
        ("uint(object.n) > 0u", "type conversion error from 'string' to 'uint'"),
        ("{object: 1}.size() > 0", "unsupported key type: map"),
        ("timestamp('2020-01-01T00:00:00Z').getHours(object.n) > 0", "unknown time zone"),
        ("timestamp('2020-01-01T00:00:00Z').getHours('America') > 0", "unknown time zone"),
        ("semver(object.n + '.1.1').major() > 0", "invalid version"),
    ],
)
def test_a_value_beyond_all_sense_is_an_error_of_the_expression(text: str, told: str) -> None:
    with pytest.raises(EvaluationError, match=told):
        compile_program(text, {"object": DYN}).evaluate({"object": {"n": LARGE["n"]}})


def test_a_number_with_zeros_in_front_is_read() -> None:
    assert compile_program("int('-' + object.n + '7') == -7", {"object": DYN}).evaluate({"object": {"n": "0" * 100}})


@pytest.mark.parametrize("pattern", [".{0,999}z", "(?:.?){900}y"])
def test_a_search_that_would_take_long_is_refused(pattern: str) -> None:
    found = compile_pattern(pattern)
    with pytest.raises(re.error, match=r"at most .* are searched"):
        found.search("é" * (MAX_WORK // found.states + 1))
    assert found.search("é" * 10) is None


def _rules(rule: str) -> Schema:
    item = {"type": "integer", "x-kubernetes-validations": [{"rule": rule}]}
    return Schema({"type": "object", "properties": {"l": {"type": "array", "items": item}}})


def test_the_rules_of_one_object_share_a_budget() -> None:
    schema = _rules("lists.range(9000).all(x, x + self >= 0)")
    assert check_rules({"l": [1] * 10}, None, schema) == []
    found = check_rules({"l": [1] * 1_000}, None, schema)
    assert [cause.message for cause in found] == [f'Invalid value: "integer": {OUT_OF_BUDGET}']
    assert int(found[0].field[2:-1]) < 100


def test_the_variables_of_a_policy_share_its_budget() -> None:
    dear = "lists.range(30000).all(x, x >= 0)"
    variables = [{"name": f"v{number}", "expression": dear} for number in range(100)]
    check = " && ".join(f"variables.v{number}" for number in range(100))
    spec = {"variables": variables, "validations": [{"expression": check}]}
    policy = policy_of({"metadata": {"name": "p"}, "spec": spec}, [])
    budget = Budget()
    most = budget.left
    values = {"object": {}, "variables": Variables(policy, {"object": {}}, budget)}
    with pytest.raises((EvaluationError, OutOfBudget)):
        policy.rules[0].check.evaluate(values, budget)
    assert most - budget.left <= most + MAX_STEPS


def test_an_expression_that_looks_around_is_matched_where_it_cannot_take_long() -> None:
    style = ListStyle.REGEXP
    assert list_matches(["/^((?!team-b).)*$/"], "team-a", style)
    assert not list_matches(["/^((?!team-b).)*$/"], "team-b", style)
    assert not list_matches(["/^(?!x)(a+)+$/", "/^(?=(a|a)*b)a/", "/^(?!x)(a|a)*$/"], "a" * 63, style)
    assert not list_matches(["/^(a+)+$/"], "a" * 63 + "!", style)
