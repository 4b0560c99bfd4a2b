"""Protect VolumeAttributesClasses in use by claims or volumes (Kubernetes ``volumeattributesclass-protection``)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from syncline.cluster.builtin.storage.matching import CLAIM, VOLUME
from syncline.control.cache import Snapshot
from syncline.control.controller import Controller, Watch
from syncline.control.plan import Patch, Plan
from syncline.kube.objects import (
    GVK,
    GroupKind,
    Obj,
    ObjectRef,
    dig,
    finalizers,
    is_terminating,
    meta,
    name_of,
    resource_version,
    uid_of,
)

CLASS = GroupKind("storage.k8s.io", "VolumeAttributesClass")
PROTECTION = "kubernetes.io/vac-protection"


@dataclass(frozen=True, slots=True)
class Observed:
    """``used``: a claim requests, has or changes to the class, or a volume has it."""

    attributes_class: Obj
    used: bool


def _classes_of(obj: Obj) -> set[str]:
    found = (
        dig(obj, "spec", "volumeAttributesClassName"),
        dig(obj, "status", "currentVolumeAttributesClassName"),
        dig(obj, "status", "modifyVolumeStatus", "targetVolumeAttributesClassName"),
    )
    return {str(name) for name in found if name}


def observe(cache: Snapshot, ref: ObjectRef) -> Observed | None:
    """Return None if the class is deleted, or before claims and volumes are listed."""
    found = cache.get(ref)
    if found is None or not (cache.has_synced(CLAIM) and cache.has_synced(VOLUME)):
        return None
    asked = is_terminating(found)
    used = asked and any(ref.name in _classes_of(one) for kind in (CLAIM, VOLUME) for one in cache.objects(kind))
    return Observed(found, used)


def plan(observed: Observed, now: datetime) -> Plan:
    """Protect each class; release a terminating one that is unused."""
    found, held = observed.attributes_class, finalizers(observed.attributes_class)
    if not is_terminating(found) and PROTECTION not in held:
        return Plan(((_hold(found, [*held, PROTECTION], "it is to be protected"),),), why="the class is protected")
    if is_terminating(found) and PROTECTION in held and not observed.used:
        left = [name for name in held if name != PROTECTION]
        return Plan(((_hold(found, left, "nothing uses the class"),),), why="nothing uses the class")
    return Plan(why="the class is in use" if observed.used else "the class is protected")


def _hold(found: Obj, names: list[str], why: str) -> Patch:
    observed = {"uid": uid_of(found), "resourceVersion": resource_version(found)}
    body: Obj = {"metadata": {"finalizers": names or None} | observed}
    return Patch(GVK(CLASS.group, "v1", CLASS.kind), "", name_of(found), body, why)


def _classes_of_user(obj: Obj, cache: Snapshot) -> Iterable[ObjectRef]:
    """Return all terminating classes, since the object's previous class is unknown."""
    return (ObjectRef(CLASS.group, CLASS.kind, "", name_of(one)) for one in cache.objects(CLASS) if _is_going(one))


def _is_going(found: Obj) -> bool:
    return is_terminating(found) and PROTECTION in (meta(found).get("finalizers") or ())


ATTRIBUTES_CLASS_CONTROLLER = Controller(
    name="volume-attributes-class",
    kind=CLASS,
    watches=(Watch(CLAIM, _classes_of_user), Watch(VOLUME, _classes_of_user)),
    observe=observe,
    plan=plan,
)
"""Protects classes in use."""
