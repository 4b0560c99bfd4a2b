"""OpenAPI documents of the served API, for ``kubectl explain``, validation and client-side apply.

Called by the server for ``/openapi/v3`` and ``/openapi/v2``. Takes the served resources and the schemas of custom ones;
returns documents that hold only what the asked group version needs. Built-in schemas are the stored definitions with
their descriptions. Never decides what is served; callers keep the documents if they want to.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any

from syncline.kube.objects import GVK, Obj, ResourceInfo
from syncline.kube.schema import store
from syncline.kube.schema.openapi.paths import Dialect, paths_of
from syncline.kube.schema.resources import subresource_of

VERSION = "v1.36.2"
"""The version of Kubernetes whose API is described."""

V3_REF = "#/components/schemas/"
_META = "io.k8s.apimachinery.pkg.apis.meta.v1"
_ALWAYS = (f"{_META}.Status", f"{_META}.DeleteOptions", f"{_META}.Patch")
"""What operations of every group version refer to."""

_CONVENTIONS = "https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md"
MORE = f"More info: {_CONVENTIONS}"
_METADATA = {
    "ObjectMeta": {"metadata": f"Standard object's metadata. {MORE}#metadata"},
    "ListMeta": {"metadata": f"Standard list metadata. {MORE}#types-kinds"},
}
EMBEDDED = {
    "apiVersion": f"apiVersion defines the versioned schema of this representation of an object. {MORE}#resources",
    "kind": f"kind is a string value representing the type of this object. In CamelCase. {MORE}#types-kinds",
}
"""What Kubernetes says of the type of an object inside another."""

CustomSchemas = Mapping[GVK, Mapping[str, Any]]
"""Custom kind → its ``openAPIV3Schema``."""

_NOT_IN_V2 = frozenset({"oneOf", "anyOf", "allOf", "not", "nullable", "x-kubernetes-validations"})
"""Keywords that Swagger 2 does not have or Kubernetes leaves out there (apiextensions, ``ToStructuralOpenAPIV2``)."""


def openapi_v3_index(groups: Iterable[tuple[str, str]], crds: CustomSchemas | None = None) -> Obj:
    """``/openapi/v3``: the document's URL per group version, with a hash that moves when the document does.

    ``groups`` are the served (group, version) pairs; ``crds`` decide the hashes of custom ones.
    """
    paths: Obj = {}
    for group, version in sorted(groups):
        path = f"apis/{group}/{version}" if group else f"api/{version}"
        paths[path] = {"serverRelativeURL": f"/openapi/v3/{path}?hash={_hash(group, version, crds or {})}"}
    return {"paths": paths}


def _hash(group: str, version: str, crds: CustomSchemas) -> str:
    custom = {str(gvk): schema for gvk, schema in crds.items() if (gvk.group, gvk.version) == (group, version)}
    text = json.dumps([VERSION, group, version, custom], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest().upper()


def openapi_v3(group: str, version: str, resources: Iterable[ResourceInfo], crds: CustomSchemas | None = None) -> Obj:
    """The OpenAPI 3.0 document of one group version; ``resources`` may hold others, which are left out."""
    served = [r for r in resources if (r.group, r.version) == (group, version)]
    custom = crds or {}
    return {
        "openapi": "3.0.0",
        "info": {"title": "Kubernetes", "version": VERSION},
        "paths": _all_paths(served, custom, Dialect.V3),
        "components": {"schemas": _schemas(served, custom, Dialect.V3)},
    }


def openapi_v2(resources: Sequence[ResourceInfo], crds: CustomSchemas | None = None) -> Obj:
    """The Swagger 2.0 document of everything that is served."""
    custom = crds or {}
    definitions = {name: _as_v2(schema) for name, schema in _schemas(resources, custom, Dialect.V2).items()}
    return {
        "swagger": "2.0",
        "info": {"title": "Kubernetes", "version": VERSION},
        "paths": _all_paths(resources, custom, Dialect.V2),
        "definitions": definitions,
    }


def custom_definition_name(gvk: GVK) -> str:
    """``com.example.v1.Crew`` for example.com/v1 Crew: the group reversed, as Kubernetes names custom definitions."""
    return ".".join([*reversed(gvk.group.split(".")), gvk.version, gvk.kind])


def _all_paths(resources: Iterable[ResourceInfo], crds: CustomSchemas, dialect: Dialect) -> Obj:
    paths: Obj = {}
    for resource in resources:
        paths |= paths_of(resource, lambda gvk: _definition_name(gvk, crds), dialect, custom=resource.gvk in crds)
    return dict(sorted(paths.items()))


def _definition_name(gvk: GVK, crds: CustomSchemas) -> str:
    """The definition of a kind; what no one describes is an untyped object."""
    owner = GVK(gvk.group, gvk.version, gvk.kind.removesuffix("List"))
    if gvk in crds or owner in crds:
        return custom_definition_name(gvk)
    return store.kinds().get(gvk, f"{_META}.Patch")


def _schemas(resources: Iterable[ResourceInfo], crds: CustomSchemas, dialect: Dialect) -> Obj:
    made: Obj = {}
    wanted = list(_ALWAYS)
    for resource in resources:
        if resource.gvk in crds:
            made |= _custom_schemas(resource, crds[resource.gvk], dialect)
        wanted += _names_of(resource)
    for schema in made.values():
        wanted += _references(schema)
    while wanted:
        name = wanted.pop()
        if name not in made and name in store.definitions():
            made[name] = _described(name)
            wanted += _references(made[name])
    return dict(sorted(made.items()))


def _names_of(resource: ResourceInfo) -> list[str]:
    """Definitions of a resource's kind, of its list and of what its subresources take."""
    gvk = resource.gvk
    kinds = [gvk, GVK(gvk.group, gvk.version, f"{gvk.kind}List")]
    kinds += [sub.gvk for name in resource.subresources if (sub := subresource_of(resource, name))]
    return [store.kinds()[kind] for kind in kinds if kind in store.kinds()]


