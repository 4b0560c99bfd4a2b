"""Conflicts, lost, late and repeated events, lists of before: a set ends as it does undisturbed, and nothing goes that
should stay."""

from __future__ import annotations

import pytest
from tests.appset.stage import Repository, Stage
from tests.appset.world.lives import by_directory, commits, configs, rolled

from syncline.base.entropy import Entropy
from syncline.kube.client import Transport
from syncline.rehearsal.seams import FaultyTransport

QUIET_S = 400.0


def disturbed(one: Stage, seed: int) -> FaultyTransport:
    """Start controllers whose requests and watches fail by chance."""
    seams: list[FaultyTransport] = []

    def wrap(inner: Transport) -> Transport:
        seams.append(FaultyTransport(inner, one.world.clock, Entropy(seed)))
        return seams[-1]

    one.world.start_gitops(wrap)
    one.driver.actors.append(seams[-1])
    return seams[-1]


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_a_set_that_grows_and_shrinks_under_faults_ends_as_it_should(seed: int) -> None:
    one = Stage(Repository("a", "b"))
    one.create(by_directory())
    seam = disturbed(one, seed)
    gone: set[str] = set()
    one.world.core.store.subscribe(
        lambda event: gone.add(event.stored.key.name) if event.type == "DELETED" and _is_app(event) else None
    )
    for directories in (("a", "c"), ("a", "c", "d")):
        one.repository.directories = directories
        one.driver.advance(400)
    seam.heal()
    one.driver.advance(QUIET_S)
    assert sorted(one.apps()) == ["a", "c", "d"] and configs(one) == ["a", "c", "d"]
    assert gone == {"b"} and one.condition("ErrorOccurred")["status"] == "False"


@pytest.mark.parametrize("seed", [1, 2])
def test_a_rollout_under_faults_reaches_its_end(seed: int) -> None:
    one = Stage(Repository(), enable_progressive_syncs="true")
    one.create(rolled(annotations={"syncline.dev/rollout-evidence": "strict"}))
    one.driver.advance(60)
    seam = disturbed(one, seed)
    one.repository.commit = 2
    one.driver.advance(600)
    seam.heal()
    one.driver.advance(QUIET_S)
    assert commits(one) == {"d1": "2", "d2": "2", "p1": "2"}
    assert one.condition("RolloutProgressing")["status"] == "False"


def _is_app(event: object) -> bool:
    return "applications" in event.stored.key.resource  # type: ignore[attr-defined,no-any-return]
