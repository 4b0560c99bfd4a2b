"""How many requests are under way, beside servers that take so many at a time."""

from __future__ import annotations

import heapq

import pytest

from syncline.kube.transport.pace import MAX_AT_ONCE, Pace

SECONDS = 0.004


def played(pace: Pace, width: int, answers: int = 2000, *, refuses_beyond: int = 1000) -> list[int]:
    """The limit after each answer of a server that works on ``width`` requests at a time."""
    now, free = 0.0, [0.0] * width
    under_way: list[tuple[float, float]] = []
    limits: list[int] = []
    while len(limits) < answers:
        while pace.room:
            pace.begins()
            begins = max(now, heapq.heappop(free))
            heapq.heappush(free, begins + SECONDS)
            heapq.heappush(under_way, (begins + SECONDS, now))
        now, began = heapq.heappop(under_way)
        if pace.under_way > refuses_beyond:
            pace.refused()
        else:
            pace.answered("GET", now - began)
        limits.append(pace.limit)
    return limits


@pytest.mark.parametrize(
    ("width", "least", "most"),
    [(1, 4, 12), (2, 5, 12), (8, 9, 20), (64, MAX_AT_ONCE, MAX_AT_ONCE)],
    ids=["one at a time", "two", "eight", "more than we ever ask"],
)
def test_the_number_follows_what_a_server_works_on_at_a_time(width: int, least: int, most: int) -> None:
    middle = sorted(played(Pace(), width, 20_000))[10_000]  # now and then it begins at four again
    assert least <= middle <= most


def test_a_wide_server_is_used_in_full_soon() -> None:
    assert played(Pace(), 64, 60)[-1] == MAX_AT_ONCE


def test_a_server_that_has_too_much_gets_half_and_the_answers_of_one_moment_count_once() -> None:
    pace = Pace()
    played(pace, 64, 100)
    for _ in range(MAX_AT_ONCE - pace.under_way):
        pace.begins()
    limits = []
    for _ in range(MAX_AT_ONCE):
        pace.refused()
        limits.append(pace.limit)
    assert set(limits) == {MAX_AT_ONCE // 2}


def test_refusals_lead_to_one_at_a_time_and_no_further() -> None:
    pace = Pace()
    for _ in range(50):
        while pace.room:
            pace.begins()
        while pace.under_way:
            pace.refused()
    assert (pace.limit, pace.room) == (1, True)


def test_a_server_that_refuses_beyond_five_is_asked_about_so_many() -> None:
    limits = played(Pace(), 64, 4000, refuses_beyond=5)[2000:]
    assert max(limits) <= 7


def test_slow_answers_alone_leave_eight() -> None:
    pace, limits = Pace(), []
    for number in range(400):
        while pace.room:
            pace.begins()
        pace.answered("GET", 0.001 if number < 5 else 1.0)
        limits.append(pace.limit)
    assert max(limits) > limits[-1] >= 7


def test_who_asks_for_little_learns_nothing_of_more() -> None:
    pace = Pace()
    for _ in range(100):
        pace.begins()
        pace.answered("GET", SECONDS)
    assert pace.limit == 4


def test_a_way_that_became_longer_is_learnt() -> None:
    pace = Pace()
    played(pace, 64, 600)
    for _ in range(3000):
        while pace.room:
            pace.begins()
        pace.answered("GET", 0.040)
    assert pace.limit == MAX_AT_ONCE


def test_what_was_given_up_leaves_its_place() -> None:
    pace = Pace()
    for _ in range(pace.limit):
        pace.begins()
    assert not pace.room
    pace.dropped()
    assert pace.room
