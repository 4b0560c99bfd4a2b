"""What decides over requests: webhooks, policies that validate or change, and what binds policies.

Called by the API through :func:`syncline.cluster.validation.strategy.strategy_for`. Source: Kubernetes
``pkg/apis/admissionregistration/validation``. Expressions are compiled, by ``admissionrules.py``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, ClassVar
from urllib.parse import urlsplit

from syncline.cluster.validation.engine import names
from syncline.cluster.validation.engine.base import Kind, spec_of
from syncline.cluster.validation.engine.causes import duplicate, forbidden, invalid, required, too_many, unsupported
from syncline.cluster.validation.engine.fields import each, label_selector_causes, port_number
from syncline.cluster.validation.engine.metadata import metadata_update_causes
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

__all__ = ["MutatingPolicyKind", "PolicyBindingKind", "ValidatingBindingKind", "ValidatingPolicyKind", "WebhookKind"]

MAX_WEBHOOK_TIMEOUT_S = 30
MOST_CONDITIONS = 64
MOST_AUDIT_ANNOTATIONS = 20
LONGEST_AUDIT_BYTES = 5 * 1024
REVIEW_VERSIONS = ("v1", "v1beta1")
OPERATIONS = ("*", "CONNECT", "CREATE", "DELETE", "UPDATE")
MUTATING_OPERATIONS = ("*", "CONNECT", "CREATE", "UPDATE")
SCOPES = ("*", "Cluster", "Namespaced")
FAILURE_POLICIES = ("Fail", "Ignore")
MATCH_POLICIES = ("Equivalent", "Exact")
REINVOCATIONS = ("IfNeeded", "Never")
REASONS = ("Forbidden", "Invalid", "RequestEntityTooLarge")
ACTIONS = ("Audit", "Deny", "Warn")
MUTATIONS = {"ApplyConfiguration": APPLIED, "JSONPatch": JSON_PATCHES}
URL_FORM = "; desired format: https://host[/path]"
IDENTIFIER = re.compile("[_a-zA-Z][_a-zA-Z0-9]*")
RESERVED = frozenset(
    (
        *("true", "false", "null", "in", "as", "break", "const", "continue", "else", "for", "function", "if", "import"),
        *("let", "loop", "package", "namespace", "return", "var", "void", "while"),
    )
)


# --- webhooks ------------------------------------------------------------------------------------------------------


class WebhookKind(Kind):
    """Validating and mutating webhook configurations."""

    has_generation = True
    namespaced = False
    generation_follows: ClassVar[tuple[str, ...]] = ("webhooks",)

    def content_causes(self, obj: Obj) -> list[FieldCause]:
        causes: list[FieldCause] = []
        seen: set[str] = set()
        for where, hook in each(obj, "webhooks", ""):
            path, name = where.removeprefix("."), str(hook.get("name") or "")
            causes += _webhook_causes(hook, path)
            if name in seen:
                causes.append(duplicate(f"{path}.name", name))
            seen.add(name)
        return causes


def _webhook_causes(hook: Obj, path: str) -> list[FieldCause]:
    causes = _full_name_causes(str(hook.get("name") or ""), f"{path}.name")
    for where, rule in each(hook, "rules", path):
        causes += _rule_causes(rule, where)
    causes += _choice(hook, path, "failurePolicy", FAILURE_POLICIES)
    causes += _choice(hook, path, "matchPolicy", MATCH_POLICIES)
    effects = hook.get("sideEffects")
    if effects is None:
        causes.append(required(f"{path}.sideEffects", "must specify one of None, NoneOnDryRun"))
    elif effects not in ("None", "NoneOnDryRun"):
        causes.append(unsupported(f"{path}.sideEffects", effects, ("None", "NoneOnDryRun")))
    timeout = hook.get("timeoutSeconds")
    if isinstance(timeout, int) and not 1 <= timeout <= MAX_WEBHOOK_TIMEOUT_S:
        why = f"the timeout value must be between 1 and {MAX_WEBHOOK_TIMEOUT_S} seconds"
        causes.append(invalid(f"{path}.timeoutSeconds", timeout, why))
    causes += _selector_causes(hook, path)
    causes += _choice(hook, path, "reinvocationPolicy", REINVOCATIONS)
    causes += _client_causes(hook.get("clientConfig") or {}, f"{path}.clientConfig")
    causes += _condition_causes(hook, path, Expressions())
    return causes + _version_causes(hook.get("admissionReviewVersions") or [], f"{path}.admissionReviewVersions")


def _full_name_causes(name: str, path: str) -> list[FieldCause]:
    if not name:
        return [required(path)]
    causes = [invalid(path, name, problem) for problem in names.dns_subdomain(name)]
    if not causes and name.count(".") < 2:
        causes.append(invalid(path, name, "should be a domain with at least three segments separated by dots"))
    return causes


def _version_causes(versions: list[Any], path: str) -> list[FieldCause]:
    accepted = ", ".join(REVIEW_VERSIONS)
    if not versions:
        return [required(path, f"must specify one of {accepted}")]
    causes: list[FieldCause] = []
    for index, version in enumerate(versions):
        where = f"{path}[{index}]"
        if version in versions[:index]:
            causes.append(invalid(where, version, "duplicate version"))
        else:
            causes += [invalid(where, version, problem) for problem in names.dns_label_1035(str(version))]
    if not set(versions) & set(REVIEW_VERSIONS):
        causes.append(invalid(path, versions, f"must include at least one of {accepted}"))
    return causes


def _client_causes(config: Obj, path: str) -> list[FieldCause]:
    url, service = config.get("url"), config.get("service")
    if (url is None) == (service is None):
        return [required(path, "exactly one of url or service is required")]
    if url is not None:
        return _url_causes(str(url), f"{path}.url")
    return _service_causes(service or {}, f"{path}.service")


def _url_causes(url: str, path: str) -> list[FieldCause]:
    try:
        parts = urlsplit(url)
    except ValueError as err:
        return [required(path, f"url must be a valid URL: {err}{URL_FORM}")]
    user, _, host = parts.netloc.rpartition("@")
    causes: list[FieldCause] = []
    if parts.scheme != "https":
        causes.append(invalid(path, parts.scheme, f"'https' is the only allowed URL scheme{URL_FORM}"))
    if not host:
        causes.append(invalid(path, host, f"host must be specified{URL_FORM}"))
    if "@" in parts.netloc:
        causes.append(invalid(path, user, "user information is not permitted in the URL"))
    if parts.fragment:
        causes.append(invalid(path, parts.fragment, "fragments are not permitted in the URL"))
    if parts.query:
        causes.append(invalid(path, parts.query, "query parameters are not permitted in the URL"))
    return causes


def _service_causes(service: Obj, path: str) -> list[FieldCause]:
    """Kubernetes passes name and namespace in the wrong order: each is missed under the other's name."""
    swapped = {"name": "namespace", "namespace": "name"}
    causes = [required(f"{path}.{shown}") for shown, key in swapped.items() if not service.get(key)]
    port = service.get("port")
    problems = [str(cause.message).split(": ", 2)[-1] for cause in port_number(port, "")] if port is not None else []
    if problems:
        causes.append(invalid(f"{path}.port", port, f"port is not valid: {', '.join(problems)}"))
    return causes + _path_causes(service.get("path"), f"{path}.path")


