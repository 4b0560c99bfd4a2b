"""A fast check that a value fits a plain schema, true for almost every custom resource: :func:`fits_of`.

Called by ``structural.py`` before the complete check (``valuecheck.py``), which words the errors. True only if that
check would find nothing; False only means that it is needed. Schemas with more than types, fields and entries always
need it. Nothing is changed.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from syncline.kube.schema.custom.valuecheck import UNRELATED, check_value
from syncline.kube.text.jsontext import ids_of

Fits: TypeAlias = Callable[[Any, Any], bool]
"""Called with a value and the one that it replaces."""

_SILENT = frozenset(
    {"default", "description", "example", "externalDocs", "nullable", "title", "x-kubernetes-embedded-resource"}
    | {"x-kubernetes-list-map-keys", "x-kubernetes-list-type", "x-kubernetes-map-type", "x-kubernetes-validations"}
    | {"x-kubernetes-preserve-unknown-fields"}
)
"""What the walk does not look at, and whether a value may be null: that is examined carefully."""
_LONG = 32
_KEPT_LISTS = 200
"""Long lists of one schema that are known to fit, beside the objects that hold them."""
_SMALL = range(-(1 << 31), 1 << 31)


def fits_of(schema: Mapping[str, Any]) -> Fits:
    """Compile the schema into a function; nested schemas are compiled when first needed."""
    said = schema.keys() - _SILENT
    match schema.get("type"):
        case None if not said:
            return lambda value, old: value is not None
        case "string" if said == {"type"}:
            return lambda value, old: type(value) is str
        case "boolean" if said == {"type"}:
            return lambda value, old: type(value) is bool
        case "integer" if said <= {"type", "format"} and schema.get("format") in (None, "int32", "int64"):
            return lambda value, old: type(value) is int and value in _SMALL
        case "object" if said <= {"type", "properties", "additionalProperties", "required"}:
            return _object(schema)
        case "array" if said <= {"type", "items"}:
            return _array(schema)
    return lambda value, old: not check_value(value, schema, "", old)


def _object(schema: Mapping[str, Any]) -> Fits:
    properties, additional = schema.get("properties") or {}, schema.get("additionalProperties")
    required = tuple(schema.get("required") or ())
    known: dict[str, Fits] = {}
    others = _below(additional)

    def fits(value: Any, old: Any) -> bool:
        if type(value) is not dict:
            return False
        if value is old:
            return True
        before = old if type(old) is dict else {}
        for name, part in value.items():
            check = known.get(name)
            if check is None:
                if name not in properties:
                    check = others
                else:
                    check = known[name] = _below(properties[name])
            if not check(part, before.get(name, UNRELATED)):
                return False
        return all(name in value for name in required)

    return fits


def _below(schema: Any) -> Fits:
    if schema is False:
        return lambda value, old: False
    return fits_of(schema) if isinstance(schema, Mapping) else lambda value, old: True


def _array(schema: Mapping[str, Any]) -> Fits:
    entry = _below(schema.get("items"))
    fitting: OrderedDict[int, tuple[list[Any], frozenset[int]]] = OrderedDict()

    def fits(value: Any, old: Any) -> bool:
        if type(value) is not list:
            return False
        if value is old:
            return True
        if len(value) < _LONG:
            return all(entry(part, UNRELATED) for part in value)
        # Most entries of a long list are those of the one before, which was found to fit.
        before = fitting.pop(id(old), None)
        same = before[1] if before is not None and before[0] is old else frozenset()
        if not all(entry(part, UNRELATED) for part in [part for part in value if id(part) not in same]):
            return False
        fitting[id(value)] = value, ids_of(value)
        while len(fitting) > _KEPT_LISTS:
            fitting.popitem(last=False)
        return True

    return fits
