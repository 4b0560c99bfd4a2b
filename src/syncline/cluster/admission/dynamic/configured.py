"""The active webhooks and policies, ready to be matched.

Built once over a store and updated by its events; writes read ``active`` first, so that a cluster without any pays for
one attribute. Configurations apply in the order of their names.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from syncline.cluster.admission.dynamic.hooks import Hook, hooks_of
from syncline.cluster.admission.dynamic.policies import Policy, policy_of
from syncline.cluster.storage.store import Event, Store
from syncline.kube.objects import Obj, dig, name_of

GROUP = "admissionregistration.k8s.io"
MUTATING, VALIDATING = f"{GROUP}/mutatingwebhookconfigurations", f"{GROUP}/validatingwebhookconfigurations"
POLICIES, BINDINGS = f"{GROUP}/validatingadmissionpolicies", f"{GROUP}/validatingadmissionpolicybindings"
CHANGES, CHANGE_BINDINGS = f"{GROUP}/mutatingadmissionpolicies", f"{GROUP}/mutatingadmissionpolicybindings"
_NEEDS = {MUTATING: MUTATING, VALIDATING: VALIDATING, BINDINGS: POLICIES, CHANGE_BINDINGS: CHANGES}
"""Resources that must exist for another to be active: a policy without a binding has no effect."""
_WATCHED = frozenset((*_NEEDS, *_NEEDS.values()))

T = TypeVar("T")


class Configured:
    """The configured webhooks and policies of a store."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._made: dict[str, tuple[Any, ...]] = {}
        self.active = self._anything()
        store.subscribe(self._on_event)

    def _on_event(self, event: Event) -> None:
        resource = event.stored.key.resource
        if resource in _WATCHED:
            self._made.clear()
            self.active = self._anything()

    def _anything(self) -> bool:
        return any(self._store.count(one) and self._store.count(other) for one, other in _NEEDS.items())

    @property
    def mutating(self) -> Sequence[Hook]:
        return self._ready(MUTATING, lambda: self._hooks(MUTATING, mutating=True))

    @property
    def validating(self) -> Sequence[Hook]:
        return self._ready(VALIDATING, lambda: self._hooks(VALIDATING, mutating=False))

    @property
    def policies(self) -> Sequence[Policy]:
        """Validating policies with their bindings."""
        return self._ready(POLICIES, lambda: self._policies(POLICIES, BINDINGS))

    @property
    def changes(self) -> Sequence[Policy]:
        """Mutating policies with their bindings."""
        return self._ready(CHANGES, lambda: self._policies(CHANGES, CHANGE_BINDINGS))

    def _ready(self, resource: str, make: Callable[[], list[T]]) -> tuple[T, ...]:
        if resource not in self._made:
            self._made[resource] = tuple(make())
        return self._made[resource]

    def _objects(self, resource: str) -> list[Obj]:
        return [stored.obj for stored in self._store.list(resource)]

    def _hooks(self, resource: str, *, mutating: bool) -> list[Hook]:
        return [hook for obj in self._objects(resource) for hook in hooks_of(obj, mutating=mutating)]

    def _policies(self, resource: str, bindings: str) -> list[Policy]:
        bound: dict[str, list[Obj]] = {}
        for binding in self._objects(bindings):
            bound.setdefault(str(dig(binding, "spec", "policyName", default="")), []).append(binding)
        return [policy_of(obj, bound[name_of(obj)]) for obj in self._objects(resource) if name_of(obj) in bound]
