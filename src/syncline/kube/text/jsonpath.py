"""kubectl's JSONPath: printer columns, ``-o jsonpath``, ``wait --for=jsonpath``, sort keys.

Called by table printers, by the command line and by waiting. A template and a decoded object come in; values or
text leave. The dialect, its tolerance of missing fields and its refusals are client-go's ``util/jsonpath``; only the
order of a map's values is fixed (by key) where Go leaves it to chance. Nothing that came in is changed.
"""

from __future__ import annotations

import json
import operator
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, assert_never

from syncline.kube.text.jsonpath_syntax import (
    Action,
    Constant,
    Field,
    Filter,
    JsonPathError,
    Node,
    Part,
    Range,
    Recursive,
    Slice,
    Text,
    Union,
    Wildcard,
    parse_template,
)

__all__ = ["JsonPath", "JsonPathError", "TooManySteps", "compile_path", "compile_template"]

MAX_RESULTS = 100_000
"""Values at one step of a path; more are a mistake (``..`` twice over a large list), not an answer."""

MAX_STEPS = 500_000
"""Values that one evaluation reads, about a microsecond each: ranges within ranges multiply."""

_MAX_TEXTS = 512
"""Compiled templates kept: every printer column of every kind is used again and again."""

_COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


class TooManySteps(JsonPathError):
    """An evaluation that examined more values than it may."""


@dataclass(slots=True)
class _Steps:
    left: int

    def take(self, count: int) -> None:
        """Raises TooManySteps."""
        self.left -= count
        if self.left < 0:
            raise TooManySteps("too many values are read")


CHARS_PER_STEP = 50
"""Of a text that is printed or compared."""


@dataclass(frozen=True, slots=True)
class JsonPath:
    """A compiled template."""

    text: str
    parts: tuple[Part, ...]

    def find(
        self,
        obj: Any,
        *,
        allow_missing: bool = True,
        limit: int = MAX_STEPS,
        spent: Callable[[int], None] = lambda steps: None,
    ) -> list[Any]:
        """All values in order, literal texts among them; ``limit`` and ``spent`` as for :meth:`render`.

        A missing field gives nothing, or JsonPathError (``x is not found``) without ``allow_missing``. An index
        beyond a list's end, and indexing what is no list, is always an error.
        """
        steps = _Steps(limit)
        try:
            return [value for group in _groups(self.parts, obj, _Walk(allow_missing, steps)) for value in group]
        finally:
            spent(limit - max(steps.left, 0))

    def groups(self, obj: Any, *, allow_missing: bool = True) -> list[list[Any]]:
        """The values of each action and text of the template, ranges unrolled."""
        return list(_groups(self.parts, obj, _Walk(allow_missing, _Steps(MAX_STEPS))))

    def render(
        self,
        obj: Any,
        *,
        allow_missing: bool = True,
        limit: int = MAX_STEPS,
        spent: Callable[[int], None] = lambda steps: None,
    ) -> str:
        """What ``-o jsonpath`` prints: scalars plain, maps and lists as JSON, several results with spaces between.

        Raises TooManySteps beyond ``limit``; ``spent`` learns how many steps it took.
        """
        steps = _Steps(limit)
        try:
            groups = list(_groups(self.parts, obj, _Walk(allow_missing, steps)))
            return "".join(" ".join([_shown(value, steps) for value in group]) for group in groups)
        finally:
            spent(limit - max(steps.left, 0))


@lru_cache(maxsize=_MAX_TEXTS)
def compile_template(text: str) -> JsonPath:
    """A whole template with braces, as ``-o jsonpath=`` takes it. Raises JsonPathError with the position."""
    return JsonPath(text, parse_template(text))


@lru_cache(maxsize=_MAX_TEXTS)
def compile_path(text: str) -> JsonPath:
    """One path, with or without braces and leading dot (``.status.phase``), as printer columns, sort keys and wait
    conditions take it. Raises JsonPathError with the position."""
    if "{" in text:
        return compile_template(text)
    relaxed = text if text.startswith((".", "[", "$", "@")) else f".{text}"
    return compile_template(f"{{{relaxed}}}")


@dataclass(frozen=True, slots=True)
class _Walk:
    """``missing``: fields may be. ``steps``: what is left to read."""

    missing: bool
    steps: _Steps


def _groups(parts: tuple[Part, ...], obj: Any, walk: _Walk) -> Iterator[list[Any]]:
    for part in parts:
        match part:
            case Text(text):
                walk.steps.take(1)
                yield [text]
            case Action(nodes):
                yield _walk([obj], nodes, walk)
            case Range(nodes, body):
                for value in _walk([obj], nodes, walk):
                    yield from _groups(body, value, walk)
            case _:
                assert_never(part)


