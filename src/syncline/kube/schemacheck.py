"""Is the schema of a CustomResourceDefinition structural, and are its defaults valid.

Called when a definition is created or changed. In comes the definition, out come causes whose paths are those that
Kubernetes names: ``spec.validation.openAPIV3Schema…`` where all versions share one schema, else
``spec.versions[i].schema.openAPIV3Schema…``. Never compiles validation rules (``rules.py`` does).

Source: apiextensions-apiserver ``pkg/apis/apiextensions/validation`` and ``pkg/apiserver/schema/validation.go``.
"""

from __future__ import annotations

import re
from enum import Enum
from typing import Any, assert_never

from syncline.kube import fieldcauses as causes
from syncline.kube.errors import FieldCause
from syncline.kube.objects import Obj, dig
from syncline.kube.re2 import compile_pattern
from syncline.kube.valuecheck import check_value

__all__ = ["MAX_SCHEMA_DEPTH", "check_schema", "version_schemas"]

MAX_SCHEMA_DEPTH = 100
"""Deeper schemas are refused before Python's own recursion limit is."""

TYPES = ("array", "boolean", "integer", "number", "object", "string")
UNSUPPORTED = ("id", "additionalItems", "patternProperties", "definitions", "dependencies", "$ref")
COMBINATIONS = ("allOf", "anyOf", "oneOf")
NESTED_FORBIDDEN = ("type", "title", "description", "default", "nullable", "additionalProperties")
NESTED_EXTENSIONS = (
    "x-kubernetes-preserve-unknown-fields",
    "x-kubernetes-embedded-resource",
    "x-kubernetes-int-or-string",
    "x-kubernetes-list-type",
    "x-kubernetes-list-map-keys",
    "x-kubernetes-map-type",
)
INT_OR_STRING = [{"type": "integer"}, {"type": "string"}]


class Level(Enum):
    """Where a schema stands, because messages differ."""

    ROOT = "root"
    FIELD = "field"
    ITEM = "item"


def check_schema(crd: Obj) -> list[FieldCause]:
    """Everything that is wrong with the schemas of a definition's versions."""
    found: list[FieldCause] = []
    for path, raw in version_schemas(crd):
        if not isinstance(raw, dict):
            found.append(causes.required(path.removesuffix(".openAPIV3Schema"), "schemas are required"))
            continue
        found += _document(raw, path, 0)
        found += _structure(raw, Level.ROOT, path)
        found += _defaults(raw, path)
    return found


def version_schemas(crd: Obj) -> list[tuple[str, Any]]:
    """(path, schema) of each distinct schema; one shared by all versions is told once."""
    versions = [version for version in dig(crd, "spec", "versions", default=[]) if isinstance(version, dict)]
    raws = [dig(version, "schema", "openAPIV3Schema") for version in versions]
    if raws and all(raw == raws[0] for raw in raws):
        return [("spec.validation.openAPIV3Schema", raws[0])]
    return [(f"spec.versions[{index}].schema.openAPIV3Schema", raw) for index, raw in enumerate(raws)]


# --- what an OpenAPI document may say at all -----------------------------------------------------------------------


def _document(raw: Obj, path: str, depth: int) -> list[FieldCause]:
    if depth > MAX_SCHEMA_DEPTH:
        return [causes.forbidden(path, f"schema is nested deeper than {MAX_SCHEMA_DEPTH} levels")]
    found = _keywords(raw, path) + _lists(raw, path) + _maps(raw, path)
    for below, here in _children(raw, path):
        found += _document(below, here, depth + 1)
    return found


def _children(raw: Obj, path: str) -> list[tuple[Obj, str]]:
    """Every schema directly below: properties, items, additional properties, combinations."""
    result = [(below, f"{path}.properties[{name}]") for name, below in sorted((raw.get("properties") or {}).items())]
    result += [(raw[name], f"{path}.{name}") for name in ("items", "additionalProperties", "not") if name in raw]
    for name in COMBINATIONS:
        result += [(below, f"{path}.{name}[{index}]") for index, below in enumerate(raw.get(name) or [])]
    return [(below, here) for below, here in result if isinstance(below, dict)]


