"""Plans the end of a work that is being deleted on the hub; pure.

Its AppliedManifestWork is deleted, whose own finalizer removes the objects (``eviction.py``); the work keeps its
finalizer until that is gone. Objects that the work does not own lose its reference before. Rules:
``manifestwork_finalize_controller.go`` of upstream (reference ocm-pull-model §6.8).
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Final

from syncline.apply.actions import ReadObject
from syncline.apply.outcome import Outcome
from syncline.base.action import Action
from syncline.control.plan import Delete, Patch, Plan, Requeue, Result, set_status
from syncline.fleet.conditions import condition, with_condition
from syncline.fleet.spoke.link import SPOKE
from syncline.fleet.spoke.work.manifests.actions import Drop
from syncline.fleet.spoke.work.ownership import owned_by_work, reference_to
from syncline.kube.kinds.manifestworks import APPLIED_WORK, WORK_FINALIZER
from syncline.kube.objects import (
    Obj,
    ObjectRef,
    dig,
    finalizers,
    generation,
    gvk_of,
    is_terminating,
    name_of,
    namespace_of,
    resource_version,
)

if TYPE_CHECKING:
    from syncline.fleet.spoke.work.observe import WorkObserved

LOOK_AGAIN_S: Final = 30.0
"""How long a work waits for its objects to go, if nothing announces that they went."""


def plan_removal(observed: WorkObserved, now: datetime) -> Plan:
    """Return how a terminating work goes on."""
    work, applied = observed.work, observed.applied
    if WORK_FINALIZER not in finalizers(work):
        return Plan(why="nothing of the work is left here")
    if observed.problem:
        return Plan(outcome=Requeue(LOOK_AGAIN_S, observed.problem, background=True), why=observed.problem)
    if applied is None:
        why = "the finalizer goes once the inventory is gone"
        ref = ObjectRef(APPLIED_WORK.group, APPLIED_WORK.kind, "", observed.applied_name)
        return Plan(((ReadObject(ref, APPLIED_WORK, why, cluster=SPOKE),),), Requeue(1.0, why), why)
    waiting = Requeue(LOOK_AGAIN_S, "objects of the work are being deleted", background=True)
    if is_terminating(applied):
        return Plan(outcome=waiting, why=waiting.why)
    why = "the work is being deleted"
    releases = tuple(_releases(work, applied, why))
    deletion = replace(Delete.of(applied, why), cluster=SPOKE)
    steps: tuple[tuple[Action, ...], ...] = (_deleting(work, now), releases, (deletion,))
    return Plan(tuple(step for step in steps if step), waiting, why)


def _deleting(work: Obj, now: datetime) -> tuple[Action, ...]:
    text = "ManifestWork is being deleted"
    deleting = condition("Deleting", "True", "WorkDeleting", text, generation(work))
    conditions = with_condition(dig(work, "status", "conditions") or [], deleting, now)
    return set_status(work, {**(work.get("status") or {}), "conditions": conditions}, "report to the hub")


def _releases(work: Obj, applied: Obj, why: str) -> list[Drop]:
    """Return what takes the work's reference off the objects that survive it."""
    option = dig(work, "spec", "deleteOption")
    resources = dig(applied, "status", "appliedResources") or ()
    kept = (one for one in resources if not owned_by_work(one, option))
    reference = reference_to(applied)
    return [Drop(one, reference, f"{why}, and this object stays", orphan=True, cluster=SPOKE) for one in kept]


def settle_removal(observed: WorkObserved, results: tuple[Result, ...]) -> tuple[WorkObserved, Plan] | None:
    """Return the removal of the finalizer once the cluster has said that the inventory is gone; None otherwise."""
    gone = any(isinstance(one.value, Outcome) and one.value.not_found for one in results)
    if not gone:
        return None
    work, why = observed.work, "nothing of the work is left here"
    left = [one for one in finalizers(work) if one != WORK_FINALIZER]
    body = {"metadata": {"finalizers": left, "resourceVersion": resource_version(work)}}
    return observed, Plan(((Patch(gvk_of(work), namespace_of(work), name_of(work), body, why),),), why=why)
