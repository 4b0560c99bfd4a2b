"""A served cluster for tests that need real HTTP: on a free port, in a thread with its own event loop."""

from __future__ import annotations

import asyncio
import contextlib
import json
import threading
from collections.abc import Iterator
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path

from syncline.assembly.gitops import GitOpsSettings
from syncline.assembly.live import LiveCluster, kubeconfig_text, running_cluster, write_private
from syncline.assembly.settings import ClusterSettings
from syncline.kube.objects import Obj

START_S = 60
"""A busy machine needs a while; a cluster that does not start in it never will."""


@dataclass(frozen=True, slots=True)
class Served:
    """``kubeconfig`` is the file that kubectl takes; ``access`` the same, decoded."""

    url: str
    kubeconfig: Path
    access: Obj
    cluster: LiveCluster
    loop: asyncio.AbstractEventLoop


@contextlib.contextmanager
def served_cluster(
    folder: Path, settings: ClusterSettings | None = None, gitops: GitOpsSettings | None = None
) -> Iterator[Served]:
    """Start, yield, stop. ``folder`` takes the kubeconfig; ``gitops`` also runs the GitOps controllers."""
    started: Future[Served] = Future()
    stops: list[asyncio.Event] = []

    async def serve() -> None:
        stop = asyncio.Event()
        stops.append(stop)
        async with running_cluster(settings or ClusterSettings()) as cluster:
            if gitops is not None:
                await cluster.start_gitops(gitops)
            path = folder / "kubeconfig"
            write_private(path, kubeconfig_text(cluster))
            access = json.loads(path.read_text())
            started.set_result(Served(cluster.url, path, access, cluster, asyncio.get_running_loop()))
            await stop.wait()

    def run() -> None:
        try:
            asyncio.run(serve())
        except BaseException as error:
            if started.done():
                raise
            started.set_exception(error)

    thread = threading.Thread(target=run, name="served cluster", daemon=True)
    thread.start()
    served = started.result(START_S)
    try:
        yield served
    finally:
        served.loop.call_soon_threadsafe(stops[0].set)
        thread.join(START_S)
