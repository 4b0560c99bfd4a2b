"""Nobody grants more than they hold (RBAC escalation prevention in the role and binding registries)."""

from __future__ import annotations

from syncline.cluster.admission.attempt import Attempt, forbid
from syncline.cluster.authz import Authorizer
from syncline.cluster.rbac import Attributes, Rule, rules_of
from syncline.kube.errors import not_found
from syncline.kube.objects import Obj

__all__ = ["check"]

GROUP = "rbac.authorization.k8s.io"
_ROLES = frozenset({f"{GROUP}/roles", f"{GROUP}/clusterroles"})
_BINDINGS = frozenset({f"{GROUP}/rolebindings", f"{GROUP}/clusterrolebindings"})


def check(authorizer: Authorizer, attempt: Attempt, new: Obj, old: Obj | None) -> None:
    """Raises Forbidden with the rules that are missing."""
    storage = attempt.resource.storage
    if storage in _ROLES:
        if old is not None and old.get("rules") == new.get("rules"):
            return
        if old is not None and old.get("aggregationRule") == new.get("aggregationRule") is not None:
            return
        _require(authorizer, attempt, rules_of(new), "escalate", new)
        if new.get("aggregationRule"):
            everything = (Rule(("*",), ("*",), ("*",)), Rule(("*",), non_resource_urls=("*",)))
            _require(authorizer, attempt, everything, "escalate", new)
    elif storage in _BINDINGS:
        if old is not None and old.get("roleRef") == new.get("roleRef") and old.get("subjects") == new.get("subjects"):
            return
        _check_binding(authorizer, attempt, new)


def _check_binding(authorizer: Authorizer, attempt: Attempt, binding: Obj) -> None:
    role_ref = binding.get("roleRef") or {}
    plural = "clusterroles" if role_ref.get("kind") == "ClusterRole" else "roles"
    name = str(role_ref.get("name", ""))
    asked = Attributes("bind", GROUP, plural, "", attempt.namespace, name)
    if authorizer.decide(attempt.user, asked).allowed:
        return
    rules = authorizer.role_rules(role_ref, attempt.namespace)
    if rules is None:
        raise not_found(plural, name, GROUP)
    _require(authorizer, attempt, rules, "", binding)


def _require(authorizer: Authorizer, attempt: Attempt, rules: tuple[Rule, ...], lifting_verb: str, obj: Obj) -> None:
    info = attempt.resource.info
    if lifting_verb:
        asked = Attributes(lifting_verb, info.group, info.plural, "", attempt.namespace, attempt.name)
        if authorizer.decide(attempt.user, asked).allowed:
            return
    why = authorizer.escalation(attempt.user, rules, attempt.namespace)
    if why:
        raise forbid(attempt, why)
