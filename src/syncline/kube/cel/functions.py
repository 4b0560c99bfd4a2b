"""What the standard functions and operators do to values.

Called by ``program`` for each call of an expression. Values come in, a value leaves, or :class:`EvaluationError` in
cel-go's words. Source: the CEL language definition, cel-go ``common/types`` and ``ext`` (strings, sets, optionals).
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from itertools import pairwise
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from syncline.kube.cel.library import FUNCTIONS as KUBERNETES
from syncline.kube.cel.parser import UInt
from syncline.kube.cel.values import (
    CIDR,
    IP,
    MAX_INT,
    MIN_INT,
    Duration,
    EvaluationError,
    MapList,
    Optional,
    SetList,
    Timestamp,
    TypeValue,
    equal,
    no_overload,
    type_name,
)
from syncline.kube.re2 import compile_pattern

__all__ = ["FUNCTIONS"]

Function = Callable[..., Any]
NS = 1_000_000_000
MAX_SECONDS, MIN_SECONDS = 253402300799, -62135596800


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _int(value: int, like: Any = 0) -> int:
    """Overflow is an error, and unsigned stays unsigned."""
    if isinstance(like, UInt):
        if not 0 <= value < 1 << 64:
            raise EvaluationError("unsigned integer overflow")
        return UInt(value)
    if not MIN_INT <= value <= MAX_INT:
        raise EvaluationError("integer overflow")
    return value


# --- operators -----------------------------------------------------------------------------------------------------


def _same(one: Any, other: Any) -> bool:
    return type(one) is type(other) and not isinstance(one, bool)


def _joined(one: list[Any], other: list[Any]) -> list[Any]:
    """Sets grow by what is new; entries of map lists are replaced by those with the same keys."""
    if isinstance(one, SetList):
        return SetList([*one, *(item for item in other if not contained(item, one))])
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
            return _int(int(one) + int(other), one)
        if isinstance(one, float | str | bytes):
            return one + other
        if isinstance(one, Duration):
            return Duration(_int(one.ns + other.ns))
    if isinstance(one, Timestamp) and isinstance(other, Duration):
        return _timestamp(one.ns + other.ns)
    if isinstance(one, Duration) and isinstance(other, Timestamp):
        return _timestamp(one.ns + other.ns)
    raise no_overload()


def subtract(one: Any, other: Any) -> Any:
    if _same(one, other):
        if isinstance(one, int):
            return _int(int(one) - int(other), one)
        if isinstance(one, float):
            return one - other
        if isinstance(one, Duration | Timestamp):
            return Duration(_int(one.ns - other.ns))
    if isinstance(one, Timestamp) and isinstance(other, Duration):
        return _timestamp(one.ns - other.ns)
    raise no_overload()


def multiply(one: Any, other: Any) -> Any:
    if _same(one, other) and isinstance(one, int):
        return _int(int(one) * int(other), one)
    if _same(one, other) and isinstance(one, float):
        return one * other
    raise no_overload()


def divide(one: Any, other: Any) -> Any:
    if _same(one, other) and isinstance(one, int):
        if other == 0:
            raise EvaluationError("division by zero")
        return _int(abs(int(one)) // abs(int(other)) * (1 if (one < 0) == (other < 0) else -1), one)
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
    return _int(
        int(math.fmod(one, other)) if abs(one) < 1 << 52 else int(one) - int(other) * _quotient(one, other), one
    )


def _quotient(one: int, other: int) -> int:
    return abs(one) // abs(other) * (1 if (one < 0) == (other < 0) else -1)


def negate(value: Any) -> Any:
    if isinstance(value, float):
        return -value
    if isinstance(value, int) and not isinstance(value, bool | UInt):
        return _int(-value)
    raise no_overload()


def _compare(test: Callable[[Any, Any], bool]) -> Function:
    def work(one: Any, other: Any) -> bool:
        if (_is_number(one) and _is_number(other)) or (
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
    return value if isinstance(value, str) else to_string(value) if _is_number(value) else str(value)


# --- conversions ---------------------------------------------------------------------------------------------------


def _unconvertible(kind: str) -> EvaluationError:
    return EvaluationError(f"type conversion error from 'string' to '{kind}'")


def to_int(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int | float | str | Timestamp | Duration):
        raise no_overload()
    if isinstance(value, Timestamp):
        return value.ns // NS
    if isinstance(value, Duration):
        return value.ns
    if isinstance(value, str):
        if not re.fullmatch(r"[+-]?\d+", value, re.ASCII) or not MIN_INT <= int(value) <= MAX_INT:
            raise _unconvertible("int")
        return int(value)
    if isinstance(value, float) and not (math.isfinite(value) and -(2**63) < value < 2**63):
        raise EvaluationError("integer overflow")
    return _int(int(value))


def to_uint(value: Any) -> UInt:
    if isinstance(value, str):
        if not re.fullmatch(r"\d+", value, re.ASCII) or int(value) >= 1 << 64:
            raise _unconvertible("uint")
        return UInt(int(value))
    if not _is_number(value):
        raise no_overload()
    if not 0 <= value < 1 << 64:
        raise EvaluationError("unsigned integer overflow")
    return UInt(int(value))


def to_double(value: Any) -> float:
    if isinstance(value, str):
        try:
            return float(value)
        except ValueError:
            raise _unconvertible("double") from None
    if not _is_number(value):
        raise no_overload()
    return float(value)


def to_bool(value: Any) -> bool:
    if isinstance(value, bool):
        return value
    if isinstance(value, str):
        if value in ("1", "t", "T", "TRUE", "true", "True"):
            return True
        if value in ("0", "f", "F", "FALSE", "false", "False"):
            return False
        raise _unconvertible("bool")
    raise no_overload()


def to_string(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(int(value))
    if isinstance(value, float):
        return _go_float(value)
    if isinstance(value, bytes):
        try:
            return value.decode()
        except UnicodeDecodeError:
            raise EvaluationError("invalid UTF-8 in bytes, cannot convert to string") from None
    if isinstance(value, Timestamp):
        return _time_text(value)
    if isinstance(value, Duration):
        whole, rest = divmod(abs(value.ns), NS)
        fraction = f".{rest:09d}".rstrip("0") if rest else ""
        return f"{'-' if value.ns < 0 else ''}{whole}{fraction}s"
    if isinstance(value, IP):
        return str(value.address)
    if isinstance(value, CIDR):
        return str(value.interface)
    raise no_overload()


def _go_float(value: float) -> str:
    """``strconv.FormatFloat(f, 'g', -1, 64)``."""
    if math.isnan(value) or math.isinf(value):
        return "NaN" if math.isnan(value) else "+Inf" if value > 0 else "-Inf"
    if value == 0:
        return "-0" if math.copysign(1, value) < 0 else "0"
    digits, _, power = f"{value:.17e}".partition("e")
    for precision in range(17):
        text = f"{value:.{precision}e}"
        if float(text) == value:
            digits, _, power = text.partition("e")
            break
    exponent = int(power)
    if exponent < -4 or exponent >= 21:
        return f"{digits}e{'+' if exponent >= 0 else '-'}{abs(exponent):02d}"
    return format(value, f".{max(0, len(digits.replace('.', '').replace('-', '')) - 1 - exponent)}f")


def _time_text(value: Timestamp) -> str:
    seconds, ns = divmod(value.ns, NS)
    moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=seconds)
    fraction = f".{ns:09d}".rstrip("0") if ns else ""
    return moment.strftime("%Y-%m-%dT%H:%M:%S").zfill(19) + fraction + "Z"


def _timestamp(ns: int) -> Timestamp:
    if not MIN_SECONDS <= ns // NS <= MAX_SECONDS:
        raise EvaluationError("timestamp overflow")
    return Timestamp(ns)


_TIME = re.compile(r"(\d{4})-(\d\d)-(\d\d)T(\d\d):(\d\d):(\d\d)(\.\d+)?(Z|[+-]\d\d:\d\d)", re.ASCII)
_DURATION_PART = re.compile(r"(\d+(?:\.\d*)?|\.\d+)(ns|us|µs|μs|ms|s|m|h)", re.ASCII)
_UNITS = {"ns": 1, "us": 10**3, "µs": 10**3, "μs": 10**3, "ms": 10**6, "s": NS, "m": 60 * NS, "h": 3600 * NS}


def to_timestamp(value: Any) -> Timestamp:
    if isinstance(value, Timestamp):
        return value
    if isinstance(value, int) and not isinstance(value, bool):
        return _timestamp(int(value) * NS)
    if not isinstance(value, str):
        raise no_overload()
    found = _TIME.fullmatch(value)
    try:
        if found is None:
            raise ValueError
        year, month, day, hour, minute, second = (int(part) for part in found.group(1, 2, 3, 4, 5, 6))
        zone = found.group(8)
        offset = 0 if zone == "Z" else int(zone[0] + "1") * (int(zone[1:3]) * 3600 + int(zone[4:6]) * 60)
        moment = datetime(year, month, day, hour, minute, second, tzinfo=UTC)
        since = moment - datetime(1970, 1, 1, tzinfo=UTC)
        ns = (since.days * 86400 + since.seconds - offset) * NS
        return _timestamp(ns + int((found.group(7) or ".0")[1:10].ljust(9, "0")))
    except ValueError:
        raise _unconvertible("google.protobuf.Timestamp") from None


def to_duration(value: Any) -> Duration:
    if isinstance(value, Duration):
        return value
    if isinstance(value, int) and not isinstance(value, bool):
        return Duration(int(value))
    if not isinstance(value, str):
        raise no_overload()
    body = value.lstrip("+-")
    if len(value) - len(body) <= 1 and (body == "0" or (body and _DURATION_PART.sub("", body) == "")):
        total = sum(round(float(number) * _UNITS[unit]) for number, unit in _DURATION_PART.findall(body))
        return Duration(_int(-total if value.startswith("-") else total))
    raise _unconvertible("google.protobuf.Duration")


def to_bytes(value: Any) -> bytes:
    if isinstance(value, bytes):
        return value
    if isinstance(value, str):
        return value.encode()
    raise no_overload()


# --- times ---------------------------------------------------------------------------------------------------------


def _zone(name: str) -> tzinfo:
    found = re.fullmatch(r"([+-]?)(\d\d):(\d\d)", name)
    if found:
        sign = -1 if found.group(1) == "-" else 1
        return timezone(sign * timedelta(hours=int(found.group(2)), minutes=int(found.group(3))))
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError):
        raise EvaluationError(f"unknown time zone {name}") from None


def _clock(read: Callable[[datetime, int], int], unit_ns: int = 0) -> Function:
    def work(value: Any, zone: str = "") -> int:
        if isinstance(value, Duration) and unit_ns and not zone:
            total = abs(value.ns) // unit_ns * (1 if value.ns >= 0 else -1)
            return total % 1000 if unit_ns == 10**6 else total
        if not isinstance(value, Timestamp):
            raise no_overload()
        seconds, ns = divmod(value.ns, NS)
        moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=seconds)
        return read(moment.astimezone(_zone(zone)) if zone else moment, ns)

    return work


# --- texts and lists -----------------------------------------------------------------------------------------------


def size(value: Any) -> int:
    if isinstance(value, str | bytes | list | dict):
        return len(value)
    raise no_overload()


def _text(work: Function) -> Function:
    """For functions of which the receiver must be a text."""

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


def _replace(value: str, old: str, new: str, limit: int = -1) -> str:
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
    return separator.join(items)


_UPPER = {code: code - 32 for code in range(ord("a"), ord("z") + 1)}
_LOWER = {code: code + 32 for code in range(ord("A"), ord("Z") + 1)}
_CLAUSE = re.compile(r"%(?:\.(\d+))?(.)", re.DOTALL)


def _format(template: str, items: list[Any]) -> str:
    given = iter(items)

    def put(found: re.Match[str]) -> str:
        precision, verb = found.groups()
        if verb == "%":
            return "%"
        value = next(given, _END)
        if value is _END:
            raise EvaluationError("index out of range: " + str(len(items)))
        return _clause(value, verb, int(precision) if precision else 6)

    return _CLAUSE.sub(put, template)


_END: Any = object()


def _clause(value: Any, verb: str, precision: int) -> str:
    if verb == "s":
        return _printed(value)
    if verb == "d" and isinstance(value, int | float) and not isinstance(value, bool):
        return str(int(value)) if isinstance(value, int) else _go_float(value)
    if verb in "fe" and _is_number(value):
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
    """An entry of a printed list or map: texts are quoted, times say what they are."""
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
    """For functions of which the receiver must be a list."""

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
    kept: list[Any] = []
    for item in items:
        if not contained(item, kept):
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
"""Longer lists would cost more than one call may."""


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
    return {**inside, **fresh}


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
    "getFullYear": _clock(lambda moment, ns: moment.year),
    "getMonth": _clock(lambda moment, ns: moment.month - 1),
    "getDayOfYear": _clock(lambda moment, ns: moment.timetuple().tm_yday - 1),
    "getDayOfMonth": _clock(lambda moment, ns: moment.day - 1),
    "getDate": _clock(lambda moment, ns: moment.day),
    "getDayOfWeek": _clock(lambda moment, ns: moment.isoweekday() % 7),
    "getHours": _clock(lambda moment, ns: moment.hour, 3600 * NS),
    "getMinutes": _clock(lambda moment, ns: moment.minute, 60 * NS),
    "getSeconds": _clock(lambda moment, ns: moment.second, NS),
    "getMilliseconds": _clock(lambda moment, ns: ns // 10**6, 10**6),
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
    "sets.contains": lambda one, other: all(contained(item, one) for item in other),
    "sets.equivalent": lambda one, other: (
        all(contained(item, one) for item in other) and all(contained(item, other) for item in one)
    ),
    "sets.intersects": lambda one, other: any(contained(item, one) for item in other),
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
}
FUNCTIONS: dict[str, Function] = {**_STANDARD, **KUBERNETES}
