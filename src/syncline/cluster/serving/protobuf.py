"""Decode Kubernetes protobuf bodies to JSON values, as kubectl's generator commands and typed clients send them.

:func:`decode` takes the bytes of one enveloped object and returns the object as Go's JSON encoder would write it, so
that later code treats it like a JSON body. It never writes protobuf (responses are JSON), and its errors never contain
values of the body. Rules: the envelope of apimachinery ``runtime/serializer/protobuf``; ``protobuf.json.xz`` marks
which empty values are written, from Kubernetes' Go types as ``tools/build_protobuf.py`` found them.
"""

from __future__ import annotations

import math
import struct
from base64 import b64encode
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import IntEnum
from functools import cache
from typing import Any

import msgspec

from syncline.base.clock import format_micro_time, format_time
from syncline.kube.errors import BadRequest
from syncline.kube.objects import GVK, Obj
from syncline.kube.schema import store
from syncline.kube.text.durations import duration_text

MEDIA_TYPE = "application/vnd.kubernetes.protobuf"

MAX_SIZE_BYTES = 3 * 1024 * 1024
"""Size limit of a body; Kubernetes' limit for any request body (``MaxRequestBodyBytes``)."""
MAX_PARTS = 400_000
"""Limit of fields and messages in one body, skipped ones included."""
MAX_DEPTH = 100
"""Limit of nested messages; each level of a custom resource's schema takes two."""

_MAGIC = b"k8s\x00"
_SCALARS = frozenset({"string", "bool", "int32", "int64", "double", "bytes"})
_META = "io.k8s.apimachinery.pkg.apis.meta.v1"
_EXTENSIONS = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_TYPE_META, _RAW, _ENCODING = 1, 2, 3
"""Field numbers of the envelope (``runtime.Unknown``)."""


class _Wire(IntEnum):
    VARINT = 0
    FIXED64 = 1
    BYTES = 2
    GROUP = 3
    END_GROUP = 4
    FIXED32 = 5


@dataclass(frozen=True, slots=True)
class _Field:
    name: str
    kind: str
    """A scalar type, or the name of a message."""
    is_map: bool
    repeated: bool
    pointer: bool
    omit_empty: bool
    omit_zero: bool
    inline: bool

    @property
    def scalar(self) -> bool:
        return self.kind in _SCALARS


class _Malformed(Exception):
    """The bytes are malformed, and why; the caller writes the refusal."""


_Found = dict[int, list[tuple[_Wire, Any]]]
"""Field number → values on the wire, in order: integers or views of the bytes."""


@cache
def _fields(message: str) -> tuple[tuple[int, _Field], ...]:
    return tuple(
        (
            number,
            _Field(name, kind, "{" in marks, "[" in marks, "*" in marks, "?" in marks, "0" in marks, "~" in marks),
        )
        for number, name, kind, marks in store.protobuf_table()[message]
    )


@cache
def _is_list(message: str) -> bool:
    """Return whether the Go type is a list, which protobuf must wrap in a message."""
    return any("=" in marks for _, _, _, marks in store.protobuf_table()[message])


NO_ENVELOPE = "provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]"


def decode(body: bytes) -> Obj:
    """Return the object of an enveloped body, with the envelope's ``kind`` and ``apiVersion``; raise BadRequest."""
    if len(body) > MAX_SIZE_BYTES:
        raise BadRequest(f"the protobuf body has {len(body)} bytes, of at most {MAX_SIZE_BYTES}")
    if not body.startswith(_MAGIC):
        raise BadRequest(NO_ENVELOPE)
    reader = _Reader()
    try:
        gvk, raw = _opened(reader, memoryview(body)[len(_MAGIC) :])
    except _Malformed as error:
        raise BadRequest(f"the envelope of the protobuf body cannot be read: {error}") from None
    try:
        value = reader.message(_message_of(gvk), raw, 0)
    except _Malformed as error:
        raise BadRequest(f"the protobuf body of a {gvk.kind} ({_api_version(gvk)}) cannot be read: {error}") from None
    return {"kind": gvk.kind, "apiVersion": _api_version(gvk), **value}


