"""Schedules of five fields, as robfig/cron reads them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from syncline.kube.text.cron import CronError, parse_schedule

MONDAY = datetime(2026, 6, 15, 12, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("schedule", "next_start"),
    [
        ("* * * * *", "2026-06-15T12:01"),
        ("0 12 * * *", "2026-06-16T12:00"),
        ("*/20 * * * *", "2026-06-15T12:20"),
        ("5/20 * * * *", "2026-06-15T12:05"),
        ("0 0 * * sun", "2026-06-21T00:00"),
        ("0 0 1 * *", "2026-07-01T00:00"),
        ("0 0 1 * tue", "2026-06-16T00:00"),
        ("0 0 ? feb *", "2027-02-01T00:00"),
        ("0 0 29 2 *", "2028-02-29T00:00"),
    ],
)
def test_the_next_start_is_the_first_minute_that_fits(schedule: str, next_start: str) -> None:
    found = parse_schedule(schedule).next_after(MONDAY)
    assert found == datetime.fromisoformat(next_start).replace(tzinfo=UTC)


def test_a_day_that_never_comes_never_starts() -> None:
    assert parse_schedule("0 0 30 2 *").next_after(MONDAY) is None


@pytest.mark.parametrize(
    "text", ["", "* * * *", "60 * * * *", "* * * * 7", "5-1 * * * *", "*/0 * * * *", "@daily", "a"]
)
def test_what_is_no_schedule_is_refused(text: str) -> None:
    with pytest.raises(CronError):
        parse_schedule(text)


@given(st.integers(0, 59), st.integers(0, 23), st.datetimes(datetime(2020, 1, 1), datetime(2040, 1, 1)))
def test_a_daily_start_is_less_than_a_day_away_and_after_now(minute: int, hour: int, now: datetime) -> None:
    found = parse_schedule(f"{minute} {hour} * * *").next_after(now)
    assert found is not None
    assert timedelta() < found - now <= timedelta(days=1)
    assert (found.hour, found.minute, found.second) == (hour, minute, 0)
