"""The functions that every template has: those of text/template itself. Values are :data:`INVALID` or not nil."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, Final
from urllib.parse import quote_plus

from syncline.kube.gotemplate.fmt import sprint, sprintf, sprintln
from syncline.kube.gotemplate.functions import Function, FunctionError, Kind, check_text
from syncline.kube.gotemplate.values import INVALID, Opaque, StringMap, Uint8, decode, encode, go_type, is_nil

_NO_TYPE: Final = "reflect: call of reflect.Value.Type on zero Value"
_BASIC: Final[Mapping[str, str]] = {
    "string": "string",
    "bool": "bool",
    "int": "int",
    "int64": "int",
    "int32": "int",
    "uint8": "uint",
    "uint32": "uint",
    "uint64": "uint",
    "float64": "float",
}


def _valid(value: Any) -> Any:
    return INVALID if value is None else value


def _pointed(value: Any) -> str:
    """The type of a value, or of what it points to."""
    return go_type(value).removeprefix("*")


def _length(value: Any) -> int:
    if value is None:
        raise FunctionError("len of nil pointer")
    if value is INVALID:
        raise FunctionError(_NO_TYPE)
    if isinstance(value, str):
        return len(value) if value.isascii() else len(encode(value))
    if isinstance(value, list | dict):
        return len(value)
    raise FunctionError(f"len of type {_pointed(value)}")


def _position(index: Any, size: int) -> int:
    """An index of a slice or string, as a number from 0 to ``size``."""
    if index is INVALID:
        raise FunctionError("cannot index slice/array with nil")
    if not isinstance(index, int) or isinstance(index, bool):
        raise FunctionError(f"cannot index slice/array with type {go_type(index)}")
    if not 0 <= index <= size:
        raise FunctionError(f"index out of range: {int(index)}")
    return int(index)


def _index(item: Any, *indexes: Any) -> Any:
    item = _valid(item)
    if item is INVALID:
        raise FunctionError("index of untyped nil")
    for one in indexes:
        index = _valid(one)
        if item is None:
            raise FunctionError("index of nil pointer")
        if isinstance(item, str):
            data = encode(item)
            at = _position(index, len(data))
            if at == len(data):
                raise FunctionError("reflect: string index out of range")
            item = Uint8(data[at])
        elif isinstance(item, list):
            at = _position(index, len(item))
            if at == len(item):
                raise FunctionError("reflect: slice index out of range")
            item = item[at]
        elif isinstance(item, dict):
            if index is INVALID:
                raise FunctionError("value is nil; should be of type string")
            if not isinstance(index, str):
                raise FunctionError(f"value has type {go_type(index)}; should be string")
            item = item.get(index, "" if isinstance(item, StringMap) else None)
        else:
            raise FunctionError(f"can't index item of type {_pointed(item)}")
    return item


def _slice(item: Any, *indexes: Any) -> Any:
    item = _valid(item)
    if item is INVALID:
        raise FunctionError("slice of untyped nil")
    if len(indexes) > 3:
        raise FunctionError(f"too many slice indexes: {len(indexes)}")
    if isinstance(item, str) and len(indexes) == 3:
        raise FunctionError("cannot 3-index slice a string")
    if not isinstance(item, str | list):
        raise FunctionError(f"can't slice item of type {_pointed(item)}")
    sequence: Any = encode(item) if isinstance(item, str) else item
    bounds = [0, len(sequence)]
    for at, index in enumerate(indexes):
        bounds[at : at + 1] = [_position(_valid(index), len(sequence))]
    for first, second in pairwise(bounds):
        if first > second:
            raise FunctionError(f"invalid slice index: {first} > {second}")
    part = sequence[bounds[0] : bounds[1]]
    return decode(part) if isinstance(item, str) else type(item)(part)


def _call(name: str | None, function: Any, *_: Any) -> Any:
    function = _valid(function)
    if function is INVALID:
        raise FunctionError("call of nil")
    if name is None:
        name = function if isinstance(function, str) else f"<{go_type(function)} Value>"
    raise FunctionError(f"non-function {name} of type {go_type(function)}")


# Comparison.


def _basic(value: Any) -> str:
    return "" if value is INVALID else _BASIC.get(getattr(value, "kind", "") or go_type(value), "")


def _same(first: Any, other: Any) -> bool:
    """Whether two values of no basic kind are equal, at least one of them nil."""
    kinds = [getattr(value, "kind", "slice" if isinstance(value, list) else "map") for value in (first, other)]
    if INVALID not in (first, other) and kinds[0] != kinds[1]:
        shown = sprintf("%s: %v, %s: %v", first, _Type(go_type(first)), _Type(go_type(other)), other)
        raise FunctionError(f"non-comparable types {shown}")
    if is_nil(first) or is_nil(other):
        return is_nil(first) is is_nil(other)
    if isinstance(other, list | dict):
        raise FunctionError("non-comparable type " + sprintf("%s: %v", other, _Type(go_type(other))))
    return bool(first == other)


class _Type(Opaque):
    """The name of a type, as a value to print."""

    __slots__ = ("_name",)

    def __init__(self, name: str) -> None:
        self._name = name

    def text(self) -> str:
        return self._name


def _equal(first: Any, *others: Any) -> bool:
    first = _valid(first)
    if not others:
        raise FunctionError("missing argument for comparison")
    kind = _basic(first)
    for one in others:
        other = _valid(one)
        found = _basic(other)
        if kind != found and {kind, found} != {"int", "uint"}:
            if first is not INVALID and other is not INVALID:
                raise FunctionError(f"incompatible types for comparison: {go_type(first)} and {go_type(other)}")
        elif first == other if kind else _same(first, other):
            return True
    return False


def _less(first: Any, other: Any) -> bool:
    first, other = _valid(first), _valid(other)
    kind, found = _basic(first), _basic(other)
    if not kind or not found:
        raise FunctionError("invalid type for comparison")
    if kind != found and {kind, found} != {"int", "uint"}:
        raise FunctionError(f"incompatible types for comparison: {go_type(first)} and {go_type(other)}")
    if kind == "bool":
        raise FunctionError("invalid type for comparison")
    if kind == "string" and not (first.isascii() and other.isascii()):
        return encode(first) < encode(other)
    return bool(first < other)


def _less_or_equal(first: Any, other: Any) -> bool:
    return _less(first, other) or _equal(first, other)


# Escaping.

_HTML: Final = str.maketrans({"\0": "\ufffd", '"': "&#34;", "'": "&#39;", "&": "&amp;", "<": "&lt;", ">": "&gt;"})
_SCRIPT: Final[Mapping[str, str]] = {
    "\\": "\\\\",
    "'": "\\'",
    '"': '\\"',
    "<": "\\u003C",
    ">": "\\u003E",
    "&": "\\u0026",
    "=": "\\u003D",
}
_SCRIPT_SPECIAL: Final = re.compile(r"[\\'\"<>&=\x00-\x1f\x80-\U0010ffff]")


def _text_of(values: Sequence[Any]) -> str:
    return sprint(*("<no value>" if value is None else value for value in values))


def _bounded(text: str) -> str:
    check_text(len(text))
    return text


def _html(*values: Any) -> str:
    return _bounded(_text_of(values).translate(_HTML))


def _script_char(found: re.Match[str]) -> str:
    char = found[0]
    if char in _SCRIPT:
        return _SCRIPT[char]
    if char < " ":
        return f"\\u{ord(char):04X}"
    if 0xD800 <= ord(char) <= 0xDFFF:  # a byte that is no character; Go takes it as U+FFFD and leaves it
        return char
    return char if char.isprintable() else f"\\u{ord(char):04X}"


def _js(*values: Any) -> str:
    return _bounded(_SCRIPT_SPECIAL.sub(_script_char, _text_of(values)))


def _urlquery(*values: Any) -> str:
    return _bounded(quote_plus(encode(_text_of(values)), safe=""))


_ONE: Final = (Kind.VALUE,)
_TWO: Final = (Kind.VALUE, Kind.VALUE)
BUILTINS: Final[Mapping[str, Function]] = {
    # Evaluated by the engine, which stops at the argument that decides.
    "and": Function(_valid, _TWO, variadic=True, result=Kind.VALUE),
    "or": Function(_valid, _TWO, variadic=True, result=Kind.VALUE),
    "call": Function(_call, _TWO, variadic=True, result=Kind.VALUE),
    "not": Function(lambda value: not value, _ONE, result=Kind.BOOL),
    "len": Function(_length, _ONE, result=Kind.INT),
    "index": Function(_index, _TWO, variadic=True, result=Kind.VALUE),
    "slice": Function(_slice, _TWO, variadic=True, result=Kind.VALUE),
    "print": Function(sprint, (Kind.ANY,), variadic=True, result=Kind.STRING),
    "printf": Function(sprintf, (Kind.STRING, Kind.ANY), variadic=True, result=Kind.STRING),
    "println": Function(sprintln, (Kind.ANY,), variadic=True, result=Kind.STRING),
    "html": Function(_html, (Kind.ANY,), variadic=True, result=Kind.STRING),
    "js": Function(_js, (Kind.ANY,), variadic=True, result=Kind.STRING),
    "urlquery": Function(_urlquery, (Kind.ANY,), variadic=True, result=Kind.STRING),
    "eq": Function(_equal, _TWO, variadic=True, result=Kind.BOOL),
    "ne": Function(lambda first, other: not _equal(first, other), _TWO, result=Kind.BOOL),
    "lt": Function(_less, _TWO, result=Kind.BOOL),
    "le": Function(_less_or_equal, _TWO, result=Kind.BOOL),
    "gt": Function(lambda first, other: not _less_or_equal(first, other), _TWO, result=Kind.BOOL),
    "ge": Function(lambda first, other: not _less(first, other), _TWO, result=Kind.BOOL),
}
