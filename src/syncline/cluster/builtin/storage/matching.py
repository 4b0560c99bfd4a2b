"""Which volume suits a claim: class, mode, access, labels and size; the smallest that is large enough.

Source: Kubernetes ``volume.FindMatchingVolume``.
"""

from __future__ import annotations

from collections.abc import Iterable

from syncline.control.plan import Patch
from syncline.kube.objects import (
    GVK,
    GroupKind,
    Obj,
    dig,
    finalizers,
    is_terminating,
    labels_of,
    name_of,
    namespace_of,
    resource_version,
    uid_of,
)
from syncline.kube.quantity import ZERO, Quantity, QuantityError, parse_quantity
from syncline.kube.selectors import label_selector_from

__all__ = ["CLAIM", "VOLUME", "best_volume", "edit", "is_for", "unprotect"]

VOLUME = GroupKind("", "PersistentVolume")
CLAIM = GroupKind("", "PersistentVolumeClaim")


def _size(value: object) -> Quantity:
    try:
        return parse_quantity(value) if isinstance(value, str | int) else ZERO
    except QuantityError:
        return ZERO


def is_for(volume: Obj, claim: Obj) -> bool:
    """The volume names this claim; by uid, once it has been bound."""
    reference = dig(volume, "spec", "claimRef", default={})
    named = (reference.get("namespace"), reference.get("name")) == (namespace_of(claim), name_of(claim))
    return named and reference.get("uid") in (None, "", uid_of(claim))


def best_volume(claim: Obj, volumes: Iterable[Obj]) -> Obj | None:
    """A volume that is reserved for the claim, or the smallest free one that suits it; equal ones by name."""
    suiting = [each for each in volumes if not is_terminating(each) and _suits(each, claim)]
    if not suiting:
        return None
    return min(suiting, key=lambda v: (not is_for(v, claim), _size(dig(v, "spec", "capacity", "storage")), name_of(v)))


def _suits(volume: Obj, claim: Obj) -> bool:
    wanted, has = claim.get("spec") or {}, volume.get("spec") or {}
    if has.get("claimRef") and not is_for(volume, claim):
        return False
    if (wanted.get("storageClassName") or "") != (has.get("storageClassName") or ""):
        return False
    if (wanted.get("volumeMode") or "Filesystem") != (has.get("volumeMode") or "Filesystem"):
        return False
    if not set(wanted.get("accessModes") or ()) <= set(has.get("accessModes") or ()):
        return False
    if wanted.get("selector") is not None and not label_selector_from(wanted["selector"]).matches(labels_of(volume)):
        return False
    request = _size(dig(wanted, "resources", "requests", "storage"))
    return _size(dig(has, "capacity", "storage")) >= request


def edit(obj: Obj, kind: GroupKind, body: Obj, reason: str) -> Patch:
    """A change of exactly the object that was seen."""
    seen = {"uid": uid_of(obj), "resourceVersion": resource_version(obj)}
    body = body | {"metadata": dict(body.get("metadata") or {}) | seen}
    return Patch(GVK("", "v1", kind.kind), namespace_of(obj), name_of(obj), body, reason)


def unprotect(obj: Obj, kind: GroupKind, finalizer: str) -> Patch:
    left = [each for each in finalizers(obj) if each != finalizer]
    return edit(obj, kind, {"metadata": {"finalizers": left or None}}, "nobody uses it any more")
