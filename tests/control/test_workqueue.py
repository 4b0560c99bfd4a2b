"""Keys wait once, not before their time, and failed ones later and later."""

from __future__ import annotations

from datetime import timedelta

from hypothesis import given
from hypothesis import strategies as st

from syncline.base.clock import EPOCH
from syncline.control.workqueue import BACKOFF_MAX_S, FIRST_IN_A_ROW, Key, WorkQueue, backoff_s
from syncline.kube.objects import ObjectRef


def key(name: str) -> Key:
    return Key("c", ObjectRef("", "Pod", "ns", name))


def after(seconds: float) -> object:
    return EPOCH + timedelta(seconds=seconds)


def test_a_key_asked_for_twice_is_taken_once() -> None:
    queue = WorkQueue()
    queue.add(key("a"), EPOCH)
    queue.add(key("a"), EPOCH)
    assert queue.pop(EPOCH) == key("a")
    assert queue.pop(EPOCH) is None


def test_the_earlier_of_two_times_wins() -> None:
    queue = WorkQueue()
    queue.add(key("a"), EPOCH + timedelta(seconds=60))
    queue.add(key("a"), EPOCH + timedelta(seconds=5))
    queue.add(key("a"), EPOCH + timedelta(seconds=30))
    assert queue.next_due() == EPOCH + timedelta(seconds=5)
    assert queue.pop(EPOCH + timedelta(seconds=4)) is None
    assert queue.pop(EPOCH + timedelta(seconds=5)) == key("a")
    assert queue.next_due() is None


def test_what_is_asked_for_during_work_waits_until_it_is_finished() -> None:
    queue = WorkQueue()
    queue.add(key("a"), EPOCH)
    assert queue.pop(EPOCH) == key("a")
    queue.add(key("a"), EPOCH)
    assert queue.pop(EPOCH) is None
    queue.finish(key("a"))
    assert queue.pop(EPOCH) == key("a")


def test_back_off_doubles_up_to_its_bound_and_a_success_clears_it() -> None:
    queue = WorkQueue()
    waits = []
    for _ in range(12):
        waits.append(queue.fail(key("a"), EPOCH))
    assert waits[:4] == [0.2, 0.4, 0.8, 1.6]
    assert waits[-1] == BACKOFF_MAX_S
    queue.forgive(key("a"))
    assert queue.fail(key("a"), EPOCH) == 0.2


@given(st.integers(0, 10_000))
def test_back_off_never_exceeds_its_bound(attempt: int) -> None:
    assert 0 < backoff_s(attempt) <= BACKOFF_MAX_S


def test_periodic_looks_do_not_keep_a_world_busy() -> None:
    queue = WorkQueue()
    queue.add(key("poll"), EPOCH + timedelta(seconds=60), background=True)
    assert queue.next_due(foreground_only=True) is None
    assert queue.next_due() == EPOCH + timedelta(seconds=60)
    queue.add(key("poll"), EPOCH + timedelta(seconds=90))
    assert queue.next_due(foreground_only=True) is not None, "somebody needs it now, though not earlier"


@given(st.lists(st.tuples(st.sampled_from("abcdef"), st.integers(0, 50))))
def test_every_key_comes_out_exactly_once_in_order_of_time(asked: list[tuple[str, int]]) -> None:
    queue = WorkQueue()
    for name, seconds in asked:
        queue.add(key(name), EPOCH + timedelta(seconds=seconds))
    earliest = {name: min(s for n, s in asked if n == name) for name, _ in asked}
    seen: list[str] = []
    while (due := queue.next_due()) is not None:
        taken = queue.pop(due)
        assert taken is not None
        assert due == EPOCH + timedelta(seconds=earliest[taken.ref.name])
        seen.append(taken.ref.name)
        queue.finish(taken)
    assert sorted(seen) == sorted(earliest)


def test_an_urgent_key_comes_before_those_that_wait_for_longer() -> None:
    queue = WorkQueue()
    for name in "abc":
        queue.add(key(name), EPOCH)
    queue.prioritize(key("c"), True)
    queue.prioritize(key("b"), True)
    queue.prioritize(key("b"), False)
    assert [queue.pop(EPOCH) for _ in range(4)] == [key("c"), key("a"), key("b"), None]


def test_an_urgent_key_waits_for_its_time_and_for_the_end_of_its_own_work() -> None:
    queue = WorkQueue()
    queue.prioritize(key("a"), True)
    queue.add(key("a"), EPOCH + timedelta(seconds=5))
    queue.add(key("b"), EPOCH)
    assert [queue.pop(EPOCH), queue.pop(EPOCH)] == [key("b"), None]
    assert queue.next_due() == EPOCH + timedelta(seconds=5)
    later = EPOCH + timedelta(seconds=6)
    queue.add(key("c"), EPOCH + timedelta(seconds=1))
    assert queue.pop(later) == key("a")
    queue.add(key("a"), later)
    assert [queue.pop(later), queue.pop(later)] == [key("c"), None]
    queue.finish(key("a"))
    assert queue.pop(later) == key("a")


def test_those_that_hurry_for_ever_leave_turns_to_the_others() -> None:
    queue = WorkQueue()
    queue.add(key("patient"), EPOCH)
    for name in "abcd":
        queue.prioritize(key(name), True)
        queue.add(key(name), EPOCH + timedelta(seconds=1))
    taken = []
    for _ in range(2 * FIRST_IN_A_ROW):
        found = queue.pop(EPOCH + timedelta(seconds=2))
        assert found is not None
        taken.append(found)
        queue.finish(found)
        if found != key("patient"):
            queue.add(found, EPOCH + timedelta(seconds=1))
    assert taken.count(key("patient")) == 1
    assert taken.index(key("patient")) == FIRST_IN_A_ROW


def test_a_clock_that_is_put_back_changes_nothing_for_those_that_hurry() -> None:
    queue = WorkQueue()
    start = EPOCH + timedelta(hours=2)
    assert queue.pop(start) is None
    queue.prioritize(key("b"), True)
    for name in "ab":
        queue.add(key(name), start)
    assert queue.pop(start - timedelta(hours=1)) == key("b")
