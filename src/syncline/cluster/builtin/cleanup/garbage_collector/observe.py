"""Observe one object for the garbage collector: its owners and its dependents."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from syncline.control.cache import Snapshot
from syncline.kube.objects import (
    GroupKind,
    Obj,
    ObjectRef,
    finalizers,
    is_terminating,
    namespace_of,
    owner_references,
    ref_of,
    split_api_version,
    uid_of,
)

FOREGROUND = "foregroundDeletion"
ORPHAN = "orphan"
EVENT = "Event"


class OwnerState(StrEnum):
    SOLID = "solid"
    """The owner exists."""
    ABSENT = "absent"
    """The owner does not exist, or has another uid."""
    WAITING = "waiting"
    """The owner is in foreground deletion: its dependents are deleted first."""
    UNKNOWN = "unknown"
    """The owner's kind is not served or not yet known: no conclusion is possible."""


@dataclass(frozen=True, slots=True)
class Owner:
    """``elsewhere``: the uid exists in another namespace, where it cannot own this object."""

    reference: Obj
    target: ObjectRef
    state: OwnerState
    elsewhere: bool = False


@dataclass(frozen=True, slots=True)
class Observed:
    obj: Obj
    owners: tuple[Owner, ...]
    dependents: tuple[Obj, ...]


def observe(cache: Snapshot, ref: ObjectRef) -> Observed | None:
    """Return None for a deleted object, and for one that needs no action."""
    obj = cache.get(ref)
    if obj is None or ref.kind == EVENT:
        return None
    owners = tuple(_owner(cache, obj, reference) for reference in owner_references(obj))
    if not owners and not is_terminating(obj):
        return None
    return Observed(obj, owners, tuple(cache.owned(uid_of(obj))))


def _owner(cache: Snapshot, obj: Obj, reference: Obj) -> Owner:
    target = _target(cache, obj, reference)
    info = cache.mapper.preferred(target.group_kind)
    if info is None or not cache.has_synced(target.group_kind):
        return Owner(reference, target, OwnerState.UNKNOWN)
    if info.namespaced and not namespace_of(obj):
        return Owner(reference, target, OwnerState.UNKNOWN)  # a cluster-scoped object cannot have a namespaced owner
    found = cache.get(target)
    if found is None or uid_of(found) != reference.get("uid"):
        elsewhere = any(uid_of(each) == reference.get("uid") for each in cache.objects(target.group_kind))
        return Owner(reference, target, OwnerState.ABSENT, elsewhere)
    waiting = is_terminating(found) and FOREGROUND in finalizers(found)
    return Owner(reference, target, OwnerState.WAITING if waiting else OwnerState.SOLID)


def _target(cache: Snapshot, obj: Obj, reference: Obj) -> ObjectRef:
    group, _ = split_api_version(str(reference.get("apiVersion") or ""))
    kind = str(reference.get("kind") or "")
    info = cache.mapper.preferred(GroupKind(group, kind))
    namespace = namespace_of(obj) if info is None or info.namespaced else ""
    return ObjectRef(group, kind, namespace, str(reference.get("name") or ""))


def concerned(obj: Obj, cache: Snapshot) -> Iterable[ObjectRef]:
    """Yield what to reconcile after a change of ``obj``: itself, owners that wait, dependents if it terminates."""
    ref = ref_of(obj)
    if ref.kind == EVENT:
        return
    if owner_references(obj) or is_terminating(obj):
        yield ref
    for reference in owner_references(obj):
        target = _target(cache, obj, reference)
        found = cache.get(target)
        if found is not None and is_terminating(found):
            yield target
    here = cache.get(ref)
    if here is None or uid_of(here) != uid_of(obj) or is_terminating(obj):
        for dependent in cache.owned(uid_of(obj)):
            yield ref_of(dependent)
