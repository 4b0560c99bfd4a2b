"""The tree of an Application's objects by ownership, and the objects that no Application tracks.

Called by ``syncline app resources``, ``app get -o tree`` and ``app logs`` with one snapshot of the cluster. Pure: reads
the cache and the Application's status, sends no requests.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from syncline.apply.health import Health, HealthStatus, health_of
from syncline.base.clock import time_or_none
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
    judged: Health | None = None
    """Its health as another process found it, where ``live`` is no more than its metadata."""

    @property
    def created(self) -> str:
        return str(meta(self.live or {}).get("creationTimestamp") or "")

    @property
    def health(self) -> Health | None:
        if self.judged is not None:
            return self.judged
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


# -- trees as rows, and back -------------------------------------------------------------------------------------------


def tree_rows(nodes: tuple[ResourceNode, ...], depth: int = 0) -> Iterator[Obj]:
    """Yield one row of plain JSON for each node, parents first; ``depth`` says whose child it is."""
    for node in nodes:
        health = node.health
        row: Obj = {**node.ref._asdict(), "depth": depth, "exists": node.live is not None}
        row |= {"status": str(node.row["status"])} if node.row.get("status") else {}
        row |= {"uid": uid_of(node.live), "created": node.created} if node.live is not None else {}
        row |= {"health": {"status": str(health.status), "message": health.message}} if health else {}
        row |= {"unread": node.unread} if node.unread else {}
        yield row
        yield from tree_rows(node.children, depth + 1)


def tree_of(rows: Sequence[Mapping[str, Any]]) -> tuple[ResourceNode, ...]:
    """Return the trees of such rows. What is no row is left out; a row below none is a root."""
    roots: list[ResourceNode] = []
    above: list[tuple[ResourceNode, list[ResourceNode]]] = []

    def close(depth: int) -> None:
        while len(above) > depth:
            node, children = above.pop()
            (above[-1][1] if above else roots).append(replace(node, children=tuple(children)))

    for row in rows:
        depth = row.get("depth")
        close(min(depth, len(above), MAX_DEPTH) if isinstance(depth, int) and depth > 0 else 0)
        above.append((_node_of(row), []))
    close(0)
    return tuple(roots)


def _node_of(row: Mapping[str, Any]) -> ResourceNode:
    ref = ObjectRef(*(str(row.get(part) or "") for part in ("group", "kind", "namespace", "name")))
    created = str(row.get("created")) if time_or_none(row.get("created")) else ""
    metadata = {"name": ref.name, "namespace": ref.namespace, "uid": str(row.get("uid") or "")}
    live = {"metadata": metadata | {"creationTimestamp": created}} if row.get("exists") else None
    health: Any = row.get("health")
    known = isinstance(health, dict) and health.get("status") in tuple(HealthStatus)
    judged = Health(HealthStatus(health["status"]), str(health.get("message") or "")) if known else None
    status = {"status": str(row["status"])} if row.get("status") else {}
    return ResourceNode(ref, live, status, unread=str(row.get("unread") or ""), judged=judged)
