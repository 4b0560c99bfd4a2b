"""Admission configuration: webhooks, validating and mutating policies, and their bindings.

The API calls it through :func:`syncline.cluster.validation.strategy.strategy_for`. Source: Kubernetes
``pkg/apis/admissionregistration/validation``. ``admissionrules.py`` compiles expressions.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any, ClassVar
from urllib.parse import urlsplit

from syncline.cluster.validation.engine import names
from syncline.cluster.validation.engine import rules as r
from syncline.cluster.validation.engine.base import Kind, spec_of
from syncline.cluster.validation.engine.causes import duplicate, invalid, required, unsupported
from syncline.cluster.validation.engine.fields import each, label_selector_causes
from syncline.cluster.validation.policy.admissionrules import (
    APPLIED,
    AUDITED,
    CONDITION,
    JSON_PATCHES,
    MESSAGE,
    Expressions,
    Fault,
)
from syncline.kube.errors import FieldCause
from syncline.kube.objects import Obj, dig

MOST_CONDITIONS, MOST_AUDIT_ANNOTATIONS = 64, 20
LONGEST_AUDIT_BYTES = 5 * 1024
REVIEW_VERSIONS = ("v1", "v1beta1")
MUTATING_OPERATIONS = ("*", "CONNECT", "CREATE", "UPDATE")
MUTATIONS = {"ApplyConfiguration": ("applyConfiguration", APPLIED), "JSONPatch": ("jsonPatch", JSON_PATCHES)}
URL_FORM = "; desired format: https://host[/path]"
ONE_REVIEW_VERSION = f"must specify one of {', '.join(REVIEW_VERSIONS)}"
DENY_AND_WARN = (
    "must not contain both Deny and Warn (repeating the same validation failure information in the API response and "
    "headers serves no purpose)"
)
IDENTIFIER = re.compile("[_a-zA-Z][_a-zA-Z0-9]*")
RESERVED = frozenset(
    (
        *("true", "false", "null", "in", "as", "break", "const", "continue", "else", "for", "function", "if", "import"),
        *("let", "loop", "package", "namespace", "return", "var", "void", "while"),
    )
)


# --- what is matched -----------------------------------------------------------------------------------------------


def _alone(what: str) -> r.Rule:
    """Refuse other entries beside a wildcard."""
    return r.must(
        lambda values: len(values) < 2 or "*" not in values, f"if '*' is present, must not specify other {what}"
    )


def _resource_causes(resources: list[Any], path: str) -> Iterator[FieldCause]:
    whole: set[str] = set()
    everywhere: set[str] = set()
    plain = False
    for index, entry in enumerate(map(str, resources)):
        where = f"{path}[{index}]"
        resource, slash, part = entry.partition("/")
        if not entry:
            yield required(where)
        elif not slash:
            plain = entry != "*"
        else:
            if resource in whole:
                yield invalid(where, entry, f"if '{resource}/*' is present, must not specify {entry}")
            if part in everywhere:
                yield invalid(where, entry, f"if '*/{part}' is present, must not specify {entry}")
            whole |= {resource} if part == "*" else set()
            everywhere |= {part} if resource == "*" else set()
    if len(resources) > 1 and "*/*" in resources:
        yield invalid(path, resources, "if '*/*' is present, must not specify other resources")
    if "*" in resources and plain:
        yield invalid(path, resources, "if '*' is present, must not specify other resources without subresources")


_RULE = r.every(
    r.need("operations", _alone("operations")),
    r.items("operations", r.choice("*", "CONNECT", "CREATE", "DELETE", "UPDATE")),
    r.need("apiGroups", _alone("API groups")),
    r.need("apiVersions", _alone("API versions")),
    r.items("apiVersions", lambda version, path: () if version else [required(path)]),
    r.need("resources", _resource_causes),
    r.field("scope", r.choice("*", "Cluster", "Namespaced")),
)
_NAMED_RULE = r.every(r.items("resourceNames", r.segment, distinct=True), _RULE)
_SELECTORS = r.every(
    r.field("namespaceSelector", label_selector_causes), r.field("objectSelector", label_selector_causes)
)
_FAILURE, _MATCH_POLICY, _REINVOCATION = (
    r.field("failurePolicy", r.choice("Fail", "Ignore")),
    r.field("matchPolicy", r.choice("Equivalent", "Exact")),
    r.field("reinvocationPolicy", r.choice("IfNeeded", "Never")),
)
_MATCH = r.every(
    _MATCH_POLICY, _SELECTORS, r.each("resourceRules", _NAMED_RULE), r.each("excludeResourceRules", _NAMED_RULE)
)


def _mutating_operations(match: Obj, path: str) -> list[FieldCause]:
    return [
        unsupported(f"{path}.resourceRules.operations", operation, MUTATING_OPERATIONS)
        for rule in r.list_of(match, "resourceRules")
        for operation in rule.get("operations") or ()
        if operation not in MUTATING_OPERATIONS
    ]


def _fault_causes(fault: Fault | None, path: str, text: str) -> list[FieldCause]:
    if fault is None:
        return []
    if fault.internal:
        return [FieldCause("InternalError", f"Internal error: {fault.detail}", path)]
    return [invalid(path, text, fault.detail)]


def _condition_causes(owner: Obj, path: str, expressions: Expressions) -> Iterator[FieldCause]:
    def expression(condition: Obj, at: str) -> list[FieldCause]:
        text = str(condition.get("expression") or "").strip()
        fault = expressions.fault(text, CONDITION, composed=False) if text else None
        return _fault_causes(fault, at, text) if text else [required(at)]

    if not owner.get("matchConditions"):
        return
    yield from r.field("matchConditions", r.most(MOST_CONDITIONS))(owner, path)
    yield from r.each(
        "matchConditions",
        lambda condition, at: expression(condition, f"{at}.expression"),
        r.need("name", r.qualified),
        r.unique("name", blank=True),
    )(owner, path)


# --- webhooks ------------------------------------------------------------------------------------------------------


def _full_name(name: str, path: str) -> list[FieldCause]:
    short = [invalid(path, name, "should be a domain with at least three segments separated by dots")]
    return [*r.subdomain(name, path)] or (short if name.count(".") < 2 else [])


def _version_causes(versions: list[Any], path: str) -> Iterator[FieldCause]:
    for index, version in enumerate(versions):
        if version in versions[:index]:
            yield invalid(f"{path}[{index}]", version, "duplicate version")
        else:
            yield from r.named(names.dns_label_1035)(version, f"{path}[{index}]")
    if not set(versions) & set(REVIEW_VERSIONS):
        yield invalid(path, versions, f"must include at least one of {', '.join(REVIEW_VERSIONS)}")


def _url_causes(url: str, path: str) -> Iterator[FieldCause]:
    try:
        parts = urlsplit(url)
    except ValueError as err:
        yield required(path, f"url must be a valid URL: {err}{URL_FORM}")
        return
    user, _, host = parts.netloc.rpartition("@")
    if parts.scheme != "https":
        yield invalid(path, parts.scheme, f"'https' is the only allowed URL scheme{URL_FORM}")
    if not host:
        yield invalid(path, host, f"host must be specified{URL_FORM}")
    if "@" in parts.netloc:
        yield invalid(path, user, "user information is not permitted in the URL")
    if parts.fragment:
        yield invalid(path, parts.fragment, "fragments are not permitted in the URL")
    if parts.query:
        yield invalid(path, parts.query, "query parameters are not permitted in the URL")


def _path_causes(path: str, where: str) -> Iterator[FieldCause]:
    if path in ("", "/"):
        return
    if path == "//":
        yield invalid(where, path, "segment[0] may not be empty")
        return
    if not path.startswith("/"):
        yield invalid(where, path, "must start with a '/'")
    for index, step in enumerate(path[1:].removesuffix("/").split("/")):
        if not step:
            yield invalid(where, path, f"segment[{index}] may not be empty")
        else:
            yield from (invalid(where, path, f"segment[{index}]: {problem}") for problem in names.dns_subdomain(step))


_SERVICE = r.every(
    # Kubernetes swaps name and namespace here: each is reported under the other's field.
    r.need("namespace", shown="name"),
    r.need("name", shown="namespace"),
    r.field("port", r.within(1, 65535, "port is not valid: must be between 1 and 65535, inclusive")),
    r.field("path", _path_causes),
)
_CLIENT = r.when(
    lambda config: (config.get("url") is None) == (config.get("service") is None),
    lambda config, path: [required(path, "exactly one of url or service is required")],
    otherwise=r.every(r.field("url", _url_causes), r.field("service", _SERVICE)),
)
_WEBHOOK = r.every(
    r.need("name", _full_name),
    r.each("rules", _RULE),
    _FAILURE,
    _MATCH_POLICY,
    r.demand(r.lacks("sideEffects"), "sideEffects", "must specify one of None, NoneOnDryRun"),
    r.field("sideEffects", r.choice("None", "NoneOnDryRun")),
    r.field("timeoutSeconds", r.within(1, 30, "the timeout value must be between 1 and 30 seconds")),
    _SELECTORS,
    _REINVOCATION,
    r.part("clientConfig", _CLIENT),
    lambda hook, path: _condition_causes(hook, path, Expressions()),
    r.need("admissionReviewVersions", _version_causes, why=ONE_REVIEW_VERSION),
)


class WebhookKind(Kind):
    """Validating and mutating webhook configurations."""

    has_generation = True
    namespaced = False
    generation_follows: ClassVar[tuple[str, ...]] = ("webhooks",)
    rules = r.each("webhooks", _WEBHOOK, r.unique("name"))


# --- policies ------------------------------------------------------------------------------------------------------


def _param_kind_causes(param: Obj, path: str) -> Iterator[FieldCause]:
    version, kind, at = str(param.get("apiVersion") or ""), str(param.get("kind") or ""), f"{path}.apiVersion"
    group, _, short = version.rpartition("/") if version != "/" else ("", "", "")
    if not version:
        yield required(at)
    elif version.count("/") > 1:
        yield invalid(at, version, f"unexpected GroupVersion string: {version}")
    else:
        if group and (problems := names.dns_subdomain(group)):
            yield invalid(at, group, ",".join(problems))
        if not short:
            yield invalid(at, version, "version must be specified")
        elif problems := names.dns_label_1035(short):
            yield invalid(at, short, ",".join(problems))
    if not kind:
        yield required(f"{path}.kind")
    elif problems := names.dns_label_1035(kind.lower()):
        why = f"may have mixed case, but should otherwise match: {','.join(problems)}"
        yield invalid(f"{path}.kind", kind, why)


_SPEC = r.every(
    _FAILURE,
    r.field("paramKind", _param_kind_causes),
    r.demand(r.lacks("matchConstraints"), "matchConstraints"),
    r.field("matchConstraints", _MATCH, r.needs("resourceRules")),
)


class _Policy(Kind, ABC):
    has_generation = True
    namespaced = False
    revalidates = False
    judged_again = True

    def content_causes(self, obj: Obj) -> list[FieldCause]:
        spec = spec_of(obj)
        causes = _SPEC(spec, "spec")
        expressions = Expressions(params=isinstance(spec.get("paramKind"), dict), composed=self.composes(spec))
        causes += _condition_causes(spec, "spec", expressions)
        for where, variable in each(spec, "variables", "spec"):
            causes += _variable_causes(variable, where, expressions)
        return [*causes, *self.rule_causes(obj, spec, expressions)]

    def composes(self, spec: Obj) -> bool:
        """Return whether expressions can use variables."""
        return True

    @abstractmethod
    def rule_causes(self, obj: Obj, spec: Obj, expressions: Expressions) -> Iterator[FieldCause]:
        """Validate the policy's rules, which can use all its variables."""


