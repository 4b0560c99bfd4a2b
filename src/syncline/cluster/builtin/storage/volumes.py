"""Keeps the phase of volumes: Available, Bound, Released; lets go of volumes that no claim holds."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from syncline.base.clock import format_time
from syncline.cluster.builtin.storage.matching import CLAIM, VOLUME, unprotect
from syncline.control.cache import Snapshot
from syncline.control.controller import Watch
from syncline.control.plan import Plan, set_status
from syncline.kube.objects import (
    GroupKind,
    Obj,
    ObjectRef,
    dig,
    finalizers,
    is_terminating,
    name_of,
    namespace_of,
    ref_of,
)
from syncline.kube.volumes import is_for

__all__ = ["Observed", "VolumeController", "plan"]

PROTECTION = "kubernetes.io/pv-protection"


@dataclass(frozen=True, slots=True)
class Observed:
    """``claim`` is what the volume names, if it exists under that uid."""

    volume: Obj
    claim: Obj | None


def observe(cache: Snapshot, ref: ObjectRef) -> Observed | None:
    """None when the volume is gone, or before the claims were listed once."""
    volume = cache.get(ref)
    if volume is None or not cache.has_synced(CLAIM):
        return None
    named = dig(volume, "spec", "claimRef", default={})
    claim = cache.get(ObjectRef("", CLAIM.kind, str(named.get("namespace")), str(named.get("name"))))
    return Observed(volume, claim if claim is not None and is_for(volume, claim) else None)


def plan(seen: Observed, now: datetime) -> Plan:
    """The phase first; a volume that is being deleted goes when it is not bound."""
    phase = _phase(seen)
    status = dict(seen.volume.get("status") or {})
    if status.get("phase") != phase:
        status |= {"phase": phase, "lastPhaseTransitionTime": format_time(now)}
        return Plan(status=set_status(seen.volume, status, f"it is {phase}"), why=f"the volume is {phase}")
    if is_terminating(seen.volume) and phase != "Bound" and PROTECTION in finalizers(seen.volume):
        return Plan(((unprotect(seen.volume, VOLUME, PROTECTION),),), why="no claim holds the volume")
    return Plan(why=f"the volume is {phase}")


def _phase(seen: Observed) -> str:
    reserved = dig(seen.volume, "spec", "claimRef", "uid")
    if not reserved:
        return "Available"
    return "Released" if seen.claim is None else "Bound"


def _volumes_of_claim(claim: Obj, cache: Snapshot) -> Iterable[ObjectRef]:
    for volume in cache.objects(VOLUME):
        reference = dig(volume, "spec", "claimRef", default={})
        if (reference.get("namespace"), reference.get("name")) == (namespace_of(claim), name_of(claim)):
            yield ref_of(volume)


class VolumeController:
    """One phase per volume."""

    name = "volume"
    kind = VOLUME
    watches: tuple[Watch, ...] = (Watch(CLAIM, _volumes_of_claim),)
    reads: tuple[GroupKind, ...] = ()

    def observe(self, cache: Snapshot, ref: ObjectRef) -> Observed | None:
        return observe(cache, ref)

    def plan(self, seen: Observed, now: datetime) -> Plan:
        return plan(seen, now)
