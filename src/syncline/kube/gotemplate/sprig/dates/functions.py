"""sprig's functions of dates. Those that need the present moment take it from the caller: :func:`clock_functions`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, ClassVar

from syncline.kube.gotemplate.functions import Function, FunctionError, Kind
from syncline.kube.gotemplate.sprig.casting import Numbered, parse_int, wrapped
from syncline.kube.gotemplate.sprig.dates.layouts import DAYS, MONTHS, ParseError, format_time, parse_time
from syncline.kube.gotemplate.sprig.dates.times import (
    SECOND,
    UTC_ZONE,
    Zone,
    civil_of,
    clamped,
    rounded_to_seconds,
    seconds_of,
    zone_of,
)
from syncline.kube.gotemplate.values import Int32, Int64, Opaque
from syncline.kube.text.durations import DurationError, duration_text, parse_nanoseconds

ANY, STRING, INT, TIME = Kind.ANY, Kind.STRING, Kind.INT, Kind.TIME

RFC3339 = "2006-01-02T15:04:05.999999999Z07:00"
STRING_LAYOUT = "2006-01-02 15:04:05.999999999 -0700 MST"
YEAR_1 = seconds_of(1, 1, 1)


@dataclass(frozen=True, slots=True)
class Duration(Opaque):
    """Go's ``time.Duration``."""

    go_type: ClassVar[str] = "time.Duration"
    kind: ClassVar[str] = "int64"

    nanoseconds: int

    def text(self) -> str:
        return duration_text(self.nanoseconds)

    def json(self) -> str:
        return str(self.nanoseconds)

    def methods(self) -> Mapping[str, Function]:
        whole = self.nanoseconds
        return {
            "String": Function(self.text, result=STRING),
            "Hours": Function(lambda: whole / (3600 * SECOND), result=Kind.FLOAT64),
            "Minutes": Function(lambda: whole / (60 * SECOND), result=Kind.FLOAT64),
            "Seconds": Function(lambda: whole / SECOND, result=Kind.FLOAT64),
            "Milliseconds": Function(lambda: Int64(int(whole / 1_000_000)), result=Kind.INT64),
            "Microseconds": Function(lambda: Int64(int(whole / 1_000)), result=Kind.INT64),
            "Nanoseconds": Function(lambda: Int64(whole), result=Kind.INT64),
        }


@dataclass(frozen=True, slots=True)
class Named(Numbered):
    """A month or a day of the week: a number that prints its name."""

    go_type: ClassVar[str] = "time.Month"
    kind: ClassVar[str] = "int"

    number: int
    name: str

    def __int__(self) -> int:
        return self.number

    def text(self) -> str:
        return self.name

    def json(self) -> str:
        return str(self.number)

    def methods(self) -> Mapping[str, Function]:
        return {"String": Function(self.text, result=STRING)}


@dataclass(frozen=True, slots=True)
class Weekday(Named):
    go_type: ClassVar[str] = "time.Weekday"


@dataclass(frozen=True, slots=True)
class Time(Opaque):
    """Go's ``time.Time``: seconds since 1970 and nanoseconds, shown on the clock of a zone."""

    go_type: ClassVar[str] = "time.Time"
    kind: ClassVar[str] = "struct"

    unix: int
    nanosecond: int = 0
    zone: Zone = UTC_ZONE

    def text(self) -> str:
        return self.format(STRING_LAYOUT)

    def format(self, layout: str) -> str:
        return format_time(self.unix, self.nanosecond, self.zone, layout)

    def json(self) -> str:
        if not 0 <= self.civil().year <= 9999:
            raise FunctionError(
                "json: error calling MarshalJSON for type time.Time: Time.MarshalJSON: year outside of range [0,9999]"
            )
        return f'"{self.format(RFC3339)}"'

    def civil(self) -> Any:
        return civil_of(self.unix + self.zone.at(self.unix)[0])

    def add(self, nanoseconds: int) -> Time:
        seconds, nanosecond = divmod(self.nanosecond + nanoseconds, SECOND)
        return Time(self.unix + seconds, nanosecond, self.zone)

    def since(self, other: Time) -> int:
        """Return the nanoseconds from another time to this one, at most what Go's 64 bits hold."""
        return clamped((self.unix - other.unix) * SECOND + self.nanosecond - other.nanosecond)

    def order(self) -> tuple[int, int]:
        return self.unix, self.nanosecond

    def methods(self) -> Mapping[str, Function]:
        return {**_parts(self), **_steps(self)}