def _keywords(raw: Obj, path: str) -> list[FieldCause]:
    found = [causes.forbidden(f"{path}.{name}", f"{name} is not supported") for name in UNSUPPORTED if raw.get(name)]
    if raw.get("uniqueItems"):
        why = "uniqueItems cannot be set to true since the runtime complexity becomes quadratic"
        found.append(causes.forbidden(f"{path}.uniqueItems", why))
    if raw.get("additionalProperties") is False:
        found.append(causes.forbidden(f"{path}.additionalProperties", "additionalProperties cannot be set to false"))
    elif raw.get("additionalProperties") and raw.get("properties"):
        why = "additionalProperties and properties are mutual exclusive"
        found.append(causes.forbidden(f"{path}.additionalProperties", why))
    kind = raw.get("type")
    if kind == "null":
        why = "type cannot be set to null, use nullable as an alternative"
        found.append(causes.forbidden(f"{path}.type", why))
    elif kind and kind not in TYPES:
        found.append(causes.not_supported(f"{path}.type", kind, TYPES))
    if isinstance(raw.get("items"), list):
        found.append(causes.forbidden(f"{path}.items", "items must be a schema object and not an array"))
    return found + _pattern(raw, path)


def _pattern(raw: Obj, path: str) -> list[FieldCause]:
    try:
        compile_pattern(raw.get("pattern") or "")
    except re.error as error:
        why = f"must be a valid regular expression, but isn't: {error}"
        return [causes.invalid_value(f"{path}.pattern", raw["pattern"], why)]
    return []


def _lists(raw: Obj, path: str) -> list[FieldCause]:
    found: list[FieldCause] = []
    kind, list_type, keys = raw.get("type"), raw.get("x-kubernetes-list-type"), raw.get("x-kubernetes-list-map-keys")
    if kind == "array" and raw.get("items") is None:
        found.append(causes.required(f"{path}.items", "must be specified"))
    if list_type is not None and kind != "array":
        why = "must be array if x-kubernetes-list-type is specified"
        found.append(causes.invalid_value(f"{path}.type", kind, why) if kind else causes.required(f"{path}.type", why))
    if list_type is not None and list_type not in ("atomic", "set", "map"):
        found.append(causes.not_supported(f"{path}.x-kubernetes-list-type", list_type, ("atomic", "set", "map")))
    if keys and list_type != "map":
        why = "must be map if x-kubernetes-list-map-keys is non-empty"
        here = f"{path}.x-kubernetes-list-type"
        found.append(causes.required(here, why) if list_type is None else causes.invalid_value(here, list_type, why))
    if list_type == "map":
        found += _map_list(raw, keys or [], path)
    return found


def _map_list(raw: Obj, keys: list[str], path: str) -> list[FieldCause]:
    found: list[FieldCause] = []
    items = raw.get("items")
    if not keys:
        why = "must not be empty if x-kubernetes-list-type is map"
        found.append(causes.required(f"{path}.x-kubernetes-list-map-keys", why))
    if items is None:
        found.append(causes.required(f"{path}.items", "must have a schema if x-kubernetes-list-type is map"))
    if not isinstance(items, dict):
        return found
    if items.get("type") != "object":
        why = "must be object if parent array's x-kubernetes-list-type is map"
        found.append(causes.invalid_value(f"{path}.items.type", items.get("type") or "", why))
    properties = items.get("properties") or {}
    if len(set(keys)) != len(keys):
        why = "must not contain duplicate entries"
        found.append(causes.invalid_value(f"{path}.x-kubernetes-list-map-keys", keys, why))
    for key in keys:
        if key not in properties:
            why = "entries must all be names of item properties"
            found.append(causes.invalid_value(f"{path}.x-kubernetes-list-map-keys", key, why))
        else:
            found += _map_key(key, properties[key], items, path)
    return found


