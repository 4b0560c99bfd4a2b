"""Merges a child configuration over its parent, like Ignition: :func:`merge`. Nothing is validated.

Both are canonical and of one version. A child's value wins if it is present, even if empty or zero; lists are merged by
the keys of their items (see the table), or appended if items may repeat; files, directories and links share one
namespace, so a directory replaces a file of the same path. Parent items keep their positions, new items follow. Source:
coreos/ignition ``config/merge/merge.go``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

from syncline.ignition.checking import item_key
from syncline.ignition.schema import Field, Object, Schema, schema
from syncline.ignition.typed import canonical

Value: TypeAlias = "dict[str, Any]"


def merge(minor: int, parent: Value, child: Value) -> Value:
    """Return ``child`` merged over ``parent``, both canonical at 3.``minor``, as a new canonical configuration."""
    table = schema(minor)
    return canonical(minor, _object(table, table.root, parent, child))


def _object(table: Schema, kind: Object, parent: Value, child: Value) -> Value:
    """Field by field. Before 3.3 the target of a link is always there; a child that says nothing about the link but its
    place keeps the parent's."""
    if kind.name == "Link" and not child.get("target") and child.get("hard") is None:
        child = {**child, "target": parent.get("target"), "hard": parent.get("hard")}
    result: Value = {}
    for name, field in kind.fields.items():
        value = _items(table, kind, field, parent, child) if field.many else _field(table, field, parent, child)
        if value is not None:
            result[name] = value if value or not (field.many and field.always) else None
    return result


def _field(table: Schema, field: Field, parent: Value, child: Value) -> Any:
    below, above = parent.get(field.name), child.get(field.name)
    if field.scalar:
        return below if field.nullable and above is None else above
    inner = table.objects[field.type]
    if above is None or (not field.nullable and _zero(inner, above)):
        return below
    if below is None or (not field.nullable and _zero(inner, below)):
        return above
    return _object(table, inner, below, above)


def _items(table: Schema, kind: Object, field: Field, parent: Value, child: Value) -> list[Any]:
    below, above = parent.get(field.name) or [], child.get(field.name) or []
    if field.name in kind.plain:
        return [*below, *above]
    inner = None if field.scalar else table.objects[field.type]
    mine = {item_key(inner, item): item for item in above}
    lost = _lost(table, kind, field, child, mine)
    known: set[str] = set()
    result: list[Any] = []
    for item in below:
        key = item_key(inner, item)
        known.add(key)
        if key in lost:
            continue
        if key not in mine:
            result.append(item)
        elif inner is None:
            result.append(mine[key])
        elif inner.name != "HTTPHeader" or mine[key].get("value") is not None:
            result.append(_object(table, inner, item, mine[key]))
    return [*result, *(item for item in above if item_key(inner, item) not in known)]


def _lost(table: Schema, kind: Object, field: Field, child: Value, mine: dict[str, Any]) -> set[str]:
    """Keys whose parent's item goes because the child has them in another list of the same namespace. Where a child has
    a key in several lists, which no valid one does, the last list counts."""
    if field.name not in kind.shared:
        return set()
    names: Sequence[str] = [name for name in kind.fields if name in kind.shared]
    place = names.index(field.name)
    lost: set[str] = set()
    for other, name in enumerate(names):
        if other != place:
            known = kind.fields[name]
            inner = None if known.scalar else table.objects[known.type]
            keys = {item_key(inner, item) for item in child.get(name) or ()}
            lost |= keys if other > place else keys - mine.keys()
    return lost


def _zero(kind: Object, value: Value) -> bool:
    """An object that says nothing, as only those have that are always written."""
    return all(part is None or (part == "" and not kind.fields[name].nullable) for name, part in value.items())
