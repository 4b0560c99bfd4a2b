"""A comparison is made again exactly where something changed that it was made of."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pytest

from syncline.gitops.application import compared, plan
from syncline.gitops.application.manifests import Manifests
from syncline.gitops.comparison.compare import Comparison, ComparisonInput
from syncline.gitops.comparison.compare import compare as really
from syncline.gitops.sync.kinds import KindTable
from syncline.rehearsal.world import World
from syncline.sources.rendering.environment import NO_CONTEXT, RenderContext

APPS = "/apis/argoproj.io/v1alpha1/namespaces/argocd/applications"
PROJECTS = "/apis/argoproj.io/v1alpha1/namespaces/argocd/appprojects"
MAPS = "/api/v1/namespaces/default/configmaps"
MERGE = "application/merge-patch+json"
KINDS = KindTable({})


class Source:
    def __init__(self) -> None:
        self.value = "1"

    def read(
        self, sources: tuple[Any, ...], revisions: tuple[str, ...], now: datetime, context: RenderContext = NO_CONTEXT
    ) -> Manifests:
        made = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"v": self.value}}
        return Manifests((self.value * 40,), (made,), ("Directory",), now)


class Scene:
    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.made = 0

        def counted(given: ComparisonInput) -> Comparison:
            self.made += 1
            return really(given)

        monkeypatch.setattr(plan, "compare_all", counted)
        self.source = Source()
        self.world = World(self.source, nodes=0)
        spec = {
            "project": "default",
            "source": {"repoURL": "https://example.com/r.git", "path": "."},
            "destination": {"server": "https://kubernetes.default.svc", "namespace": "default"},
        }
        kind = {"apiVersion": "argoproj.io/v1alpha1", "kind": "Application", "metadata": {"name": "app"}}
        self.world.send("POST", APPS, kind | {"spec": spec})
        self.world.send("PATCH", f"{APPS}/app", {"operation": {"sync": {}}}, MERGE)
        self.world.driver.until_idle()

    def after(self, method: str, path: str, body: Any) -> int:
        """Comparisons that follow a change, until all is quiet."""
        before = self.made
        self.world.send(method, path, body, MERGE if method == "PATCH" else "")
        self.world.driver.until_idle()
        return self.made - before

    def status(self) -> str:
        return str(self.world.send("GET", f"{APPS}/app")["status"]["sync"]["status"])


REFRESHED = {"metadata": {"annotations": {"argocd.argoproj.io/refresh": "normal"}}}


def test_a_refresh_that_finds_nothing_new_compares_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    scene = Scene(monkeypatch)
    assert scene.after("PATCH", f"{APPS}/app", REFRESHED) == 0
    assert scene.status() == "Synced"


CHANGES: list[tuple[str, str, Any, str]] = [
    ("PATCH", f"{MAPS}/a", {"data": {"v": "2"}}, "OutOfSync"),
    ("PATCH", f"{MAPS}/a", {"metadata": {"labels": {"a": "b"}}}, "Synced"),
    ("DELETE", f"{MAPS}/a", None, "OutOfSync"),
    (
        "PATCH",
        f"{APPS}/app",
        {"spec": {"ignoreDifferences": [{"kind": "ConfigMap", "jsonPointers": ["/data"]}]}},
        "Synced",
    ),
    (
        "PATCH",
        f"{PROJECTS}/default",
        {"spec": {"namespaceResourceBlacklist": [{"group": "", "kind": "Role"}]}},
        "Synced",
    ),
    (
        "POST",
        "/api/v1/namespaces/argocd/configmaps",
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": "argocd-cm"},
            "data": {"resource.compareoptions": "ignoreAggregatedRoles: true"},
        },
        "Synced",
    ),
]


@pytest.mark.parametrize(
    ("method", "path", "body", "status"),
    CHANGES,
    ids=["live", "live, without a difference", "gone", "spec", "project", "settings"],
)
def test_what_a_comparison_is_made_of_is_compared_again_when_it_changes(
    monkeypatch: pytest.MonkeyPatch, method: str, path: str, body: Any, status: str
) -> None:
    scene = Scene(monkeypatch)
    assert scene.after(method, path, body) >= 1
    assert scene.status() == status


def test_a_new_commit_is_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    scene = Scene(monkeypatch)
    scene.source.value = "2"
    assert scene.after("PATCH", f"{APPS}/app", REFRESHED) >= 1
    assert scene.status() == "OutOfSync"


def test_where_scripts_judge_health_nothing_is_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    scene = Scene(monkeypatch)
    script = 'return {status = "Healthy"}'
    data = {"resource.customizations.health.example.com_Widget": script}
    settings = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "argocd-cm"}, "data": data}
    scene.after("POST", "/api/v1/namespaces/argocd/configmaps", settings)
    assert scene.after("PATCH", f"{APPS}/app", REFRESHED) >= 1


def test_the_oldest_answers_fall_out() -> None:
    kept = compared.Comparisons(limit=2)
    made: list[str] = []

    def make(given: ComparisonInput) -> Comparison:
        made.append(given.app["metadata"]["name"])
        return really(given)

    for name in ("a", "b", "a", "c", "a", "b"):
        app = {"kind": "Application", "apiVersion": "argoproj.io/v1alpha1", "metadata": {"name": name}, "spec": {}}
        kept.of(ComparisonInput(app, (), {}, {}, KINDS), (), make)
    assert made == ["a", "b", "c", "b"]
