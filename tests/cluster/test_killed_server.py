"""A server killed with SIGKILL while many write and watch loses nothing that it acknowledged, tears nothing, never
gives a revision twice, and its watches resume or hear 410: whenever it dies, while it commits, tidies up or starts.

``SYNCLINE_KILLS=500`` makes it as many lives instead of the few of a usual run.
"""

from __future__ import annotations

import contextlib
import http.client
import os
import random
import signal
import ssl
import threading
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from bench.processes import Running, free_port
from tests.cluster.faulty_files import available
from tests.cluster.killable import Nursery
from tests.cluster.links import APPLY, BROKEN, LONGEST_S, MERGE, Link, Watching
from tests.conftest import Figure

LIVES = int(os.environ.get("SYNCLINE_KILLS", "21"))
MOVING = 10
"""The life that ends as its log is moved to the file: otherwise chance decides whether any does."""
WRITERS = 6
NAMES = 6
"""Of each writer: it goes round, so that what is there stays small however long the test runs."""
START_S = 300.0
CONFIGMAPS = "/api/v1/namespaces/default/configmaps"
SELECTED = "labelSelector=of%3Dthis-test"


def _body(name: str, n: int) -> dict[str, Any]:
    metadata = {"name": name, "labels": {"of": "this-test"}}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": _data(n)}


def _data(n: int) -> dict[str, str]:
    """``text`` repeats ``n`` over several pages: half of one write and half of another would show."""
    return {"n": str(n), "text": f"{n}," * 900}


@dataclass
class Writer:
    """Creates, patches, applies and deletes objects of its own. ``state`` is what was acknowledged: name → (n,
    resourceVersion), None where it was deleted. ``asked`` is the request that was never answered."""

    name: str
    chance: random.Random
    state: dict[str, tuple[int, str] | None] = field(default_factory=dict)
    asked: tuple[str, int | None] | None = None
    revisions: list[int] = field(default_factory=list)
    count: int = 0

    def run(self, server: Running, acknowledged: threading.Semaphore) -> None:
        try:
            link = Link(server)
            while True:
                self._write(link)
                acknowledged.release()
        except BROKEN:
            return  # the server was killed: the request in hand stays unanswered

    def _write(self, link: Link) -> None:
        self.count += 1
        name, n = f"{self.name}-{self.count % NAMES}", self.count
        path = f"{CONFIGMAPS}/{name}"
        if self.state.get(name) is None:
            verb = self.chance.choice(("create", "apply"))
        else:
            verb = self.chance.choice(("patch", "patch", "apply", "delete"))
        self.asked = name, None if verb == "delete" else n
        match verb:
            case "create":
                status, answer = link.send("POST", CONFIGMAPS, _body(name, n))
            case "patch":
                status, answer = link.send("PATCH", path, {"data": _data(n)}, MERGE)
            case "apply":
                status, answer = link.send("PATCH", f"{path}?fieldManager=m&force=true", _body(name, n), APPLY)
            case _:
                status, answer = link.send("DELETE", path)
        if status == 500 and "the write is not on disk" in answer["message"]:
            raise ConnectionError  # its last words
        assert status in (200, 201), answer
        self.asked = None
        if verb == "delete":
            self.state[name] = None
        else:
            self.state[name] = n, answer["metadata"]["resourceVersion"]
            self.revisions.append(int(answer["metadata"]["resourceVersion"]))

    def expect(self, found: dict[str, tuple[int, str]]) -> None:
        """What was acknowledged is there as it was; what was in hand is there as before or as asked."""
        for name, state in self.state.items():
            if self.asked is not None and self.asked[0] == name:
                n = found[name][0] if name in found else None
                assert n in (self.asked[1], state[0] if state else None), (
                    f"{name}: {n}, asked {self.asked}, was {state}"
                )
            else:
                assert found.get(name) == state, f"{name} was acknowledged as {state}, and is {found.get(name)}"
        self.asked = None
        ours = {f"{self.name}-{number}" for number in range(NAMES)}
        self.state = {name: found.get(name) for name in sorted(ours)}
        self.revisions = []


