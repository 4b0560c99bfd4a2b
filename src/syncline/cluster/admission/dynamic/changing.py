"""Apply MutatingAdmissionPolicies: expressions return apply configurations or JSON patches for the object.

``cluster/verbs/admitting.py`` calls it before the mutating webhooks. Source: apiserver
``admission/plugin/policy/mutating`` (dispatcher.go, patch/smd.go, patch/json_patch.go).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from syncline.cluster.admission.dynamic.apart import evaluated
from syncline.cluster.admission.dynamic.bindings import kind_in
from syncline.cluster.admission.dynamic.conditions import Budget, OutOfBudget, held
from syncline.cluster.admission.dynamic.judging import Judging, Round, seen_as
from syncline.cluster.admission.dynamic.matching import Match
from syncline.cluster.admission.dynamic.policies import (
    Binding,
    ConfigError,
    Policy,
    Variables,
    applicable,
    excluded,
    params_of,
)
from syncline.cluster.admission.dynamic.steps import StepFailed, patched
from syncline.cluster.admission.dynamic.subject import Subject, forbidden
from syncline.cluster.resources.conversion import convert
from syncline.kube.cel.program import Made
from syncline.kube.cel.values import EvaluationError
from syncline.kube.errors import ApiError
from syncline.kube.objects import Obj, meta
from syncline.kube.patching.typedvalues import Shape, merge, shape_of, type_errors
from syncline.kube.schema.model import Schema, schema_for

POLICIES = "MutatingAdmissionPolicy"


class _Refused(Exception):
    """Why a mutation failed; the failure policy decides the consequence."""


def change(
    judging: Judging, policies: Sequence[Policy], subject: Subject, obj: Obj | None, old: Obj | None, turn: Round
) -> Obj | None:
    """Return the object after all policies. Raises Forbidden with the failures."""
    if subject.operation == "DELETE" or excluded(subject):
        return obj
    turn.begin(POLICIES, obj)
    errors: list[tuple[str, str]] = []
    # Match all policies before any of them changes the object.
    invoked = [
        (policy, match, binding, wrong)
        for policy in policies
        for match, binding, wrong in applicable(judging, policy, subject, obj, old)
    ]
    for policy, match, binding, wrong in invoked:
        try:
            if wrong is not None or binding is None:
                raise ConfigError(str(wrong))
            params = params_of(judging, policy, binding, subject)
        except ConfigError as error:
            errors += _errors(policy, binding, str(error), "")
            continue
        for param in params:
            obj = _invoked(judging, policy, binding, match, subject, obj, old, param, turn, errors)
    turn.left[POLICIES] = obj
    if errors:
        refusal = forbidden(subject, obj, "admission request denied by policy")
        details = {**refusal.details, "causes": [{"message": message} for message, _ in errors]}
        raise ApiError(errors[0][0], code=403, reason=errors[0][1] or "Forbidden", details=details)
    return obj


def _errors(policy: Policy, binding: Binding | None, why: str, reason: str) -> list[tuple[str, str]]:
    if policy.ignores:
        return []
    if binding is None:
        return [(f'policy "{policy.name}" denied request: {why}', reason)]
    return [(f"policy '{policy.name}' with binding '{binding.name}' denied request: {why}", reason)]


def _invoked(
    judging: Judging,
    policy: Policy,
    binding: Binding,
    match: Match,
    subject: Subject,
    obj: Obj | None,
    old: Obj | None,
    param: Obj | None,
    turn: Round,
    errors: list[tuple[str, str]],
) -> Obj | None:
    """Apply one policy with one parameter: each mutation gets the result of the previous one."""
    before = shown = seen_as(obj, subject, match.resource)
    theirs = seen_as(old, subject, match.resource)
    values = {**judging.values(subject, match.resource, shown, theirs), "params": param}
    named = meta(param) if param is not None else {}
    key = f"{policy.name}/{binding.name}/{named.get('namespace', '')}/{named.get('name', '')}"
    holds = evaluated(judging, subject, f"change/{key}/if", held, values, policy.conditions)
    if isinstance(holds, str):
        errors += _errors(policy, binding, holds, "Invalid")
    if holds is not True:
        return obj
    if turn.skips(POLICIES, key):
        return obj
    values["namespaceObject"] = judging.namespace_of(subject)
    for at, rule in enumerate(policy.rules):
        if shown is None:
            break
        values["object"] = shown
        made, problem = evaluated(judging, subject, f"change/{key}/{at}", _made, values, policy, at)
        try:
            if problem:
                raise _Refused(problem)
            if rule.patch_type == "ApplyConfiguration":
                patched = _merged(shown, made, _schema(judging, subject, match))
            else:
                patched = _patched(shown, made)
        except _Refused as error:
            errors += _errors(policy, binding, str(error), "Invalid")
            continue
        shown = judging.renew(patched, kind_in(subject, match.resource))
    changed = shown != before
    turn.note(POLICIES, key, changed=changed, again=policy.reinvoked)
    return convert(shown, subject.kind) if changed and shown is not None else obj


def _made(values: Mapping[str, Any], policy: Policy, at: int) -> tuple[Any, str]:
    """Return the value of a mutation's expression, or the error."""
    budget = Budget()
    try:
        given = {**values, "variables": Variables(policy, values, budget)}
        return policy.rules[at].check.evaluate(given, budget), ""
    except (EvaluationError, OutOfBudget) as error:
        return None, str(error)


