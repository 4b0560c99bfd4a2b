"""sprig's functions of lists. What is no list is an error; lists are copied, never changed. Source: sprig's list.go."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping
from typing import Any

from syncline.kube.gotemplate.functions import Function, FunctionError, Kind, check_items
from syncline.kube.gotemplate.sprig.casting import to_int64
from syncline.kube.gotemplate.sprig.reflection import (
    Walk,
    elements,
    frozen,
    is_empty,
    joined,
    strings_of,
    strval,
)
from syncline.kube.gotemplate.values import Lists, NilList, Strings, encode, go_kind

ANY, STRING, LIST = Kind.ANY, Kind.STRING, Kind.LIST


def _list(*values: Any) -> list[Any]:
    return list(values)


def _append(values: Any, value: Any) -> list[Any]:
    items = elements(values, "Cannot push on type")
    check_items(len(items) + 1)
    return [*items, value]


def _prepend(values: Any, value: Any) -> list[Any]:
    items = elements(values, "Cannot prepend on type")
    check_items(len(items) + 1)
    return [value, *items]


def _first(values: Any) -> Any:
    items = elements(values, "Cannot find first on type")
    return items[0] if items else None


def _last(values: Any) -> Any:
    items = elements(values, "Cannot find last on type")
    return items[-1] if items else None


def _rest(values: Any) -> list[Any]:
    items = elements(values, "Cannot find rest on type")
    return items[1:] if items else NilList()


def _initial(values: Any) -> list[Any]:
    items = elements(values, "Cannot find initial on type")
    return items[:-1] if items else NilList()


def _reverse(values: Any) -> list[Any]:
    return elements(values, "Cannot find reverse on type")[::-1]


def _compact(values: Any) -> list[Any]:
    return [one for one in elements(values, "Cannot compact on type") if not is_empty(one)]


def _uniq(values: Any) -> list[Any]:
    walk = Walk()
    kept: dict[Hashable, Any] = {}
    for one in elements(values, "Cannot find uniq on type"):
        kept.setdefault(frozen(one, walk), one)
    return list(kept.values())


def _without(values: Any, *omitted: Any) -> list[Any]:
    items, walk = elements(values, "Cannot find without on type"), Walk()
    keys = {frozen(one, walk) for one in omitted}
    return [one for one in items if frozen(one, walk) not in keys]


def _has(needle: Any, haystack: Any) -> bool:
    if haystack is None:
        return False
    items, walk = elements(haystack, "Cannot find has on type"), Walk()
    key = frozen(needle, walk)
    return any(frozen(one, walk) == key for one in items)


def _slice(values: Any, *indices: Any) -> Any:
    items = elements(values, "list should be type of slice or array but")
    if not items:
        return None
    start = to_int64(indices[0]) if indices else 0
    end = to_int64(indices[1]) if len(indices) > 1 else len(items)
    if not 0 <= start <= end <= len(items):
        raise FunctionError("reflect.Value.Slice: slice index out of bounds")
    return type(values)(values[start:end])


def _concat(*lists: Any) -> list[Any]:
    result: list[Any] = []
    for one in lists:
        kind = go_kind(one)
        if one is not None and kind != "slice":
            raise FunctionError(f"Cannot concat type {kind} as list")
        result += elements(one, "")
        check_items(len(result))
    return result or NilList()


def _chunk(size: int, values: Any) -> Lists:
    """Split into lists of ``size``; a size of 0 or less fails as Go's arithmetic does."""
    items = elements(values, "Cannot chunk type")
    count = _chunks(len(items), size)
    if not 0 <= count < 1 << 58:
        raise FunctionError("runtime error: makeslice: len out of range")
    check_items(count)
    if size < 0 and count:
        last = len(items) % -size
        if not last:
            raise FunctionError("runtime error: makeslice: len out of range")
        return Lists([items[:last]])
    if size < 0:
        return Lists()
    return Lists(items[at : at + size] for at in range(0, len(items), size))


def _chunks(length: int, size: int) -> int:
    if size == 0:
        return -1
    return math.floor((length - 1) / size) + 1


def _sort_alpha(values: Any) -> Strings:
    if go_kind(values) == "slice":
        return Strings(sorted(strings_of(values), key=encode))
    return Strings([strval(values)])


def _join(separator: str, values: Any) -> str:
    return joined(separator, strings_of(values))


def _twice(
    name: str, call: Callable[..., Any], *params: Kind, variadic: bool = False, result: Kind = LIST
) -> dict[str, Function]:
    """Return a function under its name and with ``must``: the one panics where the other returns the error."""
    function = Function(call, params, variadic, result)
    return {name: function, f"must{name[0].upper()}{name[1:]}": function}


LISTS: Mapping[str, Function] = {
    "list": Function(_list, (ANY,), variadic=True, result=LIST),
    "tuple": Function(_list, (ANY,), variadic=True, result=LIST),
    **_twice("append", _append, ANY, ANY),
    **_twice("push", _append, ANY, ANY),
    **_twice("prepend", _prepend, ANY, ANY),
    **_twice("first", _first, ANY, result=ANY),
    **_twice("last", _last, ANY, result=ANY),
    **_twice("rest", _rest, ANY),
    **_twice("initial", _initial, ANY),
    **_twice("reverse", _reverse, ANY),
    **_twice("compact", _compact, ANY),
    **_twice("uniq", _uniq, ANY),
    **_twice("without", _without, ANY, ANY, variadic=True),
    **_twice("has", _has, ANY, ANY, result=Kind.BOOL),
    **_twice("slice", _slice, ANY, ANY, variadic=True, result=ANY),
    **_twice("chunk", _chunk, Kind.INT, ANY),
    "concat": Function(_concat, (ANY,), variadic=True),
    "sortAlpha": Function(_sort_alpha, (ANY,), result=Kind.STRINGS),
    "join": Function(_join, (STRING, ANY), result=STRING),
}
