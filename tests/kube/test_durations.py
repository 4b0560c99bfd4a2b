"""Durations read and print as in Go."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from syncline.kube.text.durations import (
    DurationError,
    duration_text,
    format_duration,
    format_seconds,
    parse_duration,
    parse_nanoseconds,
)


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ("0", "0s"),
        ("90s", "1m30s"),
        ("1h", "1h0m0s"),
        ("1.5h", "1h30m0s"),
        ("1500ms", "1.5s"),
        ("2m0.5s", "2m0.5s"),
        ("100us", "100µs"),
        ("5ns", "5ns"),
        ("-1m", "-1m0s"),
        (".5s", "500ms"),
    ],
)
def test_a_duration_prints_as_go_prints_it(text: str, printed: str) -> None:
    assert duration_text(parse_nanoseconds(text)) == printed


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", 'time: invalid duration ""'),
        ("3", 'time: missing unit in duration "3"'),
        ("3 m", 'time: unknown unit " m" in duration "3 m"'),
        ("1d", 'time: unknown unit "d" in duration "1d"'),
        ("abc", 'time: invalid duration "abc"'),
        (".s", 'time: invalid duration ".s"'),
        ("9999999h", 'time: invalid duration "9999999h"'),
    ],
)
def test_a_text_that_is_no_duration_is_refused_in_gos_words(text: str, message: str) -> None:
    with pytest.raises(DurationError) as caught:
        parse_duration(text)
    assert str(caught.value) == message


def test_durations_become_timedeltas_and_back() -> None:
    assert parse_duration("1m30s") == timedelta(seconds=90)
    assert format_duration(timedelta(seconds=90)) == "1m30s"
    assert format_seconds(3600) == "1h0m0s"


@given(st.integers(-(2**62), 2**62))
def test_the_printed_form_reads_back(nanoseconds: int) -> None:
    assert parse_nanoseconds(duration_text(nanoseconds)) == nanoseconds
