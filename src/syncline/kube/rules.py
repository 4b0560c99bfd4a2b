"""Validation rules of custom resources (``x-kubernetes-validations``).

Called after the values of an object were validated. In come the object, the one it replaces and its schema; out come
causes in Kubernetes' words. Where no CEL engine is installed nothing is enforced, and :func:`rules_available` lets the
caller say so once. Never runs on an object whose values are already refused for their types.

Source: apiextensions-apiserver ``pkg/apiserver/schema/cel``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import lru_cache
from typing import Any

from syncline.base.clock import parse_time
from syncline.kube import fieldcauses as causes
from syncline.kube.errors import FieldCause
from syncline.kube.expr import RuleError, UnsupportedRule, compile_rule, engine_available
from syncline.kube.objects import Obj
from syncline.kube.schema.model import Schema

__all__ = ["check_rules", "rules_available"]

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

_OLD_SELF = re.compile(r"\boldSelf\b")
_TEXTS = re.compile(r'"(?:\\.|[^"\\])*"|\'(?:\\.|[^\'\\])*\'')
_DURATION = re.compile(r"(\d+(?:\.\d+)?)(h|ms|m|s)")
_UNITS_S = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 0.001}
_KEYWORDS = frozenset(
    (
        *("true", "false", "null", "in", "as", "break", "const", "continue", "else", "for", "function", "if"),
        *("import", "let", "loop", "package", "namespace", "return", "var", "void", "while"),
    )
)
_ABSENT: Any = object()


def rules_available() -> bool:
    """Whether rules are enforced here; if not, install the extra ``local``."""
    return engine_available()


@dataclass(frozen=True, slots=True)
class _Node:
    """A schema that has rules, or has such below it."""

    raw: Mapping[str, Any]
    rules: tuple[Obj, ...]
    fields: Mapping[str, _Node]
    items: _Node | None
    additional: _Node | None


@lru_cache(maxsize=1024)
def _plan(schema: Schema) -> _Node | None:
    return _node(schema.raw)


def _node(raw: Any) -> _Node | None:
    if not isinstance(raw, Mapping):
        return None
    fields = {name: node for name, below in (raw.get("properties") or {}).items() if (node := _node(below))}
    items, additional = _node(raw.get("items")), _node(raw.get("additionalProperties"))
    rules = tuple(rule for rule in raw.get("x-kubernetes-validations") or () if isinstance(rule, dict))
    if not (rules or fields or items or additional):
        return None
    return _Node(raw, rules, dict(sorted(fields.items())), items, additional)


def check_rules(obj: Obj, old: Obj | None, schema: Schema, found: Sequence[FieldCause] = ()) -> list[FieldCause]:
    """Rules that ``obj`` breaks; ``old`` is what it replaces (None on create), ``found`` what is already refused.

    Rules that name ``oldSelf`` run only where the old object has a value at the same place.
    """
    plan = _plan(schema)
    if plan is None or not engine_available():
        return []
    if any(cause.reason in BLOCKING for cause in found):
        return [causes.invalid_value("", None, NOT_CHECKED)]
    return _check(obj, _ABSENT if old is None else old, plan, "")[:MAX_RULE_CAUSES]


def _check(value: Any, old: Any, node: _Node, path: str) -> list[FieldCause]:
    if value is None:
        return []
    result: list[FieldCause] = []
    for rule in node.rules:
        result += _run(rule, value, old, node.raw, path)
    if isinstance(value, dict):
        for name in sorted(value):
            below = node.fields.get(name) or node.additional
            if below is not None:
                before = old.get(name, _ABSENT) if isinstance(old, dict) else _ABSENT
                result += _check(value[name], before, below, causes.child(path, name))
    elif isinstance(value, list) and node.items is not None:
        for index, item in enumerate(value):
            result += _check(item, _before(item, old, node.raw), node.items, f"{path}[{index}]")
    return result


def _before(item: Any, old: Any, raw: Mapping[str, Any]) -> Any:
    """The old entry with the same keys; entries of other lists cannot be matched."""
    keys = raw.get("x-kubernetes-list-map-keys") or []
    if not keys or not isinstance(old, list) or not isinstance(item, dict):
        return _ABSENT
    wanted = [item.get(key) for key in keys]
    same = (each for each in old if isinstance(each, dict) and [each.get(key) for key in keys] == wanted)
    return next(same, _ABSENT)


def _run(rule: Obj, value: Any, old: Any, raw: Mapping[str, Any], path: str) -> list[FieldCause]:
    text = rule.get("rule") or ""
    if names_old_self(text) and old is _ABSENT:
        return []
    variables = {"self": to_cel(value, raw)}
    if old is not _ABSENT:
        variables["oldSelf"] = to_cel(old, raw)
    try:
        holds = compile_rule(text, variables_of(raw)).evaluate(variables)
    except UnsupportedRule:
        return []
    except RuleError as error:
        return [causes.invalid_value(path, raw.get("type") or "", _failed(error, rule))]
    return [] if holds is True else [_broken(rule, value, variables, raw, path)]


def _failed(error: RuleError, rule: Obj) -> str:
    if str(error) == "no such overload":
        what = "call arguments did not match a supported operator, function or macro signature"
        return f"'{error}': {what} for rule: {_words(rule)}"
    return f"{error} evaluating rule: {_words(rule)}"


def names_old_self(text: str) -> bool:
    """Whether a rule is about a change (a transition rule)."""
    return _OLD_SELF.search(_TEXTS.sub("", text)) is not None


def variables_of(raw: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    """The types of ``self`` and ``oldSelf`` for the compiler."""
    kind = "" if raw.get("x-kubernetes-int-or-string") or raw.get("nullable") else raw.get("type") or ""
    if kind == "string":
        kind = {"date-time": "timestamp", "duration": "duration"}.get(raw.get("format") or "", kind)
    return (("self", kind), ("oldSelf", kind))


def _words(rule: Obj) -> str:
    message = str(rule.get("message") or "").strip()
    return message or f"failed rule: {str(rule.get('rule') or '').strip()}"


def _message(rule: Obj, variables: Mapping[str, Any], raw: Mapping[str, Any]) -> str:
    """The message expression's text; the fixed message where it fails, is empty or has several lines."""
    expression = rule.get("messageExpression")
    if expression:
        try:
            text = compile_rule(expression, variables_of(raw)).evaluate(variables)
        except RuleError:
            return _words(rule)
        if isinstance(text, str) and text.strip() and "\n" not in text:
            return text
    return _words(rule)


