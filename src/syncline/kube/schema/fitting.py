"""A fast check that a decoded object fits its schema, true for almost every valid request: :func:`fits`.

Called by :mod:`syncline.kube.patching.fields` before its complete check, which words the errors. Each schema is
compiled once into a function, which returns True if the complete check would drop, rewrite or refuse nothing. False
only means that the complete check is needed. Nothing is changed.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import datetime
from functools import lru_cache
from typing import Any, TypeAlias

from syncline.base.clock import format_micro_time, format_time, parse_time
from syncline.kube.schema.model import Schema, definition
from syncline.kube.text.quantity import QuantityError, parse_quantity

MAX_DEPTH = 300
"""Nesting of a body. CustomResourceDefinitions with recursive schemas are the deepest honest objects."""

QUANTITY = "io.k8s.apimachinery.pkg.api.resource.Quantity"
TIMES: dict[str, tuple[Callable[[datetime], str], str]] = {
    "io.k8s.apimachinery.pkg.apis.meta.v1.Time": (format_time, "2006-01-02T15:04:05Z07:00"),
    "io.k8s.apimachinery.pkg.apis.meta.v1.MicroTime": (format_micro_time, "2006-01-02T15:04:05.000000Z07:00"),
}
"""Types read by their own rule: how they are written, and the layout that Go's refusal names."""

INTEGERS = {"int32": (-(2**31), 2**31 - 1), "int64": (-(2**63), 2**63 - 1)}

_EXTENSIONS = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1."
SCHEMA_PROPS = _EXTENSIONS + "JSONSchemaProps"
OR_LIST, OR_BOOL, OR_NAMES = (SCHEMA_PROPS + ending for ending in ("OrArray", "OrBool", "OrStringArray"))
ALTERNATIVES = frozenset({OR_LIST, OR_BOOL, OR_NAMES})
"""A schema, or something simpler: OpenAPI tells no type for these, but Go reads the schema inside as such."""

_BASE64 = re.compile(r"(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?")

_Check: TypeAlias = Callable[[Any, int], bool]
"""Called with a value that is not null and its depth."""
_Wanted: TypeAlias = "type | _Check"
"""Plain texts and booleans are checked by type alone, without a call."""


def fits(obj: Any, schema: Schema) -> bool:
    """Return True if ``obj`` needs no complete check."""
    return _object(schema)(obj, 0)


def still_fits(obj: Any, before: Any, schema: Schema) -> bool:
    """Like :func:`fits`, for an object that shares parts with a checked one; these are not checked again."""
    if type(obj) is not dict or type(before) is not dict or schema.is_open:
        return fits(obj, schema)
    for key, child in obj.items():
        was = before.get(key)
        if child is was and child is not None:
            continue
        field = schema.field(key)
        if field is None or child is None:
            return False
        if field.type == "object" and type(child) is dict and type(was) is dict:
            if not still_fits(child, was, field):
                return False
            continue
        if type(child) is list and type(was) is list:
            known = len(was)
            child = [one for at, one in enumerate(child) if at >= known or one is not was[at] or one is None]
        wanted = _wanted(field)
        if wanted is str or wanted is bool:
            if type(child) is not wanted:
                return False
        elif not wanted(child, 1):
            return False
    return True


@lru_cache(maxsize=16384)
def _wanted(schema: Schema) -> _Wanted:
    if schema.name in ALTERNATIVES:
        return _alternative(schema.name)
    if not (schema.type or schema.name or schema.int_or_string):
        return _anything
    match schema.type:
        case "object":
            return _any_object if schema.is_open else _object(schema)
        case "array":
            return _any_array if schema.items is None else _array(schema.items)
        case "string" if schema.name in TIMES:
            return _time(TIMES[schema.name][0])
    return _scalar(schema)


def _alternative(name: str) -> _Check:
    """Lists of schemas and unusual values need the complete check."""

    def check(value: Any, depth: int) -> bool:
        if type(value) is dict:
            props = definition(SCHEMA_PROPS)
            assert props is not None, "the schema of schemas is built in"
            return _object(props)(value, depth)
        if name == OR_BOOL:
            return type(value) is bool
        return name == OR_NAMES and type(value) is list and all(type(each) is str for each in value)

    return check


def _anything(_value: Any, _depth: int) -> bool:
    return True


def _any_object(value: Any, _depth: int) -> bool:
    return isinstance(value, dict)


def _any_array(value: Any, _depth: int) -> bool:
    return isinstance(value, list)


@lru_cache(maxsize=16384)
def _object(schema: Schema) -> _Check:
    """Fields are looked up in the schema when they are first met: schemas may contain themselves."""
    known: dict[str, _Wanted] = {}
    is_open = schema.is_open

    def learnt(key: str) -> _Wanted | None:
        field = schema.field(key)
        if field is None:
            return _anything if is_open else None
        wanted = _wanted(field)
        if key in schema.properties:
            known[key] = wanted
        return wanted

    def check(value: Any, depth: int) -> bool:
        if type(value) is not dict or depth > MAX_DEPTH:
            return False
        for key, child in value.items():
            wanted = known.get(key) or learnt(key)
            if wanted is None:
                return False
            if child is None:
                if key not in schema.properties and _read_as_another(schema.field(key)):
                    return False  # A null among a map's values is read as something else.
                continue
            if wanted is str or wanted is bool:
                if type(child) is not wanted:
                    return False
            elif not wanted(child, depth + 1):
                return False
        return True

    return check


def _array(items: Schema) -> _Check:
    wanted = _wanted(items) if items.type not in ("object", "array") else None
    null_stays = not _read_as_another(items)

    def check(value: Any, depth: int) -> bool:
        if type(value) is not list:
            return False
        each = wanted or _wanted(items)
        if each is str or each is bool:
            return all(type(item) is each or (item is None and null_stays) for item in value)
        return all((null_stays if item is None else each(item, depth + 1)) for item in value)

    return check


def zero_of(schema: Schema) -> Any:
    """Return what Go's decoder makes of a null in a map or list: the zero value."""
    if schema.type == "string" and schema.name not in TIMES and schema.format != "byte":
        return "0" if schema.name == QUANTITY else ""
    return {} if schema.type == "object" and schema.properties else None


def _read_as_another(schema: Schema | None) -> bool:
    """Return True if a null in a map or list is decoded as another value."""
    return schema is not None and zero_of(schema) is not None


def _time(form: Callable[[datetime], str]) -> _Check:
    def check(value: Any, _depth: int) -> bool:
        try:
            return isinstance(value, str) and form(parse_time(value)) == value
        except ValueError:
            return False

    return check


def _quantity(value: Any, _depth: int) -> bool:
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        return False
    try:
        parse_quantity(value.strip() if isinstance(value, str) else value)
    except QuantityError:
        return False
    return True


def _int_or_string(value: Any, _depth: int) -> bool:
    low, high = INTEGERS["int32"]
    return type(value) is str or (type(value) is int and low <= value <= high)


def _scalar(schema: Schema) -> _Wanted:
    if schema.name == QUANTITY:
        return _quantity
    if schema.int_or_string:
        return _int_or_string
    if schema.format == "byte":
        return lambda value, _depth: type(value) is str and _BASE64.fullmatch(value) is not None
    match schema.type:
        case "string":
            return str
        case "boolean":
            return bool
        case "integer":
            low, high = INTEGERS.get(schema.format, INTEGERS["int64"])
            return lambda value, _depth: type(value) is int and low <= value <= high
        case "number":
            return lambda value, _depth: type(value) in (int, float)
    return _anything
