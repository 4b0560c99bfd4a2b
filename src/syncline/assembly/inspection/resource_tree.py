"""The tree of an Application's objects by ownership, and the objects that no Application tracks.

Called by ``syncline app resources``, ``app get -o tree`` and ``app logs`` with one snapshot of the cluster. Pure: reads
the cache and the Application's status, sends no requests.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from syncline.apply.health import Health, HealthStatus, health_of
from syncline.control.cache import Cache
from syncline.gitops.application.observing.observe import AppSettings
from syncline.gitops.application.observing.orphans import orphans
from syncline.kube.objects import Obj, ObjectRef, dig, meta, ref_of, uid_of

MAX_DEPTH = 32
"""Depth of ownership; Kubernetes' own chains have three or four levels."""


@dataclass(frozen=True, slots=True)
class ResourceNode:
    """One object with those it owns. ``live`` None: in the source only, or unread. ``row``: its row in
    ``status.resources``, empty for objects without a manifest."""

    ref: ObjectRef
    live: Obj | None
    row: Mapping[str, object]
    children: tuple[ResourceNode, ...] = ()
    unread: str = ""
    """Why it is unknown whether it exists."""

    @property
    def created(self) -> str:
        return str(meta(self.live or {}).get("creationTimestamp") or "")

    @property
    def health(self) -> Health | None:
        report = dig(self.row, "health", default={}) if self.unread else {}
        if report.get("status") in tuple(HealthStatus):
            return Health(HealthStatus(report["status"]), str(report.get("message") or ""))
        return None if self.live is None else health_of(self.live)


def resource_tree(cache: Cache, app: Obj) -> tuple[ResourceNode, ...]:
    """Return one tree per row of ``status.resources``, in its order; children by kind, namespace and name."""
    trees = []
    for row in dig(app, "status", "resources", default=[]):
        ref = ObjectRef(*(str(row.get(part) or "") for part in ("group", "kind", "namespace", "name")))
        live = cache.get(ref)
        unread = "" if live is not None else cache.unread(ref)
        trees.append(ResourceNode(ref, live, row, _children(cache, live, 0), unread))
    return tuple(trees)


def _children(cache: Cache, owner: Obj | None, depth: int) -> tuple[ResourceNode, ...]:
    if owner is None or depth >= MAX_DEPTH or not uid_of(owner):
        return ()
    owned = (obj for obj in cache.owned(uid_of(owner)) if uid_of(obj) != uid_of(owner))
    return tuple(ResourceNode(ref_of(obj), obj, {}, _children(cache, obj, depth + 1)) for obj in owned)


def walk(nodes: tuple[ResourceNode, ...]) -> Iterator[ResourceNode]:
    """Yield every node, parents first."""
    for node in nodes:
        yield node
        yield from walk(node.children)


def orphaned_resources(cache: Cache, app: Obj, project: Obj, settings: AppSettings) -> tuple[ResourceNode, ...]:
    """Return the objects in the destination namespace that no application tracks, with those they own; none unless the
    project monitors orphans."""
    found = orphans(cache, app, project, settings.tracking)
    return tuple(ResourceNode(ref_of(obj), obj, {}, _children(cache, obj, 0)) for obj in found)