def _path_causes(path: Any, where: str) -> list[FieldCause]:
    if path in (None, "", "/"):
        return []
    text = str(path)
    if text == "//":
        return [invalid(where, text, "segment[0] may not be empty")]
    causes = [] if text.startswith("/") else [invalid(where, text, "must start with a '/'")]
    for index, step in enumerate(text[1:].removesuffix("/").split("/")):
        if not step:
            causes.append(invalid(where, text, f"segment[{index}] may not be empty"))
        else:
            causes += [invalid(where, text, f"segment[{index}]: {problem}") for problem in names.dns_subdomain(step)]
    return causes


# --- policies ------------------------------------------------------------------------------------------------------


class _Policy(Kind):
    has_generation = True
    namespaced = False
    revalidates = False

    def update_causes(self, new: Obj, old: Obj) -> list[FieldCause]:
        return metadata_update_causes(new, old) + self.content_causes(new)

    def content_causes(self, obj: Obj) -> list[FieldCause]:
        spec = spec_of(obj)
        causes = _choice(spec, "spec", "failurePolicy", FAILURE_POLICIES)
        if isinstance(spec.get("paramKind"), dict):
            causes += _param_kind_causes(spec["paramKind"], "spec.paramKind")
        match = spec.get("matchConstraints")
        if not isinstance(match, dict):
            causes.append(required("spec.matchConstraints"))
        else:
            causes += _match_causes(match, "spec.matchConstraints")
            if not match.get("resourceRules"):
                causes.append(required("spec.matchConstraints.resourceRules"))
        expressions = Expressions(params=isinstance(spec.get("paramKind"), dict), composed=self.composes(spec))
        causes += _condition_causes(spec, "spec", expressions)
        for where, variable in each(spec, "variables", "spec"):
            causes += _variable_causes(variable, where, expressions)
        return causes + self.rule_causes(obj, spec, expressions)

    def composes(self, spec: Obj) -> bool:
        """Whether expressions may name variables."""
        return True

    def rule_causes(self, obj: Obj, spec: Obj, expressions: Expressions) -> list[FieldCause]:
        """What is wrong with the rules of the policy, which may name all of its variables."""
        raise NotImplementedError


