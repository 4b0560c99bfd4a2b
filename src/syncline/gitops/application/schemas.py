"""Schemas of the destination's custom resources, for comparisons by field ownership.

Built from the definitions in the cache, each once per resourceVersion; built-in kinds come from the shipped schemas.
"""

from __future__ import annotations

from collections.abc import Callable

from syncline.control.cache import Snapshot
from syncline.kube.objects import GVK, GroupKind, Obj, ObjectRef, dig, resource_version, uid_of
from syncline.kube.schema.model import Schema, schema_for

__all__ = ["SchemaBook"]

CRDS = GroupKind("apiextensions.k8s.io", "CustomResourceDefinition")
MAX_KEPT = 5000
"""Definitions whose schemas are kept; a cluster with more of them builds some again."""


class SchemaBook:
    """A cache by definition and resourceVersion; it holds nothing that the objects do not say."""

    def __init__(self) -> None:
        self._built: dict[tuple[str, str], dict[GVK, Schema]] = {}

    def reader(self, cache: Snapshot) -> Callable[[GVK], Schema | None]:
        """A look-up over the definitions as they are in ``cache`` when it is asked."""

        def find(gvk: GVK) -> Schema | None:
            built_in = schema_for(gvk)
            info = cache.mapper.preferred(gvk.group_kind)
            if built_in is not None or info is None or not info.group:
                return built_in
            crd = cache.get(ObjectRef(*CRDS, "", f"{info.plural}.{info.group}"))
            return None if crd is None else self._schemas(crd).get(gvk)

        return find

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
