"""Schema-aware walks over objects: which fields one sets, what a merge of two gives, what changed between them.

Called by field ownership. In come JSON objects and a :class:`Schema` (or None: deduced, as for unknown kinds); returns
field sets, merged objects that share every unchanged part with their inputs, and messages. Nothing is validated beyond
what server-side apply itself refuses, and nothing is changed in place.

The rules are those of sigs.k8s.io/structured-merge-diff ``typed`` and kube-openapi ``schemaconv``: objects are granular
and lists atomic unless the schema says otherwise; where nothing is known about a value, the same is deduced.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, TypeAlias

import msgspec

from syncline.kube.objects import Obj
from syncline.kube.patching import fieldset
from syncline.kube.patching.fieldset import FieldSet, node_of
from syncline.kube.schema.model import Schema

ABSENT: Any = object()
"""Marks a side that has no value, which differs from null."""

KEY_DEFAULTS = {"protocol": "TCP"}
"""Defaults of key fields of built-in lists that schema documents leave out (container and service ports)."""

_LEAF: FieldSet = {}


_RAW_EXTENSION = "io.k8s.apimachinery.pkg.runtime.RawExtension"
"""Anything at all, owned as a whole."""

_ANY_SCALAR = frozenset(
    f"io.k8s.apimachinery.pkg.{name}"
    for name in (
        "api.resource.Quantity",
        "apis.meta.v1.Duration",
        "apis.meta.v1.MicroTime",
        "apis.meta.v1.Time",
        "util.intstr.IntOrString",
    )
)
"""Types that write their own JSON: any scalar is taken for one, until it is read."""

_ZERO_KEYS = {"string": "", "integer": 0}
"""Keys of built-in types have defaults: their fields are no pointers, and Go's zero value stands for a missing one."""


class Shape:
    """How values at one place merge: what :class:`Schema` says, with unknown fields inherited from above."""

    __slots__ = (
        "_children",
        "_element",
        "is_open",
        "keys",
        "list_type",
        "map_atomic",
        "raw_extension",
        "schema",
        "type",
    )

    def __init__(self, schema: Schema | None, is_open: bool) -> None:
        self.schema = schema
        self.type = schema.type if schema else ""
        self.is_open = is_open or schema is None or _is_open(schema)
        self.raw_extension = schema is not None and schema.name == _RAW_EXTENSION
        self.map_atomic = self.raw_extension or (
            schema is not None and schema.raw.get("x-kubernetes-map-type") == "atomic"
        )
        self.list_type = (schema.list_type if schema else "") or "atomic"
        self.keys = schema.list_map_keys if schema else ()
        self._children: dict[str, Shape | None] = {}
        self._element: Shape | None = None

    def child(self, name: str) -> Shape | None:
        """The shape of a field or map value, or None where the schema does not declare it."""
        try:
            return self._children[name]
        except KeyError:
            below = self.schema.field(name) if self.schema else None
            open_below = self.is_open and not (self.schema and self.schema.is_map)
            shape = DEDUCED if below is None and open_below else (shape_of(below, open_below) if below else None)
            if name in self.declared:
                self._children[name] = shape
            return shape

    @property
    def declared(self) -> Any:
        return self.schema.properties if self.schema else ()

    @property
    def element(self) -> Shape:
        if self._element is None:
            items = self.schema.items if self.schema else None
            self._element = shape_of(items, False) if items else DEDUCED
        return self._element

    def key_default(self, name: str) -> Any:
        below = self.element.schema.field(name) if self.element.schema else None
        default = below.default if below else None
        if default is None:
            default = KEY_DEFAULTS.get(name)
        if default is None and below is not None and self.element.schema and self.element.schema.name:
            return _ZERO_KEYS.get(below.type)
        return default


def _is_open(schema: Schema) -> bool:
    if schema.preserve_unknown:
        return True
    return schema.type in ("", "object") and not schema.properties and schema.additional is None


