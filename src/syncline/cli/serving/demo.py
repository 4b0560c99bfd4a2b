"""``syncline demo``: shows a scenario from end to end, on a repository that it creates."""

from __future__ import annotations

import asyncio
import contextlib
import sys
from collections.abc import AsyncIterator, Callable
from datetime import timedelta
from pathlib import Path

import click

from syncline.assembly.embedded.live import LiveCluster
from syncline.assembly.gitops import GitOpsSettings
from syncline.assembly.inspection.preview import PlannedSync, planned_sync
from syncline.assembly.inspection.snapshot import application_indices, snapshot_of_cluster
from syncline.assembly.machines.virtual import sandbox_problem
from syncline.assembly.settings import ClusterSettings, RunCommands
from syncline.assembly.sources.reading import GitSourceReader
from syncline.base.clock import SystemClock
from syncline.base.scratch import scratch
from syncline.cli.access.connection import state_directory
from syncline.cli.frame.failure import BLOCKED, USAGE, CommandFailed
from syncline.cli.serving.running import host_and_port, run_cluster
from syncline.cli.views.progress import Progress, progress_for
from syncline.cli.views.story import failing, reasons, transcript
from syncline.control.executor import run_in_place
from syncline.control.informer import decoded_event
from syncline.control.manager import DirectPort
from syncline.gitops.application.observing.observe import AppSettings
from syncline.kube import client
from syncline.kube.objects import Obj, dig, name_of
from syncline.kube.text.durations import format_duration
from syncline.rehearsal.reading import read_scenario
from syncline.rehearsal.repository import Repository, application
from syncline.rehearsal.scenario import Ends, Scenario, Step
from syncline.rehearsal.simulation import Simulation, StepResult
from syncline.rehearsal.stage import APPLICATIONS, Stage, over, revisions_of
from syncline.sources.helm.rendering import helm_engine

PATIENCE_S = 300.0
"""Seconds after which a demo without machine updates has failed."""
LOOK_S = 0.5
"""Seconds between checks of a step's conditions."""
REST_S = 5.0
"""Longest pause in seconds where a story leaves the cluster alone, as people watch."""
CALM_S = 1.0
"""Seconds between the initial state and the first step."""
LONG = timedelta(minutes=30)
"""A step that may take longer is not suitable for watching."""


@click.command()
@click.option("--exit", "exit_", is_flag=True, help="Stop at the end of the story.")
@click.option("--listen", default="127.0.0.1:0", show_default=True, help="HOST:PORT; port 0 takes a free one.")
@click.option(
    "--example",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    default=None,
    help="Folder to play instead of examples/shop: one with a story.yaml, or with manifests.",
)
@click.option("--virtual", is_flag=True, help="Play it in virtual time: nothing is served, an hour takes a moment.")
@click.option("--steps", type=click.IntRange(1), default=None, help="Play the first N steps only.")
def demo(exit_: bool, listen: str, example: Path | None, virtual: bool, steps: int | None) -> int:
    """Show a Git repository deployed to a cluster, step by step.

    \b
    syncline demo                                              the shop
    syncline demo --example examples/pool-pause --exit         another story, commit by commit
    syncline demo --example examples/router-drain --virtual    one that takes hours, in seconds
    """
    with failing(), scratch() as folder:
        story = read_scenario((example or _example()).resolve())
        simulated = story.steps[:steps]
        _check_helm(story)
        if virtual:
            return _virtually(story, simulated, folder)
        long = next((step for step in simulated if step.within > LONG), None)
        if long is not None and exit_:
            raise CommandFailed(
                f"{long.say!r} may take {format_duration(long.within)}: add --virtual, or play less with --steps", USAGE
            )
        return _served(story, simulated, folder, listen, exit_)


def _check_helm(story: Scenario) -> None:
    """Refuse a story with a chart if Helm is missing. Raises CommandFailed."""
    chart = next((file for file in sorted(story.folder.rglob("Chart.yaml")) if file.is_file()), None)
    if chart is not None and not helm_engine():
        raise CommandFailed(
            f"{story.name}: {chart.relative_to(story.folder)} is a Helm chart, and Helm is not installed: "
            "`python3 run.py helm` installs it into a clone's environment, or put a helm program on PATH"
        )


