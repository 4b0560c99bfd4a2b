"""Pages of decisions under churn: which are rewritten, and that no reader misses a cluster that stays selected."""

from __future__ import annotations

import math
import random
from collections.abc import Callable

import pytest
from tests.fleet.placements import Paged, paged

from syncline.fleet.hub.placement.ordering import layers


def seen(state: Paged) -> set[str]:
    return {cluster for one in state.values() for cluster in one}


def unseen(before: Paged, after: Paged) -> set[str]:
    """Clusters that stay selected and that some reader misses, whatever the order within a layer."""
    stay, missed, state = seen(before) & seen(after), set[str](), dict(before)
    for layer in layers(before, after):
        for order in (list(layer), list(layer)[::-1]):
            tried = dict(state)
            for name in order:
                tried[name] = layer[name]
                missed |= stay - seen(tried)
        state = tried
    assert {name: one for name, one in state.items() if one or name in after} == after
    return missed


@pytest.mark.parametrize("seed", range(60))
def test_a_reader_never_misses_a_cluster_that_stays_selected(seed: int) -> None:
    chance = random.Random(seed)
    clusters = [f"c{number:04}" for number in range(chance.randrange(1, 900))]
    churn = chance.choice([0.002, 0.01, 0.1, 0.5])
    had = [one for one in clusters if chance.random() < 0.8]
    has = [one for one in clusters if (one in had) != (chance.random() < churn)]
    assert unseen(paged(had), paged(has)) == set()


def test_nor_where_decision_groups_take_and_exchange_clusters() -> None:
    some, more = [f"a{number}" for number in range(150)], [f"b{number}" for number in range(150)]
    assert unseen(paged(some, more), paged(some[:20], [*some[20:], *more])) == set()
    assert unseen(paged(some, more), paged(more, some)) == set()


def test_one_cluster_that_joins_rewrites_its_page_and_those_after_it(
    figure: Callable[[str, str], None],
) -> None:
    clusters = [f"c{number:04}" for number in range(2_000)]
    rewritten = []
    for rank in range(0, 2_000, 37):
        without = clusters[:rank] + clusters[rank + 1 :]
        for before, after in ((paged(without), paged(clusters)), (paged(clusters), paged(without))):
            written = [name for layer in layers(before, after) for name in layer]
            first, last = rank // 100 + 1, math.ceil(2_000 / 100)
            assert {int(name.rpartition("-")[2]) for name in written} == set(range(first, last + 1))
            rewritten.append(len(written))
    text = f"one of 2,000 clusters joins or leaves: {sum(rewritten) / len(rewritten):.1f} of 20 pages are rewritten"
    figure("placement pages", f"{text} on average, {min(rewritten)} to {max(rewritten)}")
