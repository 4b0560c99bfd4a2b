"""The agent's control loop between two clusters: what it watches, and which cluster its actions reach."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime
from typing import Any

import pytest
from tests.fleet.world import Fleet, config_map

import syncline.assembly.fleet.agent as agents
from syncline.control.cache import Snapshot
from syncline.control.controller import Controller, Watch
from syncline.control.plan import Create, Done, Plan
from syncline.fleet.spoke.link import SPOKE, Link
from syncline.kube.kinds.manifestworks import MANIFEST_WORK
from syncline.kube.objects import GroupKind, Obj, ObjectRef, name_of

MAPS = GroupKind("", "ConfigMap")


def _copier(link: Link, _draw: object = None) -> tuple[Controller[Any], ...]:
    """Return a controller that makes a ConfigMap on the cluster for each work of the hub."""

    def observe(hub: Snapshot, ref: ObjectRef) -> tuple[Obj, bool] | None:
        work, spoke = hub.get(ref), link.spoke()
        if work is None or spoke is None:
            return None
        return work, spoke.get(ObjectRef("", "ConfigMap", "default", ref.name)) is not None

    def plan(seen: tuple[Obj, bool], _now: datetime) -> Plan:
        work, there = seen
        if there:
            return Plan(why="it is there")
        made = Create(config_map(name_of(work)), "it is missing")
        return Plan(((replace(made, cluster=SPOKE),),), Done(), "it is missing")

    def again(obj: Obj, _spoke: Snapshot) -> list[ObjectRef]:
        return [ObjectRef(*MANIFEST_WORK.group_kind, link.cluster, name_of(obj))]

    return (
        Controller(
            name="copier",
            kind=MANIFEST_WORK.group_kind,
            observe=observe,
            plan=plan,
            watches=(Watch(MAPS, again, cluster=SPOKE),),
            reaches=lambda _name, hub: [
                ObjectRef(*MANIFEST_WORK.group_kind, link.cluster, name_of(one))
                for one in hub.objects(MANIFEST_WORK.group_kind)
            ],
        ),
    )


@pytest.fixture
def fleet(monkeypatch: pytest.MonkeyPatch) -> Iterator[Fleet]:
    monkeypatch.setattr(agents, "agent_controllers", _copier)
    yield Fleet("c1", "c2")


def _map(name: str) -> str:
    return f"/api/v1/namespaces/default/configmaps/{name}"


def test_an_agent_sees_the_works_of_its_own_cluster_and_writes_there(fleet: Fleet) -> None:
    fleet.work("c1", "w", config_map("x"))
    fleet.time.advance(30)
    assert not fleet.members["c1"].absent(_map("w"))
    assert fleet.members["c2"].absent(_map("w"))
    assert fleet.hub.absent(_map("w"))


def test_what_is_deleted_on_the_cluster_wakes_the_work_on_the_hub(fleet: Fleet) -> None:
    fleet.work("c1", "w", config_map("x"))
    fleet.time.advance(30)
    fleet.members["c1"].send("DELETE", _map("w"))
    fleet.time.advance(1)
    assert not fleet.members["c1"].absent(_map("w"))


def test_an_agent_that_was_cut_off_from_its_hub_catches_up(fleet: Fleet) -> None:
    cable = fleet.members["c1"].hub_cable
    cable.cut()
    fleet.work("c1", "w", config_map("x"))
    fleet.time.advance(600)
    assert fleet.members["c1"].absent(_map("w"))
    cable.mend()
    fleet.time.advance(120)
    assert not fleet.members["c1"].absent(_map("w"))


def test_an_agent_that_starts_again_goes_on(fleet: Fleet) -> None:
    fleet.stop_agent("c1")
    fleet.work("c1", "w", config_map("x"))
    fleet.time.advance(60)
    assert fleet.members["c1"].absent(_map("w"))
    fleet.start_agent("c1")
    fleet.time.advance(60)
    assert not fleet.members["c1"].absent(_map("w"))
