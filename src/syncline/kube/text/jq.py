"""Evaluates jq expressions with libjq to find the parts of a value that they address: :func:`addressed`.

An expression may run forever or use any amount of memory, so only the process that runs scripts of users
(``assembly/scripts/child.py``) calls this module; all others send requests to that process. There the environment is
empty, no file can be opened, and there is no further input. ``import`` and ``include`` are syntax errors inside an
expression.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import msgspec

Tree = dict[str, Any]
"""Parts of a value: keys and list indices as texts, with their own parts below; ``True`` for a whole part."""
MAX_PROGRAMS = 200
"""The number of cached compiled expressions."""


class JqFailed(ValueError):
    """An invalid expression, or one that failed for this value; the text is libjq's."""


class JqMissing(JqFailed):
    """The package ``jq`` is not installed."""

    def __init__(self) -> None:
        super().__init__("jq expressions need the package jq: pip install jq")


def check(expression: str) -> None:
    """Raise :class:`JqFailed` for an invalid expression."""
    _program(expression)


def addressed(expression: str, value: Any) -> Tree:
    """Return the parts of ``value`` that ``del(EXPRESSION)`` would remove; none if that would be all of it.

    Raises :class:`JqFailed`, also if the expression computes a value that is no part of the input.
    """
    program, tree = _program(expression), Tree()
    try:
        for path in program.input_text(msgspec.json.encode(value).decode()):
            if not isinstance(path, list):
                raise JqFailed("the expression addresses no part of the object")
            if not path:
                return {}
            _note(tree, value, path)
    except ValueError as error:
        raise JqFailed(str(error)) from error
    return tree


@lru_cache(maxsize=MAX_PROGRAMS)
def _program(expression: str) -> Any:
    try:
        import jq
    except ImportError as error:
        raise JqMissing from error
    try:
        return jq.compile(f"path({expression})")
    except ValueError as error:  # the first line has the error, the others show our own program
        raise JqFailed(str(error).partition("\n")[0].partition(" at <top-level>")[0].removeprefix("jq: ")) from error


def _note(tree: Tree, value: Any, path: list[Any]) -> None:
    """Add one path of libjq; a slice adds the positions that it covers; missing parts are ignored."""
    keys: list[str] = []
    low, high = 0, -1
    for part in path:
        if isinstance(value, list):
            size = (len(value) if high < 0 else high) - low
            if isinstance(part, dict):
                start, end = _bounds(part, size)
                low, high = low + start, low + max(start, end)
                continue
            place = math.floor(part)
            place += size if place < 0 else 0
            if not 0 <= place < size:
                return
            keys.append(str(low + place))
            value, low, high = value[low + place], 0, -1
        elif isinstance(value, dict) and part in value:
            keys.append(part)
            value = value[part]
        else:
            return
    if high < 0:
        _mark(tree, keys)
    for place in range(low, high):
        _mark(tree, [*keys, str(place)])


def _bounds(part: dict[str, Any], size: int) -> tuple[int, int]:
    start, end = part.get("start"), part.get("end")
    whole = slice(None if start is None else math.floor(start), None if end is None else math.ceil(end))
    return whole.indices(size)[:2]


def _mark(tree: Tree, keys: list[str]) -> None:
    at = tree
    for key in keys[:-1]:
        below = at.setdefault(key, {})
        if below is True:
            return  # it goes as a whole
        at = below
    at[keys[-1]] = True
