"""Decide when a Job ends, and why; reasons and messages are Kubernetes' own."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from syncline.base.clock import time_or_none
from syncline.cluster.builtin.pods import condition, phase
from syncline.cluster.builtin.workloads.job.counting import Tally
from syncline.cluster.builtin.workloads.job.observe import Observed
from syncline.cluster.builtin.workloads.job.success_policy import satisfied
from syncline.kube.objects import Obj, dig


@dataclass(frozen=True, slots=True)
class Verdict:
    """``success`` selects Complete or Failed."""

    success: bool
    reason: str
    message: str

    @property
    def target(self) -> str:
        """The condition that announces the end, before the last pod is deleted."""
        return "SuccessCriteriaMet" if self.success else "FailureTarget"

    @property
    def end(self) -> str:
        return "Complete" if self.success else "Failed"


_REACHED = Verdict(True, "CompletionsReached", "Reached expected number of succeeded pods")
_BACKOFF = Verdict(False, "BackoffLimitExceeded", "Job has reached the specified backoff limit")
_DEADLINE = Verdict(False, "DeadlineExceeded", "Job was active longer than specified deadline")
_MANY_INDEXES = Verdict(
    False, "MaxFailedIndexesExceeded", "Job has exceeded the specified maximal number of failed indexes"
)
_INDEXES = Verdict(False, "FailedIndexes", "Job has failed indexes")


def is_finished(job: Obj) -> Obj | None:
    """Return the condition of a finished Job, or None."""
    for kind in ("Complete", "Failed"):
        found = condition(job, kind)
        if found is not None and found.get("status") == "True":
            return found
    return None


def _announced(job: Obj) -> Verdict | None:
    """Return the verdict that an earlier reconcile announced, which is final."""
    for success, kind in ((True, "SuccessCriteriaMet"), (False, "FailureTarget")):
        found = condition(job, kind)
        if found is not None and found.get("status") == "True":
            return Verdict(success, str(found.get("reason") or ""), str(found.get("message") or ""))
    return None


def deadline(observed: Observed) -> datetime | None:
    """Return the end of ``activeDeadlineSeconds``; None without one, before the start and while suspended."""
    limit_s = dig(observed.job, "spec", "activeDeadlineSeconds")
    start = time_or_none(dig(observed.job, "status", "startTime"))
    if limit_s is None or start is None or observed.suspended:
        return None
    return start + timedelta(seconds=int(limit_s))


def verdict(observed: Observed, counted: Tally, now: datetime) -> Verdict | None:
    """Return failure, then success; None while the Job continues."""
    known = _announced(observed.job)
    if known is not None:
        return known
    if counted.fatal:
        return Verdict(False, "PodFailurePolicy", counted.fatal)
    if _past_backoff_limit(observed, counted):
        return _BACKOFF
    until = deadline(observed)
    if until is not None and until <= now:
        return _DEADLINE
    return _of_indexes(observed, counted) or (_REACHED if _complete(observed, counted) else None)


def _of_indexes(observed: Observed, counted: Tally) -> Verdict | None:
    if not observed.indexed:
        return None
    completions = observed.completions or 0
    if counted.broken is not None:
        most = dig(observed.job, "spec", "maxFailedIndexes")
        if most is not None and len(counted.broken) > int(most):
            return _MANY_INDEXES
        if counted.broken and len(counted.broken) + len(counted.done) >= completions:
            return _INDEXES
    met = satisfied(observed.job, counted.done, completions)
    return Verdict(True, "SuccessPolicy", met) if met else None


def _past_backoff_limit(observed: Observed, counted: Tally) -> bool:
    limit = int(dig(observed.job, "spec", "backoffLimit", default=6))
    if counted.failed > limit:
        return True
    if dig(observed.job, "spec", "template", "spec", "restartPolicy") != "OnFailure":
        return False
    running = [pod for pod in observed.pods if phase(pod) in ("Running", "Pending")]
    restarts = sum(
        int(status.get("restartCount") or 0)
        for pod in running
        for field in ("initContainerStatuses", "containerStatuses")
        for status in dig(pod, "status", field, default=[])
    )
    return restarts > 0 if limit == 0 else restarts >= limit


def _complete(observed: Observed, counted: Tally) -> bool:
    if observed.completions is None:
        return counted.succeeded > 0 and not observed.active
    return counted.succeeded >= observed.completions and not observed.active
