"""Resolves YAML nodes to JSON values like ``sigs.k8s.io/yaml`` over go-yaml v2: :class:`Resolver`.

Used by ``kube/yaml/loading.py`` for documents and by ``kube/yaml/emit.py`` to find strings that need quotes. The rules
were checked against kubectl with fuzzed scalars; they differ from YAML 1.1, YAML 1.2 and every Python library.
"""

from __future__ import annotations

import base64
import binascii
import math
import re
import struct
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, TypeAlias

from syncline.base.report import Position
from syncline.kube.yaml.nodes import (
    AliasNode,
    Budget,
    MappingNode,
    Node,
    ScalarNode,
    SequenceNode,
    YamlError,
)

Plain: TypeAlias = str | int | float | bool | None

INT64_MIN, INT64_MAX = -(2**63), 2**63 - 1
_UINT64_MAX = 2**64 - 1
_WHOLE_FLOATS_BELOW = 1e19

_CORE = "tag:yaml.org,2002:"
_STR, _BINARY, _MERGE = _CORE + "str", _CORE + "binary", _CORE + "merge"

_WORDS: dict[str, Plain] = {
    **dict.fromkeys(("y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON"), True),
    **dict.fromkeys(("n", "N", "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF"), False),
    **dict.fromkeys(("", "~", "null", "Null", "NULL"), None),
    **dict.fromkeys((".nan", ".NaN", ".NAN"), math.nan),
    **dict.fromkeys((".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF"), math.inf),
    **dict.fromkeys(("-.inf", "-.Inf", "-.INF"), -math.inf),
}

_SIGN_OR_DIGIT = frozenset("+-0123456789")
_INTEGER = re.compile(r"([-+]?)(?:0[xX]([0-9a-fA-F]+)|0[bB]([01]+)|0[oO]?([0-7]+)|(0|[1-9][0-9]*))")
_BINARY_QUIRK = re.compile(r"(-?)0b([-+]?)([01]+)")
_DECIMAL = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_POINT_FIRST = re.compile(r"\.[0-9]+(?:_[0-9]+)*(?:[eE][-+]?[0-9]+(?:_[0-9]+)*)?")
_DATE = re.compile(
    r"([0-9]{4})-([0-9]{1,2})-([0-9]{1,2})"
    r"(?:[Tt]([0-9]{1,2}):([0-9]{1,2}):([0-9]{1,2})(?:[.,][0-9]+)?(?:Z|[-+][0-9]{2}:[0-9]{2})"
    r"| ([0-9]{1,2}):([0-9]{1,2}):([0-9]{1,2})(?:[.,][0-9]+)?)?"
)


@dataclass(frozen=True, slots=True)
class Duplicate:
    """A duplicate key of a mapping; ``position`` is that of the later one, which wins."""

    path: str
    key: str
    position: Position
    first: Position


def resolve_plain(text: str) -> Plain:
    """Return the value of an unquoted scalar before JSON; infinities and NaN are floats (go-yaml v2 ``resolve``)."""
    first = text[:1]
    if first == "" or first in "yYnNtTfFoO~.+-" or first in _SIGN_OR_DIGIT:
        if text in _WORDS:
            return _WORDS[text]
        if first == ".":
            return _point_first(text)
        if first in _SIGN_OR_DIGIT:
            return _number(text)
    return text


