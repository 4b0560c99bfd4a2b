"""Authorize requests with RBAC, compiled from the store's roles and bindings into an index.

The API calls it for every request, ``authn`` for impersonation, and the review kinds. A request costs a few dictionary
lookups; store events invalidate what they affect. It never writes. Order and messages follow Kubernetes'
``plugin/pkg/auth/authorizer/rbac`` and the recorded conversations.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from syncline.base.remember import MAX_REMEMBERED_CHARS
from syncline.cluster.access.rbac import ALL, Attributes, Rule, go_quoted, missing_rules, rules_of
from syncline.cluster.access.users import UserInfo
from syncline.cluster.storage.store import Event, Key, Store
from syncline.kube.errors import Forbidden
from syncline.kube.objects import Obj, dig, name_of

__all__ = ["Attributes", "Authorizer", "Decision", "forbidden"]

SUPERUSERS = "system:masters"
"""Members may do everything, regardless of roles (PrivilegedGroups authorizer)."""

CACHE_LIMIT_DECISIONS = 20_000
"""Cached decisions; when the cache is full, it is cleared, since a decision is cheap."""

ROLES = "rbac.authorization.k8s.io/roles"
CLUSTER_ROLES = "rbac.authorization.k8s.io/clusterroles"
ROLE_BINDINGS = "rbac.authorization.k8s.io/rolebindings"
CLUSTER_ROLE_BINDINGS = "rbac.authorization.k8s.io/clusterrolebindings"
_WATCHED = frozenset((ROLES, CLUSTER_ROLES, ROLE_BINDINGS, CLUSTER_ROLE_BINDINGS))


@dataclass(frozen=True, slots=True)
class Decision:
    """``reason`` is shown in reviews; a refusal has one only if a binding names a missing role."""

    allowed: bool
    reason: str = ""


ALLOWED = Decision(True)


@dataclass(frozen=True, slots=True)
class _Grant:
    """One subject of one binding. ``role`` is the role's storage key; the other fields are for the reason."""

    order: tuple[str, int]
    role: Key
    description: str


class Authorizer:
    """Reads RBAC objects from ``store`` and follows its events."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._grants: dict[str, dict[str, list[_Grant]]] = {}
        self._rules: dict[Key, tuple[Rule, ...] | None] = {}
        self._decisions: dict[tuple[str, tuple[str, ...], Attributes], Decision] = {}
        store.subscribe(self._on_event)

    def decide(self, user: UserInfo, asked: Attributes) -> Decision:
        """Return whether ``user`` may do ``asked``, with Kubernetes' reason."""
        if SUPERUSERS in user.groups:
            return ALLOWED
        key = (user.name, user.groups, asked)
        decision = self._decisions.get(key)
        if decision is None:
            decision = self._judge(user, asked)
            if len(asked.path) > MAX_REMEMBERED_CHARS or len(asked.name) > MAX_REMEMBERED_CHARS:
                return decision
            if len(self._decisions) >= CACHE_LIMIT_DECISIONS:
                self._decisions.clear()
            self._decisions[key] = decision
        return decision

    def require(self, user: UserInfo, asked: Attributes) -> None:
        """Raise :class:`Forbidden` in Kubernetes' words unless ``user`` may do it."""
        decision = self.decide(user, asked)
        if not decision.allowed:
            raise forbidden(user, asked, decision.reason)

    def rules(self, user: UserInfo, namespace: str) -> tuple[tuple[Rule, ...], str]:
        """Return every rule of ``user`` in ``namespace``, cluster-wide ones included, and the errors found."""
        held: list[Rule] = []
        errors: list[str] = []
        if SUPERUSERS in user.groups:
            held += [Rule((ALL,), (ALL,), (ALL,)), Rule((ALL,), non_resource_urls=(ALL,))]
        for grant in self._grants_of(user, namespace):
            rules = self._rules_at(grant.role)
            if rules is None:
                errors.append(_missing(grant.role))
            else:
                held.extend(rules)
        return tuple(held), _aggregate(errors)

    def escalation(self, user: UserInfo, wanted: tuple[Rule, ...], namespace: str) -> str:
        """Return why ``user`` may not grant ``wanted`` in ``namespace`` ("": cluster-wide), or "" if allowed.

        The caller first checks the verb ``escalate`` (roles) or ``bind`` (bindings), which lifts this rule.
        """
        if SUPERUSERS in user.groups:
            return ""
        held, errors = self.rules(user, namespace)
        missing = missing_rules(held, wanted)
        if not missing:
            return ""
        listed = "\n".join(str(rule) for rule in missing)
        text = (
            f"user {go_quoted([user.name])[1:-1]} (groups={go_quoted(user.groups)}) is attempting to grant RBAC "
            f"permissions not currently held:\n{listed}"
        )
        return f"{text}; resolution errors: [{errors}]" if errors else text

    def role_rules(self, role_ref: Obj, namespace: str) -> tuple[Rule, ...] | None:
        """Return the rules of a binding's roleRef in ``namespace``; None if the role does not exist."""
        return self._rules_at(_role_key(role_ref, namespace))

    # -- evaluation -----------------------------------------------------------------------------------------------

    def _judge(self, user: UserInfo, asked: Attributes) -> Decision:
        errors: list[str] = []
        for grant in self._grants_of(user, asked.namespace):
            rules = self._rules_at(grant.role)
            if rules is None:
                errors.append(_missing(grant.role))
            elif any(rule.allows(asked) for rule in rules):
                return Decision(True, f"RBAC: allowed by {grant.description}")
        return Decision(False, f"RBAC: {_aggregate(errors)}" if errors else "")

    def _grants_of(self, user: UserInfo, namespace: str) -> Iterator[_Grant]:
        """Yield the user's grants: cluster-wide bindings first, then the namespace's, by name."""
        for space in ("", namespace) if namespace else ("",):
            index = self._index(space)
            found: dict[str, _Grant] = {}
            for subject in (f"User {user.name}", *(f"Group {group}" for group in user.groups)):
                for grant in index.get(subject, ()):
                    other = found.get(grant.order[0])
                    if other is None or grant.order < other.order:
                        found[grant.order[0]] = grant
            yield from sorted(found.values(), key=lambda grant: grant.order)

    def _rules_at(self, key: Key) -> tuple[Rule, ...] | None:
        if key not in self._rules:
            stored = self._store.get(key)
            self._rules[key] = rules_of(stored.obj) if stored else None
        return self._rules[key]

    def _index(self, namespace: str) -> dict[str, list[_Grant]]:
        index = self._grants.get(namespace)
        if index is None:
            index = self._grants[namespace] = {}
            resource = ROLE_BINDINGS if namespace else CLUSTER_ROLE_BINDINGS
            for stored in self._store.list(resource, namespace):
                _add_binding(index, stored.obj, namespace)
        return index

    def _on_event(self, event: Event) -> None:
        key = event.stored.key
        if key.resource not in _WATCHED:
            return
        self._decisions.clear()
        if key.resource in (ROLES, CLUSTER_ROLES):
            self._rules.pop(key, None)
        else:
            self._grants.pop(key.namespace, None)


