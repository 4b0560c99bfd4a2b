"""Limits the work of an evaluation, counted in steps of about one microsecond, at most two and a half: :class:`Meter`.

Called by ``program`` around every call. A call is charged for its input before it begins and for its output afterwards;
sizes count, so few calls on large values cost as much as many on small ones. Costs depend only on the values, never on
a clock or a cache: equal input always takes equal steps. Kubernetes counts alike (``cel/library/cost.go``), in units of
about a fifth of a step.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from syncline.kube.cel.parser import UInt
from syncline.kube.cel.values import GrowingList, SetList
from syncline.kube.text.re2 import compile_pattern

MAX_STEPS = 200_000
"""The limit of one evaluation: a fifth of a second, at most half a second. Kubernetes' limit for one call (a million
units of cost) is similar."""
CHARS_PER_STEP = 50
ITEMS_PER_STEP = 4
COPIED_PER_STEP = 10
"""List entries copied without being read, per step."""
WORK_PER_STEP = 100
"""Characters times states of a regular expression, per step."""
STATES_PER_STEP = 2
"""States of a regular expression compiled per step."""
UNCOMPILED = 20_000
"""The cost of an invalid pattern: detecting that one is too large takes long."""

_SHALLOW = frozenset(
    (
        *("size", "_[_]", "_[?_]", "_+_", "type", "dyn", "first", "last", "hasValue", "value", "or", "orValue"),
        *("optional.of", "optional.none", "optional.ofNonZeroValue", "charAt", "substring", "slice", "reverse"),
        *("cel.@mapInsert", "lists.range", "startsWith", "endsWith"),
    )
)
"""Calls whose time does not depend on the size of values, or that are charged by their output."""
_COMPARED = frozenset({"_==_", "_!=_", "_<_", "_<=_", "_>_", "_>=_"})
_PAIRED = frozenset({"sets.contains", "sets.equivalent", "sets.intersects", "distinct"})
"""Calls that compare lists or maps pairwise; other values are looked up."""
_MATCHED = frozenset({"matches", "find", "findAll"})
_BY_ENTRY = {
    "sort": 4,
    "@sortByAssociatedKeys": 4,
    "min": 3,
    "max": 3,
    "sum": 3,
    "isSorted": 3,
    "format": 4,
    "flatten": 2,
    "@in": 2,
    "indexOf": 2,
    "lastIndexOf": 2,
    **dict.fromkeys(_PAIRED, 8),
}
"""Calls that take several times longer per entry than a comparison."""
_BY_CHARACTER = {"findAll": 16, "split": 4, "format": 4, "validate": 2, "url": 8, "isURL": 8, "getQuery": 4}
_FIXED = {
    "check": 70_000,
    **dict.fromkeys(("containsIP", "containsCIDR", "masked", "cidr", "isCIDR", "ip", "isIP", "ip.isCanonical"), 10),
    **dict.fromkeys(("isGlobalUnicast", "isLinkLocalMulticast", "timestamp", "duration", "semver", "isSemver"), 10),
    **dict.fromkeys(("url", "isURL", "getQuery", "getEscapedPath", "getHost", "getHostname", "getPort"), 10),
    **dict.fromkeys(("quantity", "isQuantity", "format", "string", "double", "compareTo", "isLessThan"), 5),
    **dict.fromkeys(("getFullYear", "getMonth", "getDayOfYear", "getDayOfMonth", "getDate", "getDayOfWeek"), 5),
    **dict.fromkeys(("getHours", "getMinutes", "getSeconds", "getMilliseconds", "validate", "find", "findAll"), 5),
}
"""Fixed steps of a call. A decision of an authorizer costs as in Kubernetes: an expression can afford two."""
_PLAIN = frozenset({bool, int, float, type(None), UInt})
"""Types of values without a size."""
ZONE_STEPS = 200
"""A time in a named zone, which may be read from the disk."""


class Exceeded(Exception):
    """The limit is reached. No expression can catch it."""


class Meter:
    """The remaining steps of an evaluation."""

    __slots__ = ("left",)

    def __init__(self, left: int) -> None:
        self.left = left

    def spend(self, steps: int = 1) -> None:
        """Count steps; raises Exceeded."""
        self.left -= steps
        if self.left < 0:
            raise Exceeded


Charge = Callable[[list[Any], Meter], None]


def charge_of(name: str) -> Charge:
    """Return the function that charges a call of ``name`` before it begins, for itself and its input."""
    fixed, shallow = 1 + _FIXED.get(name, 0), name in _SHALLOW

    def charge(values: list[Any], meter: Meter) -> None:
        meter.spend(fixed)
        if not shallow:
            for value in values:
                if value.__class__ not in _PLAIN:
                    _charge_sizes(name, values, meter)
                    return

    return charge


def _charge_sizes(name: str, values: list[Any], meter: Meter) -> None:
    if name in _COMPARED and all(isinstance(value, str | bytes) for value in values):
        meter.spend(min(map(len, values)) // CHARS_PER_STEP)
        return
    if name == "@in" and isinstance(values[1], dict):
        return
    factor = _BY_ENTRY.get(name, 1)
    parts = [weigh(value, meter, factor, _BY_CHARACTER.get(name, 1)) for value in values]
    if name in _MATCHED and len(values) > 1:
        charge_search(values[0], values[1], meter)
    elif name in _PAIRED or (name in _COMPARED and isinstance(values[0], SetList)):
        if _hard(values[0]) and _hard(values[-1]):
            meter.spend(parts[0] * parts[-1] // ITEMS_PER_STEP)
    elif name[:3] == "get" and len(values) > 1:
        meter.spend(ZONE_STEPS)


def charge_made(made: Any, meter: Meter) -> None:
    """Charge a call for its output. Only copied values count: others cost no more than the input, and loops do not
    copy."""
    if made.__class__ in _PLAIN or isinstance(made, GrowingList):
        return
    if isinstance(made, str | bytes):
        meter.spend(len(made) // CHARS_PER_STEP)
    elif isinstance(made, list) and len(made) >= COPIED_PER_STEP:
        meter.spend(len(made) // COPIED_PER_STEP)


def weigh(value: Any, meter: Meter, by_entry: int = 1, by_character: int = 1) -> int:
    """Charge for every part of a value and return their number. The count itself is bounded: few calls can create a
    list that contains itself a million times."""
    if not isinstance(value, list | dict):
        if isinstance(value, str | bytes):
            meter.spend(len(value) * by_character // CHARS_PER_STEP)
        return 1
    todo, parts, most = [value], 0, meter.left * ITEMS_PER_STEP // by_entry
    while todo and parts <= most:
        one = todo.pop()
        parts += 1
        if isinstance(one, str | bytes):
            parts += len(one) * by_character * ITEMS_PER_STEP // CHARS_PER_STEP
        elif isinstance(one, dict):
            todo.extend(one)
            todo.extend(one.values())
        elif isinstance(one, list):
            todo.extend(one)
    if todo:
        meter.spend(meter.left + 1)
    meter.spend(parts * by_entry // ITEMS_PER_STEP)
    return parts


def _hard(value: Any) -> bool:
    return isinstance(value, list) and any(isinstance(item, list | dict) for item in value)


def charge_search(text: Any, pattern: Any, meter: Meter) -> None:
    """Charge for compiling and searching a regular expression."""
    if not isinstance(text, str) or not isinstance(pattern, str):
        return
    try:
        found = compile_pattern(pattern)
    except re.error:
        meter.spend(UNCOMPILED)
        return
    meter.spend(found.states // STATES_PER_STEP + found.work(text) // WORK_PER_STEP)
