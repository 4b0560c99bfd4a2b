"""An operation of many waves costs what there is to do in each, not all objects once more."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pytest

from syncline.gitops.application.manifests import Manifests
from syncline.gitops.comparison import compare, targets
from syncline.gitops.sync import facts
from syncline.kube.objects import Obj, dig
from syncline.rehearsal.world import World
from syncline.sources.rendering.environment import NO_CONTEXT, RenderContext

APPS = "/apis/argoproj.io/v1alpha1/namespaces/argocd/applications"
WAVES = 24


class Source:
    """As many ConfigMaps as waves."""

    def read(
        self, sources: tuple[Any, ...], revisions: tuple[str, ...], now: datetime, context: RenderContext = NO_CONTEXT
    ) -> Manifests:
        return Manifests(("1" * 40,), tuple(map(_manifest, range(WAVES))), ("Directory",), now)


def _manifest(number: int) -> Obj:
    notes = {"argocd.argoproj.io/sync-wave": str(number)}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": f"c{number}", "annotations": notes}}


def test_each_object_of_many_waves_is_prepared_compared_and_read_a_few_times(monkeypatch: pytest.MonkeyPatch) -> None:
    counted: dict[str, int] = {}

    def count(module: Any, name: str) -> None:
        really = getattr(module, name)

        def counting(*given: Any, **more: Any) -> Any:
            counted[name] = counted.get(name, 0) + 1
            return really(*given, **more)

        monkeypatch.setattr(module, name, counting)

    for module, name in ((compare, "part_of"), (targets, "scoped"), (facts, "hook_types"), (compare, "_row")):
        count(module, name)
    world = World(Source(), nodes=0)
    spec = {
        "project": "default",
        "source": {"repoURL": "https://example.com/r.git", "path": "."},
        "destination": {"server": "https://kubernetes.default.svc", "namespace": "default"},
    }
    kind = {"apiVersion": "argoproj.io/v1alpha1", "kind": "Application", "metadata": {"name": "app"}}
    world.send("POST", APPS, kind | {"spec": spec, "operation": {"sync": {}}})
    world.driver.until_idle()
    found = world.send("GET", f"{APPS}/app")
    assert dig(found, "status", "operationState", "phase") == "Succeeded"
    assert dig(found, "status", "sync", "status") == "Synced"
    # Before it comes live and after, when the operation begins and ends, and once more where versions moved.
    assert {name: number for name, number in counted.items() if number > 8 * WAVES} == {}
    assert set(counted) == {"part_of", "scoped", "hook_types", "_row"}