def _custom_schemas(info: ResourceInfo, schema: Mapping[str, Any], dialect: Dialect) -> Obj:
    gvk = info.gvk
    name = custom_definition_name(gvk)
    items = {"type": "array", "description": f"List of {info.plural}. {MORE}", "items": {"$ref": f"{V3_REF}{name}"}}
    return {
        name: {**_custom_root(schema, dialect), **_identity(gvk)},
        f"{name}List": {
            "description": f"{gvk.kind}List is a list of {gvk.kind}",
            "type": "object",
            "required": ["items"],
            "properties": {**_type_meta("ListMeta"), "items": items},
            **_identity(GVK(gvk.group, gvk.version, f"{gvk.kind}List")),
        },
    }


def _custom_root(schema: Mapping[str, Any], dialect: Dialect) -> Obj:
    """A custom kind as clients read it (apiextensions ``buildKubeNative``). Where unknown fields are kept, Swagger 2
    says nothing of those that are known: readers would refuse all others."""
    if not schema or (dialect is Dialect.V2 and schema.get("x-kubernetes-preserve-unknown-fields")):
        return {"type": "object"}
    root = _for_swagger(dict(schema)) if dialect is Dialect.V2 else dict(schema)
    root = _with_embedded(root, dialect)
    return {**root, "type": "object", "properties": {**root.get("properties", {}), **_type_meta("ObjectMeta")}}


def _children(schema: Obj, change: Callable[[Obj], Obj]) -> Obj:
    """The schema with ``change`` applied to the schemas right below it."""
    made = dict(schema)
    for key in ("items", "additionalProperties"):
        if isinstance(made.get(key), dict):
            made[key] = change(made[key])
    if isinstance(made.get("properties"), dict):
        made["properties"] = {name: change(field) for name, field in made["properties"].items()}
    return made


