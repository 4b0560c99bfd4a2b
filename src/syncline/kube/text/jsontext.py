"""JSON as Go reads it: what is no Unicode becomes U+FFFD, what no number can hold is refused.

Called where bodies of strangers are decoded. Python's decoders let lone surrogates through, which nothing can encode
again, and read ``1e400`` as infinity, which JSON does not have. Source: Go's ``encoding/json``.
"""

from __future__ import annotations

import json
import math
import re
from typing import Any

import msgspec

from syncline.kube.yaml.resolve import go_number

__all__ = [
    "canonical_numbers",
    "finite",
    "has_long_numbers",
    "in_pieces",
    "no_constant",
    "read_json",
    "scrubbed",
    "sound",
    "whole",
]

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
"""Digits of which there may be a number that is larger than all: then each number is examined. Every body is searched
for them on the loop that serves the API, so in time in proportion to its length whatever it holds."""


def sound(body: bytes) -> bytes:
    """The same text where it is Unicode; each wrong byte and each lone surrogate replaced where it is not."""
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
    """Whether :func:`whole` has to read integers; they may as well be inside texts."""
    return _TOO_LONG in body.translate(_DIGITS)


def whole(text: str) -> int:
    """An integer; raises ValueError in Go's words when it is larger than every number."""
    if len(text.lstrip("-")) >= MOST_DIGITS:
        raise ValueError(f"json: cannot unmarshal number {text} into Go value of type float64")
    return int(text)


def no_constant(name: str) -> None:
    raise ValueError(f"{name} is no JSON number")


def finite(text: str) -> float:
    """A number with a fraction or an exponent; raises ValueError in Go's words when it is too large."""
    number = float(text)
    if math.isinf(number):
        raise ValueError(f"json: cannot unmarshal number {text} into Go value of type float64")
    return number


_decode = msgspec.json.Decoder().decode


def read_json(body: bytes | str) -> Any:
    """One JSON value. Raises ValueError (also msgspec's) for what is none, RecursionError for what is too deep."""
    raw = sound(body.encode("utf-8", "replace") if isinstance(body, str) else body)
    if has_long_numbers(raw):
        return json.loads(raw.decode(), parse_int=whole, parse_float=finite, parse_constant=no_constant)
    return in_pieces(raw)


PIECE_BYTES = 128 * 1024
"""Decoded in one go: a millisecond or two, in which no other thread of the process continues."""
MAX_PIECES_DEPTH = 100
_members = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_items = msgspec.json.Decoder(list[msgspec.Raw]).decode


def in_pieces(raw: bytes | msgspec.Raw, depth: int = 0) -> Any:
    """One JSON value; a large one in pieces, between which other threads continue. Raises as msgspec does."""
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
    """A JSON value without lone surrogates; the same value where it has none."""
    match value:
        case str():
            return _SURROGATE.sub(REPLACEMENT, value)
        case dict():
            return {scrubbed(key): scrubbed(part) for key, part in value.items()}
        case list():
            return [scrubbed(part) for part in value]
    return value


def canonical_numbers(value: Any) -> Any:
    """As Go keeps numbers of untyped objects: whole ones as int64 where they fit, all others as float64.

    ``1.0`` and ``1`` are the same number to every reader; the same value where nothing has to change. Raises
    OverflowError for an integer that is larger than all float64.
    """
    kind = type(value)
    if kind is dict:
        made = value
        for key, part in value.items():
            if type(part) in _UNTOUCHED or (new := canonical_numbers(part)) is part:
                continue
            made = dict(value) if made is value else made
            made[key] = new
        return made
    if kind is list:
        listed = [part if type(part) in _UNTOUCHED else canonical_numbers(part) for part in value]
        return listed if any(new is not old for new, old in zip(listed, value, strict=True)) else value
    return go_number(value) if kind is int or kind is float else value


_UNTOUCHED = frozenset({str, bool, type(None)})
