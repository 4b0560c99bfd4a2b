"""Writes JSON values as protobuf messages: :class:`Writer`, the counterpart of :mod:`syncline.kube.protobuf.reading`.

Called for the answers of the server's API. Members without a number are left out, as Go's types leave them out; a zero
value is written only where Go has a pointer and so tells it from none. Each message is compiled into functions once.
Errors name the path of a member, never its value.
"""

from __future__ import annotations

import struct
from base64 import b64decode
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

import msgspec

from syncline.base.clock import parse_time
from syncline.kube.protobuf.fields import META, Field, Messages
from syncline.kube.text.durations import parse_nanoseconds

_VARINT, _FIXED64, _BYTES = 0, 1, 2
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

Write = Callable[[list[bytes], Any], None]
"""Appends the pieces of one value."""


class WrongValue(ValueError):
    """A member that its type cannot hold; the text names its path and what belongs there."""

    def __init__(self, path: str, wanted: str) -> None:
        super().__init__(path, wanted)
        self.path = path
        self.wanted = wanted

    def __str__(self) -> str:
        return f"{self.path or 'the value'} must be {self.wanted}"

    def within(self, name: str) -> WrongValue:
        """Return the error as seen from the owner of the member ``name``."""
        path = f"{name}{self.path}" if self.path.startswith("[") else f"{name}.{self.path}"
        return WrongValue(path if self.path else name, self.wanted)


class Encoded:
    """A message that is kept in its written form; it stands for the object wherever a value belongs."""

    __slots__ = ("json", "parts", "wire")

    def __init__(self, wire: bytes, json: bytes) -> None:
        self.wire = wire
        self.json = json
        self.parts: dict[object, bytes] = {}
        """Parts of the JSON that callers asked for, under the choice, kept by the module that makes them."""


def varint(number: int) -> bytes:
    """Return the bytes of a number; a negative one takes ten, as 64 bits of two's complement."""
    if 0 <= number < 0x80:
        return _SMALL[number]
    number &= (1 << 64) - 1
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


_SMALL = [bytes((number,)) for number in range(0x80)]


def framed(number: int, raw: bytes) -> bytes:
    """Return a field of bytes, a text or a message."""
    return varint(number << 3 | _BYTES) + varint(len(raw)) + raw


class Writer:
    """Writes the messages of ``messages``."""

    def __init__(self, messages: Messages) -> None:
        self._messages = messages
        self._compiled: dict[str, Callable[[Any], bytes]] = {}

    def write(self, message: str, value: Any) -> bytes:
        """Return the bytes of a message. Raises :class:`WrongValue`."""
        return self._of(message)(value)

    def _of(self, message: str) -> Callable[[Any], bytes]:
        found = self._compiled.get(message)
        if found is None:
            # A message may contain itself: what is compiled now is looked up when it is first written.
            self._compiled[message] = lambda value: self._compiled[message](value)
            found = self._compiled[message] = self._compile(message)
        return found

    def _compile(self, message: str) -> Callable[[Any], bytes]:
        special = _SPECIAL.get(message)
        if special is not None:
            return special
        fields = self._messages.fields(message)
        if self._messages.is_list(message):
            return _list_writer(self._field(fields[0]))
        return _message_writer([(field.name, self._field(field)) for field in fields])

    def _field(self, field: Field) -> Write:
        """Return what appends the field of a value; inline fields take the value of their owner."""
        if field.is_map:
            return self._map(field)
        one = self._one(field, keep_zero=field.repeated or field.pointer)
        return _repeated(one) if field.repeated else one

    def _one(self, field: Field, *, keep_zero: bool) -> Write:
        if field.scalar:
            return _scalar_writer(field.number, field.kind, keep_zero=keep_zero)
        tag, encode = varint(field.number << 3 | _BYTES), self._of(field.kind)
        if field.inline:
            names = {one.name for one in self._messages.fields(field.kind)}
            return lambda out, value: _put_inline(out, tag, encode, names, value)

        def write(out: list[bytes], value: Any) -> None:
            raw = value.wire if type(value) is Encoded else encode(value)
            if raw or keep_zero:
                out += (tag, varint(len(raw)), raw)

        return write

    def _map(self, field: Field) -> Write:
        tag = varint(field.number << 3 | _BYTES)
        one = self._one(Field(2, "", field.kind, False, True, False, False, False, False), keep_zero=True)

        def write(out: list[bytes], value: Any) -> None:
            if not isinstance(value, Mapping):
                raise WrongValue("", "an object")
            for key in sorted(value):
                pieces = [framed(1, key.encode())]
                if value[key] is not None:
                    try:
                        one(pieces, value[key])
                    except WrongValue as error:
                        raise error.within(f"[{key!r}]") from None
                raw = b"".join(pieces)
                out += (tag, varint(len(raw)), raw)

        return write


