"""The stored definitions of Kubernetes' own types (1.36), unpacked when first asked for.

Called by ``model``, ``openapi`` and the reader of protobuf bodies. The data is made by ``tools/build_schema.py`` and
``tools/build_protobuf.py`` and never edited by hand.
"""

from __future__ import annotations

import json
import lzma
from collections.abc import Mapping
from functools import cache
from importlib import resources
from typing import Any

from syncline.kube.objects import GVK

OBJECT_META = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"


def _data(name: str) -> bytes:
    return (resources.files("syncline.kube.schema") / "data" / name).read_bytes()


@cache
def definitions() -> Mapping[str, Any]:
    """Definition name → OpenAPI schema without descriptions."""
    loaded: dict[str, Any] = json.loads(lzma.decompress(_data("definitions.json.xz")))
    return loaded


@cache
def descriptions() -> Mapping[str, Mapping[str, str]]:
    """Definition name → field name → description; the type's own stands under the empty name."""
    loaded: dict[str, dict[str, str]] = json.loads(lzma.decompress(_data("descriptions.json.xz")))
    return loaded


@cache
def kinds() -> Mapping[GVK, str]:
    """Kind → definition name. Types shared by all groups (``DeleteOptions``) are listed under each."""
    return {
        GVK(entry["group"], entry["version"], entry["kind"]): name
        for name, raw in definitions().items()
        for entry in raw.get("x-kubernetes-group-version-kind", ())
    }


@cache
def protobuf_table() -> Mapping[str, list[tuple[int, str, str, str]]]:
    """Definition name → fields on the wire: number, JSON name, type and marks (see the tool)."""
    loaded: dict[str, list[tuple[int, str, str, str]]] = json.loads(lzma.decompress(_data("protobuf.json.xz")))
    return loaded


@cache
def go_names() -> Mapping[str, Mapping[str, list[str]]]:
    """Definition name → field name → its type in Go where the schema does not tell it, and, where the field belongs to
    an embedded struct, the names that lead there (``Rule``). Read off the types of k8s.io/api 0.36.3 by reflection;
    Kubernetes' answers to values of the wrong type hold both."""
    loaded: dict[str, dict[str, list[str]]] = json.loads(lzma.decompress(_data("gonames.json.xz")))
    return loaded


@cache
def internal_types() -> Mapping[str, list[tuple[str, str, str, str]]]:
    """Definition name → fields of the type by which Kubernetes' own code knows it, in their order: the name in Go's
    JSON, the served field that it is (empty where none is), its form and the definition of what it holds. Read off
    k8s.io/kubernetes 1.36.3 by reflection; refusals show values so."""
    loaded: dict[str, list[tuple[str, str, str, str]]] = json.loads(lzma.decompress(_data("internal.json.xz")))
    return loaded


@cache
def resource_table() -> list[dict[str, Any]]:
    """The rows of ``resources.json``, in discovery order."""
    loaded: list[dict[str, Any]] = json.loads(_data("resources.json"))
    return loaded


@cache
def column_table() -> Mapping[str, list[tuple[str, str, str, int, str]]]:
    """``GROUP/KIND`` → the columns of its tables: name, type, format, priority, and what describes it, a text or
    ``$DEFINITION.FIELD``; under the empty name those of kinds that have none of their own."""
    loaded: dict[str, list[tuple[str, str, str, int, str]]] = json.loads(_data("columns.json"))
    return loaded
