"""A short hand for structural schemas, so that our CustomResourceDefinitions read like a list of fields."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

from syncline.kube.objects import GVK, Obj

Fields: TypeAlias = dict[str, Any]

STR: Obj = {"type": "string"}
BOOL: Obj = {"type": "boolean"}
INT: Obj = {"type": "integer", "format": "int64"}
INT32: Obj = {"type": "integer", "format": "int32"}
COUNT: Obj = {"type": "integer", "format": "int64", "minimum": 0}
BYTES: Obj = {"type": "string", "format": "byte"}
TIME: Obj = {"type": "string", "format": "date-time"}
INT_OR_STRING: Obj = {"anyOf": [{"type": "integer"}, {"type": "string"}], "x-kubernetes-int-or-string": True}
QUANTITY: Obj = INT_OR_STRING | {
    "pattern": r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))"
    r"(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$"
}
JSON: Obj = {"x-kubernetes-preserve-unknown-fields": True}
"""Any JSON value."""
ANY: Obj = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}


def obj(fields: Fields, *required: str, about: str = "") -> Obj:
    """An object with these fields."""
    schema: Obj = {"type": "object", "properties": fields}
    if required:
        schema["required"] = sorted(required)
    if about:
        schema["description"] = about
    return schema


def items(schema: Obj) -> Obj:
    return {"type": "array", "items": schema}


def mapping(schema: Obj) -> Obj:
    return {"type": "object", "additionalProperties": schema}


def strings() -> Obj:
    return items(STR)


def enum(*values: str) -> Obj:
    return {"type": "string", "enum": list(values)}


def atomic(schema: Obj, **bounds: int) -> Obj:
    """A list that is replaced as a whole."""
    return items(schema) | {"x-kubernetes-list-type": "atomic"} | bounds


def keyed(schema: Obj, *keys: str, **bounds: int) -> Obj:
    """A list whose entries are distinguished by these keys."""
    return items(schema) | {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": list(keys)} | bounds


def column(name: str, path: str, kind: str = "string", *, wide: bool = False) -> Obj:
    column: Obj = {"jsonPath": path, "name": name, "type": kind}
    return column | {"priority": 1} if wide else column


def condition_column(name: str, condition: str, *, wide: bool = False) -> Obj:
    return column(name, f'.status.conditions[?(@.type=="{condition}")].status', wide=wide)


AGE = column("Age", ".metadata.creationTimestamp", "date")


def definition(
    gvk: GVK,
    plural: str,
    schema: Obj,
    *,
    short: tuple[str, ...] = (),
    columns: tuple[Obj, ...] = (),
    status: bool = True,
    namespaced: bool = False,
    labels: Mapping[str, str] | None = None,
) -> Obj:
    """A CustomResourceDefinition with one version that is served and stored; ``status``: with that subresource."""
    version: Obj = {
        "name": gvk.version,
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": schema},
        "subresources": {"status": {}} if status else {},
    }
    if columns:
        version["additionalPrinterColumns"] = list(columns)
    names: Obj = {"kind": gvk.kind, "listKind": f"{gvk.kind}List", "plural": plural, "singular": gvk.kind.lower()}
    if short:
        names["shortNames"] = list(short)
    metadata: Obj = {"name": f"{plural}.{gvk.group}"} | ({"labels": dict(labels)} if labels else {})
    scope = "Namespaced" if namespaced else "Cluster"
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": metadata,
        "spec": {"group": gvk.group, "names": names, "scope": scope, "versions": [version]},
    }


def kind_schema(spec: Obj | None, status: Obj | None, *required: str, about: str) -> Obj:
    """The schema of a kind with ``spec`` and ``status``; None: it has no such field."""
    fields: Obj = {"apiVersion": STR, "kind": STR, "metadata": {"type": "object"}}
    fields |= {name: part for name, part in (("spec", spec), ("status", status)) if part is not None}
    return obj(fields, *required, about=about)


REQUIREMENT = obj({"key": STR, "operator": STR, "values": atomic(STR)}, "key", "operator")
SELECTOR = obj({"matchExpressions": atomic(REQUIREMENT), "matchLabels": mapping(STR)}) | {
    "x-kubernetes-map-type": "atomic"
}
"""A label selector."""

CONDITION = obj(
    {
        "lastTransitionTime": TIME,
        "message": {"type": "string", "maxLength": 32768},
        "observedGeneration": COUNT,
        "reason": {
            "type": "string",
            "minLength": 1,
            "maxLength": 1024,
            "pattern": "^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$",
        },
        "status": enum("True", "False", "Unknown"),
        "type": {
            "type": "string",
            "maxLength": 316,
            "pattern": r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?"
            r"(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$",
        },
    },
    "lastTransitionTime",
    "message",
    "reason",
    "status",
    "type",
)
"""``metav1.Condition``."""
