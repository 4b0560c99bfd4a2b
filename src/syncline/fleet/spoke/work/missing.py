"""The condition ``SynclineWorksMissing`` of the agent's ManagedCluster: what the cluster has and its hub does not.

A work that is deleted lets its agent remove what it brought. One that is not there any more, without that, was lost:
the hub is one of an older backup, or its finalizer was taken off by hand. Its objects stay for the grace period
(``eviction.py``), and the hub says until when.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final

from syncline.base.clock import format_time, time_or_none
from syncline.control.cache import Snapshot
from syncline.control.controller import Controller, Watch, differ
from syncline.control.plan import Plan, set_status
from syncline.fleet.conditions import condition, find_condition, with_condition
from syncline.fleet.hub.registration.leases import WORKS_MISSING
from syncline.fleet.spoke.link import SPOKE, Link
from syncline.fleet.spoke.work.observe import APPLIED
from syncline.kube.kinds.managedclusters import MANAGED_CLUSTER
from syncline.kube.objects import Obj, ObjectRef, dig

CLUSTERS: Final = MANAGED_CLUSTER.group_kind
GATHER_S: Final = 5.0
SHOWN: Final = 5
"""Works that the condition names."""


@dataclass(frozen=True)
class MissingSeen:
    """The ManagedCluster, and the AppliedManifestWorks of this agent that are being evicted."""

    cluster: Obj = field(repr=False)
    missing: tuple[Obj, ...]
    grace_s: float


def plan_missing(seen: MissingSeen, now: datetime) -> Plan:
    """Plan one look: the condition is written when its truth or its text changes."""
    conditions = dig(seen.cluster, "status", "conditions") or ()
    before = find_condition(conditions, WORKS_MISSING)
    if before is None and not seen.missing:
        return Plan(why="the hub has the works of this cluster")
    made = _condition(seen)
    if before is not None and {key: before.get(key) for key in made} == made:
        return Plan(why="the hub knows")
    old: Obj = seen.cluster.get("status") or {}
    status = {**old, "conditions": with_condition(list(conditions), made, now)}
    said = str(made["message"])
    return Plan((), why=said, status=set_status(seen.cluster, status, said))


def _condition(seen: MissingSeen) -> Obj:
    if not seen.missing:
        return condition(WORKS_MISSING, "False", "AsExpected", "the hub has the works of this cluster")
    names = sorted(str(dig(one, "spec", "manifestWorkName")) for one in seen.missing)
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    begun = [time_or_none(dig(one, "status", "evictionStartTime")) for one in seen.missing]
    first = min((one for one in begun if one is not None), default=None)
    ends = f" from {format_time(first + timedelta(seconds=seen.grace_s))} on" if first is not None else ""
    text = (
        f"this cluster has objects of {len(names)} works that are not on the hub: {', '.join(names[:SHOWN])}{more}; "
        f"they are removed{ends} unless the works are there again or other works bring them"
    )
    return condition(WORKS_MISSING, "True", "NotOnHub", text)


def missing_controller(link: Link, grace_s: float) -> Controller[MissingSeen]:
    """Return the controller; its key is the agent's ManagedCluster on the hub."""
    mine = link.cluster_ref(*CLUSTERS)

    def observe(hub: Snapshot, ref: ObjectRef) -> MissingSeen | None:
        cluster, spoke = hub.get(ref), link.spoke()
        if cluster is None or spoke is None or not spoke.has_synced(APPLIED):
            return None
        own = [one for one in spoke.objects(APPLIED) if dig(one, "spec", "agentID") == link.agent]
        return MissingSeen(cluster, tuple(one for one in own if _since(one)), grace_s)

    def always(_obj: Obj, _cache: Snapshot) -> Iterable[ObjectRef]:
        return (mine,)

    return Controller(
        name="works-missing",
        kind=CLUSTERS,
        predicate=differ(lambda one: find_condition(dig(one, "status", "conditions") or (), WORKS_MISSING) or {}),
        watches=(Watch(APPLIED, always, differ(_since), cluster=SPOKE),),
        reaches=lambda _cluster, _hub: (mine,),
        observe=observe,
        plan=plan_missing,
        debounce_s=GATHER_S,
    )


def _since(applied: Obj) -> str:
    return str(dig(applied, "status", "evictionStartTime") or "")
