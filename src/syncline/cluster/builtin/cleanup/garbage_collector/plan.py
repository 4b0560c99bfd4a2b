"""Plan for an object whose owners are deleted, and for an owner whose dependents must be deleted or orphaned first.

The rules are those of Kubernetes' garbage collector. The cache may be stale, so before deleting an object for lack of
an owner, the server must confirm that the owner is deleted. Deletes have preconditions: an object that has lost its
owner reference meanwhile (an orphan) stays.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from syncline.cluster.builtin.actions import ConfirmAbsent
from syncline.cluster.builtin.cleanup.garbage_collector.observe import FOREGROUND, ORPHAN, Observed, Owner, OwnerState
from syncline.cluster.builtin.owners import set_owners
from syncline.control.plan import Delete, Emit, Patch, Plan
from syncline.kube.objects import (
    Obj,
    finalizers,
    gvk_of,
    is_terminating,
    name_of,
    namespace_of,
    owner_references,
    resource_version,
    uid_of,
)

COMPONENT = "garbage-collector-controller"


def plan(observed: Observed, now: datetime) -> Plan:
    """Handle the dependents of a terminating object; judge any other object by its owners."""
    held_by = finalizers(observed.obj)
    if is_terminating(observed.obj):
        if ORPHAN in held_by:
            return _orphan(observed)
        if FOREGROUND in held_by:
            return _wait_for_dependents(observed)
        return Plan(why="it is going already")
    return _judge(observed)


def _orphan(observed: Observed) -> Plan:
    uid = uid_of(observed.obj)
    freed = tuple(
        set_owners(each, [r for r in owner_references(each) if r.get("uid") != uid], "its owner goes without it")
        for each in observed.dependents
    )
    return Plan((freed, (_release(observed.obj, ORPHAN),)), why="dependents are orphaned, then the owner goes")


def _wait_for_dependents(observed: Observed) -> Plan:
    """Wait in foreground deletion until no blocking dependent is left. (The dependents delete themselves.)"""
    uid = uid_of(observed.obj)
    blocking = sum(_blocks(each, uid) for each in observed.dependents)
    if blocking:
        return Plan(why=f"{blocking} dependents block the deletion of {name_of(observed.obj)}")
    return Plan(((_release(observed.obj, FOREGROUND),),), why="no dependent blocks the deletion")


def _blocks(dependent: Obj, uid: str) -> bool:
    return any(r.get("uid") == uid and r.get("blockOwnerDeletion") for r in owner_references(dependent))


def _release(obj: Obj, finalizer: str) -> Patch:
    left = [each for each in finalizers(obj) if each != finalizer]
    metadata = {"uid": uid_of(obj), "resourceVersion": resource_version(obj), "finalizers": left or None}
    return Patch(gvk_of(obj), namespace_of(obj), name_of(obj), {"metadata": metadata}, "its dependents are settled")


def _judge(observed: Observed) -> Plan:
    states = [owner.state for owner in observed.owners]
    if OwnerState.UNKNOWN in states:
        return Plan(why="an owner cannot be looked up")
    gone = tuple(owner for owner in observed.owners if owner.state is OwnerState.ABSENT)
    waiting = tuple(owner for owner in observed.owners if owner.state is OwnerState.WAITING)
    confirm = tuple(
        ConfirmAbsent(o.target, str(o.reference.get("uid")), f"owner of {name_of(observed.obj)}") for o in gone
    )
    ahead = (confirm,) if confirm else ()
    if OwnerState.SOLID in states:
        if not gone and not waiting:
            return Plan(why="an owner stays")
        solid = [owner.reference for owner in observed.owners if owner.state is OwnerState.SOLID]
        return Plan((*ahead, (set_owners(observed.obj, solid, "the other owners are gone"),)), why="an owner stays")
    if not observed.owners:
        return Plan(why="it has no owner")
    if waiting and any(FOREGROUND in finalizers(each) for each in observed.dependents):
        freed = [reference | {"blockOwnerDeletion": False} for reference in owner_references(observed.obj)]
        if freed != owner_references(observed.obj):
            unblock = set_owners(observed.obj, freed, "it and its owner would wait for one another")
            return Plan(((unblock,),), why="owners and dependents form a circle")
    policy = _policy(observed, bool(waiting))
    delete = Delete.of(observed.obj, "no owner is left", propagation=policy)
    exactly = replace(delete, resource_version=resource_version(observed.obj))
    report = tuple(_misplaced(observed.obj, owner) for owner in gone if owner.elsewhere)
    return Plan((*ahead, *((report,) if report else ()), (exactly,)), why="no owner is left")


def _misplaced(obj: Obj, owner: Owner) -> Emit:
    named = owner.reference
    identity = (
        f"[{named.get('apiVersion')}/{named.get('kind')}, namespace: {namespace_of(obj)}, "
        f"name: {named.get('name')}, uid: {named.get('uid')}]"
    )
    text = f'ownerRef {identity} does not exist in namespace "{namespace_of(obj)}"'
    return Emit(obj, "OwnerRefInvalidNamespace", text, COMPONENT, warning=True)


def _policy(observed: Observed, waited_for: bool) -> str:
    """Return the propagation policy; if an owner waits for this object, it waits for its dependents too."""
    if waited_for and observed.dependents:
        return "Foreground"
    if ORPHAN in finalizers(observed.obj):
        return "Orphan"
    return "Foreground" if FOREGROUND in finalizers(observed.obj) else "Background"
