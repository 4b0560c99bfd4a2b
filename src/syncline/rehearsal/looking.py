"""Looks at a rehearsed cluster from outside, again and again: :class:`Watching`, :class:`Finished`.

A look costs what changed since the last one: kinds are listed once and watched, not listed for each look. The caches of
controllers do not serve for it, because faults delay and break their watches.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from syncline.base.clock import VirtualClock
from syncline.control.cache import Cache, IndexFn
from syncline.control.executor import run_in_place
from syncline.control.informer import Change, Scope
from syncline.control.loop import TWINS, Spaces
from syncline.control.virtual import WatchActor
from syncline.kube.client import Transport
from syncline.kube.kinds.argoproj import APP_PROJECT
from syncline.kube.mapper import Mapper, server_version
from syncline.kube.objects import GroupKind, Obj, ObjectRef, annotations_of, dig, name_of, ref_of, resource_version
from syncline.machineconfig.names import POOL

SECRETS = GroupKind("", "Secret")


class Watching:
    """A cache of all objects of a cluster. It wakes no controller and writes nothing."""

    def __init__(self, transport: Transport, clock: VirtualClock, indices: Mapping[str, IndexFn]) -> None:
        self.mapper = Mapper()
        self.mapper.version = run_in_place(server_version(), transport)
        self.cache = Cache(self.mapper, indices)
        self.scopes: Mapping[GroupKind, Scope | None] = {}
        self.spaces = Spaces()
        self.wanted_changed: Callable[[], None] = lambda: None
        self._watches = WatchActor(self, transport, clock)

    def look(self) -> Cache:
        """Return the cache as of now; it changes with the next look."""
        while self._watches.pump():
            pass
        return self.cache

    def wanted_kinds(self) -> set[GroupKind]:
        return {info.group_kind for info in self.mapper.all() if {"list", "watch"} <= set(info.verbs)} - TWINS

    def needed_kinds(self) -> set[GroupKind]:
        return set()

    def changed(self, kind: GroupKind, changes: Sequence[Change]) -> None:
        pass

    def unread(self, kind: GroupKind, why: str, space: str = "") -> None:
        was = self.cache.unread(ObjectRef(*kind, space, ""))
        if why and not was:
            self.cache.mark_unread(kind, why, space)


class Finished:
    """The Applications that were found to wait for nothing, with all that can change this; one entry for each.

    An Application that is Synced and Healthy, with an operation that succeeded, begins to wait when its own object, its
    project, a cluster's Secret or what a person writes on a pool changes. One of machine configs is not kept: nodes and
    their pools decide about it.
    """

    def __init__(self) -> None:
        self._kept: dict[ObjectRef, object] = {}
        self._others: object = None

    def look(self, cache: Cache) -> None:
        """Note what all Applications depend on, before they are looked at."""
        pools = [(name_of(pool), annotations_of(pool), pool.get("spec")) for pool in cache.objects(POOL)]
        self._others = (cache.changes(APP_PROJECT.group_kind), cache.changes(SECRETS), pools)

    def knows(self, app: Obj) -> bool:
        """Return whether an Application still waits for nothing, as far as it is known."""
        return self._kept.get(ref_of(app)) == (resource_version(app), self._others)

    def note(self, app: Obj) -> None:
        """Record an Application that waits for nothing."""
        status = app.get("status") or {}
        said = (dig(status, "sync", "status"), dig(status, "health", "status"), dig(status, "operationState", "phase"))
        machines = any(str(row.get("group")) == POOL.group for row in status.get("resources") or ())
        if said == ("Synced", "Healthy", "Succeeded") and not app.get("operation") and not machines:
            self._kept[ref_of(app)] = (resource_version(app), self._others)
