"""Finds volumes for claims, keeps their status, and lets go of claims that no pod uses."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from syncline.cluster.builtin.pods import POD, is_finished
from syncline.cluster.builtin.storage.matching import CLAIM, VOLUME, best_volume, edit, is_for, unprotect
from syncline.control.cache import Snapshot
from syncline.control.controller import Watch
from syncline.control.plan import Patch, Plan, set_status
from syncline.kube.objects import (
    GroupKind,
    Obj,
    ObjectRef,
    annotations_of,
    dig,
    finalizers,
    is_terminating,
    name_of,
    namespace_of,
    ref_of,
    uid_of,
)

__all__ = ["ClaimController", "Observed", "plan"]

PROTECTION = "kubernetes.io/pvc-protection"
COMPLETED = "pv.kubernetes.io/bind-completed"
BY_CONTROLLER = "pv.kubernetes.io/bound-by-controller"


@dataclass(frozen=True, slots=True)
class Observed:
    """``volume`` is the one the claim names, or the best that is free; ``used`` tells whether a pod needs the claim."""

    claim: Obj
    volume: Obj | None
    used: bool


def observe(cache: Snapshot, ref: ObjectRef) -> Observed | None:
    """None when the claim is gone, or before the volumes were listed once."""
    claim = cache.get(ref)
    if claim is None or not (cache.has_synced(VOLUME) and cache.has_synced(POD)):
        return None
    name = str(dig(claim, "spec", "volumeName", default=""))
    if name:
        volume = cache.get(ObjectRef("", VOLUME.kind, "", name))
    else:
        volume = best_volume(claim, cache.objects(VOLUME))
    used = any(ref.name in _claim_names(pod) and not is_finished(pod) for pod in cache.objects(POD, ref.namespace))
    return Observed(claim, volume, used)


def _claim_names(pod: Obj) -> list[str]:
    volumes = dig(pod, "spec", "volumes", default=[])
    return [str(dig(each, "persistentVolumeClaim", "claimName", default="")) for each in volumes]


def plan(seen: Observed, now: datetime) -> Plan:
    """Reserve the volume, name it in the claim, then say so in the status: each step shows in an object."""
    claim, volume = seen.claim, seen.volume
    if is_terminating(claim):
        if seen.used or PROTECTION not in finalizers(claim):
            return Plan(why="the claim is in use, or held by others")
        return Plan(((unprotect(claim, CLAIM, PROTECTION),),), why="no pod uses the claim")
    if volume is None:
        lost = bool(dig(claim, "spec", "volumeName"))
        return _phase(claim, {"phase": "Lost" if lost else "Pending"}, "there is no volume for it")
    if dig(volume, "spec", "claimRef") and not is_for(volume, claim):
        return _phase(claim, {"phase": "Pending"}, "the volume belongs to another claim")
    if not dig(volume, "spec", "claimRef", "uid"):
        return Plan(((_reserve(volume, claim),),), why=f"{name_of(volume)} suits it best")
    notes = {COMPLETED: "yes"} | ({} if dig(claim, "spec", "volumeName") else {BY_CONTROLLER: "yes"})
    if not notes.items() <= annotations_of(claim).items() or not dig(claim, "spec", "volumeName"):
        body = {"metadata": {"annotations": notes}, "spec": {"volumeName": name_of(volume)}}
        return Plan(((edit(claim, CLAIM, body, f"{name_of(volume)} is reserved for it"),),), why="the claim is bound")
    modes, capacity = dig(volume, "spec", "accessModes", default=[]), dig(volume, "spec", "capacity", default={})
    return _phase(claim, {"phase": "Bound", "accessModes": modes, "capacity": capacity}, "the claim is bound")


def _phase(claim: Obj, status: Obj, why: str) -> Plan:
    return Plan(status=set_status(claim, dict(claim.get("status") or {}) | status, why), why=why)


def _reserve(volume: Obj, claim: Obj) -> Patch:
    reference = {"apiVersion": "v1", "kind": CLAIM.kind, "namespace": namespace_of(claim), "name": name_of(claim)}
    reference |= {"uid": uid_of(claim), "resourceVersion": dig(claim, "metadata", "resourceVersion")}
    body: Obj = {"spec": {"claimRef": reference}}
    if not dig(volume, "spec", "claimRef"):
        body["metadata"] = {"annotations": {BY_CONTROLLER: "yes"}}
    return edit(volume, VOLUME, body, f"reserved for {ref_of(claim)}")


def _claims_of_volume(volume: Obj, cache: Snapshot) -> Iterable[ObjectRef]:
    """The claim a volume names, or all that still wait."""
    reference = dig(volume, "spec", "claimRef")
    if reference:
        yield ObjectRef("", CLAIM.kind, str(reference.get("namespace")), str(reference.get("name")))
    for claim in cache.objects(CLAIM):
        if dig(claim, "spec", "volumeName") in (None, "", name_of(volume)):
            yield ref_of(claim)


def _claims_of_pod(pod: Obj, _cache: Snapshot) -> Iterable[ObjectRef]:
    return (ObjectRef("", CLAIM.kind, namespace_of(pod), name) for name in _claim_names(pod) if name)


class ClaimController:
    """Binds claims to volumes."""

    name = "volume-claim"
    kind = CLAIM
    watches: tuple[Watch, ...] = (Watch(VOLUME, _claims_of_volume), Watch(POD, _claims_of_pod))
    reads: tuple[GroupKind, ...] = ()

    def observe(self, cache: Snapshot, ref: ObjectRef) -> Observed | None:
        return observe(cache, ref)

    def plan(self, seen: Observed, now: datetime) -> Plan:
        return plan(seen, now)
