"""Binds the CronJob planner to the Jobs it makes."""

from __future__ import annotations

from datetime import datetime

from syncline.cluster.builtin.cronjob import plan as planning
from syncline.cluster.builtin.cronjob.plan import Observed
from syncline.cluster.builtin.job.observe import JOB
from syncline.cluster.builtin.said import Said
from syncline.control.cache import Snapshot
from syncline.control.controller import Watch, owner_of_kind
from syncline.control.plan import Plan, Result
from syncline.kube.objects import GroupKind, ObjectRef, name_of, uid_of

__all__ = ["CronJobController"]

CRONJOB = GroupKind("batch", "CronJob")


class CronJobController:
    """Starts Jobs by the clock."""

    name = "cronjob"
    kind = CRONJOB
    watches: tuple[Watch, ...] = (Watch(JOB, owner_of_kind(CRONJOB)),)
    reads: tuple[GroupKind, ...] = ()

    def __init__(self) -> None:
        self._said = Said()

    def observe(self, cache: Snapshot, ref: ObjectRef) -> Observed | None:
        """None when the CronJob is gone, or before the Jobs were listed once."""
        cronjob = cache.get(ref)
        if cronjob is None or not cache.has_synced(JOB):
            return None
        taken = frozenset(name_of(job) for job in cache.objects(JOB, ref.namespace))
        return Observed(cronjob, tuple(cache.owned(uid_of(cronjob), JOB)), taken)

    def plan(self, seen: Observed, now: datetime) -> Plan:
        return self._said.once(uid_of(seen.cronjob), planning.plan(seen, now), planning.REPEATED)

    def settle(
        self, seen: Observed, plan: Plan, results: tuple[Result, ...], now: datetime
    ) -> tuple[Observed, Plan] | None:
        return planning.settle(seen, plan, results)
