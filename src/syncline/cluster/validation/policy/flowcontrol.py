"""What decides whose requests wait: priority levels and the schemas that lead to them.

Called by the API through :func:`syncline.cluster.validation.strategy.strategy_for`. Source: Kubernetes
``pkg/apis/flowcontrol/validation``.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, ClassVar

from syncline.cluster.validation.engine import names
from syncline.cluster.validation.engine.base import Kind, spec_of
from syncline.cluster.validation.engine.causes import duplicate, forbidden, invalid, required, unsupported
from syncline.cluster.validation.engine.fields import each
from syncline.kube.errors import FieldCause
from syncline.kube.objects import Obj, dig

__all__ = ["FlowSchemaKind", "PriorityLevelKind"]

MOST_PRECEDENCE = 10_000
MOST_QUEUES = 10_000_000
MOST_HASH_BITS = 60
METHODS = ("ByNamespace", "ByUser")
LEVEL_TYPES = ("Exempt", "Limited")
RESPONSES = ("Queue", "Reject")
VERBS = ("create", "delete", "deletecollection", "get", "list", "patch", "proxy", "update", "watch")
SUBJECTS = {"Group": "group", "ServiceAccount": "serviceAccount", "User": "user"}
ZERO_SHARES = "flowcontrol.k8s.io/v1beta3-preserve-zero-concurrency-shares"
NATURAL = "must be a non-negative integer"


def _status_causes(new: Obj) -> list[FieldCause]:
    causes: list[FieldCause] = []
    seen: set[str] = set()
    for where, condition in each(new.get("status") or {}, "conditions", "status"):
        kind = str(condition.get("type") or "")
        if kind in seen:
            causes.append(duplicate(f"{where}.type", kind))
        if not kind:
            causes.append(required(f"{where}.type"))
        seen.add(kind)
    return causes


# --- priority levels -----------------------------------------------------------------------------------------------


class _FlowControlKind(Kind):
    """What both kinds of the group share."""

    has_status = True
    has_generation = True
    namespaced = False
    empty_status: ClassVar[Obj | None] = {}
    status_keeps_metadata = True

    def status_causes(self, new: Obj, old: Obj) -> list[FieldCause]:
        return _status_causes(new)


class PriorityLevelKind(_FlowControlKind):
    def content_causes(self, obj: Obj) -> list[FieldCause]:
        spec = spec_of(obj)
        kind, limited, exempt = str(spec.get("type") or ""), spec.get("limited"), spec.get("exempt")
        causes: list[FieldCause] = []
        if ZERO_SHARES in dig(obj, "metadata", "annotations", default={}):
            causes.append(forbidden("metadata.annotations", f"annotation '{ZERO_SHARES}' is forbidden"))
        if (dig(obj, "metadata", "name") == "exempt") != (kind == "Exempt"):
            causes.append(invalid("spec.type", kind, "must be 'Exempt' if and only if `name` is 'exempt'"))
        if kind not in LEVEL_TYPES:
            return [*causes, unsupported("spec.type", kind, LEVEL_TYPES)]
        if kind == "Exempt":
            if limited is not None:
                causes.append(forbidden("spec.limited", "must be nil if the type is not Limited"))
            return causes + _share_causes(exempt or {}, "spec.exempt")
        if exempt is not None:
            causes.append(forbidden("spec.exempt", "must be nil if the type is Limited"))
        if limited is None:
            return [*causes, required("spec.limited", "must not be empty when type is Limited")]
        return causes + _limited_causes(limited, "spec.limited")


def _share_causes(owner: Obj, path: str, between: Iterable[FieldCause] = ()) -> list[FieldCause]:
    """``between``: causes of the field that Kubernetes judges between the two."""
    causes: list[FieldCause] = []
    shares, percent = owner.get("nominalConcurrencyShares"), owner.get("lendablePercent")
    if isinstance(shares, int) and shares < 0:
        causes.append(invalid(f"{path}.nominalConcurrencyShares", shares, NATURAL))
    causes += between
    if isinstance(percent, int) and not 0 <= percent <= 100:
        causes.append(invalid(f"{path}.lendablePercent", percent, "must be between 0 and 100, inclusive"))
    return causes


def _limited_causes(limited: Obj, path: str) -> list[FieldCause]:
    causes = _share_causes(limited, path, _response_causes(limited.get("limitResponse") or {}, f"{path}.limitResponse"))
    borrowing = limited.get("borrowingLimitPercent")
    if isinstance(borrowing, int) and borrowing < 0:
        causes.append(invalid(f"{path}.borrowingLimitPercent", borrowing, f"if specified, {NATURAL}"))
    return causes


def _response_causes(response: Obj, path: str) -> list[FieldCause]:
    kind, queuing = str(response.get("type") or ""), response.get("queuing")
    if kind not in RESPONSES:
        return [unsupported(f"{path}.type", kind, RESPONSES)]
    if kind == "Reject" and queuing is not None:
        return [forbidden(f"{path}.queuing", "must be nil if limited.limitResponse.type is not Limited")]
    if kind == "Queue" and queuing is None:
        return [required(f"{path}.queuing", "must not be empty if limited.limitResponse.type is Limited")]
    return _queue_causes(queuing or {}, f"{path}.queuing") if kind == "Queue" else []


def _queue_causes(queuing: Obj, path: str) -> list[FieldCause]:
    queues, hand, length = (int(queuing.get(key) or 0) for key in ("queues", "handSize", "queueLengthLimit"))
    causes: list[FieldCause] = []
    if length <= 0:
        causes.append(invalid(f"{path}.queueLengthLimit", length, "must be positive"))
    if queues <= 0:
        causes.append(invalid(f"{path}.queues", queues, "must be positive"))
    elif queues > MOST_QUEUES:
        causes.append(invalid(f"{path}.queues", queues, f"must not be greater than {MOST_QUEUES}"))
    if hand <= 0:
        causes.append(invalid(f"{path}.handSize", hand, "must be positive"))
    elif hand > queues:
        causes.append(invalid(f"{path}.handSize", hand, f"should not be greater than queues ({queues})"))
    elif _entropy_bits(queues, hand) > MOST_HASH_BITS:
        why = (
            f"required entropy bits of deckSize {queues} and handSize {hand} should not be greater than "
            f"{MOST_HASH_BITS}"
        )
        causes.append(invalid(f"{path}.handSize", hand, why))
    return causes


def _entropy_bits(deck: int, hand: int) -> int:
    """How much chance dealing a hand takes; more than any bound as soon as the hand is long."""
    return math.ceil(sum(math.log2(deck - card) for card in range(min(hand, MOST_HASH_BITS + 2))))


# --- schemas -------------------------------------------------------------------------------------------------------


class FlowSchemaKind(_FlowControlKind):
    def content_causes(self, obj: Obj) -> list[FieldCause]:
        spec = spec_of(obj)
        causes = _precedence_causes(spec.get("matchingPrecedence"), dig(obj, "metadata", "name"))
        method = spec.get("distinguisherMethod")
        if isinstance(method, dict) and method.get("type") not in METHODS:
            shown = {"Type": str(method.get("type") or "")}
            causes.append(unsupported("spec.distinguisherMethod.type", shown, METHODS))
        level = str(dig(spec, "priorityLevelConfiguration", "name", default=""))
        at = "spec.priorityLevelConfiguration.name"
        if not level:
            causes.append(required(at, "must reference a priority level"))
        else:
            causes += [invalid(at, level, problem) for problem in names.dns_subdomain(level)]
        for where, rule in each(spec, "rules", "spec"):
            causes += _schema_rule_causes(rule, where)
        return causes


def _precedence_causes(precedence: Any, name: Any) -> list[FieldCause]:
    at = "spec.matchingPrecedence"
    if not isinstance(precedence, int):
        return []
    if precedence <= 0:
        return [invalid(at, precedence, "must be a positive value")]
    if precedence > MOST_PRECEDENCE:
        return [invalid(at, precedence, f"must not be greater than {MOST_PRECEDENCE}")]
    if precedence == 1 and name != "exempt":
        return [invalid(at, precedence, "only the schema named 'exempt' may have matchingPrecedence 1")]
    return []


def _schema_rule_causes(rule: Obj, path: str) -> list[FieldCause]:
    causes: list[FieldCause] = []
    for where, subject in each(rule, "subjects", path):
        causes += _subject_causes(subject, where)
    if not rule.get("subjects"):
        causes.append(required(f"{path}.subjects", "subjects must contain at least one value"))
    if not rule.get("resourceRules") and not rule.get("nonResourceRules"):
        causes.append(required(path, "at least one of resourceRules and nonResourceRules has to be non-empty"))
    for where, entry in each(rule, "resourceRules", path):
        causes += _resource_rule_causes(entry, where)
    for where, entry in each(rule, "nonResourceRules", path):
        causes += _address_rule_causes(entry, where)
    return causes


def _subject_causes(subject: Obj, path: str) -> list[FieldCause]:
    kind = str(subject.get("kind") or "")
    if kind not in SUBJECTS:
        return [unsupported(f"{path}.kind", kind, SUBJECTS)]
    own = SUBJECTS[kind]
    found, where = subject.get(own), f"{path}.{own}"
    causes: list[FieldCause] = []
    if found is None:
        causes.append(required(where, f"{own} is required when subject kind is '{kind}'"))
    else:
        name = str(found.get("name") or "")
        if not name:
            causes.append(required(f"{where}.name"))
        if kind == "ServiceAccount":
            if name and name != "*":
                causes += [invalid(f"{where}.name", name, problem) for problem in names.dns_subdomain(name)]
            causes += _account_namespace_causes(str(found.get("namespace") or ""), f"{where}.namespace")
    for other, key in SUBJECTS.items():
        if other != kind and subject.get(key) is not None:
            causes.append(forbidden(f"{path}.{key}", f"{key} is forbidden when subject kind is not '{other}'"))
    return causes


def _account_namespace_causes(namespace: str, path: str) -> list[FieldCause]:
    if not namespace:
        return [required(path, "must specify namespace for service account")]
    return [invalid(path, namespace, problem) for problem in names.dns_label(namespace)]


def _verb_causes(verbs: list[Any], path: str) -> list[FieldCause]:
    if not verbs:
        return [required(path, "verbs must contain at least one value")]
    if "*" in verbs:
        return [invalid(path, verbs, "if '*' is present, must not specify other verbs")] if len(verbs) > 1 else []
    return [] if set(verbs) <= set(VERBS) else [unsupported(path, verbs, VERBS)]


def _address_rule_causes(rule: Obj, path: str) -> list[FieldCause]:
    causes = _verb_causes(rule.get("verbs") or [], f"{path}.verbs")
    urls, where = rule.get("nonResourceURLs") or [], f"{path}.nonResourceURLs"
    if not urls:
        causes.append(required(where, "nonResourceURLs must contain at least one value"))
    elif "*" in urls:
        if len(urls) > 1:
            causes.append(invalid(where, urls, "if '*' is present, must not specify other non-resource URLs"))
    else:
        for index, url in enumerate(urls):
            causes += [invalid(f"{where}[{index}]", url, problem) for problem in _address_problems(str(url))]
    return causes


def _address_problems(url: str) -> list[str]:
    if url == "/":
        return []
    if not url:
        return ["must not be empty"]
    if not url.startswith("/"):
        return ["must start with slash"]
    if " " in url:
        return ["must not contain white-space"]
    if "//" in url:
        return ["must not contain double slash"]
    stars = url.count("*")
    wrong = stars > 1 or (stars == 1 and not url.endswith("/*"))
    return ["wildcard can only do suffix matching"] if wrong else []


def _resource_rule_causes(rule: Obj, path: str) -> list[FieldCause]:
    causes = _verb_causes(rule.get("verbs") or [], f"{path}.verbs")
    for key, one, many in (("apiGroups", "api group", "api groups"), ("resources", "resource", "resources")):
        values, where = rule.get(key) or [], f"{path}.{key}"
        if not values:
            causes.append(required(where, f"resource rules must supply at least one {one}"))
        elif len(values) > 1 and "*" in values:
            causes.append(invalid(where, values, f"if '*' is present, must not specify other {many}"))
    namespaces, where = rule.get("namespaces") or [], f"{path}.namespaces"
    if not namespaces and not rule.get("clusterScope"):
        why = "resource rules that are not cluster scoped must supply at least one namespace"
        causes.append(required(where, why))
    elif "*" in namespaces:
        if len(namespaces) > 1:
            causes.append(invalid(where, namespaces, "if '*' is present, must not specify other namespaces"))
    else:
        for index, namespace in enumerate(namespaces):
            start = "each member of this list must be '*' or a DNS-1123 label; "
            at = f"{where}[{index}]"
            causes += [invalid(at, namespace, start + problem) for problem in names.dns_label(str(namespace))]
    return causes