@lru_cache(maxsize=16384)
def _shape(schema: Schema, is_open: bool) -> Shape:
    return Shape(schema, is_open)


def shape_of(schema: Schema | None, is_open: bool = False) -> Shape:
    """The shared shape of a schema; None is deduced from the values themselves."""
    return DEDUCED if schema is None else _shape(schema, is_open)


DEDUCED = Shape(None, True)


_encode = msgspec.json.Encoder().encode


def same_json(one: Any, other: Any) -> bool:
    """Equality of JSON values: ``1`` equals ``1.0`` but not ``true``."""
    if one is other:
        return True
    kind = type(one)
    if kind is str:
        return bool(one == other)
    if (kind is dict or kind is list) and type(other) is kind:
        if one != other:
            return False
        if _encode(one) == _encode(other):  # equal in Python, and no true stands for a 1: the same text says so
            return True
    return _same_parts(one, other)


def _same_parts(one: Any, other: Any) -> bool:
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same_json(value, other[key]) for key, value in one.items())
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same_json, one, other))
    return bool(one == other) and isinstance(one, bool) == isinstance(other, bool)


def _granular_map(value: Any, shape: Shape) -> bool:
    return isinstance(value, dict) and not shape.map_atomic and shape.type in ("", "object")


def _granular_list(value: Any, shape: Shape) -> bool:
    return isinstance(value, list) and shape.list_type != "atomic"


# --- which fields an object sets -----------------------------------------------------------------------------------


def fields_of(obj: Obj, schema: Schema | None) -> FieldSet:
    """The set of fields that ``obj`` states (structured-merge-diff ``ToFieldSet``)."""
    return _map_fields(obj, shape_of(schema))


def _fields(value: Any, shape: Shape) -> FieldSet | None:
    if _granular_map(value, shape):
        return _map_fields(value, shape) or None
    if _granular_list(value, shape):
        return _list_fields(value, shape) or None
    return _LEAF


def _map_fields(value: Obj, shape: Shape) -> FieldSet:
    result: FieldSet = {}
    declared = shape.declared
    for name, item in value.items():
        below = shape.child(name)
        if below is None:
            continue
        node = _fields(item, below) if isinstance(item, (dict, list)) else _LEAF
        if node is None:
            if not item and isinstance(item, dict):
                result["f:" + name] = _LEAF
        elif node and name not in declared:
            result["f:" + name] = {fieldset.SELF: {}, **node}
        else:
            result["f:" + name] = node
    return result


def _list_fields(value: list[Any], shape: Shape) -> FieldSet:
    result: FieldSet = {}
    for item in value:
        element = list_element(item, shape)
        if element is not None:
            node = node_of(True, {k: v for k, v in (_fields(item, shape.element) or {}).items() if k != fieldset.SELF})
            known = result.get(element)
            result[element] = (node or {}) if known is None else fieldset.union({"": known}, {"": node or {}})[""]
    return result


def list_element(item: Any, shape: Shape) -> str | None:
    """The path element of an entry of a set or map list; None where the entry cannot have one."""
    if shape.list_type == "set":
        return None if item is None or isinstance(item, (dict, list)) else fieldset.valued(item)
    if not isinstance(item, dict):
        return None
    if len(shape.keys) == 1 and type(only := item.get(shape.keys[0], ABSENT)) is str:
        return fieldset.keyed_by(shape.keys[0], only)
    keys = {}
    for name in shape.keys:
        value = item.get(name, ABSENT)
        if value is ABSENT:
            value = shape.key_default(name)
            if value is None:
                continue  # An entry without one of its keys is another one than those that have it.
        keys[name] = value
    return fieldset.keyed(keys) if keys else None


def named_fields(fields: FieldSet, schema: Schema | None) -> FieldSet:
    """``fields`` with every declared field on the way to a member made a member itself.

    Source: structured-merge-diff ``EnsureNamedFieldsAreMembers``; so a struct that loses its last field goes as well.
    """
    return _named(fields, shape_of(schema))