def is_timestamp(text: str) -> bool:
    """Return True if go-yaml recognizes a date or time; it stays text, but is written in quotes."""
    match = _DATE.fullmatch(text)
    if match is None:
        return False
    year, month, day, *times = (int(group) if group else 0 for group in match.groups())
    clock = [max(pair) for pair in zip(times[:3], times[3:], strict=True)]
    if not 1 <= month <= 12 or clock[0] > 23 or clock[1] > 59 or clock[2] > 59:
        return False
    leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    longest = (31, 29 if leap else 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
    return 1 <= day <= longest[month - 1]


def _point_first(text: str) -> str | float:
    if _POINT_FIRST.fullmatch(text):
        number = float(text.replace("_", ""))
        return text if math.isinf(number) else number
    return text


def _number(text: str) -> str | int | float:
    digits = text.replace("_", "")
    integer = _integer(digits)
    if integer is not None:
        return integer
    if _DECIMAL.fullmatch(digits):
        number = float(digits)
        return text if math.isinf(number) else number
    quirk = _binary_quirk(digits)
    return text if quirk is None else quirk


def _integer(digits: str) -> int | None:
    """Parse like Go's ParseInt, then ParseUint, base 0: ``0755`` is octal, ``08`` no integer, a sign excludes
    uint64."""
    match = _INTEGER.fullmatch(digits)
    if match is None:
        return None
    sign, hexadecimal, binary, octal, decimal = match.groups()
    if hexadecimal:
        size = int(hexadecimal, 16)
    elif binary:
        size = int(binary, 2)
    elif octal:
        size = int(octal, 8)
    else:
        if len(decimal) > 20:
            return None
        size = int(decimal)
    value = -size if sign == "-" else size
    if INT64_MIN <= value <= INT64_MAX or (not sign and value <= _UINT64_MAX):
        return value
    return None


def _binary_quirk(digits: str) -> int | None:
    """go-yaml parses the digits after ``0b`` with their own sign: ``0b-11`` is -3."""
    match = _BINARY_QUIRK.fullmatch(digits)
    if match is None or (match[1] and match[2]):
        return None
    value = int(match[3], 2) * (-1 if "-" in (match[1], match[2]) else 1)
    return value if INT64_MIN <= value <= INT64_MAX else None


def go_number(value: int | float) -> int | float:
    """Return a number after Go's conversion to JSON: whole floats become ints, ints beyond int64 become floats."""
    if isinstance(value, float):
        if not value.is_integer() or abs(value) >= _WHOLE_FLOATS_BELOW:
            return value
        # Go prints the shortest digits and fills up with zeros, so 2^63 prints as 9223372036854776000.
        whole = int(value) if abs(value) < 2**53 else int(Decimal(repr(value)))
        return whole if INT64_MIN <= whole <= INT64_MAX else value
    return value if INT64_MIN <= value <= INT64_MAX else float(value)


def go_shortest(value: float, *, bits: int = 64) -> str:
    """Format like Go's ``FormatFloat(value, 'g', -1, bits)``, with exponents below -4 and from 6 on."""
    if math.isinf(value) or math.isnan(value):
        return ".nan" if math.isnan(value) else (".inf" if value > 0 else "-.inf")
    text = repr(value) if bits == 64 else _shortest32(value)
    mantissa, _, exponent_text = text.lower().partition("e")
    sign = "-" if mantissa.startswith("-") else ""
    whole, _, fraction = mantissa.lstrip("-").partition(".")
    digits = (whole + fraction).lstrip("0")
    leading = len(whole + fraction) - len(digits)
    exponent = int(exponent_text or 0) + len(whole) - leading - 1
    digits = digits.rstrip("0")
    if not digits:
        return sign + "0"
    if exponent < -4 or exponent >= 6:
        tail = f".{digits[1:]}" if len(digits) > 1 else ""
        return f"{sign}{digits[0]}{tail}e{'-' if exponent < 0 else '+'}{abs(exponent):02d}"
    if exponent < 0:
        return f"{sign}0.{'0' * (-exponent - 1)}{digits}"
    padded = digits.ljust(exponent + 1, "0")
    return sign + padded[: exponent + 1] + (f".{padded[exponent + 1 :]}" if len(padded) > exponent + 1 else "")


def _shortest32(value: float) -> str:
    try:
        exact = struct.pack("f", value)
    except OverflowError:
        return "inf"
    for precision in range(1, 10):
        text = f"{value:.{precision}g}"
        if struct.pack("f", float(text)) == exact:
            return text
    return f"{value:.9g}"


def key_text(value: Plain) -> str | None:
    """Return a mapping key as JSON text, None if Go has none for it (null, integers beyond int64).

    Floats pass through 32 bits: sigs.k8s.io/yaml ``convertToJSONableObject``.
    """
    if isinstance(value, str):
        return value
    if value is None:
        return None
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value) if value <= INT64_MAX else None
    return go_shortest(value, bits=32)


