"""Git remotes that hang, beside good ones: they cost their own Applications alone, who say what they wait for.

Real sockets that accept and say nothing. All of them hang until the test has seen the others done, so nothing depends
on how fast the machine is.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import aiohttp
from tests.live import reached
from tests.sources.conftest import Upstream
from tests.sources.tarpit import Tarpit

from syncline.assembly.embedded.live import LiveCluster, running_cluster
from syncline.assembly.gitops import GitOpsSettings
from syncline.assembly.settings import ClusterSettings
from syncline.control.pools import PoolSettings
from syncline.gitops.application.observing.observe import AppSettings
from syncline.kube.client import Request, Transport
from syncline.kube.objects import Obj, dig
from syncline.sources.git.process import Bounds, RemoteLimits

APPS = "/apis/argoproj.io/v1alpha1/namespaces/argocd/applications"
PODS = "/api/v1/namespaces/default/pods"
MERGE = {"content-type": "application/merge-patch+json"}
HANGING, SAME_HOST, GOOD = 12, 30, 3
FOREVER = RemoteLimits(Bounds(3600.0), 3600.0, Bounds(3600.0))
WAITS = "SourceWaitWarning"


def application(name: str, url: str, *, automated: bool = True) -> Obj:
    policy: Obj = {"automated": {}} if automated else {}
    return {
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "Application",
        "metadata": {"name": name, "namespace": "argocd"},
        "spec": {
            "project": "default",
            "source": {"repoURL": url, "path": name if name.startswith("good") else ".", "targetRevision": "main"},
            "destination": {"server": "https://kubernetes.default.svc", "namespace": "default"},
            "syncPolicy": policy,
        },
    }


class World:
    """A cluster that serves in this event loop."""

    def __init__(self, cluster: LiveCluster) -> None:
        self.cluster = cluster
        self.transport: Transport = cluster.core.transport(judged=False)

    def send(self, method: str, path: str, body: Any = None, headers: dict[str, str] | None = None) -> Any:
        return self.transport.send(Request(method, path, {}, headers or {}, body)).or_raise()

    def apps(self, begins: str) -> list[Obj]:
        found: list[Obj] = self.send("GET", APPS)["items"]
        return [app for app in found if app["metadata"]["name"].startswith(begins)]

    def told(self, begins: str) -> list[str]:
        """What they say of the wait for their source."""
        conditions = (c for app in self.apps(begins) for c in dig(app, "status", "conditions", default=[]))
        return [str(c["message"]) for c in conditions if c["type"] == WAITS]

    async def until(self, look: Callable[[], bool], collection: str = APPS) -> None:
        await reached(self.transport, collection, look)


@contextlib.asynccontextmanager
async def world(folder: Path) -> Any:
    gitops = GitOpsSettings(
        folder / "mirrors",
        allow_local_repos=True,
        application=AppSettings(poll_s=3600, read_patience_s=0.2),
        remotes=FOREVER,
        pools=PoolSettings(slow_after_s=0.2),
        metrics_listen=("127.0.0.1", 0),
    )
    async with running_cluster(ClusterSettings(nodes=1)) as cluster:
        await cluster.start_gitops(gitops)
        yield World(cluster)


def synced(apps: list[Obj]) -> bool:
    return bool(apps) and all(dig(app, "status", "sync", "status") == "Synced" for app in apps)


async def _beside(folder: Path, upstream: Upstream, tarpits: list[Tarpit]) -> None:
    urls = [f"http://{one.host}/r.git" for one in tarpits]
    urls += [f"http://{tarpits[0].host}/{number}.git" for number in range(SAME_HOST)]
    async with world(folder) as made:
        for number, url in enumerate(urls):
            made.send("POST", APPS, application(f"bad-{number}", url))
        await made.until(lambda: len(made.told("bad-")) == len(urls))
        for number in range(GOOD):
            made.send("POST", APPS, application(f"good-{number}", str(upstream.path)))
        pod = {"containers": [{"name": "a", "image": "a"}]}
        made.send("POST", PODS, {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "stranger"}, "spec": pod})
        await made.until(lambda: synced(made.apps("good-")))
        running = lambda: made.send("GET", f"{PODS}/stranger").get("status", {}).get("phase") == "Running"  # noqa: E731
        await made.until(running, PODS)
        told = made.told("bad-")
        assert len(told) == len(urls), "they hang as before"
        assert all("since 20" in one and "at most until 20" in one and "http://127.0.0.1" in one for one in told)
        assert any("for a turn to read" in one for one in told), "one host does not get all the places"
        assert made.told("good-") == []
        (port,) = made.cluster.gitops_ports.values()
        async with aiohttp.ClientSession() as session, session.get(f"http://127.0.0.1:{port}/metrics") as answer:
            text = await answer.text()
        counts = dict(re.findall(r'syncline_work{purpose="sources",state="(\w+)"} (\d+)', text))
        assert sum(map(int, counts.values())) >= len(urls)
        await _stays_in_reach(made)


async def _stays_in_reach(made: World) -> None:
    """An Application whose source hangs takes part in everything else: a new source, a sync, its deletion."""
    path = f"{APPS}/bad-0"
    operation = {"sync": {"revision": "main"}, "initiatedBy": {"username": "somebody"}}
    made.send("PATCH", path, {"operation": operation}, MERGE)
    state = lambda: dig(made.send("GET", path), "status", "operationState", default={})  # noqa: E731
    await made.until(lambda: "http://127.0.0.1" in str(state().get("message")))
    assert state()["phase"] == "Running"
    finalizer = {"metadata": {"finalizers": ["resources-finalizer.argocd.argoproj.io"]}}
    made.send("PATCH", f"{APPS}/bad-1", finalizer, MERGE)
    made.send("DELETE", f"{APPS}/bad-1")
    await made.until(lambda: "bad-1" not in [app["metadata"]["name"] for app in made.apps("bad-")])


def test_good_remotes_and_pods_do_not_wait_for_remotes_that_hang(tmp_path: Path) -> None:
    upstream = Upstream(tmp_path / "upstream")
    for number in range(GOOD):
        text = json.dumps({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": f"good-{number}"}})
        upstream.commit({f"good-{number}/a.yaml": text})
    tarpits = [Tarpit() for _ in range(HANGING)]
    try:
        asyncio.run(_beside(tmp_path, upstream, tarpits))
    finally:
        for one in tarpits:
            one.close()


def test_a_refresh_stands_until_the_source_has_answered_and_is_answered_once(tmp_path: Path) -> None:
    async def story(server: Tarpit) -> None:
        async with world(tmp_path) as made:
            made.send("POST", APPS, application("bad", f"http://{server.host}/r.git"))
            await made.until(lambda: len(made.told("bad")) == 1)
            refresh = {"metadata": {"annotations": {"argocd.argoproj.io/refresh": "normal"}}}
            made.send("PATCH", f"{APPS}/bad", refresh, MERGE)
            asked = lambda: bool(made.apps("bad")[0]["metadata"].get("annotations"))  # noqa: E731
            assert asked()
            server.close()
            await made.until(lambda: not asked())
            conditions = made.apps("bad")[0]["status"]["conditions"]
            assert [one["type"] for one in conditions] == ["ComparisonError"]

    server = Tarpit()
    try:
        asyncio.run(story(server))
    finally:
        server.close()
