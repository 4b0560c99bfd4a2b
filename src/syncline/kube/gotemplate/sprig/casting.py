"""Numbers from any value: Go's conversions as sprig uses them (``spf13/cast``, ``strconv``, wrapping int64)."""

from __future__ import annotations

import math
import re
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

from syncline.kube.gotemplate.functions import Function, Kind
from syncline.kube.gotemplate.sprig.reflection import shown
from syncline.kube.gotemplate.values import Int64, Opaque

INT64_MIN, INT64_MAX = -(1 << 63), (1 << 63) - 1
_BASES = {"0x": 16, "0b": 2, "0o": 8}
_DIGITS = re.compile(r"[0-9a-z]+")
MAX_DIGITS = 400
"""Characters of the longest number that is read; Go reads longer ones, up to the value that fits."""


def wrapped(number: int) -> Int64:
    """Return what remains of a number in 64 bits."""
    return Int64((number + (1 << 63)) % (1 << 64) - (1 << 63))


def parse_int(text: str, base: int) -> tuple[int, bool]:
    """Read a number as ``strconv.ParseInt(text, base, 64)``: the value, at most or least int64, and whether it is one.

    With base 0 the text may have a prefix (``0x``, ``0b``, ``0o``, ``0``) and underscores between its digits.
    """
    negative, digits = text[:1] == "-", (text[1:] if text[:1] in ("+", "-") else text).lower()
    if base == 0:
        base, digits = _based(digits)
    if len(digits) > MAX_DIGITS or not _DIGITS.fullmatch(digits):
        return 0, False
    try:
        value = int(digits, base)
    except ValueError:
        return 0, False
    value = -value if negative else value
    return min(max(value, INT64_MIN), INT64_MAX), INT64_MIN <= value <= INT64_MAX


def _based(digits: str) -> tuple[int, str]:
    base, rest = _BASES.get(digits[:2], 0), digits[2:]
    if not base:
        octal = len(digits) > 1 and digits[0] == "0"
        base, rest = (8, digits[1:]) if octal else (10, digits)
        prefixed = octal
    else:
        prefixed = True
    if "_" in rest:
        if "__" in rest or rest.endswith("_") or (rest.startswith("_") and not prefixed):
            return base, ""
        rest = rest.replace("_", "")
    return base, rest


_FLOAT = re.compile(
    r"[+-]?(?:inf(?:inity)?|nan|(?:\d(?:_?\d)*)?\.?(?:\d(?:_?\d)*)?(?:e[+-]?\d(?:_?\d)*)?)", re.IGNORECASE | re.ASCII
)
_HEX_FLOAT = re.compile(r"[+-]?0x_?[0-9a-f_]*\.?[0-9a-f_]*p[+-]?\d[\d_]*", re.IGNORECASE | re.ASCII)


def parse_float(text: str) -> float | None:
    """Read a number as ``strconv.ParseFloat``; None for what is no number, or too large."""
    if len(text) > MAX_DIGITS or not text or (signed_nan := text.lower().lstrip("+-")) == "":
        return None
    if signed_nan == "nan" and len(text) > 3:
        return None
    try:
        if _HEX_FLOAT.fullmatch(text):
            return float.fromhex(text.replace("_", ""))
        if not _FLOAT.fullmatch(text):
            return None
        number = float(text)
    except (ValueError, OverflowError):
        return None
    return None if math.isinf(number) and "n" not in text.lower() else number


_ZERO_DECIMALS = re.compile(r"(.*)\.0+\.*", re.DOTALL)


class Numbered(Opaque, ABC):
    """A named type of integers that sprig reads as numbers: months and days of the week."""

    __slots__ = ()

    @abstractmethod
    def __int__(self) -> int: ...


def to_int64(value: Any) -> int:
    """Return the integer that sprig makes of a value, 0 for what it cannot read; a plain int."""
    match value:
        case int():
            return int(wrapped(value))
        case Numbered():
            return int(value)
        case float():
            return int(value) if -(2.0**63) <= value < 2.0**63 else INT64_MIN
        case str():
            trimmed = _ZERO_DECIMALS.fullmatch(value)
            number, fits = parse_int(trimmed[1] if trimmed else value, 0)
            return number if fits else 0
    return 0


def to_float64(value: Any) -> float:
    """Return the float that sprig makes of a value, 0 for what it cannot read."""
    match value:
        case int() | float():
            return float(value)
        case Numbered():
            return float(int(value))
        case str():
            number = parse_float(value)
            return 0.0 if number is None else number
    return 0.0


CASTING: Mapping[str, Function] = {
    "atoi": Function(lambda text: parse_int(text, 10)[0], (Kind.STRING,), result=Kind.INT),
    "int": Function(to_int64, (Kind.ANY,), result=Kind.INT),
    "int64": Function(lambda value: Int64(to_int64(value)), (Kind.ANY,), result=Kind.INT64),
    "float64": Function(to_float64, (Kind.ANY,), result=Kind.FLOAT64),
    "toDecimal": Function(
        lambda value: Int64(parse[0] if (parse := parse_int(shown(value), 8))[1] else 0),
        (Kind.ANY,),
        result=Kind.INT64,
    ),
}
