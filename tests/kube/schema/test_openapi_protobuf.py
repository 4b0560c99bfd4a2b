"""The Swagger document as protobuf: read back with nothing but the wire format, message numbers from gnostic's file."""

from __future__ import annotations

from typing import Any

from syncline.kube.objects import GVK
from syncline.kube.schema.openapi.document import openapi_v2
from syncline.kube.schema.openapi.protobuf import document_bytes
from syncline.kube.schema.resources import builtin_resources

PATHS, DEFINITIONS = 8, 9
PROPERTIES, TYPE, EXTENSIONS = 25, 22, 31


def varint(raw: bytes, at: int) -> tuple[int, int]:
    number = shift = 0
    while True:
        number |= (raw[at] & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if raw[at - 1] < 0x80:
            return number, at


def read(raw: bytes) -> dict[int, list[Any]]:
    """Fields by number; messages stay bytes."""
    found: dict[int, list[Any]] = {}
    at = 0
    while at < len(raw):
        tag, at = varint(raw, at)
        if tag & 7 == 0:
            value: Any
            value, at = varint(raw, at)
        elif tag & 7 == 1:
            value, at = raw[at : at + 8], at + 8
        else:
            assert tag & 7 == 2, "the document has no other wire types"
            size, at = varint(raw, at)
            value, at = raw[at : at + size], at + size
            assert len(value) == size
        found.setdefault(tag >> 3, []).append(value)
    return found


def named(entries: list[bytes]) -> dict[str, dict[int, list[Any]]]:
    return {one[1][0].decode(): read(one.get(2, [b""])[0]) for one in map(read, entries)}


CREW = GVK("example.com", "v1", "Crew")
SCHEMA = {
    "type": "object",
    "properties": {
        "spec": {
            "type": "object",
            "required": ["size"],
            "properties": {
                "size": {"type": "integer", "minimum": 1.5, "maxLength": 3, "default": 7},
                "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
                "names": {"type": "object", "additionalProperties": {"type": "string", "enum": ["a", "b"]}},
            },
        }
    },
}


def test_every_definition_and_path_stands_in_the_protobuf_form() -> None:
    document = openapi_v2(list(builtin_resources()), {})
    top = read(document_bytes(document))
    assert top[1] == [b"2.0"]
    assert named(read(top[DEFINITIONS][0])[1]).keys() == document["definitions"].keys()
    assert named(read(top[PATHS][0])[2]).keys() == document["paths"].keys()


def test_a_schema_keeps_its_types_bounds_defaults_and_extensions() -> None:
    document = {"swagger": "2.0", "info": {"title": "t", "version": "v"}, "paths": {}, "definitions": {"Crew": SCHEMA}}
    crew = named(read(read(document_bytes(document))[DEFINITIONS][0])[1])["Crew"]
    assert read(crew[TYPE][0]) == {1: [b"object"]}
    spec = named(read(crew[PROPERTIES][0])[1])["spec"]
    assert spec[19] == [b"size"]
    fields = named(read(spec[PROPERTIES][0])[1])
    assert read(fields["size"][5][0]) == {2: [b"7\n"]}
    assert (fields["size"][11], fields["size"][9][0][-2:]) == ([3], b"\xf8?")
    assert named(fields["free"][EXTENSIONS])["x-kubernetes-preserve-unknown-fields"] == {2: [b"true\n"]}
    values = read(read(fields["names"][21][0])[1][0])
    assert [read(one) for one in values[20]] == [{2: [b"a\n"]}, {2: [b"b\n"]}]


def test_parameters_are_told_apart_by_their_place() -> None:
    parameters = [
        {"name": "body", "in": "body", "required": True, "schema": {"$ref": "#/definitions/Crew"}},
        {"name": "pretty", "in": "query", "type": "string"},
        {"name": "name", "in": "path", "type": "string", "required": True},
    ]
    answers = {"200": {"description": "OK", "schema": {"$ref": "#/definitions/Crew"}}}
    document = {"paths": {"/crews": {"put": {"operationId": "put", "parameters": parameters, "responses": answers}}}}
    put = read(named(read(read(document_bytes(document))[PATHS][0])[2])["/crews"][3][0])
    body, query, path = (read(read(one)[1][0]) for one in put[8])
    assert read(body[1][0])[2] == [b"body"]
    assert read(read(query[2][0])[3][0])[4] == [b"pretty"]
    assert read(read(path[2][0])[4][0])[1] == [1]
    assert named(read(put[9][0])[1])["200"].keys() == {1}
