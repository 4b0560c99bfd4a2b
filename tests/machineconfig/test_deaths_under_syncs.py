"""Syncs that change machine configs, with the real agents, whoever dies after whatever request (DECISIONS 28-30).

The repositories of ``examples/pool-pause`` (hook Jobs) and ``examples/pool-hold`` (no hooks), which succeed or fail,
again and again in one world: each time another value, each time a death at a later request. Some of them here, all of
them with ``SYNCLINE_EVERY_DEATH=1``.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.gitops.behaviours.sim import APPS, MERGE, Source
from tests.machineconfig.rendering import pool
from tests.machineconfig.room import HOLDS, POOLS, PoolWorld, dying_at_work
from tests.machineconfig.test_syncs_and_pools import APP, ENDED, target

from syncline.kube.objects import Obj, annotations_of, dig
from syncline.kube.yaml.loading import load_all
from syncline.machineconfig.names import CURRENT, STATE
from syncline.rehearsal.seams import Killed

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
SPACE = "tuning"
EVERY = os.environ.get("SYNCLINE_EVERY_DEATH") == "1"
MOST = 400
"""More requests than one sync and its roll-out take."""
SOME = {"gitops": (9, 21), "machine-config": (31, 71)}
"""Requests after which somebody dies, where not all of them are tried; fewer than anybody makes in a round."""


def manifests(example: str, number: int, *, failing: bool) -> list[Obj]:
    """What the repository of the example holds at its n-th commit: a file and a kernel argument change each time."""
    folders = [EXAMPLES / example / "repository"]
    folders += [EXAMPLES / example / "changes" / "failing"] if failing else []
    files = {file.name: file for folder in folders for file in sorted(folder.glob("*.yaml"))}
    found = [document.value for name in sorted(files) for document in load_all(files[name].read_bytes()).documents]
    for obj in found:
        if obj["kind"] == "MachineConfig" and "kernelArguments" in obj["spec"]:
            obj["spec"]["kernelArguments"] = [f"hugepages={number}"]
        elif obj["kind"] == "MachineConfig":
            (file,) = obj["spec"]["config"]["storage"]["files"]
            file["contents"]["source"] = f"data:,kernel.pid_max%20%3D%20{number}%0A"
        elif obj["kind"] == "Deployment":
            obj["spec"]["template"]["metadata"]["annotations"]["syncline.dev/ready-seconds"] = "12"
    return found


class Fleet:
    """Two workers with their agents, an Application, and one sync after the other."""

    def __init__(self, example: str, *, failing: bool) -> None:
        self._example, self._failing, self._number = example, failing, 0
        self.source = Source()
        self.one = one = PoolWorld({}, renders=True, machines=True, reader=self.source)  # type: ignore[arg-type]
        for name in ("master", "worker"):
            one.send("POST", POOLS, pool(name))
        one.driver.until(lambda: target(one) != "", limit_s=120)
        for index in range(2):
            one.add_node(f"worker-{index}", "worker", born="")
        one.driver.until(lambda: one.updated(target(one)) and one.counts()[0] == 2, limit_s=300)
        one.send("POST", "/api/v1/namespaces", {"metadata": {"name": SPACE}})
        destination = APP["destination"] | {"namespace": SPACE}  # type: ignore[operator]
        one.make(APPS, "Application", "app", APP | {"destination": destination})
        one.driver.advance(10)
        self.moved: list[str] = []
        one.core.store.subscribe(self._note)

    def _note(self, event: Any) -> None:
        """No node begins an update while the sync runs."""
        if event.stored.key.resource.split("/")[-1] == "nodes" and self._syncs:
            have = annotations_of(event.stored.obj)
            if have.get(STATE) == "Working":
                self.moved.append(event.stored.key.name)

    _syncs = False

    def _phase(self) -> str:
        app = self.one.get(f"{APPS}/app")
        return "" if app.get("operation") else str(dig(app, "status", "operationState", "phase", default=""))

    def lives(self, reached: Callable[[], bool], revived: Callable[[], None]) -> int:
        """Let time pass until something is so; whoever dies is started again. How often somebody died."""
        deaths = 0
        while True:
            try:
                self.one.driver.until(reached, limit_s=3600)
                return deaths
            except Killed:
                deaths += 1
                revived()

    def start_gitops(self, after: int = 0) -> None:
        one = self.one
        one.start_gitops(lambda inner: dying_at_work(inner, after) if after else inner)
        one.driver.add(one.room_actor)

    def start_room(self, after: int = 0) -> None:
        self.one.start_room(lambda inner: dying_at_work(inner, after) if after else inner)

    def sync(self, who: str, after: int) -> int:
        """Change, sync and roll out; how often ``who`` died. Raises AssertionError for what must not be."""
        one = self.one
        self._number += 1
        self.source.commit(*manifests(self._example, self._number, failing=self._failing))
        before, first = one.reboots(), target(one)
        start = self.start_gitops if who == "gitops" else self.start_room
        start(after)
        deaths = self.rests(1, start)
        self._syncs, self.moved = True, []
        one.send("PATCH", f"{APPS}/app", {"operation": {"sync": {}}, "status": {"operationState": None}}, MERGE)
        deaths += self.lives(lambda: self._phase() in ENDED, start)
        self._syncs = False
        told = dig(one.get(f"{APPS}/app"), "status", "operationState")
        assert told["phase"] == ("Failed" if self._failing else "Succeeded"), told["message"]
        assert not self.moved, f"{self.moved} moved under the sync"
        deaths += self.lives(lambda: target(one) != first and one.updated(target(one)), start)
        deaths += self.rests(120, start)
        assert {name: count - before[name] for name, count in one.reboots().items()} == dict.fromkeys(before, 1)
        for name, node in one.nodes().items():
            have = annotations_of(node)
            assert (have[CURRENT], have[STATE]) == (target(one), "Done"), name
            assert not dig(node, "spec", "unschedulable"), f"{name} is left cordoned"
        assert one.get(HOLDS)["items"] == []
        assert dig(one.get(f"{POOLS}/worker"), "spec", "paused") is not True
        start()
        return deaths

    def rests(self, seconds: float, revived: Callable[[], None]) -> int:
        end, deaths = self.one.clock.now().timestamp() + seconds, 0
        while (left := end - self.one.clock.now().timestamp()) > 0:
            try:
                self.one.driver.advance(left)
            except Killed:
                deaths += 1
                revived()
        return deaths


@pytest.mark.parametrize("failing", [False, True], ids=["succeeds", "fails"])
@pytest.mark.parametrize("example", ["pool-pause", "pool-hold"])
def test_whoever_dies_under_a_sync_each_node_reboots_once_and_no_pool_is_left_paused_or_held(
    example: str, failing: bool, figure: Callable[[str, str], None]
) -> None:
    fleet = Fleet(example, failing=failing)
    for who, some in SOME.items():
        tried = 0
        for after in range(1, MOST) if EVERY else some:
            try:
                died = fleet.sync(who, after)
            except AssertionError as error:
                raise AssertionError(f"{who} dead after request {after}: {error}") from error
            if not died:
                break
            tried += 1
        assert tried == (after - 1 if EVERY else len(some)), f"{who} died {tried} times"
        kind = "fails" if failing else "succeeds"
        figure("deaths", f"{example}, a sync that {kind}: {who} died after {tried} requests")
