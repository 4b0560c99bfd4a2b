"""Admission of ManifestWorks: what is refused, and the review that an executor needs; pure.

Rules and sentences: ``pkg/work/webhook`` of upstream (reference ocm-pull-model §6.9).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from syncline.kube.objects import Obj, dig, meta, name_of, namespace_of

MAX_BYTES: Final = 500 * 1024
"""Default limit of all manifests of a work, encoded."""
_ENCODE: Final = msgspec.json.Encoder().encode


class WorkRefused(ValueError):
    """A ManifestWork that is not admitted; the text is upstream's."""


def check_manifests(work: Obj, limit: int = MAX_BYTES) -> None:
    """Raise :class:`WorkRefused` for a work without manifests, for manifests that are too large together, without a
    kind or a name, with a generated name, or for the same object twice."""
    manifests = dig(work, "spec", "workload", "manifests") or []
    if not manifests:
        raise WorkRefused("manifests should not be empty")
    size = sum(map(manifest_size, manifests))
    if size > limit:
        raise WorkRefused(f"the size of manifests is {size} bytes which exceeds the {limit} limit")
    seen = set()
    for one in manifests:
        _check_manifest(one)
        key = (one.get("apiVersion"), one["kind"], namespace_of(one), name_of(one))
        if key in seen:
            kind = f"{one.get('apiVersion') or ''}.{one['kind']}"
            raise WorkRefused(f"duplicate manifest for resource {key[2]}/{key[3]} with resource type {kind}")
        seen.add(key)


def _check_manifest(manifest: Obj) -> None:
    if not manifest.get("kind"):
        raise WorkRefused(f"Object 'Kind' is missing in '{_ENCODE(manifest).decode()}'")
    if not name_of(manifest):
        raise WorkRefused("name must be set in manifest")
    if meta(manifest).get("generateName"):
        raise WorkRefused("generateName must not be set in manifest")


def manifest_size(manifest: Obj) -> int:
    """Return the bytes of a manifest as the limit counts them."""
    return encoded_size(len(_ENCODE(manifest)))


def encoded_size(size: int) -> int:
    """Return the bytes that a manifest of ``size`` bytes of JSON takes in upstream's encoding: its field, and the
    extension around it, have a tag and a length each (protobuf ``RawExtension``)."""
    return size + 1 + _length_bytes(size)


def _length_bytes(size: int) -> int:
    return max(1, -(-size.bit_length() // 7))


def executor_review(work: Obj, old: Obj | None, user: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the spec of the SubjectAccessReview that must be allowed: whether the user may let the work be applied as
    its executor. None without an executor, and while it stays the same.

    ``user``: ``userInfo`` of the request. Raises :class:`WorkRefused` for an executor without a service account.
    """
    executor = dig(work, "spec", "executor")
    if executor is None or (old is not None and dig(old, "spec", "executor") == executor):
        return None
    account = dig(executor, "subject", "serviceAccount")
    if not isinstance(account, Mapping):
        raise WorkRefused("executor service account can not be nil")
    attributes = {
        "namespace": namespace_of(work),
        "verb": "execute-as",
        "group": "work.open-cluster-management.io",
        "resource": "manifestworks",
        "name": f"system:serviceaccount:{account.get('namespace') or ''}:{account.get('name') or ''}",
    }
    fields = {"user": "username", "uid": "uid", "groups": "groups", "extra": "extra"}
    asked = {name: user[field] for name, field in fields.items() if user.get(field)}
    return {"resourceAttributes": attributes, **asked}


def executor_refusal(work: Obj, username: str) -> str:
    """Return the sentence for a user who may not execute as the work's executor."""
    account = dig(work, "spec", "executor", "subject", "serviceAccount") or {}
    name = f"{account.get('namespace') or ''}/{account.get('name') or ''}"
    return f"user {username} cannot manipulate the Manifestwork with executor {name} in namespace {namespace_of(work)}"
