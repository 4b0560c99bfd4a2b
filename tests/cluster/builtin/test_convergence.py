"""Each built-in controller gets there whatever request its process dies after, and whatever faults heal meanwhile."""

from __future__ import annotations

import os
from collections import Counter
from functools import cache

import pytest
from tests.cluster.builtin.stories import STORIES, a_world, calm_down, outline, simulate

from syncline.base.entropy import Entropy
from syncline.rehearsal.seams import CrashingTransport, FaultRates, FaultyTransport

EVERY = 1 if os.environ.get("SYNCLINE_LONG_TESTS") else 2
"""After every second request a death, or with SYNCLINE_LONG_TESTS after each."""
MOST_REQUESTS = 120
"""More than any story's controllers write; a story that needs more goes round in circles."""

SETTLES_S = 120
"""What a controller needs under faults until the next act: a story's acts look at what is there by then."""


@cache
def undisturbed(name: str) -> Counter[str]:
    found, _ = simulate(a_world(), STORIES[name])
    return found


@pytest.mark.parametrize("name", STORIES)
def test_the_controller_converges_whatever_request_its_death_follows(name: str) -> None:
    for after in range(1, MOST_REQUESTS, EVERY):
        world = a_world()
        world.restart(CrashingTransport(world.transport, after))
        found, deaths = simulate(world, STORIES[name])
        assert found == undisturbed(name), f"dead after request {after}"
        if not deaths:
            assert after > 1
            return
    raise AssertionError(f"{name}: still writing after {MOST_REQUESTS} requests")


@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("name", STORIES)
def test_the_controller_converges_after_conflicts_lost_watches_and_stale_lists(name: str, seed: int) -> None:
    world = a_world(seed=seed, shuffle=True)
    faulty = FaultyTransport(world.transport, world.clock, Entropy(f"{name}/{seed}"), FaultRates())
    world.restart(faulty)
    world.driver.add(faulty)
    for act in STORIES[name]:
        act(world)
        world.advance(SETTLES_S)
        world.make_ready("default")
        world.reap("default")
        world.advance(SETTLES_S)
    faulty.heal()
    world.advance(60)
    calm_down(world)
    assert outline(world) == undisturbed(name)
    assert sum(faulty.counts.values()) > 0, faulty.counts
