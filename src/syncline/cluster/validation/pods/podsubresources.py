"""The changes that ``ephemeralcontainers`` and ``resize`` may make to a Pod.

The Pod's strategy calls it. Source: Kubernetes ``podEphemeralContainersStrategy``, ``podResizeStrategy``,
``ValidatePodEphemeralContainersUpdate`` and ``ValidatePodResize``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from syncline.cluster.validation.engine.base import spec_of
from syncline.cluster.validation.engine.causes import forbidden, go_text, invalid
from syncline.kube.errors import FieldCause
from syncline.kube.objects import Obj

EPHEMERAL, RESIZE = "ephemeralcontainers", "resize"
_MIRROR = "kubernetes.io/config.mirror"
_RESIZABLE = ("resources", "resizePolicy")
_METADATA_KEPT = ("labels", "annotations", "finalizers", "ownerReferences", "deletionTimestamp")


def _keep(new: Obj, old: Obj, key: str) -> None:
    if old.get(key) is None:
        new.pop(key, None)
    else:
        new[key] = old[key]


def _keep_rest(new: Obj, old: Obj) -> None:
    """Restore the old status and metadata (``ResetObjectMetaForStatus``)."""
    _keep(new, old, "status")
    for key in _METADATA_KEPT:
        _keep(new["metadata"], old["metadata"], key)


def only_ephemeral(new: Obj, old: Obj) -> None:
    """Take only the ephemeral containers of ``new``."""
    wanted = spec_of(new).get("ephemeralContainers")
    new["spec"] = {key: value for key, value in spec_of(old).items() if key != "ephemeralContainers"}
    if wanted:
        new["spec"]["ephemeralContainers"] = wanted
    _keep_rest(new, old)


def ephemeral_causes(new: Obj, old: Obj) -> list[FieldCause]:
    """Allow only new ephemeral containers."""
    if _MIRROR in (old["metadata"].get("annotations") or {}):
        return [forbidden("", "static pods do not support ephemeral containers")]
    fresh = {one.get("name"): one for one in spec_of(new).get("ephemeralContainers") or ()}
    causes: list[FieldCause] = []
    for one in spec_of(old).get("ephemeralContainers") or ():
        name = go_text(one.get("name"))
        if one.get("name") not in fresh:
            what = f"existing ephemeral containers {name} may not be removed\n"
        elif fresh[one["name"]] != one:
            what = f"existing ephemeral containers {name} may not be changed\n"
        else:
            continue
        causes.append(forbidden("spec.ephemeralContainers", what))
    return causes


def only_resized(new: Obj, old: Obj) -> None:
    """Take only the containers' resources of ``new``; validation refuses other containers."""
    lists = [key for key in ("containers", "initContainers") if spec_of(old).get(key) or spec_of(new).get(key)]
    if any(_names(spec_of(new), key) != _names(spec_of(old), key) for key in lists):
        return
    spec = dict(spec_of(old))
    for key in lists:
        spec[key] = [_resized(before, fresh) for before, fresh in zip(spec[key], new["spec"][key], strict=True)]
    new["spec"] = spec
    _keep_rest(new, old)


def _names(spec: Obj, key: str) -> list[Any]:
    return [one.get("name") for one in spec.get(key) or ()]


def _resized(before: Obj, fresh: Obj) -> Obj:
    kept = {key: value for key, value in before.items() if key not in _RESIZABLE}
    return kept | {key: fresh[key] for key in _RESIZABLE if key in fresh}


def resize_causes(new: Obj, old: Obj, quality_of: Callable[[Obj], str]) -> list[FieldCause]:
    """Allow changes of CPU and memory within the Pod's quality of service, which ``quality_of`` returns for a spec."""
    if _MIRROR in (old["metadata"].get("annotations") or {}):
        return [forbidden("", "static pods cannot be resized")]
    causes: list[FieldCause] = []
    before, fresh = spec_of(old), spec_of(new)
    if quality_of(before) != quality_of(fresh):
        why = "Pod QOS Class may not change as a result of resizing"
        causes.append(invalid("spec", (old.get("status") or {}).get("qosClass", ""), why))
    if not _resize_supported(old):
        causes.append(forbidden("spec", "Pod running on node without support for resize"))
    for key in ("containers", "initContainers"):
        if _names(fresh, key) != _names(before, key):
            return [*causes, forbidden("spec", f"{key} may not be renamed or reordered on resize")]
    for index, (was, now) in enumerate(zip(before.get("containers") or (), fresh.get("containers") or (), strict=True)):
        causes += _container_causes(was, now, f"spec.containers[{index}].resources")
    pairs = zip(before.get("initContainers") or (), fresh.get("initContainers") or (), strict=True)
    for index, (was, now) in enumerate(pairs):
        if was.get("restartPolicy") == "Always":
            causes += _container_causes(was, now, f"spec.initContainers[{index}].resources")
        elif was != now:
            causes.append(forbidden("spec", "resources for non-sidecar init containers are immutable"))
    return causes


def _resize_supported(pod: Obj) -> bool:
    statuses = (pod.get("status") or {}).get("containerStatuses") or ()
    running = [one for one in statuses if (one.get("state") or {}).get("running") is not None]
    return not running or running[0].get("resources") is not None


def _container_causes(was: Obj, now: Obj, path: str) -> list[FieldCause]:
    causes: list[FieldCause] = []
    if was.get("resizePolicy") != now.get("resizePolicy"):
        causes.append(forbidden("spec", "only cpu and memory resources are mutable"))
    for part in ("requests", "limits"):
        before = (was.get("resources") or {}).get(part) or {}
        fresh = (now.get("resources") or {}).get(part) or {}
        if set(before) - set(fresh):
            causes.append(forbidden(f"{path}.{part}", f"resource {part} cannot be removed"))
        others = {name for name in {*before, *fresh} - {"cpu", "memory"} if before.get(name) != fresh.get(name)}
        if others:
            causes.append(forbidden("spec", "only cpu and memory resources are mutable"))
    return causes
