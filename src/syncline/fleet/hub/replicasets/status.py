"""The counts of a ManifestWorkReplicaSet's status, and its condition ManifestworkApplied; pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from syncline.fleet.conditions import condition, find_condition, is_true
from syncline.fleet.hub.budgets.reserve import Wait
from syncline.kube.objects import Obj, dig, is_terminating

WAITING: Final = "WaitingForBudget"
"""Condition of a set, which upstream does not have: clusters wait for a place in a FleetDisruptionBudget."""
MAX_MESSAGE: Final = 4_096


@dataclass(frozen=True, slots=True)
class Counts:
    """How many works have each condition."""

    applied: int = 0
    available: int = 0
    progressing: int = 0
    degraded: int = 0

    def __add__(self, other: Counts) -> Counts:
        return Counts(
            self.applied + other.applied,
            self.available + other.available,
            self.progressing + other.progressing,
            self.degraded + other.degraded,
        )


def count_works(works: Iterable[Obj]) -> Counts:
    """Count the works that are not being deleted; the caller passes those that are as the template says."""
    listed = [dig(work, "status", "conditions") or () for work in works if not is_terminating(work)]
    found = (
        sum(is_true(each, kind) for each in listed) for kind in ("Applied", "Available", "Progressing", "Degraded")
    )
    return Counts(*found)


def summary(total: int, counts: Counts) -> Obj:
    """Return a summary in upstream's fields; it leaves ``desiredTotal`` and ``updated`` at 0."""
    return {
        "total": total,
        "applied": counts.applied,
        "available": counts.available,
        "progressing": counts.progressing,
        "degraded": counts.degraded,
        "desiredTotal": 0,
        "updated": 0,
    }


def applied_condition(kind: str, total: int, counts: Counts) -> Obj:
    """Return the condition, without a time: True when all works are available, and none progresses or is degraded."""
    if not total:
        return condition(kind, "False", "PlacementDecisionEmpty")
    if counts.available == total and not counts.progressing and not counts.degraded:
        return condition(kind, "True", "AsExpected")
    return condition(kind, "False", "Processing" if counts.progressing and not counts.degraded else "NotAsExpected")


def waiting_condition(status: Obj, waits: Sequence[Wait]) -> tuple[Obj, ...]:
    """Return the condition, without a time; none for a set that never waited."""
    if waits:
        text = "; ".join(one.sentence() for one in waits)[:MAX_MESSAGE]
        reason = "NoPlaceFree" if any(one.budget for one in waits) else "BudgetsUnknown"
        return (condition(WAITING, "True", reason, text),)
    if find_condition(status.get("conditions") or (), WAITING) is None:
        return ()
    return (condition(WAITING, "False", "PlacesReserved", "No cluster waits for a FleetDisruptionBudget"),)
