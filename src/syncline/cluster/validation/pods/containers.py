"""Containers: names, images, ports, mounts, restart rules.

``podspec.py`` calls it with container objects and their paths. Source: Kubernetes ``pkg/apis/core/validation``
(validateContainers and below).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any

from syncline.cluster.validation.engine import names
from syncline.cluster.validation.engine import rules as r
from syncline.cluster.validation.engine.causes import duplicate, forbidden, invalid, not_found, required
from syncline.cluster.validation.engine.fields import each
from syncline.cluster.validation.engine.paths import descending_path_causes, no_backsteps_causes
from syncline.cluster.validation.pods.environment import env_causes
from syncline.cluster.validation.pods.probes import hook_and_probe_causes, init_causes
from syncline.cluster.validation.pods.resources import resource_causes
from syncline.cluster.validation.pods.security import container_security_causes
from syncline.cluster.validation.storage.volumes import Volumes
from syncline.kube.errors import FieldCause
from syncline.kube.objects import Obj

PULL_POLICIES = ("Always", "IfNotPresent", "Never")
PROTOCOLS = ("SCTP", "TCP", "UDP")
MOST_RULES, MOST_EXIT_CODES = 20, 255
NOT_EPHEMERAL = (
    *("ports", "resources", "livenessProbe", "readinessProbe", "startupProbe", "lifecycle", "resizePolicy"),
    *("restartPolicy", "restartPolicyRules"),
)


@dataclass(frozen=True, slots=True)
class Surroundings:
    """The properties of a pod that its containers' checks read."""

    volumes: Volumes
    claims: Collection[str]
    """Names of the pod's resource claims."""
    restart: str
    grace_s: Any
    host_users: bool


def container_list_causes(spec: Obj, path: str, around: Surroundings) -> list[FieldCause]:
    """Validate all containers of a pod spec."""
    causes: list[FieldCause] = []
    if not spec.get("containers"):
        causes.append(required(f"{path}.containers"))
    seen: set[str] = set()
    for where, container in each(spec, "containers", path):
        causes += _container_causes(container, where, around) + _twice(container, where, seen)
        causes += hook_and_probe_causes(container, where, around.grace_s)
        causes += _restart_causes(container, where)
    causes += _host_port_causes(spec, path, "containers")
    names_of_main = set(seen)
    for where, container in each(spec, "initContainers", path):
        causes += _container_causes(container, where, around) + _twice(container, where, names_of_main)
        causes += init_causes(container, where, around.grace_s)
        causes += _restart_causes(container, where)
        causes += _host_port_causes({"initContainers": [container]}, path, "initContainers")
        if container.get("restartPolicy") != "Always":
            causes += _INIT_RESIZE(container, where)
    known = set(names_of_main)
    for where, container in each(spec, "ephemeralContainers", path):
        causes += _container_causes(container, where, around) + _twice(container, where, known)
        causes += _ephemeral_causes(container, where, names_of_main)
    return causes


def _ephemeral_causes(container: Obj, where: str, others: Collection[str]) -> Iterator[FieldCause]:
    yield from _image_space(container, where)
    target = container.get("targetContainerName")
    if target and target not in others:
        yield not_found(f"{where}.targetContainerName", target)
    why = "cannot be set for an Ephemeral Container"
    for key in NOT_EPHEMERAL:
        if container.get(key) or (key == "lifecycle" and container.get(key) is not None):
            yield forbidden(f"{where}.{key}", why)
    for at, mount in each(container, "volumeMounts", where):
        yield from (forbidden(f"{at}.{key}", why) for key in ("subPath", "subPathExpr") if mount.get(key))


_PULL = r.need("imagePullPolicy", r.choice(*PULL_POLICIES))


def _container_causes(container: Obj, where: str, around: Surroundings) -> list[FieldCause]:
    """Validate what all sorts of containers have in common."""
    causes = _BEGIN(container, where)
    causes += _mount_causes(container, where, around.volumes)
    causes += _device_causes(container, where, around.volumes)
    causes += _PULL(container, where)
    causes += resource_causes(container.get("resources"), f"{where}.resources", around.claims)
    causes += _resize_causes(container, where, around.restart)
    context = container.get("securityContext")
    return causes + container_security_causes(context, f"{where}.securityContext", host_users=around.host_users)


