"""Explains Placements: what leaves them without clusters, and what to do. Pure: by the functions of the hub."""

from __future__ import annotations

from collections import Counter

from syncline.assembly.inspection.fleet import PlacementReport, placement_report, reason_of
from syncline.base.cause import Cause
from syncline.base.clock import time_or_none
from syncline.control.cache import Cache
from syncline.explain.view import Found, View, one_line
from syncline.fleet.conditions import find_condition
from syncline.fleet.hub.placement.status import MISCONFIGURED, SATISFIED, satisfied
from syncline.kube.kinds.managedclusters import PLACEMENT
from syncline.kube.objects import Obj, dig, name_of, namespace_of, ref_of

MAX_SHOWN = 5
FIXES = {
    "NoManagedClusterSetBindings": "bind a set to the namespace: create a ManagedClusterSetBinding in {namespace}",
    "NoIntersection": "bind the set that it names to {namespace}, or name one that is bound",
    "AllManagedClusterSetsEmpty": "put clusters into the set: kubectl label managedcluster NAME "
    "cluster.open-cluster-management.io/clusterset=SET",
    "NoManagedClusterMatched": "see each cluster: syncline placement explain {name} -n {namespace}",
    "NotAllDecisionsScheduled": "see each cluster: syncline placement explain {name} -n {namespace}",
}
PLACEMENTS = PLACEMENT.group_kind


def explain_placement(view: View, placement: Obj) -> Found:
    """Explain a Placement: misconfigured, without clusters, with fewer than asked for, or satisfied."""
    cache = view.cluster
    assert isinstance(cache, Cache), "explanations read caches"
    report = placement_report(cache, ref_of(placement), view.now)
    if report is None or report.found is None:
        text = report.plan.why if report is not None else "it was deleted a moment ago"
        return Found(_cause(placement, "NotScheduled", text), blocked=not (report and report.frozen))
    if report.plan.status_found.failed:
        text = report.plan.status_found.message
        fix = "correct its spec"
        return Found(_cause(placement, "Misconfigured", text, of=MISCONFIGURED, fix=fix), blocked=True)
    truth, reason, message = satisfied(placement, report.found, report.plan.status_found)
    if report.before != report.selected and not report.frozen:
        text = "the hub has not written its decisions yet"
        fix = "see that the hub's controllers run: syncline controller --roles hub"
        return Found(_cause(placement, "Waiting", text, fix=fix), blocked=True)
    if truth:
        text = f"{message}; {len(report.selected)} selected" + ("; frozen by its annotation" if report.frozen else "")
        return Found(_cause(placement, "Satisfied", text, of=SATISFIED), blocked=False)
    fix = FIXES.get(reason, "").format(name=name_of(placement), namespace=namespace_of(placement))
    return Found(_cause(placement, reason, message, *_left_out(report), of=SATISFIED, fix=fix), blocked=True)


def _left_out(report: PlacementReport) -> tuple[Cause, ...]:
    """Return why clusters are not selected: one cause for each reason, the most frequent first."""
    named: dict[str, list[str]] = {}
    for one in report.clusters:
        if not one.selected:
            named.setdefault(reason_of(one), []).append(one.cluster)
    counts = Counter({why: len(names) for why, names in named.items()})
    return tuple(
        Cause(f"{count} clusters" if count > 1 else f"cluster {named[why][0]}", "left out", one_line(why))
        for why, count in counts.most_common(MAX_SHOWN)
    )


def _cause(placement: Obj, state: str, message: str, *because: Cause, of: str = "", fix: str = "") -> Cause:
    said = find_condition(dig(placement, "status", "conditions") or (), of) or {}
    since = time_or_none(said.get("lastTransitionTime")) or time_or_none(
        dig(placement, "metadata", "creationTimestamp")
    )
    return Cause(str(ref_of(placement)), state, one_line(message), since, next_action=fix, because=because)
