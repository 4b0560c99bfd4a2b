"""Delete Events one hour after their last occurrence, so that their number is bounded.

In Kubernetes the store expires them (``--event-ttl``, default one hour) with leases that Events of a minute share; here
one reconcile deletes all Events of a minute. A key is a minute of a namespace, in the form of an object reference.
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

EVENT_TTL_S = 3600.0
"""kube-apiserver's default ``--event-ttl``."""
MINUTE_S = 60.0
"""Span of a shared lease (apiserver ``leaseReuseDurationSeconds``); Events may live longer by this much."""
EVENT = GroupKind("", "Event")
BY_MINUTE = "event-expiry/minutes"


@dataclass(frozen=True, slots=True)
class Observed:
    """Events of a namespace whose last occurrence is in the minute that begins at ``since``."""

    since: datetime
    events: tuple[Obj, ...]


def plan(observed: Observed, now: datetime) -> Plan:
    """Delete the Events when an hour has passed since the last of them."""
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
    """Return ``NAMESPACE/2026-01-01T00:00``; "" for an Event without a time, which stays."""
    said = _last_said(event)
    return f"{namespace_of(event)}/{said:%Y-%m-%dT%H:%M}" if said is not None else ""


def _minutes(event: Obj) -> Iterable[str]:
    minute = _minute(event)
    return (minute,) if minute else ()


def _key_of_minute(event: Obj, cache: Snapshot) -> Iterable[ObjectRef]:
    """Return the key for the first Event of a minute only; the reconcile finds the others."""
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
"""Deletes expired Events; its key is a minute."""
