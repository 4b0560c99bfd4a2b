"""Signs of life of an agent: when it renews the lease of its cluster on the hub; pure.

Rules: ``pkg/registration/spoke/lease`` of upstream (reference ocm-pull-model §1.6). The handler of :class:`RenewLease`
is in ``renewing.py``.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from syncline.base.action import Action
from syncline.control.plan import Plan, Requeue
from syncline.fleet.conditions import find_condition, is_true
from syncline.fleet.hub.registration.leases import ACCEPTED, AVAILABLE, DEFAULT_S
from syncline.kube.objects import Obj, dig, name_of

JITTER: Final = 0.25
"""A renewal comes up to this part of the lease duration later, so that agents do not come at once."""


@dataclass(frozen=True, slots=True)
class RenewLease(Action):
    """Write the time into the lease of a cluster. ``loss``: what :func:`loss_of` returned; the renewal answers it."""

    name: str
    reason: str
    loss: str = ""

    def describe(self) -> str:
        return f"renew the lease of {self.name}"


@dataclass(frozen=True, slots=True)
class Renewal:
    """The last renewal. ``draw``: a number from 0 to 1 that decides when the next one is due; ``loss``: the loss that
    it answered."""

    at: datetime
    draw: float
    loss: str = ""


@dataclass(frozen=True, slots=True)
class Beat:
    """A ManagedCluster and the last renewal of its lease by this process; None: none yet."""

    cluster: Obj
    last: Renewal | None = None


def loss_of(cluster: Obj) -> str:
    """Return when the hub found that the lease was not renewed; empty: it has not, or the agent has reported since.

    A hub that was away for long, or was restored from a backup, says so of an agent that did nothing wrong. Until the
    lease is renewed it would take back each report of the agent at once.
    """
    found = find_condition(dig(cluster, "status", "conditions") or (), AVAILABLE) or {}
    lost = (found.get("status"), found.get("reason")) == ("Unknown", "ManagedClusterLeaseUpdateStopped")
    return str(found.get("lastTransitionTime") or "") if lost else ""


def answers(last: Renewal | None, cluster: Obj) -> bool:
    """Return whether the lease was renewed since the hub found that it was not."""
    loss = loss_of(cluster)
    return not loss or (last is not None and last.loss == loss)


def plan_beat(observed: Beat, now: datetime) -> Plan:
    """Renew the lease when it is due; a shorter duration counts at once. Stops while the hub does not accept."""
    cluster, last = observed.cluster, observed.last
    if not is_true(dig(cluster, "status", "conditions") or (), ACCEPTED):
        return Plan(why="the cluster is not accepted by the hub")
    duration = timedelta(seconds=dig(cluster, "spec", "leaseDurationSeconds") or DEFAULT_S)
    wait = duration * (1 + JITTER * last.draw) if last is not None else duration
    left = timedelta() if last is None else last.at + wait - now
    why = "the next renewal of the lease"
    if timedelta() < left <= wait and answers(last, cluster):  # more than that: the clock was set back
        return Plan((), Requeue(left.total_seconds(), why, background=True), why)
    renew = RenewLease(name_of(cluster), "a sign of life", loss_of(cluster))
    return Plan(((renew,),), Requeue(wait.total_seconds(), why, background=True), "a sign of life")
