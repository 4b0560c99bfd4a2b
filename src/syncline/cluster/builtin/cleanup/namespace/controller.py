"""Define the namespace controller, which watches every namespaced kind."""

from __future__ import annotations

from collections.abc import Iterable

from syncline.cluster.builtin.cleanup.namespace import plan as planning
from syncline.cluster.builtin.cleanup.namespace.plan import NAMESPACE
from syncline.control.cache import Snapshot
from syncline.control.controller import METADATA, Controller, Watch
from syncline.kube.objects import Obj, ObjectRef, is_terminating, namespace_of


def _ending_namespace(obj: Obj, cache: Snapshot) -> Iterable[ObjectRef]:
    """Return the namespace of a changed object if it is terminating."""
    ref = ObjectRef("", NAMESPACE.kind, "", namespace_of(obj))
    namespace = cache.get(ref) if ref.name else None
    return (ref,) if namespace is not None and is_terminating(namespace) else ()


NAMESPACE_CONTROLLER = Controller(
    name="namespace",
    kind=NAMESPACE,
    watches=(Watch(None, _ending_namespace, reads=METADATA),),
    observe=planning.observe,
    plan=planning.plan,
)
"""Empties and finalizes terminating namespaces."""
