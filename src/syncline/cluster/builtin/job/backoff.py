"""How long a Job waits before it replaces a failed pod.

Ten seconds after the first failure, then twice as long each time, ten minutes at most; a success begins anew
(Kubernetes' job controller). The count is read from the pods themselves, so it survives a restart.
"""

from __future__ import annotations

from datetime import datetime

from syncline.cluster.builtin.pods import condition, created_at, instant, phase
from syncline.kube.objects import Obj, dig, meta

__all__ = ["BACKOFF_S", "MAX_BACKOFF_S", "finished_at", "remaining_s"]

BACKOFF_S = 10.0
MAX_BACKOFF_S = 600.0


def finished_at(pod: Obj) -> datetime:
    """When a finished pod ended: its last container, or the best other evidence."""
    statuses = [*dig(pod, "status", "containerStatuses", default=[])]
    times = [instant(dig(each, "state", "terminated", "finishedAt")) for each in statuses]
    known = [at for at in times if at is not None]
    if known and len(known) == len(times):
        return max(known)
    ready = condition(pod, "Ready")
    if ready is not None and ready.get("status") == "False":
        since = instant(ready.get("lastTransitionTime"))
        if since is not None:
            return since
    return instant(meta(pod).get("deletionTimestamp")) or created_at(pod)


def remaining_s(pods: tuple[Obj, ...], now: datetime) -> float:
    """Seconds until the next pod may be made; 0 when it may be made now."""
    last_success = max((finished_at(p) for p in pods if phase(p) == "Succeeded"), default=None)
    failures = [finished_at(p) for p in pods if phase(p) == "Failed"]
    since = [at for at in failures if last_success is None or at > last_success]
    if not since:
        return 0.0
    wait: float = min(BACKOFF_S * 2.0 ** min(len(since) - 1, 30), MAX_BACKOFF_S)
    return max(wait - (now - max(since)).total_seconds(), 0.0)
