"""Merges a user's config over a generated one and records the origin of every part: :func:`merged`.

The rules are those of Ignition's merging; positions are merged, too. Called by ``ignition/butane/mounts.py`` and
``ignition/butane/boot_device.py`` with generated configs as parents. Configs are plain JSON in which a key is present
if upstream's value is not nil; inputs are not changed.
"""

from __future__ import annotations

from typing import Any

from syncline.ignition.butane.places import Places
from syncline.ignition.checking import item_key
from syncline.ignition.report import Path
from syncline.ignition.schema import Field, Object, Schema

Config = dict[str, Any]


class Part:
    """A config and the positions of its parts in the document."""

    def __init__(self, config: Config | None = None, places: Places | None = None) -> None:
        self.config: Config = {} if config is None else config
        self.places: Places = {} if places is None else places


def is_zero(schema: Schema, kind: Object, value: Config) -> bool:
    """Return True if Go would call the object zero; written empty lists are not zero."""
    for name, part in value.items():
        known = kind.fields[name]
        if known.many or known.nullable:
            return False
        if known.scalar:
            if part:
                return False
        elif not is_zero(schema, schema.objects[known.type], part):
            return False
    return True


def common_source(schema: Schema, kind: Object, value: Config, prefix: Path, source: Path, places: Places) -> None:
    """Record ``source`` as the origin of everything at ``prefix``, written or not."""
    for name, known in kind.fields.items():
        at = (*prefix, name)
        places[at] = source
        part = value.get(name)
        if part is None:
            if not known.many and not known.scalar and not known.nullable:
                common_source(schema, schema.objects[known.type], {}, at, source, places)
            continue
        if known.many:
            for index, item in enumerate(part):
                places[*at, index] = source
                if not known.scalar:
                    common_source(schema, schema.objects[known.type], item, (*at, index), source, places)
        elif not known.scalar:
            common_source(schema, schema.objects[known.type], part, at, source, places)
    places[prefix] = source


def merged(schema: Schema, parent: Part, child: Part) -> Part:
    """Return ``child`` over ``parent``: entries of the parent come first, fields of the child win."""
    merger = _Merger(schema, parent.places, child.places)
    config = merger.struct(schema.root, parent.config, child.config, ((), (), ()))
    return Part(config, merger.places)


_Paths = tuple[Path, Path, Path]
"""The same part in the parent, the child and the result."""


