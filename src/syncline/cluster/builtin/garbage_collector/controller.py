"""Binds the garbage collector to every kind there is."""

from __future__ import annotations

from datetime import datetime

from syncline.cluster.builtin.garbage_collector import observe as observing
from syncline.cluster.builtin.garbage_collector import plan as planning
from syncline.cluster.builtin.garbage_collector.observe import Observed
from syncline.cluster.builtin.owners import ownership_differs
from syncline.control.cache import Snapshot
from syncline.control.controller import Watch
from syncline.control.plan import Plan
from syncline.kube.objects import GroupKind, ObjectRef

__all__ = ["GarbageCollector"]


class GarbageCollector:
    """Deletes what lost its owners; carries out foreground and orphan deletion.

    Its keys are objects of any kind; ``kind`` names one of them, because a controller has to name one.
    """

    name = "garbage-collector"
    kind = GroupKind("", "Pod")
    concerns = staticmethod(ownership_differs)
    watches: tuple[Watch, ...] = (Watch(None, observing.concerned, ownership_differs),)
    reads: tuple[GroupKind, ...] = ()

    def observe(self, cache: Snapshot, ref: ObjectRef) -> Observed | None:
        return observing.observe(cache, ref)

    def plan(self, seen: Observed, now: datetime) -> Plan:
        return planning.plan(seen, now)