def _opened(reader: _Reader, data: memoryview) -> tuple[GVK, memoryview]:
    """Return the kind that an envelope names, and the object's bytes."""
    envelope = reader.found(data)
    if reader.last_text(envelope, _ENCODING):
        raise _Malformed("its content is encoded (contentEncoding); send it plain")
    type_meta = reader.found(_joined(envelope.get(_TYPE_META, [])))
    api_version, kind = reader.last_text(type_meta, 1), reader.last_text(type_meta, 2)
    if not kind or not api_version:
        raise _Malformed("it names no apiVersion and kind (typeMeta)")
    group, _, version = api_version.rpartition("/")
    return GVK(group, version, kind), _joined(envelope.get(_RAW, []))


def _api_version(gvk: GVK) -> str:
    return f"{gvk.group}/{gvk.version}" if gvk.group else gvk.version


def _message_of(gvk: GVK) -> str:
    """Return the message type of a kind; clients send ``DeleteOptions`` under any group."""
    name = store.kinds().get(gvk, "") if gvk.kind != "DeleteOptions" else f"{_META}.DeleteOptions"
    if name not in store.protobuf_table():
        raise BadRequest(
            f'no kind "{gvk.kind}" is registered for version "{_api_version(gvk)}" as protobuf; custom resources '
            "and their like are sent as application/json"
        )
    return name


def _joined(occurrences: list[tuple[_Wire, Any]]) -> memoryview:
    """Join a message that was sent in pieces (protobuf's merge rule)."""
    if any(wire is not _Wire.BYTES for wire, _ in occurrences):
        raise _Malformed("a number stands where a message belongs")
    if len(occurrences) == 1:
        view: memoryview = occurrences[0][1]
        return view
    return memoryview(b"".join(piece for _, piece in occurrences))


# --- the wire ------------------------------------------------------------------------------------------------------


def _varint(data: memoryview, at: int) -> tuple[int, int]:
    """Return the unsigned 64-bit number at ``at``, and the offset after it."""
    number = shift = 0
    while True:
        if at >= len(data):
            raise _Malformed("it ends within a number")
        byte = data[at]
        at += 1
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            return number & 0xFFFF_FFFF_FFFF_FFFF, at
        shift += 7
        if shift >= 70:
            raise _Malformed("a number is longer than 64 bits")


def _one(data: memoryview, at: int, wire: _Wire) -> tuple[Any, int]:
    """Return the value at ``at`` and the offset after it; group markers have no value."""
    size = 0
    if wire is _Wire.VARINT:
        return _varint(data, at)
    if wire is _Wire.BYTES:
        size, at = _varint(data, at)
    elif wire is _Wire.FIXED64:
        size = 8
    elif wire is _Wire.FIXED32:
        size = 4
    if size > len(data) - at:
        raise _Malformed(f"it ends within a field: {size} bytes announced, {len(data) - at} left")
    return data[at : at + size], at + size


def _signed(number: int, bits: int) -> int:
    number &= (1 << bits) - 1
    return number - (1 << bits) if number >> (bits - 1) else number


