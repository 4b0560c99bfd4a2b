"""Logs of an Application: which containers it has, below which of its objects; pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from syncline.assembly.inspection.resource_tree import ResourceNode, walk
from syncline.kube.client import Request
from syncline.kube.objects import GVK, Obj, ObjectRef, ResourceInfo, dig

POD = GVK("", "v1", "Pod")


@dataclass(frozen=True, slots=True)
class Stream:
    """One container's log."""

    namespace: str
    pod: str
    container: str

    def request(self, pods: ResourceInfo, query: Mapping[str, str]) -> Request:
        return Request("GET", pods.path(self.namespace, self.pod, "log"), {**query, "container": self.container})


def chosen(trees: Sequence[ResourceNode], wanted: ObjectRef) -> tuple[ResourceNode, ...]:
    """Return the trees below the objects of this group, kind and name; all of them without a name or kind."""
    if not (wanted.group or wanted.kind or wanted.name):
        return tuple(trees)
    return tuple(
        node
        for node in walk(tuple(trees))
        if wanted.group in ("", node.ref.group)
        and wanted.kind in ("", node.ref.kind)
        and wanted.name in ("", node.ref.name)
    )


def streams_of(trees: Sequence[ResourceNode], container: str = "", namespace: str = "") -> list[Stream]:
    """Return every container of every pod in the trees, each once, in order."""
    found: dict[Stream, None] = {}
    for node in walk(tuple(trees)):
        if node.ref.group_kind != POD.group_kind or node.live is None or namespace not in ("", node.ref.namespace):
            continue
        for name in _containers(node.live):
            if container in ("", name):
                found[Stream(node.ref.namespace, node.ref.name, name)] = None
    return list(found)


def _containers(pod: Obj) -> list[str]:
    return [
        str(one.get("name")) for part in ("initContainers", "containers") for one in dig(pod, "spec", part, default=[])
    ]