def _broken(rule: Obj, value: Any, variables: Mapping[str, Any], raw: Mapping[str, Any], path: str) -> FieldCause:
    message = _message(rule, variables, raw)
    here = path + (rule.get("fieldPath") or "")
    if not path:
        here = here.removeprefix(".")
    shown = causes.OMITTED if isinstance(value, (dict, list)) else value
    match rule.get("reason"):
        case "FieldValueRequired":
            return causes.required(here, message)
        case "FieldValueForbidden":
            return causes.forbidden(here, message)
        case "FieldValueDuplicate":
            return causes.duplicate(here, value)
        case _:
            return causes.invalid_value(here, shown, message)


# --- values as expressions see them --------------------------------------------------------------------------------


def to_cel(value: Any, raw: Any) -> Any:
    """A JSON value with the types that its schema gives it: times, durations, floats; field names made identifiers."""
    if not isinstance(raw, Mapping):
        return value
    if isinstance(value, dict):
        properties, additional = raw.get("properties") or {}, raw.get("additionalProperties")
        return {
            (escape(name) if name in properties else name): to_cel(item, properties.get(name, additional))
            for name, item in value.items()
            if item is not None or name not in properties or properties[name].get("nullable")
        }
    if isinstance(value, list):
        return [to_cel(item, raw.get("items")) for item in value]
    if isinstance(value, str):
        return _typed_text(value, raw.get("format") or "")
    if raw.get("type") == "number" and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    return value


def _typed_text(value: str, form: str) -> Any:
    if form == "date-time":
        try:
            return parse_time(value)
        except ValueError:
            return value
    if form == "duration":
        parts = _DURATION.findall(value)
        return timedelta(seconds=sum(float(number) * _UNITS_S[unit] for number, unit in parts)) if parts else value
    return value


def escape(name: str) -> str:
    """A field's name as rules write it: ``a-b`` is ``a__dash__b``, ``namespace`` is ``__namespace__``."""
    if name in _KEYWORDS:
        return f"__{name}__"
    text = name.replace("__", "__underscores__")
    return text.replace(".", "__dot__").replace("-", "__dash__").replace("/", "__slash__")