@dataclass
class World:
    """Lives of one server on one directory."""

    folder: Path
    nursery: Nursery
    port: int
    writers: list[Writer]
    newest: int = 0
    """No revision up to here may be given again."""
    counts: Counter[str] = field(default_factory=Counter)

    @property
    def server(self) -> Running:
        return Running(0, self.port, 0.0, self.folder / "kubeconfig")

    def start(self, kill_at: int, sync_fails_at: int = 0, kill_in: str = "") -> int:
        data, config = str(self.folder / "data"), str(self.folder / "kubeconfig")
        address = ("--listen", f"127.0.0.1:{self.port}", "--kubeconfig-out", config)
        options = ("--data", data, "--controllers", "none")
        faults = {"kill_at": kill_at, "sync_fails_at": sync_fails_at}
        return self.nursery.start("apiserver", *address, *options, kill_in=kill_in, **faults)

    def ready(self, pid: int) -> bool:
        """False when it died before."""
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        begun = time.perf_counter()
        while time.perf_counter() - begun < START_S:
            with contextlib.suppress(*BROKEN):
                link = http.client.HTTPSConnection("127.0.0.1", self.port, context=context, timeout=5)
                link.request("GET", "/readyz")
                if link.getresponse().status == 200 and (self.folder / "kubeconfig").exists():
                    return True
            if not _alive(pid):
                return False
            time.sleep(0.005)
        raise AssertionError(f"no answer in {START_S} s: {(self.folder / 'output').read_text()}")

    def looked_at(self, pid: int) -> bool:
        """Ready, and everything is there; False when it died before, which one that is to die may do at any step."""
        if not self.ready(pid):
            return False
        try:
            self.expect_everything()
        except TimeoutError:
            raise  # it lives and does not answer
        except BROKEN:
            return False
        return True

    def expect_everything(self) -> None:
        link = Link(self.server)
        status, listed = link.send("GET", f"{CONFIGMAPS}?{SELECTED}")
        assert status == 200, listed
        found = {}
        for item in listed["items"]:
            n = int(item["data"]["n"])
            assert item["data"] == _data(n), "torn"
            found[item["metadata"]["name"]] = n, item["metadata"]["resourceVersion"]
        told = [revision for writer in self.writers for revision in writer.revisions]
        self.counts["acknowledged writes"] += len(told)
        now = int(listed["metadata"]["resourceVersion"])
        assert now >= max(told, default=0)
        for writer in self.writers:
            writer.expect(found)
        self.newest = max(self.newest, now)

    def expect_resumed_or_gone(self, observed: int) -> None:
        """A watch from the last revision that somebody saw tells every later one, or says 410 at once."""
        link = Link(self.server)
        events = link.lines(f"/api/v1/configmaps?watch=true&resourceVersion={observed}&timeoutSeconds=1")
        if observed < self.newest:
            assert events and events[0]["type"] == "ERROR" and events[0]["object"]["code"] == 410
            self.counts["watches told 410"] += 1
        else:
            assert events == []
            self.counts["watches resumed"] += 1

    def work_until_death(self, pid: int, kill_after: int, code: int = -signal.SIGKILL) -> int:
        """Everybody writes and two watch; SIGKILL after so many acknowledged writes (0: it dies by itself). Returns
        the newest revision that anybody was told."""
        acknowledged = threading.Semaphore(0)
        before = self.newest
        try:
            watches = [Watching(self.server, f"{CONFIGMAPS}?watch=true&resourceVersion={before}") for _ in range(2)]
        except BROKEN:
            watches = []
        threads = [threading.Thread(target=writer.run, args=(self.server, acknowledged)) for writer in self.writers]
        for thread in threads:
            thread.start()
        for _ in range(kill_after):
            assert acknowledged.acquire(timeout=LONGEST_S), f"no write was acknowledged in {LONGEST_S} s"
        if kill_after:
            os.kill(pid, signal.SIGKILL)
        for thread in threads:
            thread.join(LONGEST_S)
        assert not any(thread.is_alive() for thread in threads), f"somebody still writes {LONGEST_S} s after the end"
        assert self.nursery.ended() == code, (self.folder / "output").read_text()
        told = [revision for writer in self.writers for revision in writer.revisions]
        assert len(told) == len(set(told)) and min(told, default=before + 1) > before, "revisions never repeat"
        observed = [self._expect_in_order(watch.join(), before) for watch in watches]
        self.counts["watch events"] += sum(len(watch.events) for watch in watches)
        return max([*observed, *told, before])

    def _expect_in_order(self, events: list[Any], after: int) -> int:
        for event in events:
            assert event["type"] != "ERROR", event
            revision = int(event["object"]["metadata"]["resourceVersion"])
            assert revision > after, "a watch goes on from where it was"
            after = revision
        return after


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


