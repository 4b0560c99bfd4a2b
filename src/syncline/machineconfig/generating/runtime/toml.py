"""Reads and writes TOML as the container tools do (BurntSushi's library): known fields, in a given order.

Reading ignores the case of keys and drops unknown ones; writing indents tables by two spaces and puts plain values
before tables.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from typing import Any, TypeAlias

Shape: TypeAlias = Mapping[str, Any]
"""Field name to what it holds: ``str``, ``int``, ``bool``, ``[str]`` (a list), ``dict`` (a map of texts), another
Shape (a table) or a list with one Shape in it (tables)."""

MAX_BYTES = 1 << 20

_BARE = re.compile(r"[A-Za-z0-9_-]+")
_ESCAPES = {
    **{code: f"\\u{code:04x}" for code in (*range(32), 127)},
    ord('"'): '\\"',
    ord("\\"): "\\\\",
    8: "\\b",
    9: "\\t",
    10: "\\n",
    12: "\\f",
    13: "\\r",
}


class TomlError(ValueError):
    """The text is no TOML, or a value has the wrong type."""


def read(text: str, shape: Shape) -> dict[str, Any]:
    """Return the known fields of ``text``. Raises TomlError."""
    if len(text) > MAX_BYTES:
        raise TomlError(f"toml: the text has {len(text)} characters, at most {MAX_BYTES} are read")
    try:
        found = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise TomlError(f"toml: {error}") from error
    return shaped(found, shape)


def shaped(found: Mapping[str, Any], shape: Shape) -> dict[str, Any]:
    """Return only the fields of ``shape``, with its spelling of keys. Raises TomlError for a wrong type."""
    folded = {name.casefold(): name for name in shape}
    kept: dict[str, Any] = {}
    for key, value in found.items():
        name = key if key in shape else folded.get(key.casefold())
        if name is not None:
            kept[name] = _value(name, value, shape[name])
    return kept


def _value(name: str, value: Any, kind: Any) -> Any:
    if isinstance(kind, list):
        if not isinstance(value, list):
            raise _wrong(name, value)
        return [_value(name, item, kind[0]) for item in value]
    if kind is dict:
        if not isinstance(value, dict):
            raise _wrong(name, value)
        return {key: _value(key, item, str) for key, item in value.items()}
    if isinstance(kind, Mapping):
        if not isinstance(value, dict):
            raise _wrong(name, value)
        return shaped(value, kind)
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise _wrong(name, value)
    return value


def _wrong(name: str, value: Any) -> TomlError:
    return TomlError(f"toml: incompatible types, {name} has a TOML value of type {type(value).__name__}")


def write(table: Mapping[str, Any]) -> str:
    """Return the text of ``table`` in its order; only None is left out."""
    lines: list[str] = []
    _table(lines, (), table)
    return "\n".join(lines) + "\n" if lines else ""


def _table(lines: list[str], path: tuple[str, ...], table: Mapping[str, Any]) -> None:
    indent = "  " * len(path)
    nested = []
    for key, value in table.items():
        if isinstance(value, Mapping) or (isinstance(value, list) and value and isinstance(value[0], Mapping)):
            nested.append((key, value))
        elif value is not None:
            lines.append(f"{indent}{_key(key)} = {_plain(value)}")
    for key, value in nested:
        whole = (*path, key)
        name = ".".join(map(_key, whole))
        for each in value if isinstance(value, list) else (value,):
            brackets = f"[[{name}]]" if isinstance(value, list) else f"[{name}]"
            if lines and (not path or isinstance(value, list)):
                lines.append("")
            lines.append(indent + brackets)
            _table(lines, whole, each)


def _key(key: str) -> str:
    return key if _BARE.fullmatch(key) else _quoted(key)


def _plain(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return _quoted(value)
    if isinstance(value, list):
        return f"[{', '.join(map(_plain, value))}]"
    return str(value)


def _quoted(text: str) -> str:
    return f'"{text.translate(_ESCAPES)}"'
