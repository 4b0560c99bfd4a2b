"""The objects of an Application and what grew out of them, as a tree of owners; and objects that nobody tracks.

Called by ``syncline app resources``, ``app get -o tree`` and ``app logs`` with one look at the cluster. Pure: reads the
cache and the Application's status, asks nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from syncline.control.cache import Cache
from syncline.gitops.application.observe import AppSettings
from syncline.gitops.application.view import IN_CLUSTER_NAME, IN_CLUSTER_SERVER, AppView
from syncline.gitops.health import Health, health_of
from syncline.gitops.project import permits_resource
from syncline.gitops.resource_filter import ResourceFilter
from syncline.kube.glob import glob_matches
from syncline.kube.objects import Obj, ObjectRef, dig, meta, owner_references, ref_of, uid_of

__all__ = ["ResourceNode", "orphaned_resources", "resource_tree", "walk"]

MAX_DEPTH = 32
"""Owners of owners; Kubernetes' own chains have three or four."""


@dataclass(frozen=True, slots=True)
class ResourceNode:
    """One object with what it owns. ``live`` None: it is in the source only. ``row``: its row in ``status.resources``,
    empty for objects that no manifest describes."""

    ref: ObjectRef
    live: Obj | None
    row: Mapping[str, object]
    children: tuple[ResourceNode, ...] = ()

    @property
    def created(self) -> str:
        return str(meta(self.live or {}).get("creationTimestamp") or "")

    @property
    def health(self) -> Health | None:
        return None if self.live is None else health_of(self.live)


def resource_tree(cache: Cache, app: Obj) -> tuple[ResourceNode, ...]:
    """One tree for each row of ``status.resources``, in its order; children by kind, namespace and name."""
    trees = []
    for row in dig(app, "status", "resources", default=[]):
        ref = ObjectRef(*(str(row.get(part) or "") for part in ("group", "kind", "namespace", "name")))
        live = cache.get(ref)
        trees.append(ResourceNode(ref, live, row, _children(cache, live, 0)))
    return tuple(trees)


def _children(cache: Cache, owner: Obj | None, depth: int) -> tuple[ResourceNode, ...]:
    if owner is None or depth >= MAX_DEPTH or not uid_of(owner):
        return ()
    owned = (obj for obj in cache.owned(uid_of(owner)) if uid_of(obj) != uid_of(owner))
    return tuple(ResourceNode(ref_of(obj), obj, {}, _children(cache, obj, depth + 1)) for obj in owned)


def walk(nodes: tuple[ResourceNode, ...]) -> Iterator[ResourceNode]:
    """Every node, parents first."""
    for node in nodes:
        yield node
        yield from walk(node.children)


def orphaned_resources(cache: Cache, app: Obj, project: Obj, settings: AppSettings) -> tuple[ResourceNode, ...]:
    """Objects in the destination namespace that no application tracks; none unless the project watches for them.

    Argo CD ``controller/appcontroller.go`` getOrphanedNodes: top level, permitted by the project, not one of
    Kubernetes' own and not ignored by ``spec.orphanedResources.ignore``.
    """
    watched = dig(project, "spec", "orphanedResources")
    view = AppView(app)
    namespace = view.destination_namespace
    if watched is None or not namespace:
        return ()
    ignored = [entry for entry in watched.get("ignore") or () if isinstance(entry, dict)]
    rows = {node.ref for node in resource_tree(cache, app)}
    found = []
    for kind in cache.kinds():
        for obj in cache.objects(kind, namespace):
            ref = ref_of(obj)
            ours = ref in rows or settings.tracking.app_name(obj) or owner_references(obj)
            if not ours and _permitted(project, ref, view) and not _is_ignored(ref, ignored):
                found.append(ResourceNode(ref, obj, {}, _children(cache, obj, 0)))
    return tuple(found)


def _permitted(project: Obj, ref: ObjectRef, view: AppView) -> bool:
    server = str(view.destination.get("server") or IN_CLUSTER_SERVER).rstrip("/")
    name = str(view.destination.get("name") or (IN_CLUSTER_NAME if server == IN_CLUSTER_SERVER else ""))
    if ResourceFilter().excludes(ref.group, ref.kind, server):
        return False
    return permits_resource(project, ref.group, ref.kind, ref.name, ref.namespace, server, name)


def _is_ignored(ref: ObjectRef, entries: list[Obj]) -> bool:
    """An entry's group always counts (empty: the core group); an empty kind or name is any."""
    own = {
        ObjectRef("", "Service", "default", "kubernetes"),
        ObjectRef("", "ServiceAccount", ref.namespace, "default"),
        ObjectRef("", "ConfigMap", ref.namespace, "kube-root-ca.crt"),
    }
    return ref in own or any(
        glob_matches(str(entry.get("group") or ""), ref.group)
        and all(
            not entry.get(key) or glob_matches(str(entry[key]), text)
            for key, text in (("kind", ref.kind), ("name", ref.name))
        )
        for entry in entries
    )
