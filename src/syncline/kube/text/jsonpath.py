"""kubectl's JSONPath for printer columns, ``-o jsonpath``, ``wait --for=jsonpath`` and sort keys: :class:`JsonPath`.

Used by table printers, the command line and waits. It evaluates a template on a decoded object, to values or text. The
dialect, its tolerance of missing fields and its errors are client-go's ``util/jsonpath``; only map values are in the
order of keys, where Go's order is random. The input is never changed.
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
"""The most values at one step of a path; more are a mistake (``..`` twice over a large list)."""

MAX_STEPS = 500_000
"""The most values that one evaluation reads, about a microsecond each: nested ranges multiply."""

_MAX_TEXTS = 512
"""The number of cached templates: every printer column of every kind is used repeatedly."""

_COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


class TooManySteps(JsonPathError):
    """An evaluation that read more values than its limit."""


@dataclass(slots=True)
class _Steps:
    left: int

    def take(self, count: int) -> None:
        """Count steps; raises TooManySteps."""
        self.left -= count
        if self.left < 0:
            raise TooManySteps("too many values are read")


CHARS_PER_STEP = 50
"""Characters of a printed or compared text per step."""


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
        """Return all values in order, including literal texts; ``limit`` and ``spent`` as for :meth:`render`.

        A missing field gives nothing, or JsonPathError (``x is not found``) without ``allow_missing``. An index beyond
        the end of a list, and indexing anything but a list, is always an error.
        """
        steps = _Steps(limit)
        try:
            return [value for group in _groups(self.parts, obj, _Walk(allow_missing, steps)) for value in group]
        finally:
            spent(limit - max(steps.left, 0))

    def groups(self, obj: Any, *, allow_missing: bool = True) -> list[list[Any]]:
        """Return the values of each action and text of the template, with ranges expanded."""
        return list(_groups(self.parts, obj, _Walk(allow_missing, _Steps(MAX_STEPS))))

    def render(
        self,
        obj: Any,
        *,
        allow_missing: bool = True,
        limit: int = MAX_STEPS,
        spent: Callable[[int], None] = lambda steps: None,
    ) -> str:
        """Return the output of ``-o jsonpath``: scalars plain, maps and lists as JSON, results separated by spaces.

        Raises TooManySteps beyond ``limit``; ``spent`` is called with the number of steps.
        """
        steps = _Steps(limit)
        try:
            groups = list(_groups(self.parts, obj, _Walk(allow_missing, steps)))
            return "".join(" ".join([_shown(value, steps) for value in group]) for group in groups)
        finally:
            spent(limit - max(steps.left, 0))


@lru_cache(maxsize=_MAX_TEXTS)
def compile_template(text: str) -> JsonPath:
    """Compile a template with braces, as for ``-o jsonpath=``. Raises JsonPathError with the position."""
    return JsonPath(text, parse_template(text))


@lru_cache(maxsize=_MAX_TEXTS)
def compile_path(text: str) -> JsonPath:
    """Compile one path, with or without braces and leading dot (``.status.phase``), as in printer columns, sort keys
    and wait conditions. Raises JsonPathError with the position."""
    if "{" in text:
        return compile_template(text)
    relaxed = text if text.startswith((".", "[", "$", "@")) else f".{text}"
    return compile_template(f"{{{relaxed}}}")


@dataclass(frozen=True, slots=True)
class _Walk:
    """One evaluation. ``missing``: fields may be missing. ``steps``: the remaining steps."""

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
    """Return the values and all non-empty maps and lists below them, each before its children."""
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
    """Slice like client-go: unlike in Python, bounds outside of the list are errors."""
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
            # Any error of the lookup means that the value does not exist.
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
    """Return the type name of Go's decoder, as used in errors."""
    if isinstance(value, dict):
        return "map[string]interface {}"
    names = {bool: "bool", int: "int64", float: "float64", str: "string"}
    return names.get(type(value), "<nil>")