def _map_key(key: str, schema: Obj, items: Obj, path: str) -> list[FieldCause]:
    here = f"{path}.items.properties[{key}]"
    if schema.get("type") in ("array", "object"):
        why = "must be a scalar type if parent array's x-kubernetes-list-type is map"
        return [causes.invalid_value(f"{here}.type", schema["type"], why)]
    if key not in (items.get("required") or []) and schema.get("default") is None:
        why = "this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property"
        return [causes.required(f"{here}.default", why)]
    return []


def _maps(raw: Obj, path: str) -> list[FieldCause]:
    map_type, kind = raw.get("x-kubernetes-map-type"), raw.get("type")
    found: list[FieldCause] = []
    if map_type is None:
        return found
    if kind != "object":
        why = "must be object if x-kubernetes-map-type is specified"
        found.append(causes.invalid_value(f"{path}.type", kind, why) if kind else causes.required(f"{path}.type", why))
    if map_type not in ("atomic", "granular"):
        found.append(causes.not_supported(f"{path}.x-kubernetes-map-type", map_type, ("atomic", "granular")))
    return found


# --- structural invariants -----------------------------------------------------------------------------------------


def _structure(raw: Obj, level: Level, path: str) -> list[FieldCause]:
    found: list[FieldCause] = []
    if isinstance(raw.get("items"), dict):
        found += _structure(raw["items"], Level.ITEM, f"{path}.items")
    for name, below in sorted((raw.get("properties") or {}).items()):
        if isinstance(below, dict):
            found += _structure(below, Level.FIELD, f"{path}.properties[{name}]")
    additional = raw.get("additionalProperties")
    if isinstance(additional, dict):
        found += _structure(additional, Level.FIELD, f"{path}.additionalProperties")
    if additional and level is Level.ROOT:
        found.append(causes.forbidden(f"{path}.additionalProperties", "must not be used at the root"))
    found += _extensions(raw, path) + _types(raw, level, path) + _implicit_fields(raw, level, path)
    for below, here in _combinations(raw, path):
        found += _nested(below, here)
    return found


def _extensions(raw: Obj, path: str) -> list[FieldCause]:
    found: list[FieldCause] = []
    if raw.get("x-kubernetes-int-or-string"):
        why = "must be false if x-kubernetes-int-or-string is true"
        for name in ("x-kubernetes-preserve-unknown-fields", "x-kubernetes-embedded-resource"):
            if raw.get(name):
                found.append(causes.invalid_value(f"{path}.{name}", True, why))
        if raw.get("type"):
            why = "must be empty if x-kubernetes-int-or-string is true"
            found.append(causes.invalid_value(f"{path}.type", raw["type"], why))
    if raw.get("x-kubernetes-preserve-unknown-fields") is False:
        here = f"{path}.x-kubernetes-preserve-unknown-fields"
        found.append(causes.invalid_value(here, False, "must be true or undefined"))
    return found


def _types(raw: Obj, level: Level, path: str) -> list[FieldCause]:
    kind = raw.get("type") or ""
    here = f"{path}.type"
    if raw.get("x-kubernetes-embedded-resource") and kind != "object":
        why = "must be object if x-kubernetes-embedded-resource is true"
        return [causes.invalid_value(here, kind, why) if kind else causes.required(here, why)]
    if not kind:
        anything = raw.get("x-kubernetes-int-or-string") or raw.get("x-kubernetes-preserve-unknown-fields")
        return [] if anything and level is not Level.ROOT else [causes.required(here, _missing_type(level))]
    if level is Level.ROOT and kind != "object":
        return [causes.invalid_value(here, kind, "must be object at the root")]
    return []


def _missing_type(level: Level) -> str:
    match level:
        case Level.ROOT:
            return "must not be empty at the root"
        case Level.ITEM:
            return "must not be empty for specified array items"
        case Level.FIELD:
            return "must not be empty for specified object fields"
        case _:
            assert_never(level)


