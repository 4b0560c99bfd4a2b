"""Compile admission policies, and select the policy, binding and parameter of each invocation.

``configured``, ``enforcing`` and ``changing`` call it. Source: apiserver ``admission/plugin/policy/generic`` and
``admission/plugin/cel/composition.go``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from syncline.cluster.admission.dynamic.conditions import Budget, Compiled, Conditions, compiled, conditions_of
from syncline.cluster.admission.dynamic.judging import Judging
from syncline.cluster.admission.dynamic.matching import Match, Scope, parse_rules, parse_selector
from syncline.cluster.admission.dynamic.subject import Subject
from syncline.cluster.storage.store import Key
from syncline.cluster.validation.policy.admissionrules import (
    APPLIED,
    AUDITED,
    CONDITION,
    JSON_PATCHES,
    MESSAGE,
    Expressions,
)
from syncline.kube.cel.nodes import CelError
from syncline.kube.cel.values import EvaluationError
from syncline.kube.errors import ApiError
from syncline.kube.objects import GVK, Obj, gvk_of, labels_of, name_of
from syncline.kube.selectors import SelectorError, label_selector_from

_EXCLUDED = frozenset(
    (
        "authentication.k8s.io/selfsubjectreviews",
        "authentication.k8s.io/tokenreviews",
        "authorization.k8s.io/localsubjectaccessreviews",
        "authorization.k8s.io/selfsubjectaccessreviews",
        "authorization.k8s.io/selfsubjectrulesreviews",
        "authorization.k8s.io/subjectaccessreviews",
    )
)
"""Access reviews, which a policy could not refuse without breaking the cluster."""


def excluded(subject: Subject) -> bool:
    return subject.resource.storage in _EXCLUDED


@dataclass(frozen=True, slots=True)
class Rule:
    """A validation (with message ``fixed`` and ``reason``), a mutation (``patch_type``), or an audit annotation
    (``key``)."""

    check: Compiled
    message: Compiled | None = None
    fixed: str = ""
    reason: str = ""
    key: str = ""
    patch_type: str = ""


@dataclass(frozen=True, slots=True)
class Binding:
    name: str
    scope: Scope
    actions: tuple[str, ...]
    param_ref: Obj | None


@dataclass(frozen=True, slots=True)
class Policy:
    """Empty ``param_kind``: the policy has no parameters."""

    name: str
    scope: Scope
    conditions: Conditions
    variables: tuple[tuple[str, Compiled], ...]
    rules: tuple[Rule, ...]
    audits: tuple[Rule, ...]
    bindings: tuple[Binding, ...]
    param_kind: GVK | None
    ignores: bool
    reinvoked: bool


def policy_of(obj: Obj, bindings: list[Obj]) -> Policy:
    spec: Obj = obj.get("spec") or {}
    kind = spec.get("paramKind")
    expressions = Expressions(params=bool(kind), composed=True)
    variables = tuple(_variable(one, expressions) for one in spec.get("variables") or ())
    return Policy(
        name=name_of(obj),
        scope=_scope(spec.get("matchConstraints") or {}),
        conditions=conditions_of(spec, expressions),
        variables=variables,
        rules=(*_validations(spec, expressions), *_mutations(spec, expressions)),
        audits=tuple(
            Rule(compiled(str(one.get("valueExpression") or ""), AUDITED, expressions), key=str(one.get("key") or ""))
            for one in spec.get("auditAnnotations") or ()
        ),
        bindings=tuple(_binding(one) for one in bindings),
        param_kind=gvk_of(kind) if kind else None,
        ignores=spec.get("failurePolicy") == "Ignore",
        reinvoked=spec.get("reinvocationPolicy") == "IfNeeded",
    )


def _scope(match: Obj) -> Scope:
    rules = match.get("resourceRules")
    return Scope(
        parse_rules(rules) if rules else None,
        parse_rules(match.get("excludeResourceRules")),
        match.get("matchPolicy") == "Exact",
        parse_selector(match.get("namespaceSelector")),
        parse_selector(match.get("objectSelector")),
    )


def _variable(one: Obj, expressions: Expressions) -> tuple[str, Compiled]:
    name, text = str(one.get("name") or ""), str(one.get("expression") or "")
    try:
        return name, Compiled(text, expressions.variable(name, text))
    except CelError as error:
        return name, Compiled(text, None, str(error))


def _validations(spec: Obj, expressions: Expressions) -> Iterator[Rule]:
    for one in spec.get("validations") or ():
        text = str(one.get("messageExpression") or "")
        yield Rule(
            compiled(str(one.get("expression") or ""), CONDITION, expressions),
            compiled(text, MESSAGE, expressions, authorizer=False) if text else None,
            str(one.get("message") or "").strip(),
            str(one.get("reason") or "Invalid"),
        )


def _mutations(spec: Obj, expressions: Expressions) -> Iterator[Rule]:
    for one in spec.get("mutations") or ():
        kind = str(one.get("patchType") or "")
        field, wanted = {"JSONPatch": ("jsonPatch", JSON_PATCHES)}.get(kind, ("applyConfiguration", APPLIED))
        text = str((one.get(field) or {}).get("expression") or "")
        yield Rule(compiled(text, wanted, expressions), patch_type=kind)


def _binding(obj: Obj) -> Binding:
    spec: Obj = obj.get("spec") or {}
    return Binding(
        name_of(obj),
        _scope(spec.get("matchResources") or {}),
        tuple(str(action) for action in spec.get("validationActions") or ()),
        spec.get("paramRef"),
    )


# --- one request ---------------------------------------------------------------------------------------------------


class ConfigError(Exception):
    """A policy or binding is invalid; the failure policy decides the consequence."""


def applicable(
    judging: Judging, policy: Policy, subject: Subject, obj: Obj | None, old: Obj | None
) -> Iterator[tuple[Match, Binding | None, ConfigError | None]]:
    """Yield the bindings that match the request, each with its error if it has one."""
    try:
        match = policy.scope.match(subject, obj, old, judging.world) if policy.bindings else None
    except ApiError as error:
        yield Match(subject.resource), None, ConfigError(f"failed to configure policy: {error}")
        return
    if match is None:
        return
    if policy.param_kind is not None and judging.world.kind(policy.param_kind) is None:
        why = "failed to find resource referenced by paramKind"
        kind = policy.param_kind
        shown = f"{kind.api_version if kind.group else '/' + kind.version}, Kind={kind.kind}"
        yield match, None, ConfigError(f"failed to configure policy: {why}: '{shown}'")
        return
    for binding in policy.bindings:
        try:
            if binding.scope.match(subject, obj, old, judging.world) is not None:
                yield match, binding, None
        except ApiError as error:
            yield match, binding, ConfigError(f"failed to configure binding: {error}")


def params_of(judging: Judging, policy: Policy, binding: Binding, subject: Subject) -> list[Obj | None]:
    """Return the parameters that a binding selects, one per evaluation; ``[None]`` for a policy without parameters.

    Raises ConfigError, also if none is found and parameterNotFoundAction is Deny.
    """
    ref = binding.param_ref
    if policy.param_kind is None or ref is None:
        return [None]
    resource = judging.world.kind(policy.param_kind)
    assert resource is not None, "the kind was looked up before"
    namespace, named = "", str(ref.get("namespace") or "")
    if resource.info.namespaced:
        namespace = named or subject.namespace
        if not namespace:
            raise _unbound("cannot use namespaced paramRef in policy binding that matches cluster-scoped resources")
    elif named:
        raise _unbound("paramRef.namespace must not be provided for a cluster-scoped `paramKind`")
    store = judging.world.store
    if ref.get("name"):
        one = store.get(Key(resource.storage, namespace, str(ref["name"])))
        stored = [one] if one is not None else []
    else:
        try:
            selector = label_selector_from(ref.get("selector"))
        except SelectorError as error:
            raise _unbound(str(error)) from None
        stored = [one for one in store.list(resource.storage, namespace) if selector.matches(labels_of(one.obj))]
    if not stored and ref.get("parameterNotFoundAction") == "Deny":
        raise _unbound("no params found for policy binding with `Deny` parameterNotFoundAction")
    return [resource.shown(one.obj) for one in stored]


def _unbound(why: str) -> ConfigError:
    return ConfigError(f"failed to configure binding: {why}")


class Variables(dict[str, Any]):
    """``variables``: each is evaluated on first use, and only once."""

    def __init__(self, policy: Policy, values: Mapping[str, Any], budget: Budget) -> None:
        super().__init__()
        self._programs = dict(policy.variables)
        self._values = {**values, "variables": self}
        self._budget = budget

    def __contains__(self, name: object) -> bool:
        return name in self._programs

    def __missing__(self, name: str) -> Any:
        found = self._programs[name]
        if found.program is None:
            raise EvaluationError(f'composited variable "{name}" fails to compile: {found.problem}')
        try:
            value = found.program.evaluate(self._values, self._budget.spend, limit=self._budget.left)
        except EvaluationError as error:
            raise EvaluationError(f'composited variable "{name}" fails to evaluate: {error}') from None
        self[name] = value
        return value