@contextlib.contextmanager
def _nursery(folder: Path) -> Iterator[Nursery]:
    nursery = Nursery.begun(folder)
    try:
        yield nursery
    finally:
        nursery.close()


def test_nothing_acknowledged_is_lost_and_no_revision_repeats(tmp_path: Path, figure: Figure) -> None:
    chance = random.Random(7)
    writers = [Writer(f"w{number}", random.Random(number)) for number in range(WRITERS)]
    with _nursery(tmp_path) as nursery:
        world = World(tmp_path, nursery, free_port(), writers)
        for life in range(LIVES):
            how = ("under load", "at a step of its files", "while it starts")[life % 3] if available() else "under load"
            world.counts[f"killed {how}"] += 1
            steps = {"at a step of its files": chance.randint(60, 1500), "while it starts": chance.randint(1, 40)}
            if life == MOVING:
                pid = world.start(1, kill_in="cluster.db")
            else:
                pid = world.start(steps.get(how, 0))
            if world.looked_at(pid):
                observed = world.work_until_death(pid, chance.randint(20, 150) if how == "under load" else 0)
            else:
                observed = 0
                assert nursery.ended() == -signal.SIGKILL, (tmp_path / "output").read_text()
            if how == "under load":
                for log in (tmp_path / "data").glob("*-wal"):
                    with log.open("ab") as torn:  # the power went in the middle of a commit that nobody was told of
                        torn.write(chance.randbytes(2500))
            world.newest = max(world.newest, observed)
            if observed and life % 9 in (0, 4):
                _expect_watches(world, observed)
        pid = world.start(0)
        assert world.ready(pid)
        world.expect_everything()
        os.kill(pid, signal.SIGTERM)
        assert nursery.ended() == 0
    deaths = Counter(
        line for line in (tmp_path / "output").read_text().splitlines() if line.startswith("killed before")
    )
    assert not available() or LIVES < 20 or deaths["killed before the write of cluster.db"], (
        "also while the log is moved"
    )
    kills = ", ".join(f"{count} {what}" for what, count in sorted(world.counts.items()))
    figure(f"SIGKILL, {LIVES} lives", f"{kills}; 0 lost, 0 torn, 0 revisions given twice")
    if deaths:
        figure("– where they died", ", ".join(f"{count} {what[7:]}" for what, count in sorted(deaths.items())))


def _live_in_peace(world: World) -> None:
    pid = world.start(0)
    assert world.ready(pid)
    os.kill(pid, signal.SIGTERM)
    assert world.nursery.ended() == 0


def _expect_watches(world: World, observed: int) -> None:
    """In a life of its own, which is killed as well."""
    pid = world.start(0)
    assert world.ready(pid)
    world.expect_everything()
    world.expect_resumed_or_gone(observed)
    os.kill(pid, signal.SIGKILL)
    assert world.nursery.ended() == -signal.SIGKILL
    world.counts["killed at rest"] += 1


@pytest.mark.skipif(not available(), reason="SQLite is built into this Python: no layer fits below it")
def test_a_server_whose_sync_fails_acknowledges_nothing_more_and_stops_with_a_sentence(
    tmp_path: Path, figure: Figure
) -> None:
    writers = [Writer(f"w{number}", random.Random(number)) for number in range(WRITERS)]
    with _nursery(tmp_path) as nursery:
        world = World(tmp_path, nursery, free_port(), writers)
        _live_in_peace(world)  # the first life alone syncs many times before it is ready
        for number in (60, 90, 120):
            pid = world.start(0, sync_fails_at=number)
            if world.looked_at(pid):
                world.newest = max(world.newest, world.work_until_death(pid, 0, code=1))
            else:
                assert nursery.ended() == 1
        pid = world.start(0)
        assert world.ready(pid)
        world.expect_everything()
        os.kill(pid, signal.SIGTERM)
        assert nursery.ended() == 0
    said = [line for line in (tmp_path / "output").read_text().splitlines() if line.startswith("error: ")]
    assert len(said) == 3
    assert all("cluster.db: cannot write" in line and "SQLITE_IOERR_FSYNC" in line for line in said)
    figure("servers whose sync fails", f"3 stopped, {world.counts['acknowledged writes']} acknowledged writes, 0 lost")
