"""Formats trees of objects as tables. Nodes in, text out."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from syncline.assembly.inspection.resource_tree import ResourceNode, walk
from syncline.base.clock import parse_time
from syncline.cli.frame.output import table
from syncline.kube.objects import Obj, dig
from syncline.views.texts import age

Nodes = tuple[ResourceNode, ...]


def app_tree(nodes: Nodes, now: datetime, *, detailed: bool = False) -> str:
    """Return the tree of ``app get -o tree``."""
    headers = ("KIND/NAME", "STATUS", "HEALTH", *(("AGE",) if detailed else ()), "MESSAGE")
    rows = []
    for lead, node in _lines(nodes, ""):
        health = node.health
        state = "Missing" if node.live is None and not node.unread else (str(health.status) if health else " ")
        message = health.message if health else ""
        middle = (_age(node, now),) if detailed else ()
        name = f"{lead}{node.ref.kind}/{node.ref.name}"
        rows.append((name, str(node.row.get("status") or " "), state, *middle, message or " "))
    return table(headers, rows)


def resource_table(nodes: Nodes, orphans: Nodes) -> str:
    """Return the table of ``app resources``: every object, then those that no Application tracks."""
    rows = [_row(node, "", orphaned) for part, orphaned in ((nodes, "No"), (orphans, "Yes")) for node in walk(part)]
    return table(("GROUP", "KIND", "NAMESPACE", "NAME", "ORPHANED"), rows)


def resource_tree_table(nodes: Nodes, orphans: Nodes, now: datetime, *, detailed: bool = False) -> str:
    """As :func:`resource_table`, with children under their owners; ``detailed`` adds age, health and reason."""
    headers = ("GROUP", "KIND", "NAMESPACE", "NAME", "ORPHANED", *(("AGE", "HEALTH", "REASON") if detailed else ()))
    rows = []
    for part, orphaned in ((nodes, "No"), (orphans, "Yes")):
        for lead, node in _lines(part, ""):
            health = node.health
            more = (_age(node, now), str(health.status) if health else " ", health.message if health else "")
            rows.append((*_row(node, lead, orphaned), *((cell or " " for cell in more) if detailed else ())))
    return table(headers, rows)


def node_objects(nodes: Nodes, orphaned: bool) -> list[Obj]:
    """Return plain JSON of every node, parents first."""
    found: list[Obj] = []
    for node in walk(nodes):
        health = node.health
        one: Obj = {"group": node.ref.group, "kind": node.ref.kind, "namespace": node.ref.namespace}
        one |= {"name": node.ref.name, "orphaned": orphaned, "uid": dig(node.live or {}, "metadata", "uid", default="")}
        if health is not None:
            one["health"] = {"status": str(health.status), "message": health.message}
        if node.row.get("status"):
            one["status"] = node.row["status"]
        found.append(one)
    return found


def _row(node: ResourceNode, lead: str, orphaned: str) -> tuple[str, ...]:
    return node.ref.group or " ", node.ref.kind, node.ref.namespace or " ", f"{lead}{node.ref.name}", orphaned


def _lines(nodes: Nodes, lead: str, *, top: bool = True) -> Iterator[tuple[str, ResourceNode]]:
    """Yield each node with the branches drawn before it."""
    for index, node in enumerate(nodes):
        last = index == len(nodes) - 1
        yield ("" if top else lead + ("└─" if last else "├─")), node
        below = "" if top else lead + ("  " if last else "│ ")
        yield from _lines(node.children, below, top=False)


def _age(node: ResourceNode, now: datetime) -> str:
    return age(parse_time(node.created), now) if node.created else " "