def _virtually(story: Scenario, simulated: tuple[Step, ...], scratch: Path) -> int:
    show = Simulation(story, scratch)
    if story.about:
        print(f"story       {story.about}")
    made = show.begin()
    if made:
        print(f"before      an administrator applied {', '.join(made)}")
    for step in simulated:
        print("\n" + transcript(show.stage, show.simulate(step)), end="", flush=True)
    return 0


def _served(story: Scenario, simulated: tuple[Step, ...], scratch: Path, listen: str, exit_: bool) -> int:
    host, port = host_and_port(listen, tls=True)
    problem = sandbox_problem()
    commands = RunCommands.OFF if problem else RunCommands.SANDBOXED
    config = state_directory() / "demo" / "kubeconfig"
    settings = ClusterSettings(host=host, port=port, nodes=0 if story.nodes else 1, run_commands=commands)
    show = Showing(story, scratch, SystemClock())

    async def tell(cluster: LiveCluster) -> None:
        await show.begin(cluster, problem)
        for step in simulated:
            await show.simulate(cluster, step)
        if not exit_:
            _next_steps(config, show.repository.path, story)

    async def body(cluster: LiveCluster, stop: asyncio.Event) -> int:
        telling = asyncio.create_task(tell(cluster))
        stopping = asyncio.create_task(stop.wait())
        await asyncio.wait({telling, stopping}, return_when=asyncio.FIRST_COMPLETED)
        if telling.done():
            telling.result()
            if exit_:
                stopping.cancel()
                return 0
            await stopping
        telling.cancel()
        print("stopping", flush=True)
        return 0

    return run_cluster(settings, body, config)


class Showing:
    """Plays a story on a served cluster and reports its progress."""

    def __init__(self, story: Scenario, scratch: Path, clock: SystemClock) -> None:
        self.story = story
        self.repository = Repository(story, scratch / story.name)
        self._scratch = scratch
        self._clock = clock
        self._begun = clock.monotonic()
        self._commit = ""

    async def begin(self, cluster: LiveCluster, problem: str) -> None:
        """Start the controllers and the machines, and apply the story's initial objects."""
        story, application_settings = self.story, AppSettings(poll_s=5)
        mirrors = self._scratch / "mirrors"
        await cluster.start_gitops(GitOpsSettings(mirrors, allow_local_repos=True, application=application_settings))
        if story.machine_config:
            await cluster.start_machine_config(application_settings.control_namespace)
        reader = GitSourceReader(self._scratch / "plan", allow_local=True)
        self.stage = Stage(story, cluster.core.transport(), self._clock, reader)
        print(f"cluster ready at {cluster.url} after {self._clock.monotonic() - self._begun:.1f} s")
        if story.about:
            print(f"story       {story.about}")
        print(f"repository  {self.repository.path} (a copy of {story.folder.name})")
        if problem:
            print(f"commands    simulated: {problem}")
        self.stage.add_nodes()
        if story.nodes:
            print(f"machines    {', '.join(node.name for node in story.nodes)}", flush=True)
        async with _within(PATIENCE_S, "its machines come up"):
            while not self.stage.stands():
                await asyncio.sleep(LOOK_S)
        made = self.stage.prepare()
        if made:
            print(f"before      an administrator applied {', '.join(made)}")
        await asyncio.sleep(CALM_S)
        self.stage.news()  # earlier reports do not belong to the story

    async def simulate(self, cluster: LiveCluster, step: Step) -> None:
        """Play one step; with a commit, from the plan of its sync to its end."""
        story, port, first = self.story, DirectPort(cluster.core.transport()), step is self.story.steps[0]
        began = self._clock.now()
        commits = story.commits(step)
        if commits:
            self._commit = await asyncio.to_thread(self.repository.commit, step)
        app = application(story, self.repository)
        if first:
            print(f"application {story.name} to namespace {story.namespace}\n", flush=True)
        else:
            print(f"\n{step.say}{f': commit {self._commit[:7]}' if commits else ''}\n", flush=True)
        patience = max(PATIENCE_S, step.within.total_seconds()) if step.until else PATIENCE_S
        async with _within(patience, step.say, self._reasons):
            if commits:
                planned = await _plan(cluster, app, self._scratch / "plan", self._clock)
                self.stage.begin(step, app)
                await _follow(port, story, step, self._commit, progress_for(planned), self._clock)
            else:
                self.stage.begin(step, app)
            await self._reached(step)
        await asyncio.sleep(min(step.rests.total_seconds(), REST_S))
        if len(story.steps) > 1 or story.views:
            print("\n" + transcript(self.stage, StepResult(step, began)), end="")
        state = _state(self.stage.applications()[story.waited_for()[0]])
        print(f"\nApplication {story.name} is {state} after {self._clock.monotonic() - self._begun:.1f} s.", flush=True)

    def _reasons(self) -> str:
        return reasons(self.stage.causes(), self._clock.now())

    async def _reached(self, step: Step) -> None:
        """Wait for the end of an earlier step's sync, and for the step's own conditions."""
        while not self.stage.is_over(step, self._commit):
            await asyncio.sleep(LOOK_S)
        for until in step.until:
            print(f"waiting for {until} (at most {format_duration(step.within)})", flush=True)
            while not self.stage.is_so(until):
                await asyncio.sleep(LOOK_S)


