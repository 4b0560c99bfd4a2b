"""Explains ManifestWorkReplicaSets and FleetDisruptionBudgets: how far each cluster is, and what it waits for. Pure: by
the plan of the controller."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import replace

from syncline.base.cause import Cause
from syncline.base.clock import time_or_none
from syncline.explain.fleet.clusters import CLUSTERS, cluster_cause, explain_cluster
from syncline.explain.fleet.placements import explain_placement
from syncline.explain.fleet.works import explain_work
from syncline.explain.view import Found, View, one_line
from syncline.fleet.conditions import find_condition, is_true
from syncline.fleet.hub.budgets.observe import observe_fleet
from syncline.fleet.hub.placement.model import PLACEMENT_LABEL
from syncline.fleet.hub.registration.leases import AVAILABLE
from syncline.fleet.hub.replicasets.explaining import Explained, Next, Outlook, explained
from syncline.fleet.hub.replicasets.plan import ROLLED_OUT, SetObserved
from syncline.fleet.hub.replicasets.works import works_of_set
from syncline.kube.kinds.managedclusters import PLACEMENT, PLACEMENT_DECISION
from syncline.kube.kinds.manifestworks import MANIFEST_WORK, REPLICA_SET
from syncline.kube.kinds.syncline import BUDGET
from syncline.kube.objects import Obj, ObjectRef, dig, labels_of, name_of, namespace_of, ref_of
from syncline.kube.selectors import SelectorError, label_selector_from

SETS, BUDGETS = REPLICA_SET.group_kind, BUDGET.group_kind
WORKS, PLACEMENTS, DECISIONS = MANIFEST_WORK.group_kind, PLACEMENT.group_kind, PLACEMENT_DECISION.group_kind
MAX_SHOWN = 6
"""Clusters that a chain names; ``work explain`` lists all."""
GOES_ON = frozenset({Next.CREATE, Next.UPDATE, Next.DELETE, Next.RUN, Next.SOAK})
ORDER = (Next.FAILED, Next.RUN, Next.UPDATE, Next.CREATE, Next.SOAK, Next.WAIT, Next.STAY, Next.DELETE)


def outlook(view: View, obj: Obj) -> Explained:
    """Return what the next reconcile does to each cluster of a set."""
    cache, space = view.cluster, namespace_of(obj)
    for kind in (BUDGETS, WORKS, DECISIONS):
        cache.objects(kind)  # a cache that reads on demand then knows what may not be read
    names = sorted({str(one.get("name") or "") for one in dig(obj, "spec", "placementRefs") or ()})
    found = {name: cache.get(ObjectRef(*PLACEMENTS, space, name)) for name in names}
    decisions = tuple(one for one in cache.objects(DECISIONS, space) if labels_of(one).get(PLACEMENT_LABEL) in names)
    placements = {name: one for name, one in found.items() if one is not None}
    works = works_of_set(obj, cache.objects(WORKS))
    return explained(SetObserved(obj, works, placements, decisions, observe_fleet(cache)), view.now)


def explain_set(view: View, obj: Obj) -> Found:
    """Explain a ManifestWorkReplicaSet: what is wrong with it as a whole, then its clusters, the worst first."""
    made = outlook(view, obj)
    rows = sorted((one for one in made.clusters if one.next in ORDER), key=lambda one: ORDER.index(one.next))
    below = [Cause("set", "Stopped", one_line(text)) for text in made.problems]
    below += _empty_placements(view, obj)
    below += [_row(view, one) for one in rows[:MAX_SHOWN]]
    done = sum(one.next is Next.NOTHING for one in made.clusters)
    text = f"{done} of {len(made.clusters)} clusters are done"
    if made.waits:
        text += f"; {len(made.waits)} budgets hold clusters back" if len(made.waits) > 1 else "; a budget holds it back"
    stuck = bool(made.problems) or any(one.next is Next.FAILED for one in rows)
    stuck = stuck or (bool(rows) and not any(one.next in GOES_ON for one in rows))
    worse = any(cause.because for cause in below)
    state = "RolledOut" if not rows and not below else "Stuck" if stuck else "RollingOut"
    said = find_condition(dig(obj, "status", "conditions") or (), ROLLED_OUT) or {}
    since = time_or_none(made.waiting_since) or time_or_none(said.get("lastTransitionTime"))
    return Found(Cause(str(ref_of(obj)), state, text, since, because=tuple(below)), blocked=stuck or worse)


def _empty_placements(view: View, obj: Obj) -> list[Cause]:
    """Return the causes of Placements that select nothing."""
    found = []
    for one in dig(obj, "spec", "placementRefs") or ():
        placement = view.cluster.get(ObjectRef(*PLACEMENTS, namespace_of(obj), str(one.get("name") or "")))
        if placement is not None and not dig(placement, "status", "numberOfSelectedClusters"):
            found.append(explain_placement(view, placement).cause)
    return found


def _row(view: View, row: Outlook) -> Cause:
    """Return the cause of one cluster, down to its work where that is stuck."""
    cause = Cause(f"cluster {row.cluster}", row.next.value, one_line(row.why), until=row.until, next_action="")
    if row.budget:
        budget = view.cluster.get(ObjectRef(*BUDGETS, "", row.budget))
        held = explain_budget(view, budget) if budget is not None else None
        return replace(cause, because=(held.cause,)) if held is not None and held.blocked else cause
    work = view.cluster.get(ObjectRef(*WORKS, row.cluster, row.work)) if row.work else None
    if work is None or row.next not in (Next.FAILED, Next.RUN, Next.DELETE):
        return cause
    below = explain_work(view, work)
    return replace(cause, because=(below.cause,)) if below.blocked else cause


def _leaves_alone(view: View, row: Outlook) -> bool:
    """Return whether a deletion waits for an agent that does not answer."""
    return row.next is Next.DELETE and cluster_cause(view, row.cluster) is not None


def explain_budget(view: View, budget: Obj) -> Found:
    """Explain a FleetDisruptionBudget: how many clusters it permits, and who holds its places."""
    status = budget.get("status") or {}
    places = status.get("places") or ()
    below = tuple(
        Cause(
            f"cluster {one.get('cluster')}",
            "reserved",
            one_line(f"by {_holder(one)}: {one.get('reason') or 'a roll-out'}"),
            time_or_none(one.get("since")),
        )
        for one in places[:MAX_SHOWN]
    )
    unavailable, permitted = int(status.get("unavailable") or 0), int(status.get("permitted") or 0)
    text = f"{unavailable} of {permitted} permitted clusters are unavailable, of {status.get('selected') or 0} selected"
    full = unavailable >= permitted
    held = {str(one.get("cluster")) for one in places}
    away = [cause for cause in _away(view, budget, held) if full]
    fix = "get them back, or raise maxUnavailable" if away else ""
    since = time_or_none(dig(budget, "metadata", "creationTimestamp"))
    state = "Full" if full else "Permits"
    because = (*away[:MAX_SHOWN], *below)
    return Found(Cause(str(ref_of(budget)), state, text, since, next_action=fix, because=because), blocked=bool(away))


def _away(view: View, budget: Obj, held: Collection[str]) -> Iterator[Cause]:
    """Yield the causes of clusters that are unavailable without a roll-out."""
    try:
        selector = label_selector_from(dig(budget, "spec", "clusterSelector"))
    except SelectorError:
        return
    for one in view.cluster.objects(CLUSTERS):
        counts = dig(one, "spec", "hubAcceptsClient") and selector.matches(labels_of(one)) and name_of(one) not in held
        if counts and not is_true(dig(one, "status", "conditions") or (), AVAILABLE):
            yield explain_cluster(view, one).cause


def _holder(place: Obj) -> str:
    holder = place.get("holder") or {}
    space = f"{holder.get('namespace')}/" if holder.get("namespace") else ""
    return f"{holder.get('kind')} {space}{holder.get('name')}"
