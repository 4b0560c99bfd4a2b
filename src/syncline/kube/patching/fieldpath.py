"""Paths to a field below a schema, as validation rules and selectable fields write them: ``.spec.a``, ``.m['k']``.

Called when definitions are checked and when a rule's ``fieldPath`` is reported. Takes the path and the schema; returns
its steps and the schema that they lead to. Source: apiextensions-apiserver ``schema/cel`` (``ValidFieldPath``).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

_TOKEN = re.compile(r"[.\[\]]|'(?:[^'\\]|\\.)*'|'[^']*$|[^.\[\]]+", re.DOTALL)
_ESCAPES = {"'": "'", "\\": "\\", "a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}

Raw = Mapping[str, Any]


class FieldPathError(ValueError):
    """A path that leads nowhere; the text is Kubernetes'."""


def find_field(path: str, schema: Raw, *, arrays: bool = True) -> tuple[list[str], Raw | None]:
    """(steps, schema of the field). ``arrays`` allows ``['name']``. Raises :class:`FieldPathError`."""
    steps, found, _ = _walk(path, schema, arrays)
    return steps, found


def printed_path(path: str, schema: Raw) -> str:
    """The path as causes name it: ``.spec.a``, keys of maps as ``[key]``. Raises :class:`FieldPathError`."""
    steps, _, named = _walk(path, schema, True)
    return "".join(f".{step}" if is_field else f"[{step}]" for step, is_field in zip(steps, named, strict=True))


def _walk(path: str, schema: Raw, arrays: bool) -> tuple[list[str], Raw | None, list[bool]]:
    tokens = iter(_TOKEN.findall(path))
    steps: list[str] = []
    named: list[bool] = []
    here: Raw | None = schema
    for token in tokens:
        if token == "[":
            if not arrays:
                raise FieldPathError("array notation is not allowed")
            step = _unquoted(_next(tokens))
            here, is_field = _below(here, step)
            if _next(tokens) != "]":
                raise FieldPathError("expected ] but got something else")
        elif token == ".":
            step = _next(tokens)
            here, is_field = _below(here, step)
        else:
            raise FieldPathError(f"expected [ or . but got: {token}")
        steps.append(step)
        named.append(is_field)
    return steps, here, named


def _next(tokens: Any) -> str:
    token: str | None = next(tokens, None)
    if token is None:
        raise FieldPathError("unexpected end of JSON path")
    return token


def _unquoted(token: str) -> str:
    if len(token) < 2 or token[0] != "'" or token[-1] != "'":
        raise FieldPathError(f"expected single quoted string but got {token}")
    return re.sub(r"\\(.)", lambda found: _ESCAPES.get(found.group(1), found.group(0)), token[1:-1], flags=re.DOTALL)


def _below(schema: Raw | None, step: str) -> tuple[Raw | None, bool]:
    properties = (schema or {}).get("properties")
    if properties:
        if step not in properties:
            raise FieldPathError("does not refer to a valid field")
        return properties[step], True
    additional = (schema or {}).get("additionalProperties")
    if not additional:
        raise FieldPathError("does not refer to a valid field")
    return (additional if isinstance(additional, dict) else None), False