def _put_inline(out: list[bytes], tag: bytes, encode: Callable[[Any], bytes], names: set[str], owner: Any) -> None:
    if any(owner.get(name) is not None for name in names):
        raw = encode(owner)
        out += (tag, varint(len(raw)), raw)


def _message_writer(fields: list[tuple[str, Write]]) -> Callable[[Any], bytes]:
    def write(value: Any) -> bytes:
        if type(value) is not dict and not isinstance(value, Mapping):
            raise WrongValue("", "an object")
        out: list[bytes] = []
        get = value.get
        name = ""
        try:
            for name, put in fields:
                if not name:
                    put(out, value)
                elif (member := get(name)) is not None:
                    put(out, member)
        except WrongValue as error:
            raise (error.within(name) if name else error) from None
        return b"".join(out)

    return write


def _list_writer(put: Write) -> Callable[[Any], bytes]:
    def write(value: Any) -> bytes:
        out: list[bytes] = []
        put(out, value)
        return b"".join(out)

    return write


def _repeated(put: Write) -> Write:
    def write(out: list[bytes], values: Any) -> None:
        if not isinstance(values, list | tuple):
            raise WrongValue("", "a list")
        at = 0
        try:
            for at, value in enumerate(values):  # noqa: B007
                put(out, value)
        except WrongValue as error:
            raise error.within(f"[{at}]") from None

    return write


# --- scalars -------------------------------------------------------------------------------------------------------


def _scalar_writer(number: int, kind: str, *, keep_zero: bool) -> Write:
    wire = {"string": _BYTES, "bytes": _BYTES, "double": _FIXED64}.get(kind, _VARINT)
    tag, encode = varint(number << 3 | wire), _SCALARS[kind]

    def write(out: list[bytes], value: Any) -> None:
        if value or keep_zero:
            out += (tag, encode(value))

    return write


def _text(value: Any) -> bytes:
    if type(value) is not str:
        raise WrongValue("", "a string")
    raw = value.encode("utf-8", "replace")
    return varint(len(raw)) + raw


def _integer(value: Any) -> bytes:
    if type(value) is not int:
        if not isinstance(value, float) or not value.is_integer():
            raise WrongValue("", "an integer")
        value = int(value)
    return varint(value)


def _flag(value: Any) -> bytes:
    if type(value) is not bool:
        raise WrongValue("", "true or false")
    return b"\x01" if value else b"\x00"


def _double(value: Any) -> bytes:
    if type(value) not in (int, float):
        raise WrongValue("", "a number")
    return struct.pack("<d", value)


def _raw(value: Any) -> bytes:
    try:
        raw = b64decode(value, validate=True)
    except (ValueError, TypeError):
        raise WrongValue("", "base64") from None
    return varint(len(raw)) + raw


_SCALARS: dict[str, Callable[[Any], bytes]] = {
    "string": _text,
    "bytes": _raw,
    "bool": _flag,
    "int32": _integer,
    "int64": _integer,
    "double": _double,
}

# --- types that write their JSON themselves ------------------------------------------------------------------------


def _instant(value: Any) -> bytes:
    try:
        since = parse_time(value) - _EPOCH
    except (ValueError, TypeError, AttributeError):
        raise WrongValue("", "a time such as 2026-01-02T03:04:05Z") from None
    seconds = since.days * 86_400 + since.seconds
    raw = varint(1 << 3) + varint(seconds)
    return raw + varint(2 << 3) + varint(since.microseconds * 1000) if since.microseconds else raw


def _duration(value: Any) -> bytes:
    try:
        return varint(1 << 3) + varint(parse_nanoseconds(value))
    except (ValueError, TypeError):
        raise WrongValue("", "a duration such as 1m30s") from None


def _json(value: Any) -> bytes:
    return framed(1, msgspec.json.encode(value))


def _quantity(value: Any) -> bytes:
    return framed(1, str(value).encode())


def _int_or_string(value: Any) -> bytes:
    if isinstance(value, str):
        return varint(1 << 3) + varint(1) + framed(3, value.encode())
    return varint(2 << 3) + _integer(value)


_SPECIAL: dict[str, Callable[[Any], bytes]] = {
    f"{META}.Time": _instant,
    f"{META}.MicroTime": _instant,
    f"{META}.Duration": _duration,
    f"{META}.FieldsV1": _json,
    "io.k8s.apimachinery.pkg.runtime.RawExtension": _json,
    "io.k8s.apimachinery.pkg.api.resource.Quantity": _quantity,
    "io.k8s.apimachinery.pkg.util.intstr.IntOrString": _int_or_string,
    "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSON": _json,
}
