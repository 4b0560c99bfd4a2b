"""Start one Job at each scheduled time, and retain a few finished ones.

The Job's name derives from its scheduled time, so a crash before it is recorded starts nothing twice; ``status.active``
records started Jobs once the create has succeeded. Source: Kubernetes' cron job controller.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from syncline.base.clock import format_time, time_or_none
from syncline.cluster.builtin.actions import ConfirmAbsent
from syncline.cluster.builtin.owners import owner_reference
from syncline.cluster.builtin.workloads.cronjob.schedule import Every, Schedule, parse_schedule
from syncline.cluster.builtin.workloads.job.observe import JOB
from syncline.cluster.builtin.workloads.job.verdict import is_finished
from syncline.control.plan import Create, Delete, Emit, Outcome, Plan, Requeue, Result, Retry, Stalled, set_status
from syncline.kube.errors import AlreadyExists
from syncline.kube.objects import (
    Obj,
    ObjectRef,
    dig,
    is_terminating,
    name_of,
    namespace_of,
    resource_version,
    uid_of,
)

COMPONENT = "cronjob-controller"
REPEATED = frozenset({"JobAlreadyActive", "TooManyMissedTimes", "UnexpectedJob"})
"""Reasons of Events that each reconcile would repeat."""
SCHEDULED = "batch.kubernetes.io/cronjob-scheduled-timestamp"
"""Annotation of a Job: its scheduled time, in the schedule's zone."""
MANY_MISSED = 100
"""Missed times from which a warning is emitted, as in Kubernetes."""


@dataclass(frozen=True, slots=True)
class Observed:
    """``jobs`` are those that the CronJob controls, with any creator; ``taken`` are the names of all Jobs in the
    namespace."""

    cronjob: Obj
    jobs: tuple[Obj, ...]
    taken: frozenset[str] = frozenset()

    @property
    def noted(self) -> list[Obj]:
        """References to the Jobs in ``status.active``."""
        return list(dig(self.cronjob, "status", "active", default=[]))

    @property
    def active(self) -> list[Obj]:
        """The recorded Jobs that still run."""
        ended = {uid_of(job) for job in self.jobs if is_finished(job) is not None}
        return [reference for reference in self.noted if reference.get("uid") not in ended]


@dataclass(frozen=True, slots=True)
class _Start:
    """A scheduled time and its Job; ``made`` is the Job if it exists but is not recorded."""

    due: datetime
    job: Obj
    made: Obj | None = None


def plan(observed: Observed, now: datetime) -> Plan:
    """Record ended Jobs; start what is due; delete Jobs beyond the history limits."""
    missing = _missing(observed)
    if missing:
        return missing
    report = (*_completed(observed), *_unexpected(observed))
    status = set_status(observed.cronjob, _status(observed, observed.active), "Jobs ended")
    steps = (report,) if report else ()
    if is_terminating(observed.cronjob):
        return Plan(steps, why="the CronJob is being deleted", status=status)
    gone = _beyond_history(observed)
    cleaning = (gone,) if gone else ()
    spec = observed.cronjob.get("spec") or {}
    if spec.get("suspend"):
        return Plan((*steps, *cleaning), why="the CronJob is suspended", status=status)
    schedule = parse_schedule(str(spec.get("schedule")), str(spec.get("timeZone") or ""))
    if schedule is None:
        stalled = Stalled("the schedule cannot be read", "correct spec.schedule")
        return Plan((*steps, *cleaning), stalled, "no due time is known", status)
    outcome = Requeue(_seconds_to_next(schedule, now), "the next due time", background=True)
    due, many = _due(observed, schedule, now)
    if many:
        steps = (*steps, (_say(observed, "TooManyMissedTimes", _TOO_MANY, warning=True),))
    starting = None if due is None else _start(observed, schedule, due)
    if starting is None:
        return Plan((*steps, *cleaning), outcome, "no time is due", status)
    why = f"{format_time(starting.due)} is due"
    policy = spec.get("concurrencyPolicy")
    if policy == "Forbid" and observed.active:
        text = "Not starting job because prior execution is running and concurrency policy is Forbid"
        return Plan((*steps, (_say(observed, "JobAlreadyActive", text),), *cleaning), outcome, why, status)
    if starting.made is not None:
        noted = _status(observed, [*observed.active, _reference(starting.made)], starting.due)
        return Plan((*steps, *cleaning), outcome, why, set_status(observed.cronjob, noted, "the Job was made before"))
    replaced = _replaced(observed) if policy == "Replace" else ()
    return Plan((*steps, *((replaced,) if replaced else ()), (Create(starting.job, why),), *cleaning), outcome, why)


