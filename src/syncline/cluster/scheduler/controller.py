"""Binds the scheduler to pods and nodes."""

from __future__ import annotations

from datetime import datetime

from syncline.cluster.scheduler import observe as observing
from syncline.cluster.scheduler import plan as planning
from syncline.cluster.scheduler.observe import BUDGET, NAMESPACE, NODE, POD, STORAGE, Observed
from syncline.control.cache import Snapshot
from syncline.control.controller import Watch
from syncline.control.plan import Plan, Result
from syncline.kube.objects import GroupKind, ObjectRef
from syncline.kube.scheduling import Counted

__all__ = ["SchedulerController"]


class SchedulerController:
    """Finds nodes for pods of ``default-scheduler``."""

    name = "scheduler"
    kind = NODE
    watches: tuple[Watch, ...] = (
        Watch(POD, observing.concerned_by_pod),
        Watch(NODE, observing.concerned_by_node),
        *(Watch(kind, observing.concerned_by_storage) for kind in STORAGE),
    )
    reads: tuple[GroupKind, ...] = (NAMESPACE, BUDGET)
    indices = observing.indices()

    def __init__(self) -> None:
        self._counted = Counted()

    def observe(self, cache: Snapshot, ref: ObjectRef) -> Observed | None:
        return observing.observe(cache, ref, self._counted)

    def plan(self, seen: Observed, now: datetime) -> Plan:
        return planning.plan(seen, now)

    def settle(
        self, seen: Observed, plan: Plan, results: tuple[Result, ...], now: datetime
    ) -> tuple[Observed, Plan] | None:
        return planning.settle(seen, results, now)
