"""The few edits of which nearly all actions consist; each returns an :data:`Act`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import deepcopy
from datetime import datetime
from typing import Any

from syncline.gitops.resource_actions.model import Act, ActionFailed, Effect, Verb
from syncline.kube.objects import Obj, dig, name_of

__all__ = [
    "REMOVED",
    "annotate",
    "at",
    "edited",
    "put",
    "replicas_of",
    "second",
    "set_field",
    "unset_if_true",
    "without_empty",
]

REMOVED: Any = object()
"""As a value: the field goes."""
Value = Any | Callable[[datetime], Any]


def second(now: datetime) -> str:
    """RFC 3339 in UTC, whole seconds."""
    return now.strftime("%Y-%m-%dT%H:%M:%SZ")


def at(obj: Obj, *path: str) -> Any:
    """The value there, None where something on the way is missing."""
    return dig(obj, *path)


def put(obj: Obj, path: tuple[str, ...], value: Any) -> None:
    """Set or remove a field; maps on the way are made. Raises :class:`ActionFailed` where something else is there."""
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
    """An action that changes a copy of the object."""

    def act(obj: Obj, params: Mapping[str, str], now: datetime) -> tuple[Effect, ...]:
        copy = deepcopy(obj)
        edit(copy, params, now)
        return (Effect(Verb.PATCH, copy),)

    return act


def set_field(*changes: tuple[tuple[str, ...], Value]) -> Act:
    """Fields by path; a callable value gets the time."""

    def edit(obj: Obj, _params: Mapping[str, str], now: datetime) -> None:
        for path, value in changes:
            put(obj, path, value(now) if callable(value) else value)

    return edited(edit)


def annotate(key: str, value: Value, *where: str) -> Act:
    """An annotation of the object, or of what lies at ``where`` (a pod template)."""
    return set_field(((*where, "metadata", "annotations", key), value))


def unset_if_true(*path: str) -> Act:
    """True becomes false; anything else stays."""

    def edit(obj: Obj, _params: Mapping[str, str], _now: datetime) -> None:
        if at(obj, *path):
            put(obj, path, False)

    return edited(edit)


def replicas_of(params: Mapping[str, str], *, least: float | None = None) -> int | float:
    """The parameter ``replicas`` as a number, in the ways Lua reads one (blanks around it, hexadecimal, exponents)."""
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
    """A copy without empty maps and lists, as templates are copied into what is created from them; None if all goes."""
    if isinstance(value, dict):
        kept = {key: without_empty(item) for key, item in value.items() if item not in ({}, [], None)}
        return kept or ({} if value else None)
    if isinstance(value, list):
        return [without_empty(item) for item in value if item not in ({}, [], None)]
    return value
