"""A refresh that somebody asks for is answered by one render, however long rendering takes."""

from __future__ import annotations

from collections import Counter
from datetime import datetime
from typing import Any

from syncline.base.clock import VirtualClock
from syncline.control.loop import Observer
from syncline.control.workqueue import Key
from syncline.gitops.application.manifests import Manifests
from syncline.rehearsal.world import World
from syncline.sources.rendering.environment import NO_CONTEXT, RenderContext

APPS = "/apis/argoproj.io/v1alpha1/namespaces/argocd/applications"
REFRESH = "argocd.argoproj.io/refresh"
SLOW_S = 2.0
CONFIG_MAP = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"k": "v"}}


class SlowSource:
    """Time passes while it reads, as it does for a repository far away."""

    def __init__(self) -> None:
        self.clock = VirtualClock()
        self.reads = 0

    def read(
        self, sources: tuple[Any, ...], revisions: tuple[str, ...], now: datetime, context: RenderContext = NO_CONTEXT
    ) -> Manifests:
        self.reads += 1
        assert self.reads < 100, "it renders for ever"
        self.clock.advance(SLOW_S)
        return Manifests(("a" * 40,), (CONFIG_MAP,), ("Directory",), now)


def world_with(*names: str) -> tuple[World, SlowSource]:
    source = SlowSource()
    world = World(source, nodes=0)
    source.clock = world.clock
    for name in names:
        spec = {
            "project": "default",
            "source": {"repoURL": "https://example.com/r.git", "path": "."},
            "destination": {"server": "https://kubernetes.default.svc", "namespace": "default"},
        }
        kind = {"apiVersion": "argoproj.io/v1alpha1", "kind": "Application", "metadata": {"name": name}}
        world.send("POST", APPS, kind | {"spec": spec})
    world.driver.settle()
    return world, source


def ask(world: World, name: str) -> None:
    body = {"metadata": {"annotations": {REFRESH: "normal"}}}
    world.send("PATCH", f"{APPS}/{name}", body, "application/merge-patch+json")


def asked(world: World, name: str) -> bool:
    return REFRESH in (world.send("GET", f"{APPS}/{name}")["metadata"].get("annotations") or {})


def test_a_refresh_renders_once_and_its_annotation_goes() -> None:
    world, source = world_with("one")
    before = source.reads
    ask(world, "one")
    world.driver.settle()
    assert (source.reads - before, asked(world, "one")) == (1, False)


class Count(Observer):
    """Counts the reconciles of each Application."""

    def __init__(self) -> None:
        self.of: Counter[str] = Counter()

    def reconciled(self, key: Key, began: datetime, ended: datetime) -> None:
        if key.controller == "application":
            self.of[key.ref.name] += 1


def test_the_status_that_a_refresh_writes_does_not_wake_what_is_synced() -> None:
    world, _ = world_with("one")
    world.send("PATCH", f"{APPS}/one", {"operation": {"sync": {}}}, "application/merge-patch+json")
    world.driver.settle()
    counted = Count()
    world.gitops_actor.loop.observers.append(counted)
    ask(world, "one")
    world.driver.settle()
    assert counted.of["one"] == 2, "one reconcile renders, one compares"


def test_applications_of_one_source_that_are_refreshed_together_do_not_undo_each_others_answer() -> None:
    world, source = world_with("one", "two")
    before = source.reads
    ask(world, "one")
    ask(world, "two")
    world.driver.settle()
    assert not asked(world, "one") and not asked(world, "two")
    assert source.reads - before <= 2


def test_every_new_request_is_rendered_anew_a013() -> None:
    world, source = world_with("one")
    for expected in (1, 2, 3):
        before = source.reads
        ask(world, "one")
        world.driver.settle()
        assert source.reads - before == 1, expected


def test_a_comparison_after_an_operation_is_seen_though_nothing_differs() -> None:
    """``argocd app sync`` waits until ``reconciledAt`` is not before ``finishedAt``."""
    world, _ = world_with("one")
    for _ in range(2):
        world.send("PATCH", f"{APPS}/one", {"operation": {"sync": {}}}, "application/merge-patch+json")
        world.driver.settle()
        status = world.send("GET", f"{APPS}/one")["status"]
        assert status["operationState"]["phase"] == "Succeeded"
        assert status["reconciledAt"] >= status["operationState"]["finishedAt"]
        world.clock.advance(SLOW_S)
