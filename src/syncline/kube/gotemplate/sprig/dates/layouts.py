"""Go's layouts of times (``2006-01-02T15:04:05Z07:00``): :func:`format_time`, :func:`parse_time`.

Source of the rules: Go's ``time`` package, format.go; errors have its words.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import takewhile
from typing import NamedTuple

from syncline.kube.gotemplate.sprig.dates.times import (
    UTC_ZONE,
    Civil,
    FixedZone,
    Zone,
    civil_of,
    is_leap,
    seconds_of,
)
from syncline.kube.text.durations import quoted

MONTHS = (
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
)
DAYS = ("Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday")
_CHUNK = re.compile(
    r"January|Jan(?![a-z])|Monday|Mon(?![a-z])|MST|002|0[1-6]|15|1|2006|2|__2|_2(?!006)|3|4|5|PM|pm"
    r"|-070000|-07:00:00|-0700|-07:00|-07|Z070000|Z07:00:00|Z0700|Z07:00|Z07|[.,](?:0+|9+)(?![0-9])"
)


def _chunks(layout: str) -> Iterator[tuple[str, str]]:
    """Yield the texts of a layout, each with the element after it, empty at the end."""
    end = 0
    for found in _CHUNK.finditer(layout):
        yield layout[end : found.start()], found[0]
        end = found.end()
    yield layout[end:], ""


def _padded(number: int, width: int) -> str:
    return ("-" if number < 0 else "") + str(abs(number)).rjust(width, "0")


_FORMATS: Mapping[str, Callable[[Civil], str]] = {
    "2006": lambda at: _padded(at.year, 4),
    "06": lambda at: _padded(abs(at.year) % 100, 2),
    "Jan": lambda at: MONTHS[at.month - 1][:3],
    "January": lambda at: MONTHS[at.month - 1],
    "1": lambda at: str(at.month),
    "01": lambda at: f"{at.month:02}",
    "Mon": lambda at: DAYS[at.weekday][:3],
    "Monday": lambda at: DAYS[at.weekday],
    "2": lambda at: str(at.day),
    "_2": lambda at: f"{at.day:2}",
    "02": lambda at: f"{at.day:02}",
    "__2": lambda at: f"{at.yearday:3}",
    "002": lambda at: f"{at.yearday:03}",
    "15": lambda at: f"{at.hour:02}",
    "3": lambda at: str(at.hour % 12 or 12),
    "03": lambda at: f"{at.hour % 12 or 12:02}",
    "4": lambda at: str(at.minute),
    "04": lambda at: f"{at.minute:02}",
    "5": lambda at: str(at.second),
    "05": lambda at: f"{at.second:02}",
    "PM": lambda at: "PM" if at.hour >= 12 else "AM",
    "pm": lambda at: "pm" if at.hour >= 12 else "am",
}


def format_time(unix: int, nanosecond: int, zone: Zone, layout: str) -> str:
    offset, abbreviation = zone.at(unix)
    at = civil_of(unix + offset)
    made = []
    for text, chunk in _chunks(layout):
        made.append(text)
        if chunk in _FORMATS:
            made.append(_FORMATS[chunk](at))
        elif chunk == "MST":
            made.append(abbreviation or _offset(offset, "-0700"))
        elif chunk[:1] in ("-", "Z"):
            made.append("Z" if chunk[0] == "Z" and not offset else _offset(offset, chunk))
        elif chunk:
            made.append(_fraction(nanosecond, chunk))
    return "".join(made)


def _offset(offset: int, chunk: str) -> str:
    """Return an offset with the parts and colons that an element such as ``-07:00`` has."""
    sign, seconds = ("-" if offset < 0 else "+"), abs(offset)
    numbers = iter((seconds // 3600, seconds // 60 % 60, seconds % 60))
    return sign + re.sub(r"\d\d", lambda _: f"{next(numbers):02}", chunk[1:])


def _fraction(nanosecond: int, chunk: str) -> str:
    digits = f"{nanosecond:09}"
    if chunk[1] == "9":
        digits = digits[: len(chunk) - 1].rstrip("0")
        return chunk[0] + digits if digits else ""
    return chunk[0] + digits[: len(chunk) - 1].ljust(len(chunk) - 1, "0")


class ParseError(ValueError):
    """A text that does not fit its layout, in Go's words."""


