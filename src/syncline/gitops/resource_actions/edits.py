"""The edits that nearly all actions consist of; each returns an :data:`Act`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import deepcopy
from datetime import datetime
from typing import Any

from syncline.gitops.resource_actions.model import Act, ActionFailed, Effect, Verb
from syncline.kube.objects import Obj, dig, name_of

REMOVED: Any = object()
"""A value that removes the field."""
Value = Any | Callable[[datetime], Any]


def second(now: datetime) -> str:
    """Format as RFC 3339 in UTC with whole seconds."""
    return now.strftime("%Y-%m-%dT%H:%M:%SZ")


def at(obj: Obj, *path: str) -> Any:
    """Return the value at the path, None if a part is missing."""
    return dig(obj, *path)


def put(obj: Obj, path: tuple[str, ...], value: Any) -> None:
    """Set or remove a field and create missing maps. Raises :class:`ActionFailed` if a parent is no map."""
    holder: Any = obj
    for index, key in enumerate(path[:-1]):
        if value is REMOVED and key not in holder:
            return
        if holder.get(key) is None:
            holder[key] = {}
        holder = holder[key]
        if not isinstance(holder, dict):
            raise ActionFailed(f"{name_of(obj)}: {'.'.join(path[: index + 1])} is no object")
    if value is REMOVED:
        holder.pop(path[-1], None)
    else:
        holder[path[-1]] = value


def edited(edit: Callable[[Obj, Mapping[str, str], datetime], None]) -> Act:
    """Return an action that edits a copy of the object."""

    def act(obj: Obj, params: Mapping[str, str], now: datetime) -> tuple[Effect, ...]:
        copy = deepcopy(obj)
        edit(copy, params, now)
        return (Effect(Verb.PATCH, copy),)

    return act


def set_field(*changes: tuple[tuple[str, ...], Value]) -> Act:
    """Return an action that sets fields by path; a callable value is called with the time."""

    def edit(obj: Obj, _params: Mapping[str, str], now: datetime) -> None:
        for path, value in changes:
            put(obj, path, value(now) if callable(value) else value)

    return edited(edit)


def annotate(key: str, value: Value, *where: str) -> Act:
    """Return an action that annotates the object, or the part at ``where`` (a pod template)."""
    return set_field(((*where, "metadata", "annotations", key), value))


def unset_if_true(*path: str) -> Act:
    """Return an action that sets a true field to false."""

    def edit(obj: Obj, _params: Mapping[str, str], _now: datetime) -> None:
        if at(obj, *path):
            put(obj, path, False)

    return edited(edit)


def replicas_of(params: Mapping[str, str], *, least: float | None = None) -> int | float:
    """Return the parameter ``replicas`` as a number, as Lua reads it (blanks around it, hexadecimal, exponents)."""
    text = params.get("replicas")
    if text is None:
        raise ActionFailed("replicas parameter is required")
    try:
        found: int | float = int(text, 16) if text.strip().lower().startswith(("0x", "-0x")) else float(text)
        number = int(found) if found == int(found) else found
    except (ValueError, OverflowError):
        number = None
    if number is None or "_" in text or not text.isascii() or (least is not None and number < least):
        hint = "" if least is None else f" (must be >= {least:g})"
        raise ActionFailed(f"invalid number: {text}{hint}")
    return number


def without_empty(value: Any) -> Any:
    """Return a copy without empty maps and lists, as for objects created from templates; None if nothing is left."""
    if isinstance(value, dict):
        kept = {key: without_empty(item) for key, item in value.items() if item not in ({}, [], None)}
        return kept or ({} if value else None)
    if isinstance(value, list):
        return [without_empty(item) for item in value if item not in ({}, [], None)]
    return value
