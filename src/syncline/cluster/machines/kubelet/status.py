"""Compute the status of a pod as its kubelet writes it (Kubernetes ``pkg/kubelet/status/generate.go``,
``kubelet_pods.go``).

Pure: from the observed pod and views of its containers to the whole ``status`` object. Conditions change their time
only when they flip; fields written by other clients are preserved.
"""

from __future__ import annotations

import hashlib
from datetime import datetime

from syncline.base.clock import format_time
from syncline.cluster.machines.containers import Container
from syncline.cluster.machines.kubelet.observe import Observed
from syncline.cluster.machines.kubelet.views import View
from syncline.kube.objects import Obj, dig, generation, name_of, namespace_of, uid_of

DEADLINE_MESSAGE = "Pod was active on the node longer than the specified deadline"
OWN_CONDITIONS = ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled")


def status_of(observed: Observed, views: tuple[View, ...], now: datetime, *, past_deadline: bool = False) -> Obj:
    """Return the status at ``now``."""
    pod, machine = observed.pod, observed.machine
    assert pod is not None and machine is not None, "a status is of a pod on a machine"
    old: Obj = pod.get("status") or {}
    phase = "Failed" if past_deadline else phase_of(pod, views)
    status = dict(old)
    status["phase"] = phase
    status["hostIP"], status["hostIPs"] = machine.ip, [{"ip": machine.ip}]
    status.setdefault("startTime", format_time(now))
    if generation(pod):
        status["observedGeneration"] = generation(pod)
    ip = machine.ip if dig(pod, "spec", "hostNetwork") else (observed.sandbox.ip if observed.sandbox else "")
    if ip:
        status["podIP"], status["podIPs"] = ip, [{"ip": ip}]
    if past_deadline:
        status["reason"], status["message"] = "DeadlineExceeded", DEADLINE_MESSAGE
    for field, mine in (
        ("initContainerStatuses", [view for view in views if view.init]),
        ("containerStatuses", [view for view in views if view.main]),
        ("ephemeralContainerStatuses", [view for view in views if view.ephemeral]),
    ):
        if mine:
            before = {each.get("name"): each for each in old.get(field) or ()}
            status[field] = [
                _container_status(observed, views, view, before.get(view.name) or {}, now, phase) for view in mine
            ]
    status["conditions"] = _conditions(observed, views, phase, now)
    return status


# -- phase -----------------------------------------------------------------------------------------------------------


def phase_of(pod: Obj, views: tuple[View, ...]) -> str:
    """Return the phase (``getPhase``); a terminating pod gets a final one once nothing runs."""
    policy = dig(pod, "spec", "restartPolicy", default="Always")
    init = [view for view in views if view.init and not view.sidecar]
    main = [view for view in views if view.main]
    old = str(dig(pod, "status", "phase", default="Pending"))
    if old in ("Succeeded", "Failed"):
        return old
    if pod["metadata"].get("deletionTimestamp"):
        return _phase_of_going(old, views, main)
    if any(view.over and not view.succeeded for view in init):
        return "Failed"
    if not all(view.succeeded for view in init) or any(view.state is None and view.previous is None for view in main):
        return "Pending"
    tried = [view for view in main if not view.exited]
    if any(view.running for view in tried):
        return "Running"
    if any(not _ran_before(view) for view in tried):
        return "Pending"
    if tried or any(view.again_at is not None for view in main) or policy == "Always":
        return "Running"
    return "Succeeded" if all(view.succeeded for view in main) else "Failed"


def _ran_before(view: View) -> bool:
    return view.record is not None and view.record.attempt > 0


def _phase_of_going(old: str, views: tuple[View, ...], main: list[View]) -> str:
    if any(view.alive for view in views):
        return old
    return "Succeeded" if main and all(view.succeeded for view in main) else "Failed"


# -- containers ------------------------------------------------------------------------------------------------------