def _add_binding(index: dict[str, list[_Grant]], binding: Obj, namespace: str) -> None:
    role_ref = binding.get("roleRef") or {}
    kind = "RoleBinding" if namespace else "ClusterRoleBinding"
    name = f"{name_of(binding)}/{namespace}" if namespace else name_of(binding)
    role = _role_key(role_ref, namespace)
    for order, subject in enumerate(binding.get("subjects") or []):
        who, label = _subject(subject, namespace)
        if who:
            described = f'{kind} "{name}" of {role_ref.get("kind", "")} "{role_ref.get("name", "")}" to {label}'
            index.setdefault(who, []).append(_Grant((name_of(binding), order), role, described))


def _subject(subject: Obj, namespace: str) -> tuple[str, str]:
    """Return the index key of a subject ("" if it matches no user), and its name for reasons."""
    kind, name = dig(subject, "kind", default=""), dig(subject, "name", default="")
    if kind in ("User", "Group"):
        return f"{kind} {name}", f'{kind} "{name}"'
    space = dig(subject, "namespace", default="") or namespace
    if kind != "ServiceAccount" or not space:
        return "", ""
    return f"User system:serviceaccount:{space}:{name}", f'ServiceAccount "{name}/{space}"'


def _role_key(role_ref: Obj, namespace: str) -> Key:
    name = dig(role_ref, "name", default="")
    if namespace and dig(role_ref, "kind") == "Role":
        return Key(ROLES, namespace, name)
    return Key(CLUSTER_ROLES, "", name)


def _missing(role: Key) -> str:
    kind = "role" if role.resource == ROLES else "clusterrole"
    return f'{kind}.rbac.authorization.k8s.io "{role.name}" not found'


def _aggregate(errors: list[str]) -> str:
    texts = list(dict.fromkeys(errors))
    return texts[0] if len(texts) == 1 else "[" + ", ".join(texts) + "]" if texts else ""


def forbidden(user: UserInfo, asked: Attributes, reason: str = "") -> Forbidden:
    """Return ``pods is forbidden: User "x" cannot list resource "pods" in API group "" in the namespace "ns"``."""
    who = f'User "{user.name}" cannot {asked.verb}'
    tail = f": {reason}" if reason else ""
    if not asked.resource:
        return Forbidden(f'forbidden: {who} path "{asked.path}"{tail}', details={})
    where = f'in the namespace "{asked.namespace}"' if asked.namespace else "at the cluster scope"
    what = f"{asked.resource}.{asked.group}" if asked.group else asked.resource
    named = f'{what} "{asked.name}"' if asked.name else what
    parts = {"name": asked.name, "group": asked.group, "kind": asked.resource}
    return Forbidden(
        f'{named} is forbidden: {who} resource "{asked.full_resource}" in API group "{asked.group}" {where}{tail}',
        details={key: value for key, value in parts.items() if value},
    )
