"""Forecasts of an order whose clusters take their time, or fail."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

import pytest
from tests.fleet.order.test_drawn import START, World, even

from syncline.fleet.pull.order.evidence import Facts
from syncline.fleet.pull.order.forecasting import GOOD, Forecast, Reactions, Said, forecast
from syncline.fleet.pull.order.model import Target

PROGRESSING = Facts(sync="Synced", health="Progressing", phase="Succeeded")
DEGRADED = Facts(sync="Synced", health="Degraded", health_message="no pod starts", phase="Succeeded")


def after(seconds: Mapping[str, float], facts: Facts = GOOD, updating: str | None = None) -> Reactions:
    """Clusters report progress at once, and ``facts`` after so many seconds."""

    def react(target: Target, _release: str, _moment: datetime) -> Sequence[Said]:
        wait = timedelta(seconds=seconds[target.cluster.name])
        return Said(timedelta(), PROGRESSING, updating), Said(wait, facts, "" if updating else None)

    return react


def times(found: Forecast) -> dict[str, tuple[float | None, float | None]]:
    def seconds(moment: datetime | None) -> float | None:
        return None if moment is None else (moment - START).total_seconds()

    return {one.standing.target.cluster.name: (seconds(one.begins), seconds(one.ends)) for one in found.ahead}


def three(waves: Sequence[int], healthy_for: int = 0) -> World:
    world = even(len(waves), lambda number: waves[number])
    for key, one in world.targets.items():
        asked = replace(one.asked, healthy_for=timedelta(seconds=healthy_for))
        world.targets[key] = replace(one, asked=asked)
    return world


def names(world: World) -> list[str]:
    return [one.cluster.name for one in world.targets.values()]


def test_a_wave_begins_when_the_slowest_cluster_of_the_one_before_has_proved_the_release() -> None:
    world = three([0, 0, 1])
    first, second, third = names(world)
    found = forecast(world.seen, START, after({first: 30, second: 90, third: 10}))
    assert times(found) == {first: (0, 30), second: (0, 90), third: (90, 100)}
    assert found.complete and found.ends == START + timedelta(seconds=100)


def test_how_long_health_must_last_counts_from_the_good_report() -> None:
    world = three([0, 1], healthy_for=60)
    first, second = names(world)
    assert times(forecast(world.seen, START, after({first: 30, second: 5}))) == {first: (0, 90), second: (90, 155)}


def test_a_cluster_on_which_the_release_fails_keeps_it_from_later_waves_and_is_named() -> None:
    world = three([0, 1])
    first, second = names(world)
    found = forecast(world.seen, START, after({first: 30, second: 5}, DEGRADED))
    assert times(found) == {first: (0, None), second: (None, None)}
    assert found.complete and found.ends is None
    assert "no pod starts" in found.ahead[1].waits[-1].why


def test_a_cluster_that_never_answers_has_no_end() -> None:
    world = three([0, 1])
    found = forecast(world.seen, START, lambda *_: ())
    assert [one.ends for one in found.ahead] == [None, None] and found.complete


def test_a_wave_waits_for_the_nodes_of_the_one_before_also_if_they_begin_after_the_application_is_healthy() -> None:
    world = three([0, 1])
    first, second = names(world)

    def react(target: Target, _release: str, _moment: datetime) -> Sequence[Said]:
        if target.cluster.name == second:
            return (Said(timedelta(seconds=5), GOOD),)
        nodes = ((0, ""), (6, "pool worker is updating"), (600, ""))
        return [Said(timedelta(seconds=at), GOOD, updating) for at, updating in nodes]

    found = forecast(world.seen, START, react)
    assert times(found) == {first: (0, 630), second: (630, 635)}


@pytest.mark.parametrize(("updating", "proved"), [(None, 40), ("pool worker is updating", 70)])
def test_pools_that_are_being_updated_are_those_that_the_cluster_names(updating: str | None, proved: int) -> None:
    world = three([0])
    key, one = next(iter(world.targets.items()))
    seen: list[str] = []

    def react(target: Target, release: str, moment: datetime) -> Sequence[Said]:
        seen.append(target.cluster.updating)
        return after({target.cluster.name: 40}, updating=updating)(target, release, moment)

    assert times(forecast(world.seen, START, react)) == {one.cluster.name: (0, proved)}
    assert seen == [""], "each cluster is asked once"
    assert key in world.targets


def test_each_of_a_hundred_clusters_is_asked_once() -> None:
    world = even(100, lambda number: number // 25)
    asked: list[str] = []

    def react(target: Target, _release: str, _moment: datetime) -> Sequence[Said]:
        asked.append(target.cluster.name)
        return (Said(timedelta(seconds=60), GOOD),)

    found = forecast(world.seen, START, react)
    assert found.ends == START + timedelta(seconds=240)
    assert sorted(asked) == sorted(names(world))