class Parsed(NamedTuple):
    unix: int
    nanosecond: int
    zone: Zone


class _Bad(Exception):
    """The element does not fit; with a text its value is out of range."""


@dataclass(slots=True)
class _Fields:
    """What was read so far; -1 for a part that is missing."""

    rest: str
    year: int = 0
    month: int = -1
    day: int = -1
    yearday: int = -1
    hour: int = 0
    minute: int = 0
    second: int = 0
    nanosecond: int = 0
    half: str = ""
    utc: bool = False
    offset: int | None = None
    zone_name: str = ""
    upcoming: str = field(default="")
    """The next element of the layout."""

    def take(self, pattern: re.Pattern[str]) -> re.Match[str]:
        found = pattern.match(self.rest)
        if found is None:
            raise _Bad
        self.rest = self.rest[found.end() :]
        return found


_ONE_OR_TWO = re.compile(r"[0-9]{1,2}")
_TWO = re.compile(r"[0-9]{2}")
_SPACED = re.compile(r" ?([0-9]{1,2})")
_THREE = re.compile(r"[0-9]{3}")
_SPACED_THREE = re.compile(r" {0,2}([0-9]{1,3})")
_YEAR = re.compile(r"[0-9][0-9]{3}")


def _number(name: str, pattern: re.Pattern[str], low: int, high: int) -> Callable[[_Fields], None]:
    def read(fields: _Fields) -> None:
        found = fields.take(pattern)
        value = int(found[found.lastindex or 0])
        if not low <= value <= high:
            raise _Bad(f": {name} out of range")
        setattr(fields, name, value)

    return read


def _read_year(fields: _Fields) -> None:
    fields.year = int(fields.take(_YEAR)[0])


def _read_short_year(fields: _Fields) -> None:
    year = int(fields.take(_TWO)[0])
    fields.year = year + (1900 if year >= 69 else 2000)


def _name(names: tuple[str, ...], attribute: str, length: int | None) -> Callable[[_Fields], None]:
    wanted = [name[:length].lower() for name in names]

    def read(fields: _Fields) -> None:
        for number, name in enumerate(wanted, 1):
            if fields.rest[: len(name)].lower() == name:
                fields.rest = fields.rest[len(name) :]
                if attribute:
                    setattr(fields, attribute, number)
                return
        raise _Bad

    return read


_HALF = {"PM": re.compile("[AP]M"), "pm": re.compile("[ap]m")}
_POINT = re.compile(r"[.,]([0-9]+)")


def _read_half(chunk: str) -> Callable[[_Fields], None]:
    def read(fields: _Fields) -> None:
        fields.half = fields.take(_HALF[chunk])[0].lower()

    return read


def _nanoseconds(fields: _Fields, digits: str) -> None:
    fields.nanosecond = int(digits[:9].ljust(9, "0"))


_SIGNED = re.compile(r"[+-]([0-9]+)")


def _read_abbreviation(fields: _Fields) -> None:
    text = fields.rest
    if text.startswith("UTC"):
        fields.utc, fields.rest = True, text[3:]
        return
    length = _abbreviation(text)
    if not length:
        raise _Bad
    fields.zone_name, fields.rest = text[:length], text[length:]


def _abbreviation(text: str) -> int:
    """Return the length of the abbreviation of a zone at the begin of a text, 0 without one."""
    if len(text) < 3:
        return 0
    if text[:4] in ("ChST", "MeST"):
        return 4
    if text[:3] == "GMT":
        return 3 + _signed(text[3:])
    if text[0] in "+-":
        return _signed(text)
    upper = len(text[:6]) - len(text[:6].lstrip("ABCDEFGHIJKLMNOPQRSTUVWXYZ"))
    fits = {3: True, 4: text[3:4] == "T" or text[:4] == "WITA", 5: text[4:5] == "T"}
    return upper if fits.get(upper) else 0


