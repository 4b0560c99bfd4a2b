"""Looks at a rehearsed cluster from outside, again and again: :class:`Watching`.

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
from syncline.kube.mapper import Mapper, server_version
from syncline.kube.objects import GroupKind, ObjectRef


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
