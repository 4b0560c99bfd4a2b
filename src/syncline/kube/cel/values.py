"""The values of expressions beyond JSON: times, durations, types, optionals, and Kubernetes' own.

Used by ``functions`` and ``library``. Integers, floats, strings, lists and maps are plain Python.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from syncline.kube.cel.parser import UInt

MAX_INT, MIN_INT = (1 << 63) - 1, -(1 << 63)


class EvaluationError(Exception):
    """An expression that failed for its values; the text is cel-go's."""


def no_overload() -> EvaluationError:
    return EvaluationError("no such overload")


@dataclass(frozen=True, order=True, slots=True)
class Timestamp:
    ns: int


@dataclass(frozen=True, order=True, slots=True)
class Duration:
    ns: int


@dataclass(frozen=True, slots=True)
class TypeValue:
    name: str


@dataclass(frozen=True, slots=True)
class Optional:
    """An optional value; ``has`` is False for none, since null is a value."""

    value: Any = None
    has: bool = False


@dataclass(frozen=True, order=True, slots=True)
class Quantity:
    nano: int


@dataclass(frozen=True, slots=True)
class IP:
    address: ipaddress.IPv4Address | ipaddress.IPv6Address


@dataclass(frozen=True, slots=True)
class CIDR:
    interface: ipaddress.IPv4Interface | ipaddress.IPv6Interface


@dataclass(frozen=True, slots=True)
class URL:
    text: str


@dataclass(frozen=True, slots=True)
class Semver:
    major: int
    minor: int
    patch: int
    pre: tuple[str, ...] = ()

    @property
    def order(self) -> tuple[Any, ...]:
        """The sort key: a release is above its candidates, numbers are below words."""
        words = tuple((0, int(one), "") if one.isdigit() else (1, 0, one) for one in self.pre)
        return (self.major, self.minor, self.patch, not self.pre, words)


@dataclass(frozen=True, slots=True)
class Format:
    name: str


class SetList(list[Any]):
    """A list of unique entries without order."""


class MapList(list[Any]):
    """A list of objects identified by key fields, without order."""

    def __init__(self, items: Iterable[Any], keys: tuple[str, ...]) -> None:
        super().__init__(items)
        self.keys = keys

    def key(self, item: Any) -> tuple[str, ...]:
        return tuple(repr(item.get(key)) for key in self.keys) if isinstance(item, dict) else (repr(item),)


class GrowingList(list[Any]):
    """The accumulator of a loop, changed in place: nothing else reads it before the loop ends."""

    def grown(self, other: list[Any]) -> GrowingList:
        self += other
        return self

    def finished(self) -> list[Any]:
        return list(self)


class GrowingMap(dict[Any, Any]):
    """Like :class:`GrowingList`, for maps."""

    def grown(self, other: dict[Any, Any]) -> GrowingMap:
        self.update(other)
        return self

    def finished(self) -> dict[Any, Any]:
        return dict(self)


class Known:
    """A collection of values that finds equal ones: plain values by lookup, lists, maps and similar ones by
    comparison."""

    def __init__(self, items: Iterable[Any] = ()) -> None:
        self._plain: set[tuple[str, Any]] = set()
        self._others: list[Any] = []
        for item in items:
            self.add(item)

    def add(self, item: Any) -> None:
        kind = _plain(item)
        if kind:
            self._plain.add((kind, item))
        else:
            self._others.append(item)

    def has(self, value: Any) -> bool:
        kind = _plain(value)
        return (kind, value) in self._plain if kind else any(equal(value, item) for item in self._others)


def _plain(value: Any) -> str:
    """Return the lookup key of a value, equal for equal values; numbers are equal by value."""
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, int | float):
        return "number"
    return "string" if isinstance(value, str) else "bytes" if isinstance(value, bytes) else ""


def _equal_lists(one: list[Any], other: list[Any]) -> bool:
    if len(one) != len(other):
        return False
    if isinstance(one, MapList):
        theirs = {one.key(item): item for item in other}
        return all(one.key(item) in theirs and equal(item, theirs[one.key(item)]) for item in one)
    if isinstance(one, SetList):
        return all(map(Known(other).has, one))
    return all(map(equal, one, other))


_NAMES: dict[type, str] = {
    bool: "bool",
    UInt: "uint",
    int: "int",
    float: "double",
    str: "string",
    bytes: "bytes",
    list: "list",
    SetList: "list",
    MapList: "list",
    dict: "map",
    type(None): "null_type",
    Timestamp: "google.protobuf.Timestamp",
    Duration: "google.protobuf.Duration",
    TypeValue: "type",
    Optional: "optional_type",
    Quantity: "kubernetes.Quantity",
    IP: "net.IP",
    CIDR: "net.CIDR",
    URL: "kubernetes.URL",
    Semver: "kubernetes.Semver",
    Format: "kubernetes.NamedFormat",
}


def type_name(value: Any) -> str:
    return _NAMES.get(type(value), "object")


def equal(one: Any, other: Any) -> bool:
    """Compare as CEL does: numbers by value whatever their type, all others only within their type."""
    if isinstance(one, bool) or isinstance(other, bool):
        return isinstance(one, bool) and isinstance(other, bool) and one == other
    if isinstance(one, int | float) and isinstance(other, int | float):
        return one == other
    if isinstance(one, list) and isinstance(other, list):
        return _equal_lists(one, other)
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(equal(one[key], other[key]) for key in one)
    return type(one) is type(other) and bool(one == other)
