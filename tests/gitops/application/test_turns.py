"""Whose turn it is where many Applications have something to do."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from syncline.gitops.application.manifests import Manifests
from syncline.rehearsal.world import World
from syncline.sources.rendering.environment import NO_CONTEXT, RenderContext

APPS = "/apis/argoproj.io/v1alpha1/namespaces/argocd/applications"
MANY = 30


class Source:
    def read(
        self, sources: tuple[Any, ...], revisions: tuple[str, ...], now: datetime, context: RenderContext = NO_CONTEXT
    ) -> Manifests:
        made = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": context.application}, "data": {"k": "v"}}
        return Manifests(("a" * 40,), (made,), ("Directory",), now)


def test_of_many_that_are_created_together_the_first_has_ended_before_the_last_begins() -> None:
    world = World(Source(), nodes=0)
    for number in range(MANY):
        spec = {
            "project": "default",
            "source": {"repoURL": "https://example.com/r.git", "path": "."},
            "destination": {"server": "https://kubernetes.default.svc", "namespace": "default"},
            "syncPolicy": {"automated": {}},
        }
        name = {"name": f"app-{number:02}"}
        world.send(
            "POST", APPS, {"apiVersion": "argoproj.io/v1alpha1", "kind": "Application", "metadata": name, "spec": spec}
        )
    world.driver.until_idle()
    notes = [entry.what for entry in world.journal if entry.who == "application"]
    applied = [at for at, what in enumerate(notes) if what.startswith("apply ")]
    begun = [at for at, what in enumerate(notes) if "OperationStarted" in what]
    assert (len(applied), len(begun)) == (MANY, MANY)
    assert applied[0] < begun[1] < applied[-1], "one is carried out before the next begins"
    shown = [entry.subject.rpartition("/")[2] for entry in world.journal if entry.who == "application"]
    first = max(at for at, name in enumerate(shown) if name == "app-00")
    assert first < begun[MANY // 2], "its status says Synced before the others have begun"
