"""Computes the hash suffix of generated ConfigMaps and Secrets: :func:`content_hash`.

Called by ``transform.add_hashes`` and by tests. Ten letters of the SHA-256 of the content, in an alphabet that forms no
words (kustomize ``api/hasher``). The name does not count: upstream reads it from a path that does not exist.
"""

from __future__ import annotations

import hashlib
from typing import Any

from syncline.sources.kustomize.resources.resource import Resource
from syncline.sources.kustomize.yaml.node import Kind, field
from syncline.sources.kustomize.yaml.values import to_json
from syncline.sources.kustomize.yaml.writer import json_text

_LENGTH = 10
_SPELLING = str.maketrans("013ae", "ghkmt")


def spell(text: str) -> str:
    """The hash of ``text``."""
    return hashlib.sha256(text.encode()).hexdigest()[:_LENGTH].translate(_SPELLING)


def content_hash(resource: Resource) -> str:
    """Return the suffix for the content of ``resource``."""
    kind = resource.kind
    if kind not in ("ConfigMap", "Secret"):
        return spell(json_text(to_json(resource.node)))
    values: dict[str, Any] = {"kind": kind, "name": "", "data": _part(resource, "data")}
    extra = "binaryData" if kind == "ConfigMap" else "stringData"
    if isinstance(_part(resource, extra), dict):
        values[extra] = _part(resource, extra)
    if kind == "Secret":
        values["type"] = _part(resource, "type")
    return spell(json_text(values))


def _part(resource: Resource, name: str) -> Any:
    found = field(resource.node, name)
    if found is None:
        return ""
    return found.value if found.kind is Kind.SCALAR else to_json(found)
