"""RBAC rules as values: what a rule allows, and whether one set of rules covers another.

``authz`` calls it, also to check that users grant at most their own rights. Pure; it reads no store and no users. Rules
follow Kubernetes ``pkg/apis/rbac/v1/evaluation_helpers.go`` and component-helpers ``auth/rbac/validation``.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import msgspec

from syncline.kube.objects import Obj, labels_of, name_of
from syncline.kube.selectors import SelectorError, label_selector_from

ALL = "*"


class Attributes(msgspec.Struct, frozen=True):
    """Attributes of a request. A resource request has ``resource``; any other has only ``verb`` and ``path``."""

    verb: str
    group: str = ""
    resource: str = ""
    subresource: str = ""
    namespace: str = ""
    name: str = ""
    path: str = ""

    @property
    def full_resource(self) -> str:
        """The resource as rules name it: ``pods/log``."""
        return f"{self.resource}/{self.subresource}" if self.subresource else self.resource


@dataclass(frozen=True, slots=True)
class Rule:
    """rbac.authorization.k8s.io PolicyRule."""

    verbs: tuple[str, ...] = ()
    api_groups: tuple[str, ...] = ()
    resources: tuple[str, ...] = ()
    resource_names: tuple[str, ...] = ()
    non_resource_urls: tuple[str, ...] = ()

    def allows(self, asked: Attributes) -> bool:
        if not _has(self.verbs, asked.verb):
            return False
        if not asked.resource:
            return any(_url_covers(url, asked.path) for url in self.non_resource_urls)
        named = not self.resource_names or asked.name in self.resource_names
        return _has(self.api_groups, asked.group) and named and self._has_resource(asked)

    def _has_resource(self, asked: Attributes) -> bool:
        if _has(self.resources, asked.full_resource):
            return True
        return bool(asked.subresource) and f"*/{asked.subresource}" in self.resources

    def covers(self, other: Rule) -> bool:
        """Return whether this rule covers ``other``, which has one verb, group, resource and name."""
        if not all(_has(self.verbs, verb) for verb in other.verbs):
            return False
        if not all(any(_url_covers(own, url) for own in self.non_resource_urls) for url in other.non_resource_urls):
            return False
        if other.non_resource_urls:
            return True
        groups = all(_has(self.api_groups, group) for group in other.api_groups)
        resources = all(self._covers_resource(resource) for resource in other.resources)
        if not self.resource_names:
            return groups and resources
        named = bool(other.resource_names) and set(other.resource_names) <= set(self.resource_names)
        return groups and resources and named

    def _covers_resource(self, resource: str) -> bool:
        _, slash, subresource = resource.partition("/")
        return _has(self.resources, resource) or (bool(slash) and f"*/{subresource}" in self.resources)

    @property
    def combinations(self) -> int:
        """The number of rules that :meth:`broken_down` yields."""
        named = len(self.api_groups) * len(self.resources) * max(len(self.resource_names), 1)
        return (named + len(self.non_resource_urls)) * len(self.verbs)

    def broken_down(self) -> Iterator[Rule]:
        """Yield one rule per combination, so that a refusal names exactly what is missing."""
        for group in self.api_groups:
            for resource in self.resources:
                for verb in self.verbs:
                    for name in self.resource_names or ("",):
                        yield Rule((verb,), (group,), (resource,), (name,) if name else ())
        for url in self.non_resource_urls:
            for verb in self.verbs:
                yield Rule((verb,), non_resource_urls=(url,))

    def __str__(self) -> str:
        """Return the rule as refusals print it: ``{APIGroups:["apps"], Resources:["deployments"], Verbs:["get"]}``."""
        parts = (
            ("APIGroups", self.api_groups),
            ("Resources", self.resources),
            ("NonResourceURLs", self.non_resource_urls),
            ("ResourceNames", self.resource_names),
            ("Verbs", self.verbs),
        )
        return "{" + ", ".join(f"{label}:{go_quoted(values)}" for label, values in parts if values) + "}"

    def to_obj(self) -> Obj:
        fields = (
            ("verbs", self.verbs),
            ("apiGroups", self.api_groups),
            ("resources", self.resources),
            ("resourceNames", self.resource_names),
            ("nonResourceURLs", self.non_resource_urls),
        )
        return {key: list(values) for key, values in fields if values}


def rules_of(role: Obj) -> tuple[Rule, ...]:
    """Return the rules of a Role or ClusterRole; fields that are not lists of strings count as empty."""
    rules = role.get("rules")
    return tuple(_rule(rule) for rule in rules if isinstance(rule, dict)) if isinstance(rules, list) else ()


def _rule(rule: Obj) -> Rule:
    def strings(field: str) -> tuple[str, ...]:
        value: Any = rule.get(field)
        return tuple(item for item in value if isinstance(item, str)) if isinstance(value, list) else ()

    return Rule(
        verbs=strings("verbs"),
        api_groups=strings("apiGroups"),
        resources=strings("resources"),
        resource_names=strings("resourceNames"),
        non_resource_urls=strings("nonResourceURLs"),
    )


def missing_rules(held: Iterable[Rule], wanted: Iterable[Rule]) -> tuple[Rule, ...]:
    """Return the part of ``wanted`` that ``held`` does not cover, compacted and sorted; empty if all is covered."""
    own = tuple(held)
    left = [rule for rule in wanted if not any(_covers_whole(o, rule) for o in own)]
    if sum(rule.combinations for rule in left) > MAX_COMBINATIONS:
        # Listing each missing combination would exhaust memory. No single held rule covers these rules, so return them
        # as given.
        return tuple(sorted(dict.fromkeys(left), key=str))
    missing = [part for rule in left for part in rule.broken_down() if not any(o.covers(part) for o in own)]
    return tuple(sorted(dict.fromkeys(compact(missing)), key=str))


MAX_COMBINATIONS = 20_000
"""Limit of the combinations of group, resource, verb and name that are compared one by one."""


def _covers_whole(own: Rule, other: Rule) -> bool:
    """Return whether one held rule covers another entirely, without comparing combinations."""
    if other.non_resource_urls and (other.api_groups or other.resources):
        return False
    return own.covers(other)


def compact(rules: Iterable[Rule]) -> list[Rule]:
    """Merge the verbs of rules about the same resource (and name)."""
    joined: dict[Rule, list[str]] = {}
    complex_rules: list[Rule] = []
    for rule in rules:
        simple = len(rule.api_groups) == len(rule.resources) == 1 and len(rule.resource_names) <= 1
        if simple and not rule.non_resource_urls:
            joined.setdefault(replace(rule, verbs=()), []).extend(rule.verbs)
        else:
            complex_rules.append(rule)
    return complex_rules + [replace(rule, verbs=tuple(verbs)) for rule, verbs in joined.items()]


def aggregated_rules(role: Obj, cluster_roles: Iterable[Obj]) -> list[Obj] | None:
    """Return the current rules of an aggregating ClusterRole; None if it does not aggregate.

    Per selector, the matching roles by name, each rule once (clusterrole-aggregation controller).
    """
    aggregation = role.get("aggregationRule")
    selectors = aggregation.get("clusterRoleSelectors") if isinstance(aggregation, dict) else None
    if not isinstance(selectors, list):
        return None
    ordered = sorted((r for r in cluster_roles if name_of(r) != name_of(role)), key=name_of)
    rules: list[Obj] = []
    for raw in selectors:
        try:
            selector = label_selector_from(raw)
        except SelectorError:
            continue  # The API refuses such a selector; in an old object it selects nothing.
        for source in ordered:
            if selector.matches(labels_of(source)):
                rules.extend(rule for rule in source.get("rules") or [] if rule not in rules)
    return rules


def go_quoted(values: Iterable[str]) -> str:
    """Return strings as Go's ``%q`` prints a list: ``["a" "b"]``."""
    return "[" + " ".join(json.dumps(value, ensure_ascii=False) for value in values) + "]"


def _has(values: tuple[str, ...], wanted: str) -> bool:
    return ALL in values or wanted in values


def _url_covers(rule: str, path: str) -> bool:
    return rule in (ALL, path) or (rule.endswith(ALL) and path.startswith(rule.rstrip(ALL)))
