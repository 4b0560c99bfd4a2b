"""What the kubelet tells people: Events, derived from how a status differs from the one before.

So each is said once, when the state of things changes, and again only when it changes again.
"""

from __future__ import annotations

from syncline.cluster.machines.containers import Container
from syncline.cluster.machines.probes import Probe, failure_text
from syncline.control.plan import Emit
from syncline.kube.objects import Obj, name_of, namespace_of, uid_of

__all__ = ["COMPONENT", "events_between", "killing", "pulling", "restarting", "unhealthy"]

COMPONENT = "kubelet"


def emit(pod: Obj, reason: str, message: str, *, warning: bool = False) -> Emit:
    return Emit(pod, reason, message, COMPONENT, warning=warning)


def pulling(pod: Obj, container: Obj, record: Container) -> tuple[Emit, ...]:
    """Said when a container is made and its image has to come first."""
    if record.pulled_s > 0 or record.pull_error:
        return (emit(pod, "Pulling", f'Pulling image "{container.get("image", "")}"'),)
    return ()


def killing(pod: Obj, container: str) -> Emit:
    return emit(pod, "Killing", f"Stopping container {container}")


def unhealthy(pod: Obj, container: Obj, probe: Probe, pod_ip: str) -> Emit:
    return emit(pod, "Unhealthy", failure_text(container, probe, pod_ip), warning=True)


def restarting(pod: Obj, container: str, killed_by: str, *, again: bool) -> tuple[Emit, ...]:
    """Why a container that runs is stopped though its pod stays."""
    if killed_by == "post-start":
        failed = emit(pod, "FailedPostStartHook", "PostStartHook failed", warning=True)
        return failed, emit(pod, "Killing", "FailedPostStartHook")
    message = f"Container {container} failed {killed_by} probe"
    return (emit(pod, "Killing", f"{message}, will be restarted" if again else message),)


def events_between(pod: Obj, new: Obj, records: dict[str, Container]) -> tuple[Emit, ...]:
    """From the status in ``pod`` to ``new``; ``records`` are the latest attempts by container name."""
    found: list[Emit] = []
    old: Obj = pod.get("status") or {}
    for field in ("initContainerStatuses", "containerStatuses"):
        before = {each.get("name"): each for each in old.get(field) or ()}
        for status in new.get(field) or ():
            name = str(status["name"])
            found += _of_container(pod, before.get(name) or {}, status, records.get(name))
    if new.get("reason") == "DeadlineExceeded" and old.get("reason") != "DeadlineExceeded":
        found.append(emit(pod, "DeadlineExceeded", str(new["message"])))
    return tuple(found)


def _of_container(pod: Obj, old: Obj, new: Obj, record: Container | None) -> list[Emit]:
    state = new["state"]
    if "waiting" in state:
        return _waiting(pod, old, new, state["waiting"])
    if new.get("containerID") == old.get("containerID"):
        return []
    pulled = record.pulled_s if record is not None else 0.0
    return _begun(pod, str(new["name"]), str(new["image"]), pulled)


def _begun(pod: Obj, name: str, image: str, pulled_s: float) -> list[Emit]:
    if pulled_s > 0:
        text = f'Successfully pulled image "{image}" in {pulled_s:g}s ({pulled_s:g}s including waiting)'
    else:
        text = f'Container image "{image}" already present on machine'
    return [
        emit(pod, "Pulled", text),
        emit(pod, "Created", f"Created container: {name}"),
        emit(pod, "Started", f"Started container {name}"),
    ]


def _waiting(pod: Obj, old: Obj, new: Obj, waiting: Obj) -> list[Emit]:
    before = (old.get("state") or {}).get("waiting") or {}
    if before == waiting:
        return []
    image = new["image"]
    message = str(waiting.get("message", ""))
    match waiting["reason"]:
        case "ErrImagePull":
            failed = emit(pod, "Failed", f'Failed to pull image "{image}": {message}', warning=True)
            return [failed, emit(pod, "Failed", "Error: ErrImagePull", warning=True)]
        case "ImagePullBackOff":
            backing_off = emit(pod, "BackOff", f'Back-off pulling image "{image}"')
            return [backing_off, emit(pod, "Failed", "Error: ImagePullBackOff", warning=True)]
        case "CreateContainerConfigError":
            return [emit(pod, "Failed", f"Error: {message}", warning=True)]
        case "CrashLoopBackOff":
            whom = f"{new['name']} in pod {name_of(pod)}_{namespace_of(pod)}({uid_of(pod)})"
            return [emit(pod, "BackOff", f"Back-off restarting failed container {whom}", warning=True)]
        case _:
            return [emit(pod, "FailedMount", message, warning=True)] if message else []