_TOO_MANY = "too many missed start times. Set or decrease .spec.startingDeadlineSeconds or check clock skew"


def _say(observed: Observed, reason: str, text: str, *, warning: bool = False) -> Emit:
    return Emit(observed.cronjob, reason, text, COMPONENT, warning=warning)


def _missing(observed: Observed) -> Plan | None:
    """Remove a recorded Job that no longer exists, once the server confirms it."""
    known = {uid_of(job) for job in observed.jobs}
    gone = [reference for reference in observed.noted if reference.get("uid") not in known]
    if not gone:
        return None
    confirmed = tuple(
        ConfirmAbsent(
            ObjectRef(JOB.group, JOB.kind, namespace_of(observed.cronjob), str(each.get("name"))),
            str(each.get("uid")),
            "it is noted as active",
        )
        for each in gone
    )
    left = [reference for reference in observed.noted if reference not in gone]
    status = set_status(observed.cronjob, _status(observed, left), "active Jobs are gone")
    report = tuple(_say(observed, "MissingJob", f"Active job went missing: {each.get('name')}") for each in gone)
    return Plan((confirmed, status, report), why="active Jobs went missing")


def _completed(observed: Observed) -> tuple[Emit, ...]:
    noted = {reference.get("uid") for reference in observed.noted}
    ends = ((job, is_finished(job)) for job in observed.jobs if uid_of(job) in noted)
    return tuple(
        _say(observed, "SawCompletedJob", f"Saw completed job: {name_of(job)}, condition: {end['type']}")
        for job, end in ends
        if end is not None
    )


def _unexpected(observed: Observed) -> tuple[Emit, ...]:
    noted = {reference.get("uid") for reference in observed.noted}
    return tuple(
        _say(
            observed,
            "UnexpectedJob",
            f"Saw a job that the controller did not create or forgot: {name_of(job)}",
            warning=True,
        )
        for job in observed.jobs
        if uid_of(job) not in noted and is_finished(job) is None and not is_terminating(job)
    )


def _seconds_to_next(schedule: Schedule | Every, now: datetime) -> float:
    following = schedule.following(now)
    return 86_400.0 if following is None else (following - now).total_seconds()


def _due(observed: Observed, schedule: Schedule | Every, now: datetime) -> tuple[datetime | None, bool]:
    """Return the latest scheduled time since the last start, and whether too many were missed; times before the
    starting deadline are skipped."""
    earliest = time_or_none(dig(observed.cronjob, "status", "lastScheduleTime"))
    earliest = earliest or time_or_none(dig(observed.cronjob, "metadata", "creationTimestamp")) or now
    limit_s = dig(observed.cronjob, "spec", "startingDeadlineSeconds")
    if limit_s is not None:
        earliest = max(earliest, now - timedelta(seconds=int(limit_s)))
    latest = schedule.latest(earliest, now)
    first = schedule.following(earliest)
    second = schedule.following(first) if first is not None else None
    if latest is None or first is None or second is None:
        return latest, False
    return latest, (now - first) / (second - first) + 1 > MANY_MISSED + 1


def _start(observed: Observed, schedule: Schedule | Every, due: datetime) -> _Start | None:
    """Return None if the scheduled time was already handled."""
    job = _job(observed.cronjob, schedule, due)
    noted = any(reference.get("name") == name_of(job) for reference in observed.active)
    if noted or time_or_none(dig(observed.cronjob, "status", "lastScheduleTime")) == due:
        return None
    made = next((each for each in observed.jobs if name_of(each) == name_of(job)), None)
    if made is None and name_of(job) in observed.taken:
        return None  # another owner's Job has the name; it stays, as in Kubernetes
    return _Start(due, job, made)


