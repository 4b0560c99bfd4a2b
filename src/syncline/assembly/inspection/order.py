"""The order over clusters in which a set's Applications would get their release: for ``syncline plan``.

The functions are those of the hub's controllers (``fleet/pull/order``), on one snapshot of the hub; nothing is written.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from types import MappingProxyType
from typing import Final

from syncline.assembly.inspection.setplan import PlannedSet, SetVerb
from syncline.control.cache import Cache
from syncline.fleet.hub.budgets.observe import BUDGETS
from syncline.fleet.pull.controllers.parts import PullSettings
from syncline.fleet.pull.observe import (
    APPS,
    CLUSTERS,
    DECISIONS,
    DETAILS,
    GITOPS_CLUSTERS,
    PROJECTS,
    SETS,
    WORKS,
)
from syncline.fleet.pull.observe import INDICES as PULL_INDICES
from syncline.fleet.pull.order.forecasting import Forecast, forecast
from syncline.fleet.pull.order.groups import CLUSTER_SETS, INDICES, ROLLOUTS, SINGLE
from syncline.fleet.pull.order.model import GroupSeen
from syncline.fleet.pull.order.observe import Reading
from syncline.fleet.pull.order.proven import REVISIONS
from syncline.fleet.pull.order.revisions import Looks, Resolution, RevisionStore, Tracked
from syncline.kube.kinds.fleetrollouts import ROLLOUT
from syncline.kube.objects import GroupKind, Obj, ObjectRef, dig, name_of, namespace_of

READ: Final[tuple[GroupKind, ...]] = (
    APPS,
    SETS,
    WORKS,
    CLUSTERS,
    CLUSTER_SETS,
    ROLLOUTS,
    REVISIONS,
    DETAILS,
    BUDGETS,
    PROJECTS,
    DECISIONS,
    GITOPS_CLUSTERS,
)
"""What the order of a group is made of."""


@dataclass(frozen=True, slots=True)
class PlannedOrder:
    """The order of a group. ``seen``: what it was decided from."""

    ref: ObjectRef
    seen: GroupSeen
    forecast: Forecast
    now: datetime


class _Known(RevisionStore):
    """The commits that the hub has resolved for a group, as the status of its FleetRollout has them. A revision that is
    not among them stands for itself, so that it differs from what a cluster has."""

    def __init__(self, rows: Iterable[Mapping[str, str]], now: datetime) -> None:
        super().__init__()
        self._now = now
        self._commits = {_named(one): str(one["commit"]) for one in rows if one.get("commit")}

    def looks(self, tracked: Iterable[Tracked]) -> Looks:
        found = {}
        for one in tracked:
            key = one.url, one.chart, one.revision
            found[one] = Resolution(self._now, self._commits.get(key) or one.revision or "HEAD")
        return Looks(MappingProxyType(found), {})


def _named(row: Mapping[str, str]) -> tuple[str, str, str]:
    return str(row.get("repoURL") or ""), str(row.get("chart") or ""), str(row.get("targetRevision") or "")


def order_cache(hub: Cache) -> Cache:
    """Return a private copy of what a snapshot of a hub has of orders, with the indices that reading them needs. What
    may not be read is unread in the copy, too."""
    made = Cache(hub.mapper, {**PULL_INDICES, **INDICES})
    for kind in READ:
        served = hub.mapper.preferred(kind) is not None
        for one in hub.objects(kind) if served else ():
            made.put(kind, one)
        if served and (why := hub.unread(ObjectRef(*kind, "", ""))):
            made.mark_unread(kind, why)
        else:
            made.mark_synced(kind)  # a kind that is not served has no objects
    return made


def planned_order(
    cache: Cache, ref: ObjectRef, now: datetime, changed: PlannedSet | None = None, appset: Obj | None = None
) -> PlannedOrder | None:
    """Return the order of the group of a FleetRollout, which need not exist; None: no order is or would be in force.

    ``changed``: what the next reconcile of its set, ``appset``, makes of its Applications; both are put into ``cache``
    (a private one). Raises ValueError if something that it is made of may not be read.
    """
    if changed is not None:
        _lay(cache, changed, appset)
    rollout = cache.get(ref)
    rows = dig(rollout or {}, "status", "revisions") or ()
    pins = rollout is None or any(one.get("commit") for one in rows)
    settings = PullSettings(revisions=_Known(rows, now) if pins else None)
    seen = Reading(settings).group(cache, ref)
    if seen is not None and seen.unlisted:
        raise ValueError(f"its order over clusters is not known: {', '.join(seen.unlisted)} may not be listed")
    if seen is None or not seen.force or not seen.targets:
        return None
    if rollout is None:
        seen = replace(seen, rollout=rollout_to_be(cache, ref))
    return PlannedOrder(ref, seen, forecast(seen, now), now)


def rollout_to_be(cache: Cache, ref: ObjectRef) -> Obj:
    """Return the FleetRollout that the hub would create for a group."""
    kind = "ApplicationSet" if cache.get(ObjectRef(*SETS, ref.namespace, ref.name)) else "Application"
    name = ref.name.removesuffix(SINGLE) if kind == "Application" else ref.name
    metadata = {"namespace": ref.namespace, "name": ref.name, "uid": "planned"}
    made = {"apiVersion": ROLLOUT.api_version, "kind": ROLLOUT.kind}
    return {**made, "metadata": metadata, "spec": {"of": {"kind": kind, "name": name}}}


def _lay(cache: Cache, changed: PlannedSet, appset: Obj | None) -> None:
    """Put a set and its Applications into the cache as they are after the next reconcile of the set."""
    if appset is not None:
        cache.put(SETS, appset)
    for one in changed.applications:
        if one.verb is SetVerb.DELETE:
            cache.drop(APPS, one.ref.namespace, one.ref.name)
        elif one.wanted is not None and one.verb in (SetVerb.CREATE, SetVerb.CHANGE, SetVerb.ADOPT):
            live = cache.get(one.ref) or {}
            metadata = {**(live.get("metadata") or {}), **one.wanted["metadata"]}
            metadata.setdefault("uid", f"planned-{name_of(one.wanted)}")
            metadata.setdefault("namespace", namespace_of(one.wanted) or one.ref.namespace)
            cache.put(APPS, {**live, **one.wanted, "metadata": metadata})
