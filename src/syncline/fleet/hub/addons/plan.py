"""The plan of a ClusterManagementAddOn: where it is installed, how its add-ons are configured, and how far; pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from syncline.base.action import Action
from syncline.control.plan import Done, Outcome, Patch, Plan, Requeue, Stalled, awaiting_lists, set_status
from syncline.fleet.addons import desired_of, managed_by_hub
from syncline.fleet.hub.addons.configuration import Chosen, configure, unsettled
from syncline.fleet.hub.addons.installing import installs, unknown
from syncline.fleet.hub.addons.progressions import Hashes, by_placement, default_references, progressions
from syncline.fleet.hub.budgets.model import NO_BUDGETS, Fleet, Holder
from syncline.fleet.hub.budgets.reserve import Reserving
from syncline.fleet.hub.rollout.model import DecisionGroup
from syncline.kube.kinds.managedaddons import MANAGED_ADDON
from syncline.kube.objects import Obj, dig, is_terminating, name_of, namespace_of, resource_version, uid_of

UNKNOWN_S: Final = 10.0
"""Seconds until a key is looked at again while the budgets cannot be read."""


@dataclass(frozen=True, slots=True)
class Placed:
    """A Placement and the groups of clusters that it chose; ``error``: why they cannot be read."""

    placement: Obj
    groups: tuple[DecisionGroup, ...] = ()
    error: str = ""


@dataclass(frozen=True, slots=True)
class Observed:
    """A ClusterManagementAddOn, its add-ons, the Placements that it names, by namespace and name, the hashes of its
    configs, the ManagedClusters, and the disruption budgets. ``unlisted``: kinds that are not known yet."""

    cluster_addon: Obj
    addons: tuple[Obj, ...]
    placed: Mapping[tuple[str, str], Placed]
    hashes: Hashes
    clusters: Mapping[str, Obj]
    unlisted: tuple[str, ...] = ()
    fleet: Fleet = NO_BUDGETS


def plan_cluster_addon(observed: Observed, now: datetime) -> Plan:
    """Plan one reconcile. An add-on that a manager of its own installs only gets its default configs in the status."""
    obj = observed.cluster_addon
    if observed.unlisted:
        return Plan(*awaiting_lists(observed.unlisted))
    if is_terminating(obj):
        return Plan(why="the add-on is being deleted, and its add-ons on clusters with it")
    references = default_references(obj, observed.hashes)
    if not managed_by_hub(obj):
        why = "the add-on is installed by a manager of its own"
        return Plan(why=why, status=_written(obj, references, dig(obj, "status", "installProgressions") or [], why))
    entries = progressions(obj, observed.hashes)
    chosen, problems = _chosen(observed, entries)
    defaults = [config for config in map(desired_of, references) if config is not None]
    reserving = _reserving(observed, now)
    found = configure(defaults, chosen, observed.addons, observed.hashes, reserving, now)
    waits = reserving.waits()
    problems = (*problems, *found.errors, *(one.sentence() for one in waits))
    made = {_at(one): one for one in found.progressions}
    status = _written(obj, references, [made.get(_at(one), one) for one in entries], "the state of its rollouts")
    changes: list[Action] = []
    if by_placement(obj):
        changes += installs(obj, chosen, observed.addons, observed.clusters)
    for addon in observed.addons:
        changes += set_status(addon, found.statuses[namespace_of(addon)], "the configs that the add-on is to have")
    why = unknown(chosen) or "; ".join(problems) or f"{len(observed.addons)} clusters have the add-on"
    outcome: Outcome = Done()
    if found.recheck is not None:
        outcome = Requeue(found.recheck.total_seconds(), "a rollout goes on by time", background=True)
    elif any(not one.budget for one in waits):
        outcome = Requeue(UNKNOWN_S, why, background=True)
    elif found.errors:
        outcome = Stalled(why, "correct spec.installStrategy.placements[].rolloutStrategy")
    steps = tuple(step for step in (*_reservations(observed, reserving), tuple(changes)) if step)
    return Plan(steps, outcome, why, status, together=True)


def _reserving(observed: Observed, now: datetime) -> Reserving:
    """Return the places of the add-on: those of clusters that are not seen with what they were given stay."""
    live = {namespace_of(one): one for one in observed.addons if not is_terminating(one)}
    begun = {cluster for cluster, one in live.items() if unsettled(one)}
    reserving = Reserving(observed.fleet, Holder.of(observed.cluster_addon), now, live.keys() - begun)
    for cluster in sorted(begun):
        reserving.keep(cluster, "the configuration of the add-on is not applied there yet")
    return reserving


def _reservations(observed: Observed, reserving: Reserving) -> tuple[tuple[Action, ...], ...]:
    """Return the writes of places, each a step. Before one is given back, a patch that changes nothing makes sure that
    the add-on is as it was seen."""
    back = reserving.given_back()
    checks = tuple(_check(one) for one in observed.addons if namespace_of(one) in back and not is_terminating(one))
    return checks, *reserving.steps()


def _check(addon: Obj) -> Patch:
    body = {"metadata": {"uid": uid_of(addon), "resourceVersion": resource_version(addon)}}
    return Patch(MANAGED_ADDON, namespace_of(addon), name_of(addon), body, "make sure that it has not changed")


def _at(entry: Obj) -> tuple[str, str]:
    return str(entry.get("namespace") or ""), str(entry.get("name") or "")


def _chosen(observed: Observed, entries: list[Obj]) -> tuple[list[Chosen], tuple[str, ...]]:
    """Return the Placements that exist, in order of the strategy, and why others do not count."""
    strategies = dig(observed.cluster_addon, "spec", "installStrategy", "placements") or ()
    found, problems = [], []
    for strategy, entry in zip(strategies if entries else (), entries, strict=bool(entries)):
        placed = observed.placed.get(_at(strategy))
        if placed is None:
            problems.append(f"placement {'/'.join(_at(strategy))} does not exist")
        elif placed.error:
            problems.append(placed.error)
        else:
            found.append(Chosen(strategy, entry, placed.placement, placed.groups))
    return found, tuple(problems)


def _written(obj: Obj, references: list[Obj], entries: list[Obj], why: str) -> tuple[Action, ...]:
    made = {"defaultconfigReferences": references, "installProgressions": entries}
    kept = {key: value for key, value in (obj.get("status") or {}).items() if key not in made}
    return set_status(obj, kept | {key: value for key, value in made.items() if value}, why)
