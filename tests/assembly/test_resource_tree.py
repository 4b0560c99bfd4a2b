"""The tree of an Application's objects, and which objects count as orphans."""

from __future__ import annotations

from typing import Any

from syncline.assembly.inspection.resource_tree import MAX_DEPTH, orphaned_resources, resource_tree, walk
from syncline.control.cache import Cache
from syncline.gitops.application.observing.observe import AppSettings
from syncline.kube.mapper import Mapper
from syncline.kube.objects import Obj, ref_of

SETTINGS = AppSettings()
APP: Obj = {
    "metadata": {"name": "shop", "namespace": "argocd"},
    "spec": {"destination": {"server": "https://kubernetes.default.svc", "namespace": "shop"}},
    "status": {
        "resources": [
            {"group": "apps", "kind": "Deployment", "namespace": "shop", "name": "web"},
            {"kind": "ConfigMap", "namespace": "shop", "name": "missing"},
        ]
    },
}
WATCHES: Obj = {
    "spec": {
        "destinations": [{"server": "*", "namespace": "*"}],
        "sourceRepos": ["*"],
        "orphanedResources": {"ignore": [{"kind": "Secret", "name": "kept-*"}, {"group": "batch"}]},
        "namespaceResourceBlacklist": [{"group": "", "kind": "Pod"}],
    }
}


def obj(version: str, kind: str, name: str, owner: str = "", namespace: str = "shop", **metadata: Any) -> Obj:
    owners = {"ownerReferences": [{"uid": owner}]} if owner else {}
    metadata = {"name": name, "namespace": namespace, "uid": name, **owners, **metadata}
    return {"apiVersion": version, "kind": kind, "metadata": metadata}


def cache_of(*objects: Obj) -> Cache:
    cache = Cache(Mapper())
    for one in objects:
        cache.put(ref_of(one).group_kind, one)
    return cache


def names(cache: Cache, project: Obj = WATCHES) -> list[str]:
    return [node.ref.name for node in orphaned_resources(cache, APP, project, SETTINGS)]


def test_children_stand_below_their_owners_and_missing_objects_stay() -> None:
    cache = cache_of(
        obj("apps/v1", "Deployment", "web"),
        obj("apps/v1", "ReplicaSet", "web-2", owner="web"),
        obj("apps/v1", "ReplicaSet", "web-1", owner="web"),
        obj("v1", "Pod", "web-1-a", owner="web-1"),
        obj("v1", "Pod", "stranger", owner="other"),
    )
    tree = resource_tree(cache, APP)
    assert [node.ref.name for node in walk(tree)] == ["web", "web-1", "web-1-a", "web-2", "missing"]
    assert tree[1].live is None


def test_owners_in_a_circle_end_somewhere() -> None:
    cache = cache_of(obj("apps/v1", "Deployment", "web", owner="b"), obj("v1", "Pod", "b", owner="web"))
    assert len(list(walk(resource_tree(cache, APP)))) == MAX_DEPTH + 2


def test_only_top_level_objects_that_nobody_tracks_in_its_namespace_are_orphans() -> None:
    tracked = {"argocd.argoproj.io/tracking-id": "other:/ConfigMap:shop/theirs"}
    cache = cache_of(
        obj("apps/v1", "Deployment", "web"),
        obj("v1", "ConfigMap", "left"),
        obj("v1", "ConfigMap", "theirs", annotations=tracked),
        obj("v1", "ConfigMap", "owned", owner="web"),
        obj("v1", "ConfigMap", "elsewhere", namespace="default"),
    )
    assert names(cache) == ["left"]


def test_kubernetes_own_objects_ignored_ones_and_kinds_out_of_reach_are_no_orphans() -> None:
    cache = cache_of(
        obj("v1", "ConfigMap", "kube-root-ca.crt"),
        obj("v1", "ServiceAccount", "default"),
        obj("v1", "Event", "told"),
        obj("v1", "Pod", "denied"),
        obj("v1", "Secret", "kept-1"),
        obj("batch/v1", "Job", "ignored"),
        obj("v1", "Secret", "left"),
    )
    assert names(cache) == ["left"]


def test_nobody_looks_for_orphans_unless_the_project_does() -> None:
    assert names(cache_of(obj("v1", "ConfigMap", "left")), {"spec": {}}) == []
    assert names(cache_of(obj("v1", "ConfigMap", "left"))) == ["left"]
