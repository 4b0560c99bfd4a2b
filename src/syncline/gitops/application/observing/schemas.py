"""Schemas of the destination's custom resources, for comparisons by field ownership.

Built from the CRDs in the cache, once per resourceVersion; schemas of built-in kinds are shipped.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from syncline.control.cache import Snapshot
from syncline.kube.objects import GVK, GroupKind, Obj, ObjectRef, dig, gvk_of, resource_version, uid_of
from syncline.kube.schema.model import Schema, schema_for

CRDS = GroupKind("apiextensions.k8s.io", "CustomResourceDefinition")
MAX_KEPT = 5000
"""Cached CRD schemas; a cluster with more CRDs builds some again."""


@dataclass(frozen=True)
class Schemas:
    """Schemas of built-in kinds and of the custom kinds that take part."""

    defined: Mapping[GVK, Schema] = field(default_factory=dict, repr=False)

    def find(self, gvk: GVK) -> Schema | None:
        return schema_for(gvk) or self.defined.get(gvk)


class SchemaCache:
    """A cache by CRD and resourceVersion; all of it can be rebuilt."""

    def __init__(self) -> None:
        self._built: dict[tuple[str, str], dict[GVK, Schema]] = {}

    def of(self, cache: Snapshot, objects: Iterable[Obj]) -> Schemas:
        """Return the schemas for the kinds of ``objects`` by the CRDs now in ``cache``."""
        kinds = {(str(one.get("apiVersion")), str(one.get("kind"))) for one in objects}
        defined: dict[GVK, Schema] = {}
        for api_version, kind in sorted(kinds):
            gvk = gvk_of({"apiVersion": api_version, "kind": kind})
            info = cache.mapper.preferred(gvk.group_kind)
            if schema_for(gvk) is not None or info is None or not info.group:
                continue
            crd = cache.get(ObjectRef(*CRDS, "", f"{info.plural}.{info.group}"))
            defined |= self._schemas(crd) if crd is not None else {}
        return Schemas(defined)

    def _schemas(self, crd: Obj) -> dict[GVK, Schema]:
        key = (uid_of(crd), resource_version(crd))
        known = self._built.get(key)
        if known is None:
            if len(self._built) >= MAX_KEPT:
                self._built.clear()
            known = self._built[key] = _build(crd)
        return known


def _build(crd: Obj) -> dict[GVK, Schema]:
    group, kind = dig(crd, "spec", "group", default=""), dig(crd, "spec", "names", "kind", default="")
    found: dict[GVK, Schema] = {}
    for version in dig(crd, "spec", "versions", default=[]):
        raw = dig(version, "schema", "openAPIV3Schema")
        if isinstance(raw, dict):
            found[GVK(group, str(version.get("name")), kind)] = Schema.from_openapi(raw, resource=True)
    return found
