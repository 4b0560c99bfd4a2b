"""Starts a Job at each due time, once, and keeps a few finished ones.

The Job's name derives from its due time, so a crash between making the Job and noting it starts nothing twice.
Source: Kubernetes' cron job controller.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from syncline.base.clock import format_time
from syncline.cluster.builtin.cronjob.schedule import Schedule, parse_schedule
from syncline.cluster.builtin.job.verdict import is_finished
from syncline.cluster.builtin.owners import owner_reference
from syncline.cluster.builtin.pods import created_at, instant
from syncline.control.plan import Create, Delete, Emit, Plan, Requeue, Stalled, set_status
from syncline.kube.objects import Obj, dig, is_terminating, name_of, namespace_of, resource_version, uid_of

__all__ = ["Observed", "plan"]

COMPONENT = "cronjob-controller"


@dataclass(frozen=True, slots=True)
class Observed:
    cronjob: Obj
    jobs: tuple[Obj, ...]

    @property
    def active(self) -> list[Obj]:
        return [job for job in self.jobs if is_finished(job) is None]


def plan(seen: Observed, now: datetime) -> Plan:
    """Old Jobs go; a due one starts; then the status, and the next due time."""
    spec = seen.cronjob.get("spec") or {}
    if is_terminating(seen.cronjob):
        return Plan(why="the CronJob is being deleted")
    gone = _beyond_history(seen)
    if gone:
        return Plan((gone,), why="finished Jobs beyond the history limits go")
    schedule = parse_schedule(str(spec.get("schedule")), str(spec.get("timeZone") or ""))
    if schedule is None:
        return Plan(outcome=Stalled("the schedule cannot be read", "correct spec.schedule"), why="no due time is known")
    last = instant(dig(seen.cronjob, "status", "lastScheduleTime"))
    due = None if spec.get("suspend") else _due(seen, schedule, last, now)
    steps, started = _start(seen, due) if due is not None else ((), False)
    status = _status(seen, due if started else None)
    outcome = Requeue(_seconds_to_next(schedule, now), "the next due time", background=True)
    return Plan(steps, outcome, _why(due), set_status(seen.cronjob, status, "Jobs started or ended"))


def _why(due: datetime | None) -> str:
    return "no time is due" if due is None else f"{format_time(due)} is due"


def _seconds_to_next(schedule: Schedule, now: datetime) -> float:
    following = schedule.following(now)
    return 86_400.0 if following is None else (following - now).total_seconds()


def _due(seen: Observed, schedule: Schedule, last: datetime | None, now: datetime) -> datetime | None:
    """The latest due time that was not started; one that is older than the starting deadline is missed for good."""
    earliest = last or created_at(seen.cronjob)
    limit_s = dig(seen.cronjob, "spec", "startingDeadlineSeconds")
    if limit_s is not None:
        earliest = max(earliest, now - timedelta(seconds=int(limit_s)))
    return schedule.latest(earliest, now)


def _start(seen: Observed, due: datetime) -> tuple[tuple[tuple[Create | Delete | Emit, ...], ...], bool]:
    """The steps that start the Job, and whether the time counts as started."""
    job = _job(seen.cronjob, due)
    if any(name_of(each) == name_of(job) for each in seen.jobs):
        return (), True
    policy = dig(seen.cronjob, "spec", "concurrencyPolicy", default="Allow")
    if policy == "Forbid" and seen.active:
        text = "Not starting job because prior execution is running and concurrency policy is Forbid"
        return ((Emit(seen.cronjob, "JobAlreadyActive", text, COMPONENT),),), False
    replaced = tuple(Delete.of(each, "the next one takes its place", propagation="Background") for each in seen.active)
    create = Create(job, f"{format_time(due)} is due")
    told = Emit(seen.cronjob, "SuccessfulCreate", f"Created job {name_of(job)}", COMPONENT)
    first = (replaced,) if policy == "Replace" and replaced else ()
    return (*first, (create,), (told,)), True


def _job(cronjob: Obj, due: datetime) -> Obj:
    template = dig(cronjob, "spec", "jobTemplate", default={})
    notes = dict(dig(template, "metadata", "annotations", default={}))
    notes["batch.kubernetes.io/cronjob-scheduled-timestamp"] = format_time(due)
    metadata = {
        "name": f"{name_of(cronjob)}-{int(due.timestamp()) // 60}",
        "namespace": namespace_of(cronjob),
        "labels": dict(dig(template, "metadata", "labels", default={})),
        "annotations": notes,
        "ownerReferences": [owner_reference(cronjob)],
    }
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": dict(template.get("spec") or {})}


def _beyond_history(seen: Observed) -> tuple[Delete, ...]:
    gone: list[Delete] = []
    for end, field, default in (
        ("Complete", "successfulJobsHistoryLimit", 3),
        ("Failed", "failedJobsHistoryLimit", 1),
    ):
        ended = [job for job in seen.jobs if dig(is_finished(job), "type") == end and not is_terminating(job)]
        ended.sort(key=lambda job: (created_at(job), name_of(job)))
        limit = int(dig(seen.cronjob, "spec", field, default=default))
        too_many = ended[: max(len(ended) - limit, 0)]
        gone += [Delete.of(job, "beyond the history limit", propagation="Background") for job in too_many]
    return tuple(gone)


def _status(seen: Observed, started: datetime | None) -> Obj:
    status = {key: value for key, value in (seen.cronjob.get("status") or {}).items() if key != "active"}
    active = [
        {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "namespace": namespace_of(job),
            "name": name_of(job),
            "uid": uid_of(job),
            "resourceVersion": resource_version(job),
        }
        for job in seen.active
    ]
    if active:
        status["active"] = _unless_same(dig(seen.cronjob, "status", "active", default=[]), active)
    if started is not None:
        status["lastScheduleTime"] = format_time(started)
    ends = [str(dig(job, "status", "completionTime", default="")) for job in seen.jobs]
    latest = max((*ends, str(status.get("lastSuccessfulTime") or "")))
    return status | ({"lastSuccessfulTime": latest} if latest else {})


def _unless_same(old: list[Obj], new: list[Obj]) -> list[Obj]:
    """The references as they are noted, if they name the same Jobs: a Job's progress is no news here."""
    return old if [each.get("uid") for each in old] == [each["uid"] for each in new] else new
