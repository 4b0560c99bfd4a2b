"""The controllers die after any request: the end is the same, every hook runs once, nothing is left behind
(behaviour 5 of the sync reference, issue: durable operations)."""

from __future__ import annotations

from typing import Any

import pytest
from tests.gitops.behaviours.play import APPS, JOBS, MAPS, Play, config, job, rows
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


def played(objects: tuple[Obj, ...], last: int) -> tuple[Play, Dying, dict[str, int]]:
    """A sync of everything, pruned and held, of which the controllers die once after ``last`` writes."""
    play = staged(config("old"), machine_config("99-motd", content="a"))
    play.sync()
    play.source.commit(*objects)
    play.refresh()
    seams: list[Dying] = []

    def wrap(inner: Transport) -> Transport:
        seams.append(Dying(inner, last))
        return seams[-1]

    made: dict[str, int] = {}

    def note(event: Any) -> None:
        key = event.stored.key
        if key.resource.endswith("jobs") and event.type == "ADDED":
            made[key.name] = made.get(key.name, 0) + 1

    play.world.core.store.subscribe(note)
    play.world.start_gitops(wrap)
    play.driver.settle()
    try:
        play.begin({"prune": True})
        play.finish()
        play.driver.advance(30)
    except Died:
        play.world.start_gitops()
        play.finish()
        play.driver.advance(30)
    return play, seams[0], made


def facts(play: Play, made: dict[str, int]) -> Any:
    state = play.state()
    kept = {
        name: (row["syncPhase"], row.get("hookPhase"))
        for name, row in rows(state).items()
        if row["status"] != "Pruned"  # what is gone cannot be read from what is there
    }
    pool = play.get(f"{POOLS}/worker") or {}
    left = (play.names(HOLDS), paused(play), annotations_of(pool), play.names(JOBS), play.maps())
    return state["phase"], state["message"], kept, left, made


HOOKS = (
    job("before", hook="PreSync", hook_delete_policy="HookSucceeded"),
    job("during", hook="Sync", spec={"ttlSecondsAfterFinished": 0}),
    job("after", hook="PostSync", hook_delete_policy="BeforeHookCreation"),
)


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
    for last in range(1, seam.count + 1, 3 if code else 1):
        play, _, again = played(objects, last)
        assert facts(play, again) == expected, f"died after write {last} of {seam.count}"


def test_a_deletion_ends_the_same_whenever_its_controller_dies() -> None:
    objects = (config("a"), config("b", sync_wave="1"), job("first", hook="PreDelete"), job("last", hook="PostDelete"))

    def end(last: int) -> tuple[Dying, Any]:
        play = Play(*objects)
        play.patch(f"{APPS}/app", {"metadata": {"finalizers": [*finalizers(play.app()), CASCADE]}})
        play.sync()
        play.driver.settle()
        made: list[str] = []
        play.world.core.store.subscribe(
            lambda e: (
                made.append(e.stored.key.name) if e.type == "ADDED" and e.stored.key.resource.endswith("jobs") else None
            )
        )
        seams: list[Dying] = []

        def wrap(inner: Transport) -> Transport:
            seams.append(Dying(inner, last))
            return seams[-1]

        play.world.start_gitops(wrap)
        play.driver.settle()
        try:
            play.world.send("DELETE", f"{APPS}/app")
            play.driver.advance(300)
        except Died:
            play.world.start_gitops()
            play.driver.advance(300)
        return seams[0], (play.get(f"{APPS}/app"), play.names(MAPS), play.names(JOBS), made)

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

    def of(play: Play) -> tuple[str, str, list[str]]:
        hook, applied = play.get(f"{JOBS}/before") or {}, play.get(f"{MAPS}/a") or {}
        return hook["metadata"]["labels"]["version"], next(iter(applied["data"].values())), play.maps()

    last, writes = 0, 1
    while last < min(writes, 9):
        last += 1
        play = Play(config("old"))
        play.sync()
        play.source.commit(*objects("x"))
        play.refresh()
        seams: list[Dying] = []

        def wrap(inner: Transport, last: int = last, seams: list[Dying] = seams) -> Transport:
            seams.append(Dying(inner, last))
            return seams[-1]

        play.world.start_gitops(wrap)
        play.driver.settle()
        try:
            play.begin({})
            play.finish()
        except Died:
            play.source.commit(*objects("y"))
            play.world.start_gitops()
            play.finish()
        writes = max(writes, seams[0].count + 1) if last == seams[0].count else writes
        ran, applied, maps = of(play)
        assert (ran, maps) == (applied, ["a", "old", f"only-{ran}"]), f"died after write {last}: {applied}"
        assert play.state()["phase"] == "Succeeded"
    assert last == 9
