"""Reads budgets and clusters for roll-outs: :func:`observe_fleet`."""

from __future__ import annotations

from typing import Final

from syncline.control.cache import Snapshot
from syncline.fleet.hub.budgets.model import Fleet, Member
from syncline.kube.kinds.managedclusters import MANAGED_CLUSTER
from syncline.kube.kinds.syncline import BUDGET
from syncline.kube.objects import GroupKind, Obj, ObjectRef

BUDGETS: Final = BUDGET.group_kind
CLUSTERS: Final = MANAGED_CLUSTER.group_kind
READS: Final = (BUDGETS, CLUSTERS)
"""Kinds that a controller with roll-outs names in ``reads`` (or watches)."""


def observe_fleet(cache: Snapshot) -> Fleet:
    """Return the budgets and clusters; no budgets where their kind is not served. While one of the kinds is not listed
    or cannot be read, ``unknown`` says so: then no roll-out begins in a further cluster."""
    if cache.mapper.preferred(BUDGETS) is None:
        return Fleet()
    if why := _unknown(cache, BUDGETS):
        return Fleet(unknown=why)
    budgets = tuple(cache.objects(BUDGETS))
    if not budgets:
        return Fleet()
    if why := _unknown(cache, CLUSTERS):
        return Fleet(unknown=why)
    return Fleet(budgets, {one.name: one for one in cache.views(CLUSTERS, _member)})


def _unknown(cache: Snapshot, kind: GroupKind) -> str:
    if why := cache.unread(ObjectRef(*kind, "", "")):
        return f"cannot read {kind.kind}s: {why}"
    return "" if cache.has_synced(kind) else f"waiting for the first list of {kind.kind}s"


def _member(obj: Obj) -> Member:
    return Member.of(obj)
