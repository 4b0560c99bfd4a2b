"""Builds a cluster from an export: an empty embedded cluster with the exported objects laid over it.

``syncline plan --against`` calls :func:`exported_cluster`. Kinds are those of the embedded cluster and of the exported
CustomResourceDefinitions; other objects keep their status. Opens no socket and writes nothing.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from syncline.assembly.inspection.refusals import Questions
from syncline.assembly.inspection.snapshot import ClusterSnapshot, snapshot_of_cluster
from syncline.control.cache import IndexFn
from syncline.control.executor import run_in_place
from syncline.gitops.application.manifests import Manifests
from syncline.gitops.application.observing.observe import AppSettings
from syncline.kube.client import Request, Response
from syncline.kube.objects import GroupKind, Obj, gvk_of, meta, name_of
from syncline.rehearsal.world import World
from syncline.sources.rendering.environment import NO_CONTEXT, RenderContext

DEFINITION = GroupKind("apiextensions.k8s.io", "CustomResourceDefinition")
NAMESPACE = GroupKind("", "Namespace")
_NO_NAMESPACE = re.compile(r'namespaces "([^"]+)" not found')
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
MADE_BY_SERVER = ("status", "uid", "resourceVersion", "generation", "creationTimestamp", "managedFields")
SETTLE_S = 10
"""Virtual seconds until CustomResourceDefinitions are served."""


@dataclass(frozen=True, slots=True)
class Exported:
    """A cluster made of an export. ``snapshot.unreadable`` names objects of unknown kinds. ``questions`` validates
    manifests on an empty cluster of the same kinds."""

    snapshot: ClusterSnapshot
    questions: Questions


def exported_cluster(exported: Sequence[Obj], settings: AppSettings, indices: Mapping[str, IndexFn]) -> Exported:
    """Return the cluster of exported objects: those of ``kubectl get -o yaml``, with Lists flattened."""
    world = World(_Nothing(), settings=settings, nodes=0)
    world.driver.settle()
    problems = [text for obj in exported if (text := _define(world, obj))]
    world.driver.advance(SETTLE_S)
    snapshot = run_in_place(snapshot_of_cluster(indices), world.admin)
    for obj in exported:
        gvk = gvk_of(obj)
        info = snapshot.cache.mapper.find(gvk) or snapshot.cache.mapper.preferred(gvk.group_kind)
        if info is None:
            problems.append(f"{gvk.api_version} {gvk.kind} {name_of(obj)}: the export holds no definition of its kind")
            continue
        namespace = {"namespace": meta(obj).get("namespace") or "default"} if info.namespaced else {}
        snapshot.cache.put(info.group_kind, obj | {"metadata": {**meta(obj), **namespace}})
    namespaces = not exported or any(gvk_of(obj).group_kind == NAMESPACE for obj in exported)
    found = ClusterSnapshot(snapshot.cache, (*snapshot.unreadable, *problems))
    return Exported(found, Questions(_Roomy(world), whole=False, namespaces=namespaces))


class _Roomy:
    """A transport to the empty cluster that creates each Namespace when a request needs it."""

    def __init__(self, world: World) -> None:
        self._world = world

    def send(self, request: Request) -> Response:
        answer = self._world.admin.send(request)
        missing = _NO_NAMESPACE.match(str(answer.obj.get("message"))) if answer.status == 404 else None
        if missing is None:
            return answer
        body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": missing[1]}}
        self._world.admin.send(Request("POST", "/api/v1/namespaces", body=body))
        self._world.driver.advance(1)
        return self._world.admin.send(request)


def _define(world: World, obj: Obj) -> str:
    if gvk_of(obj).group_kind != DEFINITION:
        return ""
    kept = {key: value for key, value in meta(obj).items() if key not in MADE_BY_SERVER}
    body = {key: value for key, value in obj.items() if key != "status"} | {"metadata": kept}
    answer = world.admin.send(Request("POST", DEFINITIONS, body=body))
    if answer.ok or answer.status == 409:
        return ""
    return f"CustomResourceDefinition {name_of(obj)}: {answer.obj.get('message')}"


class _Nothing:
    """A reader without manifests: the empty cluster has no Applications."""

    def read(
        self, sources: tuple[Obj, ...], revisions: tuple[str, ...], now: datetime, context: RenderContext = NO_CONTEXT
    ) -> Manifests:
        return Manifests((), (), (), now, error="nothing is read here")
