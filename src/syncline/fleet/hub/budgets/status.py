"""The status of a FleetDisruptionBudget: what it counts, and the places that nothing holds any more; pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime

from syncline.fleet.conditions import condition, with_conditions
from syncline.fleet.hub.budgets.model import Budget, Holder, Member, Place
from syncline.fleet.hub.budgets.reserve import Ledger
from syncline.kube.objects import Obj, generation

IN_FORCE, EXHAUSTED = "InForce", "Exhausted"


def outdated(place: Place, budget: Budget, clusters: Mapping[str, Member], exists: Callable[[Holder], bool]) -> bool:
    """Return whether nothing holds a place any more: the budget does not select its cluster, or its holder is gone."""
    cluster = clusters.get(place.cluster)
    return cluster is None or not budget.selects(cluster) or not exists(place.holder)


def status_of(obj: Obj, clusters: Mapping[str, Member], exists: Callable[[Holder], bool], now: datetime) -> Obj:
    """Return the status that a budget shall have. ``exists``: False only for a holder that is known to be gone."""
    budget = Budget.of(obj)
    kept = [
        place
        for place in budget.places
        if not outdated(place, budget, clusters, exists) or now < (place.settled_at or now)
    ]
    before: Obj = obj.get("status") or {}
    pruned = {**obj, "status": {**before, "places": [one.written() for one in kept]}}
    ledger = Ledger.of(pruned, clusters.values())
    conditions = with_conditions(before.get("conditions") or (), (_in_force(ledger), _exhausted(ledger)), now)
    about = generation(obj)
    return {
        **pruned["status"],
        "observedGeneration": about,
        "selected": ledger.selected,
        "permitted": ledger.permitted,
        "unavailable": len(ledger.counted),
        "conditions": [{**one, "observedGeneration": about} for one in conditions],
    }


def _in_force(ledger: Ledger) -> Obj:
    budget, selected = ledger.budget, ledger.selected
    if budget.problem:
        return condition(IN_FORCE, "False", "Malformed", budget.problem)
    if not selected:
        text = "no accepted ManagedCluster has the labels of spec.clusterSelector, so the budget bounds nothing"
        return condition(IN_FORCE, "False", "SelectsNothing", text)
    if not ledger.permitted:
        return condition(IN_FORCE, "True", "PermitsNothing", _permits_nothing(budget, selected))
    text = f"{budget.bound(selected)} of the {selected} selected clusters may be unavailable at once"
    return condition(IN_FORCE, "True", "Counted", text)


def _permits_nothing(budget: Budget, selected: int) -> str:
    text = f"maxUnavailable {budget.most} of {selected} selected clusters is 0: no roll-out begins in any of them"
    if isinstance(budget.most, str) and budget.most != "0%":
        text += f"; percentages are rounded down, {-(-100 // selected)}% or a number permits one"
    return text


def _exhausted(ledger: Ledger) -> Obj:
    free = ledger.permitted - len(ledger.counted)
    if free > 0:
        return condition(EXHAUSTED, "False", "PlacesFree", f"{free} of {ledger.permitted} places are free")
    return condition(EXHAUSTED, "True", "NoPlaceFree", ledger.why_full())