def _signed(text: str) -> int:
    found = _SIGNED.match(text)
    return found.end() if found and len(found[1]) < 19 and int(found[1]) <= 23 else 0


def _read_offset(chunk: str) -> Callable[[_Fields], None]:
    inner = re.sub(r"\d\d", "(..)", chunk[1:])
    pattern = re.compile(f"(.){inner}", re.DOTALL)

    def read(fields: _Fields) -> None:
        if chunk[0] == "Z" and fields.rest.startswith("Z"):
            fields.utc, fields.rest = True, fields.rest[1:]
            return
        sign, *parts = fields.take(pattern).groups()
        digits = list(takewhile(_TWO.fullmatch, parts))
        hours, minutes, seconds = [*map(int, digits), 0, 0, 0][:3]
        for value, most, name in ((hours, 24, "hour"), (minutes, 60, "minute"), (seconds, 60, "second")):
            if value > most:
                raise _Bad(f": time zone offset {name} out of range")
        if sign not in "+-" or len(digits) < len(parts):
            raise _Bad
        fields.offset = (hours * 3600 + minutes * 60 + seconds) * (1 if sign == "+" else -1)

    return read


_READERS: Mapping[str, Callable[[_Fields], None]] = {
    "2006": _read_year,
    "06": _read_short_year,
    "Jan": _name(MONTHS, "month", 3),
    "January": _name(MONTHS, "month", None),
    "1": _number("month", _ONE_OR_TWO, 1, 12),
    "01": _number("month", _TWO, 1, 12),
    "Mon": _name(DAYS, "", 3),
    "Monday": _name(DAYS, "", None),
    "2": _number("day", _ONE_OR_TWO, 0, 99),
    "_2": _number("day", _SPACED, 0, 99),
    "02": _number("day", _TWO, 0, 99),
    "__2": _number("yearday", _SPACED_THREE, 0, 999),
    "002": _number("yearday", _THREE, 0, 999),
    "15": _number("hour", _ONE_OR_TWO, 0, 23),
    "3": _number("hour", _ONE_OR_TWO, 0, 12),
    "03": _number("hour", _TWO, 0, 12),
    "4": _number("minute", _ONE_OR_TWO, 0, 59),
    "04": _number("minute", _TWO, 0, 59),
    "5": _number("second", _ONE_OR_TWO, 0, 59),
    "05": _number("second", _TWO, 0, 59),
    "PM": _read_half("PM"),
    "pm": _read_half("pm"),
    "MST": _read_abbreviation,
    **{
        chunk: _read_offset(chunk)
        for sign in "-Z"
        for chunk in (f"{sign}07", f"{sign}0700", f"{sign}07:00", f"{sign}070000", f"{sign}07:00:00")
    },
}


def _read(fields: _Fields, chunk: str) -> None:
    if chunk[0] in ".,":
        wanted = len(chunk) - 1
        if chunk[1] == "9":
            found = _POINT.match(fields.rest)
            if found:
                _nanoseconds(fields, found[1])
                fields.rest = fields.rest[found.end() :]
            return
        found = re.compile(rf"[.,]([0-9]{{{wanted}}})").match(fields.rest)
        if found is None:
            raise _Bad
        _nanoseconds(fields, found[1])
        fields.rest = fields.rest[found.end() :]
        return
    _READERS[chunk](fields)
    if chunk in ("5", "05") and fields.upcoming[:1] not in (".", ","):
        found = _POINT.match(fields.rest)
        if found:
            _nanoseconds(fields, found[1])
            fields.rest = fields.rest[found.end() :]


