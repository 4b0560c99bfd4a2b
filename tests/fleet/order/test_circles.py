"""Circles among things that wait for one another: each is found, at a cost that grows with the waits."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from syncline.fleet.pull.order.circles import Circles

Graph = Mapping[int, tuple[int, ...]]


def circle(graph: Graph, start: int) -> tuple[int, ...]:
    return Circles[int](lambda one: graph.get(one, ())).of(start)


@pytest.mark.parametrize(
    ("graph", "start", "found"),
    [
        ({1: (2,), 2: (3,)}, 1, ()),
        ({1: (1,)}, 1, (1,)),
        ({1: (2,), 2: (3,), 3: (1,)}, 1, (1, 2, 3)),
        ({1: (2,), 2: (3,), 3: (1,)}, 3, (3, 1, 2)),
        ({1: (2,), 2: (3,), 3: (2,)}, 1, ()),
        ({1: (2,), 2: (3,), 3: (2,)}, 3, (3, 2)),
    ],
    ids=["none", "itself", "three", "from another one", "only led to", "two"],
)
def test_the_circle_of_a_thing(graph: Graph, start: int, found: tuple[int, ...]) -> None:
    assert circle(graph, start) == found


GRAPHS = st.dictionaries(st.integers(0, 9), st.lists(st.integers(0, 9), max_size=4).map(tuple))


@given(GRAPHS, st.permutations(range(10)))
def test_a_circle_is_a_way_back_and_is_found_whenever_there_is_one(graph: Graph, order: list[int]) -> None:
    circles = Circles[int](lambda one: graph.get(one, ()))
    for start in order:
        seen, todo = set[int](), list(graph.get(start, ()))
        while todo:
            if (one := todo.pop()) not in seen:
                seen.add(one)
                todo += graph.get(one, ())
        found = circles.of(start)
        assert bool(found) is (start in seen)
        for one, following in zip(found, (*found[1:], *found[:1]), strict=True):
            assert following in graph[one]


def test_a_long_chain_is_followed_once_and_without_recursion() -> None:
    asked: list[int] = []

    def following(one: int) -> tuple[int, ...]:
        asked.append(one)
        return ((one + 1) % 5000,)

    circles = Circles(following)
    assert all(circles.of(one) for one in range(5000))
    assert len(asked) == 5000