def _implicit_fields(raw: Obj, level: Level, path: str) -> list[FieldCause]:
    """``apiVersion``, ``kind`` and ``metadata`` are given, so a schema may say little about them."""
    embedded = bool(raw.get("x-kubernetes-embedded-resource"))
    properties = raw.get("properties") or {}
    found: list[FieldCause] = []
    if level is Level.ROOT or embedded:
        for name, kind in (("apiVersion", "string"), ("kind", "string"), ("metadata", "object")):
            stated = dig(properties, name, "type")
            if name in properties and stated != kind:
                where = f"{path}.properties[{name}].type"
                found.append(causes.invalid_value(where, stated or "", f"must be {kind}"))
    if level is Level.ROOT and not _plain_metadata(properties.get("metadata") or {}):
        why = "must not specify anything other than name and generateName, but metadata is implicitly specified"
        found.append(causes.forbidden(f"{path}.properties[metadata]", why))
    if embedded and not raw.get("x-kubernetes-preserve-unknown-fields") and not properties:
        why = "must not be empty if x-kubernetes-embedded-resource is true without x-kubernetes-preserve-unknown-fields"
        found.append(causes.required(f"{path}.properties", why))
    if embedded and raw.get("additionalProperties"):
        why = "must not be used if x-kubernetes-embedded-resource is set"
        found.append(causes.forbidden(f"{path}.additionalProperties", why))
    return found


def _plain_metadata(schema: Obj) -> bool:
    allowed = {"type", "properties", "description"}
    return schema.keys() <= allowed and set(schema.get("properties") or {}) <= {"name", "generateName"}


def _combinations(raw: Obj, path: str) -> list[tuple[Obj, str]]:
    result: list[tuple[Obj, str]] = []
    any_of, all_of = raw.get("anyOf") or [], raw.get("allOf") or []
    open_type = bool(raw.get("x-kubernetes-int-or-string"))
    if not (open_type and any_of == INT_OR_STRING):
        result += [(below, f"{path}.anyOf[{index}]") for index, below in enumerate(any_of)]
    for index, below in enumerate(all_of):
        if not (open_type and index == 0 and dig(below, "anyOf") == INT_OR_STRING):
            result.append((below, f"{path}.allOf[{index}]"))
    result += [(below, f"{path}.oneOf[{index}]") for index, below in enumerate(raw.get("oneOf") or [])]
    if isinstance(raw.get("not"), dict):
        result.append((raw["not"], f"{path}.not"))
    return [(below, here) for below, here in result if isinstance(below, dict)]


def _nested(raw: Obj, path: str) -> list[FieldCause]:
    """Inside a combination only values may be restricted."""
    found = []
    for name in NESTED_FORBIDDEN:
        if raw.get(name) not in (None, "", False):
            why = "must be false to be structural" if name == "nullable" else "must be empty to be structural"
            if name == "additionalProperties" or name == "default":
                why = "must be undefined to be structural"
            found.append(causes.forbidden(f"{path}.{name}", why))
    for name in NESTED_EXTENSIONS:
        if raw.get(name):
            boolean = raw[name] is True
            why = "must be false to be structural" if boolean else "must be undefined to be structural"
            found.append(causes.forbidden(f"{path}.{name}", why))
    if "metadata" in (raw.get("properties") or {}):
        where = f"{path}.properties[metadata]"
        found.append(causes.forbidden(where, "must not be specified in a nested context"))
    for name, below in sorted((raw.get("properties") or {}).items()):
        found += _nested(below, f"{path}.properties[{name}]")
    if isinstance(raw.get("items"), dict):
        found += _nested(raw["items"], f"{path}.items")
    for below, here in _combinations(raw, path):
        found += _nested(below, here)
    return found


# --- defaults ------------------------------------------------------------------------------------------------------


def _defaults(raw: Obj, path: str) -> list[FieldCause]:
    """Each default must itself satisfy the schema that it stands in."""
    found: list[FieldCause] = []
    if raw.get("default") is not None:
        found += causes.under(f"{path}.default", check_value(raw["default"], raw))
    for name, below in sorted((raw.get("properties") or {}).items()):
        if isinstance(below, dict):
            found += _defaults(below, f"{path}.properties[{name}]")
    for name in ("items", "additionalProperties"):
        if isinstance(raw.get(name), dict):
            found += _defaults(raw[name], f"{path}.{name}")
    return found
