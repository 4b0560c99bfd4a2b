"""Releases that a cluster has proved: ControllerRevisions beside its work, which a roll back puts back; pure.

They stand in the namespace of the cluster, belong to the work, and only the hub writes them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

from syncline.base.action import Action
from syncline.control.plan import Create, Delete, Patch
from syncline.kube.objects import GVK, Obj, dig, name_of, namespace_of, resource_version, uid_of

REVISION: Final = GVK("apps", "v1", "ControllerRevision")
REVISIONS: Final = REVISION.group_kind
MAX_PROVEN: Final = 3
"""Proven releases that are kept for each Application of a cluster."""


@dataclass(frozen=True, slots=True)
class Proven:
    """A release that a cluster has proved. ``group``: the release of its group then."""

    release: str
    group: str
    number: int
    obj: Obj = field(repr=False)

    @property
    def manifests(self) -> list[Obj]:
        found = dig(self.obj, "data", "manifests")
        return [one for one in found if isinstance(one, dict)] if isinstance(found, list) else []


def proven_of(revisions: Iterable[Obj]) -> tuple[Proven, ...]:
    """Return the proven releases of a work, the newest first."""
    found = []
    for one in revisions:
        data, number = one.get("data"), one.get("revision")
        if isinstance(data, dict) and isinstance(number, int) and data.get("release"):
            found.append(Proven(str(data["release"]), str(data.get("groupRelease") or ""), number, one))
    return tuple(sorted(found, key=lambda one: (-one.number, one.release)))


def prove(work: Obj, release: str, group: str, manifests: Sequence[Obj], known: Sequence[Proven]) -> list[Action]:
    """Return the actions that note a release of a work as its newest proven one."""
    why = f"the cluster has proved release {release}"
    number = max((one.number for one in known), default=0) + 1
    before = next((one for one in known if one.release == release), None)
    kept = [one for one in known if one is not before]
    first: Action
    if before is not None:
        metadata = {"uid": uid_of(before.obj), "resourceVersion": resource_version(before.obj)}
        body = {"metadata": metadata, "revision": number}
        first = Patch(REVISION, namespace_of(before.obj), name_of(before.obj), body, why)
    else:
        first = Create(_revision(work, release, group, manifests, number), why)
    surplus = kept[MAX_PROVEN - 1 :]
    return [first, *(Delete.of(one.obj, f"{MAX_PROVEN} newer releases are proved") for one in surplus)]


def _revision(work: Obj, release: str, group: str, manifests: Sequence[Obj], number: int) -> Obj:
    owner = {"apiVersion": work["apiVersion"], "kind": work["kind"], "name": name_of(work), "uid": uid_of(work)}
    return {
        "apiVersion": REVISION.api_version,
        "kind": REVISION.kind,
        "metadata": {
            "name": f"{name_of(work)}-{release}",
            "namespace": namespace_of(work),
            "ownerReferences": [{**owner, "controller": True, "blockOwnerDeletion": False}],
        },
        "data": {"release": release, "groupRelease": group, "manifests": list(manifests)},
        "revision": number,
    }
