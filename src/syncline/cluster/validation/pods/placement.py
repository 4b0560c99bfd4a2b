"""Where a pod may run: affinity, tolerations, spreading.

Called by ``podspec.py`` and by the validators of volumes, which bind to nodes alike. Specs
and their paths come in, causes leave. Source: Kubernetes ``pkg/apis/core/validation`` (validateAffinity,
ValidateTolerations, validateTopologySpreadConstraints).
"""

from __future__ import annotations

from typing import Any

from syncline.cluster.validation.engine import names
from syncline.cluster.validation.engine.causes import duplicate, forbidden, invalid, required, unsupported
from syncline.cluster.validation.engine.fields import each, label_selector_causes
from syncline.kube.errors import FieldCause
from syncline.kube.objects import Obj

__all__ = [
    "EFFECTS",
    "PREFERRED",
    "REQUIRED",
    "affinity_causes",
    "node_selector_causes",
    "spread_causes",
    "toleration_causes",
]

EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
NODE_OPERATORS = ("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt")
REQUIRED, PREFERRED = (
    "requiredDuringSchedulingIgnoredDuringExecution",
    "preferredDuringSchedulingIgnoredDuringExecution",
)


# --- tolerations ---------------------------------------------------------------------------------------------------


def toleration_causes(spec: Obj, path: str) -> list[FieldCause]:
    causes: list[FieldCause] = []
    for where, toleration in each(spec, "tolerations", path):
        key, operator = toleration.get("key") or "", toleration.get("operator") or ""
        if key:
            causes += [invalid(f"{where}.key", key, problem) for problem in names.qualified_name(key)]
        elif operator != "Exists":
            why = 'operator must be Exists when `key` is empty, which means "match all values and all keys"'
            causes.append(invalid(f"{where}.operator", operator, why))
        if toleration.get("tolerationSeconds") is not None and toleration.get("effect") != "NoExecute":
            why = "effect must be 'NoExecute' when `tolerationSeconds` is set"
            causes.append(invalid(f"{where}.effect", toleration.get("effect") or "", why))
        causes += _toleration_value_causes(str(toleration.get("value") or ""), where, operator)
        if toleration.get("effect") and toleration["effect"] not in EFFECTS:
            causes.append(unsupported(f"{where}.effect", toleration["effect"], EFFECTS))
    return causes


def _toleration_value_causes(value: str, where: str, operator: str) -> list[FieldCause]:
    match operator:
        case "" | "Equal":
            problems = names.label_value(value)
            return [invalid(f"{where}.operator", value, ";".join(problems))] if problems else []
        case "Exists":
            why = "value must be empty when `operator` is 'Exists'"
            return [invalid(f"{where}.operator", value, why)] if value else []
        case "Lt" | "Gt":
            return [unsupported(f"{where}.operator", operator, ("Equal", "Exists", "Lt", "Gt"))]
        case _:
            return [unsupported(f"{where}.operator", operator, ("Equal", "Exists"))]


# --- affinity ------------------------------------------------------------------------------------------------------


def affinity_causes(affinity: Any, path: str) -> list[FieldCause]:
    if not isinstance(affinity, dict):
        return []
    causes = _node_affinity_causes(affinity.get("nodeAffinity") or {}, f"{path}.nodeAffinity")
    for kind in ("podAffinity", "podAntiAffinity"):
        found, where = affinity.get(kind) or {}, f"{path}.{kind}"
        for at, term in each(found, REQUIRED, where):
            causes += _pod_term_causes(term, at)
        for at, weighted in each(found, PREFERRED, where):
            causes += _weight_causes(weighted, at)
            causes += _pod_term_causes(weighted.get("podAffinityTerm") or {}, f"{at}.podAffinityTerm")
    return causes


def _weight_causes(weighted: Obj, at: str) -> list[FieldCause]:
    weight = weighted.get("weight") or 0
    return [] if 1 <= weight <= 100 else [invalid(f"{at}.weight", weight, "must be in the range 1-100")]


def _pod_term_causes(term: Obj, at: str) -> list[FieldCause]:
    causes = label_selector_causes(term.get("labelSelector"), f"{at}.labelSelector")
    causes += label_selector_causes(term.get("namespaceSelector"), f"{at}.namespaceSelector")
    for name in term.get("namespaces") or ():
        causes += [invalid(f"{at}.namespace", name, problem) for problem in names.dns_label(str(name))]
    causes += _label_key_causes(term, at, "matchLabelKeys", "mismatchLabelKeys")
    key = str(term.get("topologyKey") or "")
    if not key:
        causes.append(required(f"{at}.topologyKey", "can not be empty"))
    return causes + [invalid(f"{at}.topologyKey", key, problem) for problem in names.qualified_name(key)]


def _label_key_causes(term: Obj, at: str, *fields: str) -> list[FieldCause]:
    """Labels whose values are taken from the pod itself (``matchLabelKeys``)."""
    causes: list[FieldCause] = []
    selector = term.get("labelSelector")
    for field in fields:
        listed = term.get(field) or []
        if listed and not isinstance(selector, dict):
            causes.append(forbidden(f"{at}.{field}", "must not be specified when labelSelector is not set"))
            continue
        for index, key in enumerate(listed):
            problems = names.qualified_name(key)
            causes += [invalid(f"{at}.{field}[{index}]", key, problem) for problem in problems]
    matched = term.get("matchLabelKeys") or []
    if isinstance(selector, dict):
        known = set(selector.get("matchLabels") or ())
        for _, expression in each(selector, "matchExpressions", at):
            key = str(expression.get("key"))
            if key in matched and key in known:
                why = "exists in both matchLabelKeys and labelSelector"
                causes.append(invalid(f"{at}[{matched.index(key)}]", key, why))
            known.add(key)
    mismatched = term.get("mismatchLabelKeys") or []
    return causes + [
        invalid(f"{at}.matchLabelKeys[{index}]", key, "exists in both matchLabelKeys and mismatchLabelKeys")
        for index, key in enumerate(matched)
        if key in mismatched
    ]


