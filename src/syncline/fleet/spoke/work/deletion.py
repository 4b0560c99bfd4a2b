"""Deletes what a work has applied: its inventory, and what left it; pure.

The inventory is ``status.appliedResources`` of the AppliedManifestWork: on the spoke, so that nothing is lost while the
hub is away. Only an object with the recorded uid and with our reference is deleted; one that was about to be created
has no uid yet. Rules: ``pkg/work/helper`` of upstream (reference ocm-pull-model §6.8).
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from syncline.base.action import Action
from syncline.control.plan import Delete
from syncline.fleet.spoke.work.ownership import Ownership, has_other_works, owner_patch
from syncline.kube.kinds.manifestworks import APPLIED_FINALIZER, APPLIED_WORK
from syncline.kube.objects import Obj, is_terminating, owner_references, uid_of

Identity = tuple[str, str, str, str]


@dataclass(frozen=True, slots=True)
class Deletion:
    """``pending`` are the resources that still exist, and stay in the inventory until they are gone."""

    actions: tuple[Action, ...] = ()
    pending: tuple[Obj, ...] = ()


def delete_applied(
    resources: Iterable[Obj], live: Callable[[Obj], Obj | None], reference: Obj, reason: str
) -> Deletion:
    """Return how recorded resources go. ``live`` returns the object of one, None only if it does not exist: for one
    that cannot be read, do not ask. ``reference``: the owner reference of the work."""
    actions: list[Action] = []
    pending = []
    for resource in resources:
        obj = live(resource)
        if obj is None or reference["uid"] not in {one.get("uid") for one in owner_references(obj)}:
            continue
        if has_other_works(obj, reference):
            left = owner_patch(obj, Ownership(reference, owned=False), f"{reason}; another work owns it, too")
            actions += [left] if left else []
        elif (resource.get("uid") or uid_of(obj)) == uid_of(obj):
            pending.append(resource)
            if not is_terminating(obj):
                actions.append(Delete.of(obj, reason, propagation="Background"))
    return Deletion(tuple(actions), tuple(pending))


def identity(resource: Obj) -> Identity:
    """Return group, resource, namespace and name: all versions of a resource are one object."""
    group, plural, namespace, name = (
        str(resource.get(part) or "") for part in ("group", "resource", "namespace", "name")
    )
    return group, plural, namespace, name


def untracked(recorded: Iterable[Obj], applied: Iterable[Obj]) -> list[Obj]:
    """Return the recorded resources that the work does not apply any more, which are to be deleted."""
    current = {identity(one) for one in applied}
    return [one for one in recorded if identity(one) not in current]


def next_inventory(applied: Sequence[Obj], pending: Iterable[Obj]) -> list[Obj]:
    """Return ``status.appliedResources``: what is applied now, then what is still being deleted, sorted."""
    found = {identity(one): one for one in (*pending, *applied)}
    return [found[key] for key in sorted(found)]


def hub_hash(url: str) -> str:
    """Return the hash of a hub's API server, which keeps works of several hubs apart."""
    return hashlib.sha256(url.encode()).hexdigest()


def applied_work(hub: str, agent: str, work: str) -> Obj:
    """Return the AppliedManifestWork of a work. ``hub``: :func:`hub_hash`; ``agent``: id of the agent."""
    return {
        "apiVersion": f"{APPLIED_WORK.group}/{APPLIED_WORK.version}",
        "kind": APPLIED_WORK.kind,
        "metadata": {"name": f"{hub}-{work}", "finalizers": [APPLIED_FINALIZER]},
        "spec": {"hubHash": hub, "agentID": agent, "manifestWorkName": work},
    }