def _walk(values: list[Any], nodes: tuple[Node, ...], walk: _Walk) -> list[Any]:
    walk.steps.take(1)
    for node in nodes:
        walk.steps.take(len(values))
        values = _step(values, node, walk)
        if len(values) > MAX_RESULTS:
            raise JsonPathError(f"more than {MAX_RESULTS} results")
    return values


def _step(values: list[Any], node: Node, walk: _Walk) -> list[Any]:
    match node:
        case Field(name):
            return _field(values, name, walk.missing)
        case Wildcard():
            return [child for value in values for child in _paid(_children(value), walk)]
        case Recursive():
            return _below(values, walk)
        case Slice():
            return [item for value in values if value is not None for item in _paid(_slice(value, node), walk)]
        case Filter():
            return [item for value in values for item in _filtered(value, node, walk)]
        case Union(branches):
            return [value for branch in branches for value in _walk(values, branch, walk)]
        case Constant(constant):
            return [constant for _ in values]
        case Text(text):
            return [text]
    assert_never(node)


def _field(values: list[Any], name: str, missing: bool) -> list[Any]:
    found = [value[name] for value in values if isinstance(value, dict) and name in value]
    if values and not found and not missing:
        raise JsonPathError(f"{name} is not found")
    return found


def _children(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return [value[key] for key in sorted(value)]
    return value if isinstance(value, list) else []


def _paid(values: list[Any], walk: _Walk) -> list[Any]:
    walk.steps.take(len(values))
    return values


def _below(values: list[Any], walk: _Walk) -> list[Any]:
    """The maps and lists that are not empty, each followed by those below it."""
    found: list[Any] = []
    todo = list(reversed(values))
    while todo:
        value = todo.pop()
        children = _paid(_children(value), walk)
        if children:
            found.append(value)
            todo += reversed(children)
        if len(found) > MAX_RESULTS:
            raise JsonPathError(f"more than {MAX_RESULTS} results")
    return found


def _slice(value: Any, wanted: Slice) -> list[Any]:
    """client-go's slices: unlike Python's, they refuse what lies outside of the list."""
    if not isinstance(value, list):
        raise JsonPathError(f"{_go_type(value)} is not array or slice")
    size = len(value)
    start = wanted.start or 0
    stop = start + 1 if wanted.single else wanted.stop
    start += size if start < 0 else 0
    if stop is None:
        stop = size
    elif stop < 0 or (stop == 0 and wanted.single):
        stop += size
    if start == stop:
        return []
    for index, limit in ((start, size - 1), (stop - 1, size - 1)):
        if not 0 <= index <= limit:
            raise JsonPathError(f"array index out of bounds: index {index}, length {size}")
    if start > stop:
        raise JsonPathError(f"starting index {start} is greater than ending index {stop}")
    if wanted.step is not None and wanted.step <= 0:
        raise JsonPathError("step must be > 0")
    return value[start : stop : wanted.step or 1]


def _filtered(value: Any, wanted: Filter, walk: _Walk) -> Iterator[Any]:
    if not isinstance(value, list):
        raise JsonPathError(f"{_go_type(value)} is not array or slice and cannot be filtered")
    for item in value:
        if wanted.operator == "exists":
            # Whatever goes wrong while looking for it, it does not exist.
            if _exists(item, wanted.left, walk):
                yield item
            continue
        left, right = _walk([item], wanted.left, walk), _walk([item], wanted.right, walk)
        if len(left) > 1 or len(right) > 1:
            raise JsonPathError("can only compare one element at a time")
        if left and right and _compare(left[0], wanted.operator, right[0], walk.steps):
            yield item


def _exists(item: Any, nodes: tuple[Node, ...], walk: _Walk) -> bool:
    try:
        return bool(_walk([item], nodes, walk))
    except TooManySteps:
        raise
    except JsonPathError:
        return False


def _compare(left: Any, how: str, right: Any, steps: _Steps) -> bool:
    if isinstance(left, str):
        steps.take(len(left) // CHARS_PER_STEP)
    kinds = {type(left), type(right)}
    if not kinds <= {bool, int, float, str} or (kinds == {bool} and how not in ("==", "!=")):
        raise JsonPathError("invalid type for comparison")
    if len(kinds) > 1:
        raise JsonPathError("incompatible types for comparison")
    return _COMPARE[how](left, right)


def _shown(value: Any, steps: _Steps) -> str:
    text = _text(value)
    steps.take(1 + len(text) // CHARS_PER_STEP)
    return text


def _text(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e21:
        return str(int(value))
    if isinstance(value, (dict, list)):
        text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
    return str(value)


def _go_type(value: Any) -> str:
    """The type as Go's decoder makes it: the words of the refusals."""
    if isinstance(value, dict):
        return "map[string]interface {}"
    names = {bool: "bool", int: "int64", float: "float64", str: "string"}
    return names.get(type(value), "<nil>")
