"""Custom resources under their structural schemas: prune, fill in defaults, validate.

Called by the embedded API for every custom resource. In come an object and the :class:`Schema` of its version, made
with ``Schema.from_openapi(…, resource=True)``; returns a new object that shares every unchanged part, or causes in
Kubernetes' words. Validation rules (CEL) are in ``rules.py``; a schema's own shape is checked in ``schemacheck.py``.

Source: apiextensions-apiserver ``pkg/apiserver/schema`` (pruning, defaulting, listtype, objectmeta).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from operator import is_
from typing import Any

import msgspec

from syncline.kube.errors import FieldCause
from syncline.kube.objects import Obj
from syncline.kube.schema import fieldcauses as causes
from syncline.kube.schema.custom.valuecheck import UNRELATED, check_value
from syncline.kube.schema.model import Schema
from syncline.kube.schema.valuefits import Fits, fits_of
from syncline.kube.text.jsontext import ids_of
from syncline.kube.text.names import dns_label_1035

Pruned = Callable[[str], None] | None
"""Receives the path of each field that goes; None: nothing asks, and paths are not made."""


# --- pruning -------------------------------------------------------------------------------------------------------


def prune(obj: Obj, schema: Schema, known: Obj | None = None) -> Obj:
    """``obj`` without the fields that the schema does not declare. ``known``: an object that was pruned by the schema;
    parts that are the same Python object in it are not looked at."""
    pruned = _prune(obj, schema, "", None, known=known)
    assert isinstance(pruned, dict)
    return pruned


def prune_part(value: Any, schema: Schema) -> Any:
    """As :func:`prune` for a value inside an object, such as a default."""
    return _prune(value, schema, "", None)


def unknown_fields(obj: Obj, schema: Schema) -> list[str]:
    """What :func:`prune` would take out, as strict decoding words it: ``unknown field "spec.foo"``; sorted."""
    found: list[str] = []
    _prune(obj, schema, "", found.append)
    return [f'unknown field "{path}"' for path in sorted(found)]


def _prune(value: Any, schema: Schema | None, path: str, gone: Pruned, *, free: bool = False, known: Any = None) -> Any:
    """``free``: inside a list of unknown fields, so that only what is declared further down is pruned."""
    if value is known:
        return value
    if isinstance(value, dict):
        return _prune_map(value, schema, path, gone, free, known)
    if isinstance(value, list):
        if free and schema is None:
            return value
        below = schema.items if schema is not None else None
        inside = free or (schema is not None and schema.preserve_unknown)
        if inside and below is None:
            return value
        same = ids_of(known)
        items = [
            item
            if type(item) in _PLAIN or id(item) in same
            else _prune(item, below, f"{path}[{at}]" if gone else "", gone, free=inside)
            for at, item in enumerate(value)
        ]
        return value if all(map(is_, items, value)) else items
    return value


def _prune_map(value: Obj, schema: Schema | None, path: str, gone: Pruned, free: bool, known: Any) -> Obj:
    result: Obj = {}
    same, before = True, known if isinstance(known, dict) else {}
    for name, item in value.items():
        here = causes.child(path, name) if gone else ""
        below = schema.field(name) if schema else None
        if schema is not None and schema.embedded and name in _META_FIELDS:
            result[name] = item
        elif below is not None or (schema is not None and schema.raw.get("additionalProperties") is False):
            kept = item if type(item) in _PLAIN else _prune(item, below, here, gone, known=before.get(name))
            result[name] = kept
            same = same and kept is item
        elif free or (schema is not None and schema.preserve_unknown):
            result[name] = item
        else:
            same = False
            if gone is not None:
                gone(here)
    return value if same else result


_PLAIN = frozenset({str, int, float, bool, type(None)})
"""Types of values that have no fields."""
_META_FIELDS = frozenset({"apiVersion", "kind", "metadata"})
"""Read by their own types (``embedded.py``), never pruned."""


# --- defaults ------------------------------------------------------------------------------------------------------


def fill_defaults(obj: Obj, schema: Schema, known: Obj | None = None) -> Obj:
    """``obj`` with declared defaults where fields are missing, or null without being nullable.

    A null that is neither allowed nor replaced by a default is dropped (``PruneNonNullableNullsWithoutDefaults``).
    ``known``: an object that has its defaults; parts that are the same Python object in it are not looked at.
    """
    filled = _fill(obj, schema, known)
    assert isinstance(filled, dict)
    return filled


def _fill(value: Any, schema: Schema | None, known: Any = None) -> Any:
    if schema is None or (value is known and value is not None):
        return value
    if isinstance(value, dict):
        return _fill_map(value, schema, known)
    if isinstance(value, list) and schema.items is not None:
        same = ids_of(known)
        items = [
            item
            if item is not None and (type(item) in _PLAIN or id(item) in same)
            else _fill(_instead_of_null(item, schema.items), schema.items)
            for item in value
        ]
        return value if all(map(is_, items, value)) else items
    return value


def _instead_of_null(value: Any, schema: Schema) -> Any:
    return schema.default if value is None and not schema.nullable and schema.default is not None else value


def _fill_map(value: Obj, schema: Schema, known: Any) -> Obj:
    result, before = value, known if isinstance(known, dict) else {}
    for name in schema.properties:
        if value.get(name) is None:
            below = schema.field(name)
            missing = below is not None and below.default is not None and (name not in value or not below.nullable)
            if below is not None and missing:
                result = dict(result) if result is value else result
                result[name] = below.default
    for name, item in list(result.items()):
        if item is not None and type(item) in _PLAIN:
            continue
        below = schema.field(name)
        if below is None:
            continue
        filled = _fill(item, below, before.get(name))
        if filled is not item or (item is None and _forbids_null(below)):
            result = dict(result) if result is value else result
            if filled is None:
                del result[name]
            else:
                result[name] = filled
    return result


def _forbids_null(schema: Schema) -> bool:
    return not schema.nullable and bool(schema.type or schema.int_or_string)


# --- validation ----------------------------------------------------------------------------------------------------


def validate(obj: Obj, schema: Schema, old: Obj | None = None) -> list[FieldCause]:
    """Why a pruned and defaulted object is refused: values, embedded resources, duplicates in sets and map lists.

    ``old`` is what it replaces: what was wrong in it and did not change is let through. Names and labels of the object
    itself, and validation rules, are checked elsewhere.
    """
    before = UNRELATED if old is None else old
    found = [] if _fits(schema)(obj, before) else check_value(obj, schema.raw, "", before)
    parts = _parts(schema)
    if parts is None:
        return found
    found += _embedded(obj, parts, "")
    twice = _lists(obj, parts, "")
    return found if twice and old is not None and _lists(old, parts, "") else found + twice


@lru_cache(maxsize=1024)
def _fits(schema: Schema) -> Fits:
    return fits_of(schema.raw)


@lru_cache(maxsize=1024)
def _parts(schema: Schema) -> Obj | None:
    """The schema as far as it holds whole objects, sets or lists that are maps, which most of it does not."""
    return _reduced(schema.raw)


_TELLING = ("x-kubernetes-embedded-resource", "x-kubernetes-list-type", "x-kubernetes-list-map-keys")


def _reduced(raw: Any, *, inside: bool = False) -> Obj | None:
    """None where neither the schema nor anything below it is of interest."""
    if not isinstance(raw, Mapping):
        return None
    kept: Obj = {key: raw[key] for key in _TELLING if key in raw} if inside else {}
    telling = bool(kept.get("x-kubernetes-embedded-resource")) or kept.get("x-kubernetes-list-type") in ("set", "map")
    kept = kept if telling else {}
    properties = {name: _reduced(below, inside=True) for name, below in (raw.get("properties") or {}).items()}
    # A field that is described is not one of the others, also where nothing in it is of interest.
    additional = _reduced(raw.get("additionalProperties"), inside=True)
    if any(properties.values()) or (additional is not None and properties):
        kept["properties"] = properties
    for key, below in (("additionalProperties", additional), ("items", _reduced(raw.get("items"), inside=True))):
        if below is not None:
            kept[key] = below
    return kept or None


def check_part(value: Any, raw: Obj, path: str) -> list[FieldCause]:
    """Why a value inside an object, such as a default, does not satisfy its schema."""
    embedded = _embedded(value, raw, path)
    return embedded or causes.under(path, check_value(value, raw))


def _embedded(value: Any, raw: Any, path: str) -> list[FieldCause]:
    if not isinstance(raw, dict):
        return []
    found: list[FieldCause] = []
    if path and raw.get("x-kubernetes-embedded-resource") and isinstance(value, dict):
        found += _type_meta(value, path)
    for item, below, here in _below(value, raw, path):
        found += _embedded(item, below, here)
    return found


def _type_meta(value: Obj, path: str) -> list[FieldCause]:
    found: list[FieldCause] = []
    for name in ("apiVersion", "kind"):
        here = causes.child(path, name)
        text = value.get(name)
        if name not in value:
            found.append(causes.required(here))
        elif not isinstance(text, str):
            found.append(causes.invalid_value(here, text, "must be a string"))
        elif not text:
            found.append(causes.invalid_value(here, "", "must not be empty"))
        elif name == "apiVersion" and text.count("/") > 1:
            found.append(causes.invalid_value(here, text, f"unexpected GroupVersion string: {text}"))
        elif name == "kind" and dns_label_1035(text.lower()):
            why = f"may have mixed case, but should otherwise match: {','.join(dns_label_1035(text.lower()))}"
            found.append(causes.invalid_value(here, text, why))
    return found


def _below(value: Any, raw: Obj, path: str) -> list[tuple[Any, Any, str]]:
    """The children of a value that a schema describes: (value, schema, path)."""
    if isinstance(value, dict):
        properties, additional = raw.get("properties") or {}, raw.get("additionalProperties")
        described = [(name, properties.get(name, additional)) for name in sorted(value)]
        return [(value[name], below, causes.child(path, name)) for name, below in described if below]
    if isinstance(value, list) and raw.get("items"):
        return [(item, raw.get("items"), f"{path}[{index}]") for index, item in enumerate(value)]
    return []


def _lists(value: Any, raw: Any, path: str) -> list[FieldCause]:
    if not isinstance(raw, dict):
        return []
    found: list[FieldCause] = []
    if isinstance(value, list):
        kind = raw.get("x-kubernetes-list-type")
        if kind == "set":
            found += _duplicates(value, path)
        elif kind == "map":
            keys = raw.get("x-kubernetes-list-map-keys") or []
            found += _duplicates([_key_fields(item, keys) for item in value], path)
    for item, below, here in _below(value, raw, path):
        found += _lists(item, below, here)
    return found


def _key_fields(item: Any, keys: list[str]) -> Any:
    return {key: item[key] for key in keys if key in item} if isinstance(item, dict) else item


def _duplicates(items: list[Any], path: str) -> list[FieldCause]:
    seen: set[bytes] = set()
    reported: set[bytes] = set()
    found = []
    for index, item in enumerate(items):
        text = msgspec.json.encode(item, order="sorted")
        if text in seen and text not in reported:
            found.append(causes.duplicate(f"{path}[{index}]", item))
            reported.add(text)
        seen.add(text)
    return found