class ValidatingPolicyKind(_Policy):
    has_status = True
    status_keeps_metadata = True
    empty_status: ClassVar[Obj | None] = {}

    def composes(self, spec: Obj) -> bool:
        return bool(spec.get("variables"))

    def rule_causes(self, obj: Obj, spec: Obj, expressions: Expressions) -> Iterator[FieldCause]:
        if not spec.get("validations") and not spec.get("auditAnnotations"):
            for key in ("validations", "auditAnnotations"):
                yield required(f"spec.{key}", "validations or auditAnnotations must contain at least one item")
            return
        for where, validation in each(spec, "validations", "spec"):
            yield from _validation_causes(validation, where, expressions)
        yield from _audit_causes(spec, dig(obj, "metadata", "name", default=""), expressions)


class MutatingPolicyKind(_Policy):
    def rule_causes(self, obj: Obj, spec: Obj, expressions: Expressions) -> Iterator[FieldCause]:
        yield from _mutating_operations(spec.get("matchConstraints") or {}, "spec.matchConstraints")
        if not spec.get("mutations"):
            yield required("spec.mutations", "mutations must contain at least one item")
        for where, mutation in each(spec, "mutations", "spec"):
            yield from _mutation_causes(mutation, where, expressions)
        yield from r.needs("reinvocationPolicy")(spec, "spec")
        yield from r.filled("reinvocationPolicy", r.choice("IfNeeded", "Never"))(spec, "spec")


