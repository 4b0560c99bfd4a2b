"""Expressions: what they mean, which are refused, what they may cost. A long table is in the recordings."""

from __future__ import annotations

from typing import Any

import pytest

from syncline.kube.cel.cost import expression_cost
from syncline.kube.cel.nodes import CelError
from syncline.kube.cel.program import compile_program
from syncline.kube.cel.values import EvaluationError
from syncline.kube.schema.custom.celschema import Decl, converter, declare

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "i": {"type": "integer"},
        "s": {"type": "string", "maxLength": 10},
        "l": {"type": "array", "items": {"type": "string"}},
        "m": {"type": "object", "additionalProperties": {"type": "integer"}, "maxProperties": 4},
        "set": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
    },
}
VALUE = {"i": 7, "s": "hello", "l": ["kb", "ka"], "m": {"a": 1, "b": 2}, "set": ["x", "y"]}


def declared() -> Decl:
    found = declare(SCHEMA)
    assert found is not None
    return found


def result(text: str) -> Any:
    return compile_program(text, {"self": declared().type}).evaluate({"self": converter(SCHEMA)(VALUE)})


@pytest.mark.parametrize(
    "text",
    [
        "self.i / 2 == 3 && -self.i % 4 == -3",
        "self.l.all(x, x.startsWith('k')) && self.l.exists_one(x, x == 'ka')",
        "self.m.transformMap(k, v, v * 10) == {'a': 10, 'b': 20}",
        "self.set == ['y', 'x'] && self.set + ['x'] == ['x', 'y']",
        "1 / 0 > 0 || true",
        "self.m[?'q'].orValue(9) == 9",
        "quantity('1.5').isGreaterThan(quantity('1499m'))",
        "cidr('10.0.0.0/8').containsIP('10.1.2.3') && !ip('::1').isGlobalUnicast()",
        "semver('1.2.3-rc.2').isLessThan(semver('1.2.3-rc.10'))",
        "format.dns1123Label().validate('A_').value().size() == 1",
        "'%s has %d'.format([self.s, self.i]) == 'hello has 7'",
        "self.l.sortBy(x, x)[0] == 'ka' && self.l.map(x, x.size()).sum() == 4",
        "timestamp('2024-02-29T12:00:00Z') + duration('24h') == timestamp('2024-03-01T12:00:00Z')",
    ],
)
def test_an_expression_holds(text: str) -> None:
    assert result(text) is True


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("self.nope == 1", "undefined field 'nope'"),
        ("self.i == 'x'", "found no matching overload for '_==_' applied to '(int, string)'"),
        ("self.i && true", "expected type 'bool' but found 'int'"),
        ("nothing > 1", "undeclared reference to 'nothing' (in container '')"),
        ("self.l.s == 'x'", "type 'list(string)' does not support field selection"),
        ("duration('1d') == duration('1h')", "invalid duration argument"),
        ("[1, 'a'].size() == 2", "expected type 'int' but found 'string'"),
        ("self.(", "Syntax error"),
    ],
)
def test_an_expression_is_refused_with_its_place(text: str, why: str) -> None:
    with pytest.raises(CelError) as refused:
        compile_program(text, {"self": declared().type})
    assert str(refused.value).startswith("ERROR: <input>:1:") and why in str(refused.value)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("self.l[9] == 'a'", "index out of bounds: 9"),
        ("self.m['z'] == 1", "no such key: z"),
        ("self.i / (self.i - 7) == 1", "division by zero"),
        ("9223372036854775807 + self.i > 0", "integer overflow"),
        ("optional.none().value() == 1", "optional.none() dereference"),
    ],
)
def test_an_evaluation_fails_in_the_words_of_the_reference(text: str, why: str) -> None:
    with pytest.raises(EvaluationError, match=None) as failed:
        result(text)
    assert str(failed.value) == why


def test_work_without_end_is_cut_off() -> None:
    numbers = ", ".join("1" for _ in range(60))
    text = f"[{numbers}].all(a, [{numbers}].all(b, [{numbers}].all(c, [{numbers}].all(d, a + b + c + d > 0))))"
    with pytest.raises(EvaluationError, match="cost limit exceeded"):
        result(text)


def test_what_is_unbounded_costs_more_than_any_budget() -> None:
    def cost(text: str) -> int:
        decl = declared()
        return expression_cost(compile_program(text, {"self": decl.type}).root, decl.size_of)

    assert cost("self.s == 'a'") < 10
    assert cost("self.m.all(k, self.m[k] > 0)") < 100
    assert cost("self.l.all(x, self.l.all(y, x == y))") > 10_000_000
