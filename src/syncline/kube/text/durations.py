"""Durations in Go's format, such as ``1m30s``, ``2h0m0s``, ``500ms``: :func:`parse_duration`, :func:`format_duration`.

Used to read a ``metav1.Duration`` or a setting in that form. Whole nanoseconds inside, so that parsing and printing
lose nothing. Source of the rules: Go's ``time.ParseDuration`` and ``Duration.String``.
"""

from __future__ import annotations

import re
from datetime import timedelta

_SECOND = 1_000_000_000
_UNITS = {
    "ns": 1,
    "us": 1_000,
    "µs": 1_000,
    "μs": 1_000,
    "ms": 1_000_000,
    "s": _SECOND,
    "m": 60 * _SECOND,
    "h": 3600 * _SECOND,
}
_MAX = 2**63 - 1
_PIECE = re.compile(r"([0-9]*)(\.[0-9]*)?([^0-9.]*)")


class DurationError(ValueError):
    """An invalid duration; the message is Go's own."""


def parse_duration(text: str) -> timedelta:
    """Parse a Go duration, to the microsecond. Raises :class:`DurationError`."""
    return timedelta(microseconds=parse_nanoseconds(text) / 1000)


MAX_CHARS = 1_000
"""The longest duration text."""


def parse_nanoseconds(text: str) -> int:
    """Parse a Go duration into whole nanoseconds. Raises :class:`DurationError`."""
    if len(text) > MAX_CHARS:
        raise DurationError(f'time: invalid duration "{text[:20]}…" of {len(text)} characters')
    rest = text[1:] if text[:1] in ("+", "-") else text
    if rest == "0":
        return 0
    if not rest:
        raise DurationError(f"time: invalid duration {quoted(text)}")
    total = 0
    while rest:
        match = _PIECE.match(rest)
        assert match is not None  # every part of the pattern may be empty
        total += _piece(text, match.group(1), match.group(2) or "", match.group(3))
        rest = rest[match.end() :]
    if total > _MAX:
        raise DurationError(f"time: invalid duration {quoted(text)}")
    return -total if text[0] == "-" else total


def _piece(text: str, whole: str, fraction: str, unit: str) -> int:
    if not whole and len(fraction) < 2:
        raise DurationError(f"time: invalid duration {quoted(text)}")
    if not unit:
        raise DurationError(f"time: missing unit in duration {quoted(text)}")
    if unit not in _UNITS:
        raise DurationError(f"time: unknown unit {quoted(unit)} in duration {quoted(text)}")
    digits = fraction[1:19]
    return int(whole or "0") * _UNITS[unit] + int(digits or "0") * _UNITS[unit] // int("1" + "0" * len(digits))


def quoted(text: str) -> str:
    """Quote as Go's ``time`` does in errors: bytes beyond ASCII and control characters as ``\\x``."""
    made = []
    for byte in text.encode("utf-8", "surrogateescape"):
        if byte >= 0x80 or byte < 0x20:
            made.append(f"\\x{byte:02x}")
        else:
            made.append(f"\\{chr(byte)}" if byte in b'"\\' else chr(byte))
    return f'"{"".join(made)}"'


def format_duration(duration: timedelta) -> str:
    """Format as Go does: ``1m30s``, ``0s``, ``1.5s``, ``2h0m0s``."""
    return duration_text((duration // timedelta(microseconds=1)) * 1000)


def format_seconds(seconds: int) -> str:
    """Format whole seconds as Go does: 90 is ``1m30s``."""
    return duration_text(seconds * _SECOND)


def duration_text(nanoseconds: int) -> str:
    """Format whole nanoseconds as ``Duration.String`` does."""
    if nanoseconds == 0:
        return "0s"
    sign, rest = ("-", -nanoseconds) if nanoseconds < 0 else ("", nanoseconds)
    if rest < _SECOND:
        return sign + _below_a_second(rest)
    minutes, nanos = divmod(rest, 60 * _SECOND)
    text = _decimal(nanos, _SECOND) + "s"
    if minutes:
        hours, minutes = divmod(minutes, 60)
        text = f"{hours}h{minutes}m{text}" if hours else f"{minutes}m{text}"
    return sign + text


def _below_a_second(nanos: int) -> str:
    unit = "ns" if nanos < 1_000 else "µs" if nanos < 1_000_000 else "ms"
    return _decimal(nanos, _UNITS[unit]) + unit


def _decimal(number: int, scale: int) -> str:
    whole, rest = divmod(number, scale)
    if not rest:
        return str(whole)
    return f"{whole}." + str(rest).rjust(len(str(scale)) - 1, "0").rstrip("0")