def _variable_causes(variable: Obj, path: str, expressions: Expressions) -> Iterator[FieldCause]:
    name, text = str(variable.get("name") or ""), str(variable.get("expression") or "")
    if not name.strip():
        yield required(f"{path}.name", "name is not specified")
    elif not IDENTIFIER.fullmatch(name) or name in RESERVED:
        yield invalid(f"{path}.name", name, "must be a valid CEL identifier")
    if not text.strip():
        yield required(f"{path}.expression", "expression is not specified")
    else:
        yield from _fault_causes(expressions.declare(name, text), f"{path}.expression", text)


def _validation_causes(validation: Obj, path: str, expressions: Expressions) -> Iterator[FieldCause]:
    rule, message, text = (str(validation.get(key) or "") for key in ("expression", "message", "messageExpression"))
    if not rule.strip():
        yield required(f"{path}.expression", "expression is not specified")
    else:
        yield from _fault_causes(expressions.fault(rule, CONDITION), f"{path}.expression", rule)
    where = f"{path}.messageExpression"
    if text and not text.strip():
        yield invalid(where, text, "must be non-empty if specified")
    elif text:
        yield from _fault_causes(expressions.fault(text, MESSAGE, authorizer=False), where, text)
    if message and not message.strip():
        yield invalid(f"{path}.message", message, "must be non-empty if specified")
    elif "\n" in message.strip():
        yield invalid(f"{path}.message", message, "must not contain line breaks")
    yield from r.field("reason", r.choice("Forbidden", "Invalid", "RequestEntityTooLarge"))(validation, path)


