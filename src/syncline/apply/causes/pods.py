"""Explains why a Pod does not work: not scheduled, not started, crashed, exited with an error, or not ready.

The graph and the causes of pod owners call :func:`explain_pod`. Pure. Reasons and messages are quoted from the pod's
status as scheduler and kubelet wrote them (Kubernetes ``pkg/kubelet``, ``pkg/scheduler``).
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

from syncline.apply.causes.advice import advice
from syncline.apply.causes.masking import masked
from syncline.apply.causes.view import Found, View, one_line, warnings_of
from syncline.base.cause import Cause
from syncline.base.clock import time_or_none
from syncline.kube.objects import Obj, dig, name_of, namespace_of, ref_of, uid_of

STARTING = ("", "ContainerCreating", "PodInitializing")
"""Reasons for waiting that are normal."""
OF_KUBELET = (
    "CreateContainerConfigError",
    "CreateContainerError",
    "ErrImageNeverPull",
    "ErrImagePull",
    "ImageInspectError",
    "ImagePullBackOff",
    "InvalidImageName",
    "RegistryUnavailable",
)
"""Reasons for waiting whose message holds nothing that a program in the container wrote."""
PREEMPTION = re.compile(r"\.? (?:no new claims to deallocate|preemption:).*", re.DOTALL)
LOG_LINES = 3
"""Number of last log lines that an explanation quotes."""
START_TROUBLE = ("FailedMount", "FailedAttachVolume", "FailedCreatePodSandBox", "NetworkNotReady")
"""Reasons of Events about a pod that fails to start."""


def explain_pod(view: View, pod: Obj) -> Found:
    """Explain a pod; the first check with a result decides."""
    for part in (_ended, _unplaced, _containers, _starting, _not_ready):
        found = part(view, pod)
        if found is not None:
            return found
    return _fine(pod)


def _cause(pod: Obj, state: str, message: str, since: Any = None, *because: Cause, fix: str = "") -> Cause:
    node = dig(pod, "spec", "nodeName", default="")
    evidence = {"uid": uid_of(pod), "phase": dig(pod, "status", "phase", default=""), "node": node}
    return Cause(
        subject=str(ref_of(pod)),
        state=state,
        message=one_line(message),
        since=time_or_none(since) or time_or_none(dig(pod, "metadata", "creationTimestamp")),
        next_action=fix or advice(message),
        evidence=tuple((key, str(value)) for key, value in evidence.items() if value),
        because=because,
    )


def condition(obj: Obj, kind: str) -> Obj:
    """Return the condition of the given type, or an empty object."""
    listed = dig(obj, "status", "conditions", default=[])
    found = [each for each in listed if isinstance(each, dict) and each.get("type") == kind]
    return found[0] if found else {}


def _phase(pod: Obj) -> str:
    return str(dig(pod, "status", "phase", default=""))


def _statuses(pod: Obj) -> list[Obj]:
    """Return the container statuses, init containers first."""
    return [
        each
        for field in ("initContainerStatuses", "containerStatuses")
        for each in dig(pod, "status", field, default=[])
    ]


def _ended(view: View, pod: Obj) -> Found | None:
    if _phase(pod) == "Succeeded":
        return Found(_cause(pod, "Succeeded", "all its containers ended well"), blocked=False)
    if _phase(pod) != "Failed":
        return None
    why = str(dig(pod, "status", "message", default="") or dig(pod, "status", "reason", default=""))
    for status in _statuses(pod):
        end = dig(status, "state", "terminated", default={})
        if end and end.get("exitCode"):
            return Found(_exit(view, pod, status, end, "Failed", why), blocked=True)
    return Found(_cause(pod, "Failed", why or "it failed without saying why"), blocked=True)


def _exit(view: View, pod: Obj, status: Obj, end: Obj, state: str, why: str = "") -> Cause:
    """Explain how a container exited, with the end of its log as a deeper cause."""
    name = str(status.get("name"))
    reason = end.get("reason") or "Error"
    quoted = end.get("message") if view.quotes else ""
    said = masked(view, namespace_of(pod), f": {quoted}" if quoted else "")
    message = f'container "{name}" ended with exit code {end.get("exitCode")} ({reason}){said}'
    lines = masked(view, namespace_of(pod), "\n".join(view.logs(namespace_of(pod), name_of(pod), name))).splitlines()
    log = _log_cause(pod, name, lines)
    return _cause(
        pod,
        state,
        f"{why}; {message}" if why else message,
        end.get("finishedAt"),
        *log,
        fix=advice(said) or _exit_advice(pod, name, str(reason), bool(lines)),
    )


def _log_cause(pod: Obj, container: str, lines: list[str]) -> tuple[Cause, ...]:
    kept = [line.strip() for line in lines if line.strip()]
    if not kept:
        return ()
    shown = one_line(" | ".join(kept[-LOG_LINES:]))
    subject = f"log of {name_of(pod)}/{container}"
    return (Cause(subject, "last line" if len(kept) == 1 else "last lines", shown, evidence=(("line", kept[-1]),)),)


def _exit_advice(pod: Obj, container: str, reason: str, has_log: bool) -> str:
    if reason == "OOMKilled":
        return f'raise the memory limit of container "{container}"'
    command = f"kubectl -n {namespace_of(pod)} logs {name_of(pod)} -c {container}"
    return f"correct what its log says: {command}" if has_log else f"check its log: {command}"


def _unplaced(view: View, pod: Obj) -> Found | None:
    if dig(pod, "spec", "nodeName"):
        return None
    placed = condition(pod, "PodScheduled")
    if placed.get("status") == "False":
        said = str(placed.get("message") or placed.get("reason") or "")
        return Found(_not_placed(pod, said, placed.get("lastTransitionTime")), blocked=True)
    for event in warnings_of(view, pod):
        if event.get("reason") == "FailedScheduling":
            return Found(_not_placed(pod, str(event.get("message"))), blocked=True)
    return Found(_cause(pod, "Pending", "waits for the scheduler"), blocked=False)


def _not_placed(pod: Obj, said: str, since: Any = None) -> Cause:
    """Explain an unschedulable pod by what the nodes lack; the scheduler's note on preemption is added as evidence."""
    cause = _cause(pod, "Pending", f"cannot be placed: {PREEMPTION.sub('', said)}", since)
    return replace(cause, evidence=(*cause.evidence, ("scheduler", said)))


