"""Serve discovery: group lists, resource lists, aggregated discovery, version.

``api`` calls it for paths that name no resource. Documents are built from the registry and cached until it changes.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable
from typing import Any

import msgspec

from syncline.cluster.resources.aggregation import Aggregation
from syncline.cluster.resources.descriptions import Descriptions, page_not_found, with_etag
from syncline.cluster.resources.registry import Registry, Resource
from syncline.cluster.resources.versions import version_order
from syncline.cluster.serving.negotiate import FORMS, Form, Shape, accepted_of, discovery_of
from syncline.kube.client import Request, Response
from syncline.kube.errors import MethodNotAllowed, NotAcceptable
from syncline.kube.objects import Obj
from syncline.kube.schema.resources import subresource_of
from syncline.kube.version import GIT_VERSION, MAJOR, MINOR
from syncline.kube.yaml import loading as yaml

__all__ = ["Discovery", "page_not_found"]

VERSION: Obj = {
    "major": MAJOR,
    "minor": MINOR,
    "emulationMajor": "1",
    "emulationMinor": "36",
    "minCompatibilityMajor": "1",
    "minCompatibilityMinor": "35",
    "gitVersion": GIT_VERSION,
    "gitCommit": "",
    "gitTreeState": "clean",
    "buildDate": "2026-01-01T00:00:00Z",
    "goVersion": "",
    "compiler": "python",
    "platform": "linux/amd64",
}
_TEXT = {"content-type": "text/plain; charset=utf-8"}
_HEALTH = frozenset({"/healthz", "/livez", "/readyz"})
_CHECKS = frozenset(f"{probe}/{check}" for probe in _HEALTH for check in ("ping", "log", "etcd"))


def _names_json(accept: str) -> bool:
    listed = {clause.partition(";")[0].strip().lower() for clause in accept.split(",")}
    return bool(listed & {"", "*/*", "application/*", "application/json"})


class Discovery:
    """Serves paths without a resource."""

    def __init__(self, registry: Registry, aggregation: Aggregation) -> None:
        self._registry = registry
        self._elsewhere = aggregation
        self._kept: dict[tuple[str, str], bytes] = {}
        self._generation = (-1, -1)
        self._described = Descriptions(registry)

    def answer(self, request: Request) -> Response:
        path = request.path.rstrip("/") or "/"
        if path in _HEALTH or path in _CHECKS:
            return Response.encoded(200, b"ok", _TEXT)
        if request.method != "GET":
            return self._other_method(path)
        if path == "/version":
            if not _names_json(request.headers.get("accept", "")):
                raise NotAcceptable("406: Not Acceptable\n\nAvailable representations: application/json", details={})
            return Response.of(200, VERSION)
        if path == "/":
            return self._document("", path, self._root)
        if path.startswith("/openapi"):
            return self._described.answer(path, request)
        return self._groups(path, request)

    def _other_method(self, path: str) -> Response:
        """Refuse other methods: documents are read-only."""
        if path == "/version" or self._plain(path.strip("/").split("/")) is not None:
            raise MethodNotAllowed("the server does not allow this method on the requested resource", details={})
        return page_not_found()

    def _document(self, form: str, path: str, make: Callable[[], Any]) -> Response:
        """Return a document, built once per state of the registry."""
        generation = (self._registry.generation, self._elsewhere.generation)
        if self._generation != generation:
            self._kept.clear()
            self._generation = generation
        raw = self._kept.get((form, path))
        if raw is None:
            made = make()
            if made is None:
                return page_not_found()
            raw = self._kept[(form, path)] = msgspec.json.encode(made)
        return Response.encoded(200, raw)

    # -- groups ---------------------------------------------------------------------------------------------------

    def _groups(self, path: str, request: Request) -> Response:
        accept = request.headers.get("accept", "")
        parts = path.strip("/").split("/")
        aggregated = discovery_of(accept) if len(parts) == 1 else ""
        if parts[0] not in ("api", "apis"):
            return page_not_found()
        if aggregated:
            response = self._document(aggregated, path, lambda: self._aggregated(parts[0], aggregated))
            kind = f"application/json;g=apidiscovery.k8s.io;v={aggregated};as=APIGroupDiscoveryList"
            headers = {"content-type": kind, "cache-control": "public", "vary": "Accept"}
            return with_etag(response, headers, request)
        accepted = accepted_of(accept)
        if accepted.shape is not Shape.OBJECT:
            raise NotAcceptable(f"only the following media types are accepted: {FORMS}")
        response = self._document("", path, lambda: self._plain(parts))
        if accepted.form is Form.YAML and response.status == 200:
            return Response.encoded(200, yaml.dump(response.obj).encode(), {"content-type": "application/yaml"})
        return response

    def _plain(self, parts: list[str]) -> Obj | None:
        if parts == ["api"]:
            address = [{"clientCIDR": "0.0.0.0/0", "serverAddress": "127.0.0.1:6443"}]
            return {"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": address}
        if parts[0] == "api":
            return self._resource_list("", parts[1]) if len(parts) == 2 else None
        match parts[1:]:
            case []:
                groups = [_group(name, versions) for name, versions in self._versions().items() if name]
                return {"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}
            case [group]:
                versions = self._versions().get(group)
                return {"kind": "APIGroup", "apiVersion": "v1", **_group(group, versions)} if versions else None
            case [group, version]:
                return self._resource_list(group, version)
        return None

    def _versions(self) -> dict[str, list[str]]:
        """Return the served versions by group, in discovery order."""
        found: dict[str, list[str]] = {}
        for resource in self._registry.resources():
            versions = found.setdefault(resource.info.group, [])
            if resource.info.version not in versions:
                versions.append(resource.info.version)
        ordered = {group: sorted(versions, key=version_order) for group, versions in found.items()}
        for entry in self._elsewhere.entries():
            ordered.setdefault(entry.group, []).append(entry.version)
        return ordered

    def _served(self, group: str, version: str) -> list[Resource]:
        return [r for r in self._registry.resources() if (r.info.group, r.info.version) == (group, version)]

    def _resource_list(self, group: str, version: str) -> Obj | None:
        served = self._served(group, version)
        if not served:
            return None
        entries: list[Obj] = []
        for resource in sorted(served, key=lambda r: r.info.plural) if not served[0].custom else served:
            entries += _resource_entries(resource)
        name = f"{group}/{version}" if group else version
        return {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": name, "resources": entries}

    def _aggregated(self, root: str, version: str) -> Obj:
        items = []
        for group, versions in self._versions().items():
            if (root == "api") == (group == ""):
                entries = [self._aggregated_version(group, served) for served in versions]
                items.append({"metadata": {"name": group} if group else {}, "versions": entries})
        return {
            "kind": "APIGroupDiscoveryList",
            "apiVersion": f"apidiscovery.k8s.io/{version}",
            "metadata": {},
            "items": items,
        }

    def _aggregated_version(self, group: str, version: str) -> Obj:
        served = self._served(group, version)
        elsewhere = self._elsewhere.find(f"/apis/{group}/{version}") if not served else None
        if elsewhere is not None:
            listed = _aggregated_elsewhere(group, version, self._elsewhere.resources(group, version))
            return {"version": version, "resources": listed, "freshness": "Current" if elsewhere.available else "Stale"}
        resources = [_aggregated_resource(resource) for resource in served]
        return {"version": version, "resources": resources, "freshness": "Current"}

    def _root(self) -> Obj:
        paths = ["/api", "/api/v1", "/apis", "/healthz", "/livez", "/openapi/v2", "/openapi/v3", "/readyz", "/version"]
        for group, versions in self._versions().items():
            if group:
                paths += [f"/apis/{group}", *(f"/apis/{group}/{version}" for version in versions)]
        return {"paths": sorted(paths)}


def _group(name: str, versions: list[str]) -> Obj:
    entries = [{"groupVersion": f"{name}/{version}", "version": version} for version in versions]
    return {"name": name, "versions": entries, "preferredVersion": entries[0]}


_COMPUTED = frozenset({"/componentstatuses"})
"""Kinds that are computed on request and not stored."""


def _storage_hash(resource: Resource) -> str:
    """Return a hash that changes if objects are stored in another version (``discovery.StorageVersionHash``)."""
    hub = resource.hub
    digest = hashlib.sha256(f"{hub.group}/{hub.version}/{hub.kind}".encode()).digest()
    return base64.b64encode(digest[:8]).decode()


def _resource_entries(resource: Resource) -> list[Obj]:
    """Return the entries of a resource and its subresources."""
    info = resource.info
    main: Obj = {
        "name": info.plural,
        "singularName": info.singular,
        "namespaced": info.namespaced,
        "kind": info.kind,
        "verbs": list(info.verbs),
    }
    if info.short_names:
        main["shortNames"] = list(info.short_names)
    if info.categories:
        main["categories"] = list(info.categories)
    if "get" in info.verbs and resource.storage not in _COMPUTED and resource.computed is None:
        main["storageVersionHash"] = _storage_hash(resource)
    entries = [main]
    for name in sorted(info.subresources, reverse=resource.custom is not None):
        sub = subresource_of(info, name)
        assert sub is not None, f"{info.plural} lists the subresource {name} but does not know it"
        entry: Obj = {"name": f"{info.plural}/{name}", "singularName": "", "namespaced": info.namespaced}
        if sub.foreign:
            entry |= {"group": sub.gvk.group, "version": sub.gvk.version}
        entries.append({**entry, "kind": sub.gvk.kind, "verbs": list(sub.verbs)})
    return entries


def _aggregated_elsewhere(group: str, version: str, listed: list[Obj]) -> list[Obj]:
    """Return another server's resources in the form of aggregated discovery."""
    found: dict[str, Obj] = {}
    for one in listed:
        plural, _, sub = str(one["name"]).partition("/")
        kind = {"group": one.get("group") or group, "version": one.get("version") or version, "kind": one.get("kind")}
        verbs = one.get("verbs") or []
        if sub:
            below = {"subresource": sub, "responseKind": kind, "verbs": verbs}
            found.setdefault(plural, {"resource": plural}).setdefault("subresources", []).append(below)
            continue
        entry = found.setdefault(plural, {"resource": plural})
        entry |= {"responseKind": kind, "scope": "Namespaced" if one.get("namespaced") else "Cluster"}
        entry |= {"singularResource": one.get("singularName") or "", "verbs": verbs}
        entry |= {name: one[name] for name in ("shortNames", "categories") if one.get(name)}
    return list(found.values())


def _aggregated_resource(resource: Resource) -> Obj:
    info = resource.info
    entry: Obj = {
        "resource": info.plural,
        "responseKind": {"group": "", "version": "", "kind": info.kind},
        "scope": "Namespaced" if info.namespaced else "Cluster",
        "singularResource": info.singular,
        "verbs": list(info.verbs),
    }
    if info.short_names:
        entry["shortNames"] = list(info.short_names)
    if info.categories:
        entry["categories"] = list(info.categories)
    subresources = []
    for name in sorted(info.subresources):
        sub = subresource_of(info, name)
        assert sub is not None, f"{info.plural} lists the subresource {name} but does not know it"
        group, version = (sub.gvk.group, sub.gvk.version) if sub.foreign else ("", "")
        kind = {"group": group, "version": version, "kind": sub.gvk.kind}
        subresources.append({"subresource": name, "responseKind": kind, "verbs": list(sub.verbs)})
    if subresources:
        entry["subresources"] = subresources
    return entry
