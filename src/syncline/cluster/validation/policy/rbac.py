"""Roles and bindings: what a rule needs, and a binding's unchangeable role.

Called by the API through :func:`syncline.cluster.validation.strategy.strategy_for`. Whether the writer may grant what
he writes is admission's question. Source: Kubernetes ``pkg/apis/rbac/validation``.
"""

from __future__ import annotations

from typing import Any, ClassVar

from syncline.cluster.validation.engine import names
from syncline.cluster.validation.engine.base import Kind
from syncline.cluster.validation.engine.causes import invalid, required, unsupported
from syncline.cluster.validation.engine.fields import each, label_selector_causes
from syncline.cluster.validation.engine.metadata import NameCheck, metadata_update_causes
from syncline.kube.errors import FieldCause
from syncline.kube.objects import Obj
from syncline.kube.schema.internal import RBAC, internal

__all__ = ["BindingKind", "ClusterBindingKind", "ClusterRoleKind", "RoleKind"]

GROUP = "rbac.authorization.k8s.io"


class RoleKind(Kind):
    revalidates = False
    name_check: ClassVar[NameCheck] = staticmethod(names.path_segment)

    def content_causes(self, obj: Obj) -> list[FieldCause]:
        causes: list[FieldCause] = []
        for where, rule in each(obj, "rules", ""):
            causes += _rule_causes(rule, where.removeprefix("."), namespaced=self.namespaced)
        return causes

    def update_causes(self, new: Obj, old: Obj) -> list[FieldCause]:
        return self.whole_causes(new) + metadata_update_causes(new, old)


class ClusterRoleKind(RoleKind):
    namespaced = False

    def content_causes(self, obj: Obj) -> list[FieldCause]:
        causes = super().content_causes(obj)
        aggregation = obj.get("aggregationRule")
        if isinstance(aggregation, dict):
            path = "aggregationRule"
            if not aggregation.get("clusterRoleSelectors"):
                why = "at least one clusterRoleSelector required if aggregationRule is non-nil"
                causes.append(required(f"{path}.clusterRoleSelectors", why))
            for where, selector in each(aggregation, "clusterRoleSelectors", path):
                problems = label_selector_causes(selector, where)
                causes += problems
                if problems:
                    causes.append(
                        FieldCause("FieldValueInvalid", "Invalid value: null: invalid label selector.", where)
                    )
        return causes


def _rule_causes(rule: Obj, where: str, *, namespaced: bool) -> list[FieldCause]:
    causes: list[FieldCause] = []
    if not rule.get("verbs"):
        causes.append(required(f"{where}.verbs", "verbs must contain at least one value"))
    urls = rule.get("nonResourceURLs")
    if urls:
        if namespaced:
            why = "namespaced rules cannot apply to non-resource URLs"
            causes.append(invalid(f"{where}.nonResourceURLs", urls, why))
        if rule.get("apiGroups") or rule.get("resources") or rule.get("resourceNames"):
            why = "rules cannot apply to both regular resources and non-resource URLs"
            causes.append(invalid(f"{where}.nonResourceURLs", urls, why))
        return causes
    if not rule.get("apiGroups"):
        causes.append(required(f"{where}.apiGroups", "resource rules must supply at least one api group"))
    if not rule.get("resources"):
        causes.append(required(f"{where}.resources", "resource rules must supply at least one resource"))
    return causes


class BindingKind(Kind):
    revalidates = False
    name_check: ClassVar[NameCheck] = staticmethod(names.path_segment)
    roles: ClassVar[tuple[str, ...]] = ("Role", "ClusterRole")

    def content_causes(self, obj: Obj) -> list[FieldCause]:
        reference = obj.get("roleRef") or {}
        causes: list[FieldCause] = []
        if reference.get("apiGroup") != GROUP:
            causes.append(unsupported("roleRef.apiGroup", reference.get("apiGroup", ""), (GROUP,)))
        kind, name = reference.get("kind", ""), reference.get("name", "")
        if kind not in self.roles:
            causes.append(unsupported("roleRef.kind", kind, self.roles))
        if not name:
            causes.append(required("roleRef.name"))
        else:
            causes += [invalid("roleRef.name", name, problem) for problem in names.path_segment(name)]
        for where, subject in each(obj, "subjects", ""):
            causes += _subject_causes(subject, where.removeprefix("."), namespaced=self.namespaced)
        return causes

    def update_causes(self, new: Obj, old: Obj) -> list[FieldCause]:
        causes = self.whole_causes(new) + metadata_update_causes(new, old)
        if _reference(new) != _reference(old):
            causes.append(invalid("roleRef", internal(f"{RBAC}.RoleRef", new.get("roleRef")), "cannot change roleRef"))
        return causes


class ClusterBindingKind(BindingKind):
    namespaced = False
    roles = ("ClusterRole",)


def _reference(obj: Obj) -> tuple[Any, ...]:
    reference = obj.get("roleRef") or {}
    return tuple(reference.get(key) for key in ("apiGroup", "kind", "name"))


def _subject_causes(subject: Obj, where: str, *, namespaced: bool) -> list[FieldCause]:
    causes: list[FieldCause] = []
    name, group = subject.get("name") or "", subject.get("apiGroup") or ""
    if not name:
        causes.append(required(f"{where}.name"))
    match subject.get("kind"):
        case "ServiceAccount":
            if name:
                causes += [invalid(f"{where}.name", name, problem) for problem in names.dns_subdomain(name)]
            if group:
                causes.append(unsupported(f"{where}.apiGroup", group, ("",)))
            if not namespaced and not subject.get("namespace"):
                causes.append(required(f"{where}.namespace"))
        case "User" | "Group":
            if group != GROUP:
                causes.append(unsupported(f"{where}.apiGroup", group, (GROUP,)))
        case kind:
            causes.append(unsupported(f"{where}.kind", kind or "", ("ServiceAccount", "User", "Group")))
    return causes
