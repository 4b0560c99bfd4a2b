"""Enforce ValidatingAdmissionPolicies: evaluate each policy, binding and parameter, and raise the first denial.

``cluster/verbs/admitting.py`` calls it before the validating webhooks. It makes no outbound calls. Source: apiserver
``admission/plugin/policy/validating`` (dispatcher.go, validator.go).
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from syncline.cluster.admission.dynamic.apart import evaluated
from syncline.cluster.admission.dynamic.conditions import Budget, OutOfBudget, held
from syncline.cluster.admission.dynamic.judging import Judging, seen_as
from syncline.cluster.admission.dynamic.matching import Match
from syncline.cluster.admission.dynamic.policies import (
    Binding,
    ConfigError,
    Policy,
    Rule,
    Variables,
    applicable,
    excluded,
    params_of,
)
from syncline.cluster.admission.dynamic.subject import Subject, forbidden
from syncline.kube.cel.values import EvaluationError
from syncline.kube.errors import ApiError
from syncline.kube.objects import Obj

FAILURE = "validation.policy.admission.k8s.io/validation_failure"
MAX_MESSAGE_BYTES = 5 * 1024
"""Longer messages of expressions are ignored (``MaxEvaluatedMessageExpressionSizeBytes``)."""
MAX_ANNOTATION_BYTES = 10 * 1024
CODES = {"Forbidden": 403, "Unauthorized": 401, "RequestEntityTooLarge": 413}
INVALID = 422


@dataclass(frozen=True, slots=True)
class _Denial:
    """``index`` counts the policy's validations. ``always``: denied whatever the binding's actions are."""

    message: str
    reason: str = ""
    index: int = 0
    always: bool = False


def enforce(judging: Judging, policies: Sequence[Policy], subject: Subject, obj: Obj | None, old: Obj | None) -> None:
    """Raise the first denial in its policy's words."""
    if excluded(subject):
        return
    refusal: ApiError | None = None
    for policy in policies:
        audited: dict[str, list[str]] = {}
        for match, binding, wrong in applicable(judging, policy, subject, obj, old):
            if wrong is not None or binding is None:
                found = [] if policy.ignores else [_Denial(str(wrong), always=True)]
            else:
                found = _bound(judging, policy, binding, match, subject, obj, old, audited)
            for denial in found:
                denied = denial.always or _act(judging, policy, binding, denial)
                if denied and refusal is None:
                    refusal = _refused(subject, obj or old, policy, binding, denial)
        for key, texts in audited.items():
            judging.annotate(f"{policy.name}/{key}", ", ".join(texts))
    if refusal is not None:
        raise refusal


def _act(judging: Judging, policy: Policy, binding: Binding | None, denial: _Denial) -> bool:
    """Warn and audit; return whether the binding denies."""
    assert binding is not None, "only bindings have actions"
    if "Warn" in binding.actions:
        where = f"ValidatingAdmissionPolicy '{policy.name}' with binding '{binding.name}'"
        judging.warn(f"Validation failed for {where}: {denial.message}")
    if "Audit" in binding.actions:
        message = {
            "message": denial.message,
            "policy": policy.name,
            "binding": binding.name,
            "expressionIndex": denial.index,
            "validationActions": list(binding.actions),
        }
        judging.annotate(FAILURE, json.dumps([message], separators=(",", ":")))
    return "Deny" in binding.actions


def _refused(subject: Subject, obj: Obj | None, policy: Policy, binding: Binding | None, denial: _Denial) -> ApiError:
    bound = f" with binding '{binding.name}'" if binding is not None else ""
    message = f"ValidatingAdmissionPolicy '{policy.name}'{bound} denied request: {denial.message}"
    refusal = forbidden(subject, obj, message)
    reason = denial.reason or "Invalid"
    details = {**refusal.details, "causes": [{"message": message}]}
    return ApiError(refusal.message, code=CODES.get(reason, INVALID), reason=reason, details=details)


def _bound(
    judging: Judging,
    policy: Policy,
    binding: Binding,
    match: Match,
    subject: Subject,
    obj: Obj | None,
    old: Obj | None,
    audited: dict[str, list[str]],
) -> list[_Denial]:
    try:
        params = params_of(judging, policy, binding, subject)
    except ConfigError as error:
        return [] if policy.ignores else [_Denial(str(error), always=True)]
    mine, theirs = (seen_as(one, subject, match.resource) for one in (obj, old))
    values = judging.values(subject, match.resource, mine, theirs)
    found: list[_Denial] = []
    for at, param in enumerate(params):
        name, given = f"policy/{policy.name}/{binding.name}/{at}", {**values, "params": param}
        # Match conditions have no namespaceObject; other expressions do.
        holds = evaluated(judging, subject, f"{name}/if", held, given, policy.conditions)
        if isinstance(holds, str):
            found += [] if policy.ignores else [_Denial(holds)]
        if holds is not True:
            continue
        given["namespaceObject"] = judging.namespace_of(subject)
        denials, texts = evaluated(judging, subject, name, _judged, given, policy)
        found += denials
        for key, text in texts:
            kept = audited.setdefault(key, [])
            if text not in kept:
                kept.append(text)
    return found


def _judged(values: Mapping[str, Any], policy: Policy) -> tuple[list[_Denial], list[tuple[str, str]]]:
    """Evaluate one policy with one parameter; return its denials and audit annotations."""
    budget, audited = Budget(), list[tuple[str, str]]()
    values = {**values, "variables": Variables(policy, values, budget)}
    try:
        found = [denial for at, rule in enumerate(policy.rules) if (denial := _ruled(policy, rule, at, values, budget))]
        return found + _annotated(policy, values, audited), audited
    except OutOfBudget as error:
        return [] if policy.ignores else [_Denial(str(error))], audited


def _ruled(policy: Policy, rule: Rule, at: int, values: Mapping[str, Any], budget: Budget) -> _Denial | None:
    try:
        if rule.check.evaluate(values, budget) is True:
            return None
    except EvaluationError as error:
        return None if policy.ignores else _Denial(str(error), index=at)
    return _Denial(_message(rule, values, budget), rule.reason, at)


def _message(rule: Rule, values: Mapping[str, Any], budget: Budget) -> str:
    """Return the message expression's value if it is one line, else the fixed message, else the expression."""
    said: Any = ""
    if rule.message is not None:
        try:
            said = rule.message.evaluate(values, budget)
        except EvaluationError:
            said = ""  # Kubernetes logs it for the policy's author and uses the fixed message.
    text = said.strip() if isinstance(said, str) else ""
    if not text or "\n" in text or len(text.encode()) > MAX_MESSAGE_BYTES:
        text = rule.fixed
    return text or f"failed expression: {rule.check.text.strip()}"


def _annotated(policy: Policy, values: Mapping[str, Any], audited: list[tuple[str, str]]) -> list[_Denial]:
    """Evaluate audit annotations, within a separate budget."""
    budget = Budget()
    found = []
    for rule in policy.audits:
        try:
            value = rule.check.evaluate(values, budget)
        except EvaluationError as error:
            if not policy.ignores:
                found.append(_Denial(str(error), always=True))
            continue
        text = value.strip() if isinstance(value, str) else ""
        if text:
            audited.append((rule.key, text.encode()[:MAX_ANNOTATION_BYTES].decode(errors="ignore")))
    return found