def _for_swagger(schema: Obj) -> Obj:
    """Without what readers of Swagger 2 stumble over (apiextensions ``ToStructuralOpenAPIV2``)."""
    drop: set[str] = set()
    free = bool(schema.get("x-kubernetes-preserve-unknown-fields"))
    if schema.get("nullable"):
        drop |= {"type", "items", "properties"}
    if free:
        drop |= {"items", "properties"}
    kind = schema.get("type")
    if (kind == "array" and (free or "items" not in schema)) or (kind == "object" and free):
        drop.add("type")
    made = {key: value for key, value in schema.items() if key not in drop}
    nullable = {name for name, field in (made.get("properties") or {}).items() if field.get("nullable")}
    others = made.get("additionalProperties")
    left = [name for name in made.get("required") or () if name not in nullable]
    if isinstance(others, dict) and others.get("nullable"):
        left = []
    if "required" in made:
        made = {key: value for key, value in made.items() if key != "required"} | ({"required": left} if left else {})
    return _children(made, _for_swagger)


def _with_embedded(schema: Obj, dialect: Dialect) -> Obj:
    """Whole objects inside have a kind, too."""
    made = _children(schema, lambda each: _with_embedded(each, dialect))
    if dialect is Dialect.V2 and made.get("x-kubernetes-preserve-unknown-fields"):
        return made
    if made.get("x-kubernetes-embedded-resource"):
        named = [*(made.get("required") or ())]
        made["properties"] = {**(made.get("properties") or {}), **_type_meta("ObjectMeta", EMBEDDED)}
        made["required"] = named + [key for key in ("kind", "apiVersion") if key not in named]
    return made


def _identity(gvk: GVK) -> Obj:
    entry = {"group": gvk.group, "version": gvk.version, "kind": gvk.kind}
    return {"x-kubernetes-group-version-kind": [entry]}


def _type_meta(metadata: str, texts: Mapping[str, str] | None = None) -> Obj:
    """``apiVersion``, ``kind`` and ``metadata`` with the words that every built-in kind has for them."""
    said = {**store.descriptions()[f"{_META}.Status"], **_METADATA[metadata], **(texts or {})}
    return {
        "apiVersion": {"type": "string", "description": said["apiVersion"]},
        "kind": {"type": "string", "description": said["kind"]},
        "metadata": {"allOf": [{"$ref": f"{V3_REF}{_META}.{metadata}"}], "description": said["metadata"]},
    }


@cache
def _described(name: str) -> Obj:
    """A stored definition with its texts. Shared between documents: read-only."""
    raw, texts = store.definitions()[name], store.descriptions().get(name, {})
    made: Obj = dict(raw)
    if texts.get(""):
        made["description"] = texts[""]
    if "properties" in raw:
        made["properties"] = {key: _described_field(field, texts.get(key)) for key, field in raw["properties"].items()}
    return made


def _described_field(field: Obj, text: str | None) -> Obj:
    made = dict(field)
    if "$ref" in made:
        # What stands beside a plain reference is ignored by OpenAPI 3.0 readers.
        made["allOf"] = [{"$ref": made.pop("$ref")}]
    if text:
        made["description"] = text
    return made


def _references(value: Any) -> Iterator[str]:
    """Names of the definitions that a schema points at."""
    todo = [value]
    while todo:
        node = todo.pop()
        if isinstance(node, dict):
            reference = node.get("$ref")
            if isinstance(reference, str):
                yield reference.removeprefix(V3_REF)
            todo += node.values()
        elif isinstance(node, list):
            todo += node


def _as_v2(value: Any, data: bool = False) -> Any:
    """A schema in Swagger 2's dialect. ``data`` says that the keys are names of fields, not keywords."""
    if isinstance(value, list):
        return [_as_v2(item) for item in value]
    if not isinstance(value, dict):
        return value.replace(V3_REF, "#/definitions/") if isinstance(value, str) else value
    if data:
        return {key: _as_v2(item) for key, item in value.items()}
    parts = value.get("allOf")
    if isinstance(parts, list) and len(parts) == 1 and isinstance(parts[0], dict) and "$ref" in parts[0]:
        value = {**value, **parts[0]}
    made = {key: _as_v2(item, key == "properties") for key, item in value.items() if key not in _NOT_IN_V2}
    if "oneOf" in value and "type" not in value and "$ref" not in value:
        made["type"] = "string"  # quantities and int-or-string
    if made.get("additionalProperties") is True:
        made["additionalProperties"] = {"type": "object"}
    return made
