"""Reads protobuf messages as JSON values: :class:`Reader`.

Called for request bodies: of Kubernetes' own types (``cluster/serving/protobuf.py``) and of the server's API. A value
is what Go's JSON encoder would write. Pure; every part is counted, and errors never contain values of the body.
"""

from __future__ import annotations

import math
import struct
from base64 import b64encode
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from enum import IntEnum
from typing import Any

import msgspec

from syncline.base.clock import format_micro_time, format_time
from syncline.kube.objects import Obj
from syncline.kube.protobuf.fields import EXTENSIONS, META, ZEROS, Field, Messages
from syncline.kube.text.durations import duration_text

MAX_PARTS = 400_000
"""Limit of fields and messages in one body, skipped ones included."""
MAX_DEPTH = 100
"""Limit of nested messages; each level of a custom resource's schema takes two."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Wire(IntEnum):
    VARINT = 0
    FIXED64 = 1
    BYTES = 2
    GROUP = 3
    END_GROUP = 4
    FIXED32 = 5


class Malformed(Exception):
    """The bytes are malformed, and why; the caller writes the refusal."""


Found = dict[int, list[tuple[Wire, Any]]]
"""Field number → values on the wire, in order: integers or views of the bytes."""


def joined(occurrences: list[tuple[Wire, Any]]) -> memoryview:
    """Join a message that was sent in pieces (protobuf's merge rule)."""
    if any(wire is not Wire.BYTES for wire, _ in occurrences):
        raise Malformed("a number stands where a message belongs")
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
            raise Malformed("it ends within a number")
        byte = data[at]
        at += 1
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            return number & 0xFFFF_FFFF_FFFF_FFFF, at
        shift += 7
        if shift >= 70:
            raise Malformed("a number is longer than 64 bits")


def _one(data: memoryview, at: int, wire: Wire) -> tuple[Any, int]:
    """Return the value at ``at`` and the offset after it; group markers have no value."""
    size = 0
    if wire is Wire.VARINT:
        return _varint(data, at)
    if wire is Wire.BYTES:
        size, at = _varint(data, at)
    elif wire is Wire.FIXED64:
        size = 8
    elif wire is Wire.FIXED32:
        size = 4
    if size > len(data) - at:
        raise Malformed(f"it ends within a field: {size} bytes announced, {len(data) - at} left")
    return data[at : at + size], at + size


def _signed(number: int, bits: int) -> int:
    number &= (1 << bits) - 1
    return number - (1 << bits) if number >> (bits - 1) else number


class Reader:
    """Reads one body and enforces the limits of parts and depth."""

    __slots__ = ("_left", "_messages")

    def __init__(self, messages: Messages) -> None:
        self._messages = messages
        self._left = MAX_PARTS

    def _count(self) -> None:
        self._left -= 1
        if self._left < 0:
            raise Malformed(f"it has more than {MAX_PARTS} fields and messages")

    def _records(self, data: memoryview) -> Iterator[tuple[int, Wire, Any]]:
        """Yield number, wire type and value of each field; skip groups, which Kubernetes does not use."""
        at = groups = 0
        while at < len(data):
            self._count()
            tag, at = _varint(data, at)
            number = tag >> 3
            try:
                wire = Wire(tag & 7)
            except ValueError:
                raise Malformed(f"field {number} has the wire type {tag & 7}; there are 0 to 5") from None
            if not 0 < number < 1 << 29:
                raise Malformed(f"it has a field with the number {number}; numbers are 1 to {(1 << 29) - 1}")
            value, at = _one(data, at, wire)
            if wire is Wire.GROUP:
                groups += 1
            elif wire is Wire.END_GROUP:
                groups -= 1
                if groups < 0:
                    raise Malformed("a group ends that did not begin")
            elif not groups:
                yield number, wire, value
        if groups:
            raise Malformed("it ends within a group")

    def found(self, data: memoryview) -> Found:
        found: Found = {}
        for number, wire, value in self._records(data):
            found.setdefault(number, []).append((wire, value))
        return found

    def last_text(self, found: Found, number: int) -> str:
        occurrences = found.get(number)
        return "" if not occurrences else str(_scalar("string", *occurrences[-1]))

    # --- messages ----------------------------------------------------------------------------------------------

    def message(self, name: str, data: memoryview, depth: int) -> Any:
        """Return the JSON value of a message: an object, or what its Go type's own encoder writes."""
        self._count()
        if depth > MAX_DEPTH:
            raise Malformed(f"messages lie more than {MAX_DEPTH} deep in each other")
        found = self.found(data)
        special = _SPECIAL.get(name)
        if special is not None:
            return special(self, found, depth)
        if self._messages.is_list(name):
            field = self._messages.fields(name)[0]
            return self._list(field, found.get(field.number, []), depth)
        made: Obj = {}
        for field in self._messages.fields(name):
            try:
                self._put(made, field, found.get(field.number, []), depth)
            except _WrongWire as error:
                raise Malformed(f"{name.rpartition('.')[2]}.{field.name} {error}") from None
        return made

    def _put(self, made: Obj, field: Field, occurrences: list[tuple[Wire, Any]], depth: int) -> None:
        """Write a field as Go's JSON encoder does: set pointers always, lists, maps and zeros unless omitempty."""
        if field.is_map or field.repeated:
            value = (self._map if field.is_map else self._list)(field, occurrences, depth) or None
            omitted = value is None and field.omit_empty
        elif field.pointer and not occurrences:
            value, omitted = None, field.omit_empty or field.inline
        elif field.scalar:
            value = _scalar(field.kind, *occurrences[-1]) if occurrences else ZEROS[field.kind]
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

    def _list(self, field: Field, occurrences: list[tuple[Wire, Any]], depth: int) -> list[Any]:
        values: list[Any] = []
        for wire, value in occurrences:
            if not field.scalar:
                values.append(self.message(field.kind, _message_bytes([(wire, value)]), depth + 1))
            elif wire is Wire.BYTES and field.kind not in ("string", "bytes"):
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

    def _map(self, field: Field, occurrences: list[tuple[Wire, Any]], depth: int) -> Obj:
        """Return a map from its entry messages; for a repeated key, the last entry wins."""
        made: Obj = {}
        for wire, data in occurrences:
            entry = self.found(_message_bytes([(wire, data)]))
            values = entry.get(2, [])
            if not field.scalar:
                value = self.message(field.kind, _message_bytes(values), depth + 1)
            else:
                value = _scalar(field.kind, *values[-1]) if values else ZEROS[field.kind]
            made[self.last_text(entry, 1)] = value
        return made


_NOTHING = memoryview(b"")


class _WrongWire(Malformed):
    """The value's wire type does not fit its field; the refusal names the field."""


def _message_bytes(occurrences: list[tuple[Wire, Any]]) -> memoryview:
    for wire, _ in occurrences:
        if wire is not Wire.BYTES:
            raise _WrongWire(f"has the wire type {wire.value}, must be {Wire.BYTES.value} (a message)")
    return joined(occurrences)


# --- scalars -------------------------------------------------------------------------------------------------------

_WIRES = {
    "string": Wire.BYTES,
    "bytes": Wire.BYTES,
    "bool": Wire.VARINT,
    "int32": Wire.VARINT,
    "int64": Wire.VARINT,
    "double": Wire.FIXED64,
}


def _scalar(kind: str, wire: Wire, value: Any) -> Any:
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


def _last_int(found: Found, number: int, bits: int = 64) -> int:
    occurrences = found.get(number)
    return int(_scalar("int32" if bits == 32 else "int64", *occurrences[-1])) if occurrences else 0


def _instant(found: Found, *, micro: bool) -> str | None:
    """Return a timestamp: ``Time`` has seconds, ``MicroTime`` microseconds; None for an empty message."""
    if not found:
        return None
    try:
        instant = _EPOCH + timedelta(
            seconds=_last_int(found, 1), microseconds=_last_int(found, 2, 32) // 1000 if micro else 0
        )
    except OverflowError:
        raise Malformed("a time lies outside of the years 1 to 9999") from None
    return format_micro_time(instant) if micro else format_time(instant)


def _json(found: Found) -> Any:
    """Decode bytes that hold an embedded JSON document."""
    raw = _message_bytes(found.get(1, [])[-1:])
    if not raw:
        return None
    try:
        return msgspec.json.decode(raw)
    except (msgspec.DecodeError, ValueError, RecursionError):
        raise Malformed("an embedded document is not JSON") from None


def _quantity(reader: Reader, found: Found, _: int) -> str:
    return reader.last_text(found, 1) or "0"


def _int_or_string(reader: Reader, found: Found, _: int) -> int | str:
    return reader.last_text(found, 3) if _last_int(found, 1) else _last_int(found, 2, 32)


def _schema(reader: Reader, found: Found, number: int, depth: int) -> Any:
    occurrences = found.get(number)
    if not occurrences:
        return None
    return reader.message(f"{EXTENSIONS}.JSONSchemaProps", _message_bytes(occurrences), depth + 1)


def _schema_or_list(reader: Reader, found: Found, depth: int) -> Any:
    if 2 not in found:
        return _schema(reader, found, 1, depth)
    return [_schema(reader, {2: [occurrence]}, 2, depth) for occurrence in found[2]]


def _schema_or_bool(reader: Reader, found: Found, depth: int) -> Any:
    return _schema(reader, found, 2, depth) if 2 in found else _last_int(found, 1) != 0


def _schema_or_names(reader: Reader, found: Found, depth: int) -> Any:
    names = [str(_scalar("string", wire, value)) for wire, value in found.get(2, [])]
    return names or _schema(reader, found, 1, depth)


_SPECIAL: dict[str, Callable[[Reader, Found, int], Any]] = {
    f"{META}.Time": lambda _, found, __: _instant(found, micro=False),
    f"{META}.MicroTime": lambda _, found, __: _instant(found, micro=True),
    f"{META}.Duration": lambda _, found, __: duration_text(_last_int(found, 1)),
    f"{META}.FieldsV1": lambda _, found, __: _json(found),
    "io.k8s.apimachinery.pkg.runtime.RawExtension": lambda _, found, __: _json(found),
    "io.k8s.apimachinery.pkg.api.resource.Quantity": _quantity,
    "io.k8s.apimachinery.pkg.util.intstr.IntOrString": _int_or_string,
    f"{EXTENSIONS}.JSON": lambda _, found, __: _json(found),
    f"{EXTENSIONS}.JSONSchemaPropsOrArray": _schema_or_list,
    f"{EXTENSIONS}.JSONSchemaPropsOrBool": _schema_or_bool,
    f"{EXTENSIONS}.JSONSchemaPropsOrStringArray": _schema_or_names,
}
