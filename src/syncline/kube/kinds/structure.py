"""A short hand for structural schemas, so that our CustomResourceDefinitions read like a list of fields."""

from __future__ import annotations

from typing import Any, TypeAlias

from syncline.kube.objects import Obj

Fields: TypeAlias = dict[str, Any]

STR: Obj = {"type": "string"}
BOOL: Obj = {"type": "boolean"}
INT: Obj = {"type": "integer", "format": "int64"}
TIME: Obj = {"type": "string", "format": "date-time"}
INT_OR_STRING: Obj = {"anyOf": [{"type": "integer"}, {"type": "string"}], "x-kubernetes-int-or-string": True}
JSON: Obj = {"x-kubernetes-preserve-unknown-fields": True}
"""Any JSON value."""
ANY: Obj = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}


def obj(fields: Fields, *required: str, about: str = "") -> Obj:
    """An object with these fields."""
    schema: Obj = {"type": "object", "properties": fields}
    if required:
        schema["required"] = sorted(required)
    if about:
        schema["description"] = about
    return schema


def items(schema: Obj) -> Obj:
    return {"type": "array", "items": schema}


def mapping(schema: Obj) -> Obj:
    return {"type": "object", "additionalProperties": schema}


def strings() -> Obj:
    return items(STR)


def enum(*values: str) -> Obj:
    return {"type": "string", "enum": list(values)}
