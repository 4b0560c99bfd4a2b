"""The resources that Kubernetes 1.36 serves without any extension.

Called by the server's registry, by discovery and by the OpenAPI writer. Nothing comes in; returns the rows of
``data/resources.json`` as :class:`~syncline.kube.objects.ResourceInfo`, read once.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

from syncline.kube.objects import GVK, ResourceInfo
from syncline.kube.schema import store


@dataclass(frozen=True, slots=True)
class Subresource:
    """``pods/eviction``: the kind it takes and gives, and its verbs. ``foreign`` says that the kind lives in another
    group version than its owner, which discovery then names."""

    name: str
    gvk: GVK
    verbs: tuple[str, ...]
    foreign: bool = False


@cache
def builtin_resources() -> tuple[ResourceInfo, ...]:
    """All built-in resources in discovery order: groups by priority, preferred version first, plurals by name."""
    return tuple(_resource(row) for row in store.resource_table())


def subresource_of(resource: ResourceInfo, name: str) -> Subresource | None:
    """What a listed subresource takes; None if the resource does not have it.

    Built-in ones come from the table; those of custom resources are ``status`` and ``scale`` only.
    """
    if name not in resource.subresources:
        return None
    known = _subresources().get((resource.group, resource.version, resource.plural, name))
    if known is not None:
        return known
    gvk = GVK("autoscaling", "v1", "Scale") if name == "scale" else resource.gvk
    return Subresource(name, gvk, ("get", "patch", "update"), foreign=name == "scale")


def _resource(row: dict[str, Any]) -> ResourceInfo:
    return ResourceInfo(
        group=row["group"],
        version=row["version"],
        kind=row["kind"],
        plural=row["plural"],
        namespaced=row["namespaced"],
        verbs=tuple(row["verbs"]),
        subresources=tuple(entry["name"] for entry in row["subresources"]),
        singular=row["singular"],
        short_names=tuple(row["shortNames"]),
        categories=tuple(row["categories"]),
    )


@cache
def _subresources() -> dict[tuple[str, str, str, str], Subresource]:
    return {
        (row["group"], row["version"], row["plural"], entry["name"]): Subresource(
            name=entry["name"],
            gvk=GVK(entry.get("group", row["group"]), entry.get("version", row["version"]), entry["kind"]),
            verbs=tuple(entry["verbs"]),
            foreign="version" in entry,
        )
        for row in store.resource_table()
        for entry in row["subresources"]
    }
