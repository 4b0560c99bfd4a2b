"""Three agents as processes of their own over TLS: one is killed, one is cut off, one has a wrong clock.

Started by ``python -m bench agents [--quick]``. Meanwhile works are created, changed and deleted on the hub. In the end
each cluster must hold exactly what its works say. The cut takes ten minutes (one with ``--quick``).
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench.faultproxy import FREEZE, PASS, FaultProxy
from bench.processes import Blocking, Running, apiserver, free_port, running, syncline
from bench.table import Table

CLUSTERS = "/apis/cluster.open-cluster-management.io/v1/managedclusters"
WORKS = "/apis/work.open-cluster-management.io/v1/namespaces/{}/manifestworks"
MAPS = "/api/v1/namespaces/default/configmaps"
MERGE = "application/merge-patch+json"
CONDITIONS = {
    "ManagedClusterJoined": "Joined",
    "ManagedClusterConditionAvailable": "Available",
    "ManagedClusterConditionClockSynced": "ClockSynced",
}
NAMES = ("killed", "cut-off", "wrong-clock")
BEFORE, AFTER = 20, 10
"""Works of each cluster before the faults, and works that come during them."""
LIMIT_S = 240.0
AHEAD = (
    "import sys, datetime; import syncline.base.clock as c; now = c.SystemClock.now; "
    "c.SystemClock.now = lambda self: now(self) + datetime.timedelta(hours=1); "
    "from syncline.cli.main import main; sys.exit(main())"
)
"""Runs a command with a clock that is an hour ahead."""


@dataclass
class Agent:
    """A cluster and the process of its agent."""

    name: str
    spoke: Running
    home: Path
    line: str
    process: subprocess.Popen[bytes] | None = None

    def start(self, *, ahead: bool = False) -> None:
        arguments = ["join", self.line, "--name", self.name, "--kubeconfig", str(self.spoke.kubeconfig)]
        command = [sys.executable, "-c", AHEAD, *arguments] if ahead else syncline(*arguments)
        output = (self.home / "agent.log").open("ab")
        env = {**os.environ, "SYNCLINE_HOME": str(self.home)}
        self.process = subprocess.Popen(command, stdout=output, stderr=output, stdin=subprocess.DEVNULL, env=env)

    def end(self, sign: signal.Signals) -> None:
        if self.process is not None:
            self.process.send_signal(sign)
            self.process.wait(30)
            self.process = None


@dataclass
class Story:
    table: Table
    hub: Blocking
    hub_config: Path
    agents: dict[str, Agent] = field(default_factory=dict)
    wanted: dict[str, dict[str, str]] = field(default_factory=dict)
    """For each cluster the ConfigMaps that it shall hold, with their value."""

    def states(self, when: str) -> None:
        for name in self.agents:
            found = {
                CONDITIONS[one["type"]]: f"{one['status']} ({one['reason'].removeprefix('ManagedCluster')})"
                for one in self.hub.send("GET", f"{CLUSTERS}/{name}")["status"]["conditions"]
                if one["type"] in CONDITIONS
            }
            said = ", ".join(f"{key} {value}" for key, value in sorted(found.items()))
            self.table.row(f"{when}: {name}", "", said)

    def status(self, name: str, condition: str) -> str:
        found = self.hub.send("GET", f"{CLUSTERS}/{name}").get("status", {}).get("conditions", ())
        return next((str(one["status"]) for one in found if one["type"] == condition), "")

    def put(self, cluster: str, name: str, value: str) -> None:
        """Create or change a work that carries one ConfigMap."""
        manifest = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "default"}}
        spec = {"workload": {"manifests": [{**manifest, "data": {"value": value}}]}}
        where = WORKS.format(cluster)
        if name in self.wanted.setdefault(cluster, {}):
            self.hub.send("PATCH", f"{where}/{name}", {"spec": spec}, MERGE)
        else:
            kind = {"apiVersion": "work.open-cluster-management.io/v1", "kind": "ManifestWork"}
            self.hub.send("POST", where, {**kind, "metadata": {"name": name}, "spec": spec})
        self.wanted[cluster][name] = value

    def drop(self, cluster: str, name: str) -> None:
        self.hub.send("DELETE", f"{WORKS.format(cluster)}/{name}")
        del self.wanted[cluster][name]

    def held(self, cluster: str) -> dict[str, str]:
        """Return the ConfigMaps of works that a cluster has, with their values."""
        found = Blocking(self.agents[cluster].spoke).send("GET", MAPS)["items"]
        return {one["metadata"]["name"]: one["data"]["value"] for one in found if "value" in (one.get("data") or {})}

    def reported(self, cluster: str) -> bool:
        """Return whether the hub shows each work as applied in its present generation."""
        works = self.hub.send("GET", WORKS.format(cluster))["items"]
        return {one["metadata"]["name"] for one in works} == set(self.wanted[cluster]) and all(map(_applied, works))

    def await_all(self, what: str) -> None:
        begun, late = time.perf_counter(), set(self.agents)
        while late and time.perf_counter() - begun < LIMIT_S:
            for name in sorted(late):
                if self.held(name) == self.wanted[name] and self.reported(name):
                    late.discard(name)
                    self.table.row(
                        f"{what}: {name}", f"{time.perf_counter() - begun:.1f} s", "holds what its works say"
                    )
            time.sleep(0.5)
        for name in sorted(late):
            held, wanted = self.held(name), self.wanted[name]
            lost, extra = sorted(set(wanted) - set(held)), sorted(set(held) - set(wanted))
            old = sorted(one for one in set(wanted) & set(held) if wanted[one] != held[one])
            raise SystemExit(f"{name} after {LIMIT_S:g} s: lost {lost}, extra {extra}, old {old}")


def _applied(work: Any) -> bool:
    generation = work["metadata"]["generation"]
    return any(
        one["type"] == "Applied" and one["status"] == "True" and one.get("observedGeneration") == generation
        for one in work.get("status", {}).get("conditions", ())
    )


def figures(table: Table, *, quick: bool) -> None:
    minutes = 1 if quick else 10
    with tempfile.TemporaryDirectory(prefix="bench-") as place, _story(table, Path(place), quick) as story:
        table.title(f"Three agents as processes over TLS; {BEFORE} works each, faults for {minutes} min")
        for name in NAMES:
            for number in range(BEFORE):
                story.put(name, f"w{number}", "1")
        story.await_all("works before the faults")
        story.states("before")
        killed, proxy = story.agents["killed"], _proxies[-1]
        killed.end(signal.SIGKILL)
        proxy.set(FREEZE)
        clock = story.agents["wrong-clock"]
        clock.end(signal.SIGTERM)
        clock.start(ahead=True)
        for name in NAMES:
            _changes(story, name)
        time.sleep(minutes * 60)
        story.states(f"after {minutes} min")
        killed.start()
        proxy.set(PASS)
        clock.end(signal.SIGTERM)
        clock.start()
        story.await_all("caught up")
        _await_available(story)
        story.states("in the end")


def _changes(story: Story, cluster: str) -> None:
    for number in range(AFTER):
        story.put(cluster, f"n{number}", "1")
    for number in range(AFTER):
        story.put(cluster, f"w{number}", "2")
    for number in range(AFTER, BEFORE):
        story.drop(cluster, f"w{number}")


def _await_available(story: Story) -> None:
    until = time.perf_counter() + LIMIT_S
    for name in NAMES:
        while story.status(name, "ManagedClusterConditionAvailable") != "True":
            if time.perf_counter() > until:
                raise SystemExit(f"{name} is not available again after {LIMIT_S:g} s")
            time.sleep(0.5)


_proxies: list[FaultProxy] = []


@contextlib.contextmanager
def _story(table: Table, place: Path, quick: bool) -> Iterator[Story]:
    """Start a hub, three clusters and their agents; all have joined when it yields."""
    with contextlib.ExitStack() as stack:
        hub = stack.enter_context(_api(place / "hub", "up", "--hub", "--memory"))
        story = Story(table, Blocking(hub), hub.kubeconfig)
        proxy = FaultProxy(hub.port)
        _proxies.append(proxy)
        stack.callback(proxy.close)
        for name in NAMES:
            spoke = stack.enter_context(_api(place / name, "apiserver"))
            port = proxy.port if name == "cut-off" else hub.port
            token = _run(hub, "hub", "token", "--server", f"https://127.0.0.1:{port}")
            story.agents[name] = agent = Agent(name, spoke, place / name, token)
            agent.start()
            stack.callback(agent.end, signal.SIGTERM)
        for name in NAMES:
            _accept(story, hub, name)
            if quick:
                story.hub.send("PATCH", f"{CLUSTERS}/{name}", {"spec": {"leaseDurationSeconds": 5}}, MERGE)
        _await_available(story)
        yield story


@contextlib.contextmanager
def _api(folder: Path, *command: str) -> Iterator[Running]:
    folder.mkdir()
    port = free_port()
    given = ("--listen", f"127.0.0.1:{port}", "--kubeconfig-out", str(folder / "kubeconfig"))
    made = apiserver(folder, port) if command == ("apiserver",) else syncline(*command, *given)
    with running(made, folder, port) as found:
        yield found


def _run(hub: Running, *arguments: str) -> str:
    env = {**os.environ, "KUBECONFIG": str(hub.kubeconfig)}
    return subprocess.run(syncline(*arguments), check=True, capture_output=True, text=True, env=env).stdout.strip()


def _accept(story: Story, hub: Running, name: str) -> None:
    """Accept a cluster once it has been proposed, with its request."""
    until = time.perf_counter() + LIMIT_S
    while time.perf_counter() < until:
        with contextlib.suppress(subprocess.CalledProcessError):
            _run(hub, "cluster", "accept", name)
            if story.status(name, "ManagedClusterJoined"):
                return
        time.sleep(1)
    raise SystemExit(f"{name} was not proposed within {LIMIT_S:g} s")
