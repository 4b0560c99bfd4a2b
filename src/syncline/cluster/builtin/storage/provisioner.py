"""Provision volumes of classes with the provisioner ``syncline.dev/simulated``, as a CSI driver would.

``syncline up`` installs :func:`standard_class`; without such a class nothing is provisioned. A volume created for a
machine in a zone is reachable from that zone only. No data is stored.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from syncline.cluster.builtin.storage.claims import PROVISIONER
from syncline.cluster.builtin.storage.matching import CLAIM, STORAGE_CLASS, VOLUME, claim_reference, edit
from syncline.control.cache import Snapshot
from syncline.control.controller import Controller
from syncline.control.plan import Create, Delete, Emit, Plan, Requeue
from syncline.kube.objects import (
    GroupKind,
    Obj,
    ObjectRef,
    annotations_of,
    dig,
    is_terminating,
    labels_of,
    name_of,
    uid_of,
)
from syncline.kube.scheduling.volumes import SELECTED_NODE

SIMULATED = "syncline.dev/simulated"
DRIVER = "simulated.syncline.dev"
"""Driver name in the volumes; driver names are domains."""
PROVISIONED_BY = "pv.kubernetes.io/provisioned-by"
ZONE = "topology.kubernetes.io/zone"
NODE = GroupKind("", "Node")
CACHE_WAIT_S = 0.1


def standard_class() -> Obj:
    """Return the default StorageClass ``standard``, whose volumes are created where the first pod is placed."""
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": "standard", "annotations": {"storageclass.kubernetes.io/is-default-class": "true"}},
        "provisioner": SIMULATED,
        "reclaimPolicy": "Delete",
        "volumeBindingMode": "WaitForFirstConsumer",
        "allowVolumeExpansion": True,
    }


@dataclass(frozen=True, slots=True)
class ObservedClaim:
    """``node`` is the selected one; ``complete`` is False before classes, nodes and volumes are listed."""

    claim: Obj
    storage_class: Obj | None
    node: Obj | None
    made: bool
    complete: bool = True


def _observe(cache: Snapshot, ref: ObjectRef) -> ObservedClaim | None:
    """Return None for claims that are bound, terminating, or of another provisioner."""
    claim = cache.get(ref)
    if claim is None or is_terminating(claim) or dig(claim, "spec", "volumeName"):
        return None
    notes = annotations_of(claim)
    if notes.get(PROVISIONER) != SIMULATED:
        return None
    class_name = str(dig(claim, "spec", "storageClassName", default=""))
    return ObservedClaim(
        claim,
        cache.get(ObjectRef(STORAGE_CLASS.group, STORAGE_CLASS.kind, "", class_name)),
        cache.get(ObjectRef("", NODE.kind, "", notes.get(SELECTED_NODE, ""))),
        cache.get(ObjectRef("", VOLUME.kind, "", _volume_name(claim))) is not None,
        all(cache.has_synced(kind) for kind in (STORAGE_CLASS, NODE, VOLUME)),
    )


def plan(observed: ObservedClaim) -> Plan:
    """Create one volume per claim, named after the claim's uid, so that it is created once. Pure."""
    claim, known = observed.claim, observed.storage_class
    if not observed.complete:
        return Plan((), Requeue(CACHE_WAIT_S, "classes and nodes are not listed yet"))
    if observed.made or known is None:
        return Plan(why="its volume is there" if observed.made else "its class is gone")
    if SELECTED_NODE in annotations_of(claim) and observed.node is None:
        again = edit(claim, CLAIM, {"metadata": {"annotations": {SELECTED_NODE: None}}}, "that node is gone")
        return Plan(((again,),), why="its node is gone; the scheduler selects another")
    event = Emit(claim, "ProvisioningSucceeded", f"Successfully provisioned volume {_volume_name(claim)}", SIMULATED)
    return Plan(((Create(_volume(claim, known, observed.node), "a claim asks for it"),), (event,)), why="make a volume")


def _volume_name(claim: Obj) -> str:
    return f"pvc-{uid_of(claim)}"


def _volume(claim: Obj, storage_class: Obj, node: Obj | None) -> Obj:
    wanted = claim.get("spec") or {}
    spec: Obj = {
        "accessModes": wanted.get("accessModes") or [],
        "capacity": {"storage": dig(wanted, "resources", "requests", "storage")},
        "claimRef": claim_reference(claim),
        "csi": {"driver": DRIVER, "volumeHandle": _volume_name(claim)},
        "persistentVolumeReclaimPolicy": storage_class.get("reclaimPolicy") or "Delete",
        "storageClassName": name_of(storage_class),
        "volumeMode": wanted.get("volumeMode") or "Filesystem",
    }
    if storage_class.get("mountOptions"):
        spec["mountOptions"] = storage_class["mountOptions"]
    zone = labels_of(node or {}).get(ZONE)
    if zone:
        here = {"matchExpressions": [{"key": ZONE, "operator": "In", "values": [zone]}]}
        spec["nodeAffinity"] = {"required": {"nodeSelectorTerms": [here]}}
    metadata = {"name": _volume_name(claim), "annotations": {PROVISIONED_BY: SIMULATED}}
    return {"apiVersion": "v1", "kind": VOLUME.kind, "metadata": metadata, "spec": spec}


PROVISION_CONTROLLER = Controller(
    name="simulated-provisioner",
    kind=CLAIM,
    reads=(STORAGE_CLASS, NODE, VOLUME),
    observe=_observe,
    plan=lambda observed, _now: plan(observed),
)
"""Creates a volume for each claim of our provisioner."""


def _released(cache: Snapshot, ref: ObjectRef) -> Obj | None:
    """Return a released volume of ours that must be deleted, or None."""
    volume = cache.get(ref)
    if volume is None or is_terminating(volume) or annotations_of(volume).get(PROVISIONED_BY) != SIMULATED:
        return None
    released = dig(volume, "status", "phase") == "Released"
    return volume if released and dig(volume, "spec", "persistentVolumeReclaimPolicy") == "Delete" else None


def _reclaim(observed: Obj, now: datetime) -> Plan:
    held = dig(observed, "spec", "claimRef", default={})
    why = f"its claim {held.get('namespace')}/{held.get('name')} is gone"
    return Plan(((Delete.of(observed, why),),), why=why)


RECLAIM_CONTROLLER = Controller(
    name="simulated-reclaimer",
    kind=VOLUME,
    observe=_released,
    plan=_reclaim,
)
"""Deletes our released volumes whose reclaim policy is Delete."""
