"""Kubernetes Events from :class:`~syncline.control.plan.Emit` actions.

The name of an Event is derived from what it says, so saying it again counts up one Event instead of making many.
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
from syncline.kube.errors import AlreadyExists, ApiError, NotFound
from syncline.kube.objects import GVK, Obj, ResourceInfo, dig, gvk_of, meta, name_of, namespace_of

__all__ = ["EVENTS", "MAX_MESSAGE", "event_object", "publish"]

EVENTS = ResourceInfo("", "v1", "Event", "events", namespaced=True)

MAX_MESSAGE = 1024
"""Kubernetes refuses longer notes (events validation); the rest is cut with an ellipsis."""


def event_object(emit: Emit, now: datetime) -> Obj:
    """The ``v1`` Event for an emission: cluster-scoped objects report into ``default``."""
    gvk: GVK = gvk_of(emit.regarding)
    namespace = namespace_of(emit.regarding) or "default"
    message = emit.message if len(emit.message) <= MAX_MESSAGE else emit.message[: MAX_MESSAGE - 1] + "…"
    uid = str(meta(emit.regarding).get("uid") or "")
    said = "\x00".join((uid, gvk.kind, emit.component, emit.event_reason, message, str(emit.warning)))
    digest = hashlib.sha256(said.encode()).hexdigest()[:16]
    involved: Obj = {
        "kind": gvk.kind,
        "namespace": namespace_of(emit.regarding),
        "name": name_of(emit.regarding),
        "uid": uid,
        "apiVersion": gvk.api_version,
        "resourceVersion": str(meta(emit.regarding).get("resourceVersion") or ""),
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
    """Components that say what they were doing (the scheduler) write Events of the new kind: one instant, and a
    series where it is said again. All others have a first and a last time."""
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
    """What saying an Event again changes in it."""
    if known.get("eventTime"):
        count = int(dig(known, "series", "count", default=1))
        return {"series": {"count": count + 1, "lastObservedTime": format_micro_time(now)}}
    return {"count": int(known.get("count") or 1) + 1, "lastTimestamp": format_time(now)}


def publish(emit: Emit, now: datetime) -> Generator[Request, Response, Any]:
    """Create the Event, or count it up. An Event that cannot be written (its namespace is ending) is dropped: Events
    are for people, and whoever emitted it says it again at the next pass if it is still true."""
    event = event_object(emit, now)
    answer = yield client.create(EVENTS, event)
    try:
        return answer.or_raise()
    except AlreadyExists:
        pass
    except ApiError:
        return None
    namespace, name = namespace_of(event), name_of(event)
    answer = yield client.get(EVENTS, namespace, name)
    try:
        known = answer.or_raise()
    except NotFound:
        return None
    answer = yield client.patch(EVENTS, namespace, name, PatchType.MERGE, _once_more(known, now))
    return answer.obj
