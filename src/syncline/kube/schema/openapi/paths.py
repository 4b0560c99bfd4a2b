"""The paths of an OpenAPI document: which operations a resource has and which parameters they take.

Called by ``openapi`` only. kubectl reads three things here: the kind of an operation
(``x-kubernetes-group-version-kind``), whether PATCH takes ``fieldValidation`` and ``dryRun``, and whether it takes
strategic merge patches. The rest is what any reader of OpenAPI expects.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from syncline.kube.objects import GVK, Obj, ResourceInfo
from syncline.kube.schema.resources import subresource_of


class Dialect(StrEnum):
    V2 = "v2"
    V3 = "v3"


_PATCH_TYPES = ("application/apply-patch+yaml", "application/json-patch+json", "application/merge-patch+json")
_STRATEGIC = "application/strategic-merge-patch+json"

_PATCH = "io.k8s.apimachinery.pkg.apis.meta.v1.Patch"
_STATUS = "io.k8s.apimachinery.pkg.apis.meta.v1.Status"
_DELETE_OPTIONS = "io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions"

_WRITE = (("dryRun", "string"), ("fieldManager", "string"), ("fieldValidation", "string"))
_DELETE = (("dryRun", "string"), ("gracePeriodSeconds", "integer"), ("propagationPolicy", "string"))
_LIST = (
    ("allowWatchBookmarks", "boolean"),
    ("continue", "string"),
    ("fieldSelector", "string"),
    ("labelSelector", "string"),
    ("limit", "integer"),
    ("resourceVersion", "string"),
    ("resourceVersionMatch", "string"),
    ("sendInitialEvents", "boolean"),
    ("timeoutSeconds", "integer"),
    ("watch", "boolean"),
)


@dataclass(frozen=True, slots=True)
class _Operation:
    """One verb of one path: HTTP method, action as Kubernetes names it, parameters, and the two schemas' names."""

    method: str
    action: str
    parameters: tuple[tuple[str, str], ...]
    takes: str
    gives: str
    media: tuple[str, ...] = ("application/json",)


def paths_of(resource: ResourceInfo, name_of: Callable[[GVK], str], dialect: Dialect, *, custom: bool) -> Obj:
    """Path → path item for a resource and its subresources; ``name_of`` gives the definition of a kind.

    Custom resources take no strategic merge patches.
    """
    kind = name_of(resource.gvk)
    listed = name_of(GVK(resource.group, resource.version, f"{resource.kind}List"))
    collection, item = _collection_operations(kind, listed), _item_operations(kind, custom)
    namespace = "{namespace}" if resource.namespaced else ""
    paths: Obj = {}
    _put(paths, resource.path(namespace), _offered(collection, resource.verbs), resource.gvk, dialect)
    if resource.namespaced:
        listing = {"list": collection["list"]}
        _put(paths, resource.path(), _offered(listing, resource.verbs), resource.gvk, dialect)
    _put(paths, resource.path(namespace, "{name}"), _offered(item, resource.verbs), resource.gvk, dialect)
    for name in resource.subresources:
        sub = subresource_of(resource, name)
        if sub is not None:
            operations = _item_operations(name_of(sub.gvk), custom)
            operations["create"] = _Operation("post", "post", _WRITE, name_of(sub.gvk), name_of(sub.gvk))
            path = resource.path(namespace, "{name}", name)
            _put(paths, path, _offered(operations, sub.verbs), sub.gvk, dialect)
    return paths


def _collection_operations(kind: str, listed: str) -> dict[str, _Operation]:
    return {
        "list": _Operation("get", "list", _LIST, "", listed),
        "create": _Operation("post", "post", _WRITE, kind, kind),
        "deletecollection": _Operation("delete", "deletecollection", _DELETE + _LIST, _DELETE_OPTIONS, _STATUS),
    }


def _item_operations(kind: str, custom: bool) -> dict[str, _Operation]:
    media = _PATCH_TYPES if custom else (*_PATCH_TYPES, _STRATEGIC)
    return {
        "get": _Operation("get", "get", (), "", kind),
        "update": _Operation("put", "put", _WRITE, kind, kind),
        "patch": _Operation("patch", "patch", (*_WRITE, ("force", "boolean")), _PATCH, kind, media),
        "delete": _Operation("delete", "delete", _DELETE, _DELETE_OPTIONS, _STATUS),
    }


def _offered(operations: dict[str, _Operation], verbs: tuple[str, ...]) -> list[_Operation]:
    return [operation for verb, operation in operations.items() if verb in verbs]


def _put(paths: Obj, path: str, operations: list[_Operation], gvk: GVK, dialect: Dialect) -> None:
    """Add a path item, unless nothing can be done there."""
    if not operations:
        return
    item: Obj = {op.method: _operation(op, gvk, dialect) for op in operations}
    inner = [
        _parameter(name, "string", dialect, place="path") for name in ("name", "namespace") if f"{{{name}}}" in path
    ]
    if inner:
        item["parameters"] = inner
    paths[path] = item


def _operation(op: _Operation, gvk: GVK, dialect: Dialect) -> Obj:
    parameters = [_parameter(name, kind, dialect) for name, kind in sorted({*op.parameters, ("pretty", "string")})]
    made: Obj = {
        "parameters": parameters,
        "x-kubernetes-action": op.action,
        "x-kubernetes-group-version-kind": {"group": gvk.group, "kind": gvk.kind, "version": gvk.version},
    }
    match dialect:
        case Dialect.V3:
            if op.takes:
                made["requestBody"] = {"content": _content(op.takes, op.media)}
            answer: Obj = {"description": "OK", "content": _content(op.gives, ("application/json",))}
        case Dialect.V2:
            made["consumes"] = list(op.media)
            made["produces"] = ["application/json"]
            if op.takes:
                parameters.append({"name": "body", "in": "body", "schema": {"$ref": f"#/definitions/{op.takes}"}})
            answer = {"description": "OK", "schema": {"$ref": f"#/definitions/{op.gives}"}}
    made["responses"] = {"200": answer}
    return made


def _content(name: str, media: tuple[str, ...]) -> Obj:
    return {kind: {"schema": {"$ref": f"#/components/schemas/{name}"}} for kind in media}


def _parameter(name: str, kind: str, dialect: Dialect, place: str = "query") -> Obj:
    made: Obj = {"name": name, "in": place}
    if place == "path":
        made["required"] = True
    match dialect:
        case Dialect.V3:
            made["schema"] = {"type": kind, "uniqueItems": True}
        case Dialect.V2:
            made |= {"type": kind, "uniqueItems": True}
    return made
