"""The Swagger 2.0 document as protobuf, which older clients ask for and cannot read as anything else.

Called by the server for ``/openapi/v2`` with the document that ``openapi`` makes; leaves bytes. The messages are those
of gnostic's ``openapi.v2`` (package ``openapi_v2``, message ``Document``); here stand only the members that Kubernetes'
documents use. Never decides what is described and refuses nothing: a member without a number is left out.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from syncline.kube.objects import Obj
from syncline.kube.yaml import loading as yaml

MEDIA_TYPES = (
    "application/com.github.proto-openapi.spec.v2.v1.0+protobuf",
    "application/com.github.proto-openapi.spec.v2@v1.0+protobuf",
)
"""How the form is asked for; answers name the first."""

_VARINT, _DOUBLE, _BYTES = 0, 1, 2

_Writer = Callable[[int, Any], bytes]
"""A field's number and its JSON value: the encoded field, empty for a zero value."""


def _varint(number: int) -> bytes:
    number &= (1 << 64) - 1
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def _framed(number: int, raw: bytes) -> bytes:
    return _varint(number << 3 | _BYTES) + _varint(len(raw)) + raw


def _text(number: int, value: Any) -> bytes:
    return _framed(number, str(value).encode()) if value else b""


def _texts(number: int, value: Iterable[Any]) -> bytes:
    return b"".join(_framed(number, str(item).encode()) for item in value)


def _flag(number: int, value: Any) -> bytes:
    return _varint(number << 3 | _VARINT) + b"\x01" if value else b""


def _integer(number: int, value: Any) -> bytes:
    return _varint(number << 3 | _VARINT) + _varint(int(value)) if value else b""


def _double(number: int, value: Any) -> bytes:
    return _varint(number << 3 | _DOUBLE) + struct.pack("<d", value) if value else b""


def _yaml(value: Any) -> bytes:
    """``Any``: the value as YAML text."""
    return _framed(2, yaml.dump(value).encode())


def _any(number: int, value: Any) -> bytes:
    return _framed(number, _yaml(value))


def _anys(number: int, value: Iterable[Any]) -> bytes:
    return b"".join(_any(number, item) for item in value)


def _message(fields: Mapping[str, tuple[int, _Writer]], extensions: int, value: Obj) -> bytes:
    """The members of ``value`` that have a number, in its order, then ``x-…`` members as named YAML texts."""
    numbered = sorted(((fields[key], item) for key, item in _known(value, fields)), key=lambda entry: entry[0][0])
    parts = [write(number, item) for (number, write), item in numbered]
    for key, item in value.items():
        if key.startswith("x-"):
            parts.append(_framed(extensions, _framed(1, key.encode()) + _framed(2, _yaml(item))))
    return b"".join(parts)


def _known(value: Obj, fields: Mapping[str, tuple[int, _Writer]]) -> list[tuple[str, Any]]:
    return [(key, item) for key, item in value.items() if key in fields]


def _named(number: int, entries: Mapping[str, Any], encode: Callable[[Any], bytes]) -> bytes:
    """Entries of a map: messages of name and value."""
    return b"".join(
        _framed(number, _framed(1, name.encode()) + _framed(2, encode(item))) for name, item in entries.items()
    )


# --- schemas -------------------------------------------------------------------------------------------------------


def schema_bytes(schema: Obj) -> bytes:
    return _message(_SCHEMA, 31, schema)


def _schema(number: int, value: Obj) -> bytes:
    return _framed(number, schema_bytes(value))


def _schemas(number: int, value: Iterable[Obj]) -> bytes:
    return b"".join(_schema(number, item) for item in value)


def _additional(number: int, value: Any) -> bytes:
    return _framed(number, _flag(2, value) if isinstance(value, bool) else _schema(1, value))


def _type(number: int, value: Any) -> bytes:
    return _framed(number, _texts(1, [value] if isinstance(value, str) else value))


def _items(number: int, value: Any) -> bytes:
    return _framed(number, _schemas(1, [value] if isinstance(value, dict) else value))


def _properties(number: int, value: Obj) -> bytes:
    return _framed(number, _named(1, value, schema_bytes))


