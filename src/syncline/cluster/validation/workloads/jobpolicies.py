"""A Job's pod failure policy and success policy, which end it early.

``jobs.py`` calls it with a Job's spec and a path. Source: Kubernetes ``pkg/apis/batch/validation``
(validatePodFailurePolicy, validateSuccessPolicy).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from typing import Any

from syncline.cluster.validation.engine import rules as r
from syncline.cluster.validation.engine.causes import duplicate, go_text, invalid, invalid_whole, required
from syncline.cluster.validation.workloads.jobstatus import count_indexes
from syncline.kube.errors import FieldCause
from syncline.kube.objects import Obj

INDEXED_ONLY = "requires indexed completion mode"
MAX_RULES, MAX_CONDITIONS, MAX_EXIT_CODES = 20, 20, 255


def _word(*allowed: str) -> r.Rule:
    """Require one of a closed list; the cause for a missing value shows the list too."""
    listed = " ".join(map(go_text, allowed))
    why = f"valid values: [{listed}]"
    return lambda value, path: r.choice(*allowed)(value, path) if value else [required(path, why)]


_ACTION, _OPERATOR = _word("Count", "FailIndex", "FailJob", "Ignore"), _word("In", "NotIn")


def _exit_code_causes(codes: Obj, path: str, known: set[str]) -> Iterator[FieldCause]:
    yield from r.always("operator", _OPERATOR)(codes, path)
    container, values, at = codes.get("containerName"), codes.get("values") or [], f"{path}.values"
    if container is not None and container not in known:
        why = "must be one of the container or initContainer names in the pod template"
        yield invalid(f"{path}.containerName", container, why)
    if not values:
        yield invalid(at, values, "at least one value is required")
        return
    yield from r.most(MAX_EXIT_CODES)(values, at)
    for index, value in enumerate(values):
        if codes.get("operator") == "In" and value == 0:
            yield invalid(f"{at}[{index}]", value, "must not be 0 for the In operator")
        if value in values[:index]:
            yield duplicate(f"{at}[{index}]", value)
    if list(values) != sorted(values):
        yield invalid(at, values, "must be ordered")


def _either(rule: Obj, path: str) -> Iterator[FieldCause]:
    codes, conditions = rule.get("onExitCodes"), rule.get("onPodConditions") or []
    if codes is not None and conditions:
        yield invalid_whole(path, "specifying both OnExitCodes and OnPodConditions is not supported")
    elif codes is None and not conditions:
        yield invalid_whole(path, "specifying one of OnExitCodes and OnPodConditions is required")


def failure_policy_causes(spec: Obj, path: str) -> Iterable[FieldCause]:
    pod = (spec.get("template") or {}).get("spec") or {}
    known = {str(one.get("name")) for key in ("containers", "initContainers") for one in r.list_of(pod, key)}

    def action(value: Any, at: str) -> Iterable[FieldCause]:
        if value == "FailIndex" and spec.get("backoffLimitPerIndex") is None:
            return [invalid(at, value, "requires the backoffLimitPerIndex to be set")]
        return _ACTION(value, at)

    policy = r.every(
        r.field("rules", r.most(MAX_RULES)),
        r.each(
            "rules",
            r.always("action", action),
            r.field("onExitCodes", partial(_exit_code_causes, known=known)),
            r.field("onPodConditions", r.most(MAX_CONDITIONS)),
            r.each(
                "onPodConditions", r.text("type", r.qualified), r.always("status", _word("False", "True", "Unknown"))
            ),
            _either,
        ),
    )
    return policy(spec.get("podFailurePolicy") or {}, path)


def _success_causes(rule: Obj, path: str, completions: int) -> Iterator[FieldCause]:
    count, indexes, at = rule.get("succeededCount"), rule.get("succeededIndexes"), f"{path}.succeededCount"
    if count is None and indexes is None:
        yield required(path, "at least one of succeededCount or succeededIndexes must be specified")
    named = 0 if indexes is None else count_indexes(str(indexes), completions)
    if isinstance(named, str):
        yield invalid(f"{path}.succeededIndexes", indexes, f"error parsing succeededIndexes: {named}")
        named = 0
    yield from r.natural("succeededCount")(rule, path)
    if count is not None and count > completions:
        yield invalid(at, count, f"must be less than or equal to {completions} (the number of specified completions)")
    if count is not None and indexes is not None and count > named:
        why = f"must be less than or equal to {named} (the number of indexes in the specified succeededIndexes field)"
        yield invalid(at, count, why)


def success_policy_causes(spec: Obj, path: str) -> Iterator[FieldCause]:
    policy = spec.get("successPolicy")
    if policy is None:
        return
    if spec.get("completionMode") != "Indexed":
        yield invalid(path, policy, INDEXED_ONLY)
        return
    why = "at least one rules must be specified when the successPolicy is specified"
    yield from r.need("rules", r.most(MAX_RULES), why=why)(policy, path)
    yield from r.each("rules", partial(_success_causes, completions=spec.get("completions") or 0))(policy, path)