def _containers(view: View, pod: Obj) -> Found | None:
    for status in _statuses(pod):
        waiting = dig(status, "state", "waiting", default={})
        reason = str(waiting.get("reason") or "")
        if waiting and reason not in STARTING:
            return Found(_waiting(view, pod, status, waiting), blocked=True)
        end = dig(status, "state", "terminated", default={})
        if end and end.get("exitCode"):
            return Found(_exit(view, pod, status, end, "Failing"), blocked=True)
    return None


def _waiting(view: View, pod: Obj, status: Obj, waiting: Obj) -> Cause:
    reason, name = str(waiting["reason"]), str(status.get("name"))
    last = dig(status, "lastState", "terminated", default={})
    if reason == "CrashLoopBackOff" and last:
        restarts = f"restarted {status.get('restartCount') or 0} times"
        return _exit(view, pod, status, last, reason, restarts)
    known = view.quotes or reason in OF_KUBELET
    said = str((waiting.get("message") if known else "") or "it cannot be started")
    return _cause(
        pod, reason, f'container "{name}" (image {status.get("image")}): {said}', fix=advice(f"{reason} {said}")
    )


def _starting(view: View, pod: Obj) -> Found | None:
    """Explain a scheduled pod that has not started, by its messages and Events: volumes and sandboxes that fail."""
    if _phase(pod) != "Pending":
        return None
    for status in _statuses(pod):
        said = dig(status, "state", "waiting", "message", default="")
        if said:
            return Found(_cause(pod, "Pending", f'container "{status.get("name")}": {said}'), blocked=True)
    for event in warnings_of(view, pod):
        if event.get("reason") in START_TROUBLE:
            text = f"{event['reason']}: {event.get('message')}"
            return Found(_cause(pod, "Pending", text, event.get("firstTimestamp")), blocked=True)
    return Found(_cause(pod, "Pending", f"is being started on node {dig(pod, 'spec', 'nodeName')}"), blocked=False)


def _not_ready(view: View, pod: Obj) -> Found | None:
    if _phase(pod) != "Running" or dig(pod, "spec", "restartPolicy", default="Always") != "Always":
        return None
    ready = condition(pod, "Ready")
    if ready.get("status") == "True":
        return None
    for event in warnings_of(view, pod):
        if event.get("reason") == "Unhealthy":
            text = str(event.get("message"))
            if not view.quotes:
                text = f"{text.partition(' failed')[0][:40]} failed"
            return Found(_cause(pod, "NotReady", text, ready.get("lastTransitionTime")), blocked=True)
    said = str(ready.get("message") or "its containers run but are not ready yet")
    return Found(_cause(pod, "NotReady", said, ready.get("lastTransitionTime")), blocked=False)


def _fine(pod: Obj) -> Found:
    phase = _phase(pod) or "Unknown"
    started = dig(pod, "status", "startTime")
    return Found(
        _cause(pod, phase, f"runs on node {dig(pod, 'spec', 'nodeName', default='-')}", started), blocked=False
    )
