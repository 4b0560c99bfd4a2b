"""Logs of containers that write without end: what is kept and what is read of them have bounds."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from syncline.cluster.machines.logs import BURST_S, LINE_COST, LOG_RATE, MAX_LOG_BYTES, LogBook, Throttle

NOW = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize("line", [b"", b"y", b"x" * 1000, b"x" * 100_000])
def test_a_log_without_end_keeps_its_last_lines(line: bytes) -> None:
    book = LogBook()
    chunk = (line + b"\n") * max(1, 65_536 // (len(line) + 1))
    for _ in range(200):
        book.write("pod", "c", 0, chunk, NOW)
    book.write("pod", "c", 0, b"last\n", NOW)
    lines = book.lines("pod", "c", 0)
    assert lines[-1] == (NOW, b"last")
    assert sum(len(text) + LINE_COST for _, text in lines) <= MAX_LOG_BYTES


def test_who_writes_more_than_is_read_waits() -> None:
    throttle = Throttle()
    assert throttle.wait_s(1000, 0.0) == 0
    assert throttle.wait_s(int(LOG_RATE * BURST_S), 0.0) == pytest.approx(0, abs=0.01)
    assert throttle.wait_s(LOG_RATE, 0.0) == pytest.approx(1, abs=0.01)
    assert throttle.wait_s(1000, 60.0) == 0


def test_one_line_a_millisecond_never_waits() -> None:
    throttle = Throttle()
    assert max(throttle.wait_s(LINE_COST + 200, step / 1000) for step in range(10_000)) == 0
