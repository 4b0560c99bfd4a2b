"""Paths of fields as people write them: ``spec.paused``, ``spec.containers.0.image``, ``metadata.annotations[a.b/c]``,
and, by the type or name of an item, ``status.conditions[Ready].status``. Pure."""

from __future__ import annotations

import re
from typing import Any

SEGMENT = re.compile(r"\[([^\]]*)\]|([^.\[\]]+)")


def keys_of(path: str) -> tuple[str, ...]:
    """Return the keys of a path."""
    return tuple(key or plain for key, plain in SEGMENT.findall(path))


def value_at(found: Any, path: str) -> Any:
    """Return the value at a path; None if it is not there."""
    for key in keys_of(path):
        place = place_of(found, key)
        found = None if place is None else found[place]
    return found


def place_of(found: Any, key: str) -> str | int | None:
    """Return the key of a mapping or the index of a list that a part of a path means; None if it is not there."""
    if isinstance(found, dict):
        return key if key in found else None
    if not isinstance(found, list):
        return None
    if key.isdigit():
        return int(key) if int(key) < len(found) else None
    items = ((n, each) for n, each in enumerate(found) if isinstance(each, dict))
    return next((n for n, each in items if key in (each.get("type"), each.get("name"))), None)
