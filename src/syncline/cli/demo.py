"""``syncline demo``: the main job from end to end, on a repository that it makes itself."""

from __future__ import annotations

import asyncio
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import click

from syncline.assembly.gitops import GitOpsSettings
from syncline.assembly.inspect import PlannedSync, planned_sync
from syncline.assembly.live import LiveCluster
from syncline.assembly.machines import sandbox_problem
from syncline.assembly.reading import GitSourceReader
from syncline.assembly.settings import ClusterSettings, RunCommands
from syncline.assembly.snapshot import application_indices, look_at_cluster
from syncline.base.clock import SystemClock
from syncline.cli.connection import state_directory
from syncline.cli.failure import BLOCKED, CommandFailed
from syncline.cli.progress import progress_for
from syncline.cli.serving import host_and_port, run_cluster
from syncline.control.executor import run_in_place
from syncline.control.informer import decoded_event
from syncline.control.manager import DirectPort
from syncline.gitops.application.observe import AppSettings
from syncline.kube import client
from syncline.kube.kinds.argoproj import APPLICATION, GROUP, VERSION
from syncline.kube.objects import Obj, ResourceInfo, dig

APPLICATIONS = ResourceInfo(GROUP, VERSION, APPLICATION.kind, "applications", namespaced=True)
PATIENCE_S = 120.0
"""A demonstration that takes longer has gone wrong."""


@click.command()
@click.option("--exit", "exit_", is_flag=True, help="Stop when the Application is Synced and Healthy.")
@click.option("--listen", default="127.0.0.1:0", show_default=True, help="HOST:PORT; port 0 takes a free one.")
@click.option(
    "--example",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    default=None,
    help="Folder of manifests to use instead of examples/shop.",
)
def demo(exit_: bool, listen: str, example: Path | None) -> int:
    """Show the main job: a Git repository becomes a running cluster, in order."""
    clock = SystemClock()
    begun = clock.monotonic()
    source = example or _example()
    host, port = host_and_port(listen, tls=True)
    problem = sandbox_problem()
    commands = RunCommands.OFF if problem else RunCommands.SANDBOXED
    config = state_directory() / "demo" / "kubeconfig"
    with tempfile.TemporaryDirectory(prefix="syncline-demo-") as scratch:
        repository = _repository(source, Path(scratch) / "shop.git")
        settings = ClusterSettings(host=host, port=port, nodes=1, run_commands=commands)
        gitops = GitOpsSettings(Path(scratch) / "mirrors", allow_local_repos=True, application=AppSettings(poll_s=5))

        async def body(cluster: LiveCluster, stop: asyncio.Event) -> int:
            await cluster.start_gitops(gitops)
            print(f"cluster ready at {cluster.url} after {clock.monotonic() - begun:.1f} s")
            print(f"repository  {repository} (a copy of {source.name}, one commit)")
            if problem:
                print(f"commands    simulated: {problem}")
            print(f"application shop: {source.name}/ to namespace shop, automated sync\n", flush=True)
            app = _application(repository)
            planned = await _plan(cluster, app, Path(scratch) / "plan", clock)
            (await DirectPort(cluster.core.transport()).send(client.create(APPLICATIONS, app))).or_raise()
            final = await asyncio.wait_for(_follow(cluster, planned, clock), PATIENCE_S)
            print(f"\nApplication shop is {_state(final)} after {clock.monotonic() - begun:.1f} s.")
            if exit_:
                return 0
            _next_steps(config, repository)
            await stop.wait()
            print("stopping", flush=True)
            return 0

        try:
            return run_cluster(settings, body, config)
        except TimeoutError as error:
            raise CommandFailed(f"the demonstration did not finish within {PATIENCE_S:g} s", BLOCKED) from error


def _example() -> Path:
    """``examples/shop`` of the clone that this file belongs to."""
    found = Path(__file__).resolve().parents[3] / "examples" / "shop"
    if not found.is_dir():
        raise CommandFailed(f"{found} is not there; run it from a clone, or give --example FOLDER")
    return found


def _repository(source: Path, target: Path) -> Path:
    """A fresh Git repository with one commit, a working copy that people may change."""
    work = target.with_suffix("")
    shutil.copytree(source, work / source.name)
    identity = ["-c", "user.name=demo", "-c", "user.email=demo@example.org", "-c", "commit.gpgsign=false"]
    for command in (["init", "-q", "-b", "main"], ["add", "."], [*identity, "commit", "-q", "-m", "Open the shop"]):
        subprocess.run(["git", "-C", str(work), *command], check=True, timeout=30)
    return work


def _application(repository: Path) -> Obj:
    folder = next(p.name for p in sorted(repository.iterdir()) if p.is_dir() and p.name != ".git")
    return {
        "apiVersion": APPLICATION.api_version,
        "kind": APPLICATION.kind,
        "metadata": {"name": "shop", "namespace": "argocd"},
        "spec": {
            "project": "default",
            "source": {"repoURL": str(repository), "path": folder, "targetRevision": "main"},
            "destination": {"server": "https://kubernetes.default.svc", "namespace": "shop"},
            "syncPolicy": {
                "automated": {"prune": True, "selfHeal": True},
                "syncOptions": ["CreateNamespace=true"],
            },
        },
    }


async def _plan(cluster: LiveCluster, app: Obj, mirrors: Path, clock: SystemClock) -> PlannedSync:
    """What the sync will do, from the functions that will do it."""
    settings = AppSettings()
    look = run_in_place(look_at_cluster(application_indices(settings)), cluster.core.transport())
    reader = GitSourceReader(mirrors, allow_local=True)
    return await asyncio.to_thread(planned_sync, look.cache, app, reader, settings, clock.now())


async def _follow(cluster: LiveCluster, planned: PlannedSync, clock: SystemClock) -> Obj:
    """Show the sync until the Application is Synced and Healthy, or its operation failed."""
    port = DirectPort(cluster.core.transport())
    progress = progress_for(planned)
    try:
        async for batch in port.watch(client.watch(APPLICATIONS, "argocd", field_selector="metadata.name=shop")):
            for kind, app in map(decoded_event, batch):
                if kind == "BOOKMARK":
                    continue
                progress.update(app, clock.now())
                if _done(app):
                    return app
        raise CommandFailed("the watch of the Application ended early")
    finally:
        progress.close()


def _state(app: Obj) -> str:
    sync = dig(app, "status", "sync", "status", default="Unknown")
    return f"{sync} and {dig(app, 'status', 'health', 'status', default='Unknown')}"


def _done(app: Obj) -> bool:
    phase = dig(app, "status", "operationState", "phase", default="")
    if phase in ("Failed", "Error"):
        raise CommandFailed(f"the sync ended {phase}: {dig(app, 'status', 'operationState', 'message', default='')}")
    return _state(app) == "Synced and Healthy" and phase == "Succeeded" and not app.get("operation")


def _next_steps(config: Path, repository: Path) -> None:
    syncline = Path(sys.argv[0])
    print("\nIt stays up until Ctrl-C. In another terminal:")
    print(f"  export KUBECONFIG={config}")
    print(f"  {syncline} app get shop")
    print(f"  {syncline} plan shop")
    print("  kubectl -n shop get all        # any Kubernetes client works")
    print(f"Change a file below {repository}, commit, and watch it being synced:")
    print(f"  {syncline} app wait shop --sync", flush=True)