class ValidatingPolicyKind(_Policy):
    has_status = True
    status_keeps_metadata = True
    empty_status: ClassVar[Obj | None] = {}

    def composes(self, spec: Obj) -> bool:
        return bool(spec.get("variables"))

    def rule_causes(self, obj: Obj, spec: Obj, expressions: Expressions) -> list[FieldCause]:
        causes: list[FieldCause] = []
        if not spec.get("validations") and not spec.get("auditAnnotations"):
            why = "validations or auditAnnotations must contain at least one item"
            return [required("spec.validations", why), required("spec.auditAnnotations", why)]
        for where, validation in each(spec, "validations", "spec"):
            causes += _validation_causes(validation, where, expressions)
        return causes + _audit_causes(spec, dig(obj, "metadata", "name", default=""), expressions)


class MutatingPolicyKind(_Policy):
    def rule_causes(self, obj: Obj, spec: Obj, expressions: Expressions) -> list[FieldCause]:
        causes = _mutating_operation_causes(spec.get("matchConstraints"), "spec.matchConstraints")
        if not spec.get("mutations"):
            causes.append(required("spec.mutations", "mutations must contain at least one item"))
        for where, mutation in each(spec, "mutations", "spec"):
            causes += _mutation_causes(mutation, where, expressions)
        if not spec.get("reinvocationPolicy"):
            return [*causes, required("spec.reinvocationPolicy")]
        return causes + _choice(spec, "spec", "reinvocationPolicy", REINVOCATIONS)


def _param_kind_causes(param: Obj, path: str) -> list[FieldCause]:
    causes: list[FieldCause] = []
    version, kind = str(param.get("apiVersion") or ""), str(param.get("kind") or "")
    group, _, short = version.rpartition("/") if version != "/" else ("", "", "")
    at = f"{path}.apiVersion"
    if not version:
        causes.append(required(at))
    elif version.count("/") > 1:
        causes.append(invalid(at, version, f"unexpected GroupVersion string: {version}"))
    else:
        problems = names.dns_subdomain(group) if group else []
        if problems:
            causes.append(invalid(at, group, ",".join(problems)))
        problems = names.dns_label_1035(short)
        if not short:
            causes.append(invalid(at, version, "version must be specified"))
        elif problems:
            causes.append(invalid(at, short, ",".join(problems)))
    problems = names.dns_label_1035(kind.lower())
    if not kind:
        causes.append(required(f"{path}.kind"))
    elif problems:
        why = f"may have mixed case, but should otherwise match: {','.join(problems)}"
        causes.append(invalid(f"{path}.kind", kind, why))
    return causes


