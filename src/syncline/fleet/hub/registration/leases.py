"""The lease of a cluster: whether its agent still answers, and whether its clock agrees with the hub's; pure.

Rules: ``pkg/registration/hub/lease`` of upstream (reference ocm-pull-model §1.6).
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from syncline.base.clock import format_micro_time, time_or_none
from syncline.fleet.conditions import condition, find_condition
from syncline.kube.objects import Obj, annotations_of, dig, is_terminating, name_of

LEASE: Final = "managed-cluster-lease"
CLUSTER_NAME: Final = "open-cluster-management.io/cluster-name"
"""The label of what belongs to a cluster."""
ACCEPTED, AVAILABLE = "HubAcceptedManagedCluster", "ManagedClusterConditionAvailable"
JOINED: Final = "ManagedClusterJoined"
NODES_UPDATING: Final = "SynclineNodesUpdating"
"""Ours: machine config pools of the cluster are being updated, or held (``fleet/spoke/nodes/``)."""
WORKS_MISSING: Final = "SynclineWorksMissing"
"""Ours: the cluster has objects of works that are not on the hub (``fleet/spoke/work/missing.py``)."""
CLOCK_SYNCED: Final = "ManagedClusterConditionClockSynced"
SKIP_CLOCK: Final = "registration.open-cluster-management.io/skip-clock-sync-check"
"""The annotation of a cluster whose clock may differ."""
TIMES: Final = 5
"""How many lease durations may pass without a renewal."""
DEFAULT_S: Final = 60


@dataclass(frozen=True, slots=True)
class Heartbeat:
    """What follows from a lease. ``lost``: the condition to set, ``create``: the lease to create, ``recheck``: when to
    look again without a change of the lease."""

    why: str
    lost: Obj | None = None
    create: Obj | None = None
    recheck: timedelta | None = None


def grace_of(cluster: Obj) -> timedelta:
    """Return the time since the last renewal after which a cluster counts as lost; a duration of 0 is the default."""
    seconds = dig(cluster, "spec", "leaseDurationSeconds") or DEFAULT_S
    return timedelta(seconds=TIMES * seconds)


def heartbeat(cluster: Obj, lease: Obj | None, now: datetime) -> Heartbeat:
    """Judge the lease of a cluster. The hub only ever sets Available to Unknown; the agent sets it back."""
    conditions = dig(cluster, "status", "conditions") or ()
    if find_condition(conditions, ACCEPTED) is None:
        return Heartbeat("the cluster was never accepted")
    if lease is None:
        if is_terminating(cluster):
            return Heartbeat("the cluster is being deleted and has no lease", lost=_lost(cluster))
        return Heartbeat("the cluster has no lease yet", create=new_lease(name_of(cluster), now))
    grace = grace_of(cluster)
    renewed = time_or_none(dig(lease, "spec", "renewTime"))
    left = timedelta() if renewed is None else renewed + grace - now
    if left > timedelta():
        return Heartbeat("the agent renews its lease", recheck=left)
    return Heartbeat(f"no renewal for {grace.total_seconds():.0f} s", lost=_lost(cluster), recheck=grace)


def _lost(cluster: Obj) -> Obj | None:
    live = find_condition(dig(cluster, "status", "conditions") or (), AVAILABLE)
    if live is not None and live.get("status") == "Unknown":
        return None
    text = "Registration agent stopped updating its lease."
    return condition(AVAILABLE, "Unknown", "ManagedClusterLeaseUpdateStopped", text)


def lost_message(name: str) -> str:
    """Return the text of the Event about a cluster that does not answer."""
    return (
        f"The {name} is successfully imported. However, the connection check from the managed cluster to the hub"
        " cluster has failed"
    )


def new_lease(name: str, now: datetime) -> Obj:
    """Return the first lease of a cluster; its agent may only update it."""
    return {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": LEASE, "namespace": name, "labels": {CLUSTER_NAME: name}},
        "spec": {"holderIdentity": LEASE, "renewTime": format_micro_time(now)},
    }


def clock(cluster: Obj, lease: Obj, seen: datetime) -> Obj | None:
    """Return the condition ClockSynced to set, None if its status stays. ``seen``: the hub's time at a renewal; an
    agent whose clock differs by the grace or more does not write its status."""
    renewed = time_or_none(dig(lease, "spec", "renewTime"))
    skipped = annotations_of(cluster).get(SKIP_CLOCK) == "true"
    if skipped or (renewed is not None and abs(seen - renewed) < grace_of(cluster)):
        text = "The clock of the managed cluster is synced with the hub."
        new = condition(CLOCK_SYNCED, "True", "ManagedClusterClockSynced", text)
    else:
        text = (
            "The clock of hub and agent is out of sync. This may cause the Unknown status and affect agent"
            " functionalities."
        )
        new = condition(CLOCK_SYNCED, "False", "ManagedClusterClockOutOfSync", text)
    live = find_condition(dig(cluster, "status", "conditions") or (), CLOCK_SYNCED)
    return None if live is not None and live.get("status") == new["status"] else new
