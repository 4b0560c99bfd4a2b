"""Kinds of storage, and patches that apply only to the observed claim or volume."""

from __future__ import annotations

from syncline.control.plan import Patch
from syncline.kube.objects import (
    GVK,
    GroupKind,
    Obj,
    dig,
    finalizers,
    name_of,
    namespace_of,
    ref_of,
    resource_version,
    uid_of,
)

BY_CONTROLLER = "pv.kubernetes.io/bound-by-controller"

VOLUME = GroupKind("", "PersistentVolume")
CLAIM = GroupKind("", "PersistentVolumeClaim")
STORAGE_CLASS = GroupKind("storage.k8s.io", "StorageClass")


def edit(obj: Obj, kind: GroupKind, body: Obj, reason: str) -> Patch:
    """Return a patch with uid and resourceVersion of the observed object as preconditions."""
    observed = {"uid": uid_of(obj), "resourceVersion": resource_version(obj)}
    body = body | {"metadata": dict(body.get("metadata") or {}) | observed}
    return Patch(GVK("", "v1", kind.kind), namespace_of(obj), name_of(obj), body, reason)


def claim_reference(claim: Obj) -> Obj:
    """Return the ``claimRef`` that binds a volume to exactly this claim."""
    named = {"apiVersion": "v1", "kind": CLAIM.kind, "namespace": namespace_of(claim), "name": name_of(claim)}
    return named | {"uid": uid_of(claim), "resourceVersion": resource_version(claim)}


def reserve(volume: Obj, claim: Obj) -> Patch:
    body: Obj = {"spec": {"claimRef": claim_reference(claim)}}
    if not dig(volume, "spec", "claimRef"):
        body["metadata"] = {"annotations": {BY_CONTROLLER: "yes"}}
    return edit(volume, VOLUME, body, f"reserved for {ref_of(claim)}")


def unprotect(obj: Obj, kind: GroupKind, finalizer: str) -> Patch:
    left = [each for each in finalizers(obj) if each != finalizer]
    return edit(obj, kind, {"metadata": {"finalizers": left or None}}, "it is no longer used")
