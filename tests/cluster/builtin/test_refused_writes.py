"""A status that could not be written is written as soon as the server takes it, whatever else its plan waits for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
from tests.cluster.builtin.stories import APPS, BATCH, PODS
from tests.cluster.world import READY, World, deployment, job
from tests.refusing import Refusing

from syncline.base.clock import format_time
from syncline.kube.objects import name_of

REFUSALS = 4
SOON_S = 8.0
"""0.2, 0.4, 0.8 and 1.6 s after refusals, and what it takes to see a change."""


@dataclass(frozen=True)
class Case:
    """``path`` says of itself what ``says`` reads, once ``act`` has taken place."""

    path: str
    begin: Callable[[World], Any]
    act: Callable[[World], Any]
    says: Callable[[dict[str, Any]], Any]
    wanted: Any


def _one_is_ready(world: World) -> None:
    status = {"phase": "Running", "conditions": [READY | {"lastTransitionTime": format_time(world.clock.now())}]}
    world.pod_status("default", name_of(world.items(PODS)[0]), status)


def _an_hourly_job_runs(world: World) -> None:
    spec = {"schedule": "30 * * * *", "jobTemplate": {"spec": job()["spec"]}}
    world.post(
        f"{BATCH}/cronjobs", {"apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": "w"}, "spec": spec}
    )
    world.advance(1860)
    _one_is_ready(world)


def _its_job_ends(world: World) -> None:
    world.pod_status("default", name_of(world.items(PODS)[0]), {"phase": "Succeeded"})


CASES = {
    "a rollout that may miss its deadline": Case(
        f"{APPS}/deployments/w",
        lambda world: world.post(f"{APPS}/deployments", deployment("w")),
        _one_is_ready,
        lambda obj: obj["status"].get("readyReplicas"),
        1,
    ),
    "a Job with a day to end in": Case(
        f"{BATCH}/jobs/w",
        lambda world: world.post(f"{BATCH}/jobs", job("w", activeDeadlineSeconds=86_400)),
        _one_is_ready,
        lambda obj: obj["status"].get("ready"),
        1,
    ),
    "a CronJob whose next time is in half an hour": Case(
        f"{BATCH}/cronjobs/w",
        _an_hourly_job_runs,
        _its_job_ends,
        lambda obj: (obj["status"].get("active"), "lastSuccessfulTime" in obj["status"]),
        (None, True),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_a_status_is_written_soon_after_the_server_takes_it_again(name: str) -> None:
    case, world = CASES[name], World()
    failing = Refusing(world.transport, f"{case.path}/status", 0)
    world.restart(failing)
    for node in ("n1", "n2"):
        world.node(node)
    case.begin(world)
    world.advance(60)
    failing.left = REFUSALS
    case.act(world)
    world.driver.until(lambda: failing.left < REFUSALS, limit_s=120)
    world.advance(SOON_S)
    assert failing.left == 0
    assert case.says(world.get(case.path)) == case.wanted
