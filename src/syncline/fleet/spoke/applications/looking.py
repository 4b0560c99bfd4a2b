"""What the agent looks at to say why a resource of an Application is not well: the object, its pods, their Events.

It reads them when the Application says that something is wrong, and watches none of them. Nothing that a program in a
container wrote is in the result, since nothing here could mask values of Secrets in it.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Final

from syncline.apply.causes.objects import cause_of
from syncline.apply.causes.view import View
from syncline.base.action import Action
from syncline.base.clock import Clock, time_or_none
from syncline.control.cache import Cache
from syncline.fleet.pull.reporting.causes import rows_of
from syncline.kube import client
from syncline.kube.client import Request, Response
from syncline.kube.mapper import Mapper
from syncline.kube.objects import GroupKind, Obj, ObjectRef, dig

MAX_TARGETS: Final = 10
"""Resources of one Application that are looked at."""
MAX_NAMESPACES: Final = 3
PAGE: Final = 500
"""Pods, ReplicaSets or Events of one namespace that are read."""
LOOK_S: Final = 30.0
"""Seconds until the next look while something is wrong; doubled while nothing else is found."""
MOST_S: Final = 120.0
"""Most seconds between two looks."""
LONG_S: Final = 20.0
"""Seconds that a resource may be Progressing before it is looked at."""
_WORKLOADS: Final = frozenset({"Deployment", "ReplicaSet", "StatefulSet", "DaemonSet", "Job", "Pod"})
_BELOW: Final = (GroupKind("apps", "ReplicaSet"), GroupKind("", "Pod"))
_EVENT: Final = GroupKind("", "Event")


@dataclass(frozen=True, slots=True)
class LookInto(Action):
    """Read these resources of the cluster, and what is below them."""

    targets: tuple[ObjectRef, ...]
    reason: str

    def describe(self) -> str:
        return f"look into {', '.join(map(str, self.targets))}"


@dataclass(frozen=True, slots=True)
class Seen:
    """What a look found: ``causes`` as rows of a report; ``blocked``: something is wrong, not merely under way."""

    causes: tuple[Obj, ...]
    blocked: bool


@dataclass(frozen=True, slots=True)
class LookedInto:
    """The result of the last look, and when it was."""

    at: datetime
    targets: tuple[ObjectRef, ...]
    seen: Mapping[ObjectRef, Seen] = field(default_factory=dict)
    again_s: float = LOOK_S
    """Seconds until the next look."""

    def after(self, before: LookedInto | None) -> LookedInto:
        """Return the same with the time until the next look, from the look before."""
        if before is None or (before.targets, before.seen) != (self.targets, self.seen):
            return self
        return replace(self, again_s=min(before.again_s * 2, MOST_S))


def targets_of(app: Obj, now: datetime) -> tuple[tuple[ObjectRef, ...], float]:
    """Return the resources to look at, those that failed first, and in how many seconds there may be more (0: none)."""
    rows = [one for one in dig(app, "status", "resources") or () if isinstance(one, dict)]
    results = dig(app, "status", "operationState", "syncResult", "resources") or ()
    failed = [_ref(one) for one in results if isinstance(one, dict) and one.get("hookPhase") in ("Failed", "Error")]
    failed += [_ref(one) for one in rows if dig(one, "health", "status") == "Degraded"]
    going = [_ref(one) for one in rows if dig(one, "health", "status") == "Progressing"]
    since = time_or_none(dig(app, "status", "health", "lastTransitionTime")) or time_or_none(
        dig(app, "metadata", "creationTimestamp")
    )
    left = LONG_S - (now - since).total_seconds() if going and since is not None else 0.0
    found = [*failed, *(going if left <= 0 else ())]
    return tuple(dict.fromkeys(found))[:MAX_TARGETS], max(left, 0.0)


def is_due(looked: LookedInto | None, targets: tuple[ObjectRef, ...], now: datetime) -> bool:
    """Return whether to look now."""
    if not targets:
        return False
    return looked is None or looked.targets != targets or now - looked.at >= timedelta(seconds=looked.again_s)


def _ref(row: Obj) -> ObjectRef:
    return ObjectRef(*(str(row.get(part) or "") for part in ("group", "kind", "namespace", "name")))


@dataclass(frozen=True, slots=True)
class LookIntoHandler:
    """Performs :class:`LookInto`; what the agent may not read is left out."""

    mapper: Mapper
    clock: Clock

    def handle(self, action: LookInto) -> Generator[Request, Response, LookedInto]:
        cache = Cache(self.mapper)
        there: dict[ObjectRef, Obj] = {}
        for ref in action.targets:
            info = self.mapper.preferred(ref.group_kind)
            if info is None:
                continue
            answer = yield client.get(info, ref.namespace if info.namespaced else "", ref.name)
            if answer.ok:
                there[ref] = {"apiVersion": info.api_version, "kind": info.kind} | answer.obj
                cache.put(ref.group_kind, there[ref])
        spaces = sorted({ref.namespace for ref in there if ref.namespace})[:MAX_NAMESPACES]
        for space in spaces:
            pods = any(ref.kind in _WORKLOADS for ref in there if ref.namespace == space)
            yield from self._listed(cache, _EVENT, space, "type=Warning")
            for kind in _BELOW if pods else ():
                yield from self._listed(cache, kind, space, "")
        view = View(cache, self.clock.now(), quotes=False)
        return LookedInto(self.clock.now(), action.targets, {ref: _seen(view, obj) for ref, obj in there.items()})

    def _listed(self, cache: Cache, kind: GroupKind, namespace: str, only: str) -> Generator[Request, Response, None]:
        info = self.mapper.preferred(kind)
        if info is None:
            return
        answer = yield client.list_(info, namespace, field_selector=only, limit=PAGE)
        for one in answer.obj.get("items") or () if answer.ok else ():
            cache.put(kind, {"apiVersion": info.api_version, "kind": info.kind} | one)


def _seen(view: View, obj: Obj) -> Seen:
    found = cause_of(view, obj)
    causes = found.cause.because or ((found.cause,) if found.blocked else ())
    return Seen(tuple(rows_of(causes)), found.blocked)
