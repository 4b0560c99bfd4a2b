"""Deletes completed ManifestWorks when their time after completion has passed: ``ttlSecondsAfterFinished``.

Rules: upstream's ``manifestworkgarbagecollection``. The works of a ManifestWorkReplicaSet are its own to delete. Unlike
upstream, completion of an older generation does not count: what was written since has not been applied yet.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

from syncline.base.clock import time_or_none
from syncline.control.cache import Snapshot
from syncline.control.controller import Controller, differ
from syncline.control.plan import Delete, Plan, Requeue, Stalled
from syncline.fleet.conditions import find_condition
from syncline.fleet.hub.replicasets.works import SET_LABEL
from syncline.kube.kinds.manifestworks import MANIFEST_WORK
from syncline.kube.objects import (
    Obj,
    ObjectRef,
    dig,
    generation,
    is_terminating,
    labels_of,
    name_of,
    namespace_of,
    resource_version,
    uid_of,
)

CONTROLLER: Final = "completed-manifest-work"
"""Name of the controller."""
LONGEST_S: Final = 86_400
"""A work is looked at again after this time at the latest."""
_MOST: Final = 10**10
"""Seconds that still make a date."""


def plan_work(work: Obj, now: datetime) -> Plan:
    """Plan one reconcile of a work that has ``deleteOption.ttlSecondsAfterFinished``."""
    ttl = int(dig(work, "spec", "deleteOption", "ttlSecondsAfterFinished") or 0)
    complete = find_condition(dig(work, "status", "conditions") or (), "Complete") or {}
    about = complete.get("observedGeneration")
    if complete.get("status") != "True" or about not in (None, 0, generation(work)):
        return Plan(why="the work is not complete")
    left = 0.0
    if ttl > 0:
        since = time_or_none(complete.get("lastTransitionTime"))
        if since is None:
            why = "the condition Complete has no lastTransitionTime that can be read"
            return Plan((), Stalled(why, "let the agent of the cluster report the work again"), why)
        left = (since + timedelta(seconds=ttl) - now).total_seconds() if ttl < _MOST else float(LONGEST_S)
    if left > 0:
        why = f"the work is complete; it is deleted {ttl} seconds after that"
        return Plan((), Requeue(min(left, LONGEST_S), why, background=True), why)
    why = f"the work has been complete for {ttl} seconds or more (ttlSecondsAfterFinished)"
    return Plan(((_deletion(work, why),),), why=why)


def _deletion(work: Obj, why: str) -> Delete:
    """Return the deletion of the work as it was seen."""
    version = resource_version(work)
    return Delete(MANIFEST_WORK, namespace_of(work), name_of(work), why, uid_of(work), version)


def completed_work_controller() -> Controller[Obj]:
    """Return the controller that deletes completed works."""

    def observe(cache: Snapshot, ref: ObjectRef) -> Obj | None:
        work = cache.get(ref)
        if work is None or is_terminating(work) or SET_LABEL in labels_of(work):
            return None
        return None if dig(work, "spec", "deleteOption", "ttlSecondsAfterFinished") is None else work

    return Controller(
        name=CONTROLLER,
        kind=MANIFEST_WORK.group_kind,
        predicate=differ(generation, labels_of, lambda one: dig(one, "status", "conditions")),
        observe=observe,
        plan=plan_work,
    )