def _schema(judging: Judging, subject: Subject, match: Match) -> Schema | None:
    kind = kind_in(subject, match.resource)
    return match.resource.schema if kind == match.resource.gvk else schema_for(kind)


# --- apply configurations ------------------------------------------------------------------------------------------


def _merged(obj: Obj, made: Any, schema: Schema | None) -> Obj:
    """Merge as server-side apply does, but without owners; refuse to replace atomic lists or maps."""
    wrong = _misnamed(made, "Object")
    if wrong:
        raise _Refused(f"type mismatch: {wrong}")
    applied = {**_plain(made), "apiVersion": obj.get("apiVersion"), "kind": obj.get("kind")}
    errors = type_errors(applied, schema)
    if errors:
        raise _Refused(f"error applying patch: failed to convert patch object to typed object: {errors[0]}")
    atomics = list(_atomics(applied, shape_of(schema), ""))
    if atomics:
        listed = ", ".join(atomics)
        why = f"invalid ApplyConfiguration: may not mutate atomic arrays, maps or structs: {listed}"
        raise _Refused(f"error applying patch: {why}")
    return merge(obj, applied, schema)


def _misnamed(value: Any, path: str) -> str:
    """Return an error for an object value whose type name does not match its field."""
    if isinstance(value, Made):
        if value.kind != path:
            expected = f'expected "{path}", which matches field name path from root Object type'
            return f'unexpected type name "{value.kind}", {expected}'
        found = (_misnamed(item, f"{path}.{name}") for name, item in value.items())
    elif isinstance(value, dict):
        found = (_misnamed(item, path) for item in value.values())
    elif isinstance(value, list):
        found = (_misnamed(item, path) for item in value)
    else:
        return ""
    return next((one for one in found if one), "")


def _plain(value: Any) -> Any:
    """Return an expression's value as JSON."""
    if isinstance(value, dict):
        return {str(name): _plain(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if value is None or isinstance(value, str | bool | int | float):
        return int(value) if isinstance(value, int) and not isinstance(value, bool) else value
    raise _Refused(
        f"JSONPath valueExpression evaluated to a type that could not marshal to JSON: {type(value).__name__}"
    )


def _atomics(value: Any, shape: Shape, path: str) -> Iterator[str]:
    """Yield the paths of atomic lists and maps."""
    if isinstance(value, dict):
        if shape.map_atomic:
            yield path
        for name, item in value.items():
            below = shape.child(name) if name in shape.declared else None
            if below is not None:
                yield from _atomics(item, below, f"{path}.{name}")
    elif isinstance(value, list):
        if shape.list_type == "atomic":
            yield path
        for index, item in enumerate(value):
            yield from _atomics(item, shape.element, f"{path}[{index}]")


# --- JSON patches --------------------------------------------------------------------------------------------------


def _patched(obj: Obj, made: Any) -> Any:
    """Apply a JSON patch; a failed test leaves the object unchanged."""
    try:
        return patched(obj, [_step(step) for step in made])
    except StepFailed as failure:
        if failure.test:
            return obj
        raise _Refused(f"JSON Patch: {failure}") from None


def _step(made: Mapping[str, Any]) -> Obj:
    value = made.get("value")
    if isinstance(value, Made):
        wrong = _misnamed(value, value.kind)
        if wrong:
            raise _Refused(f"type mismatch: {wrong}")
    operation: Obj = {"op": str(made.get("op", "")), "path": str(made.get("path", ""))}
    if made.get("from"):
        operation["from"] = str(made["from"])
    if "value" in made:
        operation["value"] = _plain(value)
    return operation
