"""Replicas of the GitOps controllers in threads, and what a person does with the cluster that they work on."""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
from tests.live import Served

from syncline.assembly.controller import ControllerSettings, Replica, serve_controller
from syncline.assembly.gitops import GitOpsSettings
from syncline.assembly.rights import Rights
from syncline.assembly.settings import HubWebhookSettings
from syncline.base.clock import SystemClock
from syncline.control.leader import LeaderSettings
from syncline.gitops.application.observing.observe import AppSettings
from syncline.kube import client
from syncline.kube.client import PatchType, Request
from syncline.kube.objects import Obj, ObjectRef, ResourceInfo, dig, resource_version
from syncline.kube.transport.http import BlockingClient
from syncline.kube.transport.kubeconfig import ClusterAccess, load_kubeconfig
from syncline.telemetry.otlp import TraceSettings

APPS = ResourceInfo("argoproj.io", "v1alpha1", "Application", "applications", namespaced=True)
MAPS = ResourceInfo("", "v1", "ConfigMap", "configmaps", namespaced=True)
PATIENCE_S = 300.0
MAP = "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}}}\ndata: {{a: '1'}}\n"


@dataclass
class Running:
    """A replica in a thread of its own."""

    replica: Replica
    loop: asyncio.AbstractEventLoop
    stop: asyncio.Event
    thread: threading.Thread

    def await_known(self, obj: Obj) -> None:
        """Until it has seen this version: each kind is watched by itself, and what was written later may come first."""
        group = str(obj["apiVersion"]).rpartition("/")[0]
        ref = ObjectRef(group, obj["kind"], obj["metadata"]["namespace"], obj["metadata"]["name"])
        until = time.monotonic() + PATIENCE_S
        while True:
            manager = self.replica.manager
            observed = manager.loop.cache.get(ref) if manager is not None else None
            if observed is not None and int(resource_version(observed)) >= int(resource_version(obj)):
                return
            assert time.monotonic() < until, (
                f"{ref} of {resource_version(obj)} not seen in {PATIENCE_S} s, but {observed}"
            )
            self.thread.join(0.01)

    def end(self) -> None:
        """Twice is as good as once."""
        with contextlib.suppress(RuntimeError):
            self.loop.call_soon_threadsafe(self.stop.set)
        self.thread.join(PATIENCE_S)
        assert not self.thread.is_alive()


ANY = ("127.0.0.1", 0)


def start(
    served: Served,
    folder: Path,
    leader: LeaderSettings | None = None,
    *,
    endpoints: bool = False,
    access: ClusterAccess | None = None,
    traces: TraceSettings | None = None,
    clock: SystemClock | None = None,
    roles: tuple[str, ...] = ("gitops",),
    hub_webhooks: HubWebhookSettings | None = None,
    namespace: str = "argocd",
    rights: Rights = Rights.CLUSTER,
) -> Running:
    """A replica that watches; with ``endpoints`` it takes webhooks and shows metrics, both at ``ANY``.

    It has the rights of ``access``, else those of an administrator.
    """
    listen = ANY if endpoints else None
    application = AppSettings(namespace, poll_s=600)
    gitops = GitOpsSettings(
        folder,
        allow_local_repos=True,
        application=application,
        webhook_listen=listen,
        metrics_listen=listen,
        metrics_labels=("team", "example.com/tier") if endpoints else (),
        traces=traces,
        rights=rights,
    )
    settings = ControllerSettings(gitops, leader, roles, hub_webhooks=hub_webhooks)
    ready: Future[tuple[Replica, asyncio.AbstractEventLoop, asyncio.Event]] = Future()

    async def serve() -> None:
        stop = asyncio.Event()
        loop = asyncio.get_running_loop()
        await serve_controller(
            access or load_kubeconfig(served.kubeconfig),
            settings,
            clock or SystemClock(),
            stop,
            lambda replica: ready.set_result((replica, loop, stop)),
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
        last: Obj = {}
        for line in self.api.watch(bounded):
            event = msgspec.json.decode(line)
            last = event["object"]
            if event["type"] != "BOOKMARK" and done(last):
                return last
        raise AssertionError(f"{info.kind} {namespace}/{name} did not get there: {last.get('status') or last}")

    def application(self, name: str, repository: str, path: str) -> None:
        self.ask(
            client.create(
                APPS,
                {
                    "apiVersion": "argoproj.io/v1alpha1",
                    "kind": "Application",
                    "metadata": {"name": name, "namespace": "argocd"},
                    "spec": {
                        "project": "default",
                        "source": {"repoURL": repository, "path": path},
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
