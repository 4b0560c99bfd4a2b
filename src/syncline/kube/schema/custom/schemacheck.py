"""The schemas of a CustomResourceDefinition: what they may say, whether they are structural, and their defaults.

Called when a definition is created or changed. Takes the definition, out come causes whose paths are those that
Kubernetes names: ``spec.validation.openAPIV3Schema…`` where all versions share one schema, else
``spec.versions[i].schema.openAPIV3Schema…``. Rules are compiled by ``rulecheck.py``, only in schemas that are sound.

Source: apiextensions-apiserver ``pkg/apis/apiextensions/validation`` and ``pkg/apiserver/schema/defaulting``.
"""

from __future__ import annotations

import hashlib
import json
from collections import deque
from dataclasses import dataclass, replace
from typing import Any

from syncline.kube.errors import FieldCause
from syncline.kube.objects import Obj, dig
from syncline.kube.schema import fieldcauses as causes
from syncline.kube.schema.custom import structural
from syncline.kube.schema.custom.crdparts import shared_part, versions_of
from syncline.kube.schema.custom.rulecheck import RuleContext, root_context, rule_text_causes
from syncline.kube.schema.custom.rules import check_part_rules
from syncline.kube.schema.custom.structuralcheck import check_structure, is_scalar, unsupported_keyword
from syncline.kube.schema.model import Schema

MAX_SCHEMA_DEPTH = 100
"""Deeper schemas are refused before Python's own recursion limit is."""

TYPES = ("array", "boolean", "integer", "number", "object", "string")
UNSUPPORTED = ("id", "additionalItems", "patternProperties", "definitions", "dependencies", "$ref")
RULES, DEFAULT = '"x-kubernetes-validations":', '"default":'
COMBINATIONS = ("allOf", "anyOf", "oneOf")
MAX_SOUND = 256
_sound: deque[bytes] = deque(maxlen=MAX_SOUND)
"""Digests of schemas that were found sound, with where they stand."""
META_FIELDS = frozenset({"apiVersion", "kind", "metadata"})
ROOT_WITH_STATUS = {
    "description": "Description",
    "type": "Type",
    "format": "Format",
    "title": "Title",
    "maximum": "Maximum",
    "exclusiveMaximum": "ExclusiveMaximum",
    "minimum": "Minimum",
    "exclusiveMinimum": "ExclusiveMinimum",
    "maxLength": "MaxLength",
    "minLength": "MinLength",
    "pattern": "Pattern",
    "maxItems": "MaxItems",
    "minItems": "MinItems",
    "uniqueItems": "UniqueItems",
    "multipleOf": "MultipleOf",
    "required": "Required",
    "items": "Items",
    "properties": "Properties",
    "externalDocs": "ExternalDocs",
    "example": "Example",
    "x-kubernetes-preserve-unknown-fields": "XPreserveUnknownFields",
    "x-kubernetes-validations": "XValidations",
}
"""Keywords at the root of a schema that keep their meaning when ``status`` is validated alone."""


def check_schema(crd: Obj, old: Obj | None = None) -> list[FieldCause]:
    """Everything that is wrong with the schemas of a definition's versions; ``old`` is what it replaces."""
    versions = versions_of(crd)
    found: list[FieldCause] = []
    for index, version in enumerate(versions):
        if not isinstance(dig(version, "schema", "openAPIV3Schema"), dict):
            found.append(causes.required(f"spec.versions[{index}].schema.openAPIV3Schema"))
    shared = shared_part(crd, "schema")
    for index, version in enumerate(versions[:1] if shared else versions):
        raw = dig(version, "schema", "openAPIV3Schema")
        if not isinstance(raw, dict):
            continue
        path = "spec.validation" if shared else f"spec.versions[{index}].schema"
        either = versions if shared or shared_part(crd, "subresources") else [version]
        status = any(dig(one, "subresources", "status") is not None for one in either)
        found += _checked(raw, f"{path}.openAPIV3Schema", status, _same_schema(version, old))
    return found


