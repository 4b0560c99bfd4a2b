"""The plans of leases and taints: what is written when an agent stops answering; pure."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from syncline.base.action import Action
from syncline.control.plan import Create, Done, Emit, Patch, Plan, Requeue, awaiting_lists, set_status
from syncline.fleet.conditions import with_condition
from syncline.fleet.hub.registration.leases import clock, heartbeat, lost_message
from syncline.fleet.hub.registration.taints import tainted
from syncline.kube.kinds.managedclusters import MANAGED_CLUSTER
from syncline.kube.objects import Obj, api_version, name_of, resource_version, uid_of


@dataclass(frozen=True, slots=True)
class Beat:
    """A cluster and its lease; ``listed``: the leases are known."""

    cluster: Obj
    lease: Obj | None
    listed: bool = True


def plan_lease(observed: Beat, now: datetime) -> Plan:
    """Plan one look at the lease of a cluster; the next one is when it would run out."""
    cluster = observed.cluster
    if not observed.listed:
        return Plan(*awaiting_lists(("leases",)))
    found = heartbeat(cluster, observed.lease, now)
    outcome = Done() if found.recheck is None else Requeue(found.recheck.total_seconds(), found.why, background=True)
    if found.create:
        return Plan(((Create(found.create, found.why),),), outcome, found.why)
    if found.lost is None:
        return Plan((), outcome, found.why)
    live: Obj = cluster.get("status") or {}
    status = {**live, "conditions": with_condition(live.get("conditions") or (), found.lost, now)}
    name = name_of(cluster)
    # The Event is in the namespace of the cluster, where those who look after it may read it.
    regarding = {
        "apiVersion": api_version(MANAGED_CLUSTER.group, MANAGED_CLUSTER.version),
        "kind": MANAGED_CLUSTER.kind,
        "metadata": {"name": name, "namespace": name, "uid": uid_of(cluster)},
    }
    text, reason = lost_message(name), "AvailableUnknown"
    event = Emit(regarding, reason, text, "registration-controller", warning=True, event_action=reason)
    return Plan(((event,),), outcome, found.why, set_status(cluster, status, found.why))


def plan_clock(observed: Beat, now: datetime) -> Plan:
    """Plan the condition about the clock of an agent that renewed its lease just now."""
    cluster = observed.cluster
    found = clock(cluster, observed.lease or {}, now)
    if found is None:
        return Plan(why="the condition stays")
    live: Obj = cluster.get("status") or {}
    status = {**live, "conditions": with_condition(live.get("conditions") or (), found, now)}
    text = f'update managed cluster "{name_of(cluster)}" clock synced condition to {found["status"]}.'
    event = Emit(cluster, "ManagedClusterClockSyncedConditionUpdated", text, "clock-sync-controller")
    return Plan((set_status(cluster, status, found["message"]), (event,)), Done(), found["message"])


def plan_taints(cluster: Obj) -> Plan:
    """Plan the taints of a cluster. Their times are for the hub's admission, which refuses those of others."""
    found = tainted(cluster)
    if not found.changed:
        return Plan(why=found.why)
    metadata = {"uid": uid_of(cluster), "resourceVersion": resource_version(cluster)}
    body = {"metadata": metadata, "spec": {"taints": list(found.taints)}}
    patch: Action = Patch(MANAGED_CLUSTER, "", name_of(cluster), body, found.why)
    return Plan(((patch,),), Done(), found.why)
