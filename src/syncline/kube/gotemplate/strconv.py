"""Go's strconv: quoting, unquoting, and the text of numbers."""

from __future__ import annotations

import math
import re
from typing import Final

from syncline.kube.gotemplate.values import decode, encode

MAX_RUNE: Final = 0x10FFFF
REPLACEMENT: Final = 0xFFFD
_ESCAPES: Final = {"\a": "\\a", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\v": "\\v"}
_UNESCAPED: Final = {escape[1]: char.encode() for char, escape in _ESCAPES.items()} | {"\\": b"\\"}
_DIGITS: Final = {"x": 2, "u": 4, "U": 8}
_HEX: Final = frozenset("0123456789abcdefABCDEF")
_OCTAL: Final = frozenset("01234567")


def rune(code: int) -> str:
    """Return the character of a code point; U+FFFD for what is none."""
    if 0 <= code <= MAX_RUNE and not 0xD800 <= code <= 0xDFFF:
        return chr(code)
    return chr(REPLACEMENT)


def _escaped(char: str, quote: str, ascii_only: bool) -> str:
    if char in (quote, "\\"):
        return "\\" + char
    if char.isprintable() and (not ascii_only or char.isascii()):
        return char
    if char in _ESCAPES:
        return _ESCAPES[char]
    code = ord(char)
    if 0xDC80 <= code <= 0xDCFF:
        return f"\\x{code - 0xDC00:02x}"
    if code < 0x20 or code == 0x7F:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def quote(text: str, *, ascii_only: bool = False) -> str:
    """Return the text as a Go string literal in double quotes."""
    if text.isascii() and text.isprintable() and '"' not in text and "\\" not in text:
        return f'"{text}"'
    return '"' + "".join([_escaped(char, '"', ascii_only) for char in text]) + '"'


def quote_rune(code: int, *, ascii_only: bool = False) -> str:
    """Return the code point as a Go character literal."""
    return "'" + _escaped(rune(code), "'", ascii_only) + "'"


def can_backquote(text: str) -> bool:
    """Whether the text can stand between backquotes: one line, no control character but tab."""
    return not any(
        char in "`\x7f\ufeff" or (char < " " and char != "\t") or 0xD800 <= ord(char) <= 0xDFFF for char in text
    )


def unicode_point(char: str) -> str:
    """Return a character as ``%#U`` does: ``U+0040 '@'``."""
    code = ord(char)
    return f"U+{code:04X}" + (f" '{char}'" if char.isprintable() else "")


def unquote_char(text: str, start: int, quote_char: str) -> tuple[bytes, int] | None:
    """Return the bytes of the character or escape at ``start``, and where the next begins; None where it is no Go
    syntax."""
    char = text[start : start + 1]
    if not char or char == quote_char:
        return None
    if char != "\\":
        return encode(char), start + 1
    kind, start = text[start + 1 : start + 2], start + 2
    if not kind:
        return None
    if kind in _UNESCAPED:
        return _UNESCAPED[kind], start
    if kind in _DIGITS:
        digits = text[start : start + _DIGITS[kind]]
        if len(digits) < _DIGITS[kind] or not _HEX.issuperset(digits):
            return None
        code, end = int(digits, 16), start + len(digits)
        if kind == "x":
            return bytes([code]), end
        return (chr(code).encode(), end) if code <= MAX_RUNE and not 0xD800 <= code <= 0xDFFF else None
    if kind in _OCTAL:
        digits = text[start - 1 : start + 2]
        if len(digits) < 3 or not _OCTAL.issuperset(digits) or int(digits, 8) > 255:
            return None
        return bytes([int(digits, 8)]), start + 2
    return (kind.encode(), start) if kind in ("'", '"') and kind == quote_char else None


def unquote(literal: str) -> str | None:
    """Return the value of a string literal in double or back quotes; None where it is no Go syntax."""
    mark, body = literal[0], literal[1:-1]
    if mark == "`":
        return body.replace("\r", "")
    if "\\" not in body:
        return body
    made, at = bytearray(), 0
    while at < len(body):
        step = unquote_char(body, at, mark)
        if step is None:
            return None
        made += step[0]
        at = step[1]
    return decode(bytes(made))


_INTEGER: Final = re.compile(r"([+-]?)(0[xX][0-9a-fA-F_]+|0[bB][01_]+|0[oO]?[0-7_]+|[0-9][0-9_]*)")
_FLOAT: Final = re.compile(r"[+-]?(?:[0-9_]+\.?[0-9_]*|\.[0-9][0-9_]*)(?:[eE][+-]?[0-9_]+)?")
_HEX_FLOAT: Final = re.compile(r"[+-]?0[xX](?:[0-9a-fA-F_]+\.?[0-9a-fA-F_]*|\.[0-9a-fA-F_]+)[pP][+-]?[0-9_]+")
_MISPLACED: Final = re.compile(r"(?<![0-9])_|_(?![0-9])")
_MISPLACED_HEX: Final = re.compile(r"(?<![0-9a-fA-F])_|_(?![0-9a-fA-F])")
_PREFIX: Final = re.compile(r"[+-]?(?:0[xXbBoO])?")
_BASES: Final = {"x": 16, "b": 2, "o": 8}


def _misplaced(text: str) -> bool:
    """Whether an underscore stands elsewhere than between two digits, or a base and a digit."""
    if "_" not in text:
        return False
    prefix = _PREFIX.match(text)
    end = prefix.end() if prefix else 0
    body = ("0" if text[:end].lstrip("+-") else "") + text[end:]
    return (_MISPLACED_HEX if "x" in text[:end].lower() else _MISPLACED).search(body) is not None


def parse_integer(text: str) -> int | None:
    """Return the integer of a Go literal of any base, of any size; None where it is none."""
    found = _INTEGER.fullmatch(text)
    if found is None or len(text) > 200 or _misplaced(text):
        return None
    digits = found[2].replace("_", "")
    base = _BASES.get(digits[1:2].lower(), 8 if digits[0] == "0" and len(digits) > 1 else 10)
    body = digits[2:] if digits[1:2].isalpha() else digits
    try:
        value = int(body, base)
    except ValueError:
        return None
    return -value if found[1] == "-" else value


def parse_float(text: str) -> float | None:
    """Return the float64 of a Go literal; None where it is none, or too large."""
    if len(text) > 1000 or _misplaced(text):
        return None
    try:
        if _HEX_FLOAT.fullmatch(text):
            value = float.fromhex(text.replace("_", ""))
        elif _FLOAT.fullmatch(text):
            value = float(text.replace("_", ""))
        else:
            return None
    except (ValueError, OverflowError):
        return None
    return value if math.isfinite(value) else None


def format_float(value: float, verb: str, precision: int) -> str:
    """Return the text of a float64 as ``strconv.FormatFloat`` does. ``verb``: one of ``eEfgGbxX``; a ``precision`` of
    -1 (for ``gGbxX``): as many digits as are needed."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    if verb in "xX":
        text = _hexadecimal(value, precision)
        return text.upper() if verb == "X" else text
    if verb == "b":
        return _binary(value)
    if verb in "gG" and precision < 0:
        text = _shortest(value)
        return text.upper() if verb == "G" else text
    return f"{value:.{max(precision, 1) if verb in 'gG' else precision}{verb}}"


def _shortest(value: float) -> str:
    """``%g`` with the fewest digits; exponents below -4 and from 6 on are written as such."""
    text = repr(value)
    sign, text = ("-", text[1:]) if text[0] == "-" else ("", text)
    mantissa, _, exponent = text.partition("e")
    whole, _, fraction = mantissa.partition(".")
    if fraction == "0":
        fraction = ""
    point = len(whole) + int(exponent or "0")
    digits = whole + fraction
    stripped = digits.lstrip("0")
    if not stripped:
        return sign + "0"
    point -= len(digits) - len(stripped)
    digits = stripped.rstrip("0")
    scale = point - 1
    if scale < -4 or scale >= 6:
        tail = f".{digits[1:]}" if len(digits) > 1 else ""
        return f"{sign}{digits[0]}{tail}e{'-' if scale < 0 else '+'}{abs(scale):02d}"
    if point <= 0:
        return f"{sign}0.{'0' * -point}{digits}"
    if point >= len(digits):
        return sign + digits + "0" * (point - len(digits))
    return f"{sign}{digits[:point]}.{digits[point:]}"


def _parts(value: float) -> tuple[str, int, int]:
    """Sign, mantissa of at most 53 bits and exponent of two: value = mantissa * 2**exponent."""
    fraction, exponent = math.frexp(abs(value))
    return "-" if math.copysign(1, value) < 0 else "", int(fraction * (1 << 53)), exponent - 53


def _binary(value: float) -> str:
    sign, mantissa, exponent = _parts(value)
    exponent = max(exponent, -1074) if mantissa else -1074
    if mantissa:
        mantissa = int(math.ldexp(abs(value), -exponent))
    return f"{sign}{mantissa}p{exponent:+d}"


def _hexadecimal(value: float, precision: int) -> str:
    sign, mantissa, exponent = _parts(value)
    exponent = exponent + 52 if mantissa else 0
    if 0 <= precision < 13:
        shift = 52 - 4 * precision
        kept, rest = mantissa >> shift, mantissa & ((1 << shift) - 1)
        half = 1 << (shift - 1)
        if rest > half or (rest == half and kept & 1):
            kept += 1
        if kept >> (4 * precision) > 1:
            kept, exponent = kept >> 1, exponent + 1
        mantissa = kept << shift
    digits = f"{mantissa & ((1 << 52) - 1):013x}"
    digits = digits.rstrip("0") if precision < 0 else digits[:precision].ljust(precision, "0")
    point = f".{digits}" if digits else ""
    return f"{sign}0x{mantissa >> 52}{point}p{'-' if exponent < 0 else '+'}{abs(exponent):02d}"
