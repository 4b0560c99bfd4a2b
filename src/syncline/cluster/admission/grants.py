"""Prevent RBAC escalation: users grant at most the rights they have (role and binding registries)."""

from __future__ import annotations

from syncline.cluster.access.authz import Authorizer
from syncline.cluster.access.rbac import Attributes, Rule, rules_of
from syncline.cluster.admission.attempt import Attempt, forbid
from syncline.kube.errors import not_found
from syncline.kube.objects import Obj, meta

GROUP = "rbac.authorization.k8s.io"
_ROLES = frozenset({f"{GROUP}/roles", f"{GROUP}/clusterroles"})
_BINDINGS = frozenset({f"{GROUP}/rolebindings", f"{GROUP}/clusterrolebindings"})


def check(authorizer: Authorizer, attempt: Attempt, new: Obj, old: Obj | None) -> None:
    """Raise Forbidden with the missing rules."""
    storage = attempt.resource.storage
    if storage not in _ROLES and storage not in _BINDINGS:
        return
    if old is not None and _same_but_owners(new, old):
        return
    if storage in _ROLES:
        _check_role(authorizer, attempt, new, old)
    else:
        _check_binding(authorizer, attempt, new)


def _same_but_owners(new: Obj, old: Obj) -> bool:
    """Return whether only owners and finalizers changed, as by the garbage collector (``IsOnlyMutatingGCFields``)."""

    def rest(obj: Obj) -> Obj:
        left = {k: v for k, v in meta(obj).items() if k not in ("ownerReferences", "finalizers", "managedFields")}
        return {**obj, "metadata": left}

    changed = any(meta(new).get(key) != meta(old).get(key) for key in ("ownerReferences", "finalizers"))
    return changed and rest(new) == rest(old)


def _check_role(authorizer: Authorizer, attempt: Attempt, new: Obj, old: Obj | None) -> None:
    info = attempt.resource.info
    asked = Attributes("escalate", info.group, info.plural, "", attempt.namespace, attempt.name)
    if authorizer.decide(attempt.user, asked).allowed:
        return
    _require(authorizer, attempt, rules_of(new))
    if new.get("aggregationRule") or (old or {}).get("aggregationRule"):
        everything = (Rule(("*",), ("*",), ("*",)), Rule(("*",), non_resource_urls=("*",)))
        if authorizer.escalation(attempt.user, everything, attempt.namespace):
            raise forbid(attempt, "must have cluster-admin privileges to use the aggregationRule")


def _check_binding(authorizer: Authorizer, attempt: Attempt, binding: Obj) -> None:
    role_ref = binding.get("roleRef") or {}
    plural = "clusterroles" if role_ref.get("kind") == "ClusterRole" else "roles"
    name = str(role_ref.get("name", ""))
    asked = Attributes("bind", GROUP, plural, "", attempt.namespace, name)
    if authorizer.decide(attempt.user, asked).allowed:
        return
    rules = authorizer.role_rules(role_ref, attempt.namespace)
    if rules is None:
        raise not_found(attempt.resource.info.plural, name, GROUP)
    _require(authorizer, attempt, rules)


def _require(authorizer: Authorizer, attempt: Attempt, rules: tuple[Rule, ...]) -> None:
    why = authorizer.escalation(attempt.user, rules, attempt.namespace)
    if why:
        raise forbid(attempt, why)