def parse_time(layout: str, text: str) -> Parsed:
    """Parse a time; without a zone it is UTC. Raises :class:`ParseError`."""
    fields = _Fields(text)
    chunks = list(_chunks(layout))
    for at, (prefix, chunk) in enumerate(chunks):
        _skip(fields, prefix, layout, text)
        if not chunk:
            if fields.rest:
                raise ParseError(f"parsing time {quoted(text)}: extra text: {quoted(fields.rest)}")
            break
        before = fields.rest
        fields.upcoming = chunks[at + 1][1] if at + 1 < len(chunks) else ""
        try:
            _read(fields, chunk)
        except _Bad as bad:
            if bad.args:
                raise ParseError(f"parsing time {quoted(text)}{bad}") from None
            raise _misfit(layout, text, before, chunk) from None
    return _instant(fields, text)


def _skip(fields: _Fields, prefix: str, layout: str, text: str) -> None:
    """Pass the text between elements; a space in it stands for any number of spaces."""
    while prefix:
        rest = fields.rest
        if prefix[0] == " ":
            if rest and rest[0] != " ":
                raise _misfit(layout, text, rest, prefix_of(layout, prefix))
            prefix, fields.rest = prefix.lstrip(" "), rest.lstrip(" ")
            continue
        if not rest or rest[0] != prefix[0]:
            raise _misfit(layout, text, rest, prefix_of(layout, prefix))
        prefix, fields.rest = prefix[1:], rest[1:]


def prefix_of(layout: str, remaining: str) -> str:
    """Return the whole text between two elements of which ``remaining`` is the end."""
    return next((prefix for prefix, _ in _chunks(layout) if prefix.endswith(remaining)), remaining)


def _misfit(layout: str, text: str, rest: str, element: str) -> ParseError:
    return ParseError(
        f"parsing time {quoted(text)} as {quoted(layout)}: cannot parse {quoted(rest)} as {quoted(element)}"
    )


def _instant(fields: _Fields, text: str) -> Parsed:
    hour = fields.hour
    if fields.half:
        hour = hour % 12 + 12 if fields.half == "pm" and hour <= 12 else 0 if hour == 12 else hour
    month, day = _date(fields, text)
    if day < 1 or day > _days_in(month, fields.year):
        raise ParseError(f"parsing time {quoted(text)}: day out of range")
    unix = seconds_of(fields.year, month, day, hour, fields.minute, fields.second)
    if fields.utc:
        return Parsed(unix, fields.nanosecond, UTC_ZONE)
    if fields.offset is not None:
        zone = (
            UTC_ZONE
            if not fields.offset and fields.zone_name in ("", "UTC")
            else FixedZone(fields.offset, fields.zone_name)
        )
        return Parsed(unix - fields.offset, fields.nanosecond, zone)
    if fields.zone_name:
        offset = 0
        if fields.zone_name.startswith("GMT") and len(fields.zone_name) > 3:
            offset = int(fields.zone_name[3:]) * 3600
        # The time of day is taken as UTC all the same.
        return Parsed(unix, fields.nanosecond, FixedZone(offset, fields.zone_name))
    return Parsed(unix, fields.nanosecond, UTC_ZONE)


def _date(fields: _Fields, text: str) -> tuple[int, int]:
    if fields.yearday < 0:
        return (fields.month if fields.month >= 0 else 1), (fields.day if fields.day >= 0 else 1)
    if not 1 <= fields.yearday <= 365 + is_leap(fields.year):
        raise ParseError(f"parsing time {quoted(text)}: day-of-year out of range")
    at = civil_of(seconds_of(fields.year, 1, fields.yearday))
    if fields.month >= 0 and fields.month != at.month:
        raise ParseError(f"parsing time {quoted(text)}: day-of-year does not match month")
    if fields.day >= 0 and fields.day != at.day:
        raise ParseError(f"parsing time {quoted(text)}: day-of-year does not match day")
    return at.month, at.day


def _days_in(month: int, year: int) -> int:
    return (seconds_of(year, month + 1, 1) - seconds_of(year, month, 1)) // 86_400
