"""Define the CronJob controller and its watch of Jobs."""

from __future__ import annotations

from datetime import datetime

from syncline.cluster.builtin.said import Said
from syncline.cluster.builtin.workloads.cronjob import plan as planning
from syncline.cluster.builtin.workloads.cronjob.plan import Observed
from syncline.cluster.builtin.workloads.job.observe import JOB
from syncline.control.cache import Snapshot
from syncline.control.controller import Controller, Watch, owner_of_kind
from syncline.control.plan import Plan, Result
from syncline.kube.objects import GroupKind, ObjectRef, name_of, uid_of

CRONJOB = GroupKind("batch", "CronJob")


def _observe(cache: Snapshot, ref: ObjectRef) -> Observed | None:
    """Return None if the CronJob is deleted, or before the Jobs are listed."""
    cronjob = cache.get(ref)
    if cronjob is None or not cache.has_synced(JOB):
        return None
    taken = frozenset(name_of(job) for job in cache.objects(JOB, ref.namespace))
    return Observed(cronjob, tuple(cache.owned(uid_of(cronjob), JOB)), taken)


def _settle(observed: Observed, plan: Plan, results: tuple[Result, ...], now: datetime) -> tuple[Observed, Plan] | None:
    return planning.settle(observed, plan, results)


def cronjob_controller() -> Controller[Observed]:
    """Return the controller that starts Jobs on schedule."""
    said = Said()

    def plan(observed: Observed, now: datetime) -> Plan:
        return said.once(uid_of(observed.cronjob), planning.plan(observed, now), planning.REPEATED)

    return Controller(
        name="cronjob",
        kind=CRONJOB,
        watches=(Watch(JOB, owner_of_kind(CRONJOB)),),
        observe=_observe,
        plan=plan,
        settle=_settle,
    )
