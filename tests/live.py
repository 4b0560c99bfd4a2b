"""A served cluster for tests that need real HTTP: on a free port, in a thread with its own event loop."""

from __future__ import annotations

import asyncio
import contextlib
import json
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from syncline.assembly.embedded.live import LiveCluster, kubeconfig_text, running_cluster, write_private
from syncline.assembly.fleet.hub import HubSettings
from syncline.assembly.gitops import GitOpsSettings
from syncline.assembly.settings import ClusterSettings
from syncline.kube.client import Request, Transport
from syncline.kube.objects import Obj

START_S = 300
"""A busy machine needs a while; a cluster that does not start in it never will."""
Found = TypeVar("Found")


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
    folder: Path,
    settings: ClusterSettings | None = None,
    gitops: GitOpsSettings | None = None,
    hub: HubSettings | None = None,
) -> Iterator[Served]:
    """Start, yield, stop. ``folder`` takes the kubeconfig; ``gitops`` and ``hub`` also run these controllers."""
    started: Future[Served] = Future()
    stops: list[asyncio.Event] = []

    async def serve() -> None:
        stop = asyncio.Event()
        stops.append(stop)
        async with running_cluster(settings or ClusterSettings()) as cluster:
            if gitops is not None:
                await cluster.start_gitops(gitops)
            if hub is not None:
                await cluster.start_hub(hub)
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


async def reached(transport: Transport, collection: str, look: Callable[[], Found]) -> Found:
    """What ``look`` finds, as soon as it is something: it is asked again after each change of the collection.

    Raises AssertionError with what is there when that takes longer than ``START_S``.
    """
    stream = transport.send(Request("GET", collection, {"watch": "true"})).stream
    assert stream is not None
    woken = asyncio.Event()
    stream.on_ready = woken.set
    try:
        async with asyncio.timeout(START_S):
            while not (found := look()):
                await woken.wait()
                woken.clear()
                while stream.take():  # a watch wakes again only once it was read to its end
                    pass
            return found
    except TimeoutError:
        there = json.dumps(transport.send(Request("GET", collection)).obj)
        raise AssertionError(f"{collection} did not get there in {START_S} s; last seen: {there[-2000:]}") from None
    finally:
        stream.close()