def _job(cronjob: Obj, schedule: Schedule | Every, due: datetime) -> Obj:
    template = dig(cronjob, "spec", "jobTemplate", default={})
    notes = dict(dig(template, "metadata", "annotations", default={}))
    local = due.astimezone(schedule.zone).isoformat()
    notes[SCHEDULED] = local.replace("+00:00", "Z")
    metadata = {
        "name": f"{name_of(cronjob)}-{int(due.timestamp()) // 60}",
        "namespace": namespace_of(cronjob),
        "labels": dict(dig(template, "metadata", "labels", default={})),
        "annotations": notes,
        "ownerReferences": [owner_reference(cronjob)],
    }
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": dict(template.get("spec") or {})}


def _replaced(observed: Observed) -> tuple[Delete, ...]:
    active = {reference.get("uid") for reference in observed.active}
    doomed = (job for job in observed.jobs if uid_of(job) in active and not is_terminating(job))
    return tuple(Delete.of(job, "the next one takes its place", propagation="Background") for job in doomed)


def _beyond_history(observed: Observed) -> tuple[Delete, ...]:
    gone: list[Delete] = []
    for end, field in (("Complete", "successfulJobsHistoryLimit"), ("Failed", "failedJobsHistoryLimit")):
        limit = dig(observed.cronjob, "spec", field)
        if limit is None:
            continue
        ended = [job for job in observed.jobs if dig(is_finished(job), "type") == end and not is_terminating(job)]
        ended.sort(key=lambda job: (str(dig(job, "status", "startTime", default="~")), name_of(job)))
        too_many = ended[: max(len(ended) - int(limit), 0)]
        gone += [Delete.of(job, "beyond the history limit", propagation="Background") for job in too_many]
    return tuple(gone)


def _reference(job: Obj) -> Obj:
    return {
        "kind": "Job",
        "namespace": namespace_of(job),
        "name": name_of(job),
        "uid": uid_of(job),
        "apiVersion": "batch/v1",
        "resourceVersion": resource_version(job),
    }


def _status(observed: Observed, active: list[Obj], started: datetime | None = None) -> Obj:
    status = {key: value for key, value in (observed.cronjob.get("status") or {}).items() if key != "active"}
    status |= {"active": active} if active else {}
    status |= {"lastScheduleTime": format_time(started)} if started is not None else {}
    won = [job for job in observed.jobs if dig(is_finished(job), "type") == "Complete"]
    ends = [str(dig(job, "status", "completionTime", default="")) for job in won]
    latest = max((*ends, str(status.get("lastSuccessfulTime") or "")))
    return status | ({"lastSuccessfulTime": latest} if latest else {})


def settle(observed: Observed, plan: Plan, results: tuple[Result, ...]) -> tuple[Any, Plan] | None:
    """Emit events for Jobs created and deleted; record a created Job with its uid."""
    events: list[Emit] = []
    status: tuple[Any, ...] = ()
    failed = ""
    removed = {result.action.uid for result in results if isinstance(result.action, Delete) and result.ok}
    left = [reference for reference in observed.active if reference.get("uid") not in removed]
    for result in results:
        match result.action, result.ok:
            case Create(obj=job), True:
                due = time_or_none(dig(job, "metadata", "annotations", SCHEDULED))
                noted = _status(observed, [*left, _reference(result.value)], due)
                status = set_status(observed.cronjob, noted, "a Job was started")
                events.append(_say(observed, "SuccessfulCreate", f"Created job {name_of(job)}"))
            case Create(), False if not isinstance(result.error, AlreadyExists):
                failed = str(result.error)
                events.append(_say(observed, "FailedCreate", f"Error creating job: {failed}", warning=True))
            case Delete(name=name), True:
                events.append(_say(observed, "SuccessfulDelete", f"Deleted job {name}"))
            case Delete(), False:
                events.append(_say(observed, "FailedDelete", f"Deleted job: {result.error}", warning=True))
            case _:
                continue
    if not events and not status:
        return None
    outcome: Outcome = Retry(failed) if failed else plan.outcome
    return observed, Plan((tuple(events),) if events else (), outcome, "tell what became of the Jobs", status)
