"""Seats, queues and turns of a priority level, and how seats are shared, lent and borrowed."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from syncline.cluster.fairness.dropped import DroppedRequests
from syncline.cluster.fairness.limits import Bounds, Demand, Seats, allocation, borrowed, bounds_of, smoothed
from syncline.cluster.fairness.queues import Level, Response, State, Ticket, hand_of


def limited(shares: int, lendable: int, **more: object) -> dict[str, object]:
    common = {"nominalConcurrencyShares": shares, "lendablePercent": lendable, **more}
    return {"type": "Limited", "limited": {**common, "limitResponse": {"type": "Reject"}}}


BOOTSTRAP = {
    "exempt": {"type": "Exempt", "exempt": {"nominalConcurrencyShares": 0, "lendablePercent": 0}},
    "catch-all": limited(5, 0),
    "global-default": limited(20, 50),
    "leader-election": limited(10, 0),
    "node-high": limited(40, 25),
    "system": limited(30, 33),
    "workload-high": limited(40, 50),
    "workload-low": limited(100, 90),
}
NOMINAL = [0, 13, 49, 25, 98, 74, 98, 245]
LEAST = [0, 13, 24, 25, 73, 50, 49, 24]
MOST = [600, 613, 649, 625, 698, 674, 698, 845]
IDLE = [1, 30, 56, 58, 170, 117, 114, 56]
"""nominal, lower, upper and current_limit_seats that kube-apiserver 1.36.2 tells for the suggested configuration, the
last for an idle server after its first adjustments."""


def test_shares_of_600_seats_are_those_of_kubernetes() -> None:
    bounds = bounds_of(BOOTSTRAP, 600)
    assert [each.nominal for each in bounds.values()] == NOMINAL
    assert [each.least for each in bounds.values()] == LEAST
    assert [each.most for each in bounds.values()] == MOST


def test_an_idle_server_lends_as_kubernetes_does() -> None:
    bounds = bounds_of(BOOTSTRAP, 600)
    asked = Demand(1, 0.0086, 0.0925)
    observed = {name: Seats(each, asked if each.exempt else Demand(), 0.0) for name, each in bounds.items()}
    assert list(borrowed(observed).values()) == IDLE


def test_a_level_in_need_borrows_what_the_others_do_not_use_up_to_its_limit() -> None:
    bounds = bounds_of(BOOTSTRAP | {"workload-low": limited(100, 90, borrowingLimitPercent=10)}, 600)
    busy = Demand(500, 500, 0)
    seen = {name: Seats(each, busy if name == "workload-low" else Demand(), 0.0) for name, each in bounds.items()}
    seen["workload-low"] = Seats(bounds["workload-low"], busy, 500.0)
    assert borrowed(seen)["workload-low"] == 245 + 25


def test_what_exempt_requests_use_is_missing_for_the_others() -> None:
    bounds = bounds_of(BOOTSTRAP, 600)
    crowd = {name: Demand(400 if each.exempt else 1000) for name, each in bounds.items()}
    observed = {name: Seats(each, crowd[name], 1000.0) for name, each in bounds.items()}
    found = borrowed(observed)
    assert found["exempt"] == 400
    assert all(bounds[name].least <= seats for name, seats in found.items())
    assert sum(found.values()) <= 400 + sum(LEAST)


def test_demand_rises_at_once_and_falls_slowly() -> None:
    assert smoothed(0, Demand(10, 8, 5)) == 10
    assert smoothed(0, Demand(10, 2, 1)) == 3
    assert smoothed(10, Demand()) == pytest.approx(9.77)


WISHES = st.lists(
    st.tuples(st.floats(0, 300), st.floats(0, 100), st.floats(0, 300)).map(
        lambda each: (each[0] + each[1], each[1], each[1] + each[2])
    ),
    min_size=1,
    max_size=6,
)


@given(wishes=WISHES, total=st.floats(0, 1000))
def test_an_allocation_keeps_bounds_and_gives_away_all_that_it_may(
    wishes: list[tuple[float, float, float]], total: float
) -> None:
    given_seats = allocation(total, wishes)
    for seats, (_, least, most) in zip(given_seats, wishes, strict=True):
        assert least - 1e-6 <= seats <= most + 1e-6
    low, high = sum(each[1] for each in wishes), sum(each[2] for each in wishes)
    assert sum(given_seats) == pytest.approx(min(max(total, low), high), abs=0.01)


def level(seats: int, *, queues: int = 8, hand: int = 2, length: int = 5, response: Response = Response.QUEUE) -> Level:
    made = Level("test", 0.0)
    made.configure("uid", response, Bounds(seats, seats, seats), queues=queues, hand=hand, length=length)
    made.limit(seats, 0.0)
    return made


def test_a_level_that_rejects_refuses_who_finds_no_seat() -> None:
    made = level(2, response=Response.REJECT)
    tickets = [made.enter("s", 0, 1, 0.0) for _ in range(3)]
    assert [each.state for each in tickets] == [State.SEATED, State.SEATED, State.REFUSED]
    made.leave(tickets[0], 1.0)
    assert made.enter("s", 0, 1, 1.0).state is State.SEATED


def test_exempt_requests_are_seated_however_many_sit() -> None:
    made = level(0, response=Response.EXEMPT)
    tickets = [made.enter("s", 0, 1, 0.0) for _ in range(500)]
    assert all(each.state is State.SEATED for each in tickets)
    assert made.observe(1.0).highest == 500
    for ticket in tickets:
        made.leave(ticket, 2.0)
    assert made.executing == made.taken == 0


def test_a_queue_is_bounded_and_the_next_is_refused() -> None:
    made = level(1, queues=1, hand=1, length=3)
    states = [made.enter("s", 0, 1, 0.0).state for _ in range(6)]
    assert states == [State.SEATED] + [State.WAITING] * 3 + [State.REFUSED] * 2


def test_who_leaves_a_queue_frees_its_place_and_leaving_twice_changes_nothing() -> None:
    made = level(1, queues=1, hand=1, length=1)
    seated, waiting = made.enter("s", 0, 1, 0.0), made.enter("s", 0, 1, 0.0)
    made.leave(waiting, 1.0)
    made.leave(waiting, 1.0)
    assert (made.waiting, made.wanted) == (0, 0)
    assert made.enter("s", 0, 1, 1.0).state is State.WAITING
    made.leave(seated, 2.0)
    made.leave(seated, 2.0)
    assert (made.executing, made.waiting) == (1, 0)


def test_a_wide_request_waits_until_it_fits_and_is_not_passed_over() -> None:
    made = level(4, queues=1, hand=1)
    small = [made.enter("s", 0, 1, 0.0) for _ in range(4)]
    wide, later = made.enter("s", 0, 3, 0.0), made.enter("s", 0, 1, 0.0)
    made.leave(small[0], 1.0)
    made.leave(small[1], 1.0)
    assert (wide.state, later.state) == (State.WAITING, State.WAITING)
    made.leave(small[2], 1.0)
    assert (wide.state, later.state) == (State.SEATED, State.WAITING)


def test_a_request_wider_than_the_level_runs_alone() -> None:
    made = level(2, queues=1, hand=1)
    assert made.enter("s", 0, 9, 0.0).state is State.SEATED
    assert made.enter("s", 0, 1, 0.0).state is State.WAITING


def test_a_flood_of_one_flow_does_not_delay_another_by_more_than_its_share() -> None:
    """Ten seats' worth of a flood wait; a polite user's requests are served in turn with it, not after it."""
    made = level(1, queues=64, hand=1, length=50)
    flood, polite = 1, 2
    order: list[str] = []
    tickets: list[Ticket] = []

    def ask(name: str, flow: int, now: float) -> None:
        ticket = made.enter(name, flow, 1, now)
        tickets.append(ticket)
        ticket.wake = lambda: order.append(name)

    for _ in range(40):
        ask("flood", flood, 0.0)
    for _ in range(3):
        ask("polite", polite, 0.0)
    now = 0.0
    while made.executing:
        now += 0.01
        made.leave(next(each for each in tickets if each.state is State.SEATED), now)
    assert [index for index, name in enumerate(order) if name == "polite"][-1] <= 6
    assert order.count("flood") == 39


def test_a_flow_is_dealt_the_hand_of_kubernetes() -> None:
    """``shufflesharding`` deals by the remainders of the hash; cards of one hand differ."""
    assert hand_of(0, 128, 6) == (0, 1, 2, 3, 4, 5)
    assert hand_of(128 * 5 + 5, 128, 2) == (5, 6)
    hand = hand_of(2**63 + 12345, 128, 6)
    assert len(set(hand)) == 6 and all(0 <= card < 128 for card in hand)


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(1, 4), st.integers(0, 3)), max_size=60))
def test_seats_and_queues_add_up_whatever_comes(moves: list[tuple[int, int, int]]) -> None:
    made = level(5, queues=4, hand=2, length=3)
    tickets: list[Ticket] = []
    for now, (flow, seats, what) in enumerate(moves):
        if what and tickets:
            made.leave(tickets[flow % len(tickets)], float(now))
        else:
            tickets.append(made.enter("s", flow, seats, float(now)))
        sitting = [each for each in tickets if each.state is State.SEATED]
        waiting = [each for each in tickets if each.state is State.WAITING]
        assert made.taken == sum(each.seats for each in sitting) <= 5
        assert (made.executing, made.waiting) == (len(sitting), len(waiting))
        assert made.wanted == sum(each.seats for each in waiting)
        assert len(waiting) <= 4 * 3 + 4, "each queue holds its length, and one more where a wide request does not fit"
        assert sitting or not waiting, "nobody waits for nobody"
    for ticket in tickets:
        made.leave(ticket, 1e6)
    assert (made.taken, made.wanted, made._queues) == (0, 0, {})


def test_callers_are_sent_away_for_longer_the_more_are_refused() -> None:
    """dropped_requests_tracker_test: three refusals a second double the pause, up to 32 s; calm shortens it."""
    dropped = DroppedRequests()
    assert dropped.retry_after_s("low") == 1
    for second in range(1, 200):
        for _ in range(20):
            dropped.note("low", second)
    assert dropped.retry_after_s("low") == 32 and dropped.retry_after_s("high") == 1
    for second in range(1000, 1040):
        dropped.note("low", second)
    assert dropped.retry_after_s("low") < 32
