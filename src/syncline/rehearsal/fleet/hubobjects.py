"""What of a repository is for a hub, and what is assumed beside it; pure. Entry point: :func:`for_the_hub`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from syncline.fleet.hub.placement.model import PLACEMENT_LABEL
from syncline.kube.kinds.applicationset import APPLICATION_SET
from syncline.kube.kinds.argoproj import APPLICATION
from syncline.kube.kinds.managedclusters import CLUSTER_SET_BINDING, PLACEMENT, PLACEMENT_DECISION
from syncline.kube.objects import Obj, dig, meta, name_of, namespace_of
from syncline.rehearsal.given.applications import addresses_of, brought_by, control_namespace_of, sources_of
from syncline.rehearsal.given.files import Files
from syncline.rehearsal.scenario import ScenarioError

GROUPS = (
    "argoproj.io",
    "cluster.open-cluster-management.io",
    "apps.open-cluster-management.io",
    "syncline.dev",
)
"""Whose objects are for the hub where no Application deploys them."""
SCOPED = ("ManagedClusterSet", "FleetDisruptionBudget")
"""Kinds of these that have no namespace."""
GLOBAL = "global"
"""The cluster set of all clusters, which a hub keeps."""
ROOTS = (APPLICATION_SET.kind, APPLICATION.kind)


@dataclass(frozen=True)
class ForTheHub:
    """``objects`` in an order in which they can be created; ``urls``: addresses of the rehearsed repository;
    ``namespace``: where Argo CD's objects are."""

    objects: tuple[Obj, ...]
    urls: tuple[str, ...]
    namespace: str
    assumed: tuple[str, ...]


def for_the_hub(files: Files, installed: Files, name: str) -> ForTheHub:
    """Return what of the repository ``name`` is for the hub. ``installed``: what an administrator has installed there
    already. Raises ScenarioError (usage) if there is no ApplicationSet and no Application."""
    there = [obj for _, obj in installed.objects()]
    written = [(path, obj) for path, obj in files.objects() if _is_of_a_hub(obj)]
    roots = [obj for obj in (*(one for _, one in written), *there) if obj.get("kind") in ROOTS]
    if not roots:
        said = f"{name}: holds no ApplicationSet and no Application; a fleet gets what those of its hub make"
        raise ScenarioError(said, usage=True)
    urls = addresses_of(files, [one for obj in roots for one in sources_of(obj)])
    namespace = control_namespace_of(roots)
    deployed = brought_by(files, roots, urls)
    own = [_placed(obj, namespace) for path, obj in written if path not in deployed]
    assumed = [f"{', '.join(urls)} is this repository"] if urls else []
    beside = tuple(_assumed([*there, *own], namespace, assumed))
    spaces = sorted({namespace_of(one) for one in (*there, *own, *beside)} - {"", "default"})
    made = tuple({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": one}} for one in spaces)
    first = [one for one in there if one.get("kind") not in ROOTS]
    last = [one for one in there if one.get("kind") in ROOTS]
    ordered = sorted(own, key=lambda one: one.get("kind") in ROOTS)
    return ForTheHub((*made, *first, *beside, *last, *ordered), urls, namespace, tuple(assumed))


def _is_of_a_hub(obj: Obj) -> bool:
    return str(obj.get("apiVersion") or "").partition("/")[0] in GROUPS and bool(name_of(obj))


def _placed(obj: Obj, namespace: str) -> Obj:
    if obj["kind"] in SCOPED or namespace_of(obj):
        return obj
    return obj | {"metadata": {**meta(obj), "namespace": namespace}}


# -- what is assumed ---------------------------------------------------------------------------------------------------


def _assumed(objects: Sequence[Obj], namespace: str, said: list[str]) -> Iterator[Obj]:
    """Yield what an administrator has made and none of the files has: the ConfigMaps of generators, the Placements that
    are named, and bindings of the set of all clusters; append a sentence for each."""
    known = {(obj.get("kind"), namespace_of(obj), name_of(obj)) for obj in objects}
    for space, config in sorted(set(_config_maps(objects))):
        if ("ConfigMap", space, config) not in known:
            said.append(f"ConfigMap {space}/{config} is there, and names PlacementDecisions")
            yield _config_map(space, config)
    wanted = sorted(set(_placements(objects)))
    for space, name in wanted:
        if (PLACEMENT.kind, space, name) not in known:
            said.append(f"Placement {space}/{name} is there, and selects all clusters")
            yield _made(PLACEMENT, space, name, {})
    spaces = {namespace_of(obj) for obj in objects if obj.get("kind") == PLACEMENT.kind} | {one for one, _ in wanted}
    bound = {space for kind, space, _ in known if kind == CLUSTER_SET_BINDING.kind}
    for space in sorted(spaces - bound):
        said.append(f"ManagedClusterSet {GLOBAL} is bound to namespace {space}")
        yield _made(CLUSTER_SET_BINDING, space, GLOBAL, {"clusterSet": GLOBAL})
    if not any(obj.get("kind") == "Service" for obj in objects):
        yield _server(namespace)  # GitOpsClusters look for it where Argo CD is


def _config_maps(objects: Iterable[Obj]) -> Iterator[tuple[str, str]]:
    for obj in objects:
        for one in _decision_generators(obj):
            if one.get("configMapRef"):
                yield namespace_of(obj), str(one["configMapRef"])


def _placements(objects: Iterable[Obj]) -> Iterator[tuple[str, str]]:
    for obj in objects:
        for one in _decision_generators(obj):
            named = dig(one, "labelSelector", "matchLabels", PLACEMENT_LABEL)
            if named:
                yield namespace_of(obj), str(named)
        reference = dig(obj, "spec", "placementRef")
        if obj.get("kind") == "GitOpsCluster" and isinstance(reference, dict) and reference.get("name"):
            yield str(reference.get("namespace") or namespace_of(obj)), str(reference["name"])


def _decision_generators(obj: Obj) -> Iterator[Obj]:
    if obj.get("kind") == APPLICATION_SET.kind:
        yield from _below(dig(obj, "spec", "generators"))


def _below(value: Any) -> Iterator[Obj]:
    """Yield the decision generators in generators, at any depth of matrix and merge (upstream permits two)."""
    for one in value if isinstance(value, list) else ():
        for key, inner in one.items() if isinstance(one, dict) else ():
            if key == "clusterDecisionResource" and isinstance(inner, dict):
                yield inner
            elif isinstance(inner, dict):
                yield from _below(inner.get("generators"))


def _config_map(namespace: str, name: str) -> Obj:
    data = {
        "apiVersion": PLACEMENT_DECISION.api_version,
        "kind": "placementdecisions",
        "statusListKey": "decisions",
        "matchKey": "clusterName",
    }
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": namespace}, "data": data}


def _made(kind: Any, namespace: str, name: str, spec: Obj) -> Obj:
    metadata = {"name": name, "namespace": namespace}
    return {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": metadata, "spec": spec}


def _server(namespace: str) -> Obj:
    labels = {"app.kubernetes.io/component": "server", "app.kubernetes.io/part-of": "argocd"}
    metadata = {"name": "argocd-server", "namespace": namespace, "labels": labels}
    return {"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": {"ports": [{"port": 443}]}}
