"""What unquoted text means, by the rules of go-yaml v3 (inside kustomize) and of v2 (for what must be quoted).

Called by ``reader``, ``node`` and ``values``. Text goes in; a short tag and a Python value come out. Times come out as
the text that Go's JSON encoder gives them.
"""

from __future__ import annotations

import math
import re
from functools import lru_cache
from typing import TypeAlias

import yaml

from syncline.kube.yaml.resolve import resolve_plain

Plain: TypeAlias = str | int | float | bool | None

_WORDS: dict[str, tuple[str, Plain]] = {
    **dict.fromkeys(("true", "True", "TRUE"), ("!!bool", True)),
    **dict.fromkeys(("false", "False", "FALSE"), ("!!bool", False)),
    **dict.fromkeys(("", "~", "null", "Null", "NULL"), ("!!null", None)),
    **dict.fromkeys((".nan", ".NaN", ".NAN"), ("!!float", math.nan)),
    **dict.fromkeys((".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF"), ("!!float", math.inf)),
    **dict.fromkeys(("-.inf", "-.Inf", "-.INF"), ("!!float", -math.inf)),
    "<<": ("!!merge", "<<"),
}
_FIRST = frozenset("+-.0123456789")
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_POINT = re.compile(r"\.[0-9]+(?:_[0-9]+)*(?:[eE][-+]?[0-9]+(?:_[0-9]+)*)?")
_INT = re.compile(r"([-+]?)(?:0[xX]([0-9a-fA-F]+)|0[bB]([01]+)|0[oO]([0-7]+)|0([0-7]+)|(0|[1-9][0-9]*))")
_TIME = re.compile(
    r"([0-9]{4})-([0-9]{1,2})-([0-9]{1,2})"
    r"(?:(?:[Tt]([0-9]{1,2}):([0-9]{1,2}):([0-9]{1,2})(?:[.,]([0-9]+))?(Z|[-+][0-9]{2}:[0-9]{2}))"
    r"|(?: ([0-9]{1,2}):([0-9]{1,2}):([0-9]{1,2})(?:[.,]([0-9]+))?))?"
)
_INT64_MIN, _UINT64_MAX = -(2**63), 2**64 - 1


@lru_cache(maxsize=8192)
def resolve(text: str) -> tuple[str, Plain]:
    """Short tag and value of unquoted ``text`` (go-yaml v3 ``resolve`` without a wanted tag)."""
    known = _WORDS.get(text)
    if known is not None:
        return known
    if text[0] not in _FIRST:
        return "!!str", text
    if text[0] == ".":
        number = float(text.replace("_", "")) if _POINT.fullmatch(text) else math.inf
        return ("!!str", text) if math.isinf(number) else ("!!float", number)
    moment = _time(text)
    if moment is not None:
        return "!!timestamp", moment
    digits = text.replace("_", "")
    whole = _integer(digits)
    if whole is not None:
        return "!!int", whole
    if _FLOAT.fullmatch(digits):
        number = float(digits)
        if not math.isinf(number):
            return "!!float", number
    return "!!str", text


def _integer(digits: str) -> int | None:
    """Go's ParseInt base 0, then ParseUint, then YAML 1.2 octals; integers beyond 64 bits are none."""
    match = _INT.fullmatch(digits)
    if match is None:
        return None
    sign, hexadecimal, binary, octal, old_octal, decimal = match.groups()
    if decimal is not None and len(decimal) > 20:
        return None
    bases = ((hexadecimal, 16), (binary, 2), (octal, 8), (old_octal, 8), (decimal, 10))
    size = next(int(part, base) for part, base in bases if part is not None)
    value = -size if sign == "-" else size
    limit = 2**63 - 1 if sign else _UINT64_MAX
    return value if _INT64_MIN <= value <= limit else None


_DAYS = (31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)


def _time(text: str) -> str | None:
    """RFC 3339 text of a date or time, None if it is none."""
    match = _TIME.fullmatch(text)
    if match is None:
        return None
    year, month, day = int(match[1]), int(match[2]), int(match[3])
    hour, minute, second = (int(match[i] or match[i + 5] or 0) if i < 7 else 0 for i in (4, 5, 6))
    leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    if not 1 <= month <= 12 or not 1 <= day <= _DAYS[month - 1] + (month == 2 and leap):
        return None
    if hour > 23 or minute > 59 or second > 59:
        return None
    fraction = (match[7] or match[12] or "")[:9].rstrip("0")
    zone = match[8] or "Z"
    zone = "Z" if zone[1:] == "00:00" else zone
    tail = f".{fraction}" if fraction else ""
    return f"{year:04d}-{month:02d}-{day:02d}T{hour:02d}:{minute:02d}:{second:02d}{tail}{zone}"


@lru_cache(maxsize=8192)
def is_old_non_string(text: str) -> bool:
    """Whether a YAML 1.1 reader takes the bare text for something else than a string (kyaml ``IsValueNonString``)."""
    if not text or "\n" in text:
        return False
    if not isinstance(resolve_plain(text), str):
        return True
    # A whole document is read, so text with syntax may be a list, a mapping or only a comment.
    if text[0] in "[{#" or text.startswith("- ") or text == "-":
        return _parses_as_other(text)
    if ": " in text or text.endswith(":"):
        return _parses_as_other(text)
    return False


def _parses_as_other(text: str) -> bool:
    try:
        node = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.YAMLError:
        return False
    return not isinstance(node, yaml.ScalarNode)
