"""The GitOps controllers as a process of their own: nothing but HTTP between them and a served cluster."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.live import Served, served_cluster
from tests.sources.conftest import Upstream

from syncline.assembly.controller import ControllerSettings, Replica, StartError, serve_controller
from syncline.assembly.gitops import GitOpsSettings
from syncline.assembly.settings import ClusterSettings
from syncline.base.clock import SystemClock
from syncline.base.secret import Secret
from syncline.control.leader import LEASES, LeaderSettings
from syncline.gitops.application.observe import AppSettings
from syncline.kube import client
from syncline.kube.client import PatchType, Request
from syncline.kube.http import BlockingClient
from syncline.kube.kubeconfig import ClusterAccess, load_kubeconfig
from syncline.kube.objects import Obj, ResourceInfo, dig
from syncline.kube.rules import rules_available

pytestmark = pytest.mark.skipif(not rules_available(), reason="the extra `local` is not installed")

APPS = ResourceInfo("argoproj.io", "v1alpha1", "Application", "applications", namespaced=True)
MAPS = ResourceInfo("", "v1", "ConfigMap", "configmaps", namespaced=True)
PATIENCE_S = 60.0
MAP = "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}}}\ndata: {{a: '1'}}\n"


@dataclass
class Running:
    """A replica in a thread of its own."""

    replica: Replica
    loop: asyncio.AbstractEventLoop
    stop: asyncio.Event
    thread: threading.Thread

    def end(self) -> None:
        self.loop.call_soon_threadsafe(self.stop.set)
        self.thread.join(PATIENCE_S)
        assert not self.thread.is_alive()


def start(served: Served, folder: Path, leader: LeaderSettings | None = None) -> Running:
    settings = ControllerSettings(
        GitOpsSettings(folder, allow_local_repos=True, application=AppSettings(poll_s=600)), leader
    )
    ready: Future[tuple[Replica, asyncio.AbstractEventLoop, asyncio.Event]] = Future()

    async def serve() -> None:
        stop = asyncio.Event()
        loop = asyncio.get_running_loop()
        access = load_kubeconfig(served.kubeconfig)
        await serve_controller(
            access, settings, SystemClock(), stop, lambda replica: ready.set_result((replica, loop, stop))
        )

    def run() -> None:
        try:
            asyncio.run(serve())
        except BaseException as error:
            if ready.done():
                raise
            ready.set_exception(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    return Running(*ready.result(PATIENCE_S), thread)


class Cluster:
    """What a person does with the served cluster."""

    def __init__(self, served: Served) -> None:
        self.served = served
        self.api = BlockingClient(load_kubeconfig(served.kubeconfig))

    def ask(self, request: Request) -> Any:
        return self.api.send(request).or_raise()

    def watch_until(self, info: ResourceInfo, namespace: str, name: str, done: Callable[[Obj], bool]) -> Obj:
        """The object as soon as it is as wanted; told by a watch, ended by the server."""
        selector = f"metadata.name={name}"
        request = client.watch(info, namespace, field_selector=selector)
        bounded = Request("GET", request.path, {**request.query, "timeoutSeconds": str(int(PATIENCE_S))})
        import msgspec

        last: Obj = {}
        for line in self.api.watch(bounded):
            event = msgspec.json.decode(line)
            last = event["object"]
            if event["type"] != "BOOKMARK" and done(last):
                return last
        raise AssertionError(f"{info.kind} {namespace}/{name} did not get there: {last.get('status') or last}")

    def application(self, name: str, repository: Upstream, path: str) -> None:
        self.ask(
            client.create(
                APPS,
                {
                    "apiVersion": "argoproj.io/v1alpha1",
                    "kind": "Application",
                    "metadata": {"name": name, "namespace": "argocd"},
                    "spec": {
                        "project": "default",
                        "source": {"repoURL": str(repository.path), "path": path},
                        "destination": {"name": "in-cluster", "namespace": "demo"},
                        "syncPolicy": {"automated": {}, "syncOptions": ["CreateNamespace=true"]},
                    },
                },
            )
        )

    def synced(self, name: str) -> Obj:
        return self.watch_until(APPS, "argocd", name, lambda app: dig(app, "status", "sync", "status") == "Synced")

    def refresh(self, name: str) -> None:
        body = {"metadata": {"annotations": {"argocd.argoproj.io/refresh": "normal"}}}
        self.ask(client.patch(APPS, "argocd", name, PatchType.MERGE, body))


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with served_cluster(tmp_path_factory.mktemp("served"), ClusterSettings()) as served:
        yield Cluster(served)


def test_an_application_syncs_through_http_alone(cluster: Cluster, upstream: Upstream, tmp_path: Path) -> None:
    sha = upstream.commit({"one/map.yaml": MAP.format(name="one")})
    running = start(cluster.served, tmp_path / "cache")
    try:
        cluster.application("one", upstream, "one")
        assert dig(cluster.synced("one"), "status", "sync", "revision") == sha
        assert cluster.ask(client.get(MAPS, "demo", "one"))["data"] == {"a": "1"}
    finally:
        running.end()


def test_the_next_replica_takes_over_what_the_first_hands_over(
    cluster: Cluster, upstream: Upstream, tmp_path: Path
) -> None:
    upstream.commit({"two/map.yaml": MAP.format(name="two")})
    first = start(cluster.served, tmp_path / "a", LeaderSettings("a", "argocd", retry_s=0.2))
    cluster.watch_until(LEASES, "argocd", first_name(), lambda lease: dig(lease, "spec", "holderIdentity") == "a")
    second = start(cluster.served, tmp_path / "b", LeaderSettings("b", "argocd", retry_s=0.2))
    try:
        cluster.application("two", upstream, "two")
        cluster.synced("two")
        assert second.replica.gate.open == frozenset()
        first.end()
        cluster.watch_until(LEASES, "argocd", first_name(), lambda lease: dig(lease, "spec", "holderIdentity") == "b")
        changed = upstream.commit({"two/map.yaml": MAP.format(name="two") + "# changed\n"})
        cluster.refresh("two")
        cluster.watch_until(
            APPS, "argocd", "two", lambda app: dig(app, "status", "sync", "revision", default="") == changed
        )
    finally:
        second.end()
    lease = cluster.ask(client.get(LEASES, "argocd", first_name()))
    assert lease["spec"]["holderIdentity"] == ""


def first_name() -> str:
    return LeaderSettings("x", "argocd").name


def test_a_cluster_that_refuses_is_named_with_what_to_do(cluster: Cluster, tmp_path: Path) -> None:
    access = load_kubeconfig(cluster.served.kubeconfig)
    stranger = ClusterAccess(server=access.server, ca_pem=access.ca_pem, token=Secret("not-a-token"))
    settings = ControllerSettings(GitOpsSettings(tmp_path))

    async def serve() -> None:
        await serve_controller(stranger, settings, SystemClock(), asyncio.Event())

    with pytest.raises(StartError, match=r"cannot be installed: .*; apply deploy/controller.yaml"):
        asyncio.run(serve())
