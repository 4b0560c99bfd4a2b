"""Match a request to its FlowSchema, and to a flow within it.

``fairness.control`` calls it with compiled FlowSchemas. Pure; it reads no levels and no queues. Source: apiserver
``pkg/util/flowcontrol/rule.go`` and ``apf_controller.go``.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

from syncline.cluster.access.users import UserInfo
from syncline.cluster.resources.routes import Route
from syncline.kube.objects import Obj, dig, name_of, uid_of

ALL = "*"
SERVICE_ACCOUNT_PREFIX = "system:serviceaccount:"
DEFAULT_PRECEDENCE = 1000


@dataclass(frozen=True, slots=True)
class Asked:
    """The attributes of a request that FlowSchemas match."""

    user: UserInfo
    verb: str
    route: Route


@dataclass(frozen=True, slots=True)
class Schema:
    """``method`` is ByUser, ByNamespace or empty; ``level`` names the PriorityLevelConfiguration."""

    name: str
    uid: str
    level: str
    precedence: int
    method: str
    rules: tuple[Obj, ...]

    def matches(self, asked: Asked) -> bool:
        return any(_rule_matches(rule, asked) for rule in self.rules)

    def distinguisher(self, asked: Asked) -> str:
        """Return the value that separates this schema's flows."""
        if self.method == "ByUser":
            return asked.user.name
        return asked.route.namespace if self.method == "ByNamespace" else ""

    def hash_of(self, distinguisher: str) -> int:
        """Return the flow's 64-bit hash, which selects its queues (``hashFlowID``)."""
        digest = hashlib.sha256(self.name.encode() + b"\0" + distinguisher.encode("utf-8", "surrogatepass")).digest()
        return int.from_bytes(digest[:8], "little")


def schema_of(obj: Obj) -> Schema:
    """Compile a stored FlowSchema."""
    spec = obj.get("spec") or {}
    return Schema(
        name_of(obj),
        uid_of(obj),
        str(dig(spec, "priorityLevelConfiguration", "name", default="")),
        int(spec.get("matchingPrecedence") or DEFAULT_PRECEDENCE),
        str(dig(spec, "distinguisherMethod", "type", default="")),
        tuple(spec.get("rules") or ()),
    )


def _rule_matches(rule: Obj, asked: Asked) -> bool:
    if not any(_subject_matches(subject, asked.user) for subject in rule.get("subjects") or ()):
        return False
    if asked.route.resource:
        return any(_resource_matches(each, asked) for each in rule.get("resourceRules") or ())
    return any(_address_matches(each, asked) for each in rule.get("nonResourceRules") or ())


def _subject_matches(subject: Obj, user: UserInfo) -> bool:
    match subject.get("kind"):
        case "User":
            return dig(subject, "user", "name") in (ALL, user.name)
        case "Group":
            name = dig(subject, "group", "name")
            return name == ALL or name in user.groups
        case "ServiceAccount":
            name, namespace = dig(subject, "serviceAccount", "name"), dig(subject, "serviceAccount", "namespace")
            start = f"{SERVICE_ACCOUNT_PREFIX}{namespace}:"
            return user.name.startswith(start) if name == ALL else user.name == start + str(name)
    return False


def _among(value: str, listed: Sequence[str]) -> bool:
    """Match a value; a wildcard counts only as the single entry (``containsString``)."""
    return (len(listed) == 1 and listed[0] == ALL) or value in listed


def _resource_matches(rule: Obj, asked: Asked) -> bool:
    route = asked.route
    resource = f"{route.resource}/{route.subresource}" if route.subresource else route.resource
    if not (
        _among(asked.verb, rule.get("verbs") or ())
        and _among(resource, rule.get("resources") or ())
        and _among(route.group, rule.get("apiGroups") or ())
    ):
        return False
    if not route.namespace:
        return bool(rule.get("clusterScope"))
    return _among(route.namespace, rule.get("namespaces") or ())


def _address_matches(rule: Obj, asked: Asked) -> bool:
    if not _among(asked.verb, rule.get("verbs") or ()):
        return False
    path = asked.route.path
    for url in rule.get("nonResourceURLs") or ():
        if url in (ALL, path) or path.startswith(url.removesuffix("*").rstrip("/") + "/"):
            return True
    return False
