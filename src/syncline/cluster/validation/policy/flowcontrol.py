"""What decides whose requests wait: priority levels and the schemas that lead to them.

Called by the API through :func:`syncline.cluster.validation.strategy.strategy_for`. Source: Kubernetes
``pkg/apis/flowcontrol/validation``.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import Any, ClassVar

from syncline.cluster.validation.engine import names
from syncline.cluster.validation.engine.base import Kind
from syncline.cluster.validation.engine.causes import forbidden, invalid, required, unsupported
from syncline.cluster.validation.engine.rules import (
    Rule,
    at_least,
    at_most,
    choice,
    demand,
    each,
    every,
    field,
    filled,
    first,
    forbid,
    has,
    items,
    label,
    lacks,
    must,
    named,
    need,
    needs,
    number,
    part,
    spec,
    subdomain,
    text,
    unique,
    when,
    where,
    within,
)
from syncline.kube.errors import FieldCause
from syncline.kube.objects import Obj, dig

__all__ = ["FlowSchemaKind", "PriorityLevelKind"]

MOST_QUEUES, MOST_HASH_BITS = 10_000_000, 60
VERBS = ("create", "delete", "deletecollection", "get", "list", "patch", "proxy", "update", "watch")
SUBJECTS = {"Group": "group", "ServiceAccount": "serviceAccount", "User": "user"}
ZERO_SHARES = "flowcontrol.k8s.io/v1beta3-preserve-zero-concurrency-shares"
NOT_NEGATIVE = "must be a non-negative integer"


class _FlowControlKind(Kind):
    """What both kinds of the group share."""

    has_status = True
    has_generation = True
    namespaced = False
    empty_status: ClassVar[Obj | None] = {}
    status_keeps_metadata = True
    status_rules = each("conditions", unique("type"), needs("type"))


# --- priority levels -----------------------------------------------------------------------------------------------


def _hand_causes(queuing: Obj, path: str) -> Iterator[FieldCause]:
    queues, hand = (int(queuing.get(key) or 0) for key in ("queues", "handSize"))
    if hand <= 0:
        yield invalid(path, hand, "must be positive")
    elif hand > queues:
        yield invalid(path, hand, f"should not be greater than queues ({queues})")
    elif _entropy_bits(queues, hand) > MOST_HASH_BITS:
        why = f"required entropy bits of deckSize {queues} and handSize {hand} should not be greater than"
        yield invalid(path, hand, f"{why} {MOST_HASH_BITS}")


def _entropy_bits(deck: int, hand: int) -> int:
    """How much chance dealing a hand takes; more than any bound as soon as the hand is long."""
    return math.ceil(sum(math.log2(deck - card) for card in range(min(hand, MOST_HASH_BITS + 2))))


_QUEUING = every(
    number("queueLengthLimit", at_least(1, "must be positive")),
    number("queues", at_least(1, "must be positive"), at_most(MOST_QUEUES, f"must not be greater than {MOST_QUEUES}")),
    lambda queuing, path: _hand_causes(queuing, f"{path}.handSize"),
)
_RESPONSE = first(
    text("type", choice("Queue", "Reject")),
    forbid(
        lambda one: one["type"] == "Reject" and one.get("queuing") is not None,
        "queuing",
        "must be nil if limited.limitResponse.type is not Limited",
    ),
    demand(
        lambda one: one["type"] == "Queue" and one.get("queuing") is None,
        "queuing",
        "must not be empty if limited.limitResponse.type is Limited",
    ),
    field("queuing", _QUEUING),
)
_SHARES = field("nominalConcurrencyShares", at_least(0, NOT_NEGATIVE))
_LENDABLE = field("lendablePercent", within(0, 100))
_LIMITED = every(
    _SHARES,
    part("limitResponse", _RESPONSE),
    _LENDABLE,
    field("borrowingLimitPercent", at_least(0, f"if specified, {NOT_NEGATIVE}")),
)
_LEVEL = first(
    text("type", choice("Exempt", "Limited")),
    when(
        where(type="Exempt"),
        forbid(has("limited"), "limited", "must be nil if the type is not Limited"),
        part("exempt", _SHARES, _LENDABLE),
        otherwise=every(
            forbid(has("exempt"), "exempt", "must be nil if the type is Limited"),
            demand(lacks("limited"), "limited", "must not be empty when type is Limited"),
            field("limited", _LIMITED),
        ),
    ),
)


class PriorityLevelKind(_FlowControlKind):
    rules = every(
        forbid(
            lambda obj: ZERO_SHARES in dig(obj, "metadata", "annotations", default={}),
            "metadata.annotations",
            f"annotation '{ZERO_SHARES}' is forbidden",
        ),
        lambda obj, path: _exempt_causes(obj),
        spec(_LEVEL),
    )


def _exempt_causes(obj: Obj) -> Iterator[FieldCause]:
    kind = str(dig(obj, "spec", "type") or "")
    if (dig(obj, "metadata", "name") == "exempt") != (kind == "Exempt"):
        yield invalid("spec.type", kind, "must be 'Exempt' if and only if `name` is 'exempt'")


# --- schemas -------------------------------------------------------------------------------------------------------


def _alone(things: str) -> Rule:
    """A star stands for everything, so nothing stands beside it."""
    return must(lambda listed: len(listed) < 2 or "*" not in listed, f"if '*' is present, must not specify {things}")


def _address_problems(url: str) -> list[str]:
    if url == "/":
        return []
    faults = (
        (not url, "must not be empty"),
        (not url.startswith("/"), "must start with slash"),
        (" " in url, "must not contain white-space"),
        ("//" in url, "must not contain double slash"),
        (url.count("*") > 1 or ("*" in url and not url.endswith("/*")), "wildcard can only do suffix matching"),
    )
    return [why for wrong, why in faults if wrong][:1]


_VERBS = need(
    "verbs",
    _alone("other verbs"),
    lambda verbs, path: () if "*" in verbs or {*verbs} <= {*VERBS} else (unsupported(path, verbs, VERBS),),
    why="verbs must contain at least one value",
)
_RESOURCE_RULE = every(
    _VERBS,
    need("apiGroups", _alone("other api groups"), why="resource rules must supply at least one api group"),
    need("resources", _alone("other resources"), why="resource rules must supply at least one resource"),
    demand(
        lambda rule: not rule.get("namespaces") and not rule.get("clusterScope"),
        "namespaces",
        "resource rules that are not cluster scoped must supply at least one namespace",
    ),
    filled("namespaces", _alone("other namespaces")),
    when(
        lambda rule: "*" not in (rule.get("namespaces") or ()),
        items(
            "namespaces",
            named(
                lambda name: [
                    f"each member of this list must be '*' or a DNS-1123 label; {one}" for one in names.dns_label(name)
                ]
            ),
        ),
    ),
)
_ADDRESS_RULE = every(
    _VERBS,
    need("nonResourceURLs", _alone("other non-resource URLs"), why="nonResourceURLs must contain at least one value"),
    when(
        lambda rule: "*" not in (rule.get("nonResourceURLs") or ()), items("nonResourceURLs", named(_address_problems))
    ),
)
_ACCOUNT = every(
    filled("name", when(lambda name: name != "*", subdomain)),
    need("namespace", label, why="must specify namespace for service account"),
)


def _subject_causes(subject: Obj, path: str) -> Iterator[FieldCause]:
    kind = str(subject.get("kind") or "")
    if kind not in SUBJECTS:
        yield unsupported(f"{path}.kind", kind, SUBJECTS)
        return
    own = SUBJECTS[kind]
    found, at = subject.get(own), f"{path}.{own}"
    if found is None:
        yield required(at, f"{own} is required when subject kind is '{kind}'")
    else:
        yield from needs("name")(found, at)
        yield from _ACCOUNT(found, at) if kind == "ServiceAccount" else ()
    for other, key in SUBJECTS.items():
        if other != kind and subject.get(key) is not None:
            yield forbidden(f"{path}.{key}", f"{key} is forbidden when subject kind is not '{other}'")


def _method_causes(method: Obj, path: str) -> Iterable[FieldCause]:
    kind, known = str(method.get("type") or ""), ("ByNamespace", "ByUser")
    return () if kind in known else [unsupported(f"{path}.type", {"Type": kind}, known)]


class FlowSchemaKind(_FlowControlKind):
    rules = every(
        lambda obj, path: _precedence_causes(dig(obj, "spec", "matchingPrecedence"), dig(obj, "metadata", "name")),
        spec(
            field("distinguisherMethod", _method_causes),
            part("priorityLevelConfiguration", need("name", subdomain, why="must reference a priority level")),
            each(
                "rules",
                each("subjects", _subject_causes),
                need("subjects", why="subjects must contain at least one value"),
                demand(
                    lambda rule: not rule.get("resourceRules") and not rule.get("nonResourceRules"),
                    "",
                    "at least one of resourceRules and nonResourceRules has to be non-empty",
                ),
                each("resourceRules", _RESOURCE_RULE),
                each("nonResourceRules", _ADDRESS_RULE),
            ),
        ),
    )


def _precedence_causes(precedence: Any, name: Any) -> Iterator[FieldCause]:
    at = "spec.matchingPrecedence"
    if not isinstance(precedence, int):
        return
    if precedence <= 0:
        yield invalid(at, precedence, "must be a positive value")
    elif precedence > 10_000:
        yield invalid(at, precedence, "must not be greater than 10000")
    elif precedence == 1 and name != "exempt":
        yield invalid(at, precedence, "only the schema named 'exempt' may have matchingPrecedence 1")
