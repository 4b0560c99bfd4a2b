"""Explains why a Job, Deployment, ReplicaSet, StatefulSet or DaemonSet is not healthy, down to its pods.

The graph calls :func:`explain_workload`. Pure. A cause names the failing pods, newest first. A rejected pod (quota,
RBAC, missing service account) shows only in the workload's Warning Events.
"""

from __future__ import annotations

from syncline.apply.causes.advice import advice
from syncline.apply.causes.pods import condition, explain_pod
from syncline.apply.causes.view import Found, View, one_line, unread, warnings_of
from syncline.base.cause import Cause
from syncline.base.clock import time_or_none
from syncline.kube.objects import GroupKind, Obj, dig, generation, name_of, namespace_of, ref_of, uid_of

POD = GroupKind("", "Pod")
REPLICA_SET = GroupKind("apps", "ReplicaSet")
REVISION = "deployment.kubernetes.io/revision"
MAX_PODS = 3
"""Maximum failing pods that an explanation lists; they mostly share one reason."""
REFUSED = ("FailedCreate", "FailedCreatePod")


def _cause(obj: Obj, state: str, message: str, since: object = None, *because: Cause, fix: str = "") -> Cause:
    evidence = {
        "uid": uid_of(obj),
        "generation": generation(obj),
        "observedGeneration": dig(obj, "status", "observedGeneration"),
    }
    return Cause(
        subject=str(ref_of(obj)),
        state=state,
        message=one_line(message),
        since=time_or_none(since) or time_or_none(dig(obj, "metadata", "creationTimestamp")),
        next_action=fix or ("" if because else advice(message)),
        evidence=tuple((key, str(value)) for key, value in evidence.items() if value),
        because=because,
    )


# -- jobs ------------------------------------------------------------------------------------------------------------


def explain_job(view: View, job: Obj) -> Found:
    pods = _newest(view.cluster.owned(uid_of(job), POD))
    failed = condition(job, "Failed")
    if failed.get("status") == "True":
        return _failed_job(view, job, failed, pods)
    complete = condition(job, "Complete")
    if complete.get("status") == "True":
        since = complete.get("lastTransitionTime")
        return Found(_cause(job, "Complete", str(complete.get("message") or "it is done"), since), blocked=False)
    if dig(job, "spec", "suspend"):
        fix = f"resume it: set spec.suspend of {ref_of(job)} to false"
        return Found(_cause(job, "Suspended", "spec.suspend is true, no pod is made", fix=fix), blocked=True)
    return _running_job(view, job, pods)


def _failed_job(view: View, job: Obj, failed: Obj, pods: list[Obj]) -> Found:
    last = next((pod for pod in pods if dig(pod, "status", "phase") == "Failed"), pods[0] if pods else None)
    because = (explain_pod(view, last).cause,) if last is not None else ()
    text = f"{failed.get('reason')}: {failed.get('message')}"
    return Found(_cause(job, "Failed", text, failed.get("lastTransitionTime"), *because), blocked=True)


def _running_job(view: View, job: Obj, pods: list[Obj]) -> Found:
    started = dig(job, "status", "startTime")
    alive = [pod for pod in pods if dig(pod, "status", "phase") not in ("Succeeded", "Failed")]
    troubled = _troubled(view, alive or pods)
    if troubled:
        return Found(_cause(job, "Running", _tally(job), started, *troubled), blocked=True)
    if not pods:
        refused = _refused(view, job)
        if refused is not None:
            return Found(refused, blocked=True)
        hidden = unread(view, POD, namespace_of(job))
        text = "what its pods do is not known" if hidden else "no pod of it exists yet"
        return Found(_cause(job, "Running", text, started, *hidden), blocked=False)
    under_way = tuple(explain_pod(view, pod).cause for pod in alive[:1])
    return Found(_cause(job, "Running", _tally(job), started, *under_way), blocked=False)


def _tally(job: Obj) -> str:
    counts = [f"{dig(job, 'status', name, default=0)} {name}" for name in ("active", "succeeded", "failed")]
    limit = dig(job, "spec", "backoffLimit", default=6)
    return f"pods: {', '.join(counts)}; gives up after {limit} retries"


# -- workloads that continue for ever
# -----------------------------------------------------------------------------------


