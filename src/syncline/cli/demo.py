"""``syncline demo``: the main job from end to end, on a repository that it makes itself."""

from __future__ import annotations

import asyncio
import sys
import tempfile
from functools import partial
from pathlib import Path

import click

from syncline.assembly.gitops import GitOpsSettings
from syncline.assembly.inspect import PlannedSync, planned_sync
from syncline.assembly.install import ensure_objects
from syncline.assembly.live import LiveCluster
from syncline.assembly.machines import sandbox_problem
from syncline.assembly.reading import GitSourceReader
from syncline.assembly.settings import ClusterSettings, RunCommands
from syncline.assembly.snapshot import application_indices, look_at_cluster
from syncline.base.clock import SystemClock
from syncline.cli.connection import state_directory
from syncline.cli.failure import BLOCKED, CommandFailed
from syncline.cli.progress import Progress, progress_for
from syncline.cli.serving import host_and_port, run_cluster
from syncline.cli.story import (
    Ends,
    Repository,
    Step,
    Story,
    application,
    over,
    prerequisites,
    read_story,
    transcript,
)
from syncline.control.executor import run_in_place
from syncline.control.informer import decoded_event
from syncline.control.manager import DirectPort
from syncline.gitops.application.observe import AppSettings
from syncline.kube import client
from syncline.kube.kinds.argoproj import APPLICATION, GROUP, VERSION
from syncline.kube.objects import Obj, ResourceInfo, dig, name_of

APPLICATIONS = ResourceInfo(GROUP, VERSION, APPLICATION.kind, "applications", namespaced=True)
PATIENCE_S = 120.0
"""A demonstration that takes longer has gone wrong."""


@click.command()
@click.option("--exit", "exit_", is_flag=True, help="Stop when the story is told.")
@click.option("--listen", default="127.0.0.1:0", show_default=True, help="HOST:PORT; port 0 takes a free one.")
@click.option(
    "--example",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    default=None,
    help="Folder to play instead of examples/shop: one with a story.yaml, or with manifests.",
)
def demo(exit_: bool, listen: str, example: Path | None) -> int:
    """Show the main job: a Git repository becomes a running cluster, in order.

    \b
    syncline demo                                        the shop
    syncline demo --example examples/pool-pause --exit   another story, commit by commit
    """
    story = read_story((example or _example()).resolve())
    host, port = host_and_port(listen, tls=True)
    problem = sandbox_problem()
    commands = RunCommands.OFF if problem else RunCommands.SANDBOXED
    config = state_directory() / "demo" / "kubeconfig"
    with tempfile.TemporaryDirectory(prefix="syncline-demo-") as scratch:
        settings = ClusterSettings(host=host, port=port, nodes=1, run_commands=commands)
        show = Showing(story, Path(scratch), SystemClock())

        async def body(cluster: LiveCluster, stop: asyncio.Event) -> int:
            await show.begin(cluster, problem)
            for step in story.steps:
                await asyncio.wait_for(show.play(cluster, step), PATIENCE_S)
            if exit_:
                return 0
            _next_steps(config, show.repository.path, story)
            await stop.wait()
            print("stopping", flush=True)
            return 0

        try:
            return run_cluster(settings, body, config)
        except TimeoutError as error:
            raise CommandFailed(f"the demonstration did not finish within {PATIENCE_S:g} s", BLOCKED) from error


