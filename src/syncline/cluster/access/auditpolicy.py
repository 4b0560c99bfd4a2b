"""Decide how much of a request is audited: ``audit.k8s.io/v1`` Policy, as Kubernetes evaluates it.

``assembly`` reads the file and calls :func:`parse_policy`; ``audit`` calls :meth:`AuditPolicy.decide` for each request.
Pure. Sources: apiserver ``pkg/audit/policy/checker.go`` and ``pkg/apis/audit/validation``. One deliberate difference:
see ``SENSITIVE``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum, StrEnum
from typing import Any

from syncline.cluster.access.users import UserInfo
from syncline.cluster.resources.routes import Route
from syncline.cluster.validation.engine.names import dns_subdomain
from syncline.kube.objects import Obj

API_VERSION = "audit.k8s.io/v1"


class AuditPolicyError(ValueError):
    """The policy is invalid; the message names every wrong field."""


class Level(IntEnum):
    """Audit levels, in increasing detail."""

    NONE = 0
    METADATA = 1
    REQUEST = 2
    REQUEST_RESPONSE = 3

    @property
    def text(self) -> str:
        return _LEVEL_NAMES[self]


_LEVEL_NAMES = {
    Level.NONE: "None",
    Level.METADATA: "Metadata",
    Level.REQUEST: "Request",
    Level.REQUEST_RESPONSE: "RequestResponse",
}
_LEVELS = {name: level for level, name in _LEVEL_NAMES.items()}


class Stage(StrEnum):
    RECEIVED = "RequestReceived"
    STARTED = "ResponseStarted"
    COMPLETE = "ResponseComplete"
    PANIC = "Panic"


SENSITIVE = {("", "secrets"), ("", "serviceaccounts/token"), ("authentication.k8s.io", "tokenreviews")}
"""Group and resource of objects with credentials. For a rule with ``*``, Kubernetes records their bodies too; here a
rule must name them, else the level is Metadata."""


@dataclass(frozen=True, slots=True)
class Decision:
    level: Level
    omitted: frozenset[Stage]
    omit_managed_fields: bool = False


@dataclass(frozen=True, slots=True)
class _Resources:
    group: str
    resources: tuple[str, ...]
    names: tuple[str, ...]

    def matches(self, route: Route, combined: str) -> bool:
        if self.group not in ("*", route.group):
            return False
        if not self.resources:
            return True
        if self.names and route.name not in self.names:
            return False
        sub = route.subresource
        return any(
            each in ("*", combined)
            or (sub and each == f"*/{sub}")
            or (each.endswith("/*") and each.removesuffix("/*") == route.resource)
            for each in self.resources
        )

    def insists(self, group: str, combined: str) -> bool:
        """Return whether the rule names this resource, and does not just match all."""
        plain = combined.partition("/")[0]
        return self.group == group and any(each in (combined, f"{plain}/*") for each in self.resources)


@dataclass(frozen=True, slots=True)
class _Rule:
    level: Level
    omitted: frozenset[Stage]
    omit_managed_fields: bool
    users: tuple[str, ...]
    groups: tuple[str, ...]
    verbs: tuple[str, ...]
    namespaces: tuple[str, ...]
    resources: tuple[_Resources, ...]
    urls: tuple[str, ...]

    def matches(self, user: UserInfo | None, verb: str, route: Route, combined: str) -> bool:
        if self.users and (user is None or user.name not in self.users):
            return False
        if self.groups and (user is None or not set(self.groups).intersection(user.groups)):
            return False
        if self.verbs and verb not in self.verbs:
            return False
        if self.namespaces or self.resources:
            if not route.resource or (self.namespaces and route.namespace not in self.namespaces):
                return False
            return not self.resources or any(each.matches(route, combined) for each in self.resources)
        if self.urls:
            return not route.resource and any(_path_matches(route.path, url) for url in self.urls)
        return True


def _path_matches(path: str, url: str) -> bool:
    return url in ("*", path) or (url.endswith("*") and path.startswith(url.rstrip("*")))


@dataclass(frozen=True, slots=True)
class AuditPolicy:
    """The first matching rule decides; without one, nothing is recorded."""

    rules: tuple[_Rule, ...]
    omitted: frozenset[Stage] = frozenset()

    def decide(self, user: UserInfo | None, verb: str, route: Route) -> Decision:
        """``user`` is the caller before impersonation, or None if the credentials were refused."""
        combined = f"{route.resource}/{route.subresource}" if route.subresource else route.resource
        for rule in self.rules:
            if rule.matches(user, verb, route, combined):
                return Decision(_capped(rule, route, combined), rule.omitted, rule.omit_managed_fields)
        return Decision(Level.NONE, self.omitted)


def _capped(rule: _Rule, route: Route, combined: str) -> Level:
    plain = combined if (route.group, combined) in SENSITIVE else route.resource
    if rule.level <= Level.METADATA or (route.group, plain) not in SENSITIVE:
        return rule.level
    return rule.level if any(each.insists(route.group, combined) for each in rule.resources) else Level.METADATA


METADATA_OF_ALL = AuditPolicy(
    (_Rule(Level.METADATA, frozenset({Stage.RECEIVED}), False, (), (), (), (), (), ()),), frozenset({Stage.RECEIVED})
)
"""The default policy of a log. (Kubernetes writes nothing without a policy.)"""


def parse_policy(obj: Any) -> AuditPolicy:
    """Return the policy of a decoded file; raise :class:`AuditPolicyError` with all errors."""
    if not isinstance(obj, dict) or obj.get("kind") != "Policy" or obj.get("apiVersion") != API_VERSION:
        raise AuditPolicyError(f"it is no Policy of {API_VERSION}; begin with apiVersion: {API_VERSION}, kind: Policy")
    problems = [f"{key}: is unknown" for key in obj if key not in _POLICY_FIELDS]
    rules = obj.get("rules")
    if not isinstance(rules, list) or not rules:
        raise AuditPolicyError("rules: a policy has at least one rule; without any, nothing would be written")
    common = _stages(obj.get("omitStages"), "omitStages", problems)
    made = tuple(_rule(rule, f"rules[{index}]", common, obj, problems) for index, rule in enumerate(rules))
    if problems:
        raise AuditPolicyError("; ".join(problems))
    return AuditPolicy(made, common)


_POLICY_FIELDS = ("apiVersion", "kind", "metadata", "rules", "omitStages", "omitManagedFields")
_LISTS = ("users", "userGroups", "verbs", "namespaces", "nonResourceURLs")
_RULE_FIELDS = ("level", "resources", "omitStages", "omitManagedFields", *_LISTS)
_RESOURCE_FIELDS = ("group", "resources", "resourceNames")


def _rule(rule: Any, path: str, common: frozenset[Stage], policy: Obj, problems: list[str]) -> _Rule:
    if not isinstance(rule, dict):
        problems.append(f"{path}: is no object")
        rule = {}
    problems += [f"{path}.{key}: is unknown" for key in rule if key not in _RULE_FIELDS]
    level = rule.get("level")
    if level not in _LEVELS:
        problems.append(f'{path}.level: is "{level or ""}"; write one of {", ".join(_LEVELS)}')
    lists = {name: _texts(rule.get(name), f"{path}.{name}", problems) for name in _LISTS}
    resources = rule.get("resources") or []
    groups = tuple(_group(each, f"{path}.resources[{i}]", problems) for i, each in enumerate(resources))
    urls = lists["nonResourceURLs"]
    if urls and (groups or lists["namespaces"]):
        problems.append(f"{path}.nonResourceURLs: rules cannot apply to both regular resources and non-resource URLs")
    for index, url in enumerate(urls):
        if url != "*" and not url.startswith("/"):
            problems.append(f"{path}.nonResourceURLs[{index}]: non-resource URL rules begin with a '/'")
        if "*" in url[:-1]:
            problems.append(f"{path}.nonResourceURLs[{index}]: '*' must be the final character")
    omit = rule.get("omitManagedFields")
    if omit is None:
        omit = policy.get("omitManagedFields")
    return _Rule(
        _LEVELS.get(level, Level.NONE),
        common | _stages(rule.get("omitStages"), f"{path}.omitStages", problems),
        bool(omit),
        lists["users"],
        lists["userGroups"],
        lists["verbs"],
        lists["namespaces"],
        groups,
        urls,
    )


def _group(entry: Any, path: str, problems: list[str]) -> _Resources:
    if not isinstance(entry, dict):
        problems.append(f"{path}: is no object; write group and resources")
        return _Resources("", (), ())
    problems += [f"{path}.{key}: is unknown" for key in entry if key not in _RESOURCE_FIELDS]
    group = str(entry.get("group") or "")
    if group not in ("", "*") and dns_subdomain(group):
        problems.append(f'{path}.group: "{group}" is no API group; leave the version out')
    resources = _texts(entry.get("resources"), f"{path}.resources", problems)
    names = _texts(entry.get("resourceNames"), f"{path}.resourceNames", problems)
    if names and not resources:
        problems.append(f"{path}.resourceNames: using resourceNames requires at least one resource")
    return _Resources(group, resources, names)


def _texts(value: Any, path: str, problems: list[str]) -> tuple[str, ...]:
    if value is None:
        return ()
    if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
        problems.append(f"{path}: is no list of texts")
        return ()
    return tuple(value)


def _stages(value: Any, path: str, problems: list[str]) -> frozenset[Stage]:
    known: Sequence[str] = [each.value for each in Stage]
    texts = _texts(value, path, problems)
    problems += [
        f'{path}: "{text}" is none; allowed stages are {", ".join(known)}' for text in texts if text not in known
    ]
    return frozenset(Stage(text) for text in texts if text in known)
