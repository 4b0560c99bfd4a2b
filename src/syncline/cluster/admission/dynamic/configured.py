"""The webhooks and policies that are in force, ready to be matched.

Built once over a store and kept by its events; ``active`` is what a write looks at first, so that a cluster without any
pays one attribute for it. Configurations count in the order of their names.
"""

from __future__ import annotations

from collections.abc import Sequence

from syncline.cluster.admission.dynamic.hooks import Hook, hooks_of
from syncline.cluster.store import Event, Store
from syncline.kube.objects import Obj

__all__ = ["GROUP", "Configured"]

GROUP = "admissionregistration.k8s.io"
MUTATING, VALIDATING = f"{GROUP}/mutatingwebhookconfigurations", f"{GROUP}/validatingwebhookconfigurations"
_WATCHED = frozenset((MUTATING, VALIDATING))


class Configured:
    """See the module."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._stale: set[str] = {resource for resource in _WATCHED if store.count(resource)}
        self._mutating: tuple[Hook, ...] = ()
        self._validating: tuple[Hook, ...] = ()
        self.active = bool(self._stale)
        store.subscribe(self._on_event)

    def _on_event(self, event: Event) -> None:
        resource = event.stored.key.resource
        if resource in _WATCHED:
            self._stale.add(resource)
            self.active = any(self._store.count(one) for one in _WATCHED)

    @property
    def mutating(self) -> Sequence[Hook]:
        if MUTATING in self._stale:
            self._mutating = tuple(hook for obj in self._objects(MUTATING) for hook in hooks_of(obj, mutating=True))
        return self._mutating

    @property
    def validating(self) -> Sequence[Hook]:
        if VALIDATING in self._stale:
            self._validating = tuple(
                hook for obj in self._objects(VALIDATING) for hook in hooks_of(obj, mutating=False)
            )
        return self._validating

    def _objects(self, resource: str) -> list[Obj]:
        self._stale.discard(resource)
        return [stored.obj for stored in self._store.list(resource)]
