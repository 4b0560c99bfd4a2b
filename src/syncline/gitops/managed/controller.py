"""The controller that keeps :mod:`~syncline.gitops.managed.plan`'s Role and RoleBinding in each managed namespace.

The embedded cluster runs it with ``--rights managed-by``; elsewhere the GitOps operator does, or an administrator.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from syncline.apply.managed import ACCOUNT, manager_of
from syncline.control.cache import Snapshot
from syncline.control.controller import Controller, Watch, differ
from syncline.gitops.managed.plan import ADMIN, BINDINGS, RBAC, ROLES, ManagedNamespace, plan_rights
from syncline.kube.objects import GroupKind, Obj, ObjectRef, is_terminating, name_of, namespace_of, ref_of

NAMESPACES: Final = GroupKind("", "Namespace")
CLUSTER_ROLES: Final = GroupKind(RBAC, "ClusterRole")


def managed_namespaces(control: str) -> Controller[ManagedNamespace]:
    """Return the controller. ``control``: the namespace of the instance, which it always manages."""

    def observe(cache: Snapshot, ref: ObjectRef) -> ManagedNamespace | None:
        namespace = cache.get(ref)
        if namespace is None or not all(map(cache.has_synced, (ROLES, BINDINGS, CLUSTER_ROLES))):
            return None
        role, binding = (cache.get(ObjectRef(*kind, ref.name, ACCOUNT)) for kind in (ROLES, BINDINGS))
        return ManagedNamespace(namespace, control, cache.get(ObjectRef(*CLUSTER_ROLES, "", ADMIN)), role, binding)

    def of_rights(obj: Obj, _cache: Snapshot) -> Iterable[ObjectRef]:
        if name_of(obj) == ACCOUNT:
            yield ObjectRef(*NAMESPACES, "", namespace_of(obj))

    def of_admin(obj: Obj, cache: Snapshot) -> Iterable[ObjectRef]:
        if name_of(obj) == ADMIN:
            yield from (ref_of(one) for one in cache.objects(NAMESPACES) if control in (name_of(one), manager_of(one)))

    return Controller(
        name="managed-namespace",
        kind=NAMESPACES,
        predicate=differ(manager_of, is_terminating),
        watches=(
            Watch(ROLES, of_rights),
            Watch(BINDINGS, of_rights),
            Watch(CLUSTER_ROLES, of_admin, differ(lambda role: role.get("rules"))),
        ),
        observe=observe,
        plan=plan_rights,
    )
