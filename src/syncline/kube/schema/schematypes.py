"""Derives the types that expressions see in built-in objects from their schemas, lazily: :func:`type_of`.

Used to check the expressions of policies. Source: apiserver ``pkg/cel/common`` (``SchemaDeclType``).
"""

from __future__ import annotations

from syncline.kube.cel.checker import Declared
from syncline.kube.cel.types import BOOL, BYTES, DOUBLE, DURATION, DYN, INT, STRING, TIMESTAMP, Type
from syncline.kube.schema.custom.celschema import escape
from syncline.kube.schema.model import Schema

_STRINGS = {"byte": BYTES, "date": TIMESTAMP, "date-time": TIMESTAMP, "duration": DURATION}


class _Fields(dict[str, Type]):
    """The fields of one schema, each made when it is first named: schemas may contain themselves."""

    def __init__(self, schema: Schema) -> None:
        super().__init__()
        self._schema = schema
        self._names = {written: name for name in schema.properties if (written := escape(name)) is not None}

    def get(self, key: str, default: object = None) -> Type | None:  # type: ignore[override]
        name = self._names.get(key)
        if name is None:
            return None
        if key not in self:
            below = self._schema.field(name)
            if below is not None and _is_unknown(below):
                return None
            self[key] = type_of(below) if below is not None else DYN
        return self[key]


QUANTITY = "io.k8s.apimachinery.pkg.api.resource.Quantity"


def _is_unknown(schema: Schema) -> bool:
    """Quantities say that they are one of several types, and so Kubernetes leaves them and what holds them out."""
    inside = schema.items or schema.additional
    return schema.name == QUANTITY or (inside is not None and inside.name == QUANTITY)


def type_of(schema: Schema) -> Type:
    """Return the type of a schema; an untyped one may be anything."""
    if schema.int_or_string:
        return DYN
    match schema.type:
        case "string":
            return _STRINGS.get(schema.format, STRING)
        case "boolean":
            return BOOL
        case "integer":
            return INT
        case "number":
            return DOUBLE
        case "array":
            return ("list", type_of(schema.items) if schema.items is not None else DYN)
        case "object" if schema.additional is not None and not schema.properties:
            return ("map", STRING, type_of(schema.additional))
        case "object" if schema.properties and not schema.preserve_unknown:
            return ("object", Declared(schema.name or "object", _Fields(schema)))
    return DYN