def _parts(time: Time) -> dict[str, Function]:
    at = time.civil()
    numbers = {
        "Year": at.year,
        "Day": at.day,
        "Hour": at.hour,
        "Minute": at.minute,
        "Second": at.second,
        "Nanosecond": time.nanosecond,
        "YearDay": at.yearday,
    }
    whole = time.unix * SECOND + time.nanosecond
    instants = {
        "Unix": time.unix,
        "UnixMilli": whole // 1_000_000,
        "UnixMicro": whole // 1_000,
        "UnixNano": whole,
    }
    return {
        **{name: Function(lambda number=number: number, result=INT) for name, number in numbers.items()},
        **{
            name: Function(lambda number=number: wrapped(number), result=Kind.INT64)
            for name, number in instants.items()
        },
        "Month": Function(lambda: Named(at.month, MONTHS[at.month - 1])),
        "Weekday": Function(lambda: Weekday(at.weekday, DAYS[at.weekday])),
        "IsZero": Function(lambda: time.order() == (YEAR_1, 0), result=Kind.BOOL),
        "String": Function(time.text, result=STRING),
        "Format": Function(time.format, (STRING,), result=STRING),
    }


def _steps(time: Time) -> dict[str, Function]:
    return {
        "Add": Function(lambda duration: time.add(_nanoseconds(duration)), (Kind.DURATION,), result=TIME),
        "Truncate": Function(lambda duration: _truncated(time, _nanoseconds(duration)), (Kind.DURATION,), result=TIME),
        "Round": Function(lambda duration: _to_nearest(time, _nanoseconds(duration)), (Kind.DURATION,), result=TIME),
        "UTC": Function(lambda: Time(time.unix, time.nanosecond), result=TIME),
        "Local": Function(lambda: Time(time.unix, time.nanosecond), result=TIME),
        "AddDate": Function(
            lambda years, months, days: _shifted(time, years, months, days), (INT, INT, INT), result=TIME
        ),
        "Sub": Function(lambda other: Duration(time.since(other)), (TIME,)),
        "Before": Function(lambda other: time.order() < other.order(), (TIME,), result=Kind.BOOL),
        "After": Function(lambda other: time.order() > other.order(), (TIME,), result=Kind.BOOL),
        "Equal": Function(lambda other: time.order() == other.order(), (TIME,), result=Kind.BOOL),
        "Compare": Function(
            lambda other: (time.order() > other.order()) - (time.order() < other.order()), (TIME,), result=INT
        ),
    }


def _nanoseconds(duration: Duration | int) -> int:
    return duration.nanoseconds if isinstance(duration, Duration) else int(duration)


def _beyond(time: Time, step: int) -> int:
    """Return the nanoseconds after the last multiple of ``step`` since the year 1."""
    return ((time.unix - YEAR_1) * SECOND + time.nanosecond) % step if step > 0 else 0


def _truncated(time: Time, step: int) -> Time:
    return time.add(-_beyond(time, step))


def _to_nearest(time: Time, step: int) -> Time:
    """Halves go up."""
    beyond = _beyond(time, step)
    return time.add(-beyond if beyond * 2 < step or not beyond else step - beyond)


MAX_SHIFT = 10_000_000
"""Years, months or days that a date can be moved by."""


def _shifted(time: Time, years: int, months: int, days: int) -> Time:
    if max(abs(years), abs(months), abs(days)) > MAX_SHIFT:
        raise FunctionError(f"AddDate moves a date by at most {MAX_SHIFT} years, months or days")
    at = time.civil()
    local = seconds_of(at.year + years, at.month + months, at.day + days, at.hour, at.minute, at.second)
    offset = time.zone.at(local - time.zone.at(local)[0])[0]
    return Time(local - offset, time.nanosecond, time.zone)


