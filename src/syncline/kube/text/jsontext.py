"""Parses JSON as Go does: invalid Unicode becomes U+FFFD, numbers out of range are errors. :func:`read_json`.

Used to decode untrusted bodies. Python's decoders accept lone surrogates, which cannot be encoded again, and read
``1e400`` as infinity, which JSON does not have. Source: Go's ``encoding/json``.
"""

from __future__ import annotations

import json
import math
import re
from operator import is_
from typing import Any

import msgspec

from syncline.kube.yaml.resolve import go_number

MOST_DIGITS = 309
REPLACEMENT = "\N{REPLACEMENT CHARACTER}"
_SURROGATE = re.compile(r"[\ud800-\udfff]")
_ESCAPE = re.compile(
    rb"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|u[dD][89a-fA-F][0-9a-fA-F]{2}|.)", re.DOTALL
)
"""A pair of escaped surrogates, a lone one, or any other escape, which may be an escaped backslash."""
LONE = len(rb"\ud800")
_DIGITS = bytes(ord("0") if chr(byte).isascii() and chr(byte).isdigit() else ord(" ") for byte in range(256))
_TOO_LONG = b"0" * MOST_DIGITS
"""So many digits may form a number out of range; then each number is checked. The search runs for every body on the
loop that serves the API, in time proportional to its length."""


def sound(body: bytes) -> bytes:
    """Return the text with invalid bytes and lone surrogates replaced."""
    if not body.isascii():
        try:
            body.decode()
        except UnicodeDecodeError:
            body = body.decode("utf-8", "replace").encode()
    if b"\\ud" in body or b"\\uD" in body:
        body = _ESCAPE.sub(_replaced, body)
    return body


def _replaced(found: re.Match[bytes]) -> bytes:
    escape = found[0]
    return rb"\ufffd" if len(escape) == LONE else escape


def has_long_numbers(body: bytes) -> bool:
    """Return True if :func:`whole` must parse the integers; long digits inside texts count, too."""
    return _TOO_LONG in body.translate(_DIGITS)


def whole(text: str) -> int:
    """Parse an integer; raises ValueError in Go's words if it is out of range."""
    if len(text.lstrip("-")) >= MOST_DIGITS:
        raise ValueError(f"json: cannot unmarshal number {text} into Go value of type float64")
    return int(text)


def no_constant(name: str) -> None:
    raise ValueError(f"{name} is no JSON number")


def finite(text: str) -> float:
    """Parse a number with a fraction or an exponent; raises ValueError in Go's words if it is out of range."""
    number = float(text)
    if math.isinf(number):
        raise ValueError(f"json: cannot unmarshal number {text} into Go value of type float64")
    return number


_decode = msgspec.json.Decoder().decode


def read_json(body: bytes | str) -> Any:
    """Parse one JSON value. Raises ValueError (also msgspec's) for invalid text, RecursionError for deep nesting."""
    raw = sound(body.encode("utf-8", "replace") if isinstance(body, str) else body)
    if has_long_numbers(raw):
        return json.loads(raw.decode(), parse_int=whole, parse_float=finite, parse_constant=no_constant)
    return in_pieces(raw)


PIECE_BYTES = 128 * 1024
"""Bytes decoded at once: one or two milliseconds, in which no other thread of the process runs."""
MAX_PIECES_DEPTH = 100
_members = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_items = msgspec.json.Decoder(list[msgspec.Raw]).decode


def in_pieces(raw: bytes | msgspec.Raw, depth: int = 0) -> Any:
    """Parse one JSON value, a large one in pieces between which other threads run. Raises as msgspec does."""
    size = memoryview(raw).nbytes
    if size <= PIECE_BYTES or depth > MAX_PIECES_DEPTH:
        return _decode(raw)
    start = bytes(memoryview(raw)[:64]).lstrip()[:1]
    if start == b"{":
        return {name: in_pieces(part, depth + 1) for name, part in _members(raw).items()}
    if start == b"[":
        return [in_pieces(part, depth + 1) for part in _items(raw)]
    return _decode(raw)


def scrubbed(value: Any) -> Any:
    """Replace lone surrogates in a JSON value; without any, its text is unchanged."""
    match value:
        case str():
            return _SURROGATE.sub(REPLACEMENT, value)
        case dict():
            return {scrubbed(key): scrubbed(part) for key, part in value.items()}
        case list():
            return [scrubbed(part) for part in value]
    return value


def canonical_numbers(value: Any, known: Any = None) -> Any:
    """Convert numbers like Go does for untyped objects: whole ones to int64 if they fit, all others to float64.

    ``1.0`` and ``1`` are then the same number. The value is returned as is if nothing changes. ``known``: an earlier
    result; parts that are the same Python object in it are not looked at. Raises OverflowError for an integer beyond
    float64.
    """
    if value is known:
        return value
    kind = type(value)
    if kind is dict:
        made, before = value, known if type(known) is dict else _NOTHING
        for key, part in value.items():
            if type(part) in _UNTOUCHED or (new := canonical_numbers(part, before.get(key))) is part:
                continue
            made = dict(value) if made is value else made
            made[key] = new
        return made
    if kind is list:
        same = ids_of(known)
        listed = [part if type(part) in _UNTOUCHED or id(part) in same else canonical_numbers(part) for part in value]
        return value if all(map(is_, listed, value)) else listed
    return go_number(value) if kind is int or kind is float else value


_UNTOUCHED = frozenset({str, bool, type(None)})
_NOTHING: dict[str, Any] = {}
_NONE: frozenset[int] = frozenset()


def ids_of(known: Any) -> frozenset[int]:
    """Return the identities of the entries of a list; none for any other value."""
    return frozenset(map(id, known)) if type(known) is list else _NONE


def json_kind(value: Any) -> str:
    """Return what Go's JSON decoder calls a value in its errors."""
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, str):
        return "string"
    if isinstance(value, int | float):
        return "number"
    return "object" if isinstance(value, dict) else "array" if isinstance(value, list) else "null"
