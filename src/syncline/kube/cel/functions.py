"""Implements the standard functions and operators of expressions.

Called by ``program`` for each call. Errors are :class:`EvaluationError` in cel-go's words. Source: the CEL language
definition, cel-go ``common/types`` and ``ext`` (strings, sets, optionals).
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from itertools import pairwise
from typing import Any

from syncline.kube.cel.authorizing import FUNCTIONS as AUTHORIZING
from syncline.kube.cel.conversions import (
    NS,
    clock_reader,
    fitting,
    is_number,
    timestamp_of,
    to_bool,
    to_bytes,
    to_double,
    to_duration,
    to_int,
    to_string,
    to_timestamp,
    to_uint,
)
from syncline.kube.cel.library import FUNCTIONS as KUBERNETES
from syncline.kube.cel.parser import UInt
from syncline.kube.cel.values import (
    Duration,
    EvaluationError,
    GrowingList,
    GrowingMap,
    Known,
    MapList,
    Optional,
    SetList,
    Timestamp,
    TypeValue,
    equal,
    no_overload,
    type_name,
)
from syncline.kube.text.re2 import compile_pattern

Function = Callable[..., Any]


# --- operators -----------------------------------------------------------------------------------------------------


def _same(one: Any, other: Any) -> bool:
    return type(one) is type(other) and not isinstance(one, bool)


def _joined(one: list[Any], other: list[Any]) -> list[Any]:
    """Concatenate lists: sets gain the new entries; entries of map lists are replaced by those with equal keys."""
    if isinstance(one, GrowingList):
        return one.grown(other)
    if isinstance(one, SetList):
        known = Known(one)
        return SetList([*one, *(item for item in other if not known.has(item))])
    if isinstance(one, MapList):
        fresh = {one.key(item): item for item in other}
        kept = [fresh.pop(one.key(item), item) for item in one]
        return MapList([*kept, *fresh.values()], one.keys)
    return [*one, *other]


def add(one: Any, other: Any) -> Any:
    if isinstance(one, list) and isinstance(other, list):
        return _joined(one, other)
    if _same(one, other):
        if isinstance(one, int):
            return fitting(int(one) + int(other), one)
        if isinstance(one, float | str | bytes):
            return one + other
        if isinstance(one, Duration):
            return Duration(fitting(one.ns + other.ns))
    if isinstance(one, Timestamp) and isinstance(other, Duration):
        return timestamp_of(one.ns + other.ns)
    if isinstance(one, Duration) and isinstance(other, Timestamp):
        return timestamp_of(one.ns + other.ns)
    raise no_overload()


def subtract(one: Any, other: Any) -> Any:
    if _same(one, other):
        if isinstance(one, int):
            return fitting(int(one) - int(other), one)
        if isinstance(one, float):
            return one - other
        if isinstance(one, Duration | Timestamp):
            return Duration(fitting(one.ns - other.ns))
    if isinstance(one, Timestamp) and isinstance(other, Duration):
        return timestamp_of(one.ns - other.ns)
    raise no_overload()


def multiply(one: Any, other: Any) -> Any:
    if _same(one, other) and isinstance(one, int):
        return fitting(int(one) * int(other), one)
    if _same(one, other) and isinstance(one, float):
        return one * other
    raise no_overload()


def divide(one: Any, other: Any) -> Any:
    if _same(one, other) and isinstance(one, int):
        if other == 0:
            raise EvaluationError("division by zero")
        return fitting(abs(int(one)) // abs(int(other)) * (1 if (one < 0) == (other < 0) else -1), one)
    if _same(one, other) and isinstance(one, float):
        if other == 0:
            return math.nan if one == 0 or math.isnan(one) else math.copysign(math.inf, one) * math.copysign(1, other)
        return one / other
    raise no_overload()


def modulo(one: Any, other: Any) -> Any:
    if not (_same(one, other) and isinstance(one, int)):
        raise no_overload()
    if other == 0:
        raise EvaluationError("modulus by zero")
    return fitting(
        int(math.fmod(one, other)) if abs(one) < 1 << 52 else int(one) - int(other) * _quotient(one, other), one
    )


def _quotient(one: int, other: int) -> int:
    return abs(one) // abs(other) * (1 if (one < 0) == (other < 0) else -1)


def negate(value: Any) -> Any:
    if isinstance(value, float):
        return -value
    if isinstance(value, int) and not isinstance(value, bool | UInt):
        return fitting(-value)
    raise no_overload()


def _compare(test: Callable[[Any, Any], bool]) -> Function:
    def work(one: Any, other: Any) -> bool:
        if (is_number(one) and is_number(other)) or (
            type(one) is type(other) and isinstance(one, bool | str | bytes | Timestamp | Duration)
        ):
            return test(one, other)
        raise no_overload()

    return work


def contained(item: Any, inside: Any) -> bool:
    if isinstance(inside, list):
        return any(equal(item, one) for one in inside)
    if isinstance(inside, dict):
        return isinstance(item, str | int | bool) and item in inside
    raise no_overload()


def index(inside: Any, key: Any) -> Any:
    if isinstance(inside, Optional):
        return _optional_index(inside, key)
    if isinstance(inside, list):
        if isinstance(key, float) and key.is_integer():
            key = int(key)
        if not isinstance(key, int) or isinstance(key, bool):
            raise EvaluationError(f"unsupported index type '{type_name(key)}' in list")
        if not 0 <= key < len(inside):
            raise EvaluationError(f"index out of bounds: {key}")
        return inside[key]
    if isinstance(inside, dict):
        if isinstance(key, list | dict) or key not in inside:
            raise EvaluationError(f"no such key: {shown(key)}")
        return inside[key]
    raise no_overload()


def _optional_index(inside: Any, key: Any) -> Optional:
    if isinstance(inside, Optional):
        if not inside.has:
            return inside
        inside = inside.value
    try:
        return Optional(index(inside, key), True)
    except EvaluationError:
        return Optional()


def shown(value: Any) -> str:
    return value if isinstance(value, str) else to_string(value) if is_number(value) else str(value)


# --- texts and lists -----------------------------------------------------------------------------------------------


def size(value: Any) -> int:
    if isinstance(value, str | bytes | list | dict):
        return len(value)
    raise no_overload()


def _text(work: Function) -> Function:
    """Wrap a function whose receiver must be a string."""

    def checked(value: Any, *args: Any) -> Any:
        if not isinstance(value, str) or any(isinstance(arg, bool | float) for arg in args):
            raise no_overload()
        return work(value, *args)

    return checked


def matches(value: Any, pattern: Any) -> bool:
    if not isinstance(value, str) or not isinstance(pattern, str):
        raise no_overload()
    try:
        return compile_pattern(pattern).search(value) is not None
    except re.error as error:
        raise EvaluationError(f"error parsing regexp: {error}") from None


def _char_at(value: str, at: int) -> str:
    if not 0 <= at <= len(value):
        raise EvaluationError(f"index out of range: {at}")
    return value[at : at + 1]


def _index_of(value: Any, wanted: Any, start: int = 0) -> int:
    if isinstance(value, list):
        return next((at for at, item in enumerate(value) if equal(item, wanted)), -1)
    if not isinstance(value, str) or not isinstance(wanted, str):
        raise no_overload()
    if wanted == "":
        return start
    if not 0 <= start < len(value):
        if start == len(value):
            return -1
        raise EvaluationError(f"index out of range: {start}")
    return value.find(wanted, start)


def _last_index_of(value: Any, wanted: Any, start: int | None = None) -> int:
    if isinstance(value, list):
        return next((at for at in reversed(range(len(value))) if equal(value[at], wanted)), -1)
    if not isinstance(value, str) or not isinstance(wanted, str):
        raise no_overload()
    if wanted == "":
        return len(value) if start is None else start
    if start is not None and not 0 <= start < len(value):
        raise EvaluationError(f"index out of range: {start}")
    return value.rfind(wanted) if start is None else value.rfind(wanted, 0, start + len(wanted))


def _substring(value: str, start: int, end: int | None = None) -> str:
    stop = len(value) if end is None else end
    if end is not None and start > stop:
        raise EvaluationError(f"invalid substring range. start: {start}, end: {stop}")
    if not 0 <= start <= len(value):
        raise EvaluationError(f"index out of range: {start}")
    if not 0 <= stop <= len(value):
        raise EvaluationError(f"index out of range: {stop}")
    return value[start:stop]


MAX_TEXT_CHARS = 10_000_000
"""The longest text that a function returns. More would exceed every budget of an evaluation."""


def _bounded(size: int) -> None:
    if size > MAX_TEXT_CHARS:
        raise EvaluationError("operation cancelled: actual cost limit exceeded")


def _replace(value: str, old: str, new: str, limit: int = -1) -> str:
    count = value.count(old) if limit < 0 else min(value.count(old), limit)
    _bounded(len(value) + count * max(len(new) - len(old), 0))
    return value.replace(old, new, limit)


def _split(value: str, separator: str, limit: int = -1) -> list[str]:
    if limit == 0:
        return []
    if separator == "":
        letters = list(value)
        return letters if limit < 0 or len(letters) <= limit else [*letters[: limit - 1], "".join(letters[limit - 1 :])]
    return value.split(separator, limit - 1 if limit > 0 else -1)


def _join(items: Any, separator: str = "") -> str:
    if not isinstance(items, list) or not all(isinstance(item, str) for item in items):
        raise no_overload()
    _bounded(sum(map(len, items)) + len(separator) * len(items))
    return separator.join(items)


_UPPER = {code: code - 32 for code in range(ord("a"), ord("z") + 1)}
_LOWER = {code: code + 32 for code in range(ord("A"), ord("Z") + 1)}
_CLAUSE = re.compile(r"%(?:\.(\d+))?(.)", re.DOTALL)


MAX_PRECISION, MAX_PRECISION_DIGITS = 1_000, 9


def _format(template: str, items: list[Any]) -> str:
    given = iter(items)

    def put(found: re.Match[str]) -> str:
        precision, verb = found.groups()
        if verb == "%":
            return "%"
        value = next(given, _END)
        if value is _END:
            raise EvaluationError("index out of range: " + str(len(items)))
        if precision and (len(precision) > MAX_PRECISION_DIGITS or int(precision) > MAX_PRECISION):
            raise EvaluationError(f"error during formatting: precision {precision[:20]} is too large")
        return _clause(value, verb, int(precision) if precision else 6)

    return _CLAUSE.sub(put, template)


_END: Any = object()


def _clause(value: Any, verb: str, precision: int) -> str:
    if verb == "s":
        return _printed(value)
    if verb == "d" and isinstance(value, int | float) and not isinstance(value, bool):
        return str(int(value)) if isinstance(value, int) else to_string(value)
    if verb in "fe" and is_number(value):
        return f"{float(value):.{precision}{verb}}"
    if verb == "b" and isinstance(value, int):
        return f"{int(value):b}"
    if verb == "o" and isinstance(value, int) and not isinstance(value, bool):
        return f"{int(value):o}"
    if verb in "xX":
        if isinstance(value, str | bytes):
            text = (value.encode() if isinstance(value, str) else value).hex()
        elif isinstance(value, int) and not isinstance(value, bool):
            text = f"{int(value):x}"
        else:
            raise _bad_clause(verb, value)
        return text.upper() if verb == "X" else text
    if verb not in "sdfebo":
        raise EvaluationError(f'could not parse formatting clause: unrecognized formatting clause "{verb}"')
    raise _bad_clause(verb, value)


def _bad_clause(verb: str, value: Any) -> EvaluationError:
    wants = {
        "d": "decimal clause can only be used on integers",
        "x": "only integers, byte buffers, and strings can be formatted as hex",
    }
    why = wants.get(verb.lower(), "this clause can only be used on numbers")
    return EvaluationError(f"error during formatting: {why}, was given {type_name(value)}")


def _inner(value: Any) -> str:
    """Print an entry of a list or map: strings are quoted, times have their type."""
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, Timestamp):
        return f'timestamp("{to_string(value)}")'
    return f'duration("{to_string(value)}")' if isinstance(value, Duration) else _printed(value)


def _printed(value: Any) -> str:
    if isinstance(value, list):
        return "[" + ", ".join(map(_inner, value)) + "]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_inner(key)}: {_inner(value[key])}" for key in sorted(value, key=str)) + "}"
    if value is None:
        return "null"
    if isinstance(value, TypeValue):
        return value.name
    return to_string(value)


def _sorted(items: Any) -> bool:
    if not isinstance(items, list):
        raise no_overload()
    return all(_LESS_EQUAL(one, other) for one, other in pairwise(items))


_LESS_EQUAL = _compare(lambda one, other: one <= other)
_LESS = _compare(lambda one, other: one < other)


def _sum(items: list[Any]) -> Any:
    if not items:
        return 0
    total = items[0]
    for item in items[1:]:
        total = add(total, item)
    return total


def _extreme(smallest: bool) -> Function:
    def work(items: Any) -> Any:
        if not isinstance(items, list):
            raise no_overload()
        if not items:
            raise EvaluationError(f"{'min' if smallest else 'max'} called on empty list")
        best = items[0]
        for item in items[1:]:
            if _LESS(item, best) if smallest else _LESS(best, item):
                best = item
        return best

    return work


def _listed(work: Function) -> Function:
    """Wrap a function whose receiver must be a list."""

    def checked(items: Any, *args: Any) -> Any:
        if not isinstance(items, list):
            raise no_overload()
        return work(items, *args)

    return checked


def _slice(items: list[Any], start: int, end: int) -> list[Any]:
    if start < 0 or end < 0:
        raise EvaluationError(f"cannot slice({start}, {end}), negative indexes not supported")
    if start > end:
        raise EvaluationError(f"cannot slice({start}, {end}), start index must be less than or equal to end index")
    if end > len(items):
        raise EvaluationError(f"cannot slice({start}, {end}), list is length {len(items)}")
    return items[start:end]


def _distinct(items: list[Any]) -> list[Any]:
    """Return the items without later duplicates."""
    kept: list[Any] = []
    known = Known()
    for item in items:
        if not known.has(item):
            known.add(item)
            kept.append(item)
    return kept


def _flatten(items: list[Any], depth: int = 1) -> list[Any]:
    if depth < 0:
        raise EvaluationError("level must be non-negative")
    flat: list[Any] = []
    for item in items:
        flat += _flatten(item, depth - 1) if isinstance(item, list) and depth > 0 else [item]
    return flat


def _range(count: int) -> list[int]:
    if count > MAX_RANGE:
        raise EvaluationError(f"lists.range: {count} is more than {MAX_RANGE}")
    return list(range(count))


MAX_RANGE = 100_000
"""The longest list; a longer one would exceed the cost limit of a call."""


def _sort(items: list[Any], keys: list[Any] | None = None) -> list[Any]:
    by = items if keys is None else keys
    for one, other in pairwise(by):
        _LESS(one, other)
    return [items[at] for at in sorted(range(len(items)), key=lambda at: by[at])]


# --- optionals -----------------------------------------------------------------------------------------------------


def _of_non_zero(value: Any) -> Optional:
    zero = value is None or (isinstance(value, bool | int | float | str | bytes | list | dict) and not value)
    return Optional() if zero or (isinstance(value, Duration) and value.ns == 0) else Optional(value, True)


def _value(optional: Any) -> Any:
    if not isinstance(optional, Optional):
        raise no_overload()
    if not optional.has:
        raise EvaluationError("optional.none() dereference")
    return optional.value


def _map_insert(inside: dict[Any, Any], key: Any, value: Any = _END) -> dict[Any, Any]:
    fresh = key if value is _END else {key: value}
    for name in fresh:
        if name in inside:
            raise EvaluationError(f"insert failed: key '{name}' already exists")
    return inside.grown(fresh) if isinstance(inside, GrowingMap) else {**inside, **fresh}


def _type(value: Any) -> TypeValue:
    return TypeValue(type_name(value))


_STANDARD: dict[str, Function] = {
    "_+_": add,
    "_-_": subtract,
    "_*_": multiply,
    "_/_": divide,
    "_%_": modulo,
    "-_": negate,
    "_==_": equal,
    "_!=_": lambda one, other: not equal(one, other),
    "_<_": _LESS,
    "_<=_": _LESS_EQUAL,
    "_>_": _compare(lambda one, other: one > other),
    "_>=_": _compare(lambda one, other: one >= other),
    "@in": contained,
    "_[_]": index,
    "_[?_]": _optional_index,
    "size": size,
    "contains": _text(lambda value, part: part in value),
    "startsWith": _text(str.startswith),
    "endsWith": _text(str.endswith),
    "matches": matches,
    "int": to_int,
    "uint": to_uint,
    "double": to_double,
    "string": to_string,
    "bytes": to_bytes,
    "bool": to_bool,
    "timestamp": to_timestamp,
    "duration": to_duration,
    "dyn": lambda value: value,
    "type": _type,
    "getFullYear": clock_reader(lambda moment, ns: moment.year),
    "getMonth": clock_reader(lambda moment, ns: moment.month - 1),
    "getDayOfYear": clock_reader(lambda moment, ns: moment.timetuple().tm_yday - 1),
    "getDayOfMonth": clock_reader(lambda moment, ns: moment.day - 1),
    "getDate": clock_reader(lambda moment, ns: moment.day),
    "getDayOfWeek": clock_reader(lambda moment, ns: moment.isoweekday() % 7),
    "getHours": clock_reader(lambda moment, ns: moment.hour, 3600 * NS),
    "getMinutes": clock_reader(lambda moment, ns: moment.minute, 60 * NS),
    "getSeconds": clock_reader(lambda moment, ns: moment.second, NS),
    "getMilliseconds": clock_reader(lambda moment, ns: ns // 10**6, 10**6),
    "charAt": _text(_char_at),
    "indexOf": _index_of,
    "lastIndexOf": _last_index_of,
    "lowerAscii": _text(lambda value: value.translate(_LOWER)),
    "upperAscii": _text(lambda value: value.translate(_UPPER)),
    "replace": _text(_replace),
    "split": _text(_split),
    "substring": _text(_substring),
    "trim": _text(lambda value: value.strip()),
    "join": _join,
    "reverse": _listed(lambda items: items[::-1]),
    "slice": _listed(_slice),
    "distinct": _listed(_distinct),
    "flatten": _listed(_flatten),
    "lists.range": _range,
    "first": _listed(lambda items: Optional(items[0], True) if items else Optional()),
    "last": _listed(lambda items: Optional(items[-1], True) if items else Optional()),
    "sort": _listed(_sort),
    "@sortByAssociatedKeys": _listed(_sort),
    "format": _text(_format),
    "strings.quote": _text(lambda value: json.dumps(value, ensure_ascii=False)),
    "sets.contains": lambda one, other: all(map(Known(one).has, other)),
    "sets.equivalent": lambda one, other: all(map(Known(one).has, other)) and all(map(Known(other).has, one)),
    "sets.intersects": lambda one, other: any(map(Known(one).has, other)),
    "isSorted": _sorted,
    "sum": _sum,
    "min": _extreme(True),
    "max": _extreme(False),
    "optional.of": lambda value: Optional(value, True),
    "optional.ofNonZeroValue": _of_non_zero,
    "optional.none": lambda: Optional(),
    "value": _value,
    "hasValue": lambda optional: optional.has,
    "or": lambda one, other: one if one.has else other,
    "orValue": lambda one, other: one.value if one.has else other,
    "cel.@mapInsert": _map_insert,
    "jsonpatch.escapeKey": _text(lambda value: value.replace("~", "~0").replace("/", "~1")),
}
FUNCTIONS: dict[str, Function] = {**_STANDARD, **KUBERNETES, **AUTHORIZING}
