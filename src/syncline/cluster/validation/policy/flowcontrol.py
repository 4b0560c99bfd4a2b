"""Priority levels and FlowSchemas, which decide which requests wait.

The API calls it through :func:`syncline.cluster.validation.strategy.strategy_for`. Source: Kubernetes
``pkg/apis/flowcontrol/validation``.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import Any, ClassVar

from syncline.cluster.validation.engine import names
from syncline.cluster.validation.engine import rules as r
from syncline.cluster.validation.engine.base import Kind
from syncline.cluster.validation.engine.causes import forbidden, invalid, required, unsupported
from syncline.kube.errors import FieldCause
from syncline.kube.objects import Obj, dig

MOST_QUEUES, MOST_HASH_BITS = 10_000_000, 60
VERBS = ("create", "delete", "deletecollection", "get", "list", "patch", "proxy", "update", "watch")
SUBJECTS = {"Group": "group", "ServiceAccount": "serviceAccount", "User": "user"}
ZERO_SHARES = "flowcontrol.k8s.io/v1beta3-preserve-zero-concurrency-shares"
NOT_NEGATIVE = "must be a non-negative integer"


class _FlowControlKind(Kind):
    """Rules that both kinds of the group share."""

    has_status = True
    has_generation = True
    namespaced = False
    empty_status: ClassVar[Obj | None] = {}
    status_keeps_metadata = True
    status_rules = r.each("conditions", r.unique("type"), r.needs("type"))


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
    """Return the bits of entropy that dealing a hand needs; long hands exceed any limit."""
    return math.ceil(sum(math.log2(deck - card) for card in range(min(hand, MOST_HASH_BITS + 2))))


_QUEUING = r.every(
    r.number("queueLengthLimit", r.at_least(1, "must be positive")),
    r.number(
        "queues", r.at_least(1, "must be positive"), r.at_most(MOST_QUEUES, f"must not be greater than {MOST_QUEUES}")
    ),
    lambda queuing, path: _hand_causes(queuing, f"{path}.handSize"),
)
_RESPONSE = r.first(
    r.text("type", r.choice("Queue", "Reject")),
    r.forbid(
        lambda one: one["type"] == "Reject" and one.get("queuing") is not None,
        "queuing",
        "must be nil if limited.limitResponse.type is not Limited",
    ),
    r.demand(
        lambda one: one["type"] == "Queue" and one.get("queuing") is None,
        "queuing",
        "must not be empty if limited.limitResponse.type is Limited",
    ),
    r.field("queuing", _QUEUING),
)
_SHARES = r.field("nominalConcurrencyShares", r.at_least(0, NOT_NEGATIVE))
_LENDABLE = r.field("lendablePercent", r.within(0, 100))
_LIMITED = r.every(
    _SHARES,
    r.part("limitResponse", _RESPONSE),
    _LENDABLE,
    r.field("borrowingLimitPercent", r.at_least(0, f"if specified, {NOT_NEGATIVE}")),
)
_LEVEL = r.first(
    r.text("type", r.choice("Exempt", "Limited")),
    r.when(
        r.where(type="Exempt"),
        r.forbid(r.has("limited"), "limited", "must be nil if the type is not Limited"),
        r.part("exempt", _SHARES, _LENDABLE),
        otherwise=r.every(
            r.forbid(r.has("exempt"), "exempt", "must be nil if the type is Limited"),
            r.demand(r.lacks("limited"), "limited", "must not be empty when type is Limited"),
            r.field("limited", _LIMITED),
        ),
    ),
)


class PriorityLevelKind(_FlowControlKind):
    rules = r.every(
        r.forbid(
            lambda obj: ZERO_SHARES in dig(obj, "metadata", "annotations", default={}),
            "metadata.annotations",
            f"annotation '{ZERO_SHARES}' is forbidden",
        ),
        lambda obj, path: _exempt_causes(obj),
        r.spec(_LEVEL),
    )


def _exempt_causes(obj: Obj) -> Iterator[FieldCause]:
    kind = str(dig(obj, "spec", "type") or "")
    if (dig(obj, "metadata", "name") == "exempt") != (kind == "Exempt"):
        yield invalid("spec.type", kind, "must be 'Exempt' if and only if `name` is 'exempt'")


# --- schemas -------------------------------------------------------------------------------------------------------


def _alone(things: str) -> r.Rule:
    """Refuse other entries beside a wildcard."""
    return r.must(lambda listed: len(listed) < 2 or "*" not in listed, f"if '*' is present, must not specify {things}")


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


_VERBS = r.need(
    "verbs",
    _alone("other verbs"),
    lambda verbs, path: () if "*" in verbs or {*verbs} <= {*VERBS} else (unsupported(path, verbs, VERBS),),
    why="verbs must contain at least one value",
)
_RESOURCE_RULE = r.every(
    _VERBS,
    r.need("apiGroups", _alone("other api groups"), why="resource rules must supply at least one api group"),
    r.need("resources", _alone("other resources"), why="resource rules must supply at least one resource"),
    r.demand(
        lambda rule: not rule.get("namespaces") and not rule.get("clusterScope"),
        "namespaces",
        "resource rules that are not cluster scoped must supply at least one namespace",
    ),
    r.filled("namespaces", _alone("other namespaces")),
    r.when(
        lambda rule: "*" not in (rule.get("namespaces") or ()),
        r.items(
            "namespaces",
            r.named(
                lambda name: [
                    f"each member of this list must be '*' or a DNS-1123 label; {one}" for one in names.dns_label(name)
                ]
            ),
        ),
    ),
)
_ADDRESS_RULE = r.every(
    _VERBS,
    r.need("nonResourceURLs", _alone("other non-resource URLs"), why="nonResourceURLs must contain at least one value"),
    r.when(
        lambda rule: "*" not in (rule.get("nonResourceURLs") or ()),
        r.items("nonResourceURLs", r.named(_address_problems)),
    ),
)
_ACCOUNT = r.every(
    r.filled("name", r.when(lambda name: name != "*", r.subdomain)),
    r.need("namespace", r.label, why="must specify namespace for service account"),
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
        yield from r.needs("name")(found, at)
        yield from _ACCOUNT(found, at) if kind == "ServiceAccount" else ()
    for other, key in SUBJECTS.items():
        if other != kind and subject.get(key) is not None:
            yield forbidden(f"{path}.{key}", f"{key} is forbidden when subject kind is not '{other}'")


def _method_causes(method: Obj, path: str) -> Iterable[FieldCause]:
    kind, known = str(method.get("type") or ""), ("ByNamespace", "ByUser")
    return () if kind in known else [unsupported(f"{path}.type", {"Type": kind}, known)]


class FlowSchemaKind(_FlowControlKind):
    rules = r.every(
        lambda obj, path: _precedence_causes(dig(obj, "spec", "matchingPrecedence"), dig(obj, "metadata", "name")),
        r.spec(
            r.field("distinguisherMethod", _method_causes),
            r.part("priorityLevelConfiguration", r.need("name", r.subdomain, why="must reference a priority level")),
            r.each(
                "rules",
                r.each("subjects", _subject_causes),
                r.need("subjects", why="subjects must contain at least one value"),
                r.demand(
                    lambda rule: not rule.get("resourceRules") and not rule.get("nonResourceRules"),
                    "",
                    "at least one of resourceRules and nonResourceRules has to be non-empty",
                ),
                r.each("resourceRules", _RESOURCE_RULE),
                r.each("nonResourceRules", _ADDRESS_RULE),
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
