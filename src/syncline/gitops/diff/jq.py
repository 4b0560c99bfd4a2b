"""Deletes what a jq expression addresses, as ``del(EXPRESSION)`` does.

Called by normalisation for ``jqPathExpressions``. An object and a read expression come in, a new object leaves. No
process, no library, no time limit but a number of steps. Rules: the jq manual; functions that do not address fields
(``to_entries`` and the like) cannot be deleted and are an error, as in jq.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from typing import Any, assert_never

from syncline.gitops.diff.jq_syntax import (
    Binary,
    Bind,
    Call,
    Collect,
    Expression,
    Field,
    Identity,
    Iterate,
    JqError,
    Literal,
    Optional,
    Recurse,
    Slice,
    Variable,
    parse_jq,
)
from syncline.kube.cel.metering import Exceeded, Meter, charge_search, weigh
from syncline.kube.objects import Obj
from syncline.kube.re2 import compile_pattern
from syncline.kube.typedvalues import same_json

__all__ = ["MAX_PASS_STEPS", "JqBudget", "JqError", "JqExhausted", "compiled", "delete_paths"]

MAX_STEPS = 100_000
"""Of one expression on one object, about two microseconds each; upstream stops after a second instead."""
MAX_PASS_STEPS = 500_000
"""Of all expressions on all objects of one comparison."""
PATHS_PER_STEP = 10
"""Parts of a path that are copied."""

MAX_TEXT = 10_000
"""Characters of a text that ``test`` looks at."""

Path = tuple[str | int, ...]
Result = tuple[Path | None, Any]
"""Where a value stands (None: it was computed), and the value."""
Variables = Mapping[str, Any]


class JqExhausted(Exception):
    """All expressions of a comparison together took more steps than they may."""


class JqBudget:
    """What the expressions of one comparison may still take together."""

    __slots__ = ("left",)

    def __init__(self, left: int = MAX_PASS_STEPS) -> None:
        self.left = left

    def spend(self, steps: int) -> None:
        self.left -= steps


def compiled(text: str) -> Expression:
    """The expression, read once. Raises :class:`JqError`."""
    found = _read(text)
    if isinstance(found, str):
        raise JqError(found)
    return found


@lru_cache(maxsize=1024)
def _read(text: str) -> Expression | str:
    """The expression, or what is wrong with it: that is remembered, too."""
    try:
        return parse_jq(text)
    except JqError as error:
        return str(error)


def delete_paths(obj: Obj, text: str, budget: JqBudget | None = None) -> Obj:
    """``obj`` without what the expression addresses. Raises :class:`JqError`, and :class:`JqExhausted` where nothing
    is left of ``budget``."""
    budget = budget or JqBudget()
    run = _Run(min(MAX_STEPS, budget.left))
    tree: _Tree = {}
    try:
        for path, _ in run.results(compiled(text), ((), obj), {}):
            if path is None:
                raise JqError("invalid path expression: a computed value cannot be deleted")
            run.pay(1 + len(path) // PATHS_PER_STEP)
            _note(tree, path)
        run.weigh(obj) if tree else None
        made: Any = None if _END in tree else _without(obj, tree)
    except Exceeded:
        if budget.left < MAX_STEPS:
            raise JqExhausted from None
        raise JqError(f"more than {MAX_STEPS} steps") from None
    finally:
        budget.spend(run.spent)
    return made if isinstance(made, dict) else obj


_Tree = dict[Any, Any]
"""The paths to be deleted, by their first part; ``_END`` where one ends."""
_END: Any = object()


def _note(tree: _Tree, path: Path) -> None:
    for part in path:
        if _END in tree:
            return  # it goes as a whole
        tree = tree.setdefault(part, {})
    tree.clear()
    tree[_END] = True


def _without(value: Any, tree: _Tree) -> Any:
    """``value`` without the paths of ``tree``; parts that nothing is taken from are shared."""
    if isinstance(value, dict):
        kept = ((key, item, tree.get(key)) for key, item in value.items())
    elif isinstance(value, list):
        places = {part % len(value): below for part, below in tree.items() if _within(part, value)}
        kept = ((key, item, places.get(key)) for key, item in enumerate(value))
    else:
        return value
    made = [(key, item if below is None else _without(item, below)) for key, item, below in kept if not _goes(below)]
    return dict(made) if isinstance(value, dict) else [item for _, item in made]


def _goes(below: _Tree | None) -> bool:
    return below is not None and _END in below


def _within(part: Any, value: list[Any]) -> bool:
    return type(part) is int and -len(value) <= part < len(value)


def _truth(value: Any) -> bool:
    return value is not None and value is not False


class _Run:
    """One evaluation, with what is left of its steps. Raises Exceeded where that is nothing."""

    def __init__(self, steps: int) -> None:
        self._meter = Meter(max(steps, 0))
        self._most = self._meter.left

    @property
    def spent(self) -> int:
        return self._most - max(self._meter.left, 0)

    def pay(self, steps: int) -> None:
        self._meter.spend(steps)

    def weigh(self, value: Any) -> int:
        """Pay for every part of a value that is looked at as a whole."""
        return weigh(value, self._meter)

    def results(self, node: Expression, given: Result, names: Variables) -> Iterator[Result]:
        """Every result of ``node`` for one input."""
        self.pay(1)
        match node:
            case Identity():
                yield given
            case Recurse():
                yield from self._recurse(given)
            case Literal(value):
                yield None, value
            case Variable(name):
                if name not in names:
                    raise JqError(f"variable not defined: {name}")
                yield None, names[name]
            case Field() | Slice() | Iterate():
                yield from self._stepped(node, given, names)
            case Optional(base):
                yield from self._attempted(base, given, names)
            case Binary():
                yield from self._binary(node, given, names)
            case Bind(source, name, body):
                for _, value in self.results(source, given, names):
                    yield from self.results(body, given, {**names, name: value})
            case Call():
                yield from self._call(node, given, names)
            case Collect(body):
                yield None, [value for _, value in self.results(body, given, names)] if body else []
            case _:
                assert_never(node)

    def values(self, node: Expression, given: Result, names: Variables) -> Iterator[Any]:
        return (value for _, value in self.results(node, given, names))

    def _recurse(self, given: Result) -> Iterator[Result]:
        yield given
        for child in self._children(given) if isinstance(given[1], (dict, list)) else ():
            self.pay(1 + len(given[0] or ()) // PATHS_PER_STEP)
            yield from self._recurse(child)

    def _children(self, given: Result) -> Iterator[Result]:
        if isinstance(given[1], (dict, list)):
            self.pay(len(given[1]) // 2)
        return _children(given)

    def _stepped(self, node: Field | Slice | Iterate, given: Result, names: Variables) -> Iterator[Result]:
        for base in self.results(node.base, given, names):
            match node:
                case Iterate():
                    yield from self._children(base)
                case Field(_, key):
                    yield from (_child(base, value) for value in self.values(key, given, names))
                case Slice(_, start, end):
                    yield self._sliced(base, start, end, given, names)
                case _:
                    assert_never(node)

    def _sliced(
        self, base: Result, start: Expression | None, end: Expression | None, given: Result, names: Variables
    ) -> Result:
        bounds = [None if part is None else next(self.values(part, given, names), None) for part in (start, end)]
        if base[1] is None:
            return None, None
        if not isinstance(base[1], (list, str)) or not all(part is None or type(part) is int for part in bounds):
            raise JqError("cannot slice this value")
        self.pay(len(base[1]) // PATHS_PER_STEP)
        return None, base[1][bounds[0] : bounds[1]]

    def _attempted(self, node: Expression, given: Result, names: Variables) -> Iterator[Result]:
        try:
            yield from self.results(node, given, names)
        except JqError:
            return

    def _binary(self, node: Binary, given: Result, names: Variables) -> Iterator[Result]:
        left, right = node.left, node.right
        match node.operator:
            case "|":
                for found in self.results(left, given, names):
                    yield from self.results(right, found, names)
            case ",":
                yield from self.results(left, given, names)
                yield from self.results(right, given, names)
            case "//":
                found_any = [found for found in self._attempted(left, given, names) if _truth(found[1])]
                yield from found_any or self.results(right, given, names)
            case "and" | "or":
                for first in self.values(left, given, names):
                    if _truth(first) is (node.operator == "or"):
                        yield None, node.operator == "or"
                    else:
                        yield from ((None, _truth(second)) for second in self.values(right, given, names))
            case _:
                for second in self.values(right, given, names):
                    for first in self.values(left, given, names):
                        self.weigh(first)
                        self.weigh(second)
                        yield None, _compared(node.operator, first, second)

    def _call(self, node: Call, given: Result, names: Variables) -> Iterator[Result]:
        match node.name, len(node.arguments):
            case "empty", 0:
                return
            case "error", _:
                raise JqError("error called")
            case "recurse", 0:
                yield from self._recurse(given)
            case "select", 1:
                for wanted in self.values(node.arguments[0], given, names):
                    if _truth(wanted):
                        yield given
            case ("first" | "last") as which, 0:
                yield _child(given, 0 if which == "first" else -1)
            case "first", 1:
                yield from list(self.results(node.arguments[0], given, names))[:1]
            case ("map" | "any" | "all") as which, count if count == 1 or which != "map":
                yield None, self._over_items(node, given, names)
            case name, count if (name, count) in _FUNCTIONS:
                arguments = [next(self.values(argument, given, names), None) for argument in node.arguments]
                self._pay_for(name, given[1], arguments)
                yield None, _FUNCTIONS[name, count](given[1], *arguments)
            case name, count:
                raise JqError(f"function not defined: {name}/{count}")

    def _pay_for(self, name: str, value: Any, arguments: list[Any]) -> None:
        if name in _UNSEEN:
            return
        parts = self.weigh(value)
        for argument in arguments:
            more = self.weigh(argument)
            if name == "contains" and isinstance(value, list | dict):
                self.pay(parts * more // PATHS_PER_STEP)
            elif name == "test" and isinstance(value, str):
                charge_search(value[:MAX_TEXT], argument, self._meter)

    def _over_items(self, node: Call, given: Result, names: Variables) -> Any:
        inner = node.arguments[0] if node.arguments else Identity()
        found = [value for child in self._children(given) for value in self.values(inner, child, names)]
        if node.name == "map":
            return found
        return any(map(_truth, found)) if node.name == "any" else all(map(_truth, found))


def _children(given: Result) -> Iterator[Result]:
    path, value = given
    if isinstance(value, dict):
        pairs: Iterator[tuple[str | int, Any]] = iter(sorted(value.items()))
    elif isinstance(value, list):
        pairs = iter(enumerate(value))
    else:
        raise JqError(f"cannot iterate over: {_type(value)}")
    for key, item in pairs:
        yield (None if path is None else (*path, key)), item


def _child(given: Result, key: Any) -> Result:
    path, value = given
    there = None if path is None else (*path, key)
    if value is None and isinstance(key, (str, int)):
        return there, None
    if isinstance(value, dict) and isinstance(key, str):
        return there, value.get(key)
    if isinstance(value, list) and type(key) is int:
        return there, value[key] if -len(value) <= key < len(value) else None
    raise JqError(f"expected an object or list for this key but got: {_type(value)}")


def _compared(operator: str, first: Any, second: Any) -> bool:
    if operator in ("==", "!="):
        return same_json(first, second) is (operator == "==")
    low, high = _rank(first), _rank(second)
    return {"<": low < high, "<=": low <= high, ">": low > high, ">=": low >= high}[operator]


def _rank(value: Any) -> tuple[int, Any]:
    """jq's order of types; values are ordered for numbers and texts only."""
    if isinstance(value, bool) or value is None:
        return (0 if value is None else 1 + int(value)), 0
    if isinstance(value, (int, float)):
        return 3, value
    return (4, value) if isinstance(value, str) else (5, 0)


