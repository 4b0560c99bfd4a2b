"""Finds the kinds that an operation's own CustomResourceDefinitions define."""

from __future__ import annotations

from syncline.kube.objects import Obj, dig, gvk_of


def is_definition(obj: Obj) -> bool:
    gvk = gvk_of(obj)
    return gvk.kind == "CustomResourceDefinition" and gvk.group == "apiextensions.k8s.io"


def defined_kind(obj: Obj) -> tuple[str, str] | None:
    """Return group and kind that a CustomResourceDefinition defines; None for other objects."""
    group, kind = dig(obj, "spec", "group"), dig(obj, "spec", "names", "kind")
    if is_definition(obj) and isinstance(group, str) and isinstance(kind, str):
        return group, kind
    return None
