"""Whether a service account has the rights that an operator asks for, judged from Roles and bindings alone."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product

from syncline.kube.objects import Obj, dig, name_of, namespace_of

Atom = tuple[str, str, str, str, str]
"""Verb, API group, resource, name of the object, URL: what one right is about; "" where it is about none."""


@dataclass(frozen=True, slots=True)
class Grants:
    """What the cluster grants: by kind the objects of RBAC."""

    cluster_roles: Mapping[str, Obj]
    cluster_bindings: Sequence[Obj] = ()
    roles: Mapping[tuple[str, str], Obj] = field(default_factory=dict)
    """By namespace and name."""
    bindings: Sequence[Obj] = ()

    def satisfied(self, account: str, home: str, namespace: str, rule: Obj) -> bool:
        """Return whether the account ``home/account`` has all that ``rule`` names in ``namespace`` ("": everywhere)."""
        held = [held for role in self._roles_of(account, home, namespace) for held in role.get("rules") or ()]
        return all(any(_covers(one, atom) for one in held) for atom in _atoms(rule))

    def _roles_of(self, account: str, home: str, namespace: str) -> Iterator[Obj]:
        for binding in self.cluster_bindings:
            if _names(binding, account, home):
                yield self.cluster_roles.get(str(dig(binding, "roleRef", "name")), {})
        if not namespace:
            return
        for binding in self.bindings:
            if namespace_of(binding) != namespace or not _names(binding, account, home):
                continue
            reference = binding.get("roleRef") or {}
            if reference.get("kind") == "ClusterRole":
                yield self.cluster_roles.get(str(reference.get("name")), {})
            else:
                yield self.roles.get((namespace, str(reference.get("name"))), {})


NO_GRANTS = Grants({}, (), {}, ())


def _names(binding: Obj, account: str, home: str) -> bool:
    groups = {"system:serviceaccounts", f"system:serviceaccounts:{home}", "system:authenticated"}
    user = f"system:serviceaccount:{home}:{account}"
    for subject in binding.get("subjects") or ():
        kind, name = subject.get("kind"), subject.get("name")
        if kind == "ServiceAccount" and name == account and subject.get("namespace", namespace_of(binding)) == home:
            return True
        if (kind == "Group" and name in groups) or (kind == "User" and name == user):
            return True
    return False


def _atoms(rule: Obj) -> Iterator[Atom]:
    verbs = rule.get("verbs") or ()
    for verb, url in product(verbs, rule.get("nonResourceURLs") or ()):
        yield verb, "", "", "", url
    groups, resources = rule.get("apiGroups") or (), rule.get("resources") or ()
    for verb, group, resource, name in product(verbs, groups, resources, rule.get("resourceNames") or ("",)):
        yield verb, group, resource, name, ""


def _has(values: Iterable[str] | None, wanted: str) -> bool:
    found = values or ()
    return "*" in found or wanted in found


def _covers(rule: Obj, atom: Atom) -> bool:
    verb, group, resource, name, url = atom
    if not _has(rule.get("verbs"), verb):
        return False
    if url:
        urls = rule.get("nonResourceURLs") or ()
        return any(one in ("*", url) or (one.endswith("*") and url.startswith(one[:-1])) for one in urls)
    names = rule.get("resourceNames") or ()
    below = f"*/{resource.partition('/')[2]}" if "/" in resource else resource
    within = _has(rule.get("resources"), resource) or below in (rule.get("resources") or ())
    return _has(rule.get("apiGroups"), group) and within and (not names or (name != "" and name in names))


def grants_of(objects: Iterable[Obj]) -> Grants:
    """Return the grants that these objects of RBAC make."""
    found: dict[str, list[Obj]] = {}
    for obj in objects:
        found.setdefault(str(obj.get("kind")), []).append(obj)
    return Grants(
        {name_of(one): one for one in found.get("ClusterRole", ())},
        tuple(found.get("ClusterRoleBinding", ())),
        {(namespace_of(one), name_of(one)): one for one in found.get("Role", ())},
        tuple(found.get("RoleBinding", ())),
    )
