"""Control the lifecycle of CustomResourceDefinitions in the API: accept, establish, empty, delete.

``api`` calls it after each write. Kubernetes has controllers of the apiserver for this; here it happens within the
request, so that a definition is served when its create returns. It writes the definition's status, and deletes its
objects. ``kube/schema/custom/crd.py`` decides on names.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from syncline.cluster.resources.registry import CRDS
from syncline.cluster.storage.store import Stored
from syncline.cluster.verbs.delete import CLEANUP_FINALIZER, remove
from syncline.cluster.verbs.exchange import Backend, Exchange
from syncline.cluster.verbs.options import DeleteOptions
from syncline.kube.objects import dig, finalizers, is_terminating, meta
from syncline.kube.schema.custom.crd import (
    COMPLETED,
    IN_PROGRESS,
    NEVER_ESTABLISHED,
    TakenNames,
    Verdict,
    crd_status,
    installing,
    is_established,
    terminating,
)

MAX_ROUNDS = 1000
"""Limit of rounds in which definitions affect each other's names; each round settles at least one."""


class Definitions:
    """Maintains every definition's status and cleans up after deleted ones."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend

    def after_write(self, x: Exchange) -> None:
        """Handle the effects of a write: of a definition, or of the last object of a terminating one."""
        if x.resource.storage == CRDS or (x.resource.custom is not None and x.resource.custom.terminating):
            self.settle(x)

    def settle(self, x: Exchange) -> None:
        store = self._backend.store
        for _ in range(MAX_ROUNDS):
            definitions = store.list(CRDS)
            taken = TakenNames(stored.obj for stored in definitions)
            if not any(self._step(x, stored, taken) for stored in definitions):
                return

    def _step(self, x: Exchange, stored: Stored, taken: TakenNames) -> bool:
        """Return whether it wrote anything, so that earlier reads are stale."""
        if is_terminating(stored.obj):
            return self._clean_up(x, stored)
        return self._accept(stored, taken, x.now)

    def _accept(self, stored: Stored, taken: TakenNames, now: datetime) -> bool:
        status = crd_status(stored.obj, taken, now)
        if status == stored.obj.get("status"):
            return False
        store = self._backend.store
        if is_established(status) and not is_established(stored.obj.get("status") or {}):
            # Kubernetes establishes in a second write, and controllers wait for that event.
            stored = store.put(stored.key, {**stored.obj, "status": installing(status)}, expect=stored.revision)
        store.put(stored.key, {**stored.obj, "status": status}, expect=stored.revision)
        return True

    def _clean_up(self, x: Exchange, stored: Stored) -> bool:
        """Delete the objects, then the definition's last finalizer."""
        if CLEANUP_FINALIZER not in finalizers(stored.obj):
            return False
        store = self._backend.store
        stored = self._said(x, stored, IN_PROGRESS)
        versions = self._backend.registry.versions_of(stored.key.name)
        storage = f"{dig(stored.obj, 'spec', 'group')}/{dig(stored.obj, 'spec', 'names', 'plural')}"
        if versions:
            inside = replace(x, resource=versions[0])
            for one in store.list(storage):
                if not is_terminating(one.obj):
                    remove(inside, one, DeleteOptions())
        if store.count(storage):
            return False
        left = [name for name in finalizers(stored.obj) if name != CLEANUP_FINALIZER]
        metadata = {**meta(stored.obj), "finalizers": left}
        established = is_established(stored.obj.get("status") or {})
        status = terminating(stored.obj, COMPLETED if established else NEVER_ESTABLISHED, x.now)
        last = {**stored.obj, "metadata": metadata, "status": status}
        if left:
            store.put(stored.key, last, expect=stored.revision)
        else:
            store.delete(stored.key, expect=stored.revision, last=last)
        return True

    def _said(self, x: Exchange, stored: Stored, verdict: Verdict) -> Stored:
        status = terminating(stored.obj, verdict, x.now)
        if status == stored.obj.get("status"):
            return stored
        return self._backend.store.put(stored.key, {**stored.obj, "status": status}, expect=stored.revision)
