"""The controllers of operators die at any moment, and their requests fail: what is installed is the same."""

from __future__ import annotations

import pytest
from tests.patterns.operating import Flaky, Operators, bundle, channel, package

ENTRIES = (
    {"name": "widgets.v1.0.0"},
    {"name": "widgets.v1.1.0", "replaces": "widgets.v1.0.0"},
)
VERSIONS = [bundle("widgets", f"1.{minor}.0", "Widget.v1.example.com") for minor in range(2)]
DOCUMENTS = (package("widgets"), channel("widgets", "stable", *ENTRIES), *VERSIONS)


def installed(world: Operators) -> None:
    """One version is up, each upgrade had one InstallPlan, and nothing of the old version is left."""
    assert world.phase("team", "widgets.v1.1.0") == "Succeeded"
    assert world.phase("team", "widgets.v1.0.0") == "absent"
    names = [one["spec"]["clusterServiceVersionNames"] for one in world.plans("team")]
    assert names == [["widgets.v1.0.0"], ["widgets.v1.1.0"]]
    assert {one["status"]["phase"] for one in world.plans("team")} == {"Complete"}
    assert world.subscription("team", "widgets")["status"]["state"] == "AtLatestKnown"


@pytest.mark.parametrize("every", [2, 3, 5, 7])
def test_an_upgrade_ends_the_same_when_each_nth_write_fails(every: int) -> None:
    world = Operators(*DOCUMENTS, wrap=lambda inner: Flaky(inner, every))
    world.namespace("team", "team")
    world.subscribe("team", "widgets", startingCSV="widgets.v1.0.0")
    world.time.advance(400)
    installed(world)


@pytest.mark.parametrize("seconds", [0.3, 1.1, 2.3])
def test_an_upgrade_ends_the_same_when_the_controllers_are_killed_again_and_again(seconds: float) -> None:
    world = Operators(*DOCUMENTS)
    world.namespace("team", "team")
    world.subscribe("team", "widgets", startingCSV="widgets.v1.0.0")
    for _ in range(12):
        world.time.advance(seconds)
        world.restart()
    world.time.advance(200)
    installed(world)