def _container_status(
    observed: Observed, views: tuple[View, ...], view: View, old: Obj, now: datetime, phase: str
) -> Obj:
    if _restarts(view, old):
        return old
    image = str(view.spec.get("image", ""))
    record = view.record
    state = _state(observed, views, view, now, phase)
    made = "waiting" not in state
    shown = record if made else view.previous
    if not made and record is not None and view.exited:
        shown = record
    status: Obj = {
        "name": view.name,
        "state": state,
        "lastState": _last_state(view, old, made),
        "ready": (view.ready(now) and phase not in ("Failed", "Succeeded")) or (view.init and view.ready(now)),
        "restartCount": record.attempt if record is not None else int(old.get("restartCount") or 0),
        "image": image,
        "imageID": _image_id(image) if record is not None and not view.pull_failed else "",
        "started": view.started,
    }
    if shown is not None and not shown.pull_error:
        status["containerID"] = _container_id(shown)
    if view.ephemeral:
        del status["started"]
    else:
        _say_resources(status, view)
    mounts = [_mount(each) for each in view.spec.get("volumeMounts") or ()]
    if mounts:
        status["volumeMounts"] = mounts
    return status


def _restarts(view: View, old: Obj) -> bool:
    """Return whether the container's next attempt is created and not started yet. The kubelet writes no status within
    one sync of a pod: the end, or the back-off, of the attempt before is shown until the next one runs."""
    record = view.record
    if record is None or record.attempt == 0 or record.pull_error or view.running or view.exited:
        return False
    return "running" not in (old.get("state") or {}) and old.get("restartCount") == record.attempt - 1


def _say_resources(status: Obj, view: View) -> None:
    """Set the allocated resources, which are those of the container's spec."""
    if view.record is None or view.pull_failed:
        return
    resources = view.spec.get("resources") or {}
    status["resources"] = {key: dict(resources[key]) for key in ("limits", "requests") if resources.get(key)}
    if resources.get("requests"):
        status["allocatedResources"] = dict(resources["requests"])


def _mount(mount: Obj) -> Obj:
    shown: Obj = {"name": mount.get("name"), "mountPath": mount.get("mountPath")}
    if mount.get("readOnly"):
        shown |= {"readOnly": True, "recursiveReadOnly": "Disabled"}
    return shown


def _state(observed: Observed, views: tuple[View, ...], view: View, now: datetime, phase: str) -> Obj:
    record = view.record
    if view.running and record is not None and record.started_at is not None:
        return {"running": {"startedAt": format_time(record.started_at)}}
    if view.exited and record is not None:
        if view.fault is not None and view.again_at is not None and view.again_at <= now:
            return {"waiting": {"reason": view.fault.reason, "message": view.fault.message}}
        backing_off = view.again_at is not None and view.again_at > now and record.attempt > 0
        if backing_off and phase not in ("Failed", "Succeeded"):
            return {"waiting": {"reason": "CrashLoopBackOff", "message": crash_message(observed, view)}}
        return {"terminated": _terminated(record)}
    return {"waiting": waiting_of(observed, views, view, now)}


def crash_message(observed: Observed, view: View) -> str:
    assert observed.pod is not None and view.record is not None and view.record.ends_at and view.again_at
    wait = int((view.again_at - view.record.ends_at).total_seconds())
    shown = f"{wait // 60}m{wait % 60}s" if wait >= 60 else f"{wait}s"
    return f"back-off {shown} restarting failed container={view.name} pod={_full_name(observed.pod)}"


def _full_name(pod: Obj) -> str:
    return f"{name_of(pod)}_{namespace_of(pod)}({uid_of(pod)})"


def waiting_of(observed: Observed, views: tuple[View, ...], view: View, now: datetime) -> Obj:
    """Return why a container does not run yet."""
    record = view.record
    image = view.spec.get("image", "")
    if record is not None and record.pull_error:
        if record.created_at == now and record.pulls <= 1:  # later tries only emit Events, without status writes
            return {"reason": "ErrImagePull", "message": record.pull_error}
        message = f'Back-off pulling image "{image}": ErrImagePull: {record.pull_error}'
        return {"reason": "ImagePullBackOff", "message": message}
    if observed.missing.volumes:
        reason = "PodInitializing" if any(each.init for each in views) else "ContainerCreating"
        return {"reason": reason, "message": observed.missing.volumes[0]}
    waits_for_init = not view.init and any(each.init and not _init_passed(each) for each in views)
    if view.fault is not None and not waits_for_init and record is None:
        return {"reason": view.fault.reason, "message": view.fault.message}
    has_init = any(each.init for each in views)
    return {"reason": "PodInitializing" if has_init else "ContainerCreating"}


def _init_passed(view: View) -> bool:
    return view.succeeded or (view.sidecar and view.started)


