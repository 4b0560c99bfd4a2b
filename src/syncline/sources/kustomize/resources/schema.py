"""Which lists a strategic merge patch merges, and by which keys: those of Kubernetes 1.21, or of a given schema.

Used by ``merge`` and ``resource``. The built-in table is data (``data/merge_keys.json``: only fields that lead to a
merged list), because kustomize 5 uses that version of Kubernetes. A custom OpenAPI document replaces it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

BUILTIN_VERSION = "v1.21.2"
"""The only value of ``openapi.version`` that kustomize 5.8 knows."""


@cache
def _table() -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads(
        (resources.files("syncline.sources.kustomize") / "data" / "merge_keys.json").read_bytes()
    )
    return loaded


CLUSTER_SCOPED: frozenset[tuple[str, str]] = frozenset(
    (version, kind) for version, _, kind in (row.partition(" ") for row in _table()["clusterScoped"])
)
"""(apiVersion, kind) of what certainly has no namespace; all other kinds are taken to have one."""


@dataclass(frozen=True, slots=True)
class Shape:
    """The type of a field for merging. ``keys`` is None for lists that are replaced."""

    schema: MergeSchema
    raw: Mapping[str, Any]

    @property
    def keys(self) -> list[str] | None:
        keys: list[str] | None = self.raw.get("k")
        return keys

    def field(self, name: str) -> Shape | None:
        raw = self.raw.get("f", {}).get(name)
        return self.schema.shape(raw if raw is not None else self.raw.get("m"))

    def elements(self) -> Shape | None:
        return self.schema.shape(self.raw.get("i"))


@dataclass(frozen=True, slots=True)
class MergeSchema:
    """Merge rules. ``kinds`` names the type of a kind (``apps/v1 Deployment``), ``types`` the fields of a type."""

    kinds: Mapping[str, str]
    types: Mapping[str, Mapping[str, Any]]

    def kind(self, api_version: str, kind: str) -> Shape | None:
        name = self.kinds.get(f"{api_version} {kind}")
        return None if name is None else Shape(self, {"f": self.types.get(name, {})})

    def shape(self, raw: Mapping[str, Any] | None) -> Shape | None:
        if raw is None:
            return None
        if "r" in raw:
            return Shape(self, {"f": self.types.get(raw["r"], {})})
        return Shape(self, raw)


@cache
def builtin_schema() -> MergeSchema:
    table = _table()
    return MergeSchema(table["kinds"], table["types"])


def schema_from_openapi(document: Any) -> MergeSchema:
    """Convert an OpenAPI v2 document; unknown parts are ignored."""
    definitions = document.get("definitions") if isinstance(document, dict) else None
    kinds: dict[str, str] = {}
    types: dict[str, Mapping[str, Any]] = {}
    for name, raw in (definitions or {}).items():
        if not isinstance(raw, dict):
            continue
        types[_short(name)] = _compact(raw).get("f", {})
        for gvk in raw.get("x-kubernetes-group-version-kind") or ():
            group = f"{gvk['group']}/" if gvk.get("group") else ""
            kinds[f"{group}{gvk.get('version', '')} {gvk.get('kind', '')}"] = _short(name)
    return MergeSchema(kinds, types)


def _short(name: str) -> str:
    """Return the table's name of a Kubernetes type: ``core.v1.PodSpec``."""
    return ".".join(name.split(".")[-3:]) if name.startswith("io.k8s.") else name


def _compact(raw: Mapping[str, Any]) -> dict[str, Any]:
    """Convert an OpenAPI schema to the table's form: f fields, i items, m map values, k merge keys, r reference."""
    if isinstance(raw.get("$ref"), str):
        return {"r": _short(raw["$ref"].rsplit("/", 1)[-1])}
    made: dict[str, Any] = {}
    strategy = raw.get("x-kubernetes-patch-strategy")
    if isinstance(strategy, str) and "merge" in strategy.split(","):
        key = raw.get("x-kubernetes-patch-merge-key")
        made["k"] = list(raw.get("x-kubernetes-list-map-keys") or ([key] if key else []))
    if raw.get("type") == "array" and isinstance(raw.get("items"), dict):
        made["i"] = _compact(raw["items"])
    if isinstance(raw.get("additionalProperties"), dict):
        made["m"] = _compact(raw["additionalProperties"])
    if isinstance(raw.get("properties"), dict):
        made["f"] = {name: _compact(child) for name, child in raw["properties"].items() if isinstance(child, dict)}
    return made


def combined(schema: MergeSchema, more: MergeSchema) -> MergeSchema:
    """Merge two schemas; ``more`` wins."""
    return MergeSchema({**schema.kinds, **more.kinds}, {**schema.types, **more.types})
