"""A cache of what manifests and discovery name, computed once per render and per discovery.

The Application controller holds it and its observation reads it; results do not depend on it. An entry belongs to the
tuple of objects of one render; the least recently used are evicted.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field

from syncline.control.cache import Snapshot
from syncline.gitops.comparison.compare import live_refs
from syncline.gitops.gates.placing import may_hold
from syncline.gitops.sync.conditions import is_conditioned
from syncline.gitops.sync.kinds import KindTable
from syncline.kube.objects import GroupKind, Obj, ObjectRef, annotations_of, gvk_of

MAX_KEPT = 10_000
"""Cached renders: the number of Applications of one process."""
MAX_TABLES = 100
"""Destinations whose kinds are cached."""


@dataclass(frozen=True, slots=True)
class Named:
    """``refs``: keys of the manifests as live objects. ``conditioned``: manifests that wait for other objects."""

    refs: tuple[ObjectRef, ...] = ()
    kinds: frozenset[GroupKind] = frozenset()
    conditioned: tuple[Obj, ...] = field(default=(), repr=False)
    gated: tuple[Obj, ...] = field(default=(), repr=False)
    """Manifests that may hold later waves: Subscriptions, and Jobs that wait in a loop."""


@dataclass(frozen=True, slots=True)
class _Entry:
    objects: tuple[Obj, ...]
    kinds: KindTable
    namespace: str
    named: Named


class NamedCache:
    """A cache by object identity; its entries keep the objects alive."""

    def __init__(self, limit: int = MAX_KEPT) -> None:
        self._limit = limit
        self._read: OrderedDict[int, _Entry] = OrderedDict()
        self._tables: OrderedDict[int, KindTable] = OrderedDict()

    def kinds(self, cache: Snapshot) -> KindTable:
        """Return the kinds that a cluster serves; the same table until the next discovery."""
        served = cache.mapper.served
        table = self._tables.pop(id(served), None)
        self._tables[id(served)] = table = table if table is not None else KindTable(served)
        while len(self._tables) > MAX_TABLES:
            self._tables.popitem(last=False)
        return table

    def of(self, objects: tuple[Obj, ...], kinds: KindTable, namespace: str) -> Named:
        entry = self._read.pop(id(objects), None)
        if entry is None or entry.kinds is not kinds or entry.namespace != namespace:
            named = Named(
                tuple(live_refs(objects, kinds, namespace)),
                frozenset(gvk_of(obj).group_kind for obj in objects),
                tuple(obj for obj in objects if is_conditioned(annotations_of(obj))),
                tuple(obj for obj in objects if may_hold(obj)),
            )
            entry = _Entry(objects, kinds, namespace, named)
        self._read[id(objects)] = entry
        while len(self._read) > self._limit:
            self._read.popitem(last=False)
        return entry.named
