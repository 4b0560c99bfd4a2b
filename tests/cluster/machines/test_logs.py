"""Logs of containers that write without end: what is kept and what is read of them have bounds."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from syncline.cluster.machines.containers import Container, ContainerTable
from syncline.cluster.machines.logs import (
    BURST_S,
    LINE_COST,
    LOG_RATE,
    MAX_LINE_BYTES,
    MAX_LOG_BYTES,
    LogStore,
    MachineLogs,
    Throttle,
)

NOW = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize("line", [b"", b"y", b"x" * 1000, b"x" * 100_000])
def test_a_log_without_end_keeps_its_last_lines(line: bytes) -> None:
    book = LogStore()
    chunk = (line + b"\n") * max(1, 65_536 // (len(line) + 1))
    cost = chunk.count(b"\n") * (len(line) + LINE_COST)
    for _ in range(2 * MAX_LOG_BYTES // cost + 2):
        book.write("pod", "c", 0, chunk, NOW)
    book.write("pod", "c", 0, b"last\n", NOW)
    lines = book.lines("pod", "c", 0)
    assert (lines[-1].at, lines[-1].text) == (NOW, b"last\n")
    assert sum(len(line.text) + LINE_COST for line in lines) <= MAX_LOG_BYTES


def test_who_writes_more_than_is_read_waits() -> None:
    throttle = Throttle()
    assert throttle.wait_s(1000, 0.0) == 0
    assert throttle.wait_s(int(LOG_RATE * BURST_S), 0.0) == pytest.approx(0, abs=0.01)
    assert throttle.wait_s(LOG_RATE, 0.0) == pytest.approx(1, abs=0.01)
    assert throttle.wait_s(1000, 60.0) == 0


def test_one_line_a_millisecond_never_waits() -> None:
    throttle = Throttle()
    assert max(throttle.wait_s(LINE_COST + 200, step / 1000) for step in range(10_000)) == 0


POD = {"metadata": {"name": "p", "uid": "pod"}}


def shown(*pieces: bytes, ended: bool = True, **query: str) -> bytes:
    """What ``kubectl logs`` gets of output that came in these pieces."""
    table, book = ContainerTable(), LogStore()
    table.put(Container("pod", "c", 0, "boot", NOW, NOW, NOW if ended else None))
    for piece in pieces:
        book.write("pod", "c", 0, piece, NOW)
    if ended:
        book.close("pod", "c", 0, NOW)
    found = MachineLogs(book, table).log(POD, "c", query, NOW)
    assert isinstance(found, bytes)
    return found


LONG = b"x" * (3 * MAX_LINE_BYTES + 7)
WRITTEN = {
    "a last line without an end": (b"one\ntwo",),
    "a line that comes in pieces": (b"o", b"ne\nt", b"wo\n"),
    "empty lines": (b"\n\n", b"\na"),
    "a line longer than one is kept": (LONG, b"y\n", b"z\n"),
    "a long line that came with its end": (LONG + b"\nz",),
    "bytes that are no text": (b"\xff\x00\r\n",),
    "nothing": (),
}


@pytest.mark.parametrize("ended", [True, False])
@pytest.mark.parametrize("pieces", WRITTEN.values(), ids=WRITTEN)
def test_a_log_is_what_the_container_wrote(pieces: tuple[bytes, ...], ended: bool) -> None:
    assert shown(*pieces, ended=ended) == b"".join(pieces)


def test_times_stand_before_lines_and_not_inside_of_long_ones() -> None:
    told = shown(LONG + b"\nshort", timestamps="true")
    stamp = b"2026-01-01T00:00:00.000000Z "
    assert told == stamp + LONG + b"\n" + stamp + b"short"


def test_who_follows_gets_the_same_bytes() -> None:
    table, book = ContainerTable(), LogStore()
    table.put(Container("pod", "c", 0, "boot", NOW, NOW))
    stream = MachineLogs(book, table).log(POD, "c", {"follow": "true"}, NOW)
    assert not isinstance(stream, bytes)
    for piece in (b"one\ntw", b"o\n", LONG, b"end"):
        book.write("pod", "c", 0, piece, NOW)
    book.close("pod", "c", 0, NOW)
    assert b"".join(stream.take()) == b"one\ntwo\n" + LONG + b"end" and stream.ended
