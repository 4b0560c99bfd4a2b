"""Create pods from templates, and compute a template's hash.

Names derive from content, as in Kubernetes: FNV-1a over the template and the collision count, in the alphabet of
generated names.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from syncline.base.entropy import SUFFIX_ALPHABET
from syncline.cluster.builtin.owners import owner_reference
from syncline.kube.objects import Obj, dig, name_of, namespace_of

MAX_HASHED = 32 << 10
"""Bytes of a template that are hashed individually, a fifth of a microsecond each; of a larger one, its digest is."""


def fnv32a(data: bytes) -> int:
    """Return the 32-bit FNV-1a hash."""
    value = 0x811C9DC5
    for byte in data:
        value = ((value ^ byte) * 0x01000193) & 0xFFFFFFFF
    return value


def safe_encode(number: int) -> str:
    """Map decimal digits to the alphabet without vowels (apimachinery ``rand.SafeEncodeString``)."""
    return "".join(SUFFIX_ALPHABET[ord(digit) % len(SUFFIX_ALPHABET)] for digit in str(number))


def template_hash(template: Any, collisions: int | None = None) -> str:
    """Return the ``pod-template-hash`` of a template; ``collisions`` is status.collisionCount."""
    text = json.dumps(template, sort_keys=True, separators=(",", ":")).encode()
    if len(text) > MAX_HASHED:
        text = hashlib.blake2b(text).digest()
    return safe_encode(fnv32a(text + (b"" if collisions is None else str(collisions).encode())))


def without_label(template: Any, label: str) -> Obj:
    """Return a copy of a pod template without one label, for comparisons."""
    copy: Obj = dict(template or {})
    metadata = dict(copy.get("metadata") or {})
    labels = {key: value for key, value in (metadata.get("labels") or {}).items() if key != label}
    metadata.pop("creationTimestamp", None)
    metadata.pop("labels", None)
    if labels:
        metadata["labels"] = labels
    copy["metadata"] = metadata
    return copy


def pod_from_template(
    owner: Obj,
    template: Any,
    *,
    name: str = "",
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
    finalizers: tuple[str, ...] = (),
) -> Obj:
    """Return a pod controlled by ``owner``; without ``name`` the API generates one from the owner's."""
    metadata: Obj = {"namespace": namespace_of(owner), "ownerReferences": [owner_reference(owner)]}
    metadata |= {"name": name} if name else {"generateName": f"{name_of(owner)}-"}
    merged = dict(dig(template, "metadata", "labels", default={})) | dict(labels or {})
    notes = dict(dig(template, "metadata", "annotations", default={})) | dict(annotations or {})
    holds = [*dig(template, "metadata", "finalizers", default=[]), *finalizers]
    metadata |= {
        key: value for key, value in (("labels", merged), ("annotations", notes), ("finalizers", holds)) if value
    }
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": dict(dig(template, "spec", default={}))}
