"""The input of explanations: a :class:`View` holds one snapshot of the cluster and the ends of logs.

The command (or a test) creates it; the explanations only read it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property

from syncline.base.cause import Cause
from syncline.control.cache import Snapshot
from syncline.kube.objects import (
    GroupKind,
    Obj,
    ObjectRef,
    dig,
    name_of,
    namespace_of,
    resource_version,
    uid_of,
)
from syncline.kube.version import SUFFIX

EVENT = GroupKind("", "Event")
LogTail = Callable[[str, str, str], tuple[str, ...]]
"""Maps namespace, pod and container to the last lines of its log, or an empty text."""
MAX_TEXT = 400
"""Maximum characters of a message on one line."""


def no_logs(_namespace: str, _pod: str, _container: str) -> tuple[str, ...]:
    return ()


@dataclass(frozen=True)
class View:
    """A read-only view of a cluster. ``logs`` fetches the end of a log, and only for failed containers.

    ``quotes`` False: what programs in containers wrote is left out (logs, messages of their ends, output of probes and
    hooks), since it may hold values of Secrets that nothing masks.
    """

    cluster: Snapshot
    now: datetime
    logs: LogTail = no_logs
    quotes: bool = True

    @cached_property
    def simulated(self) -> bool:
        """Return whether this is an embedded cluster, whose simulated machines ``syncline node`` manages. The server's
        version decides, since not every user may list nodes."""
        return self.cluster.mapper.version.endswith(SUFFIX)


@dataclass(frozen=True, slots=True)
class Found:
    """The explanation of an object. ``blocked``: something is wrong, not merely in progress."""

    cause: Cause
    blocked: bool


def one_line(text: str) -> str:
    """Return ``text`` on one line, cut to the maximum length."""
    flat = " ".join(text.split())
    return flat if len(flat) <= MAX_TEXT else flat[: MAX_TEXT - 1] + "…"


def warnings_of(view: View, obj: Obj) -> list[Obj]:
    """Return the Warning Events about an object, newest first."""
    about = [
        event
        for event in view.cluster.objects(EVENT, namespace_of(obj) or "default")
        if event.get("type") == "Warning" and _regards(event, obj)
    ]
    return sorted(about, key=_said_at, reverse=True)


def unread(view: View, kind: GroupKind, namespace: str) -> tuple[Cause, ...]:
    """Return a cause if objects of a kind are not readable, since there may be some."""
    why = view.cluster.unread(ObjectRef(*kind, namespace, ""))
    return (Cause(f"{kind.kind}s of {namespace}", "unread", one_line(why)),) if why else ()


def _regards(event: Obj, obj: Obj) -> bool:
    involved = dig(event, "involvedObject", default={})
    if involved.get("uid") and uid_of(obj):
        return bool(involved["uid"] == uid_of(obj))
    return (involved.get("kind"), involved.get("name")) == (obj.get("kind"), name_of(obj))


def _said_at(event: Obj) -> tuple[str, str, str]:
    stamp = event.get("lastTimestamp") or dig(event, "series", "lastObservedTime") or event.get("eventTime") or ""
    return str(stamp)[:19], resource_version(event).zfill(20), name_of(event)
