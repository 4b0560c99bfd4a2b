"""Writes Kubernetes Events for :class:`~syncline.control.plan.Emit` actions: :func:`publish`.

The name of an Event is derived from its content, so that repeating it counts up one Event instead of creating many.
"""

from __future__ import annotations

import hashlib
from collections.abc import Generator
from datetime import datetime
from typing import Any

from syncline.base.clock import format_micro_time, format_time
from syncline.control.plan import Emit
from syncline.kube import client
from syncline.kube.client import PatchType, Request, Response
from syncline.kube.errors import AlreadyExists
from syncline.kube.objects import GVK, Obj, ResourceInfo, dig, gvk_of, meta, name_of, namespace_of

EVENTS = ResourceInfo("", "v1", "Event", "events", namespaced=True)

MAX_SAID = 4096
"""The number of written Events that are remembered, as in client-go."""

BURST, REFILL_S = 25, 300.0
"""Limited Events of one component about one object that are written at once, and the seconds until one more may be, as
in client-go's spam filter. Others are not limited: timelines and explanations are made of them."""

MAX_MESSAGE = 1024
"""Kubernetes refuses longer notes (events validation); the rest is cut with an ellipsis."""


def event_object(emit: Emit, now: datetime) -> Obj:
    """Return the ``v1`` Event of an emission. Events about cluster-scoped objects go to the namespace ``default``."""
    gvk: GVK = gvk_of(emit.regarding)
    namespace = namespace_of(emit.regarding) or "default"
    message = emit.message if len(emit.message) <= MAX_MESSAGE else emit.message[: MAX_MESSAGE - 1] + "…"
    uid = str(meta(emit.regarding).get("uid") or "")
    where = (emit.field_path,) if emit.field_path else ()
    said = "\x00".join((uid, gvk.kind, emit.component, emit.event_reason, message, str(emit.warning), *where))
    digest = hashlib.sha256(said.encode()).hexdigest()[:16]
    involved: Obj = {
        "kind": gvk.kind,
        "namespace": namespace_of(emit.regarding),
        "name": name_of(emit.regarding),
        "uid": uid,
        "apiVersion": gvk.api_version,
        "resourceVersion": str(meta(emit.regarding).get("resourceVersion") or ""),
        "fieldPath": emit.field_path,
    }
    return _times(emit, now) | {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": f"{name_of(emit.regarding)[:200]}.{digest}", "namespace": namespace},
        "involvedObject": {key: value for key, value in involved.items() if value},
        "reason": emit.event_reason,
        "message": message,
        "type": "Warning" if emit.warning else "Normal",
        "reportingComponent": emit.component,
    }


def _times(emit: Emit, now: datetime) -> Obj:
    """Return the time fields. Components with an action (the scheduler) write Events of the new kind: one instant, and
    a series when repeated. All others have a first and a last time."""
    if emit.event_action:
        return {
            "action": emit.event_action,
            "reportingInstance": f"{emit.component}-syncline",
            "source": {},
            "firstTimestamp": None,
            "lastTimestamp": None,
            "eventTime": format_micro_time(now),
        }
    stamp = format_time(now)
    return {
        "reportingInstance": "",
        "source": {"component": emit.component},
        "firstTimestamp": stamp,
        "lastTimestamp": stamp,
        "count": 1,
        "eventTime": None,
    }


def _once_more(known: Obj, now: datetime) -> Obj:
    """Return the fields that repeating an Event changes."""
    if known.get("eventTime"):
        count = int(dig(known, "series", "count", default=1))
        return {"series": {"count": count + 1, "lastObservedTime": format_micro_time(now)}}
    return {"count": int(known.get("count") or 1) + 1, "lastTimestamp": format_time(now)}


class Said:
    """The last written Events, so that repeating one takes one request (client-go's ``eventLogger``). Others are found
    by requests: those of earlier processes, and those dropped from this cache."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, str], Obj] = {}
        self._left: dict[tuple[str, ...], tuple[float, datetime]] = {}
        """How many Events may still be written, by component and object, and when that was computed."""

    def admits(self, emit: Emit, now: datetime) -> bool:
        """Return whether this Event may be written; a limited one is counted."""
        if not emit.limited:
            return True
        gvk, uid = gvk_of(emit.regarding), str(meta(emit.regarding).get("uid") or "")
        key = (emit.component, gvk.kind, namespace_of(emit.regarding), name_of(emit.regarding), uid)
        left, since = self._left.pop(key, (float(BURST), now))
        left = min(left + max((now - since).total_seconds(), 0.0) / REFILL_S, float(BURST))
        self._left[key] = (left - 1 if left >= 1 else left), now
        if len(self._left) > MAX_SAID:
            del self._left[next(iter(self._left))]
        return left >= 1

    def known(self, event: Obj) -> Obj | None:
        return self._known.get((namespace_of(event), name_of(event)))

    def note(self, event: Obj) -> None:
        key = (namespace_of(event), name_of(event))
        self._known.pop(key, None)
        self._known[key] = event
        if len(self._known) > MAX_SAID:
            del self._known[next(iter(self._known))]


def publish(emit: Emit, now: datetime, said: Said | None = None) -> Generator[Request, Response, Any]:
    """Create the Event, or count it up; return it. An Event that cannot be written (its namespace is ending), or is one
    of too many about its object, is dropped and None returned: the next reconcile emits it again if it is still true.
    """
    event = event_object(emit, now)
    said = Said() if said is None else said
    if not said.admits(emit, now):
        return None
    known = said.known(event)
    answer = (yield _again(event, known, now)) if known is not None else None
    if answer is None or answer.status != 200:
        answer = yield client.create(EVENTS, event)
    if answer.status == AlreadyExists.code:
        answer = yield client.get(EVENTS, namespace_of(event), name_of(event))
        if answer.status == 200:
            answer = yield _again(event, answer.obj, now)
    if answer.status not in (200, 201):
        return None
    said.note(answer.obj)
    return answer.obj


def _again(event: Obj, known: Obj, now: datetime) -> Request:
    body = _once_more(known, now)
    return client.patch(EVENTS, namespace_of(event), name_of(event), PatchType.MERGE, body)
