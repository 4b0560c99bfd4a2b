"""Events go an hour after they were last said, so that what people are told is bounded.

In Kubernetes the store forgets them (``--event-ttl``, one hour by default); here a controller deletes them.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from syncline.cluster.builtin.pods import instant
from syncline.control.cache import Snapshot
from syncline.control.controller import Watch
from syncline.control.plan import Delete, Plan, Requeue
from syncline.kube.objects import GroupKind, Obj, ObjectRef, dig

__all__ = ["EVENT_TTL_S", "EventExpiry", "Observed", "plan"]

EVENT_TTL_S = 3600.0
"""kube-apiserver's default ``--event-ttl``."""


@dataclass(frozen=True, slots=True)
class Observed:
    event: Obj


def plan(seen: Observed, now: datetime) -> Plan:
    """Delete it once its hour is over."""
    said = _last_said(seen.event)
    if said is None:
        return Plan(why="it has no time")
    left = (said + timedelta(seconds=EVENT_TTL_S) - now).total_seconds()
    if left > 0:
        return Plan(outcome=Requeue(left, "events live for an hour", background=True), why="it is recent")
    return Plan(steps=((Delete.of(seen.event, "said more than an hour ago"),),), why="its hour is over")


def _last_said(event: Obj) -> datetime | None:
    times = (
        dig(event, "metadata", "creationTimestamp"),
        event.get("lastTimestamp"),
        event.get("eventTime"),
        dig(event, "series", "lastObservedTime"),
    )
    return max((time for time in map(instant, times) if time is not None), default=None)


class EventExpiry:
    """Kind Event."""

    name = "event-expiry"
    kind = GroupKind("", "Event")
    watches: tuple[Watch, ...] = ()
    concerns = staticmethod(lambda old, new: old is None)
    """One that is said again is found to be recent when its hour is over."""
    reads: tuple[GroupKind, ...] = ()

    def observe(self, cache: Snapshot, ref: ObjectRef) -> Observed | None:
        event = cache.get(ref)
        return Observed(event) if event is not None else None

    def plan(self, seen: Observed, now: datetime) -> Plan:
        return plan(seen, now)
