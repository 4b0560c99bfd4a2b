"""A scenario on a real Kubernetes control plane in real time: our controllers and our simulated machines, over HTTP.

:func:`on_plane` starts etcd, API server, controllers and scheduler (``control_plane.py``), the machines as their nodes,
the controllers as ``syncline controller`` runs them, records as ``syncline record`` does, and plays the steps.
"""

from __future__ import annotations

import asyncio
import contextlib
import shutil
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

import control_plane

from syncline.assembly.controller import ControllerSettings, Replica, serve_controller
from syncline.assembly.embedded.install import ensure_objects
from syncline.assembly.gitops import GitOpsSettings
from syncline.assembly.machines.objects import machineconfig_objects
from syncline.assembly.machines.role import MachineConfigSettings, machineconfig_role
from syncline.assembly.machines.simulatedhosts import SimulatedHosts
from syncline.assembly.machines.virtual import node_specs, sandbox_problem
from syncline.assembly.ports import HttpPort
from syncline.assembly.roles import LiveDriver, Role, Wake, start
from syncline.assembly.sources.reading import GitSourceReader
from syncline.base.clock import SystemClock
from syncline.base.journal import Entry, Journal
from syncline.cluster.access.users import UserInfo
from syncline.cluster.machines.processes.process import ProcessSettings
from syncline.cluster.machines.room import MachineSettings, MachinesRoom
from syncline.control.executor import run_in_place
from syncline.control.loop import ControlLoop
from syncline.gitops.application.observing.observe import AppSettings
from syncline.kube.transport.http import BlockingClient
from syncline.kube.transport.kubeconfig import ClusterAccess, load_kubeconfig
from syncline.rehearsal.reality.recording import Recording, Tape, recording_of
from syncline.rehearsal.reality.redacting import Redaction
from syncline.rehearsal.reality.watching import recorded
from syncline.rehearsal.repository import Repository, application
from syncline.rehearsal.scenario import Scenario, Step
from syncline.rehearsal.stage import Stage

LOOK_S, CALM_S, PATIENCE_S = 0.3, 2.0, 600.0
SALT = b"compared"
MACHINES = UserInfo("system:node", ("system:masters",))


def machines_role(access: ClusterAccess, clock: SystemClock, nodes: int) -> tuple[MachinesRoom, Role]:
    """Return the simulated machines, and the role of their kubelets. Commands of pods run in sandboxes if they can."""
    room = MachinesRoom(clock, MachineSettings(heartbeats=True))
    for spec in node_specs(nodes):
        room.machines.add(spec)
    address = urlsplit(access.server)
    settings = ProcessSettings(address.hostname or "", address.port or 443, access.ca_pem)

    def follow(loop: ControlLoop, wake: Wake) -> Callable[[], None]:
        stop = room.add_processes(settings, wake) if not sandbox_problem() else lambda: None
        room.connect(loop, wake)
        return stop

    role = Role(
        name="machines",
        controllers=tuple(room.controllers()),
        user=MACHINES,
        manager="kubelet",
        handlers=lambda _cache, _clock: room.handlers(),
        follow=follow,
    )
    return room, role


@contextlib.asynccontextmanager
async def running(
    access: ClusterAccess, story: Scenario, mirrors: Path, heard: Callable[[Entry], None]
) -> AsyncIterator[None]:
    """Run machines and controllers until the end; yields once all watch."""
    clock, stop, journal = SystemClock(), asyncio.Event(), Journal(limit=10_000)
    journal.listen(heard)
    room, machines = machines_role(access, clock, 0 if story.nodes else 1)
    roles, admin = [machines], BlockingClient(access)
    if story.machine_config:
        settings = MachineConfigSettings("argocd")
        run_in_place(ensure_objects(machineconfig_objects(settings, "")), admin)
        roles.append(machineconfig_role(settings, hosts=SimulatedHosts(room.machines, clock)))
    ports, stops, gitops_ready = [HttpPort(access) for _ in roles], [], asyncio.Event()
    application_settings = AppSettings(poll_s=5)
    gitops = GitOpsSettings(mirrors, allow_local_repos=True, application=application_settings)

    def made(replica: Replica) -> None:
        replica.journal.listen(heard)

    try:
        async with asyncio.TaskGroup() as group:
            tasks = []
            for role, port in zip(roles, ports, strict=True):
                driver = LiveDriver(clock, journal, port)
                stops.append(start(role, driver))
                tasks.append(group.create_task(driver.run(), name=role.name))
                await driver.ready.wait()
            serving = serve_controller(
                access, ControllerSettings(gitops), clock, stop, lambda _replica: gitops_ready.set(), made
            )
            serves = group.create_task(serving, name="gitops")
            await gitops_ready.wait()
            yield
            stop.set()
            await serves
            for task in tasks:
                task.cancel()
    finally:
        for each in stops:
            each()
        for port in ports:
            await port.close()


async def played(access: ClusterAccess, story: Scenario, scratch: Path, rest_s: float) -> list[str]:
    """Play all steps; return the lines of the record."""
    lines, journal, stop = list[str](), Journal(limit=10_000), asyncio.Event()
    tape, clock = Tape(lines.append, Redaction(SALT)), SystemClock()
    repository = Repository(story, scratch / story.name)
    async with running(access, story, scratch / "mirrors", journal.write):
        stage = Stage(story, BlockingClient(access), clock, GitSourceReader(scratch / "plan", allow_local=True))
        await asyncio.to_thread(stage.add_nodes)
        await _until(stage.stands)
        await asyncio.to_thread(stage.prepare)
        await asyncio.sleep(CALM_S)
        port = HttpPort(access)
        tape.head(access.server)
        recording = asyncio.create_task(recorded(port, clock, tape, stop, journal=journal))
        while not tape.begun:
            await asyncio.sleep(LOOK_S)
        for step in story.steps:
            await _played(stage, story, step, repository)
        await asyncio.sleep(rest_s)
        stop.set()
        tape.end(clock.now(), await recording)
        await port.close()
    return lines


async def _played(stage: Stage, story: Scenario, step: Step, repository: Repository) -> None:
    commit = await asyncio.to_thread(repository.commit, step) if story.commits(step) else ""
    await asyncio.to_thread(stage.begin, step, application(story, repository))
    await _until(partial(stage.is_over, step, commit))
    for each in step.until:
        await _until(partial(stage.is_so, each))


async def _until(reached: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while not await asyncio.to_thread(reached):
            await asyncio.sleep(LOOK_S)


@dataclass(frozen=True, slots=True)
class Plane:
    """``programs``: a folder of them; ``port``: the first of five. ``keep``: a folder for the record and the repository
    of each scenario, for ``syncline replay`` and ``drift``."""

    programs: Path
    port: int
    keep: Path | None = None


def on_plane(plane: Plane, story: Scenario, scratch: Path, rest_s: float) -> Recording:
    """Play a scenario on a new control plane."""
    place = scratch / "plane"
    control_plane.up(plane.programs, place, plane.port)
    try:
        lines = asyncio.run(played(load_kubeconfig(str(place / "kubeconfig")), story, scratch, rest_s))
    finally:
        control_plane.down(place)
    if plane.keep is not None:
        (plane.keep / f"{story.name}.jsonl").write_text("".join(lines))
        shutil.copytree(scratch / story.name, plane.keep / story.name, dirs_exist_ok=True)
    return recording_of((line.encode() for line in lines), story.name)
