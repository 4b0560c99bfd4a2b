"""Schedules one Placement: candidates, filters, scores, selection. :func:`schedule`, pure.

Rules: ``pkg/placement/controllers/scheduling/{schedule,helpers}.go`` of upstream (reference ocm-pull-model §4.1).
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from syncline.fleet.hub.placement import selectors, tolerations
from syncline.fleet.hub.placement.memory import Memory
from syncline.fleet.hub.placement.model import SUCCESS, Cluster, Filtered, Hub, Misconfigured, Prioritized, Schedule
from syncline.fleet.hub.placement.prioritizers import prioritizers_of, scored
from syncline.fleet.hub.placement.selectors import PREDICATE
from syncline.fleet.hub.placement.spreading import constraints_of, spread
from syncline.fleet.hub.placement.tolerations import TAINT_TOLERATION
from syncline.fleet.hub.sets import valid_bindings
from syncline.kube.objects import Obj, dig, ref_of


def eligible_sets(placement: Obj, bound: Iterable[str]) -> tuple[str, ...]:
    """Return the sets that a Placement selects from: those bound to its namespace, of these the ones that it names."""
    named = dig(placement, "spec", "clusterSets") or ()
    return tuple(sorted(set(bound) & set(named)) if named else sorted(bound))


def schedule(placement: Obj, hub: Hub, now: datetime, memory: Memory | None = None) -> Schedule:
    """Schedule a Placement. Raises :class:`~syncline.fleet.hub.sets.SetError` if a set that it selects from is invalid.

    ``memory`` keeps what was found before; the result is the same without it.
    """
    memory = memory or Memory()
    bound = valid_bindings(hub.bindings, hub.sets)
    eligible = eligible_sets(placement, bound)
    candidates = memory.candidates(hub, eligible)
    filters: list[Filtered] = []
    prioritized: list[Prioritized] = []
    try:
        left = selectors.passing(placement, candidates, hub.scores, memory.verdicts(ref_of(placement)))
        filters.append(Filtered(PREDICATE, left))
        left = tolerations.passing(placement, left, hub.selected_before, now)
        filters.append(Filtered(f"{PREDICATE},{TAINT_TOLERATION}", left))
        status = SUCCESS
        for prioritizer in prioritizers_of(placement):
            made, warning = scored(prioritizer, left, hub, now)
            prioritized.append(made)
            status = warning if warning.code else status
    except Misconfigured as error:
        return Schedule(tuple(bound), eligible, candidates, tuple(filters), tuple(prioritized), status=error.status)
    totals = _totals(left, prioritized)
    ranked = sorted(left, key=lambda one: (-totals[one.name], one.name))
    wanted = dig(placement, "spec", "numberOfClusters")
    most = len(ranked) if wanted is None else max(int(wanted), 0)
    selected, spread_out = spread(constraints_of(placement), ranked, min(most, len(ranked)))
    return Schedule(
        bound=tuple(bound),
        eligible=eligible,
        candidates=candidates,
        filters=tuple(filters),
        prioritizers=tuple(prioritized),
        totals=totals,
        selected=selected,
        unscheduled=0 if wanted is None else int(wanted) - len(selected),
        status=status,
        requeue_at=_requeue_at(placement, hub, now),
        spread_out=spread_out,
    )


def _totals(clusters: Iterable[Cluster], prioritized: Iterable[Prioritized]) -> dict[str, int]:
    totals = {one.name: 0 for one in clusters}
    for each in prioritized:
        for name, score in each.scores.items():
            totals[name] += score * each.weight
    return totals


def _requeue_at(placement: Obj, hub: Hub, now: datetime) -> datetime | None:
    """Return when a toleration of a cluster that is in the decisions now ends: also of one that is left out."""
    before = (hub.clusters[name] for name in hub.selected_before if name in hub.clusters)
    return tolerations.ends_at(placement, before, now)
