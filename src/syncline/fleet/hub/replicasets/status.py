"""The counts of a ManifestWorkReplicaSet's status, and its condition ManifestworkApplied; pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from syncline.fleet.conditions import condition, is_true
from syncline.kube.objects import Obj, dig, is_terminating


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