def _same_schema(version: Obj, old: Obj | None) -> bool:
    before = next((one for one in versions_of(old or {}) if one.get("name") == version.get("name")), None)
    return before is not None and before.get("schema") == version.get("schema")


def _checked(raw: Obj, path: str, status: bool, unchanged: bool) -> list[FieldCause]:
    """As :func:`_version`; what was found sound is not checked twice: each sync applies large definitions."""
    if _too_deep(raw, 0):
        deep = causes.forbidden(path, f"schema is nested deeper than {MAX_SCHEMA_DEPTH} levels")
        return [*_root(raw, path, status), deep]
    text = json.dumps((raw, path, status, unchanged))
    digest = hashlib.sha256(text.encode()).digest()
    found = [] if digest in _sound else _version(raw, path, status, unchanged, text)
    if not found and digest not in _sound:
        _sound.append(digest)
    return found


def _root(raw: Obj, path: str, status: bool) -> list[FieldCause]:
    found = _root_with_status(raw, path) if status else []
    if raw.get("nullable"):
        found.append(causes.forbidden(f"{path}.nullable", "nullable cannot be true at the root"))
    return found


def _version(raw: Obj, path: str, status: bool, unchanged: bool, text: str) -> list[FieldCause]:
    """``text`` is the schema as JSON: what it does not contain need not be searched for."""
    found = _root(raw, path, status)
    unsupported = unsupported_keyword(raw)
    sound = not unsupported
    if sound:
        wrong = check_structure(raw, path)
        if not wrong and DEFAULT in text:
            wrong = _defaults({**raw, "x-kubernetes-embedded-resource": True}, path, False)
        found += wrong
        sound = not wrong
    rules = root_context(raw, unchanged=unchanged) if sound and RULES in text else None
    plain, report = _document(raw, path, _Place(root=True, rules=rules))
    found += [*plain, *report]
    if not found and unsupported:
        word = "must be a schema, but is an array" if unsupported == "items" else "is not supported"
        found.append(causes.invalid_value(path, "", f"OpenAPIV3Schema '{unsupported}' {word}"))
    return found + (rules.total_causes(path) if rules is not None else [])


def _root_with_status(raw: Obj, path: str) -> list[FieldCause]:
    for name, value in raw.items():
        if name == "type" and value != "object":
            why = 'only "object" is allowed as the type at the root of the schema if the status subresource is enabled'
            return [causes.invalid_value(f"{path}.type", value, why)]
        if name not in ROOT_WITH_STATUS and value not in (None, "", False, [], {}):
            allowed = " ".join(ROOT_WITH_STATUS.values())
            why = f"only [{allowed}] fields are allowed at the root of the schema if the status subresource is enabled"
            return [causes.invalid_value(path, raw, why)]
    return []


def _too_deep(raw: Any, depth: int) -> bool:
    if depth > MAX_SCHEMA_DEPTH:
        return True
    if isinstance(raw, dict):
        return any(_too_deep(below, depth + 1) for below in raw.values())
    return isinstance(raw, list) and any(_too_deep(below, depth + 1) for below in raw)


# --- what an OpenAPI document may say at all -----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Place:
    """What the schemas above say about one: why it may have no default, where old values cannot be found."""

    root: bool = False
    in_metadata: bool = False
    no_default: str = ""
    uncorrelated: str = ""
    rules: RuleContext | None = None


def _document(raw: Obj, path: str, at: _Place) -> tuple[list[FieldCause], list[FieldCause]]:
    """(causes of schemas, causes of rules). Rules above a schema that is wrong are not examined."""
    if is_scalar(raw):
        return [], []
    found = _keywords(raw, path, at) + _lists(raw, path) + _maps(raw, path)
    rules: list[FieldCause] = []
    for below, here, place in _children(raw, path, at):
        more, report = _document(below, here, place)
        found += more
        rules += report
    found += rule_text_causes(raw, path)
    if not found and at.rules is not None:
        rules += at.rules.check(raw, path, at.uncorrelated)
    return found, rules


