"""Bind claims to volumes, update their status, and release claims that no pod uses.

If a claim's class waits for the first consumer, the claim gets the volume that the scheduler reserves for it, or, once
the scheduler has selected a node, a new one. Provisioners create volumes; this controller only marks whose turn it is.
Source: Kubernetes' persistentvolume-controller.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from syncline.cluster.builtin.pods import POD, created_at, is_finished
from syncline.cluster.builtin.storage.matching import (
    BY_CONTROLLER,
    CLAIM,
    STORAGE_CLASS,
    VOLUME,
    edit,
    reserve,
    unprotect,
)
from syncline.control.cache import Snapshot
from syncline.control.controller import SPEC, Controller, Watch
from syncline.control.plan import Emit, Plan, set_status
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
    uid_of,
)
from syncline.kube.scheduling.volumes import (
    BOUND,
    NO_PROVISIONER,
    SELECTED_NODE,
    best_volume,
    claim_names,
    delays_binding,
    is_for,
    mismatch,
)

PROTECTION = "kubernetes.io/pvc-protection"
DEFAULT_CLASS = "storageclass.kubernetes.io/is-default-class"
PROVISIONER = "volume.kubernetes.io/storage-provisioner"
_OLD_PROVISIONER = "volume.beta.kubernetes.io/storage-provisioner"
COMPONENT = "persistentvolume-controller"
MAX_SAID = 10_000
"""Claims whose last Event is cached: an Event reports a change, not each reconcile."""


@dataclass(frozen=True, slots=True)
class Observed:
    """``volume`` is the one the claim names, or the best free one; ``used``: a pod needs the claim; ``unplaced``: its
    pods without a node; ``said``: the last Event about the claim; ``default_class``: the class that a claim without one
    gets now."""

    claim: Obj
    volume: Obj | None
    used: bool
    storage_class: Obj | None = None
    unplaced: tuple[str, ...] = ()
    said: str = ""
    default_class: str = ""


def observe(cache: Snapshot, ref: ObjectRef, said: str = "") -> Observed | None:
    """Return None if the claim is deleted, or before the volumes are listed."""
    claim = cache.get(ref)
    if claim is None or not (cache.has_synced(VOLUME) and cache.has_synced(POD)):
        return None
    name = str(dig(claim, "spec", "volumeName", default=""))
    class_name = str(dig(claim, "spec", "storageClassName", default=""))
    found = cache.get(ObjectRef(STORAGE_CLASS.group, STORAGE_CLASS.kind, "", class_name))
    if name:
        volume = cache.get(ObjectRef("", VOLUME.kind, "", name))
    else:
        volumes = cache.objects(VOLUME)
        if found is not None and delays_binding(claim, {class_name: found}):
            volumes = [each for each in volumes if is_for(each, claim)]
        volume = best_volume(claim, volumes)
    pods = [pod for pod in cache.objects(POD, ref.namespace) if ref.name in claim_names(pod) and not is_finished(pod)]
    unplaced = tuple(name_of(pod) for pod in pods if not dig(pod, "spec", "nodeName"))
    used = len(unplaced) < len(pods)  # a pod without a node has not mounted anything
    default = _default_class(cache) if dig(claim, "spec", "storageClassName") is None else ""
    return Observed(claim, volume, used, found, unplaced, said, default)


def _default_class(cache: Snapshot) -> str:
    """Return the youngest default class, of equal ones the first by name; "" if there is none."""
    defaults = sorted((each for each in cache.objects(STORAGE_CLASS) if _is_default(each)), key=name_of)
    youngest = max((created_at(each) for each in defaults), default=None)
    return next((name_of(each) for each in defaults if created_at(each) == youngest), "")


def _is_default(storage_class: Obj) -> bool:
    return annotations_of(storage_class).get(DEFAULT_CLASS) == "true"


def plan(observed: Observed, now: datetime) -> Plan:
    """Reserve the volume, name it in the claim, then update the status: each step is visible in an object."""
    claim, volume = observed.claim, observed.volume
    if is_terminating(claim):
        if observed.used or PROTECTION not in finalizers(claim):
            return Plan(why="the claim is in use, or held by others")
        return Plan(((unprotect(claim, CLAIM, PROTECTION),),), why="no pod uses the claim")
    if BOUND in annotations_of(claim) and (lost := _loss(observed)) is not None:
        return lost
    if volume is None:
        if dig(claim, "spec", "volumeName"):
            return _phase(claim, {"phase": "Pending"}, "the volume that it names is not there yet")
        return _without_volume(observed)
    if dig(volume, "spec", "claimRef") and not is_for(volume, claim):
        return _phase(claim, {"phase": "Pending"}, "the volume belongs to another claim")
    if not dig(volume, "spec", "claimRef") and (misfit := mismatch(volume, claim)):
        event = _tell(
            observed, "VolumeMismatch", f'Cannot bind to requested volume "{name_of(volume)}": {misfit}', warning=True
        )
        pending = _phase(claim, {"phase": "Pending"}, "the volume that it names does not suit it").status
        return Plan(event, why="the volume that it names does not suit it", status=pending)
    if not dig(volume, "spec", "claimRef", "uid"):
        return Plan(((reserve(volume, claim),),), why=f"{name_of(volume)} suits it best")
    notes = {BOUND: "yes"} | ({} if dig(claim, "spec", "volumeName") else {BY_CONTROLLER: "yes"})
    if not notes.items() <= annotations_of(claim).items() or not dig(claim, "spec", "volumeName"):
        body = {"metadata": {"annotations": notes}, "spec": {"volumeName": name_of(volume)}}
        return Plan(((edit(claim, CLAIM, body, f"{name_of(volume)} is reserved for it"),),), why="the claim is bound")
    modes, capacity = dig(volume, "spec", "accessModes", default=[]), dig(volume, "spec", "capacity", default={})
    return _phase(claim, {"phase": "Bound", "accessModes": modes, "capacity": capacity}, "the claim is bound")


def _loss(observed: Observed) -> Plan | None:
    """Mark a claim that was bound and no longer is as lost, permanently (``syncBoundClaim``)."""
    claim, volume = observed.claim, observed.volume
    reason = "ClaimLost"
    if not dig(claim, "spec", "volumeName"):
        text = "Bound claim has lost reference to PersistentVolume. Data on the volume is lost!"
    elif volume is None:
        text = "Bound claim has lost its PersistentVolume. Data on the volume is lost!"
    elif dig(volume, "spec", "claimRef") and not is_for(volume, claim):
        reason, text = "ClaimMisbound", "Two claims are bound to the same volume, this one is bound incorrectly"
    else:
        return None
    status = {
        key: value for key, value in (claim.get("status") or {}).items() if key not in ("accessModes", "capacity")
    }
    writes = set_status(claim, status | {"phase": "Lost"}, text)
    event = (Emit(claim, reason, text, COMPONENT, warning=True),) if writes else ()
    return Plan(status=(*writes, *event), why=text)


def _phase(claim: Obj, status: Obj, why: str) -> Plan:
    return Plan(status=set_status(claim, dict(claim.get("status") or {}) | status, why), why=why)


def _without_volume(observed: Observed) -> Plan:
    """Keep the claim Pending; emit an Event with the reason, and notify the provisioner."""
    claim, known = observed.claim, observed.storage_class
    if observed.default_class:
        body: Obj = {"spec": {"storageClassName": observed.default_class}}
        return Plan(((edit(claim, CLAIM, body, "there is a default class now"),),), why="it gets the default class")
    pending = _phase(claim, {"phase": "Pending"}, "there is no volume for it").status
    class_name = str(dig(claim, "spec", "storageClassName", default=""))
    if known is None:
        if class_name:
            event = _tell(
                observed, "ProvisioningFailed", f'storageclass.storage.k8s.io "{class_name}" not found', warning=True
            )
        else:
            none = "no persistent volumes available for this claim and no storage class is set"
            event = _tell(observed, "FailedBinding", none)
        return Plan(event, why="there is no volume and no class that makes one", status=pending)
    if delays_binding(claim, {class_name: known}) and SELECTED_NODE not in annotations_of(claim):
        return Plan(
            _tell(observed, *_waiting(observed.unplaced)), why="it waits for a pod to be placed", status=pending
        )
    provisioner = str(known.get("provisioner"))
    if provisioner == NO_PROVISIONER:
        event = _tell(observed, "ProvisioningFailed", f"no volume plugin matched name: {provisioner}", warning=True)
        return Plan(event, why="no provisioner makes volumes of its class", status=pending)
    event = _tell(observed, "ExternalProvisioning", _external(provisioner))
    notes = {PROVISIONER: provisioner, _OLD_PROVISIONER: provisioner}
    if notes.items() <= annotations_of(claim).items():
        return Plan(event, why="its provisioner makes a volume", status=pending)
    ask = edit(claim, CLAIM, {"metadata": {"annotations": notes}}, f"{provisioner} makes its volume")
    return Plan(((ask,), *event), why="a provisioner is asked for a volume")


def _waiting(unplaced: tuple[str, ...]) -> tuple[str, str]:
    if not unplaced:
        return "WaitForFirstConsumer", "waiting for first consumer to be created before binding"
    which = "pod" if len(unplaced) == 1 else "pods"
    return "WaitForPodScheduled", f"waiting for {which} {','.join(unplaced)} to be scheduled"


def _external(provisioner: str) -> str:
    return (
        f"Waiting for a volume to be created either by the external provisioner '{provisioner}' or manually by the "
        "system administrator. If volume creation is delayed, please verify that the provisioner is running and "
        "correctly registered."
    )


def _tell(observed: Observed, reason: str, message: str, *, warning: bool = False) -> tuple[tuple[Emit, ...], ...]:
    return () if observed.said == message else ((Emit(observed.claim, reason, message, COMPONENT, warning),),)


def _claims_of_volume(volume: Obj, cache: Snapshot) -> Iterable[ObjectRef]:
    """Yield the claim that a volume names, and all claims that still wait."""
    reference = dig(volume, "spec", "claimRef")
    if reference:
        yield ObjectRef("", CLAIM.kind, str(reference.get("namespace")), str(reference.get("name")))
    for claim in cache.objects(CLAIM):
        if dig(claim, "spec", "volumeName") in (None, "", name_of(volume)):
            yield ref_of(claim)


def _claims_of_pod(pod: Obj, _cache: Snapshot) -> Iterable[ObjectRef]:
    return (ObjectRef("", CLAIM.kind, namespace_of(pod), name) for name in claim_names(pod))


def _claims_of_class(storage_class: Obj, cache: Snapshot) -> Iterable[ObjectRef]:
    for claim in cache.objects(CLAIM):
        wanted = dig(claim, "spec", "storageClassName")
        concerned = wanted == name_of(storage_class) or (wanted is None and _is_default(storage_class))
        if concerned and not dig(claim, "spec", "volumeName"):
            yield ref_of(claim)


def claim_controller() -> Controller[Observed]:
    """Return the controller that binds claims to volumes."""
    said: dict[str, str] = {}

    def with_said(cache: Snapshot, ref: ObjectRef) -> Observed | None:
        claim = cache.get(ref)
        return None if claim is None else observe(cache, ref, said.get(uid_of(claim), ""))

    def remembered(observed: Observed, now: datetime) -> Plan:
        made = plan(observed, now)
        for action in made.actions:
            if isinstance(action, Emit):
                remember(uid_of(observed.claim), action.message)
        return made

    def remember(uid: str, message: str) -> None:
        said.pop(uid, None)
        said[uid] = message
        if len(said) > MAX_SAID:
            del said[next(iter(said))]

    return Controller(
        name="volume-claim",
        kind=CLAIM,
        watches=(
            Watch(VOLUME, _claims_of_volume),
            Watch(POD, _claims_of_pod, reads=SPEC),
            Watch(STORAGE_CLASS, _claims_of_class),
        ),
        observe=with_said,
        plan=remembered,
    )
