"""Fair shares of places: no project and no host takes them all, whoever asks first."""

from __future__ import annotations

import pytest

from syncline.base.places import Crowded, Limits, Places, Ticket


def wish(project: str, host: str = "") -> Ticket:
    return Ticket((("project", project), *([("host", host)] if host else [])))


def working(places: Places, tickets: list[Ticket]) -> str:
    """The projects of those that work, sorted."""
    assert places.counts()["working"] == sum(ticket.state == "working" for ticket in tickets)
    return "".join(sorted(ticket.shares[0][1] for ticket in tickets if ticket.state == "working"))


@pytest.mark.parametrize(
    ("rule", "limits", "arrive", "expected"),
    [
        ("places are given in the order of arrival", Limits(3), ["a", "b", "a", "b"], "aab"),
        ("a project never takes all places", Limits(3, {"project": 2}), ["a", "a", "a", "a"], "aa"),
        ("the place that is left is another project's", Limits(3, {"project": 2}), ["a", "a", "a", "a", "b"], "aab"),
        ("a host never takes all places", Limits(3, {"host": 1}), ["a h", "b h", "c h"], "a"),
        ("whoever waits for a host keeps nobody else", Limits(3, {"host": 1}), ["a h", "a h", "a g"], "aa"),
    ],
)
def test_places_are_shared(rule: str, limits: Limits, arrive: list[str], expected: str) -> None:
    places, tickets = Places(limits), [wish(*one.split()) for one in arrive]
    for ticket in tickets:
        places.ask(ticket)
    assert working(places, tickets) == expected, rule


def test_a_free_place_goes_to_the_project_that_has_fewest_though_another_waits_longer() -> None:
    places = Places(Limits(2, {"project": 2}))
    first, second, third, late = wish("a"), wish("a"), wish("a"), wish("b")
    for ticket in (first, second, third, late):
        places.ask(ticket)
    assert places.give_back(first) == [late]
    assert places.give_back(late) == [third]


def test_who_is_slow_works_on_beside_the_places_as_long_as_there_is_room_for_its_project() -> None:
    places = Places(Limits(1, slow=3, slow_each={"project": 2}))
    slow = [wish("a") for _ in range(3)]
    good = wish("b")
    for ticket in (*slow, good):
        places.ask(ticket)
    assert places.slow(slow[0]) == [slow[1]]
    assert places.slow(slow[1]) == [slow[2]]
    assert places.slow(slow[2]) == [], "its project is slow twice, so it keeps its place"
    assert [ticket.state for ticket in (*slow, good)] == ["slow", "slow", "working", "waiting"]
    assert places.give_back(slow[0]) == []
    assert places.slow(slow[2]) == [good]


def test_a_wish_that_is_withdrawn_leaves_no_trace() -> None:
    places = Places(Limits(1))
    first, second = wish("a"), wish("a")
    places.ask(first)
    places.ask(second)
    places.give_back(second)
    places.give_back(first)
    assert places.counts() == {"working": 0, "slow": 0, "waiting": 0}


def test_a_project_cannot_fill_the_queue() -> None:
    places = Places(Limits(1, waiting=4))
    for _ in range(3):
        places.ask(wish("a"))
    with pytest.raises(Crowded, match="wait already"):
        places.ask(wish("a"))
    places.ask(wish("b"))