def _twice(container: Obj, where: str, seen: set[str]) -> list[FieldCause]:
    name = str(container.get("name") or "")
    if name in seen:
        return [duplicate(f"{where}.name", name)]
    if name:
        seen.add(name)
    return []


def _image_space(container: Obj, where: str) -> list[FieldCause]:
    image = container.get("image")
    if not isinstance(image, str) or image == image.strip():
        return []
    return [invalid(f"{where}.image", image, "must not have leading or trailing whitespace")]


def image_space_causes(spec: Obj, path: str) -> list[FieldCause]:
    """Refuse white space around an image in a Pod; templates may have it."""
    return [
        cause
        for key in ("containers", "initContainers")
        for where, container in each(spec, key, path)
        for cause in _image_space(container, where)
    ]


# --- ports ---------------------------------------------------------------------------------------------------------


def _port_causes(container: Obj, where: str) -> Iterator[FieldCause]:
    seen: set[str] = set()
    for path, port in each(container, "ports", where):
        name = port.get("name")
        if name:
            problems = names.port_name(name)
            yield from (invalid(f"{path}.name", name, problem) for problem in problems)
            if name in seen and not problems:
                yield duplicate(f"{path}.name", name)
            seen.add(name)
        yield from _PORT(port, path)


_PORT = r.every(r.need("containerPort", r.port), r.filled("hostPort", r.port), r.need("protocol", r.choice(*PROTOCOLS)))
_BEGIN = r.every(
    r.filled("name", r.label),
    r.needs("name", "image"),
    r.need("terminationMessagePolicy", r.choice("File", "FallbackToLogsOnError")),
    _port_causes,
    env_causes,
)


def _host_port_causes(spec: Obj, path: str, key: str) -> Iterator[FieldCause]:
    """Refuse two containers with the same host port."""
    seen: set[str] = set()
    for where, container in each(spec, key, path):
        for at, port in each(container, "ports", where):
            if port.get("hostPort"):
                text = f"{port.get('protocol')}/{port.get('hostIP', '')}/{port['hostPort']}"
                if text in seen:
                    yield duplicate(f"{at}.hostPort", text)
                seen.add(text)


# --- mounts and devices --------------------------------------------------------------------------------------------


def _mount_causes(container: Obj, where: str, volumes: Volumes) -> Iterator[FieldCause]:
    """Validate mounts; causes of sub-paths and propagation name the list, as in Kubernetes."""
    seen: set[str] = set()
    devices = {str(one.get("name")): str(one.get("devicePath")) for one in r.list_of(container, "volumeDevices")}
    listed = f"{where}.volumeMounts"
    for path, mount in each(container, "volumeMounts", where):
        name, at = str(mount.get("name") or ""), str(mount.get("mountPath") or "")
        if not name:
            yield required(f"{path}.name")
        if name not in volumes:
            yield not_found(f"{path}.name", name)
        if not at:
            yield required(f"{path}.mountPath")
        if at in seen:
            yield invalid(f"{path}.mountPath", at, "must be unique")
        seen.add(at)
        if name in devices:
            yield invalid(f"{path}.name", name, "must not already exist in volumeDevices")
        if at in devices.values():
            yield invalid(f"{path}.mountPath", at, "must not already exist as a path in volumeDevices")
        yield from descending_path_causes(mount.get("subPath"), f"{listed}.subPath")
        expression = mount.get("subPathExpr")
        if expression and mount.get("subPath"):
            yield invalid(f"{path}.subPathExpr", expression, "subPathExpr and subPath are mutually exclusive")
        yield from descending_path_causes(expression, f"{listed}.subPathExpr")
        yield from _propagation_causes(container, mount, listed)


_PROPAGATION = r.field("mountPropagation", r.choice("Bidirectional", "HostToContainer", "None"))
_RECURSIVE = r.field("recursiveReadOnly", r.choice("Disabled", "Enabled", "IfPossible"))


