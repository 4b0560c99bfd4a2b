"""Pod placement: affinity, tolerations, topology spread.

``podspec.py`` calls it, and the validators of volumes, which have node affinity too. Source: Kubernetes
``pkg/apis/core/validation`` (validateAffinity, ValidateTolerations, validateTopologySpreadConstraints).
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from syncline.cluster.validation.engine import names
from syncline.cluster.validation.engine import rules as r
from syncline.cluster.validation.engine.causes import duplicate, forbidden, invalid, required, unsupported
from syncline.cluster.validation.engine.fields import each, label_selector_causes
from syncline.kube.errors import FieldCause
from syncline.kube.objects import Obj

EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
NOT_A_SELECTOR = "not a valid selector operator"
REQUIRED, PREFERRED = (
    "requiredDuringSchedulingIgnoredDuringExecution",
    "preferredDuringSchedulingIgnoredDuringExecution",
)


# --- tolerations ---------------------------------------------------------------------------------------------------


def _toleration(toleration: Obj, where: str) -> Iterator[FieldCause]:
    key, operator, effect, value = (str(toleration.get(one) or "") for one in ("key", "operator", "effect", "value"))
    at = f"{where}.operator"
    if key:
        yield from r.qualified(key, f"{where}.key")
    elif operator != "Exists":
        why = 'operator must be Exists when `key` is empty, which means "match all values and all keys"'
        yield invalid(at, operator, why)
    if toleration.get("tolerationSeconds") is not None and effect != "NoExecute":
        yield invalid(f"{where}.effect", effect, "effect must be 'NoExecute' when `tolerationSeconds` is set")
    if operator in ("", "Equal"):
        if problems := names.label_value(value):
            yield invalid(at, value, ";".join(problems))
    elif operator == "Exists":
        if value:
            yield invalid(at, value, "value must be empty when `operator` is 'Exists'")
    else:
        more = ("Lt", "Gt") if operator in ("Lt", "Gt") else ()
        yield unsupported(at, operator, ("Equal", "Exists", *more))
    if effect and effect not in EFFECTS:
        yield unsupported(f"{where}.effect", effect, EFFECTS)


toleration_causes = r.each("tolerations", _toleration)


# --- affinity ------------------------------------------------------------------------------------------------------


def _key_causes(term: Obj, at: str, field: str) -> Iterator[FieldCause]:
    """Validate ``matchLabelKeys``, whose values are the pod's own labels."""
    if term.get(field) and term.get("labelSelector") is None:
        yield forbidden(f"{at}.{field}", "must not be specified when labelSelector is not set")
    else:
        yield from r.items(field, r.qualified)(term, at)


def _label_key_causes(term: Obj, at: str) -> Iterator[FieldCause]:
    """Refuse keys that appear in two fields."""
    selector, matched = term.get("labelSelector") or {}, term.get("matchLabelKeys") or []
    known = set(selector.get("matchLabels") or ())
    for expression in r.list_of(selector, "matchExpressions"):
        key = str(expression.get("key"))
        if key in matched and key in known:
            yield invalid(f"{at}[{matched.index(key)}]", key, "exists in both matchLabelKeys and labelSelector")
        known.add(key)
    mismatched = term.get("mismatchLabelKeys") or []
    for index, key in enumerate(matched):
        if key in mismatched:
            why = "exists in both matchLabelKeys and mismatchLabelKeys"
            yield invalid(f"{at}.matchLabelKeys[{index}]", key, why)


def _namespaces(term: Obj, at: str) -> list[FieldCause]:
    return [cause for name in term.get("namespaces") or () for cause in r.label(name, f"{at}.namespace")]


_POD_TERM = r.every(
    r.field("labelSelector", label_selector_causes),
    r.field("namespaceSelector", label_selector_causes),
    _namespaces,
    partial(_key_causes, field="matchLabelKeys"),
    partial(_key_causes, field="mismatchLabelKeys"),
    _label_key_causes,
    r.need("topologyKey", why="can not be empty"),
    r.text("topologyKey", r.qualified),
)
_WEIGHT = r.number("weight", r.within(1, 100, "must be in the range 1-100"))
_POD_AFFINITY = r.every(r.each(REQUIRED, _POD_TERM), r.each(PREFERRED, _WEIGHT, r.part("podAffinityTerm", _POD_TERM)))


