"""The recorded conformance cases of the fleet: their times, and how results are compared with them."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from tests.recorded import Case, cases_of, judge_by, known

from syncline.base.clock import format_time

KNOWN = Path(__file__).with_name("known.json")
NOW = datetime(2026, 7, 1, 12, 0, tzinfo=UTC)
"""The moment of every run."""
_TIME = re.compile(r"@now(?:([+-])(\d+)([smhd]))?@")
_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}


def cases(kind: str) -> list[Case]:
    return cases_of("fleet", kind)


def judge(kind: str, case: Case, agrees: bool, got: object) -> None:
    """See :func:`tests.recorded.judge_by`."""
    judge_by(known(KNOWN).get(kind, {}), case, agrees, got)


def timed(value: Any) -> Any:
    """The input with its ``@now-30s@`` as times."""
    if isinstance(value, dict):
        return {key: timed(one) for key, one in value.items()}
    if isinstance(value, list):
        return [timed(one) for one in value]
    return _TIME.sub(lambda found: _time(*found.groups()), value) if isinstance(value, str) else value


def _time(sign: str | None, count: str | None, unit: str | None) -> str:
    if sign is None or count is None or unit is None:
        return format_time(NOW)
    moved = timedelta(**{_UNITS[unit]: int(count)})
    return format_time(NOW + moved if sign == "+" else NOW - moved)


def sparse(value: Any) -> Any:
    """For comparisons in which null, an empty list, an empty map and an absent key are equal."""
    if isinstance(value, dict):
        pairs = {key: sparse(item) for key, item in value.items()}
        return {key: item for key, item in pairs.items() if item not in (None, [], {}) or item is False} or None
    if isinstance(value, list):
        return [sparse(item) for item in value] or None
    return value


def untimed(conditions: Any) -> dict[str, Any]:
    """Conditions by type, without their times."""
    return {
        one["type"]: {key: value for key, value in one.items() if key != "lastTransitionTime"}
        for one in conditions or ()
    }