def _children(raw: Obj, path: str, at: _Place) -> list[tuple[Obj, str, _Place]]:
    """Every schema directly below: properties, items, additional properties, combinations."""
    below = _Place(False, at.in_metadata, at.no_default, at.uncorrelated, at.rules)
    result: list[tuple[Any, str, _Place]] = []
    for name, schema in sorted((raw.get("properties") or {}).items()):
        place = below if at.rules is None else replace(below, rules=at.rules.child_property(schema, name))
        if (at.root or raw.get("x-kubernetes-embedded-resource")) and name in META_FIELDS:
            place = replace(place, in_metadata=True)
            if at.root:
                place = replace(place, no_default=f"in top-level {name}")
        result.append((schema, f"{path}.properties[{name}]", place))
    additional = raw.get("additionalProperties")
    if isinstance(additional, dict):
        place = replace(below, rules=at.rules.child_additional(additional) if at.rules else None)
        if at.in_metadata:
            place = replace(place, no_default="inside additionalProperties applying to object metadata")
        result.append((additional, f"{path}.additionalProperties", place))
    items = raw.get("items")
    if isinstance(items, dict):
        place = replace(below, rules=at.rules.child_items(items) if at.rules else None)
        if raw.get("x-kubernetes-list-type") != "map":
            place = replace(place, uncorrelated=at.uncorrelated or path)
        result.append((items, f"{path}.items", place))
    nowhere = below if below.rules is None else replace(below, rules=None)
    result.append((raw.get("not"), f"{path}.not", nowhere))
    for name in COMBINATIONS:
        result += [(one, f"{path}.{name}[{index}]", nowhere) for index, one in enumerate(raw.get(name) or [])]
    return [(schema, here, place) for schema, here, place in result if isinstance(schema, dict)]


def _keywords(raw: Obj, path: str, at: _Place) -> list[FieldCause]:
    found = [causes.forbidden(f"{path}.{name}", f"{name} is not supported") for name in UNSUPPORTED if raw.get(name)]
    if raw.get("default") is not None and at.no_default:
        found.append(causes.forbidden(f"{path}.default", f"must not be set {at.no_default}"))
    if raw.get("uniqueItems"):
        why = "uniqueItems cannot be set to true since the runtime complexity becomes quadratic"
        found.append(causes.forbidden(f"{path}.uniqueItems", why))
    additional = raw.get("additionalProperties")
    if raw.get("properties") and additional is not None and additional is not True:
        why = "additionalProperties and properties are mutual exclusive"
        found.append(causes.forbidden(f"{path}.additionalProperties", why))
    kind = raw.get("type")
    if kind and kind not in TYPES:
        found.append(causes.not_supported(f"{path}.type", kind, TYPES))
    if kind == "null":
        why = "type cannot be set to null, use nullable as an alternative"
        found.append(causes.forbidden(f"{path}.type", why))
    if isinstance(raw.get("items"), list):
        found.append(causes.forbidden(f"{path}.items", "items must be a schema object and not an array"))
    if at.in_metadata and raw.get("x-kubernetes-embedded-resource"):
        why = "must not be used inside of resource meta"
        found.append(causes.forbidden(f"{path}.x-kubernetes-embedded-resource", why))
    if raw.get("x-kubernetes-preserve-unknown-fields") is False:
        here = f"{path}.x-kubernetes-preserve-unknown-fields"
        found.append(causes.invalid_value(here, False, "must be true or undefined"))
    return found


