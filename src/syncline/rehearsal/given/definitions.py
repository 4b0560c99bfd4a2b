"""Definitions for kinds that a repository uses and that nothing brings into its world; pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from syncline.kube.objects import GVK, GroupKind, Obj, dig, gvk_of, namespace_of
from syncline.rehearsal.given.files import Files

MAX_DEFINITIONS = 100
CRD = "CustomResourceDefinition"
_GROUP = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)+")
_KIND = re.compile(r"[A-Z][A-Za-z0-9]{0,62}")
_VERSION = re.compile(r"v[0-9]{1,3}((alpha|beta)[0-9]{1,3})?")
NOT_SERVED = ("kustomize.config.k8s.io",)
"""Groups of files that are no objects."""


def missing_definitions(files: Files, is_served: Callable[[GVK], bool]) -> tuple[Obj, ...]:
    """Return a definition without a schema for each kind of the plain manifests that is neither served nor defined by
    one of them. A kind is
    namespaced unless its name begins with Cluster and no namespace is named."""
    defined = {
        GroupKind(str(dig(obj, "spec", "group")), str(dig(obj, "spec", "names", "kind")))
        for _, obj in files.objects()
        if obj.get("kind") == CRD
    }
    found: dict[GroupKind, dict[str, bool]] = {}
    for _, obj in files.objects():
        gvk = gvk_of(obj)
        if gvk.group_kind in defined or is_served(gvk) or not _is_plausible(gvk):
            continue
        versions = found.setdefault(gvk.group_kind, {})
        versions.setdefault(gvk.version, not namespace_of(obj) and gvk.kind.startswith("Cluster"))
    return tuple(_definition(kind, found[kind]) for kind in sorted(found))[:MAX_DEFINITIONS]


def _is_plausible(gvk: GVK) -> bool:
    known = _GROUP.fullmatch(gvk.group) and _KIND.fullmatch(gvk.kind) and _VERSION.fullmatch(gvk.version)
    return bool(known) and gvk.group not in NOT_SERVED and not gvk.kind.endswith("List")


def _definition(kind: GroupKind, named: Mapping[str, bool]) -> Obj:
    """Return the definition of a kind. ``named``: its versions, the one to store first, and whether the first object of
    each has no namespace."""
    schema: dict[str, Any] = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    plural, first = _plural(kind.kind.lower()), next(iter(named))
    versions = [
        {
            "name": version,
            "served": True,
            "storage": version == first,
            "schema": {"openAPIV3Schema": schema},
            "subresources": {"status": {}},
        }
        for version in named
    ]
    names = {"plural": plural, "singular": kind.kind.lower(), "kind": kind.kind, "listKind": f"{kind.kind}List"}
    scope = "Cluster" if named[first] else "Namespaced"
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": CRD,
        "metadata": {
            "name": f"{plural}.{kind.group}",
            "annotations": {"api-approved.kubernetes.io": "unapproved, of a rehearsal"},
        },
        "spec": {"group": kind.group, "scope": scope, "names": names, "versions": versions},
    }


def _plural(word: str) -> str:
    if word.endswith("y") and word[-2:-1] not in "aeiou":
        return f"{word[:-1]}ies"
    return f"{word}es" if word.endswith(("s", "x", "ch", "sh")) else f"{word}s"