def _type(value: Any) -> str:
    if value is None or isinstance(value, bool):
        return "null" if value is None else "boolean"
    if isinstance(value, (str, list)):
        return "string" if isinstance(value, str) else "array"
    return "object" if isinstance(value, dict) else "number"


def _texts(*values: Any) -> None:
    if not all(isinstance(value, str) for value in values):
        raise JqError("this function needs strings")


def _starts(value: Any, text: Any) -> bool:
    _texts(value, text)
    return bool(value.startswith(text))


def _ends(value: Any, text: Any) -> bool:
    _texts(value, text)
    return bool(value.endswith(text))


def _test(value: Any, pattern: Any) -> bool:
    _texts(value, pattern)
    try:
        return compile_pattern(pattern).search(value[:MAX_TEXT]) is not None
    except re.error as error:
        raise JqError(f"invalid regular expression: {error}") from error


def _has(value: Any, key: Any) -> bool:
    if isinstance(value, dict) and isinstance(key, str):
        return key in value
    if isinstance(value, list) and type(key) is int:
        return 0 <= key < len(value)
    raise JqError("cannot check for this key")


def _contains(value: Any, part: Any) -> bool:
    if isinstance(value, str) and isinstance(part, str):
        return part in value
    if isinstance(value, dict) and isinstance(part, dict):
        return all(key in value and _contains(value[key], item) for key, item in part.items())
    if isinstance(value, list) and isinstance(part, list):
        return all(any(_contains(item, wanted) for item in value) for wanted in part)
    return same_json(value, part)


