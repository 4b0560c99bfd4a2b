"""The controllers die after any request: the end is the same, every hook runs once, nothing is left behind
(behaviour 5 of the sync reference, issue: durable operations)."""

from __future__ import annotations

import os
from typing import Any

import pytest
from tests.gitops.behaviours.sim import APPS, JOBS, MAPS, Simulation, config, job, rows
from tests.gitops.behaviours.test_deletion import CASCADE
from tests.gitops.behaviours.test_holds import HOLDS, POOLS, machine_config, paused, staged

from syncline.kube.client import Request, Response, Transport
from syncline.kube.objects import Obj, annotations_of, finalizers


class Died(BaseException):
    """The process is gone: nothing in it gets to see this."""


class Dying:
    """A transport that takes the process with it after ``last`` requests that change something; counts them."""

    def __init__(self, inner: Transport, last: int) -> None:
        self._inner, self.left, self.count = inner, last, 0

    def send(self, request: Request) -> Response:
        answer = self._inner.send(request)
        if request.method != "GET":
            self.count += 1
            if self.count == self.left:
                raise Died
        return answer


def played(objects: tuple[Obj, ...], last: int) -> tuple[Simulation, Dying, dict[str, int]]:
    """A sync of everything, pruned and held, of which the controllers die once after ``last`` writes."""
    sim = staged(config("old"), machine_config("99-motd", content="a"))
    sim.sync()
    sim.source.commit(*objects)
    sim.refresh()
    seams: list[Dying] = []

    def wrap(inner: Transport) -> Transport:
        seams.append(Dying(inner, last))
        return seams[-1]

    made: dict[str, int] = {}

    def note(event: Any) -> None:
        key = event.stored.key
        if key.resource.endswith("jobs") and event.type == "ADDED":
            made[key.name] = made.get(key.name, 0) + 1

    sim.world.core.store.subscribe(note)
    sim.world.start_gitops(wrap)
    sim.driver.settle()
    try:
        sim.begin({"prune": True})
        sim.finish()
        sim.driver.advance(30)
    except Died:
        sim.world.start_gitops()
        sim.finish()
        sim.driver.advance(30)
    return sim, seams[0], made


def facts(sim: Simulation, made: dict[str, int]) -> Any:
    state = sim.state()
    kept = {
        name: (row["syncPhase"], row.get("hookPhase"))
        for name, row in rows(state).items()
        if row["status"] != "Pruned"  # what is gone cannot be read from what is there
    }
    pool = sim.get(f"{POOLS}/worker") or {}
    left = (sim.names(HOLDS), paused(sim), annotations_of(pool), sim.names(JOBS), sim.maps())
    return state["phase"], state["message"], kept, left, made


HOOKS = (
    job("before", hook="PreSync", hook_delete_policy="HookSucceeded"),
    job("during", hook="Sync", spec={"ttlSecondsAfterFinished": 0}),
    job("after", hook="PostSync", hook_delete_policy="BeforeHookCreation"),
)


EVERY = 1 if os.environ.get("SYNCLINE_LONG_TESTS") else 3
"""After every third write a death, or with SYNCLINE_LONG_TESTS after each."""


@pytest.mark.parametrize("code", [0, 1], ids=["succeeding", "failing"])
def test_an_operation_ends_the_same_whenever_its_controller_dies_s005(code: int) -> None:
    objects = (
        *HOOKS,
        job("last", code=code, hook="PostSync"),
        job("rescue", hook="SyncFail"),
        config("a", sync_wave="-1"),
        machine_config("99-motd", content="b"),
        machine_config("98-more", wave=2),
    )
    calm, seam, made = played(objects, 0)
    expected = facts(calm, made)
    assert expected[0] == ("Failed" if code else "Succeeded"), expected
    assert expected[3][:3] == ([], False, {}), "no Hold is left, no pool is paused, no note stays"
    assert set(made.values()) == {1}, made
    assert seam.count > 20
    for last in range(1, seam.count + 1, EVERY):
        sim, _, again = played(objects, last)
        assert facts(sim, again) == expected, f"died after write {last} of {seam.count}"


def test_a_deletion_ends_the_same_whenever_its_controller_dies() -> None:
    objects = (config("a"), config("b", sync_wave="1"), job("first", hook="PreDelete"), job("last", hook="PostDelete"))

    def end(last: int) -> tuple[Dying, Any]:
        sim = Simulation(*objects)
        sim.patch(f"{APPS}/app", {"metadata": {"finalizers": [*finalizers(sim.app()), CASCADE]}})
        sim.sync()
        sim.driver.settle()
        made: list[str] = []
        sim.world.core.store.subscribe(
            lambda e: (
                made.append(e.stored.key.name) if e.type == "ADDED" and e.stored.key.resource.endswith("jobs") else None
            )
        )
        seams: list[Dying] = []

        def wrap(inner: Transport) -> Transport:
            seams.append(Dying(inner, last))
            return seams[-1]

        sim.world.start_gitops(wrap)
        sim.driver.settle()
        try:
            sim.world.send("DELETE", f"{APPS}/app")
            sim.driver.advance(300)
        except Died:
            sim.world.start_gitops()
            sim.driver.advance(300)
        return seams[0], (sim.get(f"{APPS}/app"), sim.names(MAPS), sim.names(JOBS), made)

    seam, expected = end(0)
    assert expected == (None, ["kube-root-ca.crt"], ["last"], ["first", "last"])
    for last in range(1, seam.count + 1):
        assert end(last)[1] == expected, f"died after write {last} of {seam.count}"


def test_an_operation_keeps_its_commit_when_its_controller_dies_and_the_branch_moves() -> None:
    """What ran before an apply is of the commit that is applied, also if nobody had recorded which one it was."""

    def objects(version: str) -> tuple[Obj, ...]:
        first = job("before", hook="PreSync")
        first["metadata"]["labels"] = {"version": version}
        return first, config("a", version), config(f"only-{version}")

    def of(sim: Simulation) -> tuple[str, str, list[str]]:
        hook, applied = sim.get(f"{JOBS}/before") or {}, sim.get(f"{MAPS}/a") or {}
        return hook["metadata"]["labels"]["version"], next(iter(applied["data"].values())), sim.maps()

    last, writes = 0, 1
    while last < min(writes, 9):
        last += 1
        sim = Simulation(config("old"))
        sim.sync()
        sim.source.commit(*objects("x"))
        sim.refresh()
        seams: list[Dying] = []

        def wrap(inner: Transport, last: int = last, seams: list[Dying] = seams) -> Transport:
            seams.append(Dying(inner, last))
            return seams[-1]

        sim.world.start_gitops(wrap)
        sim.driver.settle()
        try:
            sim.begin({})
            sim.finish()
        except Died:
            sim.source.commit(*objects("y"))
            sim.world.start_gitops()
            sim.finish()
        writes = max(writes, seams[0].count + 1) if last == seams[0].count else writes
        ran, applied, maps = of(sim)
        assert (ran, maps) == (applied, ["a", "old", f"only-{ran}"]), f"died after write {last}: {applied}"
        assert sim.state()["phase"] == "Succeeded"
    assert last == 9