class _Merger:
    def __init__(self, schema: Schema, parent_places: Places, child_places: Places) -> None:
        self._schema = schema
        self._parent_places = parent_places
        self._child_places = child_places
        self.places: Places = {}

    def _from_parent(self, source: Path, result: Path) -> None:
        place = self._parent_places.get(source)
        if place is not None and result not in self.places:
            self.places[result] = place

    def _from_child(self, source: Path, result: Path) -> None:
        place = self._child_places.get(source)
        if place is not None:
            self.places[result] = place

    def struct(self, kind: Object, parent: Config, child: Config, paths: _Paths) -> Config:
        result: Config = {}
        shared = self._shared(kind, child)
        for name, known in kind.fields.items():
            at = ((*paths[0], name), (*paths[1], name), (*paths[2], name))
            before, after = parent.get(name), child.get(name)
            if known.many:
                items = self._list(kind, known, (before, after), at, shared)
                if items is not None:
                    result[name] = items
            elif known.nullable or not known.scalar:
                value = self._part(known, before, after, at)
                if value is not None:
                    result[name] = value
            elif after is not None:
                result[name] = after
                self._take(known, after, at[1], at[2], child=True)
        return result

    def _part(self, known: Field, parent: Any, child: Any, at: _Paths) -> Any:
        """Merge a nullable value (the child's if it has one) or an object (field by field)."""
        if known.scalar:
            value = parent if child is None else child
        else:
            inner = self._schema.objects[known.type]
            if child is not None and not known.nullable and is_zero(self._schema, inner, child):
                child = None
            if parent is not None and not known.nullable and is_zero(self._schema, inner, parent):
                parent = None
            if parent is not None and child is not None:
                value = self.struct(inner, parent, child, at)
                self._from_parent(at[0], at[2])
                self._from_child(at[1], at[2])
                return value
            value = parent if child is None else child
        if value is not None:
            self._take(known, value, at[0] if child is None else at[1], at[2], child=child is not None)
        return value

    def _shared(self, kind: Object, child: Config) -> dict[str, str]:
        """Map keys to the child's list that has them, for lists that share a namespace; the last one counts."""
        found: dict[str, str] = {}
        for name in kind.fields:
            if name in kind.shared:
                known = kind.fields[name]
                for item in child.get(name) or ():
                    found[self._key(known, item)] = name
        return found

    def _key(self, known: Field, item: Any) -> str:
        return item_key(None if known.scalar else self._schema.objects[known.type], item)

    def _list(
        self, kind: Object, known: Field, lists: tuple[Any, Any], at: _Paths, shared: dict[str, str]
    ) -> list[Any] | None:
        parent, child = lists[0] or [], lists[1] or []
        if not parent and not child:
            return None
        items: list[Any] = []
        used = [False, False]
        if known.name in kind.plain:
            self._append(known, parent, items, (at[0], at[2]), child=False)
            self._append(known, child, items, (at[1], at[2]), child=True)
            used = [bool(parent), bool(child)]
        else:
            used = self._keyed(known, (parent, child), items, at, shared if known.name in kind.shared else None)
        if used[0]:
            self._from_parent(at[0], at[2])
        if used[1]:
            self._from_child(at[1], at[2])
        return items

    def _append(self, known: Field, source: list[Any], items: list[Any], at: tuple[Path, Path], *, child: bool) -> None:
        for index, item in enumerate(source):
            self._take_item(known, item, (*at[0], index), (*at[1], len(items)), child=child)
            items.append(item)

    def _keyed(
        self,
        known: Field,
        lists: tuple[list[Any], list[Any]],
        items: list[Any],
        at: _Paths,
        shared: dict[str, str] | None,
    ) -> list[bool]:
        """Merge entries by key; return whether each side contributed."""
        parent, child = lists
        by_key = {self._key(known, item): (index, item) for index, item in enumerate(child)}
        used = [False, False]
        for index, item in enumerate(parent):
            key = self._key(known, item)
            if shared is not None and shared.get(key, known.name) != known.name:
                continue
            paths = (*at[0], index), (*at[1], -1), (*at[2], len(items))
            if key not in by_key:
                self._take_item(known, item, paths[0], paths[2], child=False)
                items.append(item)
                used[0] = True
                continue
            used = [True, True]
            child_index, child_item = by_key[key]
            child_path = (*at[1], child_index)
            if known.scalar:
                self._take_item(known, child_item, child_path, paths[2], child=True)
                items.append(child_item)
            elif not (known.type == "HTTPHeader" and child_item.get("value") is None):
                inner = self._schema.objects[known.type]
                items.append(self.struct(inner, item, child_item, (paths[0], child_path, paths[2])))
                self._from_parent(paths[0], paths[2])
                self._from_child(child_path, paths[2])
        taken = {self._key(known, item) for item in parent}
        for index, item in enumerate(child):
            if self._key(known, item) not in taken:
                self._take_item(known, item, (*at[1], index), (*at[2], len(items)), child=True)
                items.append(item)
                used[1] = True
        return used

    # -- what is taken as a whole --------------------------------------------------------------------------------

    def _take(self, known: Field, value: Any, source: Path, result: Path, *, child: bool) -> bool:
        """Record the positions of a part of one side; parts without content have none."""
        if known.scalar:
            if not value and not known.nullable:
                return False
        elif not self._take_fields(self._schema.objects[known.type], value, source, result, child=child):
            return False
        (self._from_child if child else self._from_parent)(source, result)
        return True

    def _take_item(self, known: Field, value: Any, source: Path, result: Path, *, child: bool) -> bool:
        if known.scalar:
            if not value:
                return False
        elif not self._take_fields(self._schema.objects[known.type], value, source, result, child=child):
            return False
        (self._from_child if child else self._from_parent)(source, result)
        return True

    def _take_fields(self, kind: Object, value: Config, source: Path, result: Path, *, child: bool) -> bool:
        some = False
        for name, part in value.items():
            known = kind.fields[name]
            at = (*source, name), (*result, name)
            if not known.many:
                some = self._take(known, part, *at, child=child) or some
                continue
            listed = False
            for index, item in enumerate(part):
                paths = (*at[0], index), (*at[1], index)
                listed = self._take_item(known, item, *paths, child=child) or listed
            if listed:
                (self._from_child if child else self._from_parent)(*at)
                some = True
        return some
