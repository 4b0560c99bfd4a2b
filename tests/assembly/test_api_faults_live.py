"""A controller whose API is away, frozen, or hidden behind something that answers in its place."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from bench.faultproxy import ANSWERS, CUT, FREEZE, PASS, FaultProxy
from tests.assembly.controllers import MAP, PATIENCE_S, Cluster
from tests.live import served_cluster
from tests.sources.conftest import Upstream

from syncline.assembly.controller import ControllerSettings, Replica, serve_controller
from syncline.assembly.gitops import GitOpsSettings
from syncline.assembly.settings import ClusterSettings
from syncline.base.clock import SystemClock
from syncline.control.leader import LEASES, LeaderSettings
from syncline.gitops.application.observing.observe import AppSettings
from syncline.kube import client
from syncline.kube.client import Request, Response
from syncline.kube.errors import Unanswered
from syncline.kube.objects import dig
from syncline.kube.transport.http import HttpClient
from syncline.kube.transport.kubeconfig import ClusterAccess

NAMESPACES = "/api/v1/namespaces"


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with served_cluster(tmp_path_factory.mktemp("served"), ClusterSettings(tls=False)) as served:
        yield Cluster(served)


@pytest.fixture
def proxy(cluster: Cluster, request: pytest.FixtureRequest) -> Iterator[FaultProxy]:
    made = FaultProxy(cluster.served.cluster.port, getattr(request, "param", ()))
    yield made
    made.close()


class Process:
    """``syncline controller`` in a thread."""

    def __init__(self, proxy: FaultProxy, folder: Path, leader: LeaderSettings) -> None:
        application = AppSettings(poll_s=600)
        gitops = GitOpsSettings(
            folder, allow_local_repos=True, application=application, metrics_listen=("127.0.0.1", 0)
        )
        self.settings = ControllerSettings(gitops, leader, patient=True)
        self.access = ClusterAccess(server=proxy.url)
        self.replica: Replica | None = None
        self.ended: BaseException | None = None
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    def _run(self) -> None:
        async def serve() -> None:
            self.stop, self.loop = asyncio.Event(), asyncio.get_running_loop()
            await serve_controller(
                self.access, self.settings, SystemClock(), self.stop, made=lambda one: setattr(self, "replica", one)
            )

        try:
            asyncio.run(serve())
        except BaseException as error:
            self.ended = error

    def until(self, reached: Callable[[], object]) -> None:
        until = time.monotonic() + PATIENCE_S
        while not reached():
            assert self.thread.is_alive(), f"the process ended: {self.ended!r}"
            assert time.monotonic() < until
            self.thread.join(0.02)

    def probe(self, path: str) -> tuple[int, str]:
        """Status and text; 0 while nothing listens."""
        ports = list(self.replica.ports.values()) if self.replica is not None else []
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{ports[0]}{path}", timeout=PATIENCE_S) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()
        except (OSError, IndexError):
            return 0, ""

    def end(self) -> None:
        self.loop.call_soon_threadsafe(self.stop.set)
        self.thread.join(PATIENCE_S)
        assert not self.thread.is_alive()


def works(cluster: Cluster, process: Process, upstream: Upstream, name: str) -> None:
    upstream.commit({f"{name}/map.yaml": MAP.format(name=name)})
    cluster.application(name, str(upstream.path), name)
    cluster.synced(name)
    assert process.ended is None


def test_a_start_under_faults_waits_and_says_why(
    cluster: Cluster, proxy: FaultProxy, upstream: Upstream, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING, "syncline")
    proxy.set("login page")
    process = Process(proxy, tmp_path, LeaderSettings("a", "argocd"))
    try:
        process.until(lambda: proxy.refused >= 2)
        process.until(lambda: process.probe("/readyz")[0] == 503)
        assert f"{proxy.url} answered 200 (text/html, 36 bytes that begin" in process.probe("/readyz")[1]
        assert process.probe("/livez")[0] == process.probe("/healthz")[0] == 200
        proxy.set(PASS)
        process.until(lambda: process.probe("/readyz") == (200, "ok\n"))
        works(cluster, process, upstream, "late")
    finally:
        process.end()
    told = [record.message for record in caplog.records if "answered 200" in record.message]
    assert len(told) == 1
    assert proxy.url in told[0]


@pytest.mark.parametrize("fault", ["login page", CUT, FREEZE])
def test_a_replica_that_could_not_renew_takes_its_lease_again_and_works(
    cluster: Cluster, proxy: FaultProxy, upstream: Upstream, tmp_path: Path, fault: str
) -> None:
    """Alone, under one name all the time: nothing else will take the Lease."""
    short = LeaderSettings("alone", "argocd", lease_s=8, renew_deadline_s=3.0, retry_s=0.2)
    process = Process(proxy, tmp_path, short)
    try:
        process.until(lambda: process.replica is not None and process.replica.gate.open)
        proxy.set(fault)
        process.until(lambda: process.replica is not None and not process.replica.gate.open)
        proxy.set(PASS)
        process.until(lambda: process.replica is not None and process.replica.gate.open)
        works(cluster, process, upstream, fault.split()[0].lower())
        lease = cluster.ask(client.get(LEASES, "argocd", short.name))
        assert dig(lease, "spec", "holderIdentity") == "alone"
    finally:
        process.end()


@pytest.mark.parametrize("fault", [*ANSWERS, CUT])
def test_no_fault_is_taken_for_an_answer(proxy: FaultProxy, fault: str) -> None:
    """A write through a proxy that answers itself was not carried out, and was not refused by the API either."""

    async def ask() -> Response:
        web = HttpClient(ClusterAccess(server=proxy.url), wary=True)
        try:
            return await web.send(Request("POST", NAMESPACES, {}, {}, {"metadata": {"name": "never"}}))
        finally:
            await web.close()

    proxy.set(fault)
    answer = asyncio.run(ask())
    assert not answer.ok
    assert isinstance(answer.error, Unanswered) or fault == "busy"


def test_a_write_that_waited_for_a_connection_meets_the_fence_that_has_fallen_meanwhile(
    cluster: Cluster, proxy: FaultProxy
) -> None:
    closed: list[str] = []

    async def scene() -> tuple[Response, Response, Response, Response]:
        web = HttpClient(ClusterAccess(server=proxy.url), connections=1, fence=lambda: "".join(closed))

        def make(name: str) -> Request:
            return Request("POST", NAMESPACES, {}, {}, {"metadata": {"name": name}})

        try:
            opened = await web.send(make("before"))
            proxy.set(FREEZE)
            slow = asyncio.create_task(web.send(Request("GET", NAMESPACES)))
            await asyncio.sleep(0)
            waiting = asyncio.create_task(web.send(make("fenced")))
            await asyncio.sleep(0)
            closed.append("another replica may work")
            proxy.set(PASS)
            return opened, await slow, await waiting, await web.send(Request("GET", f"{NAMESPACES}/fenced"))
        finally:
            await web.close()

    opened, slow, fenced, looked = asyncio.run(scene())
    assert (opened.status, slow.status, looked.status) == (201, 200, 404)
    assert isinstance(fenced.error, Unanswered)
    assert str(fenced.error) == "not sent: another replica may work"