def _named(fields: FieldSet, shape: Shape | None) -> FieldSet:
    result: FieldSet = {}
    declared = shape.declared if shape else ()
    for element, node in fields.items():
        if not node or element == fieldset.SELF:
            result[element] = node
            continue
        is_field = element[0] == "f"
        below = None if shape is None else (shape.child(element[2:]) if is_field else shape.element)
        children = _named({k: v for k, v in node.items() if k != fieldset.SELF}, below)
        member = fieldset.is_member(node) or (is_field and element[2:] in declared)
        result[element] = node_of(member, children) or {}
    return result


# --- merging -------------------------------------------------------------------------------------------------------


def merge(live: Obj, applied: Obj, schema: Schema | None) -> Obj:
    """``live`` with everything that ``applied`` states; unchanged parts are the very objects of ``live``."""
    merged = _merge(live, applied, shape_of(schema))
    assert isinstance(merged, dict)
    return merged


def _merge(old: Any, new: Any, shape: Shape) -> Any:
    if new is ABSENT or old is new:
        return old
    if old is ABSENT:
        return new
    if _granular_map(new or {}, shape) and isinstance(new, (dict, type(None))) and isinstance(old, dict):
        return _merge_maps(old, new or {}, shape) if old or new else new
    if shape.list_type != "atomic" and isinstance(new, (list, type(None))) and isinstance(old, list):
        return _merge_lists(old, new or [], shape) if old or new else new
    return old if same_json(old, new) else new


def _merge_maps(old: Obj, new: Obj, shape: Shape) -> Obj:
    result: Obj | None = None
    for name, item in new.items():
        was = old.get(name, ABSENT)
        merged = _merge(was, item, shape.child(name) or DEDUCED)
        if merged is not was:
            if result is None:
                result = dict(old)
            result[name] = merged
    return old if result is None else result


def _merge_lists(old: list[Any], new: list[Any], shape: Shape) -> list[Any]:
    """Entries of both by element: the applier's order, with the others' entries kept at their places.

    Source: structured-merge-diff ``visitListItems`` (merge.go).
    """
    order = _Interleave([list_element(item, shape) for item in old], [list_element(item, shape) for item in new])
    result = []
    for at_old, at_new in order.pairs():
        was = ABSENT if at_old is None else old[at_old]
        now = ABSENT if at_new is None else new[at_new]
        result.append(_merge(was, now, shape.element))
    unchanged = len(result) == len(old) and all(a is b for a, b in zip(result, old, strict=True))
    return old if unchanged else result


class _Interleave:
    """The order in which the entries of two associative lists are taken."""

    def __init__(self, old: list[str | None], new: list[str | None]) -> None:
        self.old, self.new = old, new
        self.first_old: dict[str | None, int] = {}
        for position, element in enumerate(old):
            self.first_old.setdefault(element, position)
        self.in_new = set(new)
        self.shared = [element for element in new if element in self.first_old]
        self.merged: set[str | None] = set()

    def _pair(self, at_new: int) -> tuple[int | None, int | None]:
        element = self.new[at_new]
        self.merged.add(element)
        if self.shared and self.shared[0] == element:
            self.shared.pop(0)
        return self.first_old.get(element), at_new

    def pairs(self) -> list[tuple[int | None, int | None]]:
        """(index in old, index in new) of each entry of the result, in order."""
        result: list[tuple[int | None, int | None]] = []
        left = right = 0
        while left < len(self.old) or right < len(self.new):
            if left < len(self.old) and right < len(self.new):
                element = self.old[left]
                if element == self.new[right]:
                    result.append(self._pair(right))
                    left, right = left + 1, right + 1
                    continue
                if element in self.in_new and self.shared and self.shared[0] != element:
                    left += 1
                    continue
            if left < len(self.old):
                if self.old[left] not in self.in_new:
                    result.append((left, None))
                    left += 1
                    continue
                if self.old[left] in self.merged:
                    left += 1
            if right < len(self.new):
                result.append(self._pair(right))
                right += 1
        return result


