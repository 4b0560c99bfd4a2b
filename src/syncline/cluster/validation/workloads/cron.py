"""Cron schedules and time zones, as far as a CronJob is refused for them.

Called by ``jobs.py``. A text comes in; the problem in the words of Go's ``robfig/cron``
parser leaves, empty when there is none.
"""

from __future__ import annotations

import re
import zoneinfo
from dataclasses import dataclass

__all__ = ["schedule_problem", "time_zone_problem"]

MAX_SCHEDULE_CHARS = 1_000
DESCRIPTORS = ("@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly")
MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_ZONE_PART = re.compile(r"[A-Za-z._0-9+-]{1,14}")
DAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")


@dataclass(frozen=True, slots=True)
class _Field:
    low: int
    high: int
    names: tuple[str, ...] = ()
    first: int = 0

    def number(self, text: str) -> int | str:
        """The number of a text, or the problem with it."""
        if text.lower() in self.names:
            return self.names.index(text.lower()) + self.first
        if re.fullmatch("[0-9]+", text):
            return int(text)
        return f'failed to parse int from {text}: strconv.Atoi: parsing "{text}": invalid syntax'


_FIELDS = (_Field(0, 59), _Field(0, 23), _Field(1, 31), _Field(1, 12, MONTHS, 1), _Field(0, 6, DAYS, 0))


def schedule_problem(text: str) -> str:
    """What is wrong with a standard five-field schedule or a descriptor."""
    if len(text) > MAX_SCHEDULE_CHARS:
        return f"must be no more than {MAX_SCHEDULE_CHARS} characters"
    if text.startswith(("TZ=", "CRON_TZ=")):
        text = text.partition(" ")[2].strip()
    if text.startswith("@"):
        if text.startswith("@every ") and not re.fullmatch(r"@every [-+]?([0-9.]+(ns|us|µs|ms|s|m|h))+", text):
            return f'failed to parse duration {text}: time: invalid duration "{text.removeprefix("@every ")}"'
        known = text in DESCRIPTORS or re.fullmatch(r"@every ([0-9.]+(ns|us|µs|ms|s|m|h))+", text)
        return "" if known else f"unrecognized descriptor: {text}"
    fields = text.split()
    if len(fields) != len(_FIELDS):
        return f"expected exactly 5 fields, found {len(fields)}: [{' '.join(fields)}]"
    problems = (
        _part_problem(part, field) for value, field in zip(fields, _FIELDS) for part in value.split(",") if part
    )
    return next((problem for problem in problems if problem), "")


def _part_problem(part: str, field: _Field) -> str:
    span, slash, step_text = part.partition("/")
    if "/" in step_text:
        return f"too many slashes: {part}"
    low, dash, high = span.partition("-")
    if "-" in high:
        return f"too many hyphens: {part}"
    start, end = _span(low, high if dash else "", field, stepped=bool(slash))
    for number in (start, end):
        if isinstance(number, str):
            return number
    step = _Field(0, 0).number(step_text) if slash else 1
    if isinstance(step, str):
        return step
    assert isinstance(start, int)
    assert isinstance(end, int)
    return _range_problem(start, end, step, field, part)


def _span(low: str, high: str, field: _Field, *, stepped: bool) -> tuple[int | str, int | str]:
    if low in ("*", "?"):
        return field.low, field.high
    start = field.number(low)
    if high:
        return start, field.number(high)
    return start, field.high if stepped else start


def _range_problem(start: int, end: int, step: int, field: _Field, part: str) -> str:
    if start < field.low:
        return f"beginning of range ({start}) below minimum ({field.low}): {part}"
    if end > field.high:
        return f"end of range ({end}) above maximum ({field.high}): {part}"
    if start > end:
        return f"beginning of range ({start}) beyond end of range ({end}): {part}"
    return f"step of range should be a positive number: {part}" if step == 0 else ""


def time_zone_problem(name: str) -> str:
    """Whether the time zone data base knows the name; ``Local`` is no zone of a cluster."""
    parts = name.split("/")
    if any(part in (".", "..") or part.startswith("-") or not _ZONE_PART.fullmatch(part) for part in parts):
        return f"unknown time zone {name}"
    if name.lower() == "local":
        return "timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones"
    try:
        zoneinfo.ZoneInfo(name)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
        return f"unknown time zone {name}"
    return ""
