"""The controller of FleetDisruptionBudgets: it counts, and takes back places that nothing holds any more."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from syncline.control.cache import Snapshot
from syncline.control.controller import Controller, Watch, comes_or_goes, differ
from syncline.control.plan import Done, Plan, Requeue, Retry, set_status
from syncline.fleet.hub.budgets.model import Budget, Fleet, Holder, Member
from syncline.fleet.hub.budgets.observe import BUDGETS, CLUSTERS, observe_fleet
from syncline.fleet.hub.budgets.status import outdated, status_of
from syncline.kube.kinds.fleetrollouts import ROLLOUT
from syncline.kube.kinds.managedaddons import CLUSTER_ADDON
from syncline.kube.kinds.manifestworks import REPLICA_SET
from syncline.kube.objects import GroupKind, Obj, ObjectRef, dig, generation, ref_of, uid_of

CONTROLLER: Final = "fleet-disruption-budget"
"""Name of the controller."""
HOLDERS: Final = (REPLICA_SET.group_kind, CLUSTER_ADDON.group_kind, ROLLOUT.group_kind)
"""Kinds whose roll-outs hold places. A place of any other kind stays until a person removes it."""


@dataclass(frozen=True, slots=True)
class Observed:
    """A budget, the fleet, and the holders of its places that are known to be gone."""

    budget: Obj
    fleet: Fleet
    gone: frozenset[Holder]


def plan_budget(observed: Observed, now: datetime) -> Plan:
    """Plan one reconcile of a budget: its status."""
    if observed.fleet.unknown:
        return Plan((), Retry(observed.fleet.unknown), observed.fleet.unknown)
    clusters = observed.fleet.clusters

    def exists(holder: Holder) -> bool:
        return holder not in observed.gone

    status = status_of(observed.budget, clusters, exists, now)
    budget = Budget.of({**observed.budget, "status": status})
    ends = [place.settled_at for place in budget.places if outdated(place, budget, clusters, exists)]
    young = [(at - now).total_seconds() for at in ends if at is not None]
    outcome = Requeue(min(young), "an outdated place is not old enough to be taken back") if young else Done()
    why = "clusters and places are counted"
    return Plan((), outcome, why, set_status(observed.budget, status, "what it counts and who holds its places"))


def budget_controller(holders: tuple[GroupKind, ...] = HOLDERS) -> Controller[Observed]:
    """Return the controller. ``holders``: the kinds whose objects it looks for."""

    def observe(cache: Snapshot, ref: ObjectRef) -> Observed | None:
        budget = cache.get(ref)
        if budget is None:
            return None
        listed = {place.holder for place in Budget.of(budget).places}
        return Observed(budget, observe_fleet(cache), frozenset(one for one in listed if _is_gone(cache, one)))

    def _is_gone(cache: Snapshot, holder: Holder) -> bool:
        kind = holder.ref.group_kind
        if kind not in holders or not cache.follows(kind) or cache.unread(holder.ref):
            return False  # what is not known to be gone keeps its place
        found = cache.get(holder.ref)
        return found is None or uid_of(found) != holder.uid

    return Controller(
        name=CONTROLLER,
        kind=BUDGETS,
        predicate=differ(generation, lambda one: dig(one, "status", "places")),
        watches=(
            Watch(CLUSTERS, _of_cluster, differ(Member.of)),
            *(Watch(kind, _held_by, comes_or_goes) for kind in holders),
        ),
        observe=observe,
        plan=plan_budget,
    )


def _of_cluster(_cluster: Obj, cache: Snapshot) -> Iterable[ObjectRef]:
    return [ref_of(one) for one in cache.objects(BUDGETS)]


def _held_by(holder: Obj, cache: Snapshot) -> Iterable[ObjectRef]:
    uid = uid_of(holder)
    for budget in cache.objects(BUDGETS):
        if any(place.get("holderUID") == uid for place in dig(budget, "status", "places") or ()):
            yield ref_of(budget)