def time_of(moment: datetime) -> Time:
    """Return an aware instant as Go's time in UTC."""
    microseconds = (moment - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)
    return Time(microseconds // 1_000_000, microseconds % 1_000_000 * 1_000)


def _to_date(layout: str, text: str) -> Time:
    """Parse a time; what cannot be parsed is the begin of the year 1."""
    try:
        return _must_to_date(layout, text)
    except FunctionError:
        return Time(YEAR_1)


def _must_to_date(layout: str, text: str) -> Time:
    try:
        return Time(*parse_time(layout, text))
    except ParseError as error:
        raise FunctionError(str(error)) from None


def _must_modify(text: str, time: Time) -> Time:
    try:
        return time.add(parse_nanoseconds(text))
    except DurationError as error:
        raise FunctionError(str(error)) from None


def _modify(text: str, time: Time) -> Time:
    try:
        return time.add(parse_nanoseconds(text))
    except DurationError:
        return time


def _duration(seconds: Any) -> str:
    """Return whole seconds as a duration: of a string or an int64, not of an int."""
    match seconds:
        case str():
            number = parse_int(seconds, 10)[0]
        case Int64():
            number = int(seconds)
        case _:
            number = 0
    return duration_text(int(wrapped(number * SECOND)))


_UNITS = (
    ("y", 365 * 24 * 3600 * SECOND),
    ("mo", 30 * 24 * 3600 * SECOND),
    ("d", 24 * 3600 * SECOND),
    ("h", 3600 * SECOND),
    ("m", 60 * SECOND),
    ("s", SECOND),
)


def _rounded(nanoseconds: int) -> str:
    """Return the largest whole unit that fits more than once."""
    whole = abs(nanoseconds)
    return next((f"{whole // size}{unit}" for unit, size in _UNITS if whole > size), "0s")


def clock_functions(now: Callable[[], datetime]) -> Mapping[str, Function]:
    """Return the functions whose result depends on the present moment, at least for some arguments."""

    def present() -> Time:
        return time_of(now())

    def instant(value: Any) -> Time:
        """A time, or seconds since 1970 as an integer; anything else (also a float) is the present moment."""
        if isinstance(value, Time):
            return value
        return Time(int(value)) if type(value) in (int, Int64, Int32) else present()

    def in_zone(layout: str, value: Any, zone: str) -> str:
        time = instant(value)
        return format_time(time.unix, time.nanosecond, zone_of(zone) or UTC_ZONE, layout)

    def ago(value: Any) -> str:
        time = present() if isinstance(value, Int32) else instant(value)
        return duration_text(rounded_to_seconds(present().since(time)))

    def duration_round(value: Any) -> str:
        match value:
            case str():
                try:
                    return _rounded(parse_nanoseconds(value))
                except DurationError:
                    return "0s"
            case Int64():
                return _rounded(int(value))
            case Time():
                return _rounded(present().since(value))
        return "0s"

    dated = Function(lambda layout, value: in_zone(layout, value, "Local"), (STRING, ANY), result=STRING)
    zoned = Function(in_zone, (STRING, ANY, STRING), result=STRING)
    return {
        "now": Function(present, result=TIME),
        "date": dated,
        "dateInZone": zoned,
        "date_in_zone": zoned,
        "htmlDate": Function(lambda value: in_zone("2006-01-02", value, "Local"), (ANY,), result=STRING),
        "htmlDateInZone": Function(
            lambda value, zone: in_zone("2006-01-02", value, zone), (ANY, STRING), result=STRING
        ),
        "ago": Function(ago, (ANY,), result=STRING),
        "durationRound": Function(duration_round, (ANY,), result=STRING),
    }


MODIFY = Function(_modify, (STRING, TIME), result=TIME)
MUST_MODIFY = Function(_must_modify, (STRING, TIME), result=TIME)

DATES: Mapping[str, Function] = {
    "toDate": Function(_to_date, (STRING, STRING), result=TIME),
    "mustToDate": Function(_must_to_date, (STRING, STRING), result=TIME),
    "dateModify": MODIFY,
    "date_modify": MODIFY,
    "mustDateModify": MUST_MODIFY,
    "must_date_modify": MUST_MODIFY,
    "duration": Function(_duration, (ANY,), result=STRING),
    "unixEpoch": Function(lambda time: str(time.unix), (TIME,), result=STRING),
}
"""The functions of dates whose result depends on their arguments alone."""
