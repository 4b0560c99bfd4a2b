"""Completed works are deleted when their time has passed, and only then."""

from __future__ import annotations

from typing import Any

import pytest
from tests.fleet.rollouts import WORK_API, Hub, hub_with, template

from syncline.base.clock import format_time
from syncline.fleet.hub.replicasets.works import SET_LABEL
from syncline.fleet.hub.works.completed import completed_work_controller
from syncline.kube.objects import name_of

WORKS = f"{WORK_API}/v1/namespaces/c1/manifestworks"


@pytest.fixture(scope="module")
def hub() -> Hub:
    return hub_with(completed_work_controller(), clusters=["c1"])


def complete(hub: Hub, name: str, ttl: Any, *, status: str = "True", generation: int = 1, **labels: str) -> None:
    option = (
        {} if ttl is None else {"deleteOption": {"propagationPolicy": "Foreground", "ttlSecondsAfterFinished": ttl}}
    )
    version = {"apiVersion": "work.open-cluster-management.io/v1", "kind": "ManifestWork"}
    metadata = {"name": name, "labels": labels}
    hub.send("POST", WORKS, {**version, "metadata": metadata, "spec": {**template(), **option}})
    said = {"type": "Complete", "status": status, "reason": "R", "message": "", "observedGeneration": generation}
    conditions = [{**said, "lastTransitionTime": format_time(hub.clock.now())}]
    hub.send("PATCH", f"{WORKS}/{name}/status", {"status": {"conditions": conditions}})


def exists(hub: Hub, name: str) -> bool:
    return name in [name_of(one) for one in hub.get(WORKS)["items"]]


def test_a_completed_work_is_deleted_when_its_time_has_passed(hub: Hub) -> None:
    complete(hub, "timed", 60)
    hub.time.advance(55)
    assert exists(hub, "timed")
    hub.time.advance(10)
    assert not exists(hub, "timed")


def test_without_a_time_to_wait_it_is_deleted_at_once(hub: Hub) -> None:
    complete(hub, "now", 0)
    hub.time.advance(1)
    assert not exists(hub, "now")


@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("no-ttl", {"ttl": None}),
        ("not-complete", {"ttl": 1, "status": "False"}),
        ("of-a-set", {"ttl": 1, SET_LABEL: "default.foo"}),
        ("older-generation", {"ttl": 1, "generation": 7}),
        ("longer-than-time", {"ttl": 2**62}),
    ],
)
def test_other_works_stay(hub: Hub, name: str, given: dict[str, Any]) -> None:
    complete(hub, name, **given)
    hub.time.advance(7200)
    assert exists(hub, name)
