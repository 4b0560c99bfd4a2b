"""Compute the status of a Job, and the Events of its changes."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from syncline.base.clock import format_time
from syncline.cluster.builtin.conditions import find, without
from syncline.cluster.builtin.workloads.job.counting import Ledger, Tally
from syncline.cluster.builtin.workloads.job.indexes import format_indexes
from syncline.cluster.builtin.workloads.job.observe import Observed
from syncline.cluster.builtin.workloads.job.verdict import Verdict
from syncline.control.plan import Emit
from syncline.kube.objects import Obj, dig

COMPONENT = "job-controller"


@dataclass(frozen=True, slots=True)
class Numbers:
    """Number of active, ready and terminating pods."""

    active: int
    ready: int
    going: int


def status_of(
    observed: Observed, counted: Tally, written: Ledger, decided: Verdict | None, numbers: Numbers, now: datetime
) -> tuple[Obj, tuple[Emit, ...]]:
    """Return the new status, and the events to emit when it is written."""
    counters = {"active": numbers.active, "succeeded": written.succeeded, "failed": written.failed}
    status: Obj = {name: number for name, number in counters.items() if number}
    status |= {"ready": numbers.ready, "terminating": numbers.going}
    uncounted = {"succeeded": list(written.uncounted_succeeded), "failed": list(written.uncounted_failed)}
    status["uncountedTerminatedPods"] = {side: uids for side, uids in uncounted.items() if uids}
    if counted.done:
        status["completedIndexes"] = format_indexes(counted.done)
    if counted.broken is not None:
        status["failedIndexes"] = format_indexes(counted.broken)
    conditions: list[Obj] = dig(observed.job, "status", "conditions", default=[])
    started = dig(observed.job, "status", "startTime")
    if decided is None:
        conditions, started, report = _suspension(observed, conditions, started, now)
    else:
        started = started or (None if observed.suspended else format_time(now))
        over = not numbers.active and not numbers.going and written.settled and counted.written == counted.done
        conditions, report = _ending(observed.job, conditions, decided, over, now)
        if over and decided.success:
            status["completionTime"] = format_time(now)
            report = (*_too_many(observed, written), *report)
    status |= {"startTime": started} if started else {}
    return status | ({"conditions": conditions} if conditions else {}), report


def _suspension(observed: Observed, conditions: list[Obj], started: Any, now: datetime) -> tuple[list[Obj], Any, Any]:
    """Set the condition Suspended; suspending stops the Job's clock, resuming restarts it."""
    old = find(conditions, "Suspended")
    was = old is not None and old.get("status") == "True"
    stamp = format_time(now)
    if observed.suspended:
        if was:
            return conditions, None, ()
        new = _condition("Suspended", "True", "JobSuspended", "Job suspended", stamp)
        event = (Emit(observed.job, "Suspended", "Job suspended", COMPONENT),)
        return _in_place(conditions, new), None, event
    if was:
        new = _condition("Suspended", "False", "JobResumed", "Job resumed", stamp)
        event = (Emit(observed.job, "Resumed", "Job resumed", COMPONENT),)
        return _in_place(conditions, new), stamp, event
    return conditions, started or stamp, ()


def _in_place(conditions: list[Obj], new: Obj) -> list[Obj]:
    if find(conditions, new["type"]) is None:
        return [*conditions, new]
    return [new if each.get("type") == new["type"] else each for each in conditions]


def _ending(
    job: Obj, conditions: list[Obj], decided: Verdict, over: bool, now: datetime
) -> tuple[list[Obj], tuple[Emit, ...]]:
    """Announce the end; then set the final condition when no pod runs or is uncounted."""
    stamp = format_time(now)
    if find(conditions, decided.target) is None:
        announced = _condition(decided.target, "True", decided.reason, decided.message, stamp)
        conditions = [*conditions, announced]
    if not over:
        return conditions, ()
    end = _condition(decided.end, "True", decided.reason, decided.message, stamp)
    if decided.success:
        event = Emit(job, "Completed", "Job completed", COMPONENT)
    else:
        event = Emit(job, decided.reason, decided.message, COMPONENT, warning=True)
    return [*without(conditions, decided.end), end], (event,)


def _too_many(observed: Observed, written: Ledger) -> tuple[Emit, ...]:
    if observed.completions is None or written.succeeded <= observed.completions:
        return ()
    message = "Too many succeeded pods running after completion count reached"
    return (Emit(observed.job, "TooManySucceededPods", message, COMPONENT, warning=True),)


def _condition(kind: str, status: str, reason: str, message: str, stamp: str) -> Obj:
    times = {"lastProbeTime": stamp, "lastTransitionTime": stamp}
    return {"type": kind, "status": status} | times | {"reason": reason, "message": message}
