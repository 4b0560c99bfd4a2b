"""The status of a Placement: its conditions, in upstream's words; pure.

Rules: ``newSatisfiedCondition`` and ``newMisconfiguredCondition`` of upstream (reference ocm-pull-model §4.5).
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from syncline.base.clock import format_time
from syncline.fleet.hub.placement.model import Code, Schedule, Status
from syncline.kube.objects import Obj, dig

SATISFIED, MISCONFIGURED = "PlacementSatisfied", "PlacementMisconfigured"


def satisfied(placement: Obj, schedule: Schedule, status: Status) -> tuple[bool, str, str]:
    """Return status, reason and message of PlacementSatisfied: the first row that applies."""
    named = ",".join(dig(placement, "spec", "clusterSets") or ())
    rows = (
        (
            not schedule.bound,
            "NoManagedClusterSetBindings",
            "No valid ManagedClusterSetBindings found in placement namespace",
        ),
        (
            not schedule.eligible,
            "NoIntersection",
            f"None of ManagedClusterSets [{named}] is bound to placement namespace",
        ),
        (
            not schedule.candidates,
            "AllManagedClusterSetsEmpty",
            f"All ManagedClusterSets [{','.join(schedule.eligible)}] have no member ManagedCluster",
        ),
        (status.code is Code.ERROR, "NotAllDecisionsScheduled", status.message),
        (
            not schedule.selected,
            "NoManagedClusterMatched",
            "No ManagedCluster matches any of the cluster predicate",
        ),
        (
            schedule.unscheduled != 0,
            "NotAllDecisionsScheduled",
            f"{schedule.unscheduled} cluster decisions unscheduled",
        ),
    )
    for applies, reason, message in rows:
        if applies:
            return False, reason, message
    return True, "AllDecisionsScheduled", "All cluster decisions scheduled"


def misconfigured(status: Status) -> tuple[bool, str, str]:
    """Return status, reason and message of PlacementMisconfigured."""
    if status.code is Code.MISCONFIGURED:
        return True, "Misconfigured", f"{status.plugin}:{status.message}"
    return False, "Succeedconfigured", "Placement configurations check pass"


def status_of(placement: Obj, schedule: Schedule, status: Status, groups: Sequence[Obj], now: datetime) -> Obj:
    """Return the whole status that a Placement shall have; fields of others stay."""
    old: Obj = placement.get("status") or {}
    conditions = list(old.get("conditions") or ())
    for kind, (truth, reason, message) in (
        (MISCONFIGURED, misconfigured(status)),
        (SATISFIED, satisfied(placement, schedule, status)),
    ):
        conditions = _with(conditions, kind, "True" if truth else "False", reason, message, now)
    return {
        **old,
        "numberOfSelectedClusters": len(schedule.selected),
        "decisionGroups": list(groups),
        "conditions": conditions,
    }


def _with(conditions: Sequence[Obj], kind: str, truth: str, reason: str, message: str, now: datetime) -> list[Obj]:
    """Replace or add one condition; its time is that of the last change of its truth."""
    before = next((one for one in conditions if one.get("type") == kind), None)
    since = before.get("lastTransitionTime") if before is not None and before.get("status") == truth else None
    new = {"type": kind, "status": truth, "reason": reason, "message": message}
    made = {**(before or {}), **new, "lastTransitionTime": since or format_time(now)}
    return [made if one is before else one for one in conditions] + ([made] if before is None else [])
