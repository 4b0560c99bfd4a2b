"""Clocks that are set while a process runs: what follows, how fast, and what is said."""

from __future__ import annotations

import logging
from datetime import timedelta

import pytest

from syncline.base.clock import LONG_AGO, SystemClock, VirtualClock, steady_now

HOUR = 3600.0
START = 1_800_000_000.0


class Machine:
    """A machine whose clock can be set."""

    def __init__(self) -> None:
        self.wall, self.passed = START, 5000.0
        self.late: list[float] = []
        """How long the process is stopped between two readings."""

    def let_pass(self, seconds: float) -> None:
        self.wall += seconds
        self.passed += seconds

    def clock(self) -> SystemClock:
        return SystemClock(lambda: self.wall, self._steady)

    def _steady(self) -> float:
        if self.late:
            self.let_pass(self.late.pop(0))
        return self.passed


@pytest.fixture
def machine() -> Machine:
    return Machine()


def told(clock: SystemClock) -> float:
    return (clock.now() - LONG_AGO).total_seconds() - START


def test_without_a_jump_the_clock_is_the_machines(machine: Machine) -> None:
    clock = machine.clock()
    for seconds in (0.0, 0.5, 86_400.0):
        machine.let_pass(seconds)
        assert clock.now() == LONG_AGO + timedelta(seconds=machine.wall)


def test_drift_that_ntp_makes_is_followed_and_not_told(machine: Machine, caplog: pytest.LogCaptureFixture) -> None:
    clock = machine.clock()
    for _ in range(100):
        machine.let_pass(60)
        machine.wall += 0.03
    assert told(clock) == pytest.approx(6003)
    assert caplog.text == ""


@pytest.mark.parametrize(
    ("jump", "after_half_an_hour", "agrees_after"),
    [(HOUR, HOUR, HOUR), (-HOUR, HOUR / 4, 2 * HOUR)],
    ids=["an hour forward", "an hour back"],
)
def test_a_jump_is_followed_gradually_and_told(
    machine: Machine,
    caplog: pytest.LogCaptureFixture,
    jump: float,
    after_half_an_hour: float,
    agrees_after: float,
) -> None:
    caplog.set_level(logging.WARNING)
    clock = machine.clock()
    machine.let_pass(10)
    assert told(clock) == 10
    machine.wall += jump
    assert told(clock) == pytest.approx(10)
    machine.let_pass(HOUR / 2)
    assert told(clock) == pytest.approx(10 + after_half_an_hour)
    machine.let_pass(agrees_after - HOUR / 2)
    assert clock.now() == LONG_AGO + timedelta(seconds=machine.wall)
    direction = "forward" if jump > 0 else "back"
    assert [f"jumped {direction} by 3600 s" in record.message for record in caplog.records] == [True]


def test_the_last_jumps_are_remembered_by_number(machine: Machine) -> None:
    clock = machine.clock()
    for _ in range(40):
        machine.wall += HOUR
        clock.now()
    last = [jump.number for jump in clock.jumps()]
    assert last == list(range(25, 41)) and [jump.number for jump in clock.jumps(39)] == [40]
    assert str(clock.jumps()[-1]).startswith("the machine's clock jumped forward by 3600 s; ")


def test_it_never_runs_backwards_and_no_wait_becomes_longer_than_twice(machine: Machine) -> None:
    clock = machine.clock()
    before = told(clock)
    for jump in (HOUR, -HOUR, -HOUR, HOUR, HOUR):
        machine.wall += jump
        for _ in range(50):
            machine.let_pass(7)
            now = told(clock)
            assert 3.49 <= now - before <= 14.01
            before = now


def test_a_clock_that_was_days_wrong_is_followed_at_once(machine: Machine) -> None:
    clock = machine.clock()
    machine.wall += 40 * HOUR
    assert told(clock) == 40 * HOUR


def test_a_process_that_was_stopped_has_not_seen_a_jump(machine: Machine, caplog: pytest.LogCaptureFixture) -> None:
    """Between reading one clock and the other: SIGSTOP, or a machine that is far too busy."""
    clock = machine.clock()
    machine.late = [0.0, 30.0]
    assert told(clock) == pytest.approx(30)
    machine.late = [20.0] * 12
    assert told(clock) == pytest.approx(30 + 20 * 10, abs=41)
    machine.late = []
    assert told(clock) == pytest.approx(machine.wall - START)
    assert caplog.text == ""


def test_durations_inside_a_process_know_no_jump(machine: Machine) -> None:
    clock = machine.clock()
    began = steady_now(clock)
    machine.wall -= HOUR
    machine.let_pass(3)
    machine.wall += 90 * HOUR
    assert steady_now(clock) - began == timedelta(seconds=3)


def test_virtual_time_has_one_scale() -> None:
    clock = VirtualClock()
    clock.advance(5)
    assert steady_now(clock) == clock.now()