class Resolver:
    """Converts the nodes of one document to JSON values; collects duplicate keys, raises :class:`YamlError`."""

    def __init__(self, file: str, budget: Budget) -> None:
        self._file = file
        self._budget = budget
        self._aliased = 0
        self._inside: list[Node] = []
        self._depth = 0
        self._path: list[str | int] = []
        self.duplicates: list[Duplicate] = []

    def value(self, node: Node) -> Any:
        """Return the JSON value of ``node``."""
        if isinstance(node, ScalarNode):
            return self._json(node, self.scalar(node))
        if isinstance(node, AliasNode):
            return self._follow(node)
        self._enter(node)
        value: dict[str, Any] | list[Any]
        if isinstance(node, SequenceNode):
            value = self._list(node)
        else:
            value = {}
            self._fill(node, value)
        self._depth -= 1
        return value

    def _enter(self, node: SequenceNode | MappingNode) -> None:
        self._depth += 1
        if self._depth > self._budget.depth:
            raise self._error(f"nested deeper than {self._budget.depth} levels", node)
        if self._inside:
            self._count(1 + len(node.items if isinstance(node, SequenceNode) else node.pairs), node)

    def _count(self, nodes: int, node: Node) -> None:
        self._aliased += nodes
        if self._aliased > self._budget.alias_nodes:
            raise self._error("document contains excessive aliasing", node)

    def _list(self, node: SequenceNode) -> list[Any]:
        items = []
        for index, item in enumerate(node.items):
            self._path.append(index)
            items.append(self.value(item))
            self._path.pop()
        return items

    def scalar(self, node: ScalarNode) -> Plain:
        """Return Go's value of a tagged scalar, before JSON."""
        if not node.tag:
            return resolve_plain(node.value) if node.plain else node.value
        if node.tag == _BINARY:
            return self._binary(node)
        if not node.tag.startswith(_CORE) or node.tag == _STR:
            return node.value
        return self._tagged(node, node.tag[len(_CORE) :])

    def _tagged(self, node: ScalarNode, wanted: str) -> Plain:
        if wanted not in ("bool", "int", "float", "null", "timestamp"):
            return node.value
        value = resolve_plain(node.value)
        if wanted == "timestamp" and is_timestamp(node.value):
            return node.value
        found = _tag_of(value)
        if found == wanted or (wanted == "float" and found == "int"):
            return value
        raise self._error(f"cannot decode !!{found} `{node.value}` as a !!{wanted}", node)

    def _binary(self, node: ScalarNode) -> str:
        # Go's decoder skips line breaks and refuses everything else outside the alphabet.
        text = node.value.replace("\n", "").replace("\r", "")
        try:
            data = base64.b64decode(text, validate=True)
        except (binascii.Error, ValueError):
            raise self._error("!!binary value contains invalid base64 data", node) from None
        return data.decode("utf-8", "replace")

    def _json(self, node: Node, value: Plain) -> Plain:
        if isinstance(value, bool) or not isinstance(value, int | float):
            return value
        if isinstance(value, float) and not math.isfinite(value):
            raise self._error("infinity and NaN have no JSON form; quote the value to mean text", node)
        return go_number(value)

    def _follow(self, node: AliasNode) -> Any:
        if any(node.target is outer for outer in self._inside):
            raise self._error(f"anchor {node.name!r} value contains itself", node)
        self._count(1, node)
        self._inside.append(node.target)
        try:
            return self.value(node.target)
        finally:
            self._inside.pop()

    def _fill(self, node: MappingNode, out: dict[str, Any]) -> None:
        """Add pairs in order; the later one wins, and a merge key counts at its position (go-yaml v2)."""
        first: dict[str, Node] = {}
        for key_node, value_node in node.pairs:
            if _is_merge(key_node):
                self._merge(value_node, out)
                continue
            key = self._key(key_node)
            self._path.append(key)
            if first.setdefault(key, key_node) is not key_node:
                self._repeated(key, first[key], key_node)
            out[key] = self.value(value_node)
            self._path.pop()

    def _repeated(self, key: str, first: Node, later: Node) -> None:
        path = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in self._path)
        self.duplicates.append(Duplicate(path.removeprefix("."), key, self._at(later), self._at(first)))

    def _key(self, node: Node) -> str:
        target = node.target if isinstance(node, AliasNode) else node
        if not isinstance(target, ScalarNode):
            raise self._error("a mapping or list is used as a key; keys are text", node)
        key = key_text(self.scalar(target))
        if key is None:
            raise self._error(f"{target.value or 'null'} is used as a key; quote it to mean text", node)
        return key

    def _merge(self, node: Node, out: dict[str, Any]) -> None:
        items = reversed(node.items) if isinstance(node, SequenceNode) else [node]
        for item in items:
            target = item.target if isinstance(item, AliasNode) else item
            if not isinstance(target, MappingNode):
                raise self._error("map merge requires map or sequence of maps as the value", item)
            merged: dict[str, Any] = self.value(item)
            out.update(merged)

    def _at(self, node: Node) -> Position:
        return Position(self._file, node.line, node.column)

    def _error(self, message: str, node: Node) -> YamlError:
        return YamlError(message, self._at(node))


def _is_merge(node: Node) -> bool:
    return isinstance(node, ScalarNode) and node.value == "<<" and (node.tag == _MERGE or (node.plain and not node.tag))


def _tag_of(value: Plain) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "bool"
        case int():
            return "int"
        case float():
            return "float"
        case str():
            return "str"
