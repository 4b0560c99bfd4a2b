"""The condition ``SynclineNodesUpdating`` of the agent's ManagedCluster: pools that are being updated, and Holds.

The hub gives the cluster no new release meanwhile, nor while the agent may not read them (``Unknown``), and a release
is not proved there. Where the cluster has neither pools nor Holds nothing is written.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from syncline.base.clock import time_or_none
from syncline.control.cache import Snapshot
from syncline.control.controller import Controller, Watch, differ
from syncline.control.plan import Done, Plan, Requeue, set_status
from syncline.fleet.conditions import condition, find_condition, is_true, with_condition
from syncline.fleet.hub.registration.leases import NODES_UPDATING
from syncline.fleet.spoke.link import SPOKE, Link
from syncline.kube.kinds.machineconfiguration import MACHINE_CONFIG_POOL
from syncline.kube.kinds.managedclusters import MANAGED_CLUSTER
from syncline.kube.kinds.syncline import HOLD
from syncline.kube.objects import Obj, ObjectRef, dig, name_of

CLUSTERS: Final = MANAGED_CLUSTER.group_kind
POOLS: Final = MACHINE_CONFIG_POOL.group_kind
HOLDS: Final = HOLD.group_kind
GATHER_S: Final = 1.0
SHOWN: Final = 5
"""Pools and Holds that the condition names."""


@dataclass(frozen=True)
class NodesSeen:
    """The ManagedCluster, and the pools and Holds of the cluster."""

    cluster: Obj = field(repr=False)
    pools: tuple[Obj, ...] = ()
    holds: tuple[Obj, ...] = ()
    unread: str = ""
    """Why pools or Holds may not be read."""


def plan_nodes(seen: NodesSeen, now: datetime) -> Plan:
    """Plan one look: the condition is written when its truth or its text changes."""
    conditions = dig(seen.cluster, "status", "conditions") or ()
    ends = [time_or_none(dig(one, "spec", "expiresAt")) for one in seen.holds]
    living = [one for one, end in zip(seen.holds, ends, strict=True) if end is not None and end > now]
    busy = [f"pool {name_of(one)} is updating" for one in seen.pools if _updating(one)]
    busy += [f"Hold {name_of(one)} of {dig(one, 'spec', 'owner')}: {dig(one, 'spec', 'reason')}" for one in living]
    before = find_condition(conditions, NODES_UPDATING)
    if before is None and not busy and not seen.unread and not seen.pools:
        return Plan(why="no machines are being updated")
    more = f" and {len(busy) - SHOWN} more" if len(busy) > SHOWN else ""
    said = "; ".join(busy[:SHOWN])[:1000] + more if busy else seen.unread[:1000] or "no machines are being updated"
    unsure = ("Unknown", "NotReadable") if seen.unread else ("False", "AsExpected")
    made = condition(NODES_UPDATING, *(("True", "Updating") if busy else unsure), said)
    left = [(end - now).total_seconds() for end in ends if end is not None and end > now]
    outcome = Requeue(min(left) + 1.0, "a Hold expires") if left else Done()
    if before is not None and {key: before.get(key) for key in made} == made:
        return Plan(outcome=outcome, why="the hub knows")
    old: Obj = seen.cluster.get("status") or {}
    status = {**old, "conditions": with_condition(list(conditions), made, now)}
    return Plan((), outcome, said, set_status(seen.cluster, status, said))


def _updating(pool: Obj) -> bool:
    return is_true(dig(pool, "status", "conditions") or (), "Updating")


def nodes_controller(link: Link) -> Controller[NodesSeen]:
    """Return the controller; its key is the agent's ManagedCluster on the hub."""
    mine = link.cluster_ref(*CLUSTERS)

    def observe(hub: Snapshot, ref: ObjectRef) -> NodesSeen | None:
        cluster, spoke = hub.get(ref), link.spoke()
        if cluster is None or spoke is None:
            return None
        found = [tuple(spoke.objects(kind)) if spoke.has_synced(kind) else () for kind in (POOLS, HOLDS)]
        unread = (spoke.unread(ObjectRef(*kind, "", "")) for kind in (POOLS, HOLDS))
        pools, holds = found
        return NodesSeen(cluster, pools, holds, next(filter(None, unread), ""))

    def always(_obj: Obj, _cache: Snapshot) -> Iterable[ObjectRef]:
        return (mine,)

    return Controller(
        name="nodes-updating",
        kind=CLUSTERS,
        predicate=differ(
            lambda one: find_condition(dig(one, "status", "conditions") or (), NODES_UPDATING) or {},
        ),
        watches=(
            Watch(POOLS, always, differ(_updating), cluster=SPOKE),
            Watch(HOLDS, always, differ(lambda one: one.get("spec")), cluster=SPOKE),
        ),
        reaches=lambda _cluster, _hub: (mine,),
        observe=observe,
        plan=plan_nodes,
        debounce_s=GATHER_S,
    )