class Showing:
    """A story on a live cluster, told while it happens."""

    def __init__(self, story: Story, scratch: Path, clock: SystemClock) -> None:
        self.story = story
        self.repository = Repository(story, scratch / story.name)
        self._scratch = scratch
        self._clock = clock
        self._begun = clock.monotonic()

    async def begin(self, cluster: LiveCluster, problem: str) -> None:
        """Start the controllers and apply what has to be there before."""
        mirrors = self._scratch / "mirrors"
        await cluster.start_gitops(GitOpsSettings(mirrors, allow_local_repos=True, application=AppSettings(poll_s=5)))
        print(f"cluster ready at {cluster.url} after {self._clock.monotonic() - self._begun:.1f} s")
        if self.story.about:
            print(f"story       {self.story.about}")
        print(f"repository  {self.repository.path} (a copy of {self.story.folder.name})")
        if problem:
            print(f"commands    simulated: {problem}")
        made = run_in_place(ensure_objects(prerequisites(self.story)), cluster.core.transport())
        if made:
            print(f"before      an administrator applied {', '.join(made)}")

    async def play(self, cluster: LiveCluster, step: Step) -> None:
        """One commit, from the plan of its sync to its end."""
        story, port = self.story, DirectPort(cluster.core.transport())
        first = not step.change
        commit = await asyncio.to_thread(self.repository.commit, step)
        app = application(story, self.repository)
        if first:
            print(f"application {story.name} to namespace {story.namespace}\n", flush=True)
        else:
            print(f"\n{step.say}: commit {commit[:7]}\n", flush=True)
        planned = await _plan(cluster, app, self._scratch / "plan", self._clock)
        request = client.create(APPLICATIONS, app) if first else _refresh(story.name)
        (await port.send(request)).or_raise()
        apps = await _follow(port, story, step, commit, progress_for(planned), self._clock)
        if len(story.steps) > 1 or story.looks:
            print("\n" + transcript(story, step, apps, partial(_items, cluster)), end="")
        print(f"\nApplication {story.name} is {_state(apps[0])} after {self._clock.monotonic() - self._begun:.1f} s.")


def _refresh(name: str) -> client.Request:
    body = {"metadata": {"annotations": {"argocd.argoproj.io/refresh": "normal"}}}
    return client.patch(APPLICATIONS, "argocd", name, client.PatchType.MERGE, body)


def _items(cluster: LiveCluster, path: str) -> list[Obj]:
    answer = cluster.core.transport().send(client.Request("GET", path, {}, {}))
    found: list[Obj] = answer.or_raise()["items"]
    return found


def _example() -> Path:
    """``examples/shop`` of the clone that this file belongs to."""
    found = Path(__file__).resolve().parents[3] / "examples" / "shop"
    if not found.is_dir():
        raise CommandFailed(f"{found} is not there; run it from a clone, or give --example FOLDER")
    return found


async def _plan(cluster: LiveCluster, app: Obj, mirrors: Path, clock: SystemClock) -> PlannedSync:
    """What the sync will do, from the functions that will do it."""
    settings = AppSettings()
    look = run_in_place(look_at_cluster(application_indices(settings)), cluster.core.transport())
    reader = GitSourceReader(mirrors, allow_local=True)
    return await asyncio.to_thread(planned_sync, look.cache, app, reader, settings, clock.now())


async def _follow(
    port: DirectPort, story: Story, step: Step, commit: str, progress: Progress, clock: SystemClock
) -> list[Obj]:
    """Show the sync until every Application that the story waits for is where the step ends."""
    seen: dict[str, Obj] = {}
    try:
        async for batch in port.watch(client.watch(APPLICATIONS, "argocd")):
            for kind, app in map(decoded_event, batch):
                if kind != "BOOKMARK":
                    seen[name_of(app)] = app
                    _show(app, story, step, progress, clock)
            if over(story, step, commit, seen):
                return [seen[name] for name in story.waited_for()]
        raise CommandFailed("the watch of the Application ended early")
    finally:
        progress.close()


def _show(app: Obj, story: Story, step: Step, progress: Progress, clock: SystemClock) -> None:
    if name_of(app) == story.name:
        progress.update(app, clock.now())
    phase = dig(app, "status", "operationState", "phase", default="")
    if phase in ("Failed", "Error") and step.ends == Ends.SUCCEEDED:
        told = dig(app, "status", "operationState", "message", default="")
        raise CommandFailed(f"the sync of {name_of(app)} ended {phase}: {told}")


def _state(app: Obj) -> str:
    sync = dig(app, "status", "sync", "status", default="Unknown")
    return f"{sync} and {dig(app, 'status', 'health', 'status', default='Unknown')}"


def _next_steps(config: Path, repository: Path, story: Story) -> None:
    syncline = Path(sys.argv[0])
    print("\nIt stays up until Ctrl-C. In another terminal:")
    print(f"  export KUBECONFIG={config}")
    print(f"  {syncline} app get {story.name}")
    print(f"  {syncline} plan {story.name}")
    print(f"  kubectl -n {story.namespace} get all        # any Kubernetes client works")
    print(f"Change a file below {repository}, commit, and watch it being synced:")
    print(f"  {syncline} app wait {story.name} --sync", flush=True)
