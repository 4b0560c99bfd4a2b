"""Why a Placement selects a cluster, or does not: filter by filter, score by score; pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from syncline.fleet.hub.placement.model import Hub, Misconfigured, Schedule
from syncline.fleet.hub.placement.selectors import PREDICATE, refusals
from syncline.fleet.hub.placement.tolerations import TAINT_TOLERATION, tolerated, tolerations_of
from syncline.kube.objects import Obj, dig


@dataclass(frozen=True, slots=True)
class Explained:
    """The outcome for one cluster. ``by``: what decided (a filter, ``Score``, …), empty if it is selected; ``why``:
    sentences; ``scores``: name, weight and score of each prioritizer."""

    cluster: str
    selected: bool
    by: str = ""
    why: tuple[str, ...] = ()
    scores: tuple[tuple[str, int, int], ...] = ()
    total: int | None = None


def explained(placement: Obj, hub: Hub, found: Schedule, now: datetime) -> list[Explained]:
    """Return the outcome for every cluster of the hub: selected ones in their order, then the others by name."""
    order = {one.name: place for place, one in enumerate(found.selected)}
    by = dict.fromkeys(hub.clusters, "ClusterSets") | {one.name: "Score" for one in found.candidates}
    left = {one.name for one in found.candidates}
    for each in found.filters:
        passed = {one.name for one in each.clusters}
        by.update(dict.fromkeys(left - passed, each.name.rpartition(",")[2]))
        left = passed
    by.update(dict.fromkeys(order, ""))
    made = [_explained(placement, hub, found, now, name, which) for name, which in by.items()]
    return sorted(made, key=lambda one: (order.get(one.cluster, len(order)), one.cluster))


def _explained(placement: Obj, hub: Hub, found: Schedule, now: datetime, name: str, by: str) -> Explained:
    total = found.totals.get(name)
    scores = tuple((one.name, one.weight, one.scores.get(name, 0)) for one in found.prioritizers)
    if not by:
        return Explained(name, True, "", tuple(_reasons_to_stay(placement, hub, now, name)), scores, total)
    if by == "ClusterSets":
        return Explained(name, False, by, (_no_candidate(hub, found, name),))
    if by in (PREDICATE, TAINT_TOLERATION):
        return Explained(name, False, by, tuple(_refused(placement, hub, now, name, by)))
    if found.status.failed:
        return Explained(name, False, found.status.plugin or "Placement", (f"misconfigured: {found.status.message}",))
    if name in found.spread_out:
        return Explained(name, False, "SpreadPolicy", (found.spread_out[name],), scores, total)
    wanted = dig(placement, "spec", "numberOfClusters")
    why = f"{len(found.selected)} of {wanted} wanted clusters come before it, by score and name"
    return Explained(name, False, by, (why,), scores, total)


def _no_candidate(hub: Hub, found: Schedule, name: str) -> str:
    if hub.clusters[name].terminating:
        return "it is being deleted"
    if not found.bound:
        return "no cluster set is bound to the namespace of the Placement"
    if not found.eligible:
        return f"none of the sets that the Placement names is bound; bound are {', '.join(found.bound)}"
    return f"it is a member of none of the sets {', '.join(found.eligible)}"


def _refused(placement: Obj, hub: Hub, now: datetime, name: str, filter_name: str) -> Iterator[str]:
    cluster = hub.clusters[name]
    if filter_name == PREDICATE:
        yield from refusals(placement, cluster, hub.scores)
    elif filter_name == TAINT_TOLERATION:
        before = name in hub.selected_before
        yield tolerated(cluster, tolerations_of(placement), now, selected=before).why


def _reasons_to_stay(placement: Obj, hub: Hub, now: datetime, name: str) -> Iterator[str]:
    """Say until when a selected cluster with taints is tolerated."""
    try:
        until = tolerated(hub.clusters[name], tolerations_of(placement), now, selected=True).until
    except Misconfigured:
        return
    if until is not None:
        yield f"its taint is tolerated until {until:%Y-%m-%dT%H:%M:%SZ}"
