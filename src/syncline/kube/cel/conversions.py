"""Type conversions of values, and functions on times and durations.

Used through ``functions``. Errors are :class:`EvaluationError` in cel-go's words.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from syncline.kube.cel.parser import UInt
from syncline.kube.cel.values import (
    CIDR,
    IP,
    MAX_INT,
    MIN_INT,
    Duration,
    EvaluationError,
    Timestamp,
    no_overload,
)

Function = Callable[..., Any]
NS = 1_000_000_000
MAX_SECONDS, MIN_SECONDS = 253402300799, -62135596800


def is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def fitting(value: int, like: Any = 0) -> int:
    """Return ``value`` with the integer type of ``like``; overflow is an error."""
    if isinstance(like, UInt):
        if not 0 <= value < 1 << 64:
            raise EvaluationError("unsigned integer overflow")
        return UInt(value)
    if not MIN_INT <= value <= MAX_INT:
        raise EvaluationError("integer overflow")
    return value


# --- conversions ---------------------------------------------------------------------------------------------------


def _unconvertible(kind: str) -> EvaluationError:
    return EvaluationError(f"type conversion error from 'string' to '{kind}'")


MAX_DIGITS = 20
"""The digits of the largest integer."""


def _digits(text: str) -> int | None:
    """Parse digits; None if they are too many for any integer: parsing takes quadratic time."""
    sign = -1 if text[0] == "-" else 1
    digits = text.lstrip("+-").lstrip("0") or "0"
    return sign * int(digits) if len(digits) <= MAX_DIGITS else None


def to_int(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int | float | str | Timestamp | Duration):
        raise no_overload()
    if isinstance(value, Timestamp):
        return value.ns // NS
    if isinstance(value, Duration):
        return value.ns
    if isinstance(value, str):
        number = _digits(value) if re.fullmatch(r"[+-]?\d+", value, re.ASCII) else None
        if number is None or not MIN_INT <= number <= MAX_INT:
            raise _unconvertible("int")
        return number
    if isinstance(value, float) and not (math.isfinite(value) and -(2**63) < value < 2**63):
        raise EvaluationError("integer overflow")
    return fitting(int(value))


def to_uint(value: Any) -> UInt:
    if isinstance(value, str):
        number = _digits(value) if re.fullmatch(r"\d+", value, re.ASCII) else None
        if number is None or number >= 1 << 64:
            raise _unconvertible("uint")
        return UInt(number)
    if not is_number(value):
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
    if not is_number(value):
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


def timestamp_of(ns: int) -> Timestamp:
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
        return timestamp_of(int(value) * NS)
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
        return timestamp_of(ns + int((found.group(7) or ".0")[1:10].ljust(9, "0")))
    except ValueError:
        raise _unconvertible("google.protobuf.Timestamp") from None


MAX_DURATION = 200
"""The longest duration text."""


def to_duration(value: Any) -> Duration:
    if isinstance(value, Duration):
        return value
    if isinstance(value, int) and not isinstance(value, bool):
        return Duration(int(value))
    if not isinstance(value, str):
        raise no_overload()
    if len(value) > MAX_DURATION:
        raise _unconvertible("google.protobuf.Duration")
    body = value.lstrip("+-")
    if len(value) - len(body) <= 1 and (body == "0" or (body and _DURATION_PART.sub("", body) == "")):
        parts = [float(number) * _UNITS[unit] for number, unit in _DURATION_PART.findall(body)]
        if sum(parts) > MAX_INT:
            raise EvaluationError("integer overflow")
        total = sum(map(round, parts))
        return Duration(fitting(-total if value.startswith("-") else total))
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
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise EvaluationError(f"unknown time zone {name}") from None


def clock_reader(read: Callable[[datetime, int], int], unit_ns: int = 0) -> Function:
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
