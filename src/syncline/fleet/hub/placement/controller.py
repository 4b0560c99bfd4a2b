"""The placement controller: connects the planner with the cache and the watches; decides nothing."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final

from syncline.control.cache import Snapshot
from syncline.control.controller import Controller, Watch, differ, spec_differs
from syncline.control.plan import Plan
from syncline.fleet.hub.placement.memory import Memory
from syncline.fleet.hub.placement.model import DISABLED
from syncline.fleet.hub.placement.observe import (
    BINDINGS,
    CLUSTERS,
    DECISIONS,
    PLACEMENTS,
    SCORES,
    SETS,
    ClusterChange,
    Reading,
    placement_of_decision,
    placements_of_binding,
    placements_of_score,
    placements_of_set,
)
from syncline.fleet.hub.placement.plan import Observed, plan_placement
from syncline.fleet.hub.placement.spreading import SPREAD
from syncline.kube.objects import Obj, ObjectRef, annotations_of, dig, is_terminating, labels_of, uid_of

CONTROLLER: Final = "placement"
"""Name of the controller."""
MOST_IN_PLACE: Final = 500
"""Clusters up to which a Placement is planned on the event loop; with more, in a thread."""


def _read(placement: Obj) -> tuple[Any, ...]:
    """Return the parts of a Placement that count: not its status, which is written here."""
    notes = annotations_of(placement)
    return placement.get("spec"), uid_of(placement), is_terminating(placement), notes.get(DISABLED), notes.get(SPREAD)


def _content(decision: Obj) -> tuple[Any, ...]:
    return labels_of(decision), dig(decision, "status", "decisions")


def _scores(score: Obj) -> tuple[Any, ...]:
    return dig(score, "status", "scores"), dig(score, "status", "validUntil")


def placement_controller() -> Controller[Observed]:
    """Return the controller of Placements: it selects clusters and writes PlacementDecisions."""
    reading, memory, change = Reading(), Memory(), ClusterChange()

    def observe(cache: Snapshot, ref: ObjectRef) -> Observed | None:
        found = reading.observe(cache, ref)
        if found is None:
            memory.forget(ref)
        return found

    def plan(observed: Observed, now: datetime) -> Plan:
        return plan_placement(observed, now, memory)

    return Controller(
        name=CONTROLLER,
        kind=PLACEMENTS,
        predicate=differ(_read),
        watches=(
            Watch(CLUSTERS, change.keys, change.matters),
            Watch(SETS, placements_of_set, spec_differs),
            Watch(BINDINGS, placements_of_binding, spec_differs),
            Watch(DECISIONS, placement_of_decision, differ(_content)),
            Watch(SCORES, placements_of_score, differ(_scores)),
        ),
        beside=lambda observed: (
            observed.placement["metadata"]["namespace"] if len(observed.hub.clusters) > MOST_IN_PLACE else None
        ),
        observe=observe,
        plan=plan,
    )