# --- comparing -----------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class Comparison:
    """What differs between two objects, as field sets."""

    removed: FieldSet = field(default_factory=dict)
    modified: FieldSet = field(default_factory=dict)
    added: FieldSet = field(default_factory=dict)

    def without(self, ignored: FieldSet) -> Comparison:
        """The same, leaving out fields that the endpoint resets anyway."""
        if not ignored:
            return self
        parts = (fieldset.recursive_difference(part, ignored) for part in (self.removed, self.modified, self.added))
        return Comparison(*parts)


def compare(old: Obj, new: Obj, schema: Schema | None) -> Comparison:
    """Removed, modified and added fields (structured-merge-diff ``Compare``)."""
    shape = shape_of(schema)
    if _both(old, new, dict) and _granular_map(old or new, shape):
        return Comparison(*_map_changes(old or {}, new or {}, shape))
    if isinstance(old, dict) and not _granular_map(new, shape) and not same_json(old, new):
        return Comparison(*_map_changes(old, {}, shape))
    return Comparison()


_Changes: TypeAlias = tuple[FieldSet, FieldSet, FieldSet]
"""Removed, modified and added fields, below one place."""


def _note(element: str, old: Any, new: Any, shape: Shape, into: _Changes) -> None:
    """Add to the changes of a parent how one of its values differs, which is there before and after."""
    below = _changes(old, new, shape)
    if below is None:
        into[1][element] = {}
        if isinstance(old, dict) and not _granular_map(new, shape):
            below = _map_changes(old, {}, shape)
    for all_of_kind, fields in zip(into, below or (), strict=False):
        if fields:
            all_of_kind[element] = fields


def _changes(old: Any, new: Any, shape: Shape) -> _Changes | None:
    """What differs below two values that are not the same; None if they differ as wholes."""
    if (old or new) and _both(old, new, dict) and _granular_map(old or new, shape):
        return _map_changes(old or {}, new or {}, shape)
    if (old or new) and _both(old, new, list) and _granular_list(old or new, shape):
        return _list_changes(old or [], new or [], shape)
    return _NO_CHANGES if same_json(old, new) else None


_NO_CHANGES: _Changes = ({}, {}, {})


def _both(old: Any, new: Any, kind: type) -> bool:
    return isinstance(old, (kind, type(None))) and isinstance(new, (kind, type(None)))


def _map_changes(old: Obj, new: Obj, shape: Shape) -> _Changes:
    found: _Changes = ({}, {}, {})
    for name, item in new.items():
        was = old.get(name, ABSENT)
        if was is item:
            continue
        if was is ABSENT:
            found[2]["f:" + name] = _everything(item, shape.child(name) or DEDUCED)
        elif type(item) is str and type(was) is str:
            if item != was:
                found[1]["f:" + name] = {}
        elif was != item or not same_json(was, item):
            _note("f:" + name, was, item, shape.child(name) or DEDUCED, found)
    if len(old) + len(found[2]) > len(new):
        for name, item in old.items():
            if name not in new:
                found[0]["f:" + name] = _everything(item, shape.child(name) or DEDUCED)
    return found


def _list_changes(old: list[Any], new: list[Any], shape: Shape) -> _Changes:
    found: _Changes = ({}, {}, {})
    removed, modified, added = found
    if len(old) == len(new) and (pairs := _aligned(old, new, shape)) is not None:
        for element, (one, other) in pairs.items():
            if one is not other and not same_json(one, other):
                _note(element, one, other, shape.element, found)
        return found
    before, after = _by_element(old, shape), _by_element(new, shape)
    for element in {**before, **after}:
        was, now = before.get(element, []), after.get(element, [])
        if len(was) > 1 or len(now) > 1:
            if not same_json(was, now):
                target = added if not was else removed if not now else modified
                target[element] = {}
        elif not was:
            added[element] = _everything(now[0], shape.element)
        elif not now:
            removed[element] = _everything(was[0], shape.element)
        elif not same_json(was[0], now[0]):
            _note(element, was[0], now[0], shape.element, found)
    return found


