"""When a Job fails or succeeds early: its pod failure policy and success policy.

Called by ``jobs.py``. A Job's spec and a path come in, causes leave. Source: Kubernetes
``pkg/apis/batch/validation`` (validatePodFailurePolicy, validateSuccessPolicy).
"""

from __future__ import annotations

from syncline.cluster.validation.engine import names
from syncline.cluster.validation.engine.causes import (
    duplicate,
    go_text,
    invalid,
    invalid_whole,
    required,
    too_many,
    unsupported,
)
from syncline.cluster.validation.engine.fields import each, natural_numbers
from syncline.cluster.validation.workloads.jobstatus import count_indexes
from syncline.kube.errors import FieldCause
from syncline.kube.objects import Obj

__all__ = ["INDEXED_ONLY", "failure_policy_causes", "success_policy_causes"]

INDEXED_ONLY = "requires indexed completion mode"
ACTIONS = ("Count", "FailIndex", "FailJob", "Ignore")
STATUSES = ("False", "True", "Unknown")
OPERATORS = ("In", "NotIn")
MAX_RULES = 20
MAX_CONDITIONS = 20
MAX_EXIT_CODES = 255
MAX_SUCCESS_RULES = 20


def failure_policy_causes(spec: Obj, path: str) -> list[FieldCause]:
    policy = spec.get("podFailurePolicy")
    if not isinstance(policy, dict):
        return []
    rules = policy.get("rules") or []
    causes = [too_many(f"{path}.rules", len(rules), MAX_RULES)] if len(rules) > MAX_RULES else []
    known = _container_names(spec)
    for where, rule in each(policy, "rules", path):
        causes += _action_causes(spec, rule, f"{where}.action")
        codes, conditions = rule.get("onExitCodes"), rule.get("onPodConditions") or []
        if isinstance(codes, dict):
            causes += _exit_code_causes(codes, f"{where}.onExitCodes", known)
        if len(conditions) > MAX_CONDITIONS:
            causes.append(too_many(f"{where}.onPodConditions", len(conditions), MAX_CONDITIONS))
        for at, pattern in each(rule, "onPodConditions", where):
            kind = str(pattern.get("type", ""))
            causes += [invalid(f"{at}.type", kind, problem) for problem in names.qualified_name(kind)]
            causes += _word_causes(pattern.get("status"), f"{at}.status", STATUSES)
        if codes is not None and conditions:
            causes.append(invalid_whole(where, "specifying both OnExitCodes and OnPodConditions is not supported"))
        elif codes is None and not conditions:
            causes.append(invalid_whole(where, "specifying one of OnExitCodes and OnPodConditions is required"))
    return causes


def _container_names(spec: Obj) -> set[str]:
    pod = (spec.get("template") or {}).get("spec") or {}
    return {str(one.get("name")) for key in ("containers", "initContainers") for _, one in each(pod, key, "")}


def _word_causes(value: object, path: str, allowed: tuple[str, ...]) -> list[FieldCause]:
    if not value:
        listed = " ".join(go_text(word) for word in allowed)
        return [required(path, f"valid values: [{listed}]")]
    return [] if value in allowed else [unsupported(path, value, allowed)]


def _action_causes(spec: Obj, rule: Obj, path: str) -> list[FieldCause]:
    action = rule.get("action")
    if action == "FailIndex" and spec.get("backoffLimitPerIndex") is None:
        return [invalid(path, action, "requires the backoffLimitPerIndex to be set")]
    return _word_causes(action, path, ACTIONS)


def _exit_code_causes(codes: Obj, path: str, known: set[str]) -> list[FieldCause]:
    causes = _word_causes(codes.get("operator"), f"{path}.operator", OPERATORS)
    container = codes.get("containerName")
    if container is not None and container not in known:
        why = "must be one of the container or initContainer names in the pod template"
        causes.append(invalid(f"{path}.containerName", container, why))
    values = codes.get("values") or []
    if not values:
        return [*causes, invalid(f"{path}.values", values, "at least one value is required")]
    if len(values) > MAX_EXIT_CODES:
        causes.append(too_many(f"{path}.values", len(values), MAX_EXIT_CODES))
    for index, value in enumerate(values):
        if codes.get("operator") == "In" and value == 0:
            causes.append(invalid(f"{path}.values[{index}]", value, "must not be 0 for the In operator"))
        if value in values[:index]:
            causes.append(duplicate(f"{path}.values[{index}]", value))
    if list(values) != sorted(values):
        causes.append(invalid(f"{path}.values", values, "must be ordered"))
    return causes


def success_policy_causes(spec: Obj, path: str) -> list[FieldCause]:
    policy = spec.get("successPolicy")
    if not isinstance(policy, dict):
        return []
    if spec.get("completionMode") != "Indexed":
        return [invalid(path, policy, INDEXED_ONLY)]
    rules = policy.get("rules") or []
    causes: list[FieldCause] = []
    if not rules:
        why = "at least one rules must be specified when the successPolicy is specified"
        causes.append(required(f"{path}.rules", why))
    if len(rules) > MAX_SUCCESS_RULES:
        causes.append(too_many(f"{path}.rules", len(rules), MAX_SUCCESS_RULES))
    for where, rule in each(policy, "rules", path):
        count, completions = rule.get("succeededCount"), spec.get("completions") or 0
        if count is None and rule.get("succeededIndexes") is None:
            causes.append(required(where, "at least one of succeededCount or succeededIndexes must be specified"))
        total: int | str = 0
        indexes = rule.get("succeededIndexes")
        if indexes is not None:
            total = count_indexes(str(indexes), completions)
            if isinstance(total, str):
                why = f"error parsing succeededIndexes: {total}"
                causes.append(invalid(f"{where}.succeededIndexes", indexes, why))
        causes += natural_numbers(rule, where, "succeededCount")
        if isinstance(count, int) and count > completions:
            why = f"must be less than or equal to {completions} (the number of specified completions)"
            causes.append(invalid(f"{where}.succeededCount", count, why))
        named = total if isinstance(total, int) else 0
        if isinstance(count, int) and indexes is not None and count > named:
            why = (
                f"must be less than or equal to {named} (the number of indexes in the specified succeededIndexes field)"
            )
            causes.append(invalid(f"{where}.succeededCount", count, why))
    return causes
