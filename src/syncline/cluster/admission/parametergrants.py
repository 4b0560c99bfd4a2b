"""Require that users can read the parameters that their admission policies and bindings refer to.

The chain calls it for valid admission policies and bindings. Source: the authorizers beside the strategies in
Kubernetes' ``pkg/registry/admissionregistration``.
"""

from __future__ import annotations

from collections.abc import Callable

from syncline.cluster.access.authz import Authorizer
from syncline.cluster.access.rbac import Attributes
from syncline.cluster.admission.attempt import Attempt
from syncline.cluster.resources.registry import Resource
from syncline.cluster.storage.store import Key, Store
from syncline.kube.errors import FieldCause, invalid
from syncline.kube.objects import GVK, Obj, dig, gvk_of

GROUP = "admissionregistration.k8s.io"
_POLICIES = frozenset((f"{GROUP}/validatingadmissionpolicies", f"{GROUP}/mutatingadmissionpolicies"))
_BINDINGS = {
    f"{GROUP}/validatingadmissionpolicybindings": f"{GROUP}/validatingadmissionpolicies",
    f"{GROUP}/mutatingadmissionpolicybindings": f"{GROUP}/mutatingadmissionpolicies",
}
ALL = "*"
Kinds = Callable[[GVK], Resource | None]


def check(store: Store, authorizer: Authorizer, kinds: Kinds, attempt: Attempt, new: Obj, old: Obj | None) -> None:
    """Raise Invalid with the rights that the user lacks."""
    storage = attempt.resource.storage
    if storage in _POLICIES:
        _check_policy(authorizer, kinds, attempt, new, old)
    elif storage in _BINDINGS:
        _check_binding(store, authorizer, kinds, attempt, new, old)


def _check_policy(authorizer: Authorizer, kinds: Kinds, attempt: Attempt, new: Obj, old: Obj | None) -> None:
    kind = dig(new, "spec", "paramKind")
    if not kind or (old is not None and dig(old, "spec", "paramKind") == kind):
        return
    group, plural = _resource(kinds, kind)
    if authorizer.decide(attempt.user, Attributes("get", group, plural, "", ALL, ALL)).allowed:
        return
    named = f"(kind={kind.get('kind')}, apiVersion={kind.get('apiVersion')})"
    why = f'user "{attempt.user.name}" must have "get" permission on all objects of the referenced paramKind {named}'
    raise _refused(attempt, "spec.paramKind", why)


def _check_binding(
    store: Store, authorizer: Authorizer, kinds: Kinds, attempt: Attempt, new: Obj, old: Obj | None
) -> None:
    spec: Obj = new.get("spec") or {}
    ref = spec.get("paramRef")
    before: Obj = (old or {}).get("spec") or {}
    if not ref or (before.get("paramRef") == ref and before.get("policyName") == spec.get("policyName")):
        return
    policy = store.get(Key(_BINDINGS[attempt.resource.storage], "", str(spec.get("policyName") or "")))
    kind = dig(policy.obj, "spec", "paramKind") if policy is not None else None
    group, plural = _resource(kinds, kind) if kind else (ALL, ALL)
    name, verb = str(ref.get("name") or ""), "get" if ref.get("name") else "list"
    asked = Attributes(verb, group, plural, "", str(ref.get("namespace") or ""), name)
    if authorizer.decide(attempt.user, asked).allowed:
        return
    user = f'user "{attempt.user.name}" does not have "{verb}" permission'
    why = f"{user} on the object referenced by paramRef"
    if policy is None:
        what = f"unable to get policy {spec.get('policyName')} to determine minimum required permissions"
        why = f"{what} and {user} for all groups, versions and resources"
    raise _refused(attempt, "spec.paramRef", why)


def _resource(kinds: Kinds, kind: Obj) -> tuple[str, str]:
    gvk = gvk_of(kind)
    found = kinds(gvk)
    return gvk.group, found.info.plural if found is not None else ALL


def _refused(attempt: Attempt, field: str, why: str) -> Exception:
    info = attempt.resource.info
    cause = FieldCause("FieldValueForbidden", f"Forbidden: {why}", field)
    return invalid(info.kind, attempt.name or attempt.called, [cause], info.group)
