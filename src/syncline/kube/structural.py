"""Custom resources under their structural schemas: prune, fill in defaults, validate.

Called by the embedded API for every custom resource. In come an object and the :class:`Schema` of its version, made
with ``Schema.from_openapi(…, resource=True)``; out come a new object that shares every unchanged part, or causes in
Kubernetes' words. Validation rules (CEL) are in ``rules.py``; a schema's own shape is checked in ``schemacheck.py``.

Source: apiextensions-apiserver ``pkg/apiserver/schema`` (pruning, defaulting, listtype, objectmeta).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from syncline.kube import fieldcauses as causes
from syncline.kube.errors import FieldCause
from syncline.kube.objects import Obj
from syncline.kube.schema.model import Schema
from syncline.kube.schemacheck import check_schema
from syncline.kube.valuecheck import check_value

__all__ = ["check_schema", "fill_defaults", "prune", "unknown_fields", "validate"]

Pruned = Callable[[str], None]


# --- pruning -------------------------------------------------------------------------------------------------------


def prune(obj: Obj, schema: Schema) -> Obj:
    """``obj`` without the fields that the schema does not declare."""
    pruned = _prune(obj, schema, "", lambda path: None)
    assert isinstance(pruned, dict)
    return pruned


def unknown_fields(obj: Obj, schema: Schema) -> list[str]:
    """What :func:`prune` would take out, as strict decoding words it: ``unknown field "spec.foo"``; sorted."""
    found: list[str] = []
    _prune(obj, schema, "", found.append)
    return [f'unknown field "{path}"' for path in sorted(found)]


def _prune(value: Any, schema: Schema | None, path: str, gone: Pruned) -> Any:
    if isinstance(value, dict):
        return _prune_map(value, schema, path, gone)
    if isinstance(value, list) and schema is not None and (schema.items is not None or not schema.preserve_unknown):
        items = [_prune(item, schema.items, f"{path}[{index}]", gone) for index, item in enumerate(value)]
        return value if all(a is b for a, b in zip(items, value, strict=True)) else items
    return value


def _prune_map(value: Obj, schema: Schema | None, path: str, gone: Pruned) -> Obj:
    result: Obj = {}
    same = True
    for name, item in value.items():
        here = causes.child(path, name)
        below = schema.field(name) if schema else None
        if below is not None:
            is_metadata = schema is not None and schema.embedded and name == "metadata"
            kept = _prune_metadata(item, below, here, gone) if is_metadata else _prune(item, below, here, gone)
            result[name] = kept
            same = same and kept is item
        elif schema is not None and schema.preserve_unknown:
            result[name] = item
        else:
            gone(here)
            same = False
    return value if same else result


def _prune_metadata(value: Any, schema: Schema, path: str, gone: Pruned) -> Any:
    """Object metadata has its own type: undeclared fields go, declared ones stay whole."""
    if not isinstance(value, dict):
        return value
    unknown = [name for name in value if name not in schema.properties]
    for name in unknown:
        gone(causes.child(path, name))
    return {name: item for name, item in value.items() if name in schema.properties} if unknown else value


# --- defaults ------------------------------------------------------------------------------------------------------


def fill_defaults(obj: Obj, schema: Schema) -> Obj:
    """``obj`` with declared defaults where fields are missing, or null without being nullable.

    A null that is neither allowed nor replaced by a default is dropped (``PruneNonNullableNullsWithoutDefaults``).
    """
    filled = _fill(obj, schema)
    assert isinstance(filled, dict)
    return filled


def _fill(value: Any, schema: Schema | None) -> Any:
    if schema is None:
        return value
    if isinstance(value, dict):
        return _fill_map(value, schema)
    if isinstance(value, list) and schema.items is not None:
        items = [_fill(_instead_of_null(item, schema.items), schema.items) for item in value]
        return value if all(a is b for a, b in zip(items, value, strict=True)) else items
    return value


def _instead_of_null(value: Any, schema: Schema) -> Any:
    return schema.default if value is None and not schema.nullable and schema.default is not None else value


def _fill_map(value: Obj, schema: Schema) -> Obj:
    result = value
    for name in schema.properties:
        if value.get(name) is None:
            below = schema.field(name)
            missing = below is not None and below.default is not None and (name not in value or not below.nullable)
            if below is not None and missing:
                result = dict(result) if result is value else result
                result[name] = below.default
    for name, item in list(result.items()):
        below = schema.field(name)
        if below is None:
            continue
        filled = _fill(item, below)
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


def validate(obj: Obj, schema: Schema) -> list[FieldCause]:
    """Why a pruned and defaulted object is refused: values, embedded resources, duplicates in sets and map lists.

    Names and labels of the object itself, and validation rules, are checked elsewhere.
    """
    return [*check_value(obj, schema.raw), *_embedded(obj, schema.raw, ""), *_lists(obj, schema.raw, "")]


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
        if name not in value:
            found.append(causes.required(here))
        elif not isinstance(value[name], str):
            found.append(causes.invalid_value(here, value[name], "must be a string"))
        elif not value[name]:
            found.append(causes.invalid_value(here, "", "must not be empty"))
    return found


def _below(value: Any, raw: Obj, path: str) -> list[tuple[Any, Any, str]]:
    """The children of a value that a schema describes: (value, schema, path)."""
    if isinstance(value, dict):
        properties, additional = raw.get("properties") or {}, raw.get("additionalProperties")
        return [(value[name], properties.get(name, additional), causes.child(path, name)) for name in sorted(value)]
    if isinstance(value, list):
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
    told: set[bytes] = set()
    found = []
    for index, item in enumerate(items):
        text = msgspec.json.encode(item, order="sorted")
        if text in seen and text not in told:
            found.append(causes.duplicate(f"{path}[{index}]", item))
            told.add(text)
        seen.add(text)
    return found
