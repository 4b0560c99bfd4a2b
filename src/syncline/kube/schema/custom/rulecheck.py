"""Validation rules in the schemas of definitions: do they compile, are they conditions, what may they cost.

Called by ``schemacheck.py`` on its walk through a schema. Errors in the texts of a rule are always reported;
rules are compiled only in schemas that are sound. Source: apiextensions-apiserver ``apis/apiextensions/validation``
(validation.go, cel_validation.go) and ``pkg/apiserver/schema/cel/compilation.go``.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from syncline.kube.cel.cost import MAX_COST, expression_cost
from syncline.kube.cel.literals import FoldingError
from syncline.kube.cel.nodes import CelError
from syncline.kube.cel.program import Program, compile_program
from syncline.kube.cel.types import BOOL, STRING
from syncline.kube.errors import FieldCause
from syncline.kube.objects import Obj
from syncline.kube.patching.fieldpath import FieldPathError, find_field
from syncline.kube.schema import fieldcauses as causes
from syncline.kube.schema.custom.celschema import MAX_REQUEST_BYTES, Decl, declare

COST_LIMIT = 10_000_000
TOTAL_COST_LIMIT = 100_000_000
MOST_EXPENSIVE = 4
REASONS = ("FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired")
_HINT = (
    "(try simplifying the rule, or adding maxItems, maxProperties, and maxLength where arrays, maps, and strings are "
    "declared)"
)


# --- texts ---------------------------------------------------------------------------------------------------------


def rule_text_causes(raw: Obj, path: str) -> list[FieldCause]:
    """What is wrong with the rules of one schema before they are compiled."""
    found: list[FieldCause] = []
    for index, rule in enumerate(raw.get("x-kubernetes-validations") or []):
        found += _text_causes(rule, raw, f"{path}.x-kubernetes-validations[{index}]")
    return found


def _text_causes(rule: Obj, raw: Obj, path: str) -> list[FieldCause]:
    text, message = rule.get("rule") or "", rule.get("message") or ""
    expression, where, reason = rule.get("messageExpression") or "", rule.get("fieldPath") or "", rule.get("reason")
    found: list[FieldCause] = []
    if not text.strip():
        found.append(causes.required(f"{path}.rule", "rule is not specified"))
    elif message and not message.strip():
        found.append(causes.invalid_value(f"{path}.message", message, "must be non-empty if specified"))
    elif _has_lines(message.strip()):
        found.append(causes.invalid_value(f"{path}.message", message, "must not contain line breaks"))
    elif _has_lines(text.strip()) and not message.strip():
        found.append(causes.required(f"{path}.message", "message must be specified if rule contains line breaks"))
    if expression and not expression.strip():
        why = "messageExpression must be non-empty if specified"
        found.append(causes.required(f"{path}.messageExpression", why))
    if reason is not None and reason not in REASONS:
        found.append(causes.not_supported(f"{path}.reason", reason, REASONS))
    if where and not where.strip():
        found.append(causes.invalid_value(f"{path}.fieldPath", where, "must be non-empty if specified"))
    if _has_lines(where):
        found.append(causes.invalid_value(f"{path}.fieldPath", where, "must not contain line breaks"))
    if where:
        try:
            find_field(where, raw)
        except FieldPathError:
            found.append(causes.invalid_value(f"{path}.fieldPath", where, "must be a valid path"))
    return found


def _has_lines(text: str) -> bool:
    return "\n" in text or "\r" in text


# --- compilation and cost ------------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Total:
    cost: int = 0
    expensive: list[tuple[int, str]] = field(default_factory=list)

    def add(self, cost: int, path: str) -> None:
        self.cost = min(self.cost + cost, MAX_COST)
        if cost >= TOTAL_COST_LIMIT // 100:
            self.expensive = sorted([*self.expensive, (cost, path)], key=lambda one: -one[0])[:MOST_EXPENSIVE]


@dataclass(frozen=True, slots=True)
class RuleContext:
    """What is known about the place of a schema: how often it may stand in an object (None: without bound)."""

    raw: Any
    times: int | None
    total: _Total
    decl: Decl | None
    unchanged: bool

    def child_property(self, raw: Any, name: str) -> RuleContext:
        return self._child(raw)

    def child_items(self, raw: Any) -> RuleContext:
        return self._child(raw)

    def child_additional(self, raw: Any) -> RuleContext:
        return self._child(raw)

    def _child(self, raw: Any) -> RuleContext:
        factor = _most_children(self.raw)
        times = None if self.times is None or factor is None else min(self.times * factor, MAX_COST)
        rules = isinstance(raw, dict) and raw.get("x-kubernetes-validations")
        embedded = isinstance(raw, dict) and bool(raw.get("x-kubernetes-embedded-resource"))
        return RuleContext(raw, times, self.total, declare(raw, resource=embedded) if rules else None, self.unchanged)

    def check(self, raw: Obj, path: str, uncorrelated: str) -> list[FieldCause]:
        """Compile the rules of this schema; ``uncorrelated`` is the list or map above whose old entries are unknown."""
        found: list[FieldCause] = []
        if self.decl is None:
            return found
        for index, rule in enumerate(raw.get("x-kubernetes-validations") or []):
            found += self._rule(rule, f"{path}.x-kubernetes-validations[{index}]", uncorrelated)
        return found

    def _rule(self, rule: Obj, path: str, uncorrelated: str) -> list[FieldCause]:
        assert self.decl is not None
        kind = self.decl.type
        old = ("optional_type", kind) if rule.get("optionalOldSelf") else kind
        variables = {"self": kind, "oldSelf": old}
        found: list[FieldCause] = []
        try:
            program = compile_program(rule["rule"], variables)
        except CelError as error:
            stage = "program instantiation" if isinstance(error, FoldingError) else "compilation"
            report = causes.invalid_value(f"{path}.rule", rule, f"{stage} failed: {error}")
            return [report, *self._stray(rule, path)]
        if program.type != BOOL:
            why = "cel expression must evaluate to a bool"
            return [causes.invalid_value(f"{path}.rule", rule, why), *self._stray(rule, path)]
        found += self._cost(program, "estimated rule cost", f"{path}.rule", self._times())
        if rule.get("messageExpression"):
            found += self._message(rule, variables, path)
        if "oldSelf" in program.names:
            if uncorrelated:
                why = f"oldSelf cannot be used on the uncorrelatable portion of the schema within {uncorrelated}"
                found.append(causes.invalid_value(f"{path}.rule", rule["rule"], why))
            return found
        return found + self._stray(rule, path)

    def _stray(self, rule: Obj, path: str) -> list[FieldCause]:
        if rule.get("optionalOldSelf") is None:
            return []
        why = "may not be set if oldSelf is not used in rule"
        return [causes.invalid_value(f"{path}.optionalOldSelf", rule["optionalOldSelf"], why)]

    def _message(self, rule: Obj, variables: dict[str, Any], path: str) -> list[FieldCause]:
        where = f"{path}.messageExpression"
        try:
            program = compile_program(rule["messageExpression"], variables)
        except CelError as error:
            return [causes.invalid_value(where, rule, f"messageExpression compilation failed: {error}")]
        if program.type != STRING:
            return [causes.invalid_value(where, rule, "messageExpression must evaluate to a string")]
        return self._cost(program, "estimated messageExpression cost", where, 1)

    def _times(self) -> int:
        assert self.decl is not None
        return MAX_REQUEST_BYTES // (self.decl.least + 1) if self.times is None else self.times

    def _cost(self, program: Program, what: str, path: str, times: int) -> list[FieldCause]:
        assert self.decl is not None
        decl = self.decl
        cost = min(expression_cost(program.root, decl.size_of) * times, MAX_COST)
        self.total.add(cost, path)
        if cost <= COST_LIMIT or self.unchanged:
            return []
        return [causes.forbidden(path, _over_budget(what, cost, COST_LIMIT))]

    def total_causes(self, path: str) -> list[FieldCause]:
        """What all rules of the definition may cost together."""
        if self.total.cost <= TOTAL_COST_LIMIT:
            return []
        why = "contributed to estimated rule cost total exceeding cost limit for entire OpenAPIv3 schema"
        found = [causes.forbidden(where, why) for _, where in self.total.expensive]
        what = "x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema"
        return [*found, causes.forbidden(path, _over_budget(what, self.total.cost, TOTAL_COST_LIMIT))]


def _over_budget(what: str, cost: int, limit: int) -> str:
    factor = cost / limit
    shown = "more than 100x" if factor > 100 else f"{factor:.6f}x" if factor < 1.5 else f"{factor:.1f}x"
    return f"{what} exceeds budget by factor of {shown} {_HINT}"


def _most_children(raw: Any) -> int | None:
    if not isinstance(raw, dict):
        return 1
    if raw.get("type") == "object" and raw.get("additionalProperties") is not None:
        most = raw.get("maxProperties")
    elif raw.get("type") == "array":
        most = raw.get("maxItems")
    else:
        return 1
    return None if most is None else max(int(most), 0)


def root_context(raw: Obj, *, unchanged: bool = False) -> RuleContext:
    """``unchanged``: the schema was accepted before, so the cost of its single rules is."""
    decl = declare(raw, resource=True) if raw.get("x-kubernetes-validations") else None
    return RuleContext(raw, 1, _Total(), decl, unchanged)
