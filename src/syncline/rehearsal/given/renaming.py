"""A snapshot without the names that people gave: :func:`renamed`. Pure.

Replaced, wherever a text has them as a word: names of namespaces, nodes and objects in namespaces, and images. Readable
stay kinds, fields, labels' keys, sizes, waves, schedules, names of what is in no namespace (pools, configs, classes,
roles), of system namespaces, and addresses and paths of Applications, by which a rehearsal finds its manifests.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from syncline.kube.objects import Obj, name_of, namespace_of

SYSTEM = re.compile(r"default|kube-.*|openshift(-.*)?|argocd")
MADE = frozenset(("default", "kube-root-ca.crt", "builder", "deployer", "openshift-service-ca.crt"))
LEAST = 3
"""Shorter names are left: they are words of other meanings, too."""
KEPT = frozenset(("kind", "apiVersion", "repoURL", "path", "targetRevision"))
CLUSTER_WIDE = frozenset(("Namespace", "Node"))
_WORD = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?")


def renamed(snapshot: Obj) -> Obj:
    """Return the snapshot with other names, equal ones for equal ones: ``deployment-3``, ``node-1``."""
    names = _names(snapshot["objects"])
    images: dict[str, str] = {}
    return {**snapshot, "objects": [_walked(obj, "", names, images) for obj in snapshot["objects"]]}


def _names(objects: list[Obj]) -> Mapping[str, str]:
    found: dict[str, str] = {}
    counts: dict[str, int] = {}
    for obj in sorted(objects, key=lambda each: (each["kind"] not in CLUSTER_WIDE, each["kind"], name_of(each))):
        kind, name, space = str(obj["kind"]), name_of(obj), namespace_of(obj)
        mine = (kind in CLUSTER_WIDE or space) and not SYSTEM.fullmatch(name if kind == "Namespace" else space or "-")
        if mine and name not in found and name not in MADE and len(name) >= LEAST:
            counts[kind] = counts.get(kind, 0) + 1
            found[name] = f"{kind.lower()}-{counts[kind]}"
    return found


def _walked(value: Any, key: str, names: Mapping[str, str], images: dict[str, str]) -> Any:
    if isinstance(value, dict):
        return {name: _walked(each, name, names, images) for name, each in value.items()}
    if isinstance(value, list):
        return [_walked(each, key, names, images) for each in value]
    if not isinstance(value, str) or key in KEPT:
        return value
    if key == "image":
        return images.setdefault(value, f"image-{len(images) + 1}:1")
    return _WORD.sub(lambda found: _word(found[0], names), value)


def _word(word: str, names: Mapping[str, str]) -> str:
    """Return a word with its name replaced; of a domain name (``web.shop.svc``) each part that is one."""
    return names.get(word) or ".".join(names.get(part, part) for part in word.split("."))
