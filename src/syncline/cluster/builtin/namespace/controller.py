"""Binds the namespace planner to everything that can lie in a namespace."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from syncline.cluster.builtin.namespace import plan as planning
from syncline.cluster.builtin.namespace.plan import NAMESPACE, Observed
from syncline.control.cache import Snapshot
from syncline.control.controller import Watch
from syncline.control.plan import Plan
from syncline.kube.objects import GroupKind, Obj, ObjectRef, is_terminating, namespace_of

__all__ = ["NamespaceController"]


def _ending_namespace(obj: Obj, cache: Snapshot) -> Iterable[ObjectRef]:
    """The namespace of a changed object, if it is ending: others need no look."""
    ref = ObjectRef("", NAMESPACE.kind, "", namespace_of(obj))
    namespace = cache.get(ref) if ref.name else None
    return (ref,) if namespace is not None and is_terminating(namespace) else ()


class NamespaceController:
    """Empties and finalizes namespaces that are being deleted."""

    name = "namespace"
    kind = NAMESPACE
    watches: tuple[Watch, ...] = (Watch(None, _ending_namespace),)
    reads: tuple[GroupKind, ...] = ()

    def observe(self, cache: Snapshot, ref: ObjectRef) -> Observed | None:
        return planning.observe(cache, ref)

    def plan(self, seen: Observed, now: datetime) -> Plan:
        return planning.plan(seen, now)