def _fault_causes(fault: Fault | None, path: str, text: str) -> list[FieldCause]:
    if fault is None:
        return []
    if fault.internal:
        return [FieldCause("InternalError", f"Internal error: {fault.detail}", path)]
    return [invalid(path, text, fault.detail)]


def _variable_causes(variable: Obj, path: str, expressions: Expressions) -> list[FieldCause]:
    name = str(variable.get("name") or "")
    causes: list[FieldCause] = []
    if not name.strip():
        causes.append(required(f"{path}.name", "name is not specified"))
    elif not IDENTIFIER.fullmatch(name) or name in RESERVED:
        causes.append(invalid(f"{path}.name", name, "must be a valid CEL identifier"))
    text = str(variable.get("expression") or "")
    if not text.strip():
        return [*causes, required(f"{path}.expression", "expression is not specified")]
    return causes + _fault_causes(expressions.declare(name, text), f"{path}.expression", text)


def _validation_causes(validation: Obj, path: str, expressions: Expressions) -> list[FieldCause]:
    causes: list[FieldCause] = []
    message, text = str(validation.get("message") or ""), str(validation.get("messageExpression") or "")
    rule = str(validation.get("expression") or "")
    if not rule.strip():
        causes.append(required(f"{path}.expression", "expression is not specified"))
    else:
        causes += _fault_causes(expressions.fault(rule, CONDITION), f"{path}.expression", rule)
    where = f"{path}.messageExpression"
    if text and not text.strip():
        causes.append(invalid(where, text, "must be non-empty if specified"))
    elif text:
        causes += _fault_causes(expressions.fault(text, MESSAGE, authorizer=False), where, text)
    if message and not message.strip():
        causes.append(invalid(f"{path}.message", message, "must be non-empty if specified"))
    elif "\n" in message.strip():
        causes.append(invalid(f"{path}.message", message, "must not contain line breaks"))
    reason = validation.get("reason")
    if reason is not None and reason not in REASONS:
        causes.append(unsupported(f"{path}.reason", reason, REASONS))
    return causes


def _audit_causes(spec: Obj, name: str, expressions: Expressions) -> list[FieldCause]:
    causes: list[FieldCause] = []
    found = spec.get("auditAnnotations") or []
    if len(found) > MOST_AUDIT_ANNOTATIONS:
        why = f"must not have more than {MOST_AUDIT_ANNOTATIONS} auditAnnotations"
        causes.append(invalid("spec.auditAnnotations", found, why))
    seen: set[str] = set()
    for where, entry in each(spec, "auditAnnotations", "spec"):
        key = str(entry.get("key") or "")
        whole = f"{name}/{key}"
        causes += [invalid(f"{where}.key", whole, problem) for problem in names.qualified_name(whole)]
        causes += _audit_value_causes(str(entry.get("valueExpression") or ""), f"{where}.valueExpression", expressions)
        if key in seen:
            causes.append(duplicate(f"{where}.key", key))
        seen.add(key)
    return causes


def _audit_value_causes(text: str, path: str, expressions: Expressions) -> list[FieldCause]:
    trimmed = text.strip()
    if not trimmed:
        return [required(path, "valueExpression is not specified")]
    if len(trimmed.encode()) > LONGEST_AUDIT_BYTES:
        return [required(path, f"must not exceed {LONGEST_AUDIT_BYTES} bytes in length")]
    return _fault_causes(expressions.fault(trimmed, AUDITED), path, text)


def _mutation_causes(mutation: Obj, path: str, expressions: Expressions) -> list[FieldCause]:
    patch = str(mutation.get("patchType") or "")
    members = {"ApplyConfiguration": "applyConfiguration", "JSONPatch": "jsonPatch"}
    if not patch:
        return [required(f"{path}.patchType")]
    if patch not in members:
        return [unsupported(f"{path}.patchType", patch, members)]
    causes: list[FieldCause] = []
    for kind, member in members.items():
        given = mutation.get(member)
        if kind != patch and given is not None:
            why = f"must not be specified when patchType is {patch}"
            causes.append(invalid(f"{path}.{member}", f"{{{member}}}", why))
        elif kind == patch and given is None:
            causes.append(required(f"{path}.{member}", f"must be specified when patchType is {patch}"))
        elif kind == patch:
            text, where = str(dig(given, "expression", default="")).strip(), f"{path}.{member}.expression"
            fault = expressions.fault(text, MUTATIONS[kind]) if text else None
            causes += _fault_causes(fault, where, text) if text else [required(where)]
    return causes


