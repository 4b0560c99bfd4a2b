"""Reading settings with Go's strictness: which fields exist, which types they have.

``kustomization`` and ``plugins`` describe their fields with these shapes. JSON values come in, the same values with
canonical field names leave; fields match without regard to case, null means absent (Go ``encoding/json``).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from syncline.sources.kustomize.failure import BuildError


@dataclass(frozen=True, slots=True)
class Basic:
    """``name`` is Go's type, for messages."""

    name: str


@dataclass(frozen=True, slots=True)
class ListOf:
    item: Shape


@dataclass(frozen=True, slots=True)
class MapOf:
    item: Shape


@dataclass(frozen=True, slots=True)
class Struct:
    name: str
    fields: Mapping[str, Shape] = field(default_factory=dict)


Shape: TypeAlias = Basic | ListOf | MapOf | Struct
Fields: TypeAlias = dict[str, Shape]

TEXT, BOOL, INT, ANY = Basic("string"), Basic("bool"), Basic("int64"), Basic("interface {}")


def read_struct(shape: Struct, value: Any, *, strict: bool) -> dict[str, Any]:
    """``value`` checked against ``shape``. ``strict`` refuses unknown fields and takes no number for a text.

    Raises :class:`BuildError` in Go's words.
    """
    made = _Reader(strict).read(shape, value, "")
    return {} if made is None else dict(made)


class _Reader:
    def __init__(self, strict: bool) -> None:
        self._strict = strict

    def read(self, shape: Shape, value: Any, path: str) -> Any:
        if value is None or shape is ANY:
            return value
        if isinstance(shape, Basic):
            return self._basic(shape, value, path)
        if isinstance(shape, ListOf):
            if not isinstance(value, list):
                raise _mismatch(value, path, "[]" + _type_name(shape.item))
            items = [self.read(shape.item, item, path) for item in value]
            return [_zero(shape.item) if item is None else item for item in items]
        if not isinstance(value, dict):
            raise _mismatch(value, path, _type_name(shape))
        if isinstance(shape, MapOf):
            items_by_key = {key: self.read(shape.item, item, path) for key, item in value.items()}
            return {key: _zero(shape.item) if item is None else item for key, item in items_by_key.items()}
        return self._struct(shape, value, path)

    def _struct(self, shape: Struct, value: dict[str, Any], path: str) -> dict[str, Any]:
        made: dict[str, Any] = {}
        names = {name.casefold(): name for name in shape.fields}
        for key, item in value.items():
            name = key if key in shape.fields else names.get(key.casefold())
            if name is None:
                if self._strict:
                    raise BuildError(f'json: unknown field "{key}"')
                continue
            found = self.read(shape.fields[name], item, f"{path or shape.name}.{name}")
            if found is not None:
                made[name] = found
        return made

    def _basic(self, shape: Basic, value: Any, path: str) -> Any:
        if shape is TEXT and isinstance(value, str):
            return value
        if shape is TEXT and not self._strict and isinstance(value, int | float):
            return _as_text(value)
        if shape is BOOL and isinstance(value, bool):
            return value
        if shape is INT and isinstance(value, int) and not isinstance(value, bool):
            return value
        raise _mismatch(value, path, shape.name)


def _as_text(value: int | float) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


def _zero(shape: Shape) -> Any:
    if isinstance(shape, Struct | MapOf):
        return {}
    if isinstance(shape, ListOf):
        return []
    return {TEXT: "", BOOL: False, INT: 0}.get(shape)


def _type_name(shape: Shape) -> str:
    if isinstance(shape, Basic):
        return shape.name
    if isinstance(shape, ListOf):
        return "[]" + _type_name(shape.item)
    if isinstance(shape, MapOf):
        return "map[string]" + _type_name(shape.item)
    return f"types.{shape.name}"


def _mismatch(value: Any, path: str, wanted: str) -> BuildError:
    names = {bool: "bool", int: "number", float: "number", str: "string", dict: "object", list: "array"}
    return BuildError(
        f"json: cannot unmarshal {names.get(type(value), 'value')} into Go struct field {path} of type {wanted}"
    )
