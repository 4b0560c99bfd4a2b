"""``python -m bench waves [--quick]``: one Application of many waves of one object each, in virtual time.

A pass looks at one wave; the curve shows whether it pays for the others once more. CPU of one process: controllers, the
embedded API, nothing between them.
"""

from __future__ import annotations

import time
from datetime import datetime
from typing import Any

from bench.table import Table
from syncline.gitops.application.manifests import Manifests
from syncline.kube.objects import Obj, dig
from syncline.rehearsal.world import World
from syncline.sources.rendering.environment import NO_CONTEXT, RenderContext

__all__ = ["figures"]

APPS = "/apis/argoproj.io/v1alpha1/namespaces/argocd/applications"
CURVE = (50, 100, 200, 400)


class _Waves:
    """As many ConfigMaps as waves."""

    def __init__(self, count: int) -> None:
        self._made = tuple(map(_manifest, range(count)))

    def read(
        self, sources: tuple[Any, ...], revisions: tuple[str, ...], now: datetime, context: RenderContext = NO_CONTEXT
    ) -> Manifests:
        return Manifests(("1" * 40,), self._made, ("Directory",), now)


def _manifest(number: int) -> Obj:
    notes = {"argocd.argoproj.io/sync-wave": str(number)}
    metadata = {"name": f"object-{number:04}", "annotations": notes}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"text": "x" * 200}}


def figures(table: Table, *, quick: bool) -> None:
    table.title("A sync of many waves of one ConfigMap; CPU of one process")
    for count in CURVE[:2] if quick else CURVE:
        spent = _spent(count)
        table.row(f"{count} waves", f"{spent:.2f} s", f"{spent / count * 1000:.1f} ms a wave")


def _spent(count: int) -> float:
    world = World(_Waves(count), nodes=0)
    spec = {
        "project": "default",
        "source": {"repoURL": "https://example.com/r.git", "path": "."},
        "destination": {"server": "https://kubernetes.default.svc", "namespace": "default"},
    }
    kind = {"apiVersion": "argoproj.io/v1alpha1", "kind": "Application", "metadata": {"name": "waves"}}
    world.send("POST", APPS, kind | {"spec": spec, "operation": {"sync": {}}})
    begun = time.process_time()
    world.driver.until_idle()
    spent = time.process_time() - begun
    found = world.send("GET", f"{APPS}/waves")
    if dig(found, "status", "operationState", "phase") != "Succeeded":
        raise SystemExit(f"the sync of {count} waves ended as {dig(found, 'status', 'operationState')}")
    return spent
