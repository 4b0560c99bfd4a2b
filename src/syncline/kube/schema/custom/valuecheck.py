"""Does a value satisfy an OpenAPI v3 schema: the checks of custom resources, word for word.

Called by ``structural.py`` for objects and for defaults in a schema. Takes a JSON value and a plain ``openAPIV3Schema``
(no references); returns causes, in the order type, combinations, text, format, number, list, enum, object. Never reads
a clock, never changes a value.

Source of checks and words: kube-openapi ``pkg/validation`` and apiextensions ``ValidateCustomResource``.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any

from syncline.kube.errors import FieldCause
from syncline.kube.schema import fieldcauses as causes
from syncline.kube.text.formats import matches_format
from syncline.kube.text.re2 import compile_pattern

MAX_CAUSES = 1000
"""More causes than this help no one; the rest is left out."""

Raw = Mapping[str, Any]

UNRELATED: Any = object()
"""No old value can be found for this one."""


def unchanged(old: Any, value: Any) -> bool:
    """There is an old value, and this is it."""
    if old is UNRELATED:
        return False
    return old is value or (bool(old == value) and _same_kinds(old, value))  # the comparison is quick where it ends


def _same_kinds(one: Any, other: Any) -> bool:
    """Of equal values: they are the same JSON, too."""
    kind = type(one)
    if kind is dict:
        return all(type(part) is str or _same_kinds(part, other[key]) for key, part in one.items())
    if kind is list:
        return all(map(_same_kinds, one, other))
    return (kind is bool) == (type(other) is bool)


def old_items(items: list[Any], old: Any, schema: Raw) -> list[Any]:
    """For each entry the old one with the same keys; entries of other lists than maps cannot be matched."""
    keys = schema.get("x-kubernetes-list-map-keys") or []
    if schema.get("x-kubernetes-list-type") != "map" or not keys or not isinstance(old, list):
        return [UNRELATED] * len(items)
    known: dict[Any, Any] = {}
    for each in reversed(old):  # of several with the same keys the first counts
        if isinstance(each, dict):
            known[_keys(each, keys)] = each
    return [known.get(_keys(item, keys), UNRELATED) if isinstance(item, dict) else UNRELATED for item in items]


def _keys(item: dict[str, Any], keys: list[str]) -> Any:
    found = tuple([item.get(key) for key in keys])
    try:
        hash(found)
    except TypeError:  # a key that is no plain value is refused anyway
        return repr(found)
    return found


def check_value(value: Any, schema: Raw, path: str = "", old: Any = UNRELATED) -> list[FieldCause]:
    """Why ``value`` does not satisfy ``schema``; empty when it does. ``path`` is the field's, as messages name it.

    ``old`` is the value that this one takes the place of. What was wrong before and did not change is let through, at
    every level where old and new can be compared (CRDValidationRatcheting).
    """
    return [] if unchanged(old, value) else _check(value, schema, path, old)[:MAX_CAUSES]


def _check(value: Any, schema: Raw, path: str, old: Any) -> list[FieldCause]:
    found = _type(value, schema, path)
    if value is None:
        return found + _enum(value, schema, path)
    found += _combinations(value, schema, path)
    if isinstance(value, str):
        found += _text(value, schema, path) + _format(value, schema, path)
    elif isinstance(value, (int, float)) and not isinstance(value, bool):
        found += _number(value, schema, path)
    elif isinstance(value, list):
        found += _list(value, schema, path, old)
    found += _enum(value, schema, path)
    if isinstance(value, dict):
        found += _object(value, schema, path, old)
    return found


def _kind(value: Any) -> str:
    """The JSON type of a value, as messages name it."""
    match value:
        case None:
            return "null"
        case bool():
            return "boolean"
        case int():
            return "integer" if -(1 << 63) <= value < 1 << 63 else "number"
        case float():
            return "number"
        case str():
            return "string"
        case list():
            return "array"
        case _:
            return "object"


def _types(schema: Raw) -> tuple[str, ...]:
    if schema.get("x-kubernetes-int-or-string"):
        return ("integer", "string")
    kind = schema.get("type")
    return (kind,) if isinstance(kind, str) and kind else ()


def _type(value: Any, schema: Raw, path: str) -> list[FieldCause]:
    types = _types(schema)
    kind = _kind(value)
    if not types or kind in types or (value is None and schema.get("nullable")):
        return []
    if kind == "integer" and "number" in types:
        return []
    if kind == "number" and "integer" in types and _is_whole(value):
        return []
    numeric = "number" in types or "integer" in types
    if schema.get("format") and kind in ("string", "array") and not numeric:
        return []
    return [causes.type_invalid(path, kind, f'{path} in body must be of type {",".join(types)}: "{kind}"')]


def _is_whole(value: float) -> bool:
    """A float that stands for an integer, as exactly as JSON numbers can tell."""
    return abs(value) < 1 << 53 and float(value).is_integer()


# --- combinations --------------------------------------------------------------------------------------------------


def _combinations(value: Any, schema: Raw, path: str) -> list[FieldCause]:
    found: list[FieldCause] = []
    if schema.get("anyOf"):
        found += _any_of(value, schema["anyOf"], path)
    if schema.get("oneOf"):
        found += _one_of(value, schema["oneOf"], path)
    if schema.get("allOf"):
        found += _all_of(value, schema["allOf"], path)
    if schema.get("not") and not check_value(value, schema["not"], path):
        found.append(_whole(path, "must not validate the schema (not)"))
    return found


def _whole(path: str, text: str) -> FieldCause:
    return causes.invalid_value("", "", f"{causes.quoted(path)} {text}")


def _any_of(value: Any, options: list[Raw], path: str) -> list[FieldCause]:
    results = [check_value(value, option, path) for option in options]
    if not all(results):
        return []
    return [_whole(path, "must validate at least one schema (anyOf)"), *results[0]]


def _one_of(value: Any, options: list[Raw], path: str) -> list[FieldCause]:
    results = [check_value(value, option, path) for option in options]
    valid = sum(1 for result in results if not result)
    if valid == 1:
        return []
    how = f"Found {valid} valid alternatives" if valid else "Found none valid"
    text = f"must validate one and only one schema (oneOf). {how}"
    return [_whole(path, text), *([] if valid else results[0])]


def _all_of(value: Any, options: list[Raw], path: str) -> list[FieldCause]:
    results = [check_value(value, option, path) for option in options]
    failed = [result for result in results if result]
    if not failed:
        return []
    none = ". None validated" if len(failed) == len(results) else ""
    inner = [cause for result in failed for cause in result]
    return [*inner, _whole(path, f"must validate all the schemas (allOf){none}")]


# --- texts and numbers ---------------------------------------------------------------------------------------------


def _text(value: str, schema: Raw, path: str) -> list[FieldCause]:
    longest, shortest, pattern = schema.get("maxLength"), schema.get("minLength"), schema.get("pattern")
    if longest is not None and len(value) > longest:
        return [causes.too_long(path, longest)]
    if shortest is not None and len(value) < shortest:
        return [causes.invalid_value(path, value, f"{path} in body should be at least {shortest} chars long")]
    return _matched(value, pattern, path) if pattern else []


def _matched(value: str, pattern: str, path: str) -> list[FieldCause]:
    try:
        found = compile_pattern(pattern).search(value)
    except re.error as error:
        return [causes.invalid_value(path, causes.OMITTED, f"{path} in body cannot be matched: {error}")]
    return [] if found else [causes.invalid_value(path, value, f"{path} in body should match '{pattern}'")]


def _format(value: str, schema: Raw, path: str) -> list[FieldCause]:
    name = schema.get("format")
    if not name or matches_format(name, value):
        return []
    return [causes.type_invalid(path, value, f"{path} in body must be of type {name}: {causes.quoted(value)}")]


def _number(value: float, schema: Raw, path: str) -> list[FieldCause]:
    found = _range(value, schema, path)

    def refuse(rule: str, limit: Any) -> None:
        shown = causes.go_float(limit) if isinstance(value, float) else str(int(limit))
        found.append(causes.invalid_value(path, value, f"{path} in body should be {rule} {shown}"))

    step, most, least = schema.get("multipleOf"), schema.get("maximum"), schema.get("minimum")
    if step and not _divides(step, value):
        refuse("a multiple of", step)
    if most is not None:
        if schema.get("exclusiveMaximum"):
            if value >= most:
                refuse("less than", most)
        elif value > most:
            refuse("less than or equal to", most)
    if least is not None:
        if schema.get("exclusiveMinimum"):
            if value <= least:
                refuse("greater than", least)
        elif value < least:
            refuse("greater than or equal to", least)
    return found


def _divides(step: float, value: float) -> bool:
    if isinstance(step, int) and isinstance(value, int):
        return value % step == 0
    return math.isclose(value / step, round(value / step), rel_tol=0, abs_tol=1e-9)


_BOUNDS = {
    "int32": (-(1 << 31), (1 << 31) - 1),
    "uint32": (0, (1 << 32) - 1),
    "uint64": (0, (1 << 64) - 1),
    "int64": (-(1 << 63), (1 << 63) - 1),
}
_MAX_FLOAT32 = 3.4028234663852886e38


def _range(value: float, schema: Raw, path: str) -> list[FieldCause]:
    """Values outside the machine type that ``format`` names; the cause names no field, as upstream's does not."""
    kind, form = schema.get("type"), schema.get("format") or ""
    if kind == "number":
        fits = form != "float" or abs(value) <= _MAX_FLOAT32
    elif kind == "integer":
        least, most = _BOUNDS.get(form, _BOUNDS["int64"])
        fits = float(value).is_integer() and least <= value <= most
    else:
        return []
    if fits:
        return []
    what = f"with format {form}" if form else "(default format)"
    return [causes.invalid_value("", "", f"Checked value must be of type {kind} {what} in {path}")]


