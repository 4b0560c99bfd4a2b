"""What a sync concludes while the watch of what it applied is late."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from tests.control.watching import HeldBack

from syncline.gitops.application.manifests import Manifests
from syncline.kube.objects import Obj, dig
from syncline.rehearsal.world import World
from syncline.sources.rendering.environment import NO_CONTEXT, RenderContext

APPS = "/apis/argoproj.io/v1alpha1/namespaces/argocd/applications"
LABELS = {"app": "web"}


class Source:
    """A Deployment, and a test of it after the sync."""

    def __init__(self) -> None:
        self.number = 1

    def read(
        self, sources: tuple[Any, ...], revisions: tuple[str, ...], now: datetime, context: RenderContext = NO_CONTEXT
    ) -> Manifests:
        image = f"registry.example.org/web:{self.number}"
        spec = {"containers": [{"name": "c", "image": image}]}
        web = {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": "web"},
            "spec": {
                "replicas": 2,
                "selector": {"matchLabels": LABELS},
                "template": {"metadata": {"labels": LABELS}, "spec": spec},
            },
        }
        hook = {"argocd.argoproj.io/hook": "PostSync"}
        test = {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": {"name": "smoke", "annotations": hook},
            "spec": {"template": {"spec": spec | {"restartPolicy": "Never"}}},
        }
        return Manifests((str(self.number) * 40,), (web, test), ("Directory",), now)


def test_the_test_after_a_sync_waits_for_the_new_pods_while_the_watch_shows_the_old_deployment() -> None:
    source, servers = Source(), list[HeldBack]()
    world = World(source, nodes=1)

    def held_back(inner: Any) -> HeldBack:
        servers.append(HeldBack(inner, "/apis/apps/v1/deployments"))
        return servers[-1]

    world.start_gitops(held_back)
    spec = {
        "project": "default",
        "source": {"repoURL": "https://example.com/r.git", "path": "."},
        "destination": {"server": "https://kubernetes.default.svc", "namespace": "default"},
    }
    kind = {"apiVersion": "argoproj.io/v1alpha1", "kind": "Application", "metadata": {"name": "app"}}
    world.send("POST", APPS, kind | {"spec": spec, "operation": {"sync": {}}})
    world.driver.until_idle()
    ready: list[int] = []

    def note(event: Any) -> None:
        obj: Obj = event.stored.obj
        if obj["kind"] == "Job" and event.type == "ADDED":
            web = world.send("GET", "/apis/apps/v1/namespaces/default/deployments/web")
            ready.append(int(dig(web, "status", "updatedReplicas", default=0)))

    world.core.store.subscribe(note)
    source.number = 2
    for watch in servers[0].watches:
        watch.held = True
    world.send("PATCH", f"{APPS}/app", {"operation": {"sync": {}}}, "application/merge-patch+json")
    world.driver.advance(1)
    for watch in servers[0].watches:
        watch.release()
    world.driver.advance(60)
    assert dig(world.send("GET", f"{APPS}/app"), "status", "operationState", "phase") == "Succeeded"
    assert ready == [2], "the test begins once, when both pods are of the new version"
