"""Reads fields like Go's typed objects: a missing field is the zero value, a wrong type is an error.

Called only by the checks of this package. Upstream converts a whole object to its Go type first; here only the fields
of a check are validated, and the two times of the metadata.
"""

from __future__ import annotations

from typing import Any

from syncline.base.clock import parse_time
from syncline.kube.objects import Obj, dig, meta


class ConversionError(ValueError):
    """A field has a type that its schema forbids; the text names the field."""


def text(obj: Any, *path: str) -> str:
    value = dig(obj, *path, default="")
    if not isinstance(value, str):
        raise ConversionError(f"{'.'.join(path)}: found {type(value).__name__}, must be a string")
    return value


def integer(obj: Any, *path: str) -> int | None:
    """Return a whole number; None if missing: upstream's pointer fields need the difference."""
    value = dig(obj, *path)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, (int, float)) or value != int(value):
        raise ConversionError(f"{'.'.join(path)}: found {value!r}, must be a whole number")
    return int(value)


def boolean(obj: Any, *path: str) -> bool:
    value = dig(obj, *path, default=False)
    if not isinstance(value, bool):
        raise ConversionError(f"{'.'.join(path)}: found {value!r}, must be true or false")
    return value


def items(obj: Any, *path: str) -> list[Obj]:
    value = dig(obj, *path, default=[])
    if not isinstance(value, list):
        raise ConversionError(f"cannot restore slice from {_go_kind(value)}")
    for item in value:
        if item is not None and not isinstance(item, dict):
            raise ConversionError(f"cannot restore struct from: {_go_kind(item)}")
    return [item or {} for item in value]


def conditions(obj: Any) -> list[Obj]:
    """Return ``status.conditions``, checked to have string fields."""
    found = items(obj, "status", "conditions")
    for condition in found:
        for name in ("type", "status", "reason", "message"):
            text(condition, name)
    return found


def check_times(obj: Obj) -> None:
    """Raise if a time of the metadata is not RFC 3339."""
    for name in ("creationTimestamp", "deletionTimestamp"):
        value = meta(obj).get(name)
        if value is None:
            continue
        try:
            parse_time(value)
        except ValueError as error:
            raise ConversionError(f"metadata.{name}: {error}") from error


def _go_kind(value: Any) -> str:
    match value:
        case bool():
            return "bool"
        case str():
            return "string"
        case int():
            return "int64"
        case float():
            return "float64"
        case dict():
            return "map"
        case _:
            return "slice"