class _Reader:
    """Reads one body and enforces the limits of parts and depth."""

    __slots__ = ("_left",)

    def __init__(self) -> None:
        self._left = MAX_PARTS

    def _count(self) -> None:
        self._left -= 1
        if self._left < 0:
            raise _Malformed(f"it has more than {MAX_PARTS} fields and messages")

    def _records(self, data: memoryview) -> Iterator[tuple[int, _Wire, Any]]:
        """Yield number, wire type and value of each field; skip groups, which Kubernetes does not use."""
        at = groups = 0
        while at < len(data):
            self._count()
            tag, at = _varint(data, at)
            number = tag >> 3
            try:
                wire = _Wire(tag & 7)
            except ValueError:
                raise _Malformed(f"field {number} has the wire type {tag & 7}; there are 0 to 5") from None
            if not 0 < number < 1 << 29:
                raise _Malformed(f"it has a field with the number {number}; numbers are 1 to {(1 << 29) - 1}")
            value, at = _one(data, at, wire)
            if wire is _Wire.GROUP:
                groups += 1
            elif wire is _Wire.END_GROUP:
                groups -= 1
                if groups < 0:
                    raise _Malformed("a group ends that did not begin")
            elif not groups:
                yield number, wire, value
        if groups:
            raise _Malformed("it ends within a group")

    def found(self, data: memoryview) -> _Found:
        found: _Found = {}
        for number, wire, value in self._records(data):
            found.setdefault(number, []).append((wire, value))
        return found

    def last_text(self, found: _Found, number: int) -> str:
        occurrences = found.get(number)
        return "" if not occurrences else str(_scalar("string", *occurrences[-1]))

    # --- messages ----------------------------------------------------------------------------------------------

    def message(self, name: str, data: memoryview, depth: int) -> Any:
        """Return the JSON value of a message: an object, or what its Go type's own encoder writes."""
        self._count()
        if depth > MAX_DEPTH:
            raise _Malformed(f"messages lie more than {MAX_DEPTH} deep in each other")
        found = self.found(data)
        special = _SPECIAL.get(name)
        if special is not None:
            return special(self, found, depth)
        if _is_list(name):
            number, field = _fields(name)[0]
            return self._list(field, found.get(number, []), depth)
        made: Obj = {}
        for number, field in _fields(name):
            try:
                self._put(made, field, found.get(number, []), depth)
            except _WrongWire as error:
                raise _Malformed(f"{name.rpartition('.')[2]}.{field.name} {error}") from None
        return made

    def _put(self, made: Obj, field: _Field, occurrences: list[tuple[_Wire, Any]], depth: int) -> None:
        """Write a field as Go's JSON encoder does: set pointers always, lists, maps and zeros unless omitempty."""
        if field.is_map or field.repeated:
            value = (self._map if field.is_map else self._list)(field, occurrences, depth) or None
            omitted = value is None and field.omit_empty
        elif field.pointer and not occurrences:
            value, omitted = None, field.omit_empty or field.inline
        elif field.scalar:
            value = _scalar(field.kind, *occurrences[-1]) if occurrences else _ZEROS[field.kind]
            omitted = field.omit_empty and not field.pointer and not value
            if field.kind == "bytes" and not value:
                value = None
        else:
            value = self.message(field.kind, _message_bytes(occurrences), depth + 1)
            omitted = field.omit_zero and not field.pointer and value == self.message(field.kind, _NOTHING, depth + 1)
        if omitted:
            return
        if field.inline and isinstance(value, dict):
            made.update(value)
        else:
            made[field.name] = value

    def _list(self, field: _Field, occurrences: list[tuple[_Wire, Any]], depth: int) -> list[Any]:
        values: list[Any] = []
        for wire, value in occurrences:
            if not field.scalar:
                values.append(self.message(field.kind, _message_bytes([(wire, value)]), depth + 1))
            elif wire is _Wire.BYTES and field.kind not in ("string", "bytes"):
                values += self._packed(field.kind, value)
            else:
                values.append(_scalar(field.kind, wire, value))
        return values

    def _packed(self, kind: str, data: memoryview) -> Iterator[Any]:
        """Yield the values of a packed repeated field; Go accepts packed and unpacked ones."""
        at, wire = 0, _WIRES[kind]
        while at < len(data):
            self._count()
            value, at = _one(data, at, wire)
            yield _scalar(kind, wire, value)

    def _map(self, field: _Field, occurrences: list[tuple[_Wire, Any]], depth: int) -> Obj:
        """Return a map from its entry messages; for a repeated key, the last entry wins."""
        made: Obj = {}
        for wire, data in occurrences:
            entry = self.found(_message_bytes([(wire, data)]))
            values = entry.get(2, [])
            if not field.scalar:
                value = self.message(field.kind, _message_bytes(values), depth + 1)
            else:
                value = _scalar(field.kind, *values[-1]) if values else _ZEROS[field.kind]
            made[self.last_text(entry, 1)] = value
        return made


_NOTHING = memoryview(b"")


class _WrongWire(_Malformed):
    """The value's wire type does not fit its field; the refusal names the field."""


def _message_bytes(occurrences: list[tuple[_Wire, Any]]) -> memoryview:
    for wire, _ in occurrences:
        if wire is not _Wire.BYTES:
            raise _WrongWire(f"has the wire type {wire.value}, must be {_Wire.BYTES.value} (a message)")
    return _joined(occurrences)


# --- scalars -------------------------------------------------------------------------------------------------------

_WIRES = {
    "string": _Wire.BYTES,
    "bytes": _Wire.BYTES,
    "bool": _Wire.VARINT,
    "int32": _Wire.VARINT,
    "int64": _Wire.VARINT,
    "double": _Wire.FIXED64,
}
_ZEROS: dict[str, Any] = {"string": "", "bytes": "", "bool": False, "int32": 0, "int64": 0, "double": 0.0}


