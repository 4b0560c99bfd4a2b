"""Validation rules in the schemas of definitions: do they compile, and are they conditions.

Called by ``schemacheck.py`` for schemas that are sound. Source: apiextensions-apiserver ``validation.go``.
"""

from __future__ import annotations

from syncline.kube import fieldcauses as causes
from syncline.kube.errors import FieldCause
from syncline.kube.expr import RuleError, UnsupportedRule, compile_rule, engine_available
from syncline.kube.objects import Obj
from syncline.kube.rules import variables_of

__all__ = ["RuleContext", "root_context", "rule_text_causes"]


class RuleContext:
    """What is known about the place of a schema: how often it may stand in an object."""

    def check(self, raw: Obj, path: str, uncorrelated: str) -> list[FieldCause]:
        found: list[FieldCause] = []
        if engine_available():
            for index, rule in enumerate(raw.get("x-kubernetes-validations") or []):
                found += _compile_errors(rule, raw, f"{path}.x-kubernetes-validations[{index}]")
        return found

    def child_property(self, raw: Obj, name: str) -> RuleContext:
        return self

    def child_items(self, raw: Obj) -> RuleContext:
        return self

    def child_additional(self, raw: Obj) -> RuleContext:
        return self

    def total_causes(self, path: str) -> list[FieldCause]:
        return []


def root_context(raw: Obj) -> RuleContext:
    return RuleContext()


def rule_text_causes(raw: Obj, path: str) -> list[FieldCause]:
    found = []
    for index, rule in enumerate(raw.get("x-kubernetes-validations") or []):
        if not (rule.get("rule") or "").strip():
            here = f"{path}.x-kubernetes-validations[{index}].rule"
            found.append(causes.required(here, "rule is not specified"))
    return found


def _compile_errors(rule: Obj, raw: Obj, path: str) -> list[FieldCause]:
    found = []
    for field, wanted in (("rule", "bool"), ("messageExpression", "string")):
        if not rule.get(field):
            continue
        try:
            returns = compile_rule(rule[field], variables_of(raw)).returns
        except UnsupportedRule:
            continue
        except RuleError as error:
            found.append(causes.invalid_value(f"{path}.{field}", rule, str(error)))
            continue
        if returns not in (wanted, "dyn"):
            why = "cel expression must evaluate to a bool" if field == "rule" else "messageExpression must be a string"
            found.append(causes.invalid_value(f"{path}.{field}", rule, why))
    return found