# --- bindings ------------------------------------------------------------------------------------------------------


class PolicyBindingKind(Kind):
    """Binds a policy that changes objects."""

    has_generation = True
    namespaced = False
    mutating: ClassVar[bool] = True

    def content_causes(self, obj: Obj) -> list[FieldCause]:
        spec = spec_of(obj)
        policy, match = str(spec.get("policyName") or ""), spec.get("matchResources")
        causes = [invalid("spec.policyName", policy, problem) for problem in names.dns_subdomain(policy) if policy]
        if not policy:
            causes.append(required("spec.policyName"))
        if isinstance(spec.get("paramRef"), dict):
            causes += _param_ref_causes(spec["paramRef"], "spec.paramRef")
        if isinstance(match, dict):
            causes += _match_causes(match, "spec.matchResources")
            if self.mutating:
                causes += _mutating_operation_causes(match, "spec.matchResources")
        return causes


class ValidatingBindingKind(PolicyBindingKind):
    mutating: ClassVar[bool] = False

    def content_causes(self, obj: Obj) -> list[FieldCause]:
        causes = super().content_causes(obj)
        path, actions = "spec.validationActions", spec_of(obj).get("validationActions") or []
        for index, action in enumerate(actions):
            if action not in ACTIONS:
                causes.append(unsupported(f"{path}[{index}]", action, ACTIONS))
            if action in actions[:index]:
                causes.append(duplicate(f"{path}[{index}]", action))
        if "Deny" in actions and "Warn" in actions:
            why = (
                "must not contain both Deny and Warn (repeating the same validation failure information in the API "
                "response and headers serves no purpose)"
            )
            causes.append(invalid(path, actions, why))
        if not actions:
            causes.append(required(path, "at least one validation action is required"))
        return causes


def _param_ref_causes(param: Obj, path: str) -> list[FieldCause]:
    causes: list[FieldCause] = []
    name, selector = str(param.get("name") or ""), param.get("selector")
    both = "name and selector are mutually exclusive"
    if name:
        causes += [invalid(f"{path}.name", name, problem) for problem in names.path_segment(name)]
        if selector is not None:
            causes.append(forbidden(f"{path}.name", both))
    if selector is not None:
        causes += label_selector_causes(selector, f"{path}.selector")
        if name:
            causes.append(forbidden(f"{path}.selector", both))
    if not name and selector is None:
        causes.append(required(path, "one of name or selector must be specified"))
    action = param.get("parameterNotFoundAction")
    if not action:
        causes.append(required(f"{path}.parameterNotFoundAction"))
    elif action not in ("Deny", "Allow"):
        causes.append(unsupported(f"{path}.parameterNotFoundAction", action, ("Deny", "Allow")))
    return causes


# --- what is matched -----------------------------------------------------------------------------------------------


def _choice(owner: Obj, path: str, key: str, allowed: tuple[str, ...]) -> list[FieldCause]:
    value = owner.get(key)
    return [] if value is None or value in allowed else [unsupported(f"{path}.{key}", value, allowed)]


def _selector_causes(owner: Obj, path: str) -> list[FieldCause]:
    causes: list[FieldCause] = []
    for key in ("namespaceSelector", "objectSelector"):
        if owner.get(key) is not None:
            causes += label_selector_causes(owner[key], f"{path}.{key}")
    return causes


def _match_causes(match: Obj, path: str) -> list[FieldCause]:
    causes = _choice(match, path, "matchPolicy", MATCH_POLICIES) + _selector_causes(match, path)
    for key in ("resourceRules", "excludeResourceRules"):
        for where, rule in each(match, key, path):
            found = rule.get("resourceNames") or []
            for index, name in enumerate(found):
                at = f"{where}.resourceNames[{index}]"
                causes += [invalid(at, name, problem) for problem in names.path_segment(str(name))]
                if name in found[:index]:
                    causes.append(duplicate(at, name))
            causes += _rule_causes(rule, where)
    return causes


