"""Find why a container cannot be created as specified, before its runtime is called.

Pure; order, reasons and messages are those of Kubernetes (``pkg/kubelet/images``, ``kubelet_pods.go`` makeMounts,
``pkg/kubelet/container/helpers.go``, ``kuberuntime/security_context.go``). The API validates the text of a path; the
values of its variables are known only here.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from syncline.cluster.machines.containers import Order
from syncline.cluster.machines.processes.environment import declared, expanded
from syncline.kube.objects import Obj, dig, name_of, namespace_of, uid_of
from syncline.kube.text.imagenames import image_problem

CONFIG_ERROR, INVALID_IMAGE = "CreateContainerConfigError", "InvalidImageName"
_REFERENCE = re.compile(r"\$\$|\$\(([^()\s]+)\)")


@dataclass(frozen=True, slots=True)
class Fault:
    """``reason`` and ``message`` of the container's waiting state."""

    reason: str
    message: str


def fault_of(order: Order, missing_variable: str) -> Fault | None:
    """Return the fault, or None. ``missing_variable`` names the missing ConfigMap, Secret or key of its variables, or
    ""."""
    image = image_problem(str(order.container.get("image", "")))
    if image:
        return Fault(INVALID_IMAGE, image)
    problem = missing_variable or _mount_problem(order) or _root_problem(order.pod, order.container)
    return Fault(CONFIG_ERROR, problem) if problem else None


def _mount_problem(order: Order) -> str:
    mounts = [each for each in order.container.get("volumeMounts") or () if _narrows(each)]
    variables = declared(order, {}) if any(each.get("subPathExpr") for each in mounts) else {}
    for mount in mounts:
        path, unknown = str(mount.get("subPath") or ""), ""
        if mount.get("subPathExpr"):
            path, unknown = _expanded(str(mount["subPathExpr"]), variables)
        problem = unknown or _path_problem(path)
        if problem:
            return problem
    return ""


def _narrows(mount: Obj) -> bool:
    return bool(mount.get("subPath") or mount.get("subPathExpr"))


def _expanded(text: str, variables: Mapping[str, str]) -> tuple[str, str]:
    """Return the expanded path, and an error if a variable is empty or unknown."""
    named = {found.group(1) for found in _REFERENCE.finditer(text) if found.group(1)}
    empty = sorted(name for name in named if not variables.get(name))
    return expanded(text, variables), f"missing value for {', '.join(empty)}" if empty else ""


def _path_problem(path: str) -> str:
    if path.startswith("/"):
        return f"error SubPath `{path}` must not be an absolute path"
    if ".." in path.split("/"):
        return f"unable to provision SubPath `{path}`: must not contain '..'"
    return ""


def _root_problem(pod: Obj, container: Obj) -> str:
    """Refuse ``runAsNonRoot`` with ``runAsUser: 0``. The image's user is unknown, so it is not checked."""
    about = [dig(each, "securityContext", default={}) for each in (container, pod.get("spec") or {})]
    never_root, user = (_first(about, key) for key in ("runAsNonRoot", "runAsUser"))
    if not never_root or user != 0:
        return ""
    whom = f'pod: "{name_of(pod)}_{namespace_of(pod)}({uid_of(pod)})", container: {container.get("name")}'
    return f"container's runAsUser breaks non-root policy ({whom})"


def _first(about: list[Obj], key: str) -> object:
    """Return the container's value, else the pod's."""
    return next((each[key] for each in about if each.get(key) is not None), None)