def _last_state(view: View, old: Obj, made: bool) -> Obj:
    """Return the end before the current state."""
    if not made and view.exited and view.record is not None:
        return {"terminated": _terminated(view.record)}
    if view.previous is not None and view.previous.ends_at is not None:
        return {"terminated": _terminated(view.previous)}
    if view.record is None or int(old.get("restartCount") or 0) == view.record.attempt:
        return dict(old.get("lastState") or {})
    ended = dig(old, "state", "terminated") or dig(old, "lastState", "terminated")
    return {"terminated": ended} if ended else {}


def _terminated(record: Container) -> Obj:
    assert record.ends_at is not None, "an end has an instant"
    ended: Obj = {
        "exitCode": record.exit_code,
        "reason": record.reason or ("Completed" if record.exit_code == 0 else "Error"),
        "startedAt": format_time(record.started_at or record.ends_at),
        "finishedAt": format_time(record.ends_at),
        "containerID": _container_id(record),
    }
    if record.message:
        ended["message"] = record.message
    return ended


def _container_id(record: Container) -> str:
    text = f"{record.pod_uid}/{record.name}/{record.attempt}"
    return "containerd://" + hashlib.sha256(text.encode()).hexdigest()


def _image_id(image: str) -> str:
    """Return a digest for an image, derived from its name because it is not pulled."""
    bare = image.split("@")[0]
    slash = bare.rfind("/")
    colon = bare.rfind(":")
    repository = bare[:colon] if colon > slash else bare
    if "@" in image:
        return image
    return f"{repository}@sha256:{hashlib.sha256(image.encode()).hexdigest()}"


# -- conditions ------------------------------------------------------------------------------------------------------


def _conditions(observed: Observed, views: tuple[View, ...], phase: str, now: datetime) -> list[Obj]:
    pod = observed.pod or {}
    old = {each.get("type"): each for each in dig(pod, "status", "conditions", default=[])}
    others = [each for kind, each in old.items() if kind not in OWN_CONDITIONS]
    ready, reason, message = _ready(views, phase, now)
    gate = "" if not ready else _gate_problem(pod, old)
    initialized = _initialized(views, phase)
    alive = observed.sandbox is not None and phase not in ("Succeeded", "Failed")
    found = [
        ("PodReadyToStartContainers", alive, "", ""),
        ("Initialized", *initialized),
        ("Ready", ready and not gate, "ReadinessGatesNotReady" if gate else reason, gate or message),
        ("ContainersReady", ready, reason, message),
        ("PodScheduled", True, "", ""),
    ]
    return [*others, *(_condition(old.get(kind), pod, kind, ok, why, text, now) for kind, ok, why, text in found)]


def _condition(old: Obj | None, pod: Obj, kind: str, ok: bool, reason: str, message: str, now: datetime) -> Obj:
    status = "True" if ok else "False"
    since = old["lastTransitionTime"] if old is not None and old.get("status") == status else format_time(now)
    made: Obj = {"type": kind, "status": status, "lastProbeTime": None, "lastTransitionTime": since}
    if generation(pod):
        made["observedGeneration"] = generation(pod)
    return made | ({"reason": reason} if reason else {}) | ({"message": message} if message else {})


def _initialized(views: tuple[View, ...], phase: str) -> tuple[bool, str, str]:
    if phase == "Succeeded":
        return True, "PodCompleted", ""
    waiting = [view.name for view in views if view.init and not _init_passed(view)]
    main_began = any(view.main and view.record is not None for view in views)
    if not waiting or main_began:
        return True, "", ""
    return False, "ContainersNotInitialized", f"containers with incomplete status: [{' '.join(waiting)}]"


def _ready(views: tuple[View, ...], phase: str, now: datetime) -> tuple[bool, str, str]:
    if phase == "Succeeded":
        return False, "PodCompleted", ""
    if phase == "Failed":
        return False, "PodFailed", ""
    unready = [view.name for view in views if (view.main or view.sidecar) and not view.ready(now)]
    if not unready:
        return True, "", ""
    return False, "ContainersNotReady", f"containers with unready status: [{' '.join(unready)}]"


def _gate_problem(pod: Obj, conditions: dict[object, Obj]) -> str:
    for gate in dig(pod, "spec", "readinessGates", default=[]):
        kind = gate.get("conditionType")
        known = conditions.get(kind)
        if known is None:
            return f'corresponding condition of pod readiness gate "{kind}" does not exist.'
        if known.get("status") != "True":
            return f'the status of pod readiness gate "{kind}" is not "True", but {known.get("status")}'
    return ""
