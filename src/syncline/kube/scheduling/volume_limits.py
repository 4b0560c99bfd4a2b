"""What the volumes of one pod may not share with those of another, and how many of them a node takes.

Called by the scheduler's filters. A pod, the pods that are placed and the cluster's storage come in; a sentence leaves.

Sources: the scheduler's plug-ins VolumeRestrictions and NodeVolumeLimits (1.36). Attachments of volumes whose pods are
gone already are not counted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Final

from syncline.kube.objects import Obj, dig, namespace_of
from syncline.kube.scheduling.volumes import Storage, claim_names

_ONE_POD = "ReadWriteOncePod"
_ONE_POD_TAKEN = (
    "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by another pod"
)
_DISK_TAKEN = "node(s) had no available disk"
_TOO_MANY = "node(s) exceed max volume count"

_DISKS: Final[dict[str, tuple[tuple[str, ...], bool]]] = {
    "gcePersistentDisk": (("pdName",), True),
    "awsElasticBlockStore": (("volumeID",), False),
    "iscsi": (("iqn",), True),
    "rbd": (("pool", "image"), True),
}
"""Disks that a pod names itself: what identifies one, and whether several pods may read it together."""

_Disk = tuple[str, tuple[str, ...]]


class SharedVolumes:
    """Volumes of one pod, examined once, then asked about each node."""

    def __init__(self, pod: Obj, storage: Storage, placed: Callable[[], Iterable[Obj]]) -> None:
        """``placed``: all pods on nodes; read only if a claim of the pod is for one pod alone."""
        self._storage = storage
        self._disks = dict(_disks(pod))
        self._volumes = _driver_volumes(pod, storage) if storage.limits else set()
        alone = _claims_for_one_pod(pod, storage)
        self._taken = bool(alone) and any(_shares(each, namespace_of(pod), alone) for each in placed())

    def refusal(self, node: str, pods: Iterable[Obj]) -> str:
        """Why the node with these pods is none for the pod's volumes; empty if it is."""
        if self._taken:
            return _ONE_POD_TAKEN
        if not self._disks and not self._volumes:
            return ""
        there = list(pods)
        if any(self._conflicts(disk, reading) for each in there for disk, reading in _disks(each)):
            return _DISK_TAKEN
        return _TOO_MANY if self._exceeds(node, there) else ""

    def _conflicts(self, disk: _Disk, reading: bool) -> bool:
        mine = self._disks.get(disk)
        return mine is not None and not (mine and reading and _DISKS[disk[0]][1])

    def _exceeds(self, node: str, pods: list[Obj]) -> bool:
        limits = self._storage.limits.get(node) or {}
        wanted = {volume for volume in self._volumes if volume[0] in limits}
        if not wanted:
            return False
        attached = {volume for each in pods for volume in _driver_volumes(each, self._storage)}
        for driver in {volume[0] for volume in wanted - attached}:
            if sum(volume[0] == driver for volume in wanted | attached) > limits[driver]:
                return True
        return False


def _disks(pod: Obj) -> Iterator[tuple[_Disk, bool]]:
    """Each disk with whether it is only read."""
    for volume in dig(pod, "spec", "volumes", default=[]):
        for kind, (keys, _) in _DISKS.items():
            if kind in volume:
                source = volume[kind]
                yield (kind, tuple(str(source.get(key)) for key in keys)), bool(source.get("readOnly"))


def _claims_for_one_pod(pod: Obj, storage: Storage) -> set[str]:
    claims = {name: storage.claims.get((namespace_of(pod), name)) for name in claim_names(pod)}
    return {name for name, claim in claims.items() if _ONE_POD in dig(claim, "spec", "accessModes", default=())}


def _shares(other: Obj, namespace: str, claims: set[str]) -> bool:
    return namespace_of(other) == namespace and not claims.isdisjoint(claim_names(other))


def _driver_volumes(pod: Obj, storage: Storage) -> set[tuple[str, str]]:
    """Driver and handle of every volume that a driver attaches; a claim without volume counts for its class."""
    found: set[tuple[str, str]] = set()
    for name in claim_names(pod):
        claim = storage.claims.get((namespace_of(pod), name))
        if claim is None:
            continue
        volume = storage.volumes.get(str(dig(claim, "spec", "volumeName", default="")))
        if volume is not None:
            driver, handle = dig(volume, "spec", "csi", "driver"), dig(volume, "spec", "csi", "volumeHandle")
        else:
            known = storage.classes.get(str(dig(claim, "spec", "storageClassName", default="")))
            driver, handle = (known or {}).get("provisioner"), f"{namespace_of(pod)}/{name}"
        if driver:
            found.add((str(driver), str(handle)))
    return found