def explain_workload(view: View, obj: Obj) -> Found:
    """Explain a Deployment, ReplicaSet, StatefulSet or DaemonSet."""
    wanted, available = _counts(obj)
    observed = int(dig(obj, "status", "observedGeneration", default=0) or 0)
    if observed < generation(obj):
        text = f"its controller has seen generation {observed} of {generation(obj)} only"
        return Found(_cause(obj, "Progressing", text), blocked=False)
    if dig(obj, "spec", "paused") and not _complete(obj, wanted, available):
        fix = f"resume it: kubectl rollout resume {ref_of(obj).kind.lower()}/{name_of(obj)}"
        return Found(_cause(obj, "Paused", "spec.paused is true", fix=fix), blocked=True)
    if _complete(obj, wanted, available):
        return Found(_cause(obj, "Available", f"{available} of {wanted} pods are available"), blocked=False)
    return _short_of_pods(view, obj, wanted, available)


def _short_of_pods(view: View, obj: Obj, wanted: int, available: int) -> Found:
    text = f"{available} of {wanted} pods are available"
    overdue = condition(obj, "Progressing")
    timed_out = overdue.get("status") == "False"
    if timed_out:
        text += f"; {overdue.get('reason')}: {overdue.get('message')}"
    since = (condition(obj, "Available") or overdue).get("lastTransitionTime")
    holders = _pod_owners(view, obj)
    pods = _newest([pod for holder in holders for pod in view.cluster.owned(uid_of(holder), POD)])
    short = len(pods) < wanted  # else what an old Event says was overcome
    refused = [cause for holder in holders if short and (cause := _refused(view, holder)) is not None]
    because = (*refused, *_troubled(view, pods))
    if not because:
        unready = [found.cause for pod in pods if (found := explain_pod(view, pod)).cause.state != "Running"]
        space = namespace_of(obj)
        because = tuple(unready[:1]) or (*unread(view, REPLICA_SET, space), *unread(view, POD, space))
        return Found(_cause(obj, "Progressing", text, since, *because), blocked=timed_out)
    return Found(_cause(obj, "Progressing" if not timed_out else "Degraded", text, since, *because), blocked=True)


def _counts(obj: Obj) -> tuple[int, int]:
    if ref_of(obj).kind == "DaemonSet":
        status = dig(obj, "status", default={})
        return int(status.get("desiredNumberScheduled") or 0), int(status.get("numberAvailable") or 0)
    wanted = dig(obj, "spec", "replicas")
    return 1 if wanted is None else int(wanted), int(dig(obj, "status", "availableReplicas", default=0) or 0)


def _complete(obj: Obj, wanted: int, available: int) -> bool:
    updated_field = {"DaemonSet": "updatedNumberScheduled", "ReplicaSet": "replicas"}.get(ref_of(obj).kind)
    updated = int(dig(obj, "status", updated_field or "updatedReplicas", default=0) or 0)
    return available >= wanted and updated >= wanted


def _pod_owners(view: View, obj: Obj) -> list[Obj]:
    """Return the owner of the pods as a list: a Deployment's newest ReplicaSet with replicas, else the workload."""
    if ref_of(obj).kind != "Deployment":
        return [obj]
    sets = view.cluster.owned(uid_of(obj), REPLICA_SET)
    alive = [each for each in sets if dig(each, "spec", "replicas", default=1)]
    return sorted(alive, key=_revision, reverse=True)[:1] or [obj]


def _revision(replica_set: Obj) -> int:
    text = str(dig(replica_set, "metadata", "annotations", REVISION, default="0"))
    return int(text) if text.isdigit() else 0


# -- shared ----------------------------------------------------------------------------------------------------------


def _newest(pods: list[Obj]) -> list[Obj]:
    return sorted(pods, key=lambda pod: (str(dig(pod, "metadata", "creationTimestamp")), name_of(pod)), reverse=True)


def _troubled(view: View, pods: list[Obj]) -> tuple[Cause, ...]:
    """Return the causes of failing pods; several pods with the same message count as one cause."""
    found: dict[str, Cause] = {}
    for pod in pods:
        cause = explain_pod(view, pod)
        if cause.blocked:
            found.setdefault(f"{cause.cause.state} {cause.cause.message}".replace(name_of(pod), ""), cause.cause)
    return tuple(found.values())[:MAX_PODS]


def _refused(view: View, obj: Obj) -> Cause | None:
    """Return the cause of pods that the API server rejected, or None."""
    failure = condition(obj, "ReplicaFailure")
    if failure.get("status") == "True":
        text = str(failure.get("message"))
        return _cause(obj, str(failure.get("reason")), text, failure.get("lastTransitionTime"))
    for event in warnings_of(view, obj):
        if event.get("reason") in REFUSED:
            return _cause(obj, str(event["reason"]), str(event.get("message")), event.get("firstTimestamp"))
    return None
