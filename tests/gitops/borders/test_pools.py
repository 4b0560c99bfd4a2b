"""Pools belong to nobody: a project holds and resumes those that it names, whatever a tenant writes."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.gitops.behaviours.sim import APPS, PROJECTS, Simulation, config, job
from tests.gitops.behaviours.test_extensions import annotate
from tests.gitops.behaviours.test_holds import EVENTS, HOLDS, POOLS, machine_config, paused, slow, staged
from tests.gitops.borders.test_conditions import everything_said, project

from syncline.argo.project.references import POOLS as ALLOWED
from syncline.kube.kinds.holds import pause_writer
from syncline.kube.objects import Obj

WIDE: Obj = {
    "destinations": [{"server": "*", "namespace": "*"}],
    "clusterResourceWhitelist": [{"group": "*", "kind": "*"}],
}
MASTER = machine_config("m", role="master")


def tenant(*objects: Obj, pools: str | None = None) -> Simulation:
    sim = staged(*objects)
    project(sim, annotations={} if pools is None else {ALLOWED: pools}, **WIDE)
    sim.patch(f"{APPS}/app", {"spec": {"project": "tenant"}})
    sim.refresh()
    return sim


def holds(sim: Simulation) -> list[list[str]]:
    return [one["spec"]["pools"] for one in sim.world.send("GET", HOLDS)["items"]]


@pytest.mark.parametrize(
    ("pools", "held"),
    [(None, []), ("", []), ("master", [["master"]]), ("work*", [["worker"]]), ("*", [["master", "worker"]])],
)
def test_a_sync_holds_what_it_changes_as_far_as_the_project_names_it(pools: str | None, held: list[Any]) -> None:
    sim = tenant(machine_config("a"), MASTER, slow(), pools=pools)
    sim.begin()
    sim.driver.advance(10)
    assert holds(sim) == held
    assert [paused(sim), paused(sim, "master")] == [any(name in one for one in held) for name in ("worker", "master")]
    assert sim.finish()["phase"] == "Succeeded", "what is not held is synced nevertheless"


def test_a_pool_that_is_not_held_is_named_with_the_rule() -> None:
    sim = tenant(machine_config("a"), slow())
    text = sim.conditions()["PoolNotHeldWarning"]
    assert "do not hold pool worker" in text and "project tenant may not hold pool worker" in text and ALLOWED in text
    assert "PoolNotHeldWarning" in everything_said(sim)
    sim.patch(f"{PROJECTS}/tenant", {"metadata": {"annotations": {ALLOWED: "worker"}}})
    sim.driver.advance(10)
    assert "PoolNotHeldWarning" not in sim.conditions()


@pytest.mark.parametrize("asked", ["worker", "master, worker", "nosuch"])
def test_a_pool_that_an_application_asks_for_is_refused_whether_it_exists(asked: str) -> None:
    sim = tenant(config("a"), slow(), pools="master")
    annotate(sim, hold_pools=asked)
    state = sim.sync(limit_s=60)
    wanted = asked.rpartition(" ")[2]
    assert (state["phase"], sim.maps(), holds(sim)) == ("Error", [], [])
    assert (
        f"syncline.dev/hold-pools: project tenant may not hold pool {wanted}: its annotation {ALLOWED}"
        in state["message"]
    )


def test_all_pools_are_all_that_the_project_names() -> None:
    sim = tenant(config("a"), slow(), pools="master")
    annotate(sim, hold_pools="all")
    sim.begin()
    sim.driver.advance(10)
    assert holds(sim) == [["master"]]


def test_an_application_names_at_most_so_many_pools() -> None:
    sim = tenant(config("a"), pools="*")
    annotate(sim, hold_pools=",".join(f"p{n}" for n in range(200)))
    assert "found 200 pools; at most 100" in sim.sync(limit_s=60)["message"]


@pytest.mark.parametrize(("pools", "resumed"), [(None, False), ("master", False), ("worker", True)])
def test_notes_that_a_tenant_plants_resume_no_pool_of_others(pools: str | None, resumed: bool) -> None:
    sim = tenant(config("a"), pools=pools)
    sim.patch(f"{POOLS}/worker", {"spec": {"paused": True}})
    _, at = pause_writer(sim.get(f"{POOLS}/worker") or {})
    annotate(sim, pools_left_paused=json.dumps({"worker": at}), pools_at_start=json.dumps({"worker": False}))
    sim.driver.advance(60)
    assert paused(sim) is not resumed
    events = [e["reason"] for e in sim.world.send("GET", EVENTS)["items"]]
    assert ("PoolResumed" in events) is resumed


@pytest.mark.parametrize(
    "noted", ["[", "[1]", "1", '{"worker": 1}', '{"worker": null}', '{"worker": ["x"]}', "[" * 50_000]
)
def test_notes_that_cannot_be_read_stop_nothing(noted: str) -> None:
    sim = tenant(config("a"), pools="*")
    sim.patch(f"{POOLS}/worker", {"spec": {"paused": True}})
    annotate(sim, pools_left_paused=noted, pools_at_start=noted, hooks_run=noted)
    assert sim.sync(limit_s=60)["phase"] == "Succeeded"
    assert paused(sim)


def test_an_operation_without_end_gives_its_hold_back_and_goes_on() -> None:
    sim = tenant(machine_config("a"), job("long", seconds=10 * 3600, hook="PostSync"), pools="worker")
    sim.begin()
    sim.driver.advance(5 * 3600)
    assert holds(sim) == [["worker"]]
    sim.driver.advance(2 * 3600)
    assert (holds(sim), paused(sim)) == ([], False)
    assert "HoldGivenBack" in [e["reason"] for e in sim.world.send("GET", EVENTS)["items"]]
    assert sim.state()["phase"] == "Running", "the sync itself goes on"
