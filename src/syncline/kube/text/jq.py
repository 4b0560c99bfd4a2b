"""jq by libjq: which parts of a value an expression addresses.

Begin at :func:`addressed`. An expression may compute for ever or take any amount of memory, so only the process that
runs scripts of users (``assembly/scripts/child.py``) calls it; everybody else asks that process. There the environment
is empty, no file can be opened, and there is no further input. ``import`` and ``include`` cannot be read where an
expression stands.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import msgspec

__all__ = ["JqFailed", "Tree", "addressed", "check"]

Tree = dict[str, Any]
"""Parts of a value: keys, places of lists as texts, below each its own parts; ``True`` where a part is meant whole."""
MAX_PROGRAMS = 200
"""Compiled expressions that are kept."""


class JqFailed(ValueError):
    """The expression cannot be read, or failed for this value; the text is libjq's."""


class JqMissing(JqFailed):
    """The package ``jq`` is not installed."""

    def __init__(self) -> None:
        super().__init__("jq expressions need the package jq: pip install jq")


def check(expression: str) -> None:
    """Raises :class:`JqFailed` where it cannot be read."""
    _program(expression)


def addressed(expression: str, value: Any) -> Tree:
    """The parts of ``value`` that ``del(EXPRESSION)`` would take away; none where that would be all of it.

    Raises :class:`JqFailed`, also where the expression computes a value that stands nowhere.
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
    except ValueError as error:  # its first line says what is wrong, the others show our own program
        raise JqFailed(str(error).partition("\n")[0].partition(" at <top-level>")[0].removeprefix("jq: ")) from error


def _note(tree: Tree, value: Any, path: list[Any]) -> None:
    """Note one path of libjq; a slice stands for the places that it covers, what is not there is left out."""
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
