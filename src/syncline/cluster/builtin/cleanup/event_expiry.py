"""Events go an hour after they were last said, so that what users see is bounded.

In Kubernetes the store forgets them (``--event-ttl``, one hour by default) by leases that Events of a minute share;
here a controller deletes all of a minute in one reconcile. Its keys are minutes of a namespace, named as objects would
be.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from syncline.base.clock import parse_time, time_or_none
from syncline.control.cache import OfKind, Snapshot
from syncline.control.controller import Controller, Watch
from syncline.control.plan import Delete, Plan, Requeue
from syncline.kube.objects import GroupKind, Obj, ObjectRef, dig, namespace_of, ref_of

__all__ = ["EVENT_EXPIRY_CONTROLLER", "plan"]

EVENT_TTL_S = 3600.0
"""kube-apiserver's default ``--event-ttl``."""
MINUTE_S = 60.0
"""How long a lease takes in further Events (apiserver ``leaseReuseDurationSeconds``): so much longer they may live."""
EVENT = GroupKind("", "Event")
BY_MINUTE = "event-expiry/minutes"


@dataclass(frozen=True, slots=True)
class Observed:
    """The Events of a namespace that were last said in the minute that begins at ``since``."""

    since: datetime
    events: tuple[Obj, ...]


def plan(observed: Observed, now: datetime) -> Plan:
    """Delete them once the hour of the last of them is over."""
    left = (observed.since + timedelta(seconds=EVENT_TTL_S + MINUTE_S) - now).total_seconds()
    if left > 0:
        return Plan(outcome=Requeue(left, "events live for an hour", background=True), why="they are recent")
    return Plan(
        (tuple(Delete.of(each, "said more than an hour ago") for each in observed.events),), why="their hour is over"
    )


def _last_said(event: Obj) -> datetime | None:
    times = (
        dig(event, "metadata", "creationTimestamp"),
        event.get("lastTimestamp"),
        event.get("eventTime"),
        dig(event, "series", "lastObservedTime"),
    )
    return max((time for time in map(time_or_none, times) if time is not None), default=None)


def _minute(event: Obj) -> str:
    """``NAMESPACE/2026-01-01T00:00``; empty for an Event without any time, which stays."""
    said = _last_said(event)
    return f"{namespace_of(event)}/{said:%Y-%m-%dT%H:%M}" if said is not None else ""


def _minutes(event: Obj) -> Iterable[str]:
    minute = _minute(event)
    return (minute,) if minute else ()


def _key_of_minute(event: Obj, cache: Snapshot) -> Iterable[ObjectRef]:
    """The first of a minute wakes it, and so does whatever takes its place; the others are found when it is over."""
    minute = _minute(event)
    first = cache.first(BY_MINUTE, minute) if minute else None
    if first is not None and ref_of(first) == ref_of(event):
        namespace, _, since = minute.partition("/")
        yield ObjectRef("", EVENT.kind, namespace, since)


def _said(old: Obj | None, new: Obj | None) -> bool:
    return new is not None and (old is None or _last_said(old) != _last_said(new))


def _observe(cache: Snapshot, ref: ObjectRef) -> Observed | None:
    events = cache.indexed(BY_MINUTE, f"{ref.namespace}/{ref.name}")
    return Observed(parse_time(f"{ref.name}:00Z"), tuple(events)) if events else None


EVENT_EXPIRY_CONTROLLER = Controller(
    name="event-expiry",
    kind=EVENT,
    watches=(Watch(EVENT, _key_of_minute, _said),),
    indices={BY_MINUTE: OfKind(EVENT, _minutes)},
    predicate=lambda old, new: False,
    observe=_observe,
    plan=plan,
)
"""Kind Event, a key for each minute."""
