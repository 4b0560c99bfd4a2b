"""CustomResourceDefinitions among the manifests: which kinds an operation itself brings."""

from __future__ import annotations

from syncline.kube.objects import Obj, dig, gvk_of

__all__ = ["defined_kind", "is_definition"]


def is_definition(obj: Obj) -> bool:
    gvk = gvk_of(obj)
    return gvk.kind == "CustomResourceDefinition" and gvk.group == "apiextensions.k8s.io"


def defined_kind(obj: Obj) -> tuple[str, str] | None:
    """Group and kind that a CustomResourceDefinition brings; None for anything else."""
    group, kind = dig(obj, "spec", "group"), dig(obj, "spec", "names", "kind")
    if is_definition(obj) and isinstance(group, str) and isinstance(kind, str):
        return group, kind
    return None
