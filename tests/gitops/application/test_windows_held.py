"""Sync windows hold what would begin by itself and what runs (behaviours 26 and 28)."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pytest

from syncline.gitops.application.manifests import Manifests
from syncline.rehearsal.world import World
from syncline.sources.rendering.environment import NO_CONTEXT, RenderContext

APPS = "/apis/argoproj.io/v1alpha1/namespaces/argocd/applications"
PROJECTS = "/apis/argoproj.io/v1alpha1/namespaces/argocd/appprojects"
MERGE = "application/merge-patch+json"
CONFIG_MAP = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"k": "v"}}
ALWAYS = {"kind": "deny", "schedule": "* * * * *", "duration": "1h", "applications": ["*"]}


class Source:
    def read(
        self, sources: tuple[Any, ...], revisions: tuple[str, ...], now: datetime, context: RenderContext = NO_CONTEXT
    ) -> Manifests:
        return Manifests(("a" * 40,), (CONFIG_MAP,), ("Directory",), now)


def windows(world: World, *listed: dict[str, Any]) -> None:
    world.send("PATCH", f"{PROJECTS}/default", {"spec": {"syncWindows": list(listed)}}, MERGE)


@pytest.fixture
def world() -> World:
    made = World(Source(), nodes=0)
    windows(made, ALWAYS)
    spec = {
        "project": "default",
        "source": {"repoURL": "https://example.com/r.git", "path": "."},
        "destination": {"server": "https://kubernetes.default.svc", "namespace": "default"},
    }
    kind = {"apiVersion": "argoproj.io/v1alpha1", "kind": "Application", "metadata": {"name": "shop"}}
    made.send("POST", APPS, kind | {"spec": spec})
    made.driver.settle()
    return made


def state(world: World) -> dict[str, Any]:
    found: dict[str, Any] = world.send("GET", f"{APPS}/shop")["status"].get("operationState") or {}
    return found


def test_no_automated_sync_begins_while_a_window_denies_it_and_no_condition_says_so_a026(world: World) -> None:
    world.send("PATCH", f"{APPS}/shop", {"spec": {"syncPolicy": {"automated": {}}}}, MERGE)
    world.driver.settle()
    assert state(world) == {}
    assert not world.send("GET", f"{APPS}/shop")["status"].get("conditions")
    windows(world)
    world.driver.settle()
    assert state(world)["phase"] == "Succeeded"


def test_a_requested_sync_waits_for_the_window_and_then_runs_a028(world: World) -> None:
    world.send("PATCH", f"{APPS}/shop", {"operation": {"sync": {}}}, MERGE)
    world.driver.settle()
    assert state(world)["phase"] == "Running"
    assert state(world)["message"] == "Sync operation blocked by sync window"
    windows(world)
    world.driver.settle()
    assert state(world)["phase"] == "Succeeded"


def test_a_requested_sync_runs_at_once_where_every_denial_lets_users_sync(world: World) -> None:
    windows(world, {**ALWAYS, "manualSync": True})
    world.send("PATCH", f"{APPS}/shop", {"operation": {"sync": {}}}, MERGE)
    world.driver.settle()
    assert state(world)["phase"] == "Succeeded"


def test_a_held_sync_can_be_terminated(world: World) -> None:
    world.send("PATCH", f"{APPS}/shop", {"operation": {"sync": {}}}, MERGE)
    world.driver.settle()
    world.send("PATCH", f"{APPS}/shop", {"status": {"operationState": {"phase": "Terminating"}}}, MERGE)
    world.driver.settle()
    assert state(world)["phase"] == "Failed"


def test_an_operation_freezes_when_its_only_window_closes_unless_it_may_overrun_s083(world: World) -> None:
    closed = {"kind": "allow", "schedule": "0 0 1 1 *", "duration": "1m", "applications": ["*"]}
    windows(world, closed)
    world.driver.advance(120)
    world.send("PATCH", f"{APPS}/shop", {"spec": {"syncPolicy": {"automated": {}}}}, MERGE)
    world.driver.settle()
    assert state(world) == {}, "an inactive allow window alone blocks automation"
    world.send("PATCH", f"{APPS}/shop", {"operation": {"sync": {}}}, MERGE)
    world.driver.settle()
    assert state(world)["message"] == "Sync operation blocked by sync window"
    windows(world)
    world.driver.settle()
    assert state(world)["phase"] == "Succeeded"