@contextlib.asynccontextmanager
async def _within(patience_s: float, what: str, reasons: Callable[[], str] = str) -> AsyncIterator[None]:
    try:
        async with asyncio.timeout(patience_s):
            yield
    except TimeoutError as error:
        raise CommandFailed(f"{what}: not done within {patience_s:g} s\n{reasons()}".rstrip(), BLOCKED) from error


def _example() -> Path:
    """Return ``examples/shop`` of the clone that contains this file."""
    found = Path(__file__).resolve().parents[4] / "examples" / "shop"
    if not found.is_dir():
        raise CommandFailed(f"{found} is not there; run it from a clone, or give --example FOLDER")
    return found


async def _plan(cluster: LiveCluster, app: Obj, mirrors: Path, clock: SystemClock) -> PlannedSync:
    """Return the plan of the sync."""
    settings = AppSettings()
    snapshot = run_in_place(snapshot_of_cluster(application_indices(settings)), cluster.core.transport())
    reader = GitSourceReader(mirrors, allow_local=True)
    return await asyncio.to_thread(planned_sync, snapshot.cache, app, reader, settings, clock.now())


async def _follow(
    port: DirectPort, story: Scenario, step: Step, commit: str, progress: Progress, clock: SystemClock
) -> None:
    """Show the sync until all Applications of the story have reached the end of the step."""
    seen: dict[str, Obj] = {}
    try:
        async for batch in port.watch(client.watch(APPLICATIONS, "argocd")):
            for kind, app in map(decoded_event, batch):
                if kind != "BOOKMARK":
                    seen[name_of(app)] = app
                    _show(app, story, step, commit, progress, clock)
            if over(story, step, commit, seen):
                return
        raise CommandFailed("the watch of the Application ended early")
    finally:
        progress.close()


def _show(app: Obj, story: Scenario, step: Step, commit: str, progress: Progress, clock: SystemClock) -> None:
    if name_of(app) == story.name:
        progress.update(app, clock.now())
    phase = dig(app, "status", "operationState", "phase", default="")
    mine = commit in revisions_of(dig(app, "status", "operationState", "syncResult", default={}))
    if mine and phase in ("Failed", "Error") and step.ends == Ends.SUCCEEDED:
        report = dig(app, "status", "operationState", "message", default="")
        raise CommandFailed(f"the sync of {name_of(app)} ended {phase}: {report}")


def _state(app: Obj) -> str:
    sync = dig(app, "status", "sync", "status", default="Unknown")
    return f"{sync} and {dig(app, 'status', 'health', 'status', default='Unknown')}"


def _next_steps(config: Path, repository: Path, story: Scenario) -> None:
    syncline = Path(sys.argv[0])
    print("\nIt stays up until Ctrl-C. In another terminal:")
    print(f"  export KUBECONFIG={config}")
    print(f"  {syncline} app get {story.name}")
    print(f"  {syncline} plan {story.name}")
    if story.machine_config:
        print(f"  {syncline} node list")
        print(f"  {syncline} explain pool/worker")
    print(f"  kubectl -n {story.namespace} get all        # any Kubernetes client works")
    print(f"Change a file below {repository}, commit, and watch it being synced:")
    print(f"  {syncline} app wait {story.name} --sync", flush=True)
