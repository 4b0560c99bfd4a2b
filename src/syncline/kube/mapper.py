"""Maps kinds to the resources that serve them: :class:`Mapper`.

Discovery fills it (:func:`discover`); drivers refresh it when CustomResourceDefinitions change. Rooms get every
:class:`ResourceInfo` from it and never guess a plural.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Mapping
from typing import Any

from syncline.kube.client import Request, Response
from syncline.kube.errors import Unanswered
from syncline.kube.objects import GVK, GroupKind, Obj, ResourceInfo

MAX_VERSION = 100
AGGREGATED_DISCOVERY = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"


DISCOVERED = ("APIGroupDiscoveryList", "APIVersions", "APIGroupList")
"""Kinds of discovery documents. Any other response is an error, not a server without resources."""


class Mapper:
    """The resources that a cluster serves, within a group in order of preference."""

    def __init__(self, resources: Iterable[ResourceInfo] = ()) -> None:
        self._by_gvk: dict[GVK, ResourceInfo] = {}
        self._preferred: dict[GroupKind, ResourceInfo] = {}
        self.version = ""
        """The server's version, such as ``v1.36.0``; empty: unknown."""
        self.replace(resources)

    def replace(self, resources: Iterable[ResourceInfo]) -> None:
        """Replace all resources by a new discovery result."""
        self._by_gvk = {}
        self._preferred = {}
        for info in resources:
            self._by_gvk.setdefault(info.gvk, info)
            self._preferred.setdefault(info.group_kind, info)

    def find(self, gvk: GVK) -> ResourceInfo | None:
        """Return the resource of exactly this version, or None."""
        return self._by_gvk.get(gvk)

    def preferred(self, kind: GroupKind) -> ResourceInfo | None:
        """Return the resource of a kind in the group's preferred version, or None."""
        return self._preferred.get(kind)

    def by_name(self, name: str) -> ResourceInfo | None:
        """Find a resource as kubectl does: by plural, singular, kind, short name or ``plural.group``, in any case."""
        wanted = name.lower()
        for info in self._preferred.values():
            names = {info.plural, info.singular or info.kind.lower(), info.kind.lower(), *info.short_names}
            if wanted in names or (info.group and wanted in {f"{n}.{info.group}" for n in names}):
                return info
        return None

    def all(self) -> list[ResourceInfo]:
        """Return one entry per kind, in its preferred version and discovery order."""
        return list(self._preferred.values())

    @property
    def served(self) -> Mapping[GVK, ResourceInfo]:
        """The resources by kind and version; each discovery creates a new mapping."""
        return self._by_gvk

    def versions(self) -> list[ResourceInfo]:
        """Return every served kind in every version."""
        return list(self._by_gvk.values())


def discover() -> Generator[Request, Response, list[ResourceInfo]]:
    """Request what a server serves (aggregated discovery, two requests). Raises ApiError."""
    found: list[ResourceInfo] = []
    for path in ("/api", "/apis"):
        answer = yield Request("GET", path, headers={"accept": AGGREGATED_DISCOVERY})
        document = answer.or_raise()
        if not isinstance(document, dict) or document.get("kind") not in DISCOVERED:
            kind = str(document.get("kind") if isinstance(document, dict) else type(document).__name__)
            raise Unanswered(
                f"GET {path} was answered with kind {kind[:60]!r} and not with {' or '.join(DISCOVERED)}; look at the "
                "address: something else than a Kubernetes API answers there"
            )
        if document["kind"] != "APIGroupDiscoveryList":
            found += yield from _old_discovery(path, document)
            continue
        for group in document.get("items") or ():
            found += _aggregated_group(group)
    return found


def server_version() -> Generator[Request, Response, str]:
    """Return the version that a server reports, or an empty text."""
    answer = yield Request("GET", "/version")
    found = answer.obj.get("gitVersion") if answer.ok and isinstance(answer.obj, dict) else ""
    return found[:MAX_VERSION] if isinstance(found, str) else ""


def _aggregated_group(group: Obj) -> list[ResourceInfo]:
    name = (group.get("metadata") or {}).get("name") or ""
    found = []
    for version in group.get("versions") or ():
        for resource in version.get("resources") or ():
            kind = (resource.get("responseKind") or {}).get("kind") or ""
            found.append(
                ResourceInfo(
                    group=name,
                    version=version.get("version") or "",
                    kind=kind,
                    plural=resource.get("resource") or "",
                    namespaced=resource.get("scope") == "Namespaced",
                    verbs=tuple(resource.get("verbs") or ()),
                    subresources=tuple(s.get("subresource") or "" for s in resource.get("subresources") or ()),
                    singular=resource.get("singularResource") or "",
                    short_names=tuple(resource.get("shortNames") or ()),
                    categories=tuple(resource.get("categories") or ()),
                )
            )
    return found


def _old_discovery(path: str, document: Obj) -> Generator[Request, Response, list[ResourceInfo]]:
    """Discover servers without aggregated discovery: one request per group version."""
    if path == "/api":
        versions = [("", version) for version in document.get("versions") or ()]
    else:
        versions = [
            (group["name"], version["version"])
            for group in document.get("groups") or ()
            for version in group.get("versions") or ()
        ]
    found: list[ResourceInfo] = []
    for group, version in versions:
        where = f"/apis/{group}/{version}" if group else f"/api/{version}"
        answer = yield Request("GET", where)
        if isinstance(answer.error, Unanswered):
            raise answer.error
        if answer.ok:
            found += _old_group(group, version, answer.obj.get("resources") or [])
    return found


def _old_group(group: str, version: str, resources: list[Any]) -> list[ResourceInfo]:
    subresources: dict[str, list[str]] = {}
    for resource in resources:
        parent, slash, child = resource["name"].partition("/")
        if slash:
            subresources.setdefault(parent, []).append(child)
    return [
        ResourceInfo(
            group=group,
            version=version,
            kind=resource["kind"],
            plural=resource["name"],
            namespaced=bool(resource.get("namespaced")),
            verbs=tuple(resource.get("verbs") or ()),
            subresources=tuple(subresources.get(resource["name"], ())),
            singular=resource.get("singularName") or "",
            short_names=tuple(resource.get("shortNames") or ()),
            categories=tuple(resource.get("categories") or ()),
        )
        for resource in resources
        if "/" not in resource["name"]
    ]