def _audit_causes(spec: Obj, name: str, expressions: Expressions) -> Iterator[FieldCause]:
    found = spec.get("auditAnnotations") or []
    if len(found) > MOST_AUDIT_ANNOTATIONS:
        why = f"must not have more than {MOST_AUDIT_ANNOTATIONS} auditAnnotations"
        yield invalid("spec.auditAnnotations", found, why)
    seen: set[str] = set()
    for where, entry in each(spec, "auditAnnotations", "spec"):
        key = str(entry.get("key") or "")
        yield from r.qualified(f"{name}/{key}", f"{where}.key")
        yield from _audit_value_causes(str(entry.get("valueExpression") or ""), f"{where}.valueExpression", expressions)
        if key in seen:
            yield duplicate(f"{where}.key", key)
        seen.add(key)


def _audit_value_causes(text: str, path: str, expressions: Expressions) -> list[FieldCause]:
    trimmed = text.strip()
    if not trimmed:
        return [required(path, "valueExpression is not specified")]
    if len(trimmed.encode()) > LONGEST_AUDIT_BYTES:
        return [required(path, f"must not exceed {LONGEST_AUDIT_BYTES} bytes in length")]
    return _fault_causes(expressions.fault(trimmed, AUDITED), path, text)


def _mutation_causes(mutation: Obj, path: str, expressions: Expressions) -> Iterator[FieldCause]:
    patch = str(mutation.get("patchType") or "")
    yield from r.need("patchType", r.choice(*MUTATIONS))(mutation, path)
    for kind, (member, wanted) in MUTATIONS.items() if patch in MUTATIONS else ():
        given = mutation.get(member)
        if kind != patch and given is not None:
            why = f"must not be specified when patchType is {patch}"
            yield invalid(f"{path}.{member}", f"{{{member}}}", why)
        elif kind == patch and given is None:
            yield required(f"{path}.{member}", f"must be specified when patchType is {patch}")
        elif kind == patch:
            text, where = str(dig(given, "expression", default="")).strip(), f"{path}.{member}.expression"
            yield from _fault_causes(expressions.fault(text, wanted), where, text) if text else [required(where)]


# --- bindings ------------------------------------------------------------------------------------------------------

_BOTH = "name and selector are mutually exclusive"
_PARAM_REF = r.every(
    r.filled("name", r.segment),
    r.forbid(lambda param: param.get("name") and param.get("selector") is not None, "name", _BOTH),
    r.field("selector", label_selector_causes),
    r.forbid(lambda param: param.get("name") and param.get("selector") is not None, "selector", _BOTH),
    r.demand(
        lambda param: not param.get("name") and param.get("selector") is None,
        "",
        "one of name or selector must be specified",
    ),
    r.need("parameterNotFoundAction", r.choice("Deny", "Allow")),
)


def _binding(*more: r.Rule) -> r.Table:
    return r.every(
        r.need("policyName", r.subdomain), r.field("paramRef", _PARAM_REF), r.field("matchResources", _MATCH, *more)
    )


class PolicyBindingKind(Kind):
    """Binding of a mutating policy."""

    has_generation = True
    namespaced = False
    rules = r.spec(_binding(_mutating_operations))


class ValidatingBindingKind(PolicyBindingKind):
    rules = r.spec(
        _binding(),
        r.items("validationActions", r.choice("Audit", "Deny", "Warn"), distinct=True),
        r.need(
            "validationActions",
            r.must(lambda actions: not {"Deny", "Warn"} <= set(actions), DENY_AND_WARN),
            why="at least one validation action is required",
        ),
    )
