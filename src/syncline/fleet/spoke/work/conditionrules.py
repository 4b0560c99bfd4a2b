"""The conditions that rules make of a manifest's object on the spoke; pure. :func:`conditions_of`.

Rules: ``pkg/work/spoke/conditions`` of upstream (reference ocm-pull-model §6.6). A rule that fails makes its condition
False with the error as message; it never fails the work.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any, Final

from syncline.fleet.conditions import condition
from syncline.fleet.expressions import FUNCTIONS, MAX_EXPRESSION, language_with
from syncline.kube.cel.nodes import CelError
from syncline.kube.cel.program import MAX_STEPS, CostExceeded, Program, compile_program
from syncline.kube.cel.types import BOOL, DYN, Type
from syncline.kube.cel.values import EvaluationError, type_name
from syncline.kube.objects import GVK, Obj, gvk_of

EVALUATED: Final = "ConditionRuleEvaluated"
EXPRESSION_ERROR: Final = "ConditionRuleExpressionError"
INVALID: Final = "ConditionRuleInvalid"
COMPLETE: Final = "Complete"
MOST_STEPS: Final = 2 * MAX_STEPS
"""Limit of all rules of one manifest together, less than a second; upstream's is ten times that of one expression."""
_WELL_KNOWN: Final[Mapping[tuple[GVK, str], Obj]] = {
    (GVK("batch", "v1", "Job"), COMPLETE): {
        "celExpressions": [
            "hasConditions(object.status) && object.status.conditions.exists(c,"
            " c.type in ['Complete', 'Failed'] && c.status == 'True')"
        ],
        "messageExpression": 'result ? "Job is finished" : "Job is not finished"',
    },
    (GVK("", "v1", "Pod"), COMPLETE): {
        "celExpressions": ["object.status.phase in ['Succeeded', 'Failed']"],
        "messageExpression": '"Pod is in phase " + object.status.phase',
    },
}
_VARIABLES: Final[dict[str, Type]] = {"object": DYN}
_FOR_MESSAGES: Final[dict[str, Type]] = {**_VARIABLES, "result": BOOL}
_DECLARED: Final = "hasConditions: (dyn)->bool"
_GO_TYPES: Final = {
    "int": "int64",
    "uint": "uint64",
    "double": "float64",
    "bytes": "[]uint8",
    "null_type": "structpb.NullValue",
    "list": "[]interface {}",
    "map": "map[string]interface {}",
    "type": "string",
    "google.protobuf.Timestamp": "time.Time",
    "google.protobuf.Duration": "time.Duration",
}
_MADE: Final = {"list": "[]ref.Val", "map": "map[ref.Val]ref.Val"}


class _RuleError(ValueError):
    """An expression that cannot be compiled, fails, or has a result of another type."""


def _has_conditions(status: Any) -> bool:
    return isinstance(status, dict) and isinstance(status.get("conditions"), list) and bool(status["conditions"])


def conditions_of(obj: Obj, rules: Iterable[Mapping[str, Any]]) -> list[Obj]:
    """Return the conditions that ``conditionRules`` make of an object, without times; a well-known rule that does not
    exist for the kind makes none."""
    steps = _Steps()
    made = [_condition(obj, rule, steps) for rule in rules]
    return [one for one in made if one is not None and one["type"]]


class _Steps:
    """The steps left for the rules of one manifest."""

    def __init__(self) -> None:
        self._left = MOST_STEPS

    def evaluate(self, program: Program, variables: Mapping[str, Any]) -> Any:
        """Return the value. Raises :class:`_RuleError`."""
        given = {**variables, **FUNCTIONS, "@hasConditions": _has_conditions}
        try:
            return program.evaluate(given, self._spend, limit=self._left)
        except CostExceeded as error:
            raise _RuleError("CEL evaluation budget exceeded" if self._left <= 0 else str(error)) from error
        except EvaluationError as error:
            raise _RuleError(str(error)) from error

    def _spend(self, steps: int) -> None:
        self._left -= steps


def _condition(obj: Obj, rule: Mapping[str, Any], steps: _Steps) -> Obj | None:
    kind = str(rule.get("condition") or "")
    match rule.get("type"):
        case "CEL":
            return _by_expressions(obj, kind, rule, steps)
        case "WellKnownConditions":
            known = _WELL_KNOWN.get((gvk_of(obj), kind))
            own = {name: rule[name] for name in ("message", "messageExpression") if rule.get(name)}
            return None if known is None else _by_expressions(obj, kind, {**known, **own}, steps)
        case other:
            return condition(kind, "Unknown", INVALID, f"unrecognized condition rule type {other or ''}")


def _by_expressions(obj: Obj, kind: str, rule: Mapping[str, Any], steps: _Steps) -> Obj:
    try:
        holds = all(_truth(obj, str(text), steps) for text in rule.get("celExpressions") or ())
    except _RuleError as error:
        return condition(kind, "False", EXPRESSION_ERROR, str(error))
    try:
        message = _message(obj, rule, holds, steps) or str(rule.get("message") or "")
    except _RuleError as error:
        message = str(error)
    default = f"Manifest is {kind}" if holds else f"Manifest is not {kind}"
    return condition(kind, "True" if holds else "False", EVALUATED, message or default)


def _truth(obj: Obj, text: str, steps: _Steps) -> bool:
    program = _program(text, False)
    value = steps.evaluate(program, {"object": obj})
    if not isinstance(value, bool):
        raise _RuleError(f"expected bool result, got {_go_type(program, value)}")
    return value


def _message(obj: Obj, rule: Mapping[str, Any], holds: bool, steps: _Steps) -> str:
    """Return the text of ``messageExpression``, empty without one. Raises :class:`_RuleError`."""
    text = str(rule.get("messageExpression") or "")
    if not text:
        return ""
    try:
        program = _program(text, True)
    except _RuleError as error:
        raise _RuleError(str(error).partition("\n | ")[0]) from error
    value = steps.evaluate(program, {"object": obj, "result": holds})
    if not isinstance(value, str):
        raise _RuleError(f"expected message expression to have a string result, got {_go_type(program, value)}")
    return value


def _program(text: str, for_message: bool) -> Program:
    found = _compiled(text, for_message) if len(text) <= MAX_EXPRESSION else _too_long(text)
    if isinstance(found, str):
        raise _RuleError(found)
    return found


def _too_long(text: str) -> str:
    return f"ERROR: <input>:1:0: found {len(text)} characters; at most {MAX_EXPRESSION}"


@lru_cache(maxsize=1_000)
def _compiled(text: str, for_message: bool) -> Program | str:
    """Return the program or cel-go's error; both are kept."""
    try:
        return compile_program(text, _FOR_MESSAGES if for_message else _VARIABLES, language=language_with(_DECLARED))
    except CelError as error:
        return str(error)


def _go_type(program: Program, value: Any) -> str:
    """Return the name of the value's type in Go; lists and maps that the expression makes have one of their own."""
    name = type_name(value)
    return _MADE.get(str(program.type[0])) or _GO_TYPES.get(name, name)