def _mutating_operation_causes(match: Any, path: str) -> list[FieldCause]:
    return [
        unsupported(f"{path}.resourceRules.operations", operation, MUTATING_OPERATIONS)
        for _, rule in each(match if isinstance(match, dict) else {}, "resourceRules", path)
        for operation in rule.get("operations") or ()
        if operation not in MUTATING_OPERATIONS
    ]


def _condition_causes(owner: Obj, path: str, expressions: Expressions) -> list[FieldCause]:
    found = owner.get("matchConditions") or []
    causes: list[FieldCause] = []
    if len(found) > MOST_CONDITIONS:
        causes.append(too_many(f"{path}.matchConditions", len(found), MOST_CONDITIONS))
    seen: set[str] = set()
    for where, condition in each(owner, "matchConditions", path):
        name = str(condition.get("name") or "")
        text = str(condition.get("expression") or "").strip()
        if text:
            causes += _fault_causes(expressions.fault(text, CONDITION, composed=False), f"{where}.expression", text)
        else:
            causes.append(required(f"{where}.expression"))
        if not name:
            causes.append(required(f"{where}.name"))
            continue
        causes += [invalid(f"{where}.name", name, problem) for problem in names.qualified_name(name)]
        if name in seen:
            causes.append(duplicate(f"{where}.name", name))
        seen.add(name)
    return causes


def _rule_causes(rule: Obj, path: str) -> list[FieldCause]:
    causes = _list_causes(rule.get("operations") or [], f"{path}.operations", "operations")
    for index, operation in enumerate(rule.get("operations") or ()):
        if operation not in OPERATIONS:
            causes.append(unsupported(f"{path}.operations[{index}]", operation, OPERATIONS))
    causes += _list_causes(rule.get("apiGroups") or [], f"{path}.apiGroups", "API groups")
    versions = rule.get("apiVersions") or []
    causes += _list_causes(versions, f"{path}.apiVersions", "API versions")
    causes += [required(f"{path}.apiVersions[{index}]") for index, version in enumerate(versions) if not version]
    causes += _resource_causes(rule.get("resources") or [], f"{path}.resources")
    return causes + _choice(rule, path, "scope", SCOPES)


def _list_causes(values: list[Any], path: str, what: str) -> list[FieldCause]:
    if not values:
        return [required(path)]
    if len(values) > 1 and "*" in values:
        return [invalid(path, values, f"if '*' is present, must not specify other {what}")]
    return []


def _resource_causes(resources: list[Any], path: str) -> list[FieldCause]:
    causes: list[FieldCause] = [] if resources else [required(path)]
    whole: set[str] = set()
    everywhere: set[str] = set()
    plain = False
    for index, entry in enumerate(map(str, resources)):
        where = f"{path}[{index}]"
        if not entry:
            causes.append(required(where))
            continue
        resource, slash, part = entry.partition("/")
        if not slash:
            plain = entry != "*"
            continue
        if resource in whole:
            causes.append(invalid(where, entry, f"if '{resource}/*' is present, must not specify {entry}"))
        if part in everywhere:
            causes.append(invalid(where, entry, f"if '*/{part}' is present, must not specify {entry}"))
        if part == "*":
            whole.add(resource)
        if resource == "*":
            everywhere.add(part)
    return causes + _wildcard_causes(resources, path, plain=plain)


def _wildcard_causes(resources: Iterable[Any], path: str, *, plain: bool) -> list[FieldCause]:
    given = list(resources)
    causes: list[FieldCause] = []
    if len(given) > 1 and "*/*" in given:
        causes.append(invalid(path, given, "if '*/*' is present, must not specify other resources"))
    if "*" in given and plain:
        why = "if '*' is present, must not specify other resources without subresources"
        causes.append(invalid(path, given, why))
    return causes
