"""Looks at values as Go's ``reflect`` does: types and kinds, emptiness, deep equality, text, and walks with a bound.

A template can share one map a thousand times or put it into itself (``set $d "a" $d``), so every walk counts the values
it visits (:class:`Walk`). Source of the rules: sprig's reflect.go and defaults.go.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from typing import Any

from syncline.kube.gotemplate.fmt import sprintf
from syncline.kube.gotemplate.functions import (
    MAX_ITEMS,
    MAX_NESTING,
    Function,
    FunctionError,
    Kind,
    check_text,
    spend,
)
from syncline.kube.gotemplate.values import (
    Bytes,
    NilDict,
    NilList,
    NilStrings,
    Opaque,
    Strings,
    Uint8,
    encode,
    go_kind,
    go_type,
)

NIL_POINTER = "runtime error: invalid memory address or nil pointer dereference"


NIL_TYPES = (NilList, NilDict, NilStrings)


class Walk:
    """Counts the values of one walk and refuses too many, or too many within one another."""

    __slots__ = ("_left",)

    def __init__(self) -> None:
        self._left = MAX_ITEMS

    def enter(self, depth: int, count: int) -> None:
        """Go into a list or map of ``count`` items. Raises :class:`FunctionError`."""
        self._left -= count + 1
        spend(count + 1)
        if self._left < 0:
            raise FunctionError(f"the value has more than {MAX_ITEMS} parts")
        if depth > MAX_NESTING:
            raise FunctionError(f"the value has more than {MAX_NESTING} lists and maps within one another")


def strval(value: Any) -> str:
    """Return the text of any value: a string itself, anything else as ``%v`` prints it."""
    return value if isinstance(value, str) else shown(value)


def shown(value: Any) -> str:
    """Return what ``%v`` prints, and count the steps for it."""
    text = sprintf("%v", value)
    spend(len(text) // 4)
    return text


def strings_of(value: Any) -> Strings:
    """Return the texts of a list without its nils, or of a single value (sprig's ``strslice``)."""
    if value is None:
        return Strings()
    if go_kind(value) == "slice":
        return Strings(strval(one) for one in elements(value, "") if one is not None)
    return Strings([strval(value)])


def elements(value: Any, complaint: str) -> list[Any]:
    """Return the items of a list. Raises :class:`FunctionError`: the complaint and the kind of what is no list."""
    if value is None:
        raise FunctionError(NIL_POINTER)
    kind = go_kind(value)
    if kind != "slice":
        raise FunctionError(f"{complaint} {kind}")
    return [Uint8(one) for one in value] if isinstance(value, Bytes) else value


def is_empty(value: Any) -> bool:
    """Return True for nil, 0, false and what has no length; times and certificates are never empty."""
    return not value if not isinstance(value, Opaque) else False


def frozen(value: Any, walk: Walk, depth: int = 0) -> Hashable:
    """Return a key that two values share if Go's ``reflect.DeepEqual`` holds between them."""
    name = go_type(value)
    if isinstance(value, NIL_TYPES):
        return (name, None)
    if isinstance(value, list):
        walk.enter(depth, len(value))
        return (name, tuple(frozen(one, walk, depth + 1) for one in value))
    if isinstance(value, dict):
        walk.enter(depth, len(value))
        return (name, frozenset((key, frozen(one, walk, depth + 1)) for key, one in value.items()))
    if isinstance(value, float) and value != value:
        return (name, object())
    return (name, value)


def deep_equal(one: Any, other: Any) -> bool:
    if one is other and isinstance(one, list | dict):
        return True
    return frozen(one, Walk()) == frozen(other, Walk())


def go_slice(data: bytes, start: int | None, end: int | None) -> bytes:
    """Return ``data[start:end]`` of a Go string, None for a side that is left out. Raises Go's panic."""
    size = len(data)
    if end is not None and not 0 <= end <= size:
        tail = f" with length {size}" if end >= 0 else ""
        raise FunctionError(f"runtime error: slice bounds out of range [:{end}]{tail}")
    low, high = start or 0, size if end is None else end
    if low < 0:
        raise FunctionError(f"runtime error: slice bounds out of range [{low}:]")
    if low > high:
        raise FunctionError(f"runtime error: slice bounds out of range [{low}:{high}]")
    return data[low:high]


def text_size(parts: Iterable[str]) -> int:
    """Return the bytes of texts."""
    return sum(len(part) if part.isascii() else len(encode(part)) for part in parts)


def joined(separator: str, parts: list[str]) -> str:
    """Join texts, within the bound of a result."""
    check_text(text_size(parts) + len(separator) * len(parts))
    return separator.join(parts)


def _default(default: Any, *given: Any) -> Any:
    return default if not given or is_empty(given[0]) else given[0]


def _coalesce(*values: Any) -> Any:
    return next((value for value in values if not is_empty(value)), None)


def _fail(message: str) -> str:
    raise FunctionError(message)


ANY, STRING = Kind.ANY, Kind.STRING

REFLECTION: Mapping[str, Function] = {
    "typeOf": Function(go_type, (ANY,), result=STRING),
    "typeIs": Function(lambda name, value: name == go_type(value), (STRING, ANY), result=Kind.BOOL),
    "typeIsLike": Function(lambda name, value: go_type(value) in (name, f"*{name}"), (STRING, ANY), result=Kind.BOOL),
    "kindOf": Function(go_kind, (ANY,), result=STRING),
    "kindIs": Function(lambda name, value: name == go_kind(value), (STRING, ANY), result=Kind.BOOL),
    "deepEqual": Function(deep_equal, (ANY, ANY), result=Kind.BOOL),
    "default": Function(_default, (ANY, ANY), variadic=True),
    "empty": Function(is_empty, (ANY,), result=Kind.BOOL),
    "coalesce": Function(_coalesce, (ANY,), variadic=True),
    "all": Function(lambda *values: not any(map(is_empty, values)), (ANY,), variadic=True, result=Kind.BOOL),
    "any": Function(lambda *values: not all(map(is_empty, values)), (ANY,), variadic=True, result=Kind.BOOL),
    "ternary": Function(lambda yes, no, truth: yes if truth else no, (ANY, ANY, Kind.BOOL)),
    "fail": Function(_fail, (STRING,), result=STRING),
    "hello": Function(lambda: "Hello!", result=STRING),
    "toString": Function(strval, (ANY,), result=STRING),
    "toStrings": Function(strings_of, (ANY,), result=Kind.STRINGS),
}
"""Reflection, defaults and flow."""
