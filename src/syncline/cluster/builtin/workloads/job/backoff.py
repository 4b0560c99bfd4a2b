"""Compute how long a Job waits before it replaces a failed pod.

Ten seconds after the first failure, doubled each time, at most ten minutes; a success resets it (Kubernetes' job
controller). The count is read from the pods, so it survives a restart. With back-off limits per index, each index waits
separately; its pods record how often it failed.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from syncline.base.clock import time_or_none
from syncline.cluster.builtin.pods import condition, created_at
from syncline.kube.objects import Obj, annotations_of, dig, meta

BACKOFF_S = 10.0
MAX_BACKOFF_S = 600.0
FAILURES = "batch.kubernetes.io/job-index-failure-count"
"""Annotation of a pod: its index's earlier failures that count."""
IGNORED_FAILURES = "batch.kubernetes.io/job-index-ignored-failure-count"
_MOST_FAILURES = 2**31 - 1


def failures_of(pod: Obj, annotation: str = FAILURES) -> int:
    """Return a count from a pod's annotations; 0 if it is missing or malformed."""
    text = annotations_of(pod).get(annotation, "")
    return int(text) if text.isascii() and text.isdigit() and int(text) <= _MOST_FAILURES else 0


def finished_at(pod: Obj) -> datetime:
    """Return when a finished pod ended, by its last container or the best other evidence."""
    sidecars = {
        each.get("name")
        for each in dig(pod, "spec", "initContainers", default=[])
        if each.get("restartPolicy") == "Always"
    }
    statuses = [
        *dig(pod, "status", "containerStatuses", default=[]),
        *(each for each in dig(pod, "status", "initContainerStatuses", default=[]) if each.get("name") in sidecars),
    ]
    times = [time_or_none(dig(each, "state", "terminated", "finishedAt")) for each in statuses]
    known = [at for at in times if at is not None]
    if known and len(known) == len(times):
        return max(known)
    ready = condition(pod, "Ready")
    if ready is not None and ready.get("status") == "False":
        since = time_or_none(ready.get("lastTransitionTime"))
        if since is not None:
            return since
    deleted = time_or_none(meta(pod).get("deletionTimestamp"))
    if deleted is not None:
        return deleted - timedelta(seconds=int(meta(pod).get("deletionGracePeriodSeconds") or 0))
    return created_at(pod)


def remaining_s(succeeded: list[Obj], failed: list[Obj], now: datetime) -> float:
    """Return the seconds until the next pod may be created; 0 for now."""
    last_success = max((finished_at(pod) for pod in succeeded), default=None)
    failures = [finished_at(pod) for pod in failed]
    since = [at for at in failures if last_success is None or at > last_success]
    return _left_s(len(since), max(since), now) if since else 0.0


def remaining_for_index_s(last_failed: Obj | None, now: datetime) -> float:
    """Return the same for one index, whose last failed pod remains until its successor exists."""
    if last_failed is None:
        return 0.0
    failures = failures_of(last_failed) + failures_of(last_failed, IGNORED_FAILURES) + 1
    return _left_s(failures, finished_at(last_failed), now)


def _left_s(failures: int, last: datetime, now: datetime) -> float:
    wait: float = min(BACKOFF_S * 2.0 ** min(failures - 1, 30), MAX_BACKOFF_S)
    return max(wait - (now - last).total_seconds(), 0.0)