def _lists(raw: Obj, path: str) -> list[FieldCause]:
    found: list[FieldCause] = []
    kind, list_type, keys = raw.get("type"), raw.get("x-kubernetes-list-type"), raw.get("x-kubernetes-list-map-keys")
    if list_type is not None and kind != "array":
        why = "must be array if x-kubernetes-list-type is specified"
        found.append(causes.invalid_value(f"{path}.type", kind, why) if kind else causes.required(f"{path}.type", why))
    elif list_type == "set" and isinstance(raw.get("items"), dict):
        found += _set_items(raw["items"], f"{path}.items")
    if list_type is not None and list_type not in ("atomic", "set", "map"):
        found.append(causes.not_supported(f"{path}.x-kubernetes-list-type", list_type, ("atomic", "set", "map")))
    if keys and list_type != "map":
        why = "must be map if x-kubernetes-list-map-keys is non-empty"
        here = f"{path}.x-kubernetes-list-type"
        found.append(causes.required(here, why) if list_type is None else causes.invalid_value(here, list_type, why))
    if list_type == "map":
        found += _map_list(raw, keys or [], path)
    if list_type in ("set", "map") and dig(raw, "items", "nullable"):
        why = f"cannot be nullable when x-kubernetes-list-type is {list_type}"
        found.append(causes.forbidden(f"{path}.items.nullable", why))
    return found


def _set_items(items: Obj, path: str) -> list[FieldCause]:
    """Entries of a set are compared whole, so they must be atomic."""
    why = "must be atomic as item of a list with x-kubernetes-list-type=set"
    kind, list_type = items.get("type"), items.get("x-kubernetes-list-type")
    if kind == "array" and list_type not in (None, "atomic"):
        return [causes.invalid_value(f"{path}.x-kubernetes-list-type", list_type, why)]
    if kind == "object" and items.get("x-kubernetes-map-type") != "atomic":
        return [causes.invalid_value(f"{path}.x-kubernetes-map-type", list_type, why)]
    return []


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
    for index, key in enumerate(keys):
        if items.get("type") == "object" and key not in properties:
            why = "entries must all be names of item properties"
            found.append(causes.invalid_value(f"{path}.x-kubernetes-list-map-keys", keys, why))
        elif key in properties:
            found += _map_key(key, properties[key], items, path)
        if items.get("type") == "object" and key in keys[:index]:
            why = "must not contain duplicate entries"
            found.append(causes.invalid_value(f"{path}.x-kubernetes-list-map-keys", keys, why))
    return found


def _map_key(key: str, schema: Obj, items: Obj, path: str) -> list[FieldCause]:
    here = f"{path}.items.properties[{key}]"
    found: list[FieldCause] = []
    if items.get("type") == "object" and schema.get("type") in ("array", "object"):
        why = "must be a scalar type if parent array's x-kubernetes-list-type is map"
        found.append(causes.invalid_value(f"{here}.type", "object", why))
    if key not in (items.get("required") or []) and schema.get("default") is None:
        why = "this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property"
        found.append(causes.required(f"{here}.default", why))
    if schema.get("nullable"):
        why = "this property is in x-kubernetes-list-map-keys, so it cannot be nullable"
        found.append(causes.forbidden(f"{here}.nullable", why))
    return found


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


# --- defaults ------------------------------------------------------------------------------------------------------


def _defaults(raw: Obj, path: str, in_metadata: bool) -> list[FieldCause]:
    """Each default must itself satisfy the schema that it stands in, and have no field that it does not declare."""
    found: list[FieldCause] = []
    value = raw.get("default")
    embedded = bool(raw.get("x-kubernetes-embedded-resource"))
    if value is not None:
        here = f"{path}.default"
        if not in_metadata and structural.prune_part(value, Schema.from_openapi(raw)) != value:
            found.append(causes.invalid_value(here, value, "must not have unknown fields"))
        wrong = structural.check_part(value, raw, here)
        found += wrong or check_part_rules(value, raw, here)
    if isinstance(raw.get("items"), dict):
        found += _defaults(raw["items"], f"{path}.items", in_metadata and not embedded)
    for name, below in sorted((raw.get("properties") or {}).items()):
        if isinstance(below, dict):
            inside = (in_metadata and not embedded) or (embedded and name in META_FIELDS)
            found += _defaults(below, f"{path}.properties[{name}]", inside)
    return found
