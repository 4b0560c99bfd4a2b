"""Computing in this process ends when its processor time is used up, wherever it is, and leaves nothing half done."""

from __future__ import annotations

import subprocess
import sys
import threading
import time

import pytest

from syncline.sources.workers.deadline import OutOfTime, sheltered, within


def spin(cpu_s: float) -> None:
    end = time.thread_time() + cpu_s
    while time.thread_time() < end:
        pass


def test_a_loop_that_counts_nothing_is_ended() -> None:
    with pytest.raises(OutOfTime, match=r"more than 0\.05 seconds of processor time"):
        within(0.05, lambda: spin(60))


def test_what_ends_in_time_gives_what_it_gives() -> None:
    assert within(60, lambda: 3) == 3
    with pytest.raises(KeyError):
        within(60, lambda: {}["a"])


def test_a_sheltered_part_is_done_to_its_end() -> None:
    done: list[str] = []

    def work() -> None:
        with sheltered():
            spin(0.2)
            done.append("inside")
        done.append("after")

    with pytest.raises(OutOfTime):
        within(0.02, work)
    assert done == ["inside"]


def test_locks_and_later_work_of_the_thread_are_unharmed() -> None:
    lock = threading.Lock()

    def work() -> None:
        while True:
            with sheltered(), lock:
                pass
            with lock:
                pass

    for _ in range(20):
        with pytest.raises(OutOfTime):
            within(0.011, work)
        assert lock.acquire(blocking=False)
        lock.release()
    spin(0.1)


PROFILED = """
import sys
from syncline.sources.workers.deadline import OutOfTime, sheltered, within

def spin():
    while True:
        with sheltered():
            pass

within(60, lambda: None)
try:
    within(0.02, spin)
except OutOfTime:
    pass
sys.setprofile(lambda *_: None)
sorted([3, 2, 1], key=lambda number: -number)
"""


def test_the_interpreter_goes_on_as_before_also_where_a_profiler_counts() -> None:
    subprocess.run([sys.executable, "-c", PROFILED], check=True, timeout=120)
