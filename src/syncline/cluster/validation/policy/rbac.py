"""Roles and bindings: required parts of a rule, and a binding's immutable roleRef.

The API calls it through :func:`syncline.cluster.validation.strategy.strategy_for`. Admission checks whether the writer
may grant the rights. Source: Kubernetes ``pkg/apis/rbac/validation``.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from syncline.cluster.validation.engine import names
from syncline.cluster.validation.engine import rules as r
from syncline.cluster.validation.engine.base import Kind
from syncline.cluster.validation.engine.causes import invalid, unsupported
from syncline.cluster.validation.engine.fields import label_selector_causes
from syncline.cluster.validation.engine.metadata import metadata_update_causes
from syncline.kube.errors import FieldCause
from syncline.kube.objects import Obj
from syncline.kube.schema.internal import RBAC, internal

GROUP = "rbac.authorization.k8s.io"


def _policy_rule(*of_urls: r.Rule) -> r.Rule:
    return r.each(
        "rules",
        r.need("verbs", why="verbs must contain at least one value"),
        r.when(
            r.given("nonResourceURLs"),
            *of_urls,
            r.refuse(
                lambda rule: rule.get("apiGroups") or rule.get("resources") or rule.get("resourceNames"),
                "nonResourceURLs",
                "rules cannot apply to both regular resources and non-resource URLs",
            ),
            otherwise=r.every(
                r.need("apiGroups", why="resource rules must supply at least one api group"),
                r.need("resources", why="resource rules must supply at least one resource"),
            ),
        ),
    )


def _selector(selector: Obj, path: str) -> list[FieldCause]:
    causes = label_selector_causes(selector, path)
    whole = FieldCause("FieldValueInvalid", "Invalid value: null: invalid label selector.", path)
    return [*causes, whole] if causes else []


class RoleKind(Kind):
    revalidates = False
    name_check = names.path_segment
    rules = _policy_rule(
        r.refuse(r.given("nonResourceURLs"), "nonResourceURLs", "namespaced rules cannot apply to non-resource URLs")
    )

    def update_causes(self, new: Obj, old: Obj) -> list[FieldCause]:
        return self.whole_causes(new) + metadata_update_causes(new, old)


class ClusterRoleKind(RoleKind):
    namespaced = False
    rules = r.every(
        _policy_rule(),
        r.field(
            "aggregationRule",
            r.need(
                "clusterRoleSelectors", why="at least one clusterRoleSelector required if aggregationRule is non-nil"
            ),
            r.each("clusterRoleSelectors", _selector),
        ),
    )


def _subject(subject: Obj, path: str) -> Iterator[FieldCause]:
    yield from r.needs("name")(subject, path)
    match subject.get("kind"):
        case "ServiceAccount":
            yield from r.filled("name", r.subdomain)(subject, path)
            yield from r.filled("apiGroup", r.choice(""))(subject, path)
        case "User" | "Group":
            yield from r.text("apiGroup", r.choice(GROUP))(subject, path)
        case kind:
            yield unsupported(f"{path}.kind", kind or "", ("ServiceAccount", "User", "Group"))


def _binding(*roles: str, subject: r.Rule = r.nothing) -> r.Table:
    return r.every(
        r.part(
            "roleRef",
            r.text("apiGroup", r.choice(GROUP)),
            r.text("kind", r.choice(*roles)),
            r.need("name", r.segment),
        ),
        r.each("subjects", _subject, subject),
    )


class BindingKind(Kind):
    revalidates = False
    name_check = names.path_segment
    rules = _binding("Role", "ClusterRole")

    def update_causes(self, new: Obj, old: Obj) -> list[FieldCause]:
        causes = self.whole_causes(new) + metadata_update_causes(new, old)
        if _reference(new) != _reference(old):
            causes.append(invalid("roleRef", internal(f"{RBAC}.RoleRef", new.get("roleRef")), "cannot change roleRef"))
        return causes


class ClusterBindingKind(BindingKind):
    namespaced = False
    rules = _binding(
        "ClusterRole",
        subject=r.demand(
            lambda subject: subject.get("kind") == "ServiceAccount" and not subject.get("namespace"), "namespace"
        ),
    )


def _reference(obj: Obj) -> tuple[Any, ...]:
    reference = obj.get("roleRef") or {}
    return tuple(reference.get(key) for key in ("apiGroup", "kind", "name"))
