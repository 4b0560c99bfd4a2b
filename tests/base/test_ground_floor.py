"""The ground floor: time, chance, order, records and what cannot be printed."""

from __future__ import annotations

import copy
import json
import pickle
import traceback
from datetime import UTC, datetime, timedelta, timezone

import pytest

from syncline.base.clock import EPOCH, VirtualClock, format_micro_time, format_time, parse_time
from syncline.base.entropy import SUFFIX_ALPHABET, Entropy
from syncline.base.journal import Entry, Journal
from syncline.base.report import Position, Report
from syncline.base.secret import Secret


def test_a_virtual_clock_moves_only_when_told_and_never_back() -> None:
    clock = VirtualClock()
    assert clock.now() == clock.now() == EPOCH
    clock.advance(90)
    assert clock.now() == EPOCH + timedelta(seconds=90)
    with pytest.raises(AssertionError, match="backwards"):
        clock.set(EPOCH)


def test_times_are_read_with_any_offset_and_written_in_utc() -> None:
    east = datetime(2026, 1, 1, 3, tzinfo=timezone(timedelta(hours=3)))
    assert format_time(east) == "2026-01-01T00:00:00Z"
    assert parse_time("2026-01-01T03:00:00+03:00") == datetime(2026, 1, 1, tzinfo=UTC)
    assert format_micro_time(EPOCH + timedelta(microseconds=7)).endswith(".000007Z")


@pytest.mark.parametrize("text", ["", "yesterday", "2026-01-01T00:00:00"])
def test_a_time_that_cannot_be_read_is_named(text: str) -> None:
    with pytest.raises(ValueError, match=r"RFC 3339|time zone"):
        parse_time(text)


def test_equal_seeds_give_equal_ids_and_forks_do_not_disturb_each_other() -> None:
    one, two = Entropy(7), Entropy(7)
    two.fork("another room").uid()
    assert [one.uid(), one.suffix()] == [two.uid(), two.suffix()]
    assert Entropy(7).fork("a").uid() != Entropy(7).fork("b").uid()
    assert Entropy(1).uid() != Entropy(2).uid()


def test_suffixes_cannot_spell_words() -> None:
    assert set(Entropy(3).suffix(200)) <= set(SUFFIX_ALPHABET)
    assert not set("aeiou") & set(SUFFIX_ALPHABET)


def test_a_journal_is_bounded_and_tells_its_listeners() -> None:
    heard: list[str] = []
    journal = Journal(limit=2)
    journal.listen(lambda entry: heard.append(entry.what))
    for what in ("one", "two", "three"):
        journal.write(Entry(EPOCH, "who", "subject", what))
    assert heard == ["one", "two", "three"]
    assert [entry.what for entry in journal] == ["two", "three"]
    assert journal.text().count("\n") == 2


def test_a_secret_shows_itself_to_nobody() -> None:
    secret = Secret("hunter2")
    for text in (str(secret), repr(secret), f"{secret}", f"{secret:>20}", str([secret]), str({"a": secret})):
        assert "hunter2" not in text
    for attempt in (pickle.dumps, json.dumps, copy.deepcopy, vars, bytes, lambda one: one.__getstate__()):
        with pytest.raises(TypeError) as refused:
            attempt(secret)
        assert "hunter2" not in str(refused.value)
    try:
        raise ValueError(secret)
    except ValueError as error:
        told = "".join(traceback.TracebackException.from_exception(error, capture_locals=True).format())
    assert "hunter2" not in told and "Secret(***)" in told
    assert secret.reveal() == "hunter2"
    assert secret == Secret("hunter2") != Secret("other")


def test_a_report_collects_and_points_at_the_line() -> None:
    report = Report()
    report.warning("old")
    assert report.ok
    report.error("is not a number", "spec.replicas", Position("a.yaml", 3, 5), "write 3")
    assert not report.ok
    assert str(report.errors[0]) == "a.yaml:3:5: spec.replicas: is not a number; write 3"
