"""Validation rules of custom resources (``x-kubernetes-validations``).

Called after the values of an object were validated. Takes the object, the one it replaces and its schema; returns
causes in Kubernetes' words. Never runs on an object whose values are already refused for their types. On an update,
what did not change is not refused for a rule that it broke before.

Source: apiextensions-apiserver ``pkg/apiserver/schema/cel``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import msgspec

from syncline.kube.cel.nodes import CelError
from syncline.kube.cel.program import MAX_STEPS, Program, compile_program
from syncline.kube.cel.values import EvaluationError, Optional
from syncline.kube.errors import FieldCause
from syncline.kube.objects import Obj
from syncline.kube.patching.fieldpath import FieldPathError, printed_path
from syncline.kube.schema import fieldcauses as causes
from syncline.kube.schema.custom.celschema import converter, declare
from syncline.kube.schema.custom.valuecheck import UNRELATED, old_items, unchanged
from syncline.kube.schema.model import Schema
from syncline.kube.transport.elsewhere import elsewhere, key_of
from syncline.kube.transport.outbound import Computation

BLOCKING = frozenset(
    {
        "FieldValueNotSupported",
        "FieldValueRequired",
        "FieldValueTooLong",
        "FieldValueTooMany",
        "FieldValueTypeInvalid",
    }
)
"""Refusals after which rules are not run, because values may not have the types that rules rely on."""

NOT_CHECKED = (
    "some validation rules were not checked because the object was invalid; "
    "correct the existing errors to complete validation"
)
MAX_RULE_CAUSES = 100
CALLS_PER_OBJECT = 10
"""How often the limit of one evaluation all rules of one object may use up (``RuntimeCELCostBudget`` against
``PerCallLimit``)."""
OUT_OF_BUDGET = "validation failed due to running out of cost budget, no further validation rules will be run"
MAX_MESSAGE_CHARS = 5 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class _Rule:
    """A compiled rule; ``about_change``: it names ``oldSelf``."""

    raw: Obj
    program: Program
    message: Program | None
    about_change: bool


@dataclass(frozen=True, slots=True)
class _Node:
    """A schema that has rules, or has such below it. ``about_change``: one of them names ``oldSelf``; ``convert``: a
    value as its rules see it."""

    raw: Mapping[str, Any]
    convert: Callable[[Any], Any]
    rules: tuple[_Rule, ...]
    fields: Mapping[str, _Node]
    items: _Node | None
    additional: _Node | None
    about_change: bool


@lru_cache(maxsize=1024)
def _plan(schema: Schema) -> _Node | None:
    return _node(schema.raw, resource=True)


def _node(raw: Any, *, resource: bool = False) -> _Node | None:
    if not isinstance(raw, Mapping):
        return None
    fields = {name: node for name, below in (raw.get("properties") or {}).items() if (node := _node(below))}
    items, additional = _node(raw.get("items")), _node(raw.get("additionalProperties"))
    rules = _compiled(raw, resource or bool(raw.get("x-kubernetes-embedded-resource")))
    if not (rules or fields or items or additional):
        return None
    below = [*fields.values(), *(node for node in (items, additional) if node is not None)]
    about_change = any(rule.about_change for rule in rules) or any(node.about_change for node in below)
    convert = converter(raw if rules else None)
    return _Node(raw, convert, rules, dict(sorted(fields.items())), items, additional, about_change)


def _compiled(raw: Mapping[str, Any], resource: bool) -> tuple[_Rule, ...]:
    given = [rule for rule in raw.get("x-kubernetes-validations") or () if isinstance(rule, dict)]
    decl = declare(raw, resource=resource) if given else None
    made = []
    for rule in given if decl is not None else ():
        assert decl is not None
        old = ("optional_type", decl.type) if rule.get("optionalOldSelf") else decl.type
        variables = {"self": decl.type, "oldSelf": old}
        try:
            program = compile_program(rule.get("rule") or "", variables)
            text = rule.get("messageExpression")
            message = compile_program(text, variables) if text else None
        except CelError:  # The definition was stored before rules were checked as strictly.
            continue
        made.append(_Rule(rule, program, message, "oldSelf" in program.names))
    return tuple(made)


def check_rules(obj: Obj, old: Obj | None, schema: Schema, found: Sequence[FieldCause] = ()) -> list[FieldCause]:
    """Rules that ``obj`` breaks; ``old`` is what it replaces (None on create), ``found`` what is already refused.

    Rules that name ``oldSelf`` run only where the old object has a value at the same place, unless they say that they
    take care of its absence (``optionalOldSelf``).
    """
    plan = _plan(schema)
    if plan is None:
        return []
    if any(cause.reason in BLOCKING for cause in found):
        return [causes.invalid_value("", None, NOT_CHECKED)]
    return elsewhere(
        f"rules/{id(plan)}",
        lambda: key_of("rules", obj, old, schema.raw),
        lambda: _checked(obj, UNRELATED if old is None else old, plan, ""),
        lambda: Computation(_check_object, (obj, old, schema.raw)),
    )


def _check_object(obj: Obj, old: Obj | None, raw: Mapping[str, Any]) -> list[FieldCause]:
    """:func:`check_rules` in another process."""
    return check_rules(obj, old, _schema(msgspec.msgpack.encode(raw)))


@lru_cache(maxsize=64)
def _schema(raw: bytes) -> Schema:
    return Schema.from_openapi(msgspec.msgpack.decode(raw))


def check_part_rules(value: Any, raw: Mapping[str, Any], path: str) -> list[FieldCause]:
    """Rules that a value inside an object breaks, such as a default: as one that stays, and as a new one."""
    plan = _node(raw)
    if plan is None:
        return []
    return elsewhere(
        f"part/{path}",
        lambda: key_of("part", value, raw, path),
        lambda: _checked(value, value, plan, path, settled=False) or _checked(value, UNRELATED, plan, path),
        lambda: Computation(check_part_rules, (value, raw, path)),
    )


class _OutOfBudget(Exception):
    """``cause`` is the refusal of the object."""

    def __init__(self, cause: FieldCause) -> None:
        super().__init__(OUT_OF_BUDGET)
        self.cause = cause


@dataclass(slots=True)
class _Budget:
    """Steps that the rules of one object may still take together (``RuntimeCELCostBudget``)."""

    left: int = MAX_STEPS * CALLS_PER_OBJECT

    def spend(self, steps: int) -> None:
        self.left -= steps


def _checked(value: Any, old: Any, node: _Node, path: str, *, settled: bool = True) -> list[FieldCause]:
    found: list[FieldCause] = []
    try:
        _check(value, old, node, path, _Pass(found, _Budget(), settled))
    except _OutOfBudget as end:
        found = [*found[: MAX_RULE_CAUSES - 1], end.cause]
    return found[:MAX_RULE_CAUSES]


@dataclass(frozen=True, slots=True)
class _Pass:
    """``settled``: what is unchanged was accepted before, so it is not refused for what it broke then."""

    found: list[FieldCause]
    budget: _Budget
    settled: bool


def _check(value: Any, old: Any, node: _Node, path: str, run: _Pass) -> None:
    if value is None or (run.settled and not node.about_change and old is not None and unchanged(old, value)):
        return
    if node.rules:
        _run_all(value, old, node, path, run)
    if isinstance(value, dict):
        for name in sorted(value):
            below = node.fields.get(name)
            if below is None and node.additional is None:
                continue
            here = causes.child(path, name)
            if below is None and node.additional is not None and name not in (node.raw.get("properties") or {}):
                below, here = node.additional, f"{path}[{name}]"
            if below is not None:
                before = old.get(name, UNRELATED) if isinstance(old, dict) else UNRELATED
                _check(value[name], before, below, here, run)
    elif isinstance(value, list) and node.items is not None:
        for index, (item, before) in enumerate(zip(value, old_items(value, old, node.raw), strict=True)):
            _check(item, before, node.items, f"{path}[{index}]", run)


def _run_all(value: Any, old: Any, node: _Node, path: str, run: _Pass) -> None:
    stays: bool | None = None
    known = old is not UNRELATED and old is not None
    mine = node.convert(value)
    theirs = node.convert(old) if known and any(rule.about_change for rule in node.rules) else None
    for rule in node.rules:
        optional = bool(rule.raw.get("optionalOldSelf"))
        if rule.about_change and not known and not optional:
            continue
        variables = {"self": mine, "oldSelf": Optional(theirs, known) if optional else theirs}
        cause = _run(rule, value, variables, node.raw, path, run.budget)
        if run.budget.left <= 0:
            raise _OutOfBudget(causes.invalid_value(path, node.raw.get("type") or "", OUT_OF_BUDGET))
        if cause is None:
            continue
        if known and run.settled and not rule.about_change:
            stays = unchanged(old, value) if stays is None else stays
            if stays:
                continue
        run.found.append(cause)


def _run(
    rule: _Rule, value: Any, variables: Mapping[str, Any], raw: Mapping[str, Any], path: str, budget: _Budget
) -> FieldCause | None:
    try:
        holds = rule.program.evaluate(variables, budget.spend, limit=budget.left)
    except EvaluationError as error:
        return causes.invalid_value(path, raw.get("type") or "", _failed(error, rule.raw))
    return None if holds is True else _broken(rule, value, variables, raw, path, budget)


def _failed(error: EvaluationError, rule: Obj) -> str:
    if str(error) == "no such overload":
        what = "call arguments did not match a supported operator, function or macro signature"
        return f"'{error}': {what} for rule: {_called(rule)}"
    if str(error).startswith("operation cancelled"):
        why = "no further validation rules will be run due to call cost exceeds limit for rule"
        return f"'{error}': {why}: {_called(rule)}"
    return f"{error} evaluating rule: {_called(rule)}"


def _called(rule: Obj) -> str:
    """How an error names its rule."""
    return str(rule.get("message") or "").strip() or str(rule.get("rule") or "").strip()


def _words(rule: Obj) -> str:
    message = str(rule.get("message") or "").strip()
    return message or f"failed rule: {str(rule.get('rule') or '').strip()}"


def _message(rule: _Rule, variables: Mapping[str, Any], budget: _Budget) -> str:
    """The message expression's text; the fixed message where it fails, is empty or has several lines."""
    if rule.message is not None:
        try:
            text = rule.message.evaluate(variables, budget.spend, limit=budget.left)
        except EvaluationError:
            return _words(rule.raw)
        if isinstance(text, str) and text.strip() and "\n" not in text and len(text) <= MAX_MESSAGE_CHARS:
            return text.strip()
    return _words(rule.raw)


def _broken(
    rule: _Rule, value: Any, variables: Mapping[str, Any], raw: Mapping[str, Any], path: str, budget: _Budget
) -> FieldCause:
    message = _message(rule, variables, budget)
    here = path + _printed(rule.raw.get("fieldPath") or "", raw)
    if not path:
        here = here.removeprefix(".")
    shown = causes.OMITTED if isinstance(value, (dict, list)) else value
    match rule.raw.get("reason"):
        case "FieldValueRequired":
            return causes.required(here, message)
        case "FieldValueForbidden":
            return causes.forbidden(here, message)
        case "FieldValueDuplicate":
            return causes.duplicate(here, value)
        case _:
            return causes.invalid_value(here, shown, message)


def _printed(where: str, raw: Mapping[str, Any]) -> str:
    try:
        return printed_path(where, raw) if where else ""
    except FieldPathError:
        return where
