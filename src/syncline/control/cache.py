"""What the cluster looked like when last heard of, for observers.

Informers write into it; controllers' ``observe`` reads it through the :class:`Snapshot` protocol. Objects handed out
are shared and read-only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Protocol

from syncline.kube.mapper import Mapper
from syncline.kube.objects import GroupKind, Obj, ObjectRef, name_of, namespace_of, owner_references

__all__ = ["Cache", "IndexFn", "Snapshot"]

IndexFn = Callable[[Obj], Iterable[str]]
"""The values under which an object is to be found in an index."""


class Snapshot(Protocol):
    """Reading side: no requests, no surprises within one pass."""

    @property
    def mapper(self) -> Mapper: ...

    def get(self, ref: ObjectRef) -> Obj | None: ...

    def objects(self, kind: GroupKind, namespace: str = "") -> list[Obj]:
        """All objects of a kind, or of a namespace, ordered by (namespace, name)."""
        ...

    def owned(self, uid: str, kind: GroupKind | None = None) -> list[Obj]:
        """Objects with an owner reference to ``uid``, ordered by kind, namespace, name."""
        ...

    def indexed(self, index: str, value: str) -> list[Obj]:
        """Objects under ``value`` of a named index."""
        ...

    def kinds(self) -> Iterator[GroupKind]:
        """Kinds of which anything was ever seen, in order."""
        ...

    def has_synced(self, kind: GroupKind) -> bool:
        """False until the first list of that kind arrived."""
        ...


_Place = tuple[GroupKind, str, str]


class Cache:
    """The writing side; also a :class:`Snapshot`."""

    def __init__(self, mapper: Mapper, indices: Mapping[str, IndexFn] | None = None) -> None:
        self.mapper = mapper
        self._objects: dict[GroupKind, dict[str, dict[str, Obj]]] = {}
        self._names: dict[tuple[GroupKind, str], list[str]] = {}
        """Sorted names of a namespace, made when asked for and kept until one comes or goes."""
        self._synced: set[GroupKind] = set()
        self._revision: dict[GroupKind, int] = {}
        self._owned: dict[str, set[_Place]] = {}
        self._indices: dict[str, IndexFn] = dict(indices or {})
        self._indexed: dict[str, dict[str, set[_Place]]] = {name: {} for name in self._indices}
        self._versions: dict[str, int] = {}

    def add_index(self, name: str, values: IndexFn) -> None:
        """Declare an index before anything is cached."""
        assert not self._objects, "indices are declared before the first object arrives"
        self._indices[name] = values
        self._indexed[name] = {}

    def use_index(self, name: str, values: IndexFn) -> None:
        """Replace an index's rule; it is built anew when next asked."""
        self._indices[name] = values
        self._versions[name] = -1

    # -- writing -----------------------------------------------------------------------------------------------

    def put(self, kind: GroupKind, obj: Obj) -> Obj | None:
        """Store the newest state; returns what it replaces."""
        namespace, name = namespace_of(obj), name_of(obj)
        bucket = self._objects.setdefault(kind, {}).setdefault(namespace, {})
        old = bucket.get(name)
        place = (kind, namespace, name)
        if old is not None:
            self._unindex(place, old)
        else:
            self._names.pop((kind, namespace), None)
        bucket[name] = obj
        self._index(place, obj)
        return old

    def drop(self, kind: GroupKind, namespace: str, name: str) -> Obj | None:
        bucket = self._objects.get(kind, {}).get(namespace, {})
        old = bucket.pop(name, None)
        if old is not None:
            self._names.pop((kind, namespace), None)
            self._unindex((kind, namespace, name), old)
        return old

    def mark_synced(self, kind: GroupKind) -> None:
        self._synced.add(kind)

    def forget_kind(self, kind: GroupKind) -> list[Obj]:
        """A kind is no longer served: everything of it goes."""
        gone = self.objects(kind)
        for obj in gone:
            self.drop(kind, namespace_of(obj), name_of(obj))
        self._synced.discard(kind)
        return gone

    def saw_revision(self, kind: GroupKind, revision: str) -> None:
        if revision.isdigit():
            self._revision[kind] = max(self._revision.get(kind, 0), int(revision))

    def seen_revision(self, kind: GroupKind) -> int:
        """Highest resourceVersion heard of for a kind, 0 before the first list."""
        return self._revision.get(kind, 0)

    def _index(self, place: _Place, obj: Obj) -> None:
        for owner in owner_references(obj):
            self._owned.setdefault(str(owner.get("uid")), set()).add(place)
        for name, values in self._indices.items():
            for value in values(obj):
                self._indexed[name].setdefault(value, set()).add(place)

    def _unindex(self, place: _Place, obj: Obj) -> None:
        for owner in owner_references(obj):
            self._owned.get(str(owner.get("uid")), set()).discard(place)
        for name, values in self._indices.items():
            for value in values(obj):
                self._indexed[name].get(value, set()).discard(place)

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
        return self._at(self._indexed[index].get(value, ()))

    def _refresh_index(self, index: str) -> None:
        """An index whose values depend on settings says by ``version`` that they changed; then it is built anew."""
        values = self._indices[index]
        version = getattr(values, "version", 0)
        if self._versions.get(index, 0) == version:
            return
        self._versions[index] = version
        found = self._indexed[index] = {}
        for kind, spaces in self._objects.items():
            for namespace, bucket in spaces.items():
                for name, obj in bucket.items():
                    for value in values(obj):
                        found.setdefault(value, set()).add((kind, namespace, name))

    def has_synced(self, kind: GroupKind) -> bool:
        return kind in self._synced

    def kinds(self) -> Iterator[GroupKind]:
        yield from sorted(self._objects)

    def _at(self, places: Iterable[_Place]) -> list[Obj]:
        return [self._objects[kind][namespace][name] for kind, namespace, name in sorted(places)]
