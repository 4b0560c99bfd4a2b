"""Resolves unquoted scalars of Butane's YAML by the rules of go-yaml v3: :func:`resolve`.

``ignition/butane/reading.py`` decodes with it and ``ignition/butane/yaml_output.py`` uses it to find words that need
quotes. It differs from the Kubernetes dialect (go-yaml v2): ``yes`` is text, ``0o644`` is octal.
"""

from __future__ import annotations

import base64
import binascii
import math
import re
from typing import Final, TypeAlias

from syncline.kube.yaml.resolve import INT64_MAX, INT64_MIN, is_timestamp

Plain: TypeAlias = str | int | float | bool | None

_PREFIX: Final = "tag:yaml.org,2002:"
_RESOLVABLE: Final = frozenset({"", "!!str", "!!bool", "!!int", "!!float", "!!null", "!!timestamp"})
_UINT64_MAX: Final = 2**64 - 1

OLD_BOOLS: Final[dict[str, bool]] = {
    **dict.fromkeys(("y", "Y", "yes", "Yes", "YES", "on", "On", "ON"), True),
    **dict.fromkeys(("n", "N", "no", "No", "NO", "off", "Off", "OFF"), False),
}
"""Booleans of YAML 1.1: text in this dialect, yet taken where a boolean is wanted."""

Word: TypeAlias = tuple[str, Plain]
"""Short tag and value."""

_WORDS: Final[dict[str, Word]] = {
    **dict.fromkeys(("true", "True", "TRUE"), ("!!bool", True)),
    **dict.fromkeys(("false", "False", "FALSE"), ("!!bool", False)),
    **dict.fromkeys(("", "~", "null", "Null", "NULL"), ("!!null", None)),
    **dict.fromkeys((".nan", ".NaN", ".NAN"), ("!!float", math.nan)),
    **dict.fromkeys((".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF"), ("!!float", math.inf)),
    **dict.fromkeys(("-.inf", "-.Inf", "-.INF"), ("!!float", -math.inf)),
    "<<": ("!!merge", "<<"),
}
_HINTS: Final = frozenset("+-0123456789yYnNtTfFoO~.")

_FLOAT: Final = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_POINT_FIRST: Final = re.compile(r"\.[0-9]+(?:_[0-9]+)*(?:[eE][-+]?[0-9]+(?:_[0-9]+)*)?")
_INTEGER: Final = re.compile(
    r"(?P<sign>[-+]?)(?:0[xX](?P<hex>[0-9a-fA-F]+)|0[bB](?P<bin>[01]+)|0[oO]?(?P<oct>[0-7]+)|(?P<dec>0|[1-9][0-9]*))"
)
_SIGNED_INSIDE: Final = re.compile(r"(?P<sign>-?)0(?P<base>[bo])(?P<inner>[-+]?)(?P<digits>[0-7]+)")
_MAX_DIGITS: Final = 400
"""Longer numbers are no integers, and no finite floats unless they begin with a point."""


class ScalarError(ValueError):
    """An explicit tag that contradicts the text; the message is go-yaml's."""


def resolve(tag: str, text: str) -> Word:
    """Return the value of a scalar with the given tag (long or short; empty if none was written).

    Raises :class:`ScalarError` if the text does not match the tag.
    """
    short = "!!" + tag[len(_PREFIX) :] if tag.startswith(_PREFIX) else tag
    if short == "!!binary":
        return short, _binary(text)
    if short not in _RESOLVABLE:
        return short, text
    if short == "!!str":
        return short, text
    found, value = _untagged(text, timestamps=short in ("", "!!timestamp"))
    if short in ("", found):
        return found, value
    if short == "!!float" and found == "!!int" and isinstance(value, int) and value <= INT64_MAX:
        return short, float(value)
    raise ScalarError(f"cannot decode {found} `{text}` as a {short}")


def _binary(text: str) -> str:
    # Go skips line breaks and refuses everything else outside the alphabet.
    try:
        data = base64.b64decode(text.replace("\n", "").replace("\r", ""), validate=True)
    except (binascii.Error, ValueError):
        raise ScalarError("!!binary value contains invalid base64 data") from None
    return data.decode("utf-8", "surrogateescape")


def _untagged(text: str, *, timestamps: bool) -> Word:
    if text and text[0] not in _HINTS and text != "<<":
        return "!!str", text
    if text in _WORDS:
        return _WORDS[text]
    if text[0] == ".":
        number = float(text.replace("_", "")) if _POINT_FIRST.fullmatch(text) else math.inf
        return ("!!str", text) if math.isinf(number) else ("!!float", number)
    if text[0] not in "+-0123456789":
        return "!!str", text
    if timestamps and is_timestamp(text):
        return "!!timestamp", text
    return _number(text)


def _number(text: str) -> Word:
    digits = text.replace("_", "")
    if len(digits) > _MAX_DIGITS:
        return "!!str", text
    value = _integer(digits)
    if value is not None:
        return "!!int", value
    if _FLOAT.fullmatch(digits):
        number = float(digits)
        if not math.isinf(number):
            return "!!float", number
    value = _signed_inside(digits)
    return ("!!str", text) if value is None else ("!!int", value)


def _integer(digits: str) -> int | None:
    """Parse like Go's ParseInt, then ParseUint, base 0; numbers that only fit without sign must have none."""
    match = _INTEGER.fullmatch(digits)
    if match is None:
        return None
    for group, base in (("hex", 16), ("bin", 2), ("oct", 8), ("dec", 10)):
        if match[group] is not None:
            size = int(match[group], base)
            break
    value = -size if match["sign"] == "-" else size
    if INT64_MIN <= value <= INT64_MAX or (not match["sign"] and value <= _UINT64_MAX):
        return value
    return None


def _signed_inside(digits: str) -> int | None:
    """go-yaml parses the digits after ``0b`` and ``0o`` with their own sign: ``0o-7`` is -7."""
    match = _SIGNED_INSIDE.fullmatch(digits)
    if match is None or (match["sign"] and match["inner"]):
        return None
    if match["base"] == "b" and match["digits"].strip("01"):
        return None
    value = int(match["digits"], 2 if match["base"] == "b" else 8)
    value = -value if "-" in (match["sign"], match["inner"]) else value
    return value if INT64_MIN <= value <= INT64_MAX else None
