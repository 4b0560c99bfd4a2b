"""The machine's clock jumps by an hour, both ways, while a controller is in the middle of a sync over HTTPS."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import pytest
from tests.assembly.controllers import APPS, MAP, MAPS, Cluster, start
from tests.live import served_cluster
from tests.sources.conftest import Upstream

from syncline.assembly.jumps import CLOCK_JUMPED, jump_event
from syncline.assembly.settings import ClusterSettings
from syncline.base.clock import LONG_AGO, Jump, SystemClock
from syncline.control.events import EVENTS, event_object
from syncline.control.leader import LeaderSettings
from syncline.kube import client
from syncline.kube.objects import Obj, dig, name_of, uid_of

HOUR = 3600.0
HOOK = """apiVersion: v1
kind: ConfigMap
metadata:
  name: before
  annotations: {argocd.argoproj.io/hook: PreSync, argocd.argoproj.io/hook-delete-policy: BeforeHookCreation}
"""
WAITS = """apiVersion: v1
kind: ConfigMap
metadata:
  name: waits
  annotations:
    argocd.argoproj.io/sync-wave: "1"
    syncline.dev/wait-for: "{kind: ConfigMap, name: go}"
"""


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with served_cluster(tmp_path_factory.mktemp("served"), ClusterSettings()) as served:
        yield Cluster(served)


@dataclass
class Jumping:
    """What a machine says the time is, some hours wrong."""

    by_s: float = 0.0

    def __call__(self) -> float:
        return time.time() + self.by_s


def waits_for_go(app: Obj) -> bool:
    return str(dig(app, "status", "operationState", "message", default="")).endswith("-go is not there")


@pytest.mark.parametrize("by_s", [HOUR, -HOUR], ids=["forward", "back"])
def test_a_sync_goes_on_when_the_clock_jumps_by_an_hour_and_its_hook_runs_once(
    by_s: float, cluster: Cluster, upstream: Upstream, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("syncline.assembly.jumps.LOOK_S", 0.05)
    name = "forward" if by_s > 0 else "back"
    files = {"hook.yaml": HOOK, "map.yaml": MAP.format(name="first"), "waits.yaml": WAITS}
    upstream.commit({f"{name}/{file}": text.replace("name: ", f"name: {name}-") for file, text in files.items()})
    wall = Jumping()
    running = start(
        cluster.served,
        tmp_path / "cache",
        LeaderSettings(name, "argocd", lease_s=600, renew_deadline_s=300.0, retry_s=0.2),
        clock=SystemClock(wall=wall),
    )
    try:
        cluster.application(name, str(upstream.path), name)
        began = cluster.watch_until(APPS, "argocd", name, waits_for_go)
        hook = uid_of(cluster.ask(client.get(MAPS, "demo", f"{name}-before")))
        wall.by_s = by_s
        cluster.refresh(name)
        go = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": f"{name}-go", "namespace": "demo"}}
        cluster.ask(client.create(MAPS, go))
        ended = cluster.watch_until(
            APPS, "argocd", name, lambda app: dig(app, "status", "operationState", "phase") != "Running"
        )
        assert dig(ended, "status", "operationState", "phase") == "Succeeded"
        started = ("status", "operationState", "startedAt")
        assert dig(ended, *started) == dig(began, *started)
        assert uid_of(cluster.ask(client.get(MAPS, "demo", f"{name}-before"))) == hook
        event = event_object(jump_event(Jump(1, timedelta(seconds=by_s), True), "argocd", name), LONG_AGO)
        said = cluster.watch_until(EVENTS, "default", name_of(event), lambda _: True)
        assert f"jumped {name} by 3600 s" in said["message"] and said["reason"] == CLOCK_JUMPED
    finally:
        running.end()