def _length(value: Any) -> Any:
    if isinstance(value, (str, list, dict)):
        return len(value)
    if value is None:
        return 0
    if isinstance(value, bool):
        raise JqError("a boolean has no length")
    return abs(value)


def _keys(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return sorted(value)
    if isinstance(value, list):
        return list(range(len(value)))
    raise JqError(f"{_type(value)} has no keys")


def _entries(value: Any) -> list[Obj]:
    if not isinstance(value, dict):
        raise JqError(f"{_type(value)} has no entries")
    return [{"key": key, "value": item} for key, item in sorted(value.items())]


def _lower(value: Any) -> str:
    _texts(value)
    return str(value).lower()


_UNSEEN = frozenset({"not", "type", "length", "has"})
"""Functions that take as long for a large value as for a small one."""
_FUNCTIONS: dict[tuple[str, int], Callable[..., Any]] = {
    ("not", 0): lambda value: not _truth(value),
    ("type", 0): _type,
    ("length", 0): _length,
    ("keys", 0): _keys,
    ("to_entries", 0): _entries,
    ("ascii_downcase", 0): _lower,
    ("startswith", 1): _starts,
    ("endswith", 1): _ends,
    ("contains", 1): _contains,
    ("test", 1): _test,
    ("has", 1): _has,
}
"""Functions of the input and of their arguments, by name and number of arguments."""