def _aligned(old: list[Any], new: list[Any], shape: Shape) -> dict[str, tuple[Any, Any]] | None:
    """The entries of both by element, if both have the same ones in the same order, each once; else None."""
    pairs: dict[str, tuple[Any, Any]] = {}
    for one, other in zip(old, new, strict=True):
        element = list_element(other, shape)
        if element is None or element in pairs or (one is not other and list_element(one, shape) != element):
            return None
        pairs[element] = (one, other)
    return pairs


def _by_element(items: list[Any], shape: Shape) -> dict[str, list[Any]]:
    result: dict[str, list[Any]] = {}
    for item in items:
        element = list_element(item, shape)
        if element is not None:
            result.setdefault(element, []).append(item)
    return result


def _everything(value: Any, shape: Shape) -> FieldSet:
    """The subtree of a value that is wholly new or wholly gone: every level of it is a member."""
    if value is None or isinstance(value, (str, int, float)):
        return {}
    children: FieldSet = {}
    if _granular_map(value, shape):
        for name, item in value.items():
            single = not isinstance(item, (dict, list))
            children["f:" + name] = {} if single else _everything(item, shape.child(name) or DEDUCED)
    elif _granular_list(value, shape):
        for item in value:
            element = list_element(item, shape)
            if element is not None:
                children[element] = _everything(item, shape.element)
    return node_of(True, children) or {}


# --- removing ------------------------------------------------------------------------------------------------------


def remove_items(obj: Obj, fields: FieldSet, schema: Schema | None, *, nulls: bool = False) -> Obj:
    """``obj`` without the members of ``fields``; what is inside atomic maps and lists is never taken out. ``nulls``: a
    map or list that lost its last item is null, not gone."""
    return _remove(obj, fields, shape_of(schema), nulls) or {}


def _remove(value: Any, fields: FieldSet, shape: Shape, nulls: bool) -> Any:
    if _granular_map(value, shape):
        return _remove_from_map(value, fields, shape, nulls)
    if _granular_list(value, shape):
        return _remove_from_list(value, fields, shape, nulls)
    return value


def _remove_from_map(value: Obj, fields: FieldSet, shape: Shape, nulls: bool) -> Obj | None:
    result = {}
    for name, item in value.items():
        node = fields.get("f:" + name)
        if node is not None and fieldset.is_member(node):
            continue
        if node:
            item = _remove(item, node, shape.child(name) or DEDUCED, nulls)
            if item is None and not nulls:
                continue
        result[name] = item
    return result or None


def _remove_from_list(value: list[Any], fields: FieldSet, shape: Shape, nulls: bool) -> list[Any] | None:
    result = []
    for item in value:
        node = fields.get(list_element(item, shape) or "")
        if node is not None and fieldset.is_member(node):
            continue
        result.append(_remove(item, node, shape.element, nulls) if node else item)
    return result or None


# --- what apply refuses --------------------------------------------------------------------------------------------


def type_errors(obj: Obj, schema: Schema | None) -> list[str]:
    """Why ``obj`` does not fit its schema as an applied configuration, as server-side apply words it."""
    return _errors(obj, shape_of(schema), ())


def _errors(value: Any, shape: Shape, path: tuple[str, ...]) -> list[str]:
    if value is None or shape is DEDUCED or shape.raw_extension:
        return []
    if shape.schema is not None and shape.schema.name in _ANY_SCALAR:
        if not isinstance(value, (dict, list)):
            return []
        return [f"{fieldset.path_text(path)}: expected any scalar, got &{{{_go_text(value)}}}"]
    if isinstance(value, dict):
        return _map_errors(value, shape, path) if shape.type in ("", "object") else [_mismatch(value, shape, path)]
    if isinstance(value, list):
        return _list_errors(value, shape, path) if shape.type in ("", "array") else [_mismatch(value, shape, path)]
    return [] if _scalar_fits(value, shape) else [_mismatch(value, shape, path)]


