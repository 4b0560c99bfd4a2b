"""Update the phase of volumes (Available, Bound, Released, Failed), release those that no claim holds, and delete
released ones unless another driver does.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from syncline.base.clock import format_time
from syncline.cluster.builtin.storage.matching import CLAIM, VOLUME, unprotect
from syncline.control.cache import Snapshot
from syncline.control.controller import Controller, Watch
from syncline.control.plan import Delete, Emit, Plan, set_status
from syncline.kube.objects import (
    Obj,
    ObjectRef,
    annotations_of,
    dig,
    finalizers,
    is_terminating,
    name_of,
    namespace_of,
    ref_of,
)
from syncline.kube.scheduling.volumes import is_for

PROTECTION = "kubernetes.io/pv-protection"
PROVISIONED_BY = "pv.kubernetes.io/provisioned-by"
COMPONENT = "persistentvolume-controller"
SCRATCH = "/tmp/"


@dataclass(frozen=True, slots=True)
class Observed:
    """``claim`` is the one that the volume names, if it exists with that uid."""

    volume: Obj
    claim: Obj | None


def observe(cache: Snapshot, ref: ObjectRef) -> Observed | None:
    """Return None if the volume is deleted, or before the claims are listed."""
    volume = cache.get(ref)
    if volume is None or not cache.has_synced(CLAIM):
        return None
    named = dig(volume, "spec", "claimRef", default={})
    claim = cache.get(ObjectRef("", CLAIM.kind, str(named.get("namespace")), str(named.get("name"))))
    return Observed(volume, claim if claim is not None and is_for(volume, claim) else None)


def plan(observed: Observed, now: datetime) -> Plan:
    """Update the phase; then reclaim a released volume; a terminating one is released if it is not bound."""
    phase, problem = _phase(observed)
    status = dict(observed.volume.get("status") or {})
    if status.get("phase") != phase or str(status.get("message") or "") != problem:
        moved = {"lastPhaseTransitionTime": format_time(now)} if status.get("phase") != phase else {}
        status = {key: value for key, value in status.items() if key != "message"} | {"phase": phase} | moved
        status |= {"message": problem} if problem else {}
        event = (Emit(observed.volume, "VolumeFailedDelete", problem, COMPONENT, warning=True),) if problem else ()
        return Plan(
            status=(*set_status(observed.volume, status, f"it is {phase}"), *event), why=f"the volume is {phase}"
        )
    if is_terminating(observed.volume) and phase != "Bound" and PROTECTION in finalizers(observed.volume):
        return Plan(((unprotect(observed.volume, VOLUME, PROTECTION),),), why="no claim holds the volume")
    if phase == "Released" and _is_scratch(observed.volume) and not is_terminating(observed.volume):
        return Plan(
            ((Delete.of(observed.volume, "its claim is gone"),),), why="the volume was released and is not to be kept"
        )
    return Plan(why=f"the volume is {phase}")


def _phase(observed: Observed) -> tuple[str, str]:
    """Return the phase, and why a released volume that should be deleted cannot be."""
    reserved = dig(observed.volume, "spec", "claimRef", "uid")
    if not reserved:
        return "Available", ""
    if observed.claim is not None:
        return "Bound", ""
    problem = _undeletable(observed.volume)
    return ("Failed", problem) if problem else ("Released", "")


def _is_ours_to_delete(volume: Obj) -> bool:
    """Return whether we delete the volume, rather than its class's driver."""
    external = dig(volume, "spec", "csi") is not None or annotations_of(volume).get(PROVISIONED_BY)
    return dig(volume, "spec", "persistentVolumeReclaimPolicy") == "Delete" and not external


def _is_scratch(volume: Obj) -> bool:
    path = str(dig(volume, "spec", "hostPath", "path", default=""))
    return _is_ours_to_delete(volume) and path.startswith(SCRATCH) and path != SCRATCH


def _undeletable(volume: Obj) -> str:
    """Return why a volume cannot be deleted: only hostPaths below /tmp have a deleter."""
    if not _is_ours_to_delete(volume) or _is_scratch(volume):
        return ""
    path = dig(volume, "spec", "hostPath", "path")
    if path is not None:
        return f"host_path deleter only supports /tmp/.+ but received provided {path}"
    name = name_of(volume)
    return f'error getting deleter volume plugin for volume "{name}": no deletable volume plugin matched'


def _volumes_of_claim(claim: Obj, cache: Snapshot) -> Iterable[ObjectRef]:
    for volume in cache.objects(VOLUME):
        reference = dig(volume, "spec", "claimRef", default={})
        if (reference.get("namespace"), reference.get("name")) == (namespace_of(claim), name_of(claim)):
            yield ref_of(volume)


VOLUME_CONTROLLER = Controller(
    name="volume",
    kind=VOLUME,
    watches=(Watch(CLAIM, _volumes_of_claim),),
    observe=observe,
    plan=plan,
)
"""Maintains the phase of each volume."""
