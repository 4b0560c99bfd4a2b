"""How a Job runs pods to completion.

Counting, ending, suspending and scaling follow Kubernetes' job controller; see ``counting`` for why no pod is counted
twice and none is forgotten.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from syncline.base.clock import format_time
from syncline.cluster.builtin.conditions import find, without
from syncline.cluster.builtin.job.backoff import remaining_s
from syncline.cluster.builtin.job.counting import Tally, format_indexes, let_go, tally
from syncline.cluster.builtin.job.observe import Observed, Orphans, holds, is_going
from syncline.cluster.builtin.job.pods import surplus, wanted_pods
from syncline.cluster.builtin.job.verdict import Verdict, deadline, is_finished, known_verdict, verdict
from syncline.cluster.builtin.pods import instant, is_ready
from syncline.control.plan import Create, Delete, Done, Emit, Outcome, Patch, Plan, Requeue, Result, Retry, set_status
from syncline.kube.objects import Obj, dig, is_terminating, name_of

__all__ = ["COMPONENT", "plan", "settle"]

COMPONENT = "job-controller"


def plan(seen: Observed | Orphans, now: datetime) -> Plan:
    """One pass over one Job."""
    if isinstance(seen, Orphans):
        return Plan((tuple(let_go(pod, "its Job is gone") for pod in seen.pods),), why="the Job is gone")
    if seen.patches:
        return Plan((seen.patches,), why="pods are adopted or released by the selector")
    if is_terminating(seen.job):
        return _let_all_go(seen, "the Job is being deleted")
    end = is_finished(seen.job)
    return _run(seen, now) if end is None else _after_end(seen, end, now)


def _let_all_go(seen: Observed, why: str) -> Plan:
    held = tuple(let_go(pod, why) for pod in seen.pods if holds(pod))
    return Plan((held,) if held else (), why=why)


def _after_end(seen: Observed, end: Obj, now: datetime) -> Plan:
    """A finished Job holds no pod, and goes when its time to live is over."""
    held = _let_all_go(seen, "the Job is finished")
    ttl_s = dig(seen.job, "spec", "ttlSecondsAfterFinished")
    ended = instant(end.get("lastTransitionTime"))
    if held.steps or ttl_s is None or ended is None:
        return held
    left_s = (ended + timedelta(seconds=int(ttl_s)) - now).total_seconds()
    if left_s > 0:
        return Plan(outcome=Requeue(left_s, "the time to live ends"), why="the Job is finished")
    delete = Delete.of(seen.job, "its time to live is over", propagation="Foreground")
    return Plan(((delete,),), why="the time to live is over")


def _run(seen: Observed, now: datetime) -> Plan:
    known = known_verdict(seen.job)
    counted = tally(seen, ending=known is not None)
    decided = verdict(seen, counted, now)
    released = tuple(let_go(pod, "it is counted") for pod in counted.release)
    wait_s = 0.0
    changes: tuple[tuple[Create | Delete, ...], ...] = ()
    if decided is not None or seen.suspended:
        doomed = tuple(Delete.of(pod, "the Job does not need it any more") for pod in seen.active)
        changes = (doomed,) if doomed else ()
    else:
        changes, wait_s = _scale(seen, counted, now)
    status, told = _status(seen, counted, decided, now)
    steps = (*((released,) if released else ()), *changes)
    writes = set_status(seen.job, status, "the pods changed")
    outcome = _outcome(seen, decided, wait_s, now)
    return Plan(steps, outcome, _why(seen, counted, decided), (*writes, *(told if writes else ())))


def _why(seen: Observed, counted: Tally, decided: Verdict | None) -> str:
    if decided is not None:
        return f"{name_of(seen.job)}: {decided.message}"
    return f"{name_of(seen.job)}: {len(seen.active)} active, {counted.succeeded} succeeded, {counted.failed} failed"


def _scale(seen: Observed, counted: Tally, now: datetime) -> tuple[tuple[tuple[Create | Delete, ...], ...], float]:
    """Pods to delete or to make, and the seconds that a failure makes us wait."""
    done = len(counted.indexes) if seen.indexed else counted.succeeded
    if seen.completions is None:
        want = len(seen.active) if counted.succeeded else seen.parallelism
    else:
        want = min(max(seen.completions - done, 0), seen.parallelism)
    doomed = surplus(seen, counted, want)
    if doomed:
        return (tuple(Delete.of(pod, f"{want} pods are wanted") for pod in doomed),), 0.0
    going = sum(is_going(pod) for pod in seen.pods) if seen.replaces_failed_only else 0
    missing = want - len(seen.active) - going
    if missing <= 0:
        return (), 0.0
    wait_s = remaining_s(seen.pods, now)
    return ((), wait_s) if wait_s > 0 else (wanted_pods(seen, counted, missing), 0.0)


def _outcome(seen: Observed, decided: Verdict | None, wait_s: float, now: datetime) -> Outcome:
    waits = [(wait_s, "a failed pod is replaced after a while")] if wait_s > 0 else []
    until = deadline(seen)
    start = instant(dig(seen.job, "status", "startTime"))
    limit_s = dig(seen.job, "spec", "activeDeadlineSeconds")
    if decided is None and until is not None:
        waits.append(((until - now).total_seconds(), "the deadline"))
    elif decided is None and limit_s is not None and start is None and not seen.suspended:
        waits.append((float(limit_s), "the deadline"))
    return Requeue(*min(waits)) if waits else Done()


def _status(seen: Observed, counted: Tally, decided: Verdict | None, now: datetime) -> tuple[Obj, tuple[Emit, ...]]:
    """The new status, and what people are told if it is written."""
    going = sum(is_going(pod) for pod in seen.pods)
    succeeded = len(counted.indexes) if seen.indexed else counted.counted_succeeded
    numbers = {"active": len(seen.active), "succeeded": succeeded, "failed": counted.counted_failed}
    status: Obj = {name: number for name, number in numbers.items() if number}
    status |= {"ready": sum(is_ready(pod) for pod in seen.active), "terminating": going}
    uncounted = {"succeeded": list(counted.uncounted_succeeded), "failed": list(counted.uncounted_failed)}
    status["uncountedTerminatedPods"] = {side: uids for side, uids in uncounted.items() if uids}
    if seen.indexed and counted.indexes:
        status["completedIndexes"] = format_indexes(counted.indexes)
    conditions: list[Obj] = dig(seen.job, "status", "conditions", default=[])
    started = dig(seen.job, "status", "startTime")
    if decided is None:
        conditions, started, told = _suspension(seen, conditions, started, now)
    else:
        over = not seen.active and not going and counted.settled
        conditions, told = _ending(seen.job, conditions, decided, over, now)
        if over and decided.success:
            status["completionTime"] = format_time(now)
    status |= {"startTime": started} if started else {}
    return status | ({"conditions": conditions} if conditions else {}), told


def _suspension(seen: Observed, conditions: list[Obj], started: Any, now: datetime) -> tuple[list[Obj], Any, Any]:
    """The condition Suspended; the clock of the Job stops with it and starts anew."""
    old = find(conditions, "Suspended")
    was = old is not None and old.get("status") == "True"
    stamp = format_time(now)
    if seen.suspended:
        if was:
            return conditions, None, ()
        new = _condition("Suspended", "True", "JobSuspended", "Job suspended", stamp)
        told = (Emit(seen.job, "Suspended", "Job suspended", COMPONENT),)
        return [*without(conditions, "Suspended"), new], None, told
    if was:
        new = _condition("Suspended", "False", "JobResumed", "Job resumed", stamp)
        told = (Emit(seen.job, "Resumed", "Job resumed", COMPONENT),)
        return [*without(conditions, "Suspended"), new], stamp, told
    return conditions, started or stamp, ()


def _ending(
    job: Obj, conditions: list[Obj], decided: Verdict, over: bool, now: datetime
) -> tuple[list[Obj], tuple[Emit, ...]]:
    """First the announcement; the end itself when no pod is left that runs or is uncounted."""
    stamp = format_time(now)
    if find(conditions, decided.target) is None:
        announced = _condition(decided.target, "True", decided.reason, decided.message, stamp)
        conditions = [*conditions, announced]
    if not over:
        return conditions, ()
    end = _condition(decided.end, "True", decided.reason, decided.message, stamp)
    if decided.success:
        told = Emit(job, "Completed", "Job completed", COMPONENT)
    else:
        told = Emit(job, decided.reason, decided.message, COMPONENT, warning=True)
    return [*conditions, end], (told,)


def _condition(kind: str, status: str, reason: str, message: str, stamp: str) -> Obj:
    times = {"lastProbeTime": stamp, "lastTransitionTime": stamp}
    return {"type": kind, "status": status} | times | {"reason": reason, "message": message}


def settle(seen: Observed | Orphans, results: tuple[Result, ...]) -> tuple[Any, Plan] | None:
    """Events about pods made and removed."""
    if isinstance(seen, Orphans):
        return None
    events = tuple(event for result in results if (event := _event(seen.job, result)) is not None)
    if not events:
        return None
    failed = next((str(result.error) for result in results if not result.ok), "")
    outcome: Outcome = Retry(failed) if failed else Done()
    return seen, Plan((events,), outcome, "tell what became of the pods")


def _event(job: Obj, result: Result) -> Emit | None:
    match result.action, result.ok:
        case Create(), True:
            return Emit(job, "SuccessfulCreate", f"Created pod: {name_of(result.value)}", COMPONENT)
        case Create(), False:
            return Emit(job, "FailedCreate", f"Error creating: {result.error}", COMPONENT, warning=True)
        case Delete(name=name), True:
            return Emit(job, "SuccessfulDelete", f"Deleted pod: {name}", COMPONENT)
        case Patch(), _:
            return None
        case _:
            return None
