"""The watch cache that controllers read: :class:`Cache`, through the :class:`Snapshot` protocol.

Informers write it; the ``observe`` functions of controllers read it. Returned objects are shared and read-only.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

from syncline.control.reads import Reads
from syncline.kube.mapper import Mapper
from syncline.kube.objects import (
    GroupKind,
    Obj,
    ObjectRef,
    labels_of,
    meta,
    name_of,
    namespace_of,
    owner_references,
    ref_of,
)
from syncline.kube.selectors import Selector

T = TypeVar("T")

IndexFn = Callable[[Obj], Iterable[str]]
"""Returns the index values of an object. A function with a true attribute ``of_metadata`` reads only identity, labels
and annotations."""


@dataclass(frozen=True, slots=True)
class OfKind:
    """An :data:`IndexFn` for objects of one kind only."""

    kind: GroupKind
    values: IndexFn
    of_spec: bool = False
    """``values`` reads only identity and spec."""

    def __call__(self, obj: Obj) -> Iterable[str]:
        return self.values(obj)


class Snapshot(Protocol):
    """The read interface of the cache: no requests, and no changes during one reconcile."""

    @property
    def mapper(self) -> Mapper: ...

    def get(self, ref: ObjectRef) -> Obj | None: ...

    def objects(self, kind: GroupKind, namespace: str = "") -> list[Obj]:
        """Return all objects of a kind, or those of a namespace, ordered by (namespace, name)."""
        ...

    def owned(self, uid: str, kind: GroupKind | None = None) -> list[Obj]:
        """Return the objects with an owner reference to ``uid``, ordered by kind, namespace, name."""
        ...

    def indexed(self, index: str, value: str) -> list[Obj]:
        """Return the objects under ``value`` of a named index."""
        ...

    def count(self, index: str, value: str) -> int:
        """Return the number of objects under ``value`` of a named index."""
        ...

    def first(self, index: str, value: str) -> Obj | None:
        """Return the first object under ``value`` of a named index, without reading the others each time."""
        ...

    def views(self, kind: GroupKind, view: Callable[[Obj], T]) -> list[T]:
        """Return ``view`` of each object of a kind, ordered by (namespace, name). Results are cached per version of an
        object. ``view`` must be pure, and the same function each time."""
        ...

    def kinds(self) -> Iterator[GroupKind]:
        """Yield the kinds of which any object was ever cached, in order."""
        ...

    def selected(self, kind: GroupKind, namespace: str, selector: Selector) -> list[Obj]:
        """Return the objects of a namespace whose labels match, ordered by name."""
        ...

    def uncontrolled(self, kind: GroupKind, namespace: str) -> list[Obj]:
        """Return the objects of a namespace without a controlling owner, ordered by name."""
        ...

    def has_synced(self, kind: GroupKind) -> bool:
        """Return False until the first list of the kind arrived, and while the kind cannot be read."""
        ...

    def unread(self, ref: ObjectRef) -> str:
        """Return why the kind of ``ref`` cannot be read, so that its absence means nothing; empty if ``get`` is
        reliable. Without a name this is about all objects of the kind in that namespace."""
        ...

    def reads_all(self) -> bool:
        """Return True if no kind of the cache is marked as unreadable."""
        ...

    def changes(self, kind: GroupKind) -> int:
        """Return a counter of the changes to objects of the kind; while it is equal, earlier results are valid."""
        ...

    def follows(self, kind: GroupKind) -> bool:
        """Return True if the kind was listed and its watch works: the cache is current but for events under way."""
        ...


_Place = tuple[GroupKind, str, str]
_KEPT_IN_ORDER = 16
"""Objects under an index value from which on their order is kept, not sorted at each query."""


@dataclass(slots=True)
class _Shelf:
    """Lookup tables for the names of one kind and namespace, built at the first query."""

    labelled: dict[tuple[str, str], set[str]] = field(default_factory=dict)
    uncontrolled: set[str] = field(default_factory=set)

    def add(self, name: str, obj: Obj) -> None:
        for pair in labels_of(obj).items():
            self.labelled.setdefault(pair, set()).add(name)
        if not _controlled(obj):
            self.uncontrolled.add(name)

    def remove(self, name: str, obj: Obj) -> None:
        for pair in labels_of(obj).items():
            names = self.labelled.get(pair)
            if names is not None:
                names.discard(name)
                if not names:
                    del self.labelled[pair]
        self.uncontrolled.discard(name)


@dataclass(slots=True)
class _View:
    """Cached results of a view for each object of a kind. ``stale``: objects with a newer version than the cached
    result."""

    made: dict[tuple[str, str], Any] = field(default_factory=dict)
    stale: set[tuple[str, str]] = field(default_factory=set)
    order: dict[tuple[str, str], int] | None = None
    listed: list[Any] | None = None

    def changed(self, namespace: str, name: str, *, arrived: bool) -> None:
        self.stale.add((namespace, name))
        if arrived:
            self.order = self.listed = None

    def left(self, namespace: str, name: str) -> None:
        self.stale.discard((namespace, name))
        self.made.pop((namespace, name), None)
        self.order = self.listed = None


_NO_VIEWS: dict[Any, _View] = {}


def _controlled(obj: Obj) -> bool:
    return any(owner.get("controller") for owner in owner_references(obj))


_READ = ("labels", "annotations", "ownerReferences", "finalizers", "deletionTimestamp")
_NOTHING: frozenset[str] = frozenset()
_SAME = {
    (True, False): frozenset({"metadata"}),
    (False, True): frozenset({"spec"}),
    (True, True): frozenset({"metadata", "spec"}),
}


def same_parts(old: Obj | None, new: Obj | None) -> frozenset[str]:
    """Return which of metadata (what is read of it) and spec an update left alone. A spec counts as changed unless it
    is the very same object: comparing costs more than what is saved."""
    if old is None or new is None:
        return _NOTHING
    one, other = meta(old), meta(new)
    for part in _READ:
        before, after = one.get(part), other.get(part)
        if before is not after and before != after:
            return _SAME[False, True] if old.get("spec") is new.get("spec") else _NOTHING
    return _SAME[True, old.get("spec") is new.get("spec")]


_PARTS = ("labels", "annotations", "ownerReferences")


def _changed_parts(old: Obj | None, new: Obj | None) -> Collection[str]:
    """Return the parts of metadata that an update changed; unchanged ones are mostly the same Python object."""
    if old is None or new is None:
        return _PARTS
    one, other = meta(old), meta(new)
    return [part for part in _PARTS if (was := one.get(part)) is not (now := other.get(part)) and was != now]


class Cache:
    """The write interface of the cache; also implements :class:`Snapshot`."""

    def __init__(self, mapper: Mapper, indices: Mapping[str, IndexFn] | None = None) -> None:
        self.mapper = mapper
        self._objects: dict[GroupKind, dict[str, dict[str, Obj]]] = {}
        self._names: dict[tuple[GroupKind, str], list[str]] = {}
        """Sorted names of a namespace, computed on demand and cached until an object arrives or goes."""
        self.reads = Reads()
        self._revision: dict[GroupKind, int] = {}
        self._changes: Counter[GroupKind] = Counter()
        self._owned: dict[str, set[_Place]] = {}
        self._indices: dict[str, IndexFn] = dict(indices or {})
        self._indexed: dict[str, dict[str, set[_Place]]] = {name: {} for name in self._indices}
        self._firsts: dict[str, dict[str, _Place]] = {name: {} for name in self._indices}
        """For each index and requested value, the first object."""
        self._ordered: dict[str, dict[str, list[_Place]]] = {name: {} for name in self._indices}
        """For each index and requested value with many objects, these in order."""
        self._versions: dict[str, int] = {}
        self._asked: dict[GroupKind, list[tuple[str, IndexFn]]] = {}
        """The indices that may have values for objects of a kind."""
        self._shelves: dict[tuple[GroupKind, str], _Shelf] = {}
        self._views: dict[GroupKind, dict[Callable[[Obj], Any], _View]] = {}
        self.keeps: Mapping[GroupKind, Callable[[ObjectRef], bool]] = {}
        """For kinds of which only some objects are stored, a function that accepts those."""

    def add_index(self, name: str, values: IndexFn) -> None:
        """Declare an index before anything is cached."""
        assert not self._objects, "indices are declared before the first object arrives"
        self._indices[name] = values
        self._indexed[name], self._firsts[name], self._ordered[name] = {}, {}, {}
        self._asked.clear()

    def use_index(self, name: str, values: IndexFn) -> None:
        """Replace the function of an index; the next query rebuilds it. An equal function replaces nothing."""
        if self._indices.get(name) == values:
            return
        self._indices[name] = values
        self._versions[name] = -1
        self._asked.clear()

    # -- writing -----------------------------------------------------------------------------------------------

    def put(self, kind: GroupKind, obj: Obj) -> Obj | None:
        """Store the newest state of an object; return the previous one."""
        if kind in self.keeps and not self.keeps[kind](ref_of(obj)):
            return self.drop(kind, namespace_of(obj), name_of(obj))
        metadata = meta(obj)
        namespace, name = metadata.get("namespace") or "", metadata.get("name") or ""
        bucket = self._objects.setdefault(kind, {}).setdefault(namespace, {})
        old = bucket.get(name)
        if old is None:
            self._names.pop((kind, namespace), None)
        bucket[name] = obj
        self._changes[kind] += 1
        for view in self._views.get(kind, _NO_VIEWS).values():
            view.changed(namespace, name, arrived=old is None)
        self._reindex((kind, namespace, name), old, obj)
        return old

    def drop(self, kind: GroupKind, namespace: str, name: str) -> Obj | None:
        bucket = self._objects.get(kind, {}).get(namespace, {})
        old = bucket.pop(name, None)
        if old is not None:
            self._changes[kind] += 1
            self._names.pop((kind, namespace), None)
            for view in self._views.get(kind, _NO_VIEWS).values():
                view.left(namespace, name)
            self._reindex((kind, namespace, name), old, None)
        return old

    def mark_synced(self, kind: GroupKind, space: str = "") -> None:
        """Record that a kind was listed; ``space``: in this namespace, one of several."""
        self.reads.listed(kind, space)

    def mark_unread(self, kind: GroupKind, why: str, space: str = "") -> None:
        """Record that a kind is served but cannot be read: its objects here are outdated, and absence means nothing."""
        self.reads.refused(kind, why, space)

    def mark_behind(self, kind: GroupKind, behind: bool = True, space: str = "") -> None:
        """Record that the watch of a kind failed, or works again."""
        self.reads.behind(kind, behind, space)

    def forget_kind(self, kind: GroupKind) -> list[Obj]:
        """Remove all objects of a kind that is no longer served; return them."""
        gone = self.objects(kind)
        for obj in gone:
            self.drop(kind, namespace_of(obj), name_of(obj))
        self.reads.forget(kind)
        return gone

    def saw_revision(self, kind: GroupKind, revision: str) -> None:
        if revision.isdigit():
            self._revision[kind] = max(self._revision.get(kind, 0), int(revision))

    def observed_revision(self, kind: GroupKind) -> int:
        """Return the highest resourceVersion seen of a kind, 0 before the first list."""
        return self._revision.get(kind, 0)

    def _reindex(self, place: _Place, old: Obj | None, new: Obj | None) -> None:
        """Update the indices. Most writes change only the status, so unchanged index values are not moved."""
        changed = _changed_parts(old, new)
        if "ownerReferences" in changed:
            before, after = ([str(o.get("uid")) for o in owner_references(x)] if x else [] for x in (old, new))
            _move(self._owned, place, before, after)
        distinct = "labels" in changed or "annotations" in changed
        respecified = old is None or new is None or old.get("spec") is not new.get("spec")
        for name, values in self._indices_of(place[0]):
            if not distinct and getattr(values, "of_metadata", False):
                continue
            if not respecified and getattr(values, "of_spec", False):
                continue
            before = list(values(old)) if old is not None else []
            after = list(values(new)) if new is not None else []
            if before != after:
                _move(self._indexed[name], place, before, after)
                self._move_first(self._firsts[name], place, before, after)
                for value in (*before, *after):
                    self._ordered[name].pop(value, None)
        shelf = self._shelves.get(place[:2])
        if shelf is None:
            return
        if not ("labels" in changed or "ownerReferences" in changed):
            return
        if old is not None:
            shelf.remove(place[2], old)
        if new is not None:
            shelf.add(place[2], new)

    @staticmethod
    def _move_first(firsts: dict[str, _Place], place: _Place, before: Iterable[str], after: Iterable[str]) -> None:
        for value in before:
            if firsts.get(value) == place:
                del firsts[value]
        for value in after:
            if value in firsts and place < firsts[value]:
                firsts[value] = place

    def _indices_of(self, kind: GroupKind) -> list[tuple[str, IndexFn]]:
        asked = self._asked.get(kind)
        if asked is None:
            known = self._indices.items()
            asked = [(name, values) for name, values in known if getattr(values, "kind", kind) == kind]
            self._asked[kind] = asked
        return asked

    # -- reading -----------------------------------------------------------------------------------------------

    def get(self, ref: ObjectRef) -> Obj | None:
        return self._objects.get(ref.group_kind, {}).get(ref.namespace, {}).get(ref.name)

    def objects(self, kind: GroupKind, namespace: str = "") -> list[Obj]:
        spaces = self._objects.get(kind, {})
        wanted = [namespace] if namespace else sorted(spaces)
        found: list[Obj] = []
        for space in wanted:
            bucket = spaces.get(space)
            if bucket:
                found += [bucket[name] for name in self._sorted_names(kind, space, bucket)]
        return found

    def _sorted_names(self, kind: GroupKind, namespace: str, bucket: Mapping[str, Obj]) -> list[str]:
        names = self._names.get((kind, namespace))
        if names is None:
            names = self._names[(kind, namespace)] = sorted(bucket)
        return names

    def owned(self, uid: str, kind: GroupKind | None = None) -> list[Obj]:
        return self._at(p for p in self._owned.get(uid, ()) if kind is None or p[0] == kind)

    def indexed(self, index: str, value: str) -> list[Obj]:
        self._refresh_index(index)
        places = self._indexed[index].get(value, ())
        if len(places) < _KEPT_IN_ORDER:
            return self._at(places)
        ordered = self._ordered[index].get(value)
        if ordered is None:
            ordered = self._ordered[index][value] = sorted(places)
        return [self._objects[kind][namespace][name] for kind, namespace, name in ordered]

    def selected(self, kind: GroupKind, namespace: str, selector: Selector) -> list[Obj]:
        if selector.nothing:
            return []
        bucket = self._objects.get(kind, {}).get(namespace, {})
        pairs = selector.pairs()
        if not pairs:
            return [obj for obj in self.objects(kind, namespace) if selector.matches(labels_of(obj))]
        labelled = self._shelf(kind, namespace).labelled
        empty: set[str] = set()
        fewest = min((labelled.get(pair, empty) for pair in pairs), key=len)
        found = [bucket[name] for name in sorted(fewest)]
        return [obj for obj in found if selector.matches(labels_of(obj))]

    def uncontrolled(self, kind: GroupKind, namespace: str) -> list[Obj]:
        bucket = self._objects.get(kind, {}).get(namespace, {})
        return [bucket[name] for name in sorted(self._shelf(kind, namespace).uncontrolled)] if bucket else []

    def _shelf(self, kind: GroupKind, namespace: str) -> _Shelf:
        shelf = self._shelves.get((kind, namespace))
        if shelf is None:
            shelf = self._shelves[(kind, namespace)] = _Shelf()
            for name, obj in self._objects.get(kind, {}).get(namespace, {}).items():
                shelf.add(name, obj)
        return shelf

    def count(self, index: str, value: str) -> int:
        self._refresh_index(index)
        return len(self._indexed[index].get(value, ()))

    def first(self, index: str, value: str) -> Obj | None:
        self._refresh_index(index)
        known = self._firsts[index].get(value)
        if known is None:
            places = self._indexed[index].get(value)
            if not places:
                return None
            known = self._firsts[index][value] = min(places)
        kind, namespace, name = known
        return self._objects[kind][namespace][name]

    def views(self, kind: GroupKind, view: Callable[[Obj], T]) -> list[T]:
        known = self._views.setdefault(kind, {}).setdefault(view, _View())
        spaces = self._objects.get(kind, {})
        if known.order is None:
            places = [
                (space, name) for space in sorted(spaces) for name in self._sorted_names(kind, space, spaces[space])
            ]
            known.order = {place: at for at, place in enumerate(places)}
            known.stale.update(place for place in places if place not in known.made)
        for place in sorted(known.stale):
            known.made[place] = view(spaces[place[0]][place[1]])
        if known.listed is None:
            known.listed = [known.made[place] for place in known.order]
        else:
            for place in known.stale:
                known.listed[known.order[place]] = known.made[place]
        known.stale.clear()
        return list(known.listed)

    def _refresh_index(self, index: str) -> None:
        """Rebuild an index whose function has a changed ``version``: its values depend on settings."""
        values = self._indices[index]
        version = getattr(values, "version", 0)
        if self._versions.get(index, 0) == version:
            return
        self._versions[index] = version
        found = self._indexed[index] = {}
        self._firsts[index], self._ordered[index] = {}, {}
        for kind, spaces in self._objects.items():
            for namespace, bucket in spaces.items():
                for name, obj in bucket.items():
                    for value in values(obj):
                        found.setdefault(value, set()).add((kind, namespace, name))

    def has_synced(self, kind: GroupKind) -> bool:
        return self.reads.has_synced(kind)

    def unread(self, ref: ObjectRef) -> str:
        return self.reads.why_unread(ref)

    def reads_all(self) -> bool:
        return self.reads.whole

    def changes(self, kind: GroupKind) -> int:
        return self._changes[kind]

    def follows(self, kind: GroupKind) -> bool:
        return self.reads.follows(kind)

    def kinds(self) -> Iterator[GroupKind]:
        yield from sorted(self._objects)

    def _at(self, places: Iterable[_Place]) -> list[Obj]:
        return [self._objects[kind][namespace][name] for kind, namespace, name in sorted(places)]


def _move(index: dict[str, set[_Place]], place: _Place, before: Iterable[str], after: Iterable[str]) -> None:
    for value in before:
        places = index.get(value)
        if places is not None:
            places.discard(place)
            if not places:
                del index[value]
    for value in after:
        index.setdefault(value, set()).add(place)
