"""Binds the Job planner to the kinds it watches."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from syncline.cluster.builtin.job import observe as observing
from syncline.cluster.builtin.job import plan as planning
from syncline.cluster.builtin.job.observe import JOB, Observed, Orphans
from syncline.cluster.builtin.owners import selecting_owners
from syncline.cluster.builtin.pods import POD
from syncline.control.cache import Snapshot
from syncline.control.controller import Watch
from syncline.control.plan import Plan, Result
from syncline.kube.objects import GroupKind, ObjectRef

__all__ = ["JobController"]


class JobController:
    """Runs pods until enough of them succeeded."""

    name = "job"
    kind = JOB
    watches: tuple[Watch, ...] = (Watch(POD, selecting_owners(JOB)),)
    reads: tuple[GroupKind, ...] = ()

    def observe(self, cache: Snapshot, ref: ObjectRef) -> Observed | Orphans | None:
        return observing.observe(cache, ref)

    def plan(self, seen: Observed | Orphans, now: datetime) -> Plan:
        return planning.plan(seen, now)

    def settle(
        self, seen: Observed | Orphans, plan: Plan, results: tuple[Result, ...], now: datetime
    ) -> tuple[Any, Plan] | None:
        return planning.settle(seen, plan, results, now)
