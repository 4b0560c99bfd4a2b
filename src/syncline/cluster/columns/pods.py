"""Columns of pods, with kubectl's STATUS (printers ``printPod``)."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from syncline.cluster.columns.column import NONE, age, containers_and_images, labels_text, since
from syncline.kube.objects import Obj, dig

_NODE_LOST = "NodeLost"


def _pod(pod: Obj, now: datetime) -> list[Any]:
    spec, status = pod.get("spec") or {}, pod.get("status") or {}
    statuses = status.get("containerStatuses") or []
    ready = sum(1 for s in statuses if s.get("ready") and dig(s, "state", "running") is not None)
    ready += _sidecars(spec, status)[1]
    total = len(spec.get("containers") or ()) + _sidecars(spec, status)[0]
    ips = status.get("podIPs") or []
    gates = spec.get("readinessGates") or []
    return [
        pod["metadata"].get("name", ""),
        f"{ready}/{total}",
        _phase(pod),
        _restarts(spec, status, now),
        age(pod, now),
        ips[0]["ip"] if ips else status.get("podIP") or NONE,
        spec.get("nodeName") or NONE,
        status.get("nominatedNodeName") or NONE,
        _gates(gates, status) if gates else NONE,
    ]


def _sidecars(spec: Obj, status: Obj) -> tuple[int, int]:
    """Return the number of restartable init containers, and how many of them are started and ready."""
    names = {c.get("name") for c in spec.get("initContainers") or () if c.get("restartPolicy") == "Always"}
    found = [s for s in status.get("initContainerStatuses") or () if s.get("name") in names]
    return len(names), sum(1 for s in found if s.get("ready"))


def _restarts(spec: Obj, status: Obj, now: datetime) -> str:
    """Return ``7``, or ``7 (5m ago)`` if the last restart is known; during initialization, init containers count."""
    statuses = list(status.get("containerStatuses") or ())
    initial = list(status.get("initContainerStatuses") or ())
    sidecars = {c.get("name") for c in spec.get("initContainers") or () if c.get("restartPolicy") == "Always"}
    if _init_phase(spec, status):
        counted = initial
    else:
        counted = statuses + [s for s in initial if s.get("name") in sidecars]
    total = sum(int(s.get("restartCount") or 0) for s in counted)
    finished = [dig(s, "lastState", "terminated", "finishedAt", default="") for s in counted]
    last = max(finished, default="")
    return f"{total} ({since(last, now)} ago)" if total and last else str(total)


def _gates(gates: list[Obj], status: Obj) -> str:
    true = {c.get("type") for c in status.get("conditions") or () if c.get("status") == "True"}
    return f"{sum(1 for gate in gates if gate.get('conditionType') in true)}/{len(gates)}"


def _phase(pod: Obj) -> str:
    spec, status = pod.get("spec") or {}, pod.get("status") or {}
    reason = status.get("reason") or status.get("phase") or ""
    conditions = status.get("conditions") or ()
    if any(c.get("type") == "PodScheduled" and c.get("reason") == "SchedulingGated" for c in conditions):
        reason = "SchedulingGated"
    initializing = _init_phase(spec, status)
    reason = initializing or _container_phase(reason, status, conditions)
    if dig(pod, "metadata", "deletionTimestamp"):
        if status.get("reason") == _NODE_LOST:
            return "Unknown"
        if status.get("phase") not in ("Failed", "Succeeded"):
            return "Terminating"
    return str(reason)


def _init_phase(spec: Obj, status: Obj) -> str:
    """Return a status such as ``Init:1/3``, or "" when initialization is over."""
    sidecars = {c.get("name") for c in spec.get("initContainers") or () if c.get("restartPolicy") == "Always"}
    total = len(spec.get("initContainers") or ())
    for index, found in enumerate(status.get("initContainerStatuses") or ()):
        terminated = dig(found, "state", "terminated")
        if terminated is not None and terminated.get("exitCode", 0) == 0:
            continue
        if found.get("name") in sidecars and found.get("started"):
            continue
        if terminated is not None:
            return f"Init:{_ended(terminated)}"
        waiting = dig(found, "state", "waiting", "reason", default="")
        if waiting and waiting != "PodInitializing":
            return f"Init:{waiting}"
        return f"Init:{index}/{total}"
    return ""


def _ended(terminated: Obj) -> str:
    reason = terminated.get("reason")
    if reason:
        return str(reason)
    signal = terminated.get("signal")
    return f"Signal:{signal}" if signal else f"ExitCode:{terminated.get('exitCode', 0)}"


def _container_phase(reason: str, status: Obj, conditions: Any) -> str:
    running = False
    for found in reversed(status.get("containerStatuses") or []):
        state = found.get("state") or {}
        waiting, terminated = state.get("waiting"), state.get("terminated")
        if waiting is not None and waiting.get("reason"):
            reason = waiting["reason"]
        elif terminated is not None:
            reason = _ended(terminated)
        elif found.get("ready") and state.get("running") is not None:
            running = True
    if reason == "Completed" and running:
        ready = any(c.get("type") == "Ready" and c.get("status") == "True" for c in conditions)
        return "Running" if ready else "NotReady"
    return reason


def _template(template: Obj, now: datetime) -> list[Any]:
    inner = template.get("template") or {}
    containers, images = containers_and_images(inner.get("spec"))
    return [template["metadata"].get("name", ""), containers, images, labels_text(dig(inner, "metadata", "labels"))]


TABLES = {
    ("", "Pod"): _pod,
    ("", "PodTemplate"): _template,
}