def _requirement_causes(requirement: Obj, where: str) -> Iterator[FieldCause]:
    operator, listed, at = requirement.get("operator", ""), requirement.get("values") or [], f"{where}.values"
    if operator in ("In", "NotIn"):
        if not listed:
            yield required(at, "must be specified when `operator` is 'In' or 'NotIn'")
    elif operator in ("Exists", "DoesNotExist"):
        if listed:
            yield forbidden(at, "may not be specified when `operator` is 'Exists' or 'DoesNotExist'")
    elif operator not in ("Gt", "Lt"):
        yield invalid(f"{where}.operator", operator, NOT_A_SELECTOR)
    elif len(listed) != 1:
        yield required(at, "must be specified single value when `operator` is 'Lt' or 'Gt'")
    yield from r.text("key", r.qualified)(requirement, where)


def _field_requirement_causes(requirement: Obj, where: str) -> Iterator[FieldCause]:
    operator, listed = requirement.get("operator", ""), requirement.get("values") or []
    if operator not in ("In", "NotIn"):
        yield invalid(f"{where}.operator", operator, NOT_A_SELECTOR)
    elif len(listed) != 1:
        why = "must be only one value when `operator` is 'In' or 'NotIn' for node field selector"
        yield required(f"{where}.values", why)
    if requirement.get("key") != "metadata.name":
        yield invalid(f"{where}.key", requirement.get("key", ""), "not a valid field selector key")
    else:
        yield from r.items("values", r.subdomain)(requirement, where)


_FIELDS = r.each("matchFields", _field_requirement_causes)
_NODE_TERM = r.every(
    r.each("matchExpressions", _requirement_causes, r.items("values", r.named(names.label_value))), _FIELDS
)
_PREFERENCE = r.every(r.each("matchExpressions", _requirement_causes), _FIELDS)
"""Values of preferences are not checked, because older releases accepted any."""
node_selector_causes = r.every(
    r.need("nodeSelectorTerms", why="must have at least one node selector term"),
    r.each("nodeSelectorTerms", _NODE_TERM),
)
"""A NodeSelector: terms of expressions over labels and fields of nodes."""
affinity_causes = r.every(
    r.field(
        "nodeAffinity",
        r.field(REQUIRED, node_selector_causes),
        r.each(PREFERRED, _WEIGHT, r.part("preference", _PREFERENCE)),
    ),
    r.field("podAffinity", _POD_AFFINITY),
    r.field("podAntiAffinity", _POD_AFFINITY),
)


# --- spreading -----------------------------------------------------------------------------------------------------


def _spread_pairs(spread: Obj, path: str, later: list[Obj]) -> Iterator[FieldCause]:
    pair, *others = [(one.get("topologyKey") or "", one.get("whenUnsatisfiable") or "") for one in (spread, *later)]
    if pair in others:
        yield duplicate(f"{path}.{{topologyKey, whenUnsatisfiable}}", f"{{{pair[0]}, {pair[1]}}}")
    domains = spread.get("minDomains")
    if domains is not None and domains <= 0:
        yield invalid(f"{path}.minDomains", domains, "must be greater than zero")
    if domains is not None and pair[1] != "DoNotSchedule":
        why = f"can only use minDomains if whenUnsatisfiable=DoNotSchedule, not {pair[1]}"
        yield invalid(f"{path}.minDomains", domains, why)


_SPREAD_BEGIN = r.every(
    r.number("maxSkew", r.at_least(1, "must be greater than zero")),
    r.need("topologyKey", why="can not be empty"),
    r.text("whenUnsatisfiable", r.choice("DoNotSchedule", "ScheduleAnyway")),
)
_SPREAD_END = r.every(
    r.field("nodeAffinityPolicy", r.choice("Honor", "Ignore")),
    r.field("nodeTaintsPolicy", r.choice("Honor", "Ignore")),
    partial(_key_causes, field="matchLabelKeys"),
    _label_key_causes,
    r.field("labelSelector", label_selector_causes),
)


def spread_causes(spec: Obj, path: str) -> Iterator[FieldCause]:
    listed = list(each(spec, "topologySpreadConstraints", path))
    for index, (where, spread) in enumerate(listed):
        yield from _SPREAD_BEGIN(spread, where)
        yield from _spread_pairs(spread, where, [other for _, other in listed[index + 1 :]])
        yield from _SPREAD_END(spread, where)