_SCHEMA: dict[str, tuple[int, _Writer]] = {
    "$ref": (1, _text),
    "format": (2, _text),
    "title": (3, _text),
    "description": (4, _text),
    "default": (5, _any),
    "multipleOf": (6, _double),
    "maximum": (7, _double),
    "exclusiveMaximum": (8, _flag),
    "minimum": (9, _double),
    "exclusiveMinimum": (10, _flag),
    "maxLength": (11, _integer),
    "minLength": (12, _integer),
    "pattern": (13, _text),
    "maxItems": (14, _integer),
    "minItems": (15, _integer),
    "uniqueItems": (16, _flag),
    "maxProperties": (17, _integer),
    "minProperties": (18, _integer),
    "required": (19, _texts),
    "enum": (20, _anys),
    "additionalProperties": (21, _additional),
    "type": (22, _type),
    "items": (23, _items),
    "allOf": (24, _schemas),
    "properties": (25, _properties),
    "readOnly": (27, _flag),
    "example": (30, _any),
}

# --- operations ----------------------------------------------------------------------------------------------------

_BODY: dict[str, tuple[int, _Writer]] = {
    "description": (1, _text),
    "name": (2, _text),
    "in": (3, _text),
    "required": (4, _flag),
    "schema": (5, _schema),
}
_PLAIN: dict[str, dict[str, tuple[int, _Writer]]] = {
    "query": {
        "required": (1, _flag),
        "in": (2, _text),
        "description": (3, _text),
        "name": (4, _text),
        "type": (6, _text),
        "format": (7, _text),
        "uniqueItems": (20, _flag),
    },
    "path": {
        "required": (1, _flag),
        "in": (2, _text),
        "description": (3, _text),
        "name": (4, _text),
        "type": (5, _text),
        "format": (6, _text),
        "uniqueItems": (19, _flag),
    },
}
_PLACES = {"query": 3, "path": 4}
"""Which of the messages for parameters that are no bodies."""
_PLAIN_EXTENSIONS = {"query": 23, "path": 22}


def _parameters(number: int, value: Iterable[Obj]) -> bytes:
    return b"".join(_framed(number, _parameter(item)) for item in value)


def _parameter(value: Obj) -> bytes:
    if "$ref" in value:
        return _framed(2, _text(1, value["$ref"]))
    place = value.get("in")
    if place == "body":
        return _framed(1, _framed(1, _message(_BODY, 6, value)))
    place = place if place in _PLAIN else "query"
    plain = _message(_PLAIN[place], _PLAIN_EXTENSIONS[place], value)
    return _framed(1, _framed(2, _framed(_PLACES[place], plain)))


def _responses(number: int, value: Obj) -> bytes:
    return _framed(number, _named(1, value, lambda one: _framed(1, _message(_RESPONSE, 5, one))))


def _response_schema(number: int, value: Obj) -> bytes:
    return _framed(number, _schema(1, value))


_RESPONSE: dict[str, tuple[int, _Writer]] = {"description": (1, _text), "schema": (2, _response_schema)}


def _operation(number: int, value: Obj) -> bytes:
    return _framed(number, _message(_OPERATION, 13, value))


_OPERATION: dict[str, tuple[int, _Writer]] = {
    "tags": (1, _texts),
    "summary": (2, _text),
    "description": (3, _text),
    "operationId": (5, _text),
    "produces": (6, _texts),
    "consumes": (7, _texts),
    "parameters": (8, _parameters),
    "responses": (9, _responses),
    "schemes": (10, _texts),
    "deprecated": (11, _flag),
}
_PATH: dict[str, tuple[int, _Writer]] = {
    "get": (2, _operation),
    "put": (3, _operation),
    "post": (4, _operation),
    "delete": (5, _operation),
    "options": (6, _operation),
    "head": (7, _operation),
    "patch": (8, _operation),
    "parameters": (9, _parameters),
}


def _paths(number: int, value: Obj) -> bytes:
    return _framed(number, _named(2, value, lambda one: _message(_PATH, 10, one)))


def _definitions(number: int, value: Obj) -> bytes:
    return _framed(number, _named(1, value, schema_bytes))


def _info(number: int, value: Obj) -> bytes:
    return _framed(number, _message({"title": (1, _text), "version": (2, _text)}, 7, value))


_DOCUMENT: dict[str, tuple[int, _Writer]] = {
    "swagger": (1, _text),
    "info": (2, _info),
    "paths": (8, _paths),
    "definitions": (9, _definitions),
}


def document_bytes(document: Obj) -> bytes:
    """The message ``openapi.v2.Document`` of a Swagger 2.0 document."""
    return _message(_DOCUMENT, 16, document)