def _scalar(kind: str, wire: _Wire, value: Any) -> Any:
    if wire is not _WIRES[kind]:
        raise _WrongWire(f"has the wire type {wire.value}, must be {_WIRES[kind].value} ({kind})")
    if kind == "string":
        return _text(value)
    if kind == "bytes":
        return b64encode(value).decode()
    if kind == "double":
        return _double(value)
    return bool(value) if kind == "bool" else _signed(value, 32 if kind == "int32" else 64)


def _text(value: memoryview) -> str:
    try:
        return str(value, "utf-8")
    except UnicodeDecodeError as error:
        raise _WrongWire(f"is not UTF-8 at byte {error.start}; binary content belongs into a field of bytes") from None


def _double(value: memoryview) -> float:
    number: float = struct.unpack("<d", value)[0]
    if not math.isfinite(number):
        raise _WrongWire("is infinite or not a number, which JSON cannot say")
    return number


# --- types that write their JSON themselves ------------------------------------------------------------------------


def _last_int(found: _Found, number: int, bits: int = 64) -> int:
    occurrences = found.get(number)
    return int(_scalar("int32" if bits == 32 else "int64", *occurrences[-1])) if occurrences else 0


def _instant(found: _Found, *, micro: bool) -> str | None:
    """Return a timestamp: ``Time`` has seconds, ``MicroTime`` microseconds; None for an empty message."""
    if not found:
        return None
    try:
        instant = _EPOCH + timedelta(
            seconds=_last_int(found, 1), microseconds=_last_int(found, 2, 32) // 1000 if micro else 0
        )
    except OverflowError:
        raise _Malformed("a time lies outside of the years 1 to 9999") from None
    return format_micro_time(instant) if micro else format_time(instant)


def _json(found: _Found) -> Any:
    """Decode bytes that hold an embedded JSON document."""
    raw = _message_bytes(found.get(1, [])[-1:])
    if not raw:
        return None
    try:
        return msgspec.json.decode(raw)
    except (msgspec.DecodeError, ValueError, RecursionError):
        raise _Malformed("an embedded document is not JSON") from None


def _quantity(reader: _Reader, found: _Found, _: int) -> str:
    return reader.last_text(found, 1) or "0"


def _int_or_string(reader: _Reader, found: _Found, _: int) -> int | str:
    return reader.last_text(found, 3) if _last_int(found, 1) else _last_int(found, 2, 32)


def _schema(reader: _Reader, found: _Found, number: int, depth: int) -> Any:
    occurrences = found.get(number)
    if not occurrences:
        return None
    return reader.message(f"{_EXTENSIONS}.JSONSchemaProps", _message_bytes(occurrences), depth + 1)


def _schema_or_list(reader: _Reader, found: _Found, depth: int) -> Any:
    if 2 not in found:
        return _schema(reader, found, 1, depth)
    return [_schema(reader, {2: [occurrence]}, 2, depth) for occurrence in found[2]]


def _schema_or_bool(reader: _Reader, found: _Found, depth: int) -> Any:
    return _schema(reader, found, 2, depth) if 2 in found else _last_int(found, 1) != 0


def _schema_or_names(reader: _Reader, found: _Found, depth: int) -> Any:
    names = [str(_scalar("string", wire, value)) for wire, value in found.get(2, [])]
    return names or _schema(reader, found, 1, depth)


_SPECIAL: dict[str, Callable[[_Reader, _Found, int], Any]] = {
    f"{_META}.Time": lambda _, found, __: _instant(found, micro=False),
    f"{_META}.MicroTime": lambda _, found, __: _instant(found, micro=True),
    f"{_META}.Duration": lambda _, found, __: duration_text(_last_int(found, 1)),
    f"{_META}.FieldsV1": lambda _, found, __: _json(found),
    "io.k8s.apimachinery.pkg.runtime.RawExtension": lambda _, found, __: _json(found),
    "io.k8s.apimachinery.pkg.api.resource.Quantity": _quantity,
    "io.k8s.apimachinery.pkg.util.intstr.IntOrString": _int_or_string,
    f"{_EXTENSIONS}.JSON": lambda _, found, __: _json(found),
    f"{_EXTENSIONS}.JSONSchemaPropsOrArray": _schema_or_list,
    f"{_EXTENSIONS}.JSONSchemaPropsOrBool": _schema_or_bool,
    f"{_EXTENSIONS}.JSONSchemaPropsOrStringArray": _schema_or_names,
}
