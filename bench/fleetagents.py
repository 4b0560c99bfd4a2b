"""Many agents of clusters in one process: ``python -m bench.fleetagents HUB.kubeconfig COUNT FOLDER``.

Each joins as ``syncline join`` does (proposal, certificate request, both gates, credentials in a folder of its own) and
runs the role of an agent over TLS with its own certificate. Their clusters are one embedded API in this process, so
what it costs is not the agents' own. A line of JSON each second says how many have joined and listed, what was sent
and how many watches are open.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import AsyncIterator
from dataclasses import asdict, dataclass, field
from pathlib import Path

from syncline.assembly.embedded.core import build_core
from syncline.assembly.embedded.install import ensure_objects
from syncline.assembly.fleet.agent import AgentSettings, running_agent
from syncline.assembly.fleet.objects import spoke_objects
from syncline.assembly.ports import HttpPort
from syncline.base.clock import SystemClock
from syncline.base.entropy import Entropy
from syncline.base.interpreter import tune_interpreter
from syncline.base.journal import Journal
from syncline.cluster.storage.store import Store
from syncline.control.executor import run_in_place
from syncline.control.manager import DirectPort
from syncline.fleet.spoke.registration.proposing import Own
from syncline.hosts.fleet.joining import Join
from syncline.hosts.fleet.places import Joining, Place
from syncline.kube.client import Batch, Request, Response
from syncline.kube.transport.kubeconfig import ClusterAccess, load_kubeconfig

SPOKE_URL = "https://spoke.test"
SHARING = 10
"""Agents of one embedded API."""


@dataclass(slots=True)
class Counts:
    """What all agents did so far."""

    joined: int = 0
    watching: int = 0
    """Watches that are open now."""
    sent: int = 0
    begun: int = 0
    """Watches and lists that were begun."""
    failed: int = 0
    at: float = field(default_factory=time.time)


class CountingPort(HttpPort):
    """A port that counts."""

    def __init__(self, access: ClusterAccess, counts: Counts) -> None:
        super().__init__(access)
        self._counts = counts

    async def send(self, request: Request) -> Response:
        self._counts.sent += 1
        answer = await super().send(request)
        self._counts.failed += not answer.ok
        return answer

    async def watch(self, request: Request) -> AsyncIterator[Batch]:
        self._counts.begun += 1
        opened = False
        try:
            async for batch in super().watch(request):
                if not opened:
                    opened = True
                    self._counts.watching += 1
                yield batch
        finally:
            self._counts.watching -= opened


class SpokePort(DirectPort):
    """The cluster of an agent, in this process."""

    async def close(self) -> None:
        pass


async def _agent(number: int, bootstrap: ClusterAccess, folder: Path, spoke: SpokePort, counts: Counts) -> None:
    clock, entropy = SystemClock(), Entropy(number)
    name, place = f"c{number:04}", Place(folder / f"c{number:04}")
    place.folder.mkdir(parents=True, exist_ok=True)
    joining = Joining(bootstrap.server, name, "agent1")
    await Join(place, joining, Own(name), clock, lambda _text: None, entropy=entropy.fork("join")).run(bootstrap)
    access = place.hub()
    assert access is not None, "a join keeps credentials"
    counts.joined += 1
    hub = CountingPort(access, counts)
    settings = AgentSettings(name, "agent1", bootstrap.server, entropy)
    journal = Journal(limit=100)
    async with running_agent(settings, hub, ClusterAccess(SPOKE_URL), lambda _access: spoke, clock, journal) as driver:
        await driver.run()


def _spoke(number: int) -> SpokePort:
    core = build_core(store=Store(), clock=SystemClock(), entropy=Entropy(number))
    core.bootstrap(port=6443)
    run_in_place(ensure_objects(spoke_objects()), core.transport())
    return SpokePort(core.transport())


async def main(kubeconfig: str, count: int, folder: Path) -> None:
    counts = Counts()
    bootstrap = load_kubeconfig(kubeconfig)
    async with asyncio.TaskGroup() as group:
        for number in range(count):
            if number % SHARING == 0:
                spoke = _spoke(number)
            group.create_task(_agent(number, bootstrap, folder, spoke, counts))
        while True:
            counts.at = time.time()
            print(json.dumps(asdict(counts)), flush=True)
            await asyncio.sleep(1.0)


if __name__ == "__main__":
    tune_interpreter()
    asyncio.run(main(sys.argv[1], int(sys.argv[2]), Path(sys.argv[3])))