# --- lists, enums, objects -----------------------------------------------------------------------------------------


def _list(value: list[Any], schema: Raw, path: str, old: Any) -> list[FieldCause]:
    found: list[FieldCause] = []
    items = schema.get("items")
    if isinstance(items, dict):
        before = old_items(value, old, schema)
        for index, item in enumerate(value):
            found += check_value(item, items, f"{path}[{index}]", before[index])
    least, most = schema.get("minItems"), schema.get("maxItems")
    if least is not None and len(value) < least:
        found.append(causes.invalid_value(path, len(value), f"{path} in body should have at least {least} items"))
    if most is not None and len(value) > most:
        found.append(causes.too_many(path, len(value), most))
    return found


def _enum(value: Any, schema: Raw, path: str) -> list[FieldCause]:
    allowed = schema.get("enum")
    if not allowed or any(item == value and isinstance(item, bool) == isinstance(value, bool) for item in allowed):
        return []
    return [causes.not_supported(path, value, allowed)]


def _object(value: dict[str, Any], schema: Raw, path: str, old: Any) -> list[FieldCause]:
    least, most = schema.get("minProperties"), schema.get("maxProperties")
    if least is not None and len(value) < least:
        text = f"{path} in body should have at least {least} properties"
        return [causes.invalid_value(path, len(value), text)]
    if most is not None and len(value) > most:
        return [causes.too_many(path, len(value), most)]
    found: list[FieldCause] = []
    properties: Raw = schema.get("properties") or {}
    additional = schema.get("additionalProperties")
    for name in sorted(value):
        below = properties.get(name, additional)
        if below is False:
            found.append(
                causes.invalid_value(path, name, f"{causes.child(path, name)} in body is a forbidden property")
            )
        if isinstance(below, dict):
            before = old.get(name, UNRELATED) if isinstance(old, dict) else UNRELATED
            found += check_value(value[name], below, causes.child(path, name), before)
    found += [causes.required(causes.child(path, name)) for name in schema.get("required") or () if name not in value]
    return found