def _scalar_fits(value: Any, shape: Shape) -> bool:
    if shape.type in ("", "object", "array"):
        return shape.type == ""
    if shape.type == "boolean":
        return isinstance(value, bool)
    if shape.type in ("integer", "number"):
        return isinstance(value, (int, float)) and not isinstance(value, bool)
    return isinstance(value, str)


def _mismatch(value: Any, shape: Shape, path: tuple[str, ...]) -> str:
    expected = {
        "object": "map",
        "array": "list",
        "integer": "numeric (int or float)",
        "number": "numeric (int or float)",
    }
    if shape.type in ("integer", "number"):
        shown = _GO_TYPES[type(value)]
    elif shape.type == "string":
        shown = f"&value.valueUnstructured{{Value:{_go_syntax(value)}}}"
    else:
        shown = f"&{{{_go_text(value)}}}"
    return f"{fieldset.path_text(path)}: expected {expected.get(shape.type, shape.type)}, got {shown}"


_GO_TYPES = {bool: "bool", str: "string", list: "[]interface {}", dict: "map[string]interface {}"}


def _go_text(value: Any) -> str:
    """A JSON value as Go's %v prints it."""
    if isinstance(value, dict):
        return "map[" + " ".join(f"{name}:{_go_text(value[name])}" for name in sorted(value)) + "]"
    if isinstance(value, list):
        return "[" + " ".join(map(_go_text, value)) + "]"
    if isinstance(value, bool):
        return "true" if value else "false"
    return "<nil>" if value is None else str(value)


def _go_syntax(value: Any) -> str:
    """A JSON value as Go's %#v prints it."""
    if isinstance(value, dict):
        entries = (f"{_go_syntax(name)}:{_go_syntax(value[name])}" for name in sorted(value))
        return "map[string]interface {}{" + ", ".join(entries) + "}"
    if isinstance(value, list):
        return "[]interface {}{" + ", ".join(map(_go_syntax, value)) + "}"
    if isinstance(value, str):
        return msgspec.json.encode(value).decode()
    return "interface {}(nil)" if value is None else _go_text(value)


def _map_errors(value: Obj, shape: Shape, path: tuple[str, ...]) -> list[str]:
    errors: list[str] = []
    for name, item in value.items():
        below = shape.child(name)
        if type(item) is str and below is not None and below.type in ("", "string"):
            continue
        here = (*path, "f:" + name)
        if below is None:
            return [*errors, f"{fieldset.path_text(here)}: field not declared in schema"]
        errors += _errors(item, below, here)
    return errors


def _list_errors(value: list[Any], shape: Shape, path: tuple[str, ...]) -> list[str]:
    errors: list[str] = []
    seen: set[str] = set()
    for index, item in enumerate(value):
        element = f"i:{index}" if shape.list_type == "atomic" else list_element(item, shape)
        if element is None:
            return [*errors, f"{fieldset.path_text(path)}: element {index}: {_no_element(item, shape)}"]
        if element in seen:
            shown = fieldset.path_text((element,))
            errors.append(f"{fieldset.path_text(path)}: duplicate entries for key {shown}")
        seen.add(element)
        errors += _errors(item, shape.element, (*path, element))
    return errors


def _no_element(item: Any, shape: Shape) -> str:
    if shape.list_type == "set":
        if item is None:
            return "associative list without keys has an element that's an explicit null"
        if isinstance(item, list):
            return "not supported: associative list with lists as elements"
        return "associative list without keys has an element that's a map type"
    if not isinstance(item, dict):
        kind = "a null element" if item is None else "non-map elements"
        return f"associative list with keys may not have {kind}"
    keys = " ".join(f'"{name}"' for name in shape.keys)
    return (
        f"associative list with keys has an element that omits all key fields [{keys}] (and doesn't have default "
        "values for any key fields)"
    )
