"""A server killed with SIGKILL while many write loses nothing that it acknowledged, and never says a revision twice."""

from __future__ import annotations

import http.client
import json
import random
import signal
import subprocess
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from bench.processes import Running, _await_answer, apiserver, client_context, free_port

WRITERS = 8
ROUNDS = 3
NAMESPACE = "/api/v1/namespaces/default"
CONFIGMAPS = f"{NAMESPACE}/configmaps"
MERGE = {"Content-Type": "application/merge-patch+json"}


class Link:
    """One connection. What breaks with the server raises OSError or HTTPException."""

    def __init__(self, server: Running) -> None:
        context = client_context(server.kubeconfig)
        self._link = http.client.HTTPSConnection(urlsplit(server.url).netloc, context=context, timeout=30)

    def send(self, method: str, path: str, body: Any = None, headers: dict[str, str] | None = None) -> tuple[int, Any]:
        self._link.request(method, path, None if body is None else json.dumps(body), headers or {})
        answer = self._link.getresponse()
        text = answer.read()
        return answer.status, json.loads(text)

    def lines(self, path: str) -> list[Any]:
        self._link.request("GET", path)
        return [json.loads(line) for line in self._link.getresponse().read().splitlines()]


@dataclass
class Writer:
    """Creates, changes and deletes objects of its own; ``state`` is what was acknowledged: (n, resourceVersion), or
    None for what was deleted. ``asked`` is the name of the request that was never answered."""

    name: str
    state: dict[str, tuple[str, str] | None] = field(default_factory=dict)
    revisions: list[int] = field(default_factory=list)
    asked: set[str] = field(default_factory=set)
    count: int = 0

    def run(self, server: Running, acknowledged: threading.Semaphore) -> None:
        try:
            link = Link(server)
            while True:
                self._work(link, acknowledged)
        except (OSError, http.client.HTTPException):
            return  # the server was killed: the request in hand stays unanswered

    def _work(self, link: Link, acknowledged: threading.Semaphore) -> None:
        name = f"{self.name}-{self.count}"
        self.count += 1
        metadata = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}}
        self._do(link, name, "POST", CONFIGMAPS, metadata | {"data": {"n": "0", "text": "x" * 3000}}, acknowledged)
        for change in ("1", "2"):
            self._do(link, name, "PATCH", f"{CONFIGMAPS}/{name}", {"data": {"n": change}}, acknowledged)
        if self.count % 3 == 0:
            self._do(link, name, "DELETE", f"{CONFIGMAPS}/{name}", None, acknowledged)

    def _do(self, link: Link, name: str, method: str, path: str, body: Any, acknowledged: threading.Semaphore) -> None:
        self.asked.add(name)
        status, answer = link.send(method, path, body, MERGE if method == "PATCH" else None)
        assert status in (200, 201), answer
        self.asked.discard(name)
        if method == "DELETE":
            self.state[name] = None
        else:
            self.state[name] = answer["data"]["n"], answer["metadata"]["resourceVersion"]
            self.revisions.append(int(answer["metadata"]["resourceVersion"]))
        acknowledged.release()


def _started(folder: Path) -> tuple[subprocess.Popen[bytes], Running]:
    port, begun = free_port(), time.perf_counter()
    (folder / "kubeconfig").unlink(missing_ok=True)
    command = apiserver(folder, port, "--data", str(folder / "data"), "--controllers", "none")
    with (folder / "output").open("wb") as output:
        process = subprocess.Popen(command, stdout=output, stderr=output, stdin=subprocess.DEVNULL)
    _await_answer(process, port, "/readyz", begun, folder)
    while not (folder / "kubeconfig").exists():
        assert process.poll() is None
    return process, Running(process.pid, port, 0.0, folder / "kubeconfig")


def _killed_under_load(folder: Path, writers: list[Writer], after: int) -> None:
    process, server = _started(folder)
    acknowledged = threading.Semaphore(0)
    threads = [threading.Thread(target=writer.run, args=(server, acknowledged)) for writer in writers]
    for thread in threads:
        thread.start()
    for _ in range(after):
        assert acknowledged.acquire(timeout=60)
    process.send_signal(signal.SIGKILL)
    process.wait()
    for thread in threads:
        thread.join(60)
    assert not any(thread.is_alive() for thread in threads)


def _expect_everything(link: Link, writers: list[Writer]) -> int:
    """What was acknowledged is there as it was; what was in hand is there as before or as asked, never in parts."""
    _, listed = link.send("GET", CONFIGMAPS)
    found = {each["metadata"]["name"]: each for each in listed["items"] if each["metadata"]["name"][0] == "w"}
    unanswered = {name for writer in writers for name in writer.asked}
    for writer in writers:
        for name, state in writer.state.items():
            here = found.pop(name, None)
            if name in unanswered:
                assert here is None or (here["data"]["n"] in "012" and here["data"]["text"] == "x" * 3000)
                continue
            assert (here is None) == (state is None), f"{name} was acknowledged as {state}"
            if here is not None:
                assert (here["data"]["n"], here["metadata"]["resourceVersion"]) == state
    assert set(found) <= unanswered
    return int(listed["metadata"]["resourceVersion"])


def _expect_resumed_or_gone(link: Link, since: int, now: int) -> None:
    """A watch from before the death tells every revision since, or says 410 at once; it never leaves one out."""
    seen = link.lines(f"/api/v1/configmaps?watch=true&resourceVersion={since}&timeoutSeconds=1")
    if since < now:
        assert seen and seen[0]["type"] == "ERROR" and seen[0]["object"]["code"] == 410
    else:
        assert seen == []


def test_nothing_acknowledged_is_lost_and_no_revision_repeats(tmp_path: Path) -> None:
    chance = random.Random(7)
    writers = [Writer(f"w{number}") for number in range(WRITERS)]
    newest = 0
    for _ in range(ROUNDS):
        before = {writer.name: len(writer.revisions) for writer in writers}
        _killed_under_load(tmp_path, writers, chance.randint(40, 200))
        told = [revision for writer in writers for revision in writer.revisions[before[writer.name] :]]
        assert len(told) == len(set(told)) and min(told) > newest, "revisions never repeat"
        logs = list((tmp_path / "data").glob("*-wal"))
        assert logs, "a killed server leaves its log"
        for log in logs:
            with log.open("ab") as torn:  # the power went in the middle of a commit that nobody was told of
                torn.write(chance.randbytes(2500))
        process, server = _started(tmp_path)
        link = Link(server)
        newest = _expect_everything(link, writers)
        assert newest >= max(told)
        _expect_resumed_or_gone(link, max(told), newest)
        for writer in writers:
            writer.asked.clear()
            _, listed = link.send("GET", CONFIGMAPS)
            here = {each["metadata"]["name"]: each for each in listed["items"]}
            for name in [name for name in here if name.startswith(f"{writer.name}-")]:
                writer.state[name] = here[name]["data"]["n"], here[name]["metadata"]["resourceVersion"]
            for name in [name for name in writer.state if name not in here]:
                writer.state[name] = None
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 0