def _node_affinity_causes(node: Obj, path: str) -> list[FieldCause]:
    causes: list[FieldCause] = []
    if isinstance(node.get(REQUIRED), dict):
        causes += node_selector_causes(node[REQUIRED], f"{path}.{REQUIRED}")
    for at, weighted in each(node, PREFERRED, path):
        causes += _weight_causes(weighted, at)
        causes += _node_term_causes(weighted.get("preference") or {}, f"{at}.preference", values=False)
    return causes


def node_selector_causes(selector: Obj, where: str) -> list[FieldCause]:
    """A NodeSelector: terms of expressions over labels and fields of nodes."""
    causes: list[FieldCause] = []
    if not selector.get("nodeSelectorTerms"):
        causes.append(required(f"{where}.nodeSelectorTerms", "must have at least one node selector term"))
    for at, term in each(selector, "nodeSelectorTerms", where):
        causes += _node_term_causes(term, at)
    return causes


def _node_term_causes(term: Obj, at: str, *, values: bool = True) -> list[FieldCause]:
    """Values of preferences are not checked: older releases took any."""
    causes: list[FieldCause] = []
    for where, requirement in each(term, "matchExpressions", at):
        causes += _requirement_causes(requirement, where, values=values)
    for where, requirement in each(term, "matchFields", at):
        causes += _field_requirement_causes(requirement, where)
    return causes


def _requirement_causes(requirement: Obj, where: str, *, values: bool) -> list[FieldCause]:
    causes: list[FieldCause] = []
    operator, listed = requirement.get("operator", ""), requirement.get("values") or []
    if operator in ("In", "NotIn") and not listed:
        causes.append(required(f"{where}.values", "must be specified when `operator` is 'In' or 'NotIn'"))
    elif operator in ("Exists", "DoesNotExist") and listed:
        why = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
        causes.append(forbidden(f"{where}.values", why))
    elif operator in ("Gt", "Lt") and len(listed) != 1:
        why = "must be specified single value when `operator` is 'Lt' or 'Gt'"
        causes.append(required(f"{where}.values", why))
    elif operator not in NODE_OPERATORS:
        causes.append(invalid(f"{where}.operator", operator, "not a valid selector operator"))
    key = str(requirement.get("key", ""))
    causes += [invalid(f"{where}.key", key, problem) for problem in names.qualified_name(key)]
    for index, value in enumerate(listed if values else ()):
        causes += [invalid(f"{where}.values[{index}]", value, problem) for problem in names.label_value(str(value))]
    return causes


def _field_requirement_causes(requirement: Obj, where: str) -> list[FieldCause]:
    causes: list[FieldCause] = []
    operator, listed = requirement.get("operator", ""), requirement.get("values") or []
    if operator not in ("In", "NotIn"):
        causes.append(invalid(f"{where}.operator", operator, "not a valid selector operator"))
    elif len(listed) != 1:
        why = "must be only one value when `operator` is 'In' or 'NotIn' for node field selector"
        causes.append(required(f"{where}.values", why))
    if requirement.get("key") != "metadata.name":
        causes.append(invalid(f"{where}.key", requirement.get("key", ""), "not a valid field selector key"))
        return causes
    for index, value in enumerate(listed):
        causes += [invalid(f"{where}.values[{index}]", value, one) for one in names.dns_subdomain(str(value))]
    return causes


# --- spreading -----------------------------------------------------------------------------------------------------


def spread_causes(spec: Obj, path: str) -> list[FieldCause]:
    causes: list[FieldCause] = []
    listed = list(each(spec, "topologySpreadConstraints", path))
    for index, (where, spread) in enumerate(listed):
        skew, action = spread.get("maxSkew") or 0, spread.get("whenUnsatisfiable") or ""
        if skew <= 0:
            causes.append(invalid(f"{where}.maxSkew", skew, "must be greater than zero"))
        if not spread.get("topologyKey"):
            causes.append(required(f"{where}.topologyKey", "can not be empty"))
        if action not in ("DoNotSchedule", "ScheduleAnyway"):
            causes.append(unsupported(f"{where}.whenUnsatisfiable", action, ("DoNotSchedule", "ScheduleAnyway")))
        pair = (spread.get("topologyKey") or "", action)
        if any(
            (other.get("topologyKey") or "", other.get("whenUnsatisfiable") or "") == pair
            for _, other in listed[index + 1 :]
        ):
            causes.append(duplicate(f"{where}.{{topologyKey, whenUnsatisfiable}}", f"{{{pair[0]}, {pair[1]}}}"))
        causes += _domain_causes(spread.get("minDomains"), action, f"{where}.minDomains")
        for key in ("nodeAffinityPolicy", "nodeTaintsPolicy"):
            if spread.get(key) is not None and spread[key] not in ("Honor", "Ignore"):
                causes.append(unsupported(f"{where}.{key}", spread[key], ("Honor", "Ignore")))
        causes += _label_key_causes(spread, where, "matchLabelKeys")
        causes += label_selector_causes(spread.get("labelSelector"), f"{where}.labelSelector")
    return causes


def _domain_causes(domains: Any, action: str, where: str) -> list[FieldCause]:
    if domains is None:
        return []
    causes = [invalid(where, domains, "must be greater than zero")] if domains <= 0 else []
    if action != "DoNotSchedule":
        why = f"can only use minDomains if whenUnsatisfiable=DoNotSchedule, not {action}"
        causes.append(invalid(where, domains, why))
    return causes
