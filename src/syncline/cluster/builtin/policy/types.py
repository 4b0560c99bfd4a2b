"""Warn in a ValidatingAdmissionPolicy's status about expressions that do not fit its types.

A policy compiles without the types of its objects; here each expression is checked once for every built-in kind in its
rules. Source: ``pkg/controller/validatingadmissionpolicystatus`` and apiserver
``admission/plugin/policy/validating/typechecking.go``.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from syncline.cluster.validation.policy.admissionrules import ANYTHING, Expressions
from syncline.control.cache import Snapshot
from syncline.control.controller import Controller
from syncline.control.plan import Plan, set_status
from syncline.kube.cel.types import Type
from syncline.kube.objects import (
    GVK,
    GroupKind,
    Obj,
    ObjectRef,
    dig,
    generation,
    gvk_of,
    is_terminating,
    name_of,
)
from syncline.kube.schema.model import schema_for
from syncline.kube.schema.schematypes import type_of

POLICY = GroupKind("admissionregistration.k8s.io", "ValidatingAdmissionPolicy")
MOST_TYPES = 10
"""Kinds that a policy is checked against (``maxTypesToCheck``)."""


@dataclass(frozen=True, slots=True)
class Observed:
    """``kinds``: the kinds in the policy's rules, in order."""

    policy: Obj
    kinds: tuple[GVK, ...]


def plan(observed: Observed, now: datetime) -> Plan:
    """Write one status per generation."""
    policy = observed.policy
    if generation(policy) <= int(dig(policy, "status", "observedGeneration", default=0) or 0):
        return Plan(why="this generation was checked")
    warnings = list(_warnings(policy, observed.kinds))
    checked: Obj = {"expressionWarnings": warnings} if warnings else {}
    status = {**(policy.get("status") or {}), "observedGeneration": generation(policy), "typeChecking": checked}
    why = f"{name_of(policy)} has {len(warnings)} expressions that do not fit" if warnings else "its expressions fit"
    return Plan(status=set_status(policy, status, why), why=why)


def _warnings(policy: Obj, kinds: tuple[GVK, ...]) -> Iterator[Obj]:
    validations: list[Any] = dig(policy, "spec", "validations", default=[]) or []
    for index, one in enumerate(validations):
        for field in ("expression", "messageExpression"):
            text = one.get(field)
            found = [said for kind in kinds if (said := _checked(policy, kind, str(text)))] if text else []
            if found:
                yield {"fieldRef": f"spec.validations[{index}].{field}", "warning": "\n".join(found)}


def _checked(policy: Obj, kind: GVK, text: str) -> str:
    """Return an expression's type errors for objects of one kind, or ""."""
    schema = schema_for(kind)
    if schema is None:
        return ""
    spec = policy["spec"]
    mine = type_of(schema)
    typed: dict[str, Type] = {"object": mine, "oldObject": mine}
    param = schema_for(gvk_of(spec["paramKind"])) if spec.get("paramKind") else None
    if param is not None:
        typed["params"] = type_of(param)
    expressions = Expressions(params=bool(spec.get("paramKind")), composed=True, typed=typed)
    for one in spec.get("variables") or ():
        expressions.declare(str(one.get("name") or ""), str(one.get("expression") or ""))
    fault = expressions.fault(text, ANYTHING)
    if fault is None:
        return ""
    shown = f"{kind.group}/{kind.version}, Kind={kind.kind}"
    return f"{shown}: {fault.detail.removeprefix('compilation failed: ')}\n"


def _kinds(policy: Obj, cache: Snapshot) -> Iterator[GVK]:
    rules = dig(policy, "spec", "matchConstraints", "resourceRules", default=[]) or []
    known = {(info.group, info.version, info.plural): info.gvk for info in cache.mapper.all()}
    for rule in rules:
        groups, versions = rule.get("apiGroups") or (), rule.get("apiVersions") or ()
        if any("*" in one for one in (*groups, *versions)):
            continue
        plurals = sorted(one for one in rule.get("resources") or () if "*" not in one and "/" not in one)
        named = [
            (group, version, plural) for group in sorted(groups) for version in sorted(versions) for plural in plurals
        ]
        yield from (known[one] for one in named if one in known)


def _observe(cache: Snapshot, ref: ObjectRef) -> Observed | None:
    policy = cache.get(ref)
    if policy is None or is_terminating(policy):
        return None
    kinds = sorted(dict.fromkeys(_kinds(policy, cache)), key=lambda kind: (kind.group, kind.version, kind.kind))
    return Observed(policy, tuple(kinds[:MOST_TYPES]))


POLICY_TYPES_CONTROLLER = Controller(
    name="policy-types",
    kind=POLICY,
    observe=_observe,
    plan=plan,
)
"""Maintains one status per policy."""