def _propagation_causes(container: Obj, mount: Obj, listed: str) -> Iterator[FieldCause]:
    mode, at = mount.get("mountPropagation"), f"{listed}.recursiveReadOnly"
    yield from _PROPAGATION(mount, listed)
    if mode == "Bidirectional" and not (container.get("securityContext") or {}).get("privileged"):
        why = "Bidirectional mount propagation is available only to privileged containers"
        yield forbidden(f"{listed}.mountPropagation", why)
    yield from _RECURSIVE(mount, listed)
    if mount.get("recursiveReadOnly") in ("Enabled", "IfPossible"):
        if not mount.get("readOnly"):
            yield forbidden(at, "may only be specified when readOnly is true")
        if mode not in (None, "None"):
            yield forbidden(at, "may only be specified when mountPropagation is None or not specified")


def _device_causes(container: Obj, where: str, volumes: Volumes) -> Iterator[FieldCause]:
    seen: set[str] = set()
    paths: set[str] = set()
    mounts = {str(one.get("name")): str(one.get("mountPath")) for one in r.list_of(container, "volumeMounts")}
    for path, device in each(container, "volumeDevices", where):
        name, at = str(device.get("name") or ""), str(device.get("devicePath") or "")
        volume = volumes.get(name)
        if not name:
            yield required(f"{path}.name")
        if name in seen:
            yield invalid(f"{path}.name", name, "must be unique")
        if volume is None:
            yield not_found(f"{path}.name", name)
        elif not (volume.get("persistentVolumeClaim") or volume.get("ephemeral")):
            why = "can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode"
            yield invalid(f"{path}.name", name, why)
        if not at:
            yield required(f"{path}.devicePath")
        if at in paths:
            yield invalid(f"{path}.devicePath", at, "must be unique")
        if no_backsteps_causes(at, path):
            yield invalid(f"{path}.devicePath", at, "can not contain backsteps ('..')")
        else:
            paths.add(at)
        if name in mounts:
            yield invalid(f"{path}.name", name, "must not already exist in volumeMounts")
        if at in mounts.values():
            yield invalid(f"{path}.devicePath", at, "must not already exist as a path in volumeMounts")
        if name:
            seen.add(name)


# --- restarting and resizing ---------------------------------------------------------------------------------------

_RESTART = r.every(
    r.field("restartPolicy", r.choice("Always", "Never", "OnFailure")),
    r.field("restartPolicyRules", r.most(MOST_RULES)),
    r.each(
        "restartPolicyRules",
        r.text("action", r.choice("Restart", "RestartAllContainers")),
        r.demand(r.lacks("exitCodes"), "exitCodes", "must be specified"),
        r.field(
            "exitCodes",
            r.text("operator", r.choice("In", "NotIn")),
            r.field("values", r.most(MOST_EXIT_CODES)),
        ),
    ),
)


def _restart_causes(container: Obj, where: str) -> Iterator[FieldCause]:
    """Validate a container's restart policy, and its rules for exit codes."""
    if container.get("restartPolicy") is None and r.list_of(container, "restartPolicyRules"):
        yield required(f"{where}.restartPolicy", "must specify restartPolicy when restart rules are used")
        if "initContainers" in where:
            return
    yield from _RESTART(container, where)


_RESIZED, _RESIZE = r.choice("cpu", "memory"), r.choice("NotRequired", "RestartContainer")


def _resize_causes(container: Obj, where: str, pod_restart: str) -> Iterator[FieldCause]:
    path = f"{where}.resizePolicy"
    seen: set[str] = set()
    for at, rule in each(container, "resizePolicy", where):
        name, policy = str(rule.get("resourceName") or ""), str(rule.get("restartPolicy") or "")
        if name in seen:
            yield duplicate(at, name)
        seen.add(name)
        yield from _RESIZED(name, path) if name else [required(path)]
        yield from _RESIZE(policy, path) if policy else [required(path)]
        if pod_restart == "Never" and policy != "NotRequired":
            yield invalid(path, policy, "must be 'NotRequired' when pod `restartPolicy` is 'Never'")


_INIT_RESIZE = r.each(
    "resizePolicy",
    r.refuse(
        r.where(restartPolicy="RestartContainer"),
        "restartPolicy",
        "must not be set to 'RestartContainer' for non-sidecar initContainers",
    ),
)
