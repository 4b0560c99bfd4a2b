"""Is a schema structural: every field and item has a type outside of combinations, and combinations only restrict.

Called by ``schemacheck.py`` for the schemas of a definition. Takes a plain ``openAPIV3Schema`` and its path, out come
causes in Kubernetes' words. Source: apiextensions-apiserver ``pkg/apiserver/schema`` (validation.go, complete.go).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from enum import Enum
from typing import Any, assert_never

from syncline.kube.errors import FieldCause
from syncline.kube.objects import Obj, dig
from syncline.kube.schema import fieldcauses as causes
from syncline.kube.text.re2 import compile_pattern

COMBINATIONS = ("allOf", "anyOf", "oneOf")
UNSUPPORTED = ("id", "$schema", "$ref", "patternProperties", "dependencies", "additionalItems", "definitions")
SCALARS = frozenset({"boolean", "integer", "number", "string"})
SCALAR_KEYWORDS = frozenset({"type", "format", "description"})
INT_OR_STRING = [{"type": "integer"}, {"type": "string"}]
NESTED_FORBIDDEN = (
    ("type", "must be empty to be structural"),
    ("additionalProperties", "must be undefined to be structural"),
    ("default", "must be undefined to be structural"),
    ("title", "must be empty to be structural"),
    ("description", "must be empty to be structural"),
    ("nullable", "must be false to be structural"),
    ("x-kubernetes-preserve-unknown-fields", "must be false to be structural"),
    ("x-kubernetes-embedded-resource", "must be false to be structural"),
    ("x-kubernetes-int-or-string", "must be false to be structural"),
    ("x-kubernetes-list-map-keys", "must be empty to be structural"),
    ("x-kubernetes-list-type", "must be undefined to be structural"),
    ("x-kubernetes-map-type", "must be undefined to be structural"),
    ("x-kubernetes-validations", "must be empty to be structural"),
)


class Level(Enum):
    """Where a schema stands, because messages differ."""

    ROOT = "root"
    FIELD = "field"
    ITEM = "item"


def is_scalar(raw: Obj) -> bool:
    """Return whether a schema is only a scalar type, so that nothing in it can be wrong: most schemas are."""
    return raw.get("type") in SCALARS and raw.keys() <= SCALAR_KEYWORDS


def unsupported_keyword(raw: Any) -> str:
    """The first keyword at any depth that no structural schema can be made of; empty if there is none."""
    if not isinstance(raw, dict):
        return ""
    for name in UNSUPPORTED:
        if raw.get(name):
            return name.removeprefix("$")
    if isinstance(raw.get("items"), list):
        return "items"
    for below in _schemas_below(raw):
        found = unsupported_keyword(below)
        if found:
            return found
    return ""


def _schemas_below(raw: Obj) -> Iterator[Any]:
    yield from (raw.get("properties") or {}).values()
    yield from (raw.get(name) for name in ("items", "additionalProperties", "not"))
    for name in COMBINATIONS:
        yield from raw.get(name) or []


def check_structure(raw: Obj, path: str) -> list[FieldCause]:
    """Everything that keeps the schema of a whole resource from being structural."""
    return [*_structure(raw, Level.ROOT, path), *_complete(raw, raw, path, path)]


def _structure(raw: Obj, level: Level, path: str) -> list[FieldCause]:
    found: list[FieldCause] = []
    if level is not Level.ROOT and is_scalar(raw):
        return found
    if raw.get("type") == "array" and raw.get("items") is None:
        found.append(causes.required(f"{path}.items", "must be specified"))
    if isinstance(raw.get("items"), dict):
        found += _structure(raw["items"], Level.ITEM, f"{path}.items")
    for name, below in sorted((raw.get("properties") or {}).items()):
        if isinstance(below, dict):
            found += _structure(below, Level.FIELD, f"{path}.properties[{name}]")
    additional = raw.get("additionalProperties")
    if additional is not None and level is Level.ROOT:
        found.append(causes.forbidden(f"{path}.additionalProperties", "must not be used at the root"))
    if isinstance(additional, dict):
        found += _structure(additional, Level.FIELD, f"{path}.additionalProperties")
    found += _extensions(raw, path) + _types(raw, level, path) + _implicit_fields(raw, level, path)
    return found + _values(raw, path)


def _extensions(raw: Obj, path: str) -> list[FieldCause]:
    if not raw.get("x-kubernetes-int-or-string"):
        return []
    why = "must be false if x-kubernetes-int-or-string is true"
    names = ("x-kubernetes-preserve-unknown-fields", "x-kubernetes-embedded-resource")
    return [causes.invalid_value(f"{path}.{name}", True, why) for name in names if raw.get(name)]


def _types(raw: Obj, level: Level, path: str) -> list[FieldCause]:
    kind = raw.get("type") or ""
    here = f"{path}.type"
    if raw.get("x-kubernetes-embedded-resource") and kind != "object":
        why = "must be object if x-kubernetes-embedded-resource is true"
        return [causes.invalid_value(here, kind, why) if kind else causes.required(here, why)]
    if not kind:
        anything = raw.get("x-kubernetes-int-or-string") or raw.get("x-kubernetes-preserve-unknown-fields")
        return [] if anything else [causes.required(here, _missing_type(level))]
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
    if embedded and raw.get("additionalProperties") is not None:
        why = "must not be used if x-kubernetes-embedded-resource is set"
        found.append(causes.forbidden(f"{path}.additionalProperties", why))
    return found


def _plain_metadata(schema: Obj) -> bool:
    return schema.keys() <= {"type", "properties", "default"} and set(schema.get("properties") or {}) <= {
        "name",
        "generateName",
    }


# --- combinations --------------------------------------------------------------------------------------------------


def _values(raw: Obj, path: str, *, skip_any: bool | None = None) -> list[FieldCause]:
    """The combinations directly in a schema, and its pattern."""
    found: list[FieldCause] = []
    any_of, all_of = raw.get("anyOf") or [], raw.get("allOf") or []
    top = skip_any is None
    if not (any_of == INT_OR_STRING if top else skip_any):
        found += [cause for at, below in enumerate(any_of) for cause in _nested(below, f"{path}.anyOf[{at}]")]
    for at, below in enumerate(all_of):
        skip = top and at == 0 and dig(below, "anyOf") == INT_OR_STRING
        found += _nested(below, f"{path}.allOf[{at}]", skip_any=skip)
    found += [c for at, below in enumerate(raw.get("oneOf") or []) for c in _nested(below, f"{path}.oneOf[{at}]")]
    if isinstance(raw.get("not"), dict):
        found += _nested(raw["not"], f"{path}.not")
    return found + _pattern(raw, path)


def _pattern(raw: Obj, path: str) -> list[FieldCause]:
    try:
        compile_pattern(raw.get("pattern") or "")
    except re.error as error:
        why = f"must be a valid regular expression, but isn't: error parsing regexp: {error}"
        return [causes.invalid_value(f"{path}.pattern", raw["pattern"], why)]
    return []


def _nested(raw: Any, path: str, *, skip_any: bool = False) -> list[FieldCause]:
    """Inside a combination only values may be restricted."""
    if not isinstance(raw, dict):
        return []
    found = _values(raw, path, skip_any=skip_any)
    for name, why in NESTED_FORBIDDEN:
        if raw.get(name) not in (None, "", False, []) or (name == "additionalProperties" and raw.get(name) is False):
            found.append(causes.forbidden(f"{path}.{name}", why))
    if "metadata" in (raw.get("properties") or {}):
        where = f"{path}.properties[metadata]"
        found.append(causes.forbidden(where, "must not be specified in a nested context"))
    for name, below in sorted((raw.get("properties") or {}).items()):
        found += _nested(below, f"{path}.properties[{name}]")
    return found + _nested(raw.get("items"), f"{path}.items")


def _complete(values: Any, schema: Any, path: str, message: str) -> list[FieldCause]:
    """What combinations restrict is also declared outside of them; ``message`` is where the restriction stands."""
    if not isinstance(values, dict):
        return []
    found = _complete_nested(values.get("not"), schema, path, f"{message}.not")
    for name in COMBINATIONS:
        for index, below in enumerate(values.get(name) or []):
            found += _complete_nested(below, schema, path, f"{message}.{name}[{index}]")
    return found


def _complete_nested(values: Any, schema: Any, path: str, message: str) -> list[FieldCause]:
    if not isinstance(values, dict):
        return []
    if not isinstance(schema, dict):
        return [causes.required(path, f"because it is defined in {message}")]
    found = _complete(values, schema, path, message)
    found += _complete_nested(values.get("items"), schema.get("items"), f"{path}.items", f"{message}.items")
    declared = schema.get("properties") or {}
    for name, below in sorted((values.get("properties") or {}).items()):
        here, there = f"{path}.properties[{name}]", f"{message}.properties[{name}]"
        if name not in declared:
            found.append(causes.required(here, f"because it is defined in {there}"))
        else:
            found += _complete_nested(below, declared[name], here, there)
    return found
