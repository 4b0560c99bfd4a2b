"""Match requests to webhooks and policies: rules, selectors, equivalent resources.

Source: apiserver ``admission/plugin/webhook/predicates`` and ``admission/plugin/policy/matching``. Pure except for
namespace labels, which are looked up only for a selector.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from syncline.cluster.admission.dynamic.subject import Subject
from syncline.cluster.resources.registry import Resource
from syncline.cluster.storage.store import Key, Store
from syncline.kube.errors import ApiError, InternalError, not_found
from syncline.kube.objects import GVK, Obj, labels_of
from syncline.kube.selectors import EVERYTHING, Selector, SelectorError, label_selector_from

_EXEMPT = frozenset(
    f"admissionregistration.k8s.io/{plural}"
    for plural in (
        "validatingwebhookconfigurations",
        "mutatingwebhookconfigurations",
        "validatingadmissionpolicies",
        "validatingadmissionpolicybindings",
        "mutatingadmissionpolicies",
        "mutatingadmissionpolicybindings",
    )
)


def exempt(subject: Subject) -> bool:
    """Return whether the resource configures admission, which never judges it, so that mistakes can be undone."""
    return subject.resource.storage in _EXEMPT


@dataclass(frozen=True, slots=True)
class Rule:
    operations: frozenset[str]
    groups: frozenset[str]
    versions: frozenset[str]
    resources: tuple[tuple[str, str], ...]
    scope: str = "*"
    names: frozenset[str] = frozenset()

    def covers(self, subject: Subject, resource: Resource) -> bool:
        """Match all but names; ``resource`` is the requested one or an equivalent."""
        info = resource.info
        return (
            self._scoped(subject)
            and _has(self.operations, subject.operation)
            and _has(self.groups, info.group)
            and _has(self.versions, info.version)
            and any(
                plural in ("*", info.plural) and sub in ("*", subject.subresource) for plural, sub in self.resources
            )
        )

    def _scoped(self, subject: Subject) -> bool:
        namespaced = bool(subject.namespace) and not subject.is_namespace
        return self.scope == "*" or namespaced is (self.scope == "Namespaced")


def _has(items: frozenset[str], asked: str) -> bool:
    return "*" in items or asked in items


def parse_rules(rules: Any) -> tuple[Rule, ...]:
    return tuple(
        Rule(
            frozenset(rule.get("operations") or ()),
            frozenset(rule.get("apiGroups") or ()),
            frozenset(rule.get("apiVersions") or ()),
            tuple((name, sub) for name, _, sub in (str(one).partition("/") for one in rule.get("resources") or ())),
            str(rule.get("scope") or "*"),
            frozenset(rule.get("resourceNames") or ()),
        )
        for rule in rules or ()
    )


def parse_selector(selector: Obj | None) -> Selector | SelectorError:
    """Return the selector; a malformed one is an error for the requests that match otherwise."""
    try:
        return label_selector_from(selector) if selector is not None else EVERYTHING
    except SelectorError as error:
        return error


@dataclass(frozen=True, slots=True)
class World:
    """What matching may read: the store, the resources, and equivalent versions."""

    store: Store
    equivalents: Callable[[Resource], Sequence[Resource]]
    kind: Callable[[GVK], Resource | None]
    """The resource of a kind."""

    def namespace(self, name: str) -> Obj:
        """Return the namespace; raise NotFound."""
        stored = self.store.get(Key("/namespaces", "", name))
        if stored is None:
            raise not_found("namespaces", name)
        return stored.obj


@dataclass(frozen=True, slots=True)
class Match:
    """The version in which the request is matched."""

    resource: Resource


@dataclass(frozen=True, slots=True)
class Scope:
    """The requests that a webhook, policy or binding selects. ``rules`` None: every resource."""

    rules: tuple[Rule, ...] | None
    excluded: tuple[Rule, ...] = ()
    exact: bool = False
    namespaces: Selector | SelectorError = EVERYTHING
    objects: Selector | SelectorError = EVERYTHING

    def match(self, subject: Subject, obj: Obj | None, old: Obj | None, world: World) -> Match | None:
        """Return the match, or None; raise a selector's error only if everything else matches."""
        chosen, wrong = self._namespace(subject, obj, world)
        if not chosen and wrong is None:
            return None
        if not isinstance(self.objects, SelectorError) and self.objects.requirements:
            selector = self.objects
            if not any(one is not None and selector.matches(labels_of(one)) for one in (obj, old)):
                return None
        if self.excluded and self._ruled(self.excluded, subject, world) is not None:
            return None
        found = Match(subject.resource) if self.rules is None else self._ruled(self.rules, subject, world)
        if found is None:
            return None
        if wrong is not None:
            raise wrong
        if isinstance(self.objects, SelectorError):
            raise InternalError(f"Internal error occurred: {self.objects}")
        return found

    def _ruled(self, rules: Iterable[Rule], subject: Subject, world: World) -> Match | None:
        for rule in rules:
            if rule.covers(subject, subject.resource) and _named(rule, subject):
                return Match(subject.resource)
        if self.exact:
            return None
        others = world.equivalents(subject.resource)
        for rule in rules:
            for other in others:
                if rule.covers(subject, other) and _named(rule, subject):
                    return Match(other)
        return None

    def _namespace(self, subject: Subject, obj: Obj | None, world: World) -> tuple[bool, ApiError | None]:
        """Match the namespace selector; cluster-scoped objects other than namespaces always match."""
        if not subject.namespace and not subject.is_namespace:
            return True, None
        selector = self.namespaces
        if isinstance(selector, SelectorError):
            return False, InternalError(f"Internal error occurred: {selector}")
        if not selector.requirements:
            return True, None
        if subject.is_namespace and not subject.subresource and subject.operation in ("CREATE", "UPDATE"):
            return selector.matches(labels_of(obj or {})), None
        try:
            return selector.matches(labels_of(world.namespace(subject.namespace))), None
        except ApiError as error:
            return False, error


def _named(rule: Rule, subject: Subject) -> bool:
    return not rule.names or subject.name in rule.names
