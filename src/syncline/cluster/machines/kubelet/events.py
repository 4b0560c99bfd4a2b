"""The kubelet's Events, derived from the difference of two statuses.

So each Event is emitted once per change of state.
"""

from __future__ import annotations

from syncline.cluster.machines.containers import Container
from syncline.cluster.machines.probes import Failure, failure_text
from syncline.control.plan import Emit
from syncline.kube.objects import Obj, dig, name_of, namespace_of, uid_of

COMPONENT = "kubelet"
SIZE_BYTES = 50_000_000
"""Size reported for images, which are not pulled."""


def emit(pod: Obj, reason: str, message: str, *, warning: bool = False, container: object = "") -> Emit:
    """Return an Event; ``container`` is the name of the container concerned, if any."""
    part = ""
    if container:
        parts = ("initContainers", "ephemeralContainers")
        named = (at for at in parts for each in dig(pod, "spec", at, default=[]) if each.get("name") == container)
        part = f"spec.{next(named, 'containers')}{{{container}}}"
    return Emit(pod, reason, message, COMPONENT, warning=warning, field_path=part)


def pulling(pod: Obj, container: Obj, record: Container) -> tuple[Emit, ...]:
    """Return the Events of a new container whose image must be pulled first."""
    if record.pulled_s > 0 or record.pull_error:
        image, name = container.get("image", ""), container.get("name")
        begun = emit(pod, "Pulling", f'Pulling image "{image}"', container=name)
        return (begun, *_pull_failed(pod, name, image, record.pull_error)) if record.pulls > 1 else (begun,)
    return ()


def refused(pod: Obj, reason: str, message: str) -> Emit:
    return emit(pod, reason, message, warning=True)


def killing(pod: Obj, container: str) -> Emit:
    return emit(pod, "Killing", f"Stopping container {container}", container=container)


def unhealthy(pod: Obj, container: Obj, failure: Failure, pod_ip: str) -> Emit:
    return emit(
        pod, "Unhealthy", failure_text(container, failure, pod_ip), warning=True, container=container.get("name")
    )


def restarting(pod: Obj, container: str, killed_by: str, *, again: bool) -> tuple[Emit, ...]:
    """Return why a running container is stopped while its pod remains."""
    if killed_by == "post-start":
        failed = emit(pod, "FailedPostStartHook", "PostStartHook failed", warning=True, container=container)
        return failed, emit(pod, "Killing", "FailedPostStartHook", container=container)
    message = f"Container {container} failed {killed_by} probe{', will be restarted' if again else ''}"
    return (emit(pod, "Killing", message, container=container),)


def events_between(pod: Obj, new: Obj, records: dict[str, Container]) -> tuple[Emit, ...]:
    """Return the Events between the status in ``pod`` and ``new``; ``records`` are the latest attempts by container."""
    found: list[Emit] = []
    old: Obj = pod.get("status") or {}
    for field in ("initContainerStatuses", "containerStatuses", "ephemeralContainerStatuses"):
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
        took = f"{pulled_s:g}s" if pulled_s >= 1 else f"{pulled_s * 1000:.0f}ms"
        text = (
            f'Successfully pulled image "{image}" in {took} ({took} including waiting). Image size: {SIZE_BYTES} bytes.'
        )
    else:
        text = f'Container image "{image}" already present on machine and can be accessed by the pod'
    return [
        emit(pod, "Pulled", text, container=name),
        emit(pod, "Created", "Container created", container=name),
        emit(pod, "Started", "Container started", container=name),
    ]


def _pull_failed(pod: Obj, container: object, image: object, why: str) -> list[Emit]:
    said = (f'Failed to pull image "{image}": {why}', "Error: ErrImagePull")
    return [emit(pod, "Failed", text, warning=True, container=container) for text in said]


def _waiting(pod: Obj, old: Obj, new: Obj, waiting: Obj) -> list[Emit]:
    before = (old.get("state") or {}).get("waiting") or {}
    if before == waiting:
        return []
    image = new["image"]
    message = str(waiting.get("message", ""))

    def about(reason: str, text: str, *, warning: bool = True) -> Emit:
        return emit(pod, reason, text, warning=warning, container=new["name"])

    match waiting["reason"]:
        case "ErrImagePull":
            return _pull_failed(pod, new["name"], image, message)
        case "ImagePullBackOff":
            backing_off = about("BackOff", f'Back-off pulling image "{image}"', warning=False)
            return [backing_off, about("Failed", "Error: ImagePullBackOff")]
        case "CreateContainerConfigError":
            return [about("Failed", f"Error: {message}")]
        case "InvalidImageName":
            return [about("InspectFailed", message), about("Failed", "Error: InvalidImageName")]
        case "CrashLoopBackOff":
            whom = f"{new['name']} in pod {name_of(pod)}_{namespace_of(pod)}({uid_of(pod)})"
            return [about("BackOff", f"Back-off restarting failed container {whom}")]
        case _:
            return [emit(pod, "FailedMount", message, warning=True)] if message else []
