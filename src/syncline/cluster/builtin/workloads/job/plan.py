"""Plan how a Job runs pods to completion.

Counting, ending, suspending and scaling follow Kubernetes' job controller; ``counting`` explains why each pod is
counted exactly once.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, TypeAlias

from syncline.base.clock import time_or_none
from syncline.cluster.builtin.pods import is_ready
from syncline.cluster.builtin.workloads.job.counting import Ledger, Tally, ledger, let_go, tally
from syncline.cluster.builtin.workloads.job.observe import Observed, Orphans, holds, is_going
from syncline.cluster.builtin.workloads.job.pods import surplus, wanted_pods
from syncline.cluster.builtin.workloads.job.status import COMPONENT, Numbers, status_of
from syncline.cluster.builtin.workloads.job.verdict import Verdict, deadline, is_finished, verdict
from syncline.control.plan import Create, Delete, Done, Emit, Outcome, Patch, Plan, Requeue, Result, Retry, set_status
from syncline.kube.objects import Obj, dig, is_terminating, name_of

__all__ = ["COMPONENT", "plan", "settle"]

Steps: TypeAlias = tuple[tuple[Create | Delete | Patch, ...], ...]


def plan(observed: Observed | Orphans, now: datetime) -> Plan:
    """Return the plan of one reconcile of one Job."""
    if isinstance(observed, Orphans):
        return Plan((tuple(let_go(pod, "its Job is gone") for pod in observed.pods),), why="the Job is gone")
    end = is_finished(observed.job)
    if observed.managed_elsewhere:
        return (
            _time_to_live(observed.job, end, now) if end is not None else Plan(why="another controller manages the Job")
        )
    if observed.patches:
        return Plan((observed.patches,), why="pods are adopted or released by the selector")
    if is_terminating(observed.job):
        return _let_all_go(observed, "the Job is being deleted")
    if end is None:
        return _run(observed, now)
    held = _let_all_go(observed, "the Job is finished")
    return held if held.steps else _time_to_live(observed.job, end, now)


def _let_all_go(observed: Observed, why: str) -> Plan:
    held = tuple(let_go(pod, why) for pod in observed.pods if holds(pod))
    return Plan((held,) if held else (), why=why)


def _time_to_live(job: Obj, end: Obj, now: datetime) -> Plan:
    """Delete a finished Job, with its pods, when its time to live is over."""
    ttl_s = dig(job, "spec", "ttlSecondsAfterFinished")
    ended = time_or_none(end.get("lastTransitionTime"))
    if is_terminating(job) or ttl_s is None or ended is None:
        return Plan(why="the Job is finished")
    left_s = (ended + timedelta(seconds=int(ttl_s)) - now).total_seconds()
    if left_s > 0:
        return Plan(outcome=Requeue(left_s, "the time to live ends"), why="the Job is finished")
    delete = Delete.of(job, "its time to live is over", propagation="Foreground")
    return Plan(((delete,),), why="the time to live is over")


@dataclass(frozen=True, slots=True)
class _Decision:
    """Decisions of one reconcile, before its creates and deletes are executed."""

    counted: Tally
    verdict: Verdict | None
    written: Ledger
    changes: Steps
    wait_s: float


def _decide(observed: Observed, now: datetime) -> _Decision:
    counted = tally(observed)
    decided = verdict(observed, counted, now)
    written = ledger(observed, counted, decided.success if decided is not None else None)
    changes: Steps = ()
    wait_s = 0.0
    if decided is not None:
        changes = _as_step(Delete.of(pod, "the Job does not need it any more") for pod in observed.active)
    elif observed.suspended:
        changes = _remove(observed.active, "the Job is suspended")
    else:
        changes, wait_s = _scale(observed, counted, now)
    return _Decision(counted, decided, written, changes, wait_s)


def _run(observed: Observed, now: datetime) -> Plan:
    """Execute creates and deletes first; then :func:`settle` writes the status with their results."""
    pass_ = _decide(observed, now)
    released = _as_step(let_go(pod, "it is counted") for pod in pass_.written.release)
    why = _why(observed, pass_)
    outcome = _outcome(observed, pass_, now)
    if pass_.changes:
        return Plan((*released, *pass_.changes), outcome, why)
    active = 0 if pass_.wait_s > 0 else len(observed.active)  # Kubernetes reports none while it waits
    return Plan(released, outcome, why, _status(observed, pass_, _numbers(observed, active=active), now))


def _as_step(actions: Any) -> Steps:
    step = tuple(actions)
    return (step,) if step else ()


def _remove(pods: list[Obj], why: str) -> Steps:
    """Release, then delete pods that do not count."""
    released = _as_step(let_go(pod, why) for pod in pods if holds(pod))
    return (*released, *_as_step(Delete.of(pod, why) for pod in pods))


def _why(observed: Observed, pass_: _Decision) -> str:
    if pass_.verdict is not None:
        return f"{name_of(observed.job)}: {pass_.verdict.message}"
    counted = pass_.counted
    counts = f"{len(observed.active)} active, {counted.succeeded} succeeded, {counted.failed} failed"
    return f"{name_of(observed.job)}: {counts}"


def _scale(observed: Observed, counted: Tally, now: datetime) -> tuple[Steps, float]:
    """Return the pods to delete or create, and the seconds to wait because of failures."""
    active = len(observed.active)
    if observed.completions is None:
        want = active if counted.succeeded else observed.parallelism
    else:
        want = min(max(observed.completions - counted.succeeded, 0), observed.parallelism)
    doomed = surplus(observed, want)
    if doomed:
        return _remove(doomed, f"{want} pods are wanted"), 0.0
    going = sum(is_going(pod) for pod in observed.pods) if observed.replaces_failed_only else 0
    missing = want - active - going
    return wanted_pods(observed, counted, missing, now) if missing > 0 else ((), 0.0)


def _outcome(observed: Observed, pass_: _Decision, now: datetime) -> Outcome:
    waits = [(pass_.wait_s, "a failed pod is replaced after a while")] if pass_.wait_s > 0 else []
    until = deadline(observed)
    start = time_or_none(dig(observed.job, "status", "startTime"))
    limit_s = dig(observed.job, "spec", "activeDeadlineSeconds")
    if pass_.verdict is None and until is not None:
        waits.append(((until - now).total_seconds(), "the deadline"))
    elif pass_.verdict is None and limit_s is not None and start is None and not observed.suspended:
        waits.append((float(limit_s), "the deadline"))
    return Requeue(*min(waits)) if waits else Done()


def _numbers(observed: Observed, *, active: int, removed: tuple[str, ...] = ()) -> Numbers:
    ready = sum(is_ready(pod) for pod in observed.active if name_of(pod) not in removed)
    return Numbers(active, ready, sum(is_going(pod) for pod in observed.pods) + len(removed))


def _status(observed: Observed, pass_: _Decision, numbers: Numbers, now: datetime) -> tuple[Any, ...]:
    status, report = status_of(observed, pass_.counted, pass_.written, pass_.verdict, numbers, now)
    writes = set_status(observed.job, status, "the pods changed")
    return (*writes, *(report if writes else ()))


def settle(
    observed: Observed | Orphans, plan: Plan, results: tuple[Result, ...], now: datetime
) -> tuple[Any, Plan] | None:
    """After creates or deletes, write the status with their results, and events."""
    if isinstance(observed, Orphans) or not any(isinstance(result.action, Create | Delete) for result in results):
        return None
    if is_finished(observed.job) is not None:
        return None
    made = sum(result.ok for result in results if isinstance(result.action, Create))
    removed = tuple(result.action.name for result in results if isinstance(result.action, Delete) and result.ok)
    numbers = _numbers(observed, active=len(observed.active) + made - len(removed), removed=removed)
    events = tuple(event for result in results if (event := _event(observed.job, result)) is not None)
    failed = next((str(result.error) for result in results if not result.ok), "")
    outcome: Outcome = Retry(failed) if failed else plan.outcome
    status = _status(observed, _decide(observed, now), numbers, now)
    return observed, Plan((events,), outcome, "tell what became of the pods", status)


def _event(job: Obj, result: Result) -> Emit | None:
    match result.action, result.ok:
        case Create(), True:
            return Emit(job, "SuccessfulCreate", f"Created pod: {name_of(result.value)}", COMPONENT)
        case Create(), False:
            return Emit(job, "FailedCreate", f"Error creating: {result.error}", COMPONENT, warning=True)
        case Delete(name=name), True:
            return Emit(job, "SuccessfulDelete", f"Deleted pod: {name}", COMPONENT)
        case _:
            return None
