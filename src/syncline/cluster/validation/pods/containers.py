"""Containers: names, images, ports, mounts, restart rules.

Called by ``podspec.py``. Container objects and their paths come in, causes leave. Source:
Kubernetes ``pkg/apis/core/validation`` (validateContainers and below).
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from syncline.cluster.validation.engine import names
from syncline.cluster.validation.engine.causes import (
    duplicate,
    forbidden,
    invalid,
    not_found,
    required,
    too_many,
    unsupported,
)
from syncline.cluster.validation.engine.fields import each, one_of, port_number
from syncline.cluster.validation.engine.paths import descending_path_causes, no_backsteps_causes
from syncline.cluster.validation.pods.environment import env_causes
from syncline.cluster.validation.pods.probes import hook_and_probe_causes, init_causes
from syncline.cluster.validation.pods.resources import resource_causes
from syncline.cluster.validation.pods.security import container_security_causes
from syncline.cluster.validation.storage.volumes import Volumes
from syncline.kube.errors import FieldCause
from syncline.kube.objects import Obj

__all__ = ["PROTOCOLS", "Surroundings", "container_list_causes", "image_space_causes"]

PULL_POLICIES = ("Always", "IfNotPresent", "Never")
TERMINATION_POLICIES = ("File", "FallbackToLogsOnError")
PROTOCOLS = ("SCTP", "TCP", "UDP")
RESTARTS = ("Always", "Never", "OnFailure")
RULE_ACTIONS = ("Restart", "RestartAllContainers")
RESIZES = ("NotRequired", "RestartContainer")
PROPAGATIONS = ("Bidirectional", "HostToContainer", "None")
RECURSIVE = ("Disabled", "Enabled", "IfPossible")
MOST_RULES, MOST_EXIT_CODES = 20, 255
NOT_EPHEMERAL = (
    "ports",
    "resources",
    "livenessProbe",
    "readinessProbe",
    "startupProbe",
    "lifecycle",
    "resizePolicy",
    "restartPolicy",
    "restartPolicyRules",
)


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What a container's checks need to know of its pod."""

    volumes: Volumes
    claims: Collection[str]
    """Names of the pod's resource claims."""
    restart: str
    grace_s: Any
    host_users: bool


def container_list_causes(spec: Obj, path: str, around: Surroundings) -> list[FieldCause]:
    """All containers of a pod spec."""
    causes: list[FieldCause] = []
    if not spec.get("containers"):
        causes.append(required(f"{path}.containers"))
    seen: set[str] = set()
    for where, container in each(spec, "containers", path):
        causes += _container_causes(container, where, around) + _twice(container, where, seen)
        causes += hook_and_probe_causes(container, where, around.grace_s) + _restart_causes(container, where)
    causes += _host_port_causes(spec, path, "containers")
    names_of_main = set(seen)
    for where, container in each(spec, "initContainers", path):
        causes += _container_causes(container, where, around) + _twice(container, where, names_of_main)
        causes += init_causes(container, where, around.grace_s) + _restart_causes(container, where)
        causes += _host_port_causes({"initContainers": [container]}, path, "initContainers")
        causes += _init_resize_causes(container, where)
    return causes + _ephemeral_causes(spec, path, around, names_of_main)


def _ephemeral_causes(spec: Obj, path: str, around: Surroundings, others: Collection[str]) -> list[FieldCause]:
    causes: list[FieldCause] = []
    observed = set(others)
    for where, container in each(spec, "ephemeralContainers", path):
        causes += _container_causes(container, where, around) + _twice(container, where, observed)
        causes += _image_space(container, where)
        target = container.get("targetContainerName")
        if target and target not in others:
            causes.append(not_found(f"{where}.targetContainerName", target))
        why = "cannot be set for an Ephemeral Container"
        causes += [
            forbidden(f"{where}.{key}", why)
            for key in NOT_EPHEMERAL
            if container.get(key) or (key == "lifecycle" and container.get(key) is not None)
        ]
        for at, mount in each(container, "volumeMounts", where):
            causes += [forbidden(f"{at}.{key}", why) for key in ("subPath", "subPathExpr") if mount.get(key)]
    return causes


def _container_causes(container: Obj, where: str, around: Surroundings) -> list[FieldCause]:
    """What containers of all sorts have alike."""
    name = container.get("name")
    causes = [invalid(f"{where}.name", name, problem) for problem in names.dns_label(str(name))] if name else []
    causes += [required(f"{where}.{key}") for key in ("name", "image") if not container.get(key)]
    causes += one_of(container, where, "terminationMessagePolicy", TERMINATION_POLICIES)
    causes += _port_causes(container, where) + env_causes(container, where)
    causes += _mount_causes(container, where, around.volumes) + _device_causes(container, where, around.volumes)
    causes += one_of(container, where, "imagePullPolicy", PULL_POLICIES)
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
    """White space around an image: refused in a Pod, tolerated in a template."""
    return [
        cause
        for key in ("containers", "initContainers")
        for where, container in each(spec, key, path)
        for cause in _image_space(container, where)
    ]


# --- ports ---------------------------------------------------------------------------------------------------------


def _port_causes(container: Obj, where: str) -> list[FieldCause]:
    causes: list[FieldCause] = []
    seen: set[str] = set()
    for path, port in each(container, "ports", where):
        name = port.get("name")
        if name:
            problems = names.port_name(name)
            causes += [invalid(f"{path}.name", name, problem) for problem in problems]
            if name in seen and not problems:
                causes.append(duplicate(f"{path}.name", name))
            seen.add(name)
        if not port.get("containerPort"):
            causes.append(required(f"{path}.containerPort"))
        else:
            causes += port_number(port["containerPort"], f"{path}.containerPort")
        if port.get("hostPort"):
            causes += port_number(port["hostPort"], f"{path}.hostPort")
        causes += one_of(port, path, "protocol", PROTOCOLS)
    return causes


def _host_port_causes(spec: Obj, path: str, key: str) -> list[FieldCause]:
    """Two containers of a pod cannot hold the same port of the host."""
    causes: list[FieldCause] = []
    seen: set[str] = set()
    for where, container in each(spec, key, path):
        for at, port in each(container, "ports", where):
            if port.get("hostPort"):
                text = f"{port.get('protocol')}/{port.get('hostIP', '')}/{port['hostPort']}"
                if text in seen:
                    causes.append(duplicate(f"{at}.hostPort", text))
                seen.add(text)
    return causes


# --- mounts and devices --------------------------------------------------------------------------------------------


def _mount_causes(container: Obj, where: str, volumes: Volumes) -> list[FieldCause]:
    """Sub-paths and propagation are named on the list, as Kubernetes does."""
    causes: list[FieldCause] = []
    seen: set[str] = set()
    devices = {str(one.get("name")): str(one.get("devicePath")) for _, one in each(container, "volumeDevices", "")}
    listed = f"{where}.volumeMounts"
    for path, mount in each(container, "volumeMounts", where):
        name, at = str(mount.get("name") or ""), str(mount.get("mountPath") or "")
        if not name:
            causes.append(required(f"{path}.name"))
        if name not in volumes:
            causes.append(not_found(f"{path}.name", name))
        if not at:
            causes.append(required(f"{path}.mountPath"))
        if at in seen:
            causes.append(invalid(f"{path}.mountPath", at, "must be unique"))
        seen.add(at)
        if name in devices:
            causes.append(invalid(f"{path}.name", name, "must not already exist in volumeDevices"))
        if at in devices.values():
            causes.append(invalid(f"{path}.mountPath", at, "must not already exist as a path in volumeDevices"))
        causes += descending_path_causes(mount.get("subPath"), f"{listed}.subPath")
        expression = mount.get("subPathExpr")
        if expression and mount.get("subPath"):
            why = "subPathExpr and subPath are mutually exclusive"
            causes.append(invalid(f"{path}.subPathExpr", expression, why))
        causes += descending_path_causes(expression, f"{listed}.subPathExpr")
        causes += _propagation_causes(container, mount, listed)
    return causes


def _propagation_causes(container: Obj, mount: Obj, listed: str) -> list[FieldCause]:
    causes: list[FieldCause] = []
    mode, recursive = mount.get("mountPropagation"), mount.get("recursiveReadOnly")
    if mode is not None and mode not in PROPAGATIONS:
        causes.append(unsupported(f"{listed}.mountPropagation", mode, PROPAGATIONS))
    if mode == "Bidirectional" and not (container.get("securityContext") or {}).get("privileged"):
        why = "Bidirectional mount propagation is available only to privileged containers"
        causes.append(forbidden(f"{listed}.mountPropagation", why))
    if recursive is not None and recursive not in RECURSIVE:
        causes.append(unsupported(f"{listed}.recursiveReadOnly", recursive, RECURSIVE))
    if recursive in ("Enabled", "IfPossible"):
        if not mount.get("readOnly"):
            causes.append(forbidden(f"{listed}.recursiveReadOnly", "may only be specified when readOnly is true"))
        if mode not in (None, "None"):
            why = "may only be specified when mountPropagation is None or not specified"
            causes.append(forbidden(f"{listed}.recursiveReadOnly", why))
    return causes


def _device_causes(container: Obj, where: str, volumes: Volumes) -> list[FieldCause]:
    causes: list[FieldCause] = []
    seen_names: set[str] = set()
    seen_paths: set[str] = set()
    mounts = {str(one.get("name")): str(one.get("mountPath")) for _, one in each(container, "volumeMounts", "")}
    for path, device in each(container, "volumeDevices", where):
        name, at = str(device.get("name") or ""), str(device.get("devicePath") or "")
        volume = volumes.get(name)
        if not name:
            causes.append(required(f"{path}.name"))
        if name in seen_names:
            causes.append(invalid(f"{path}.name", name, "must be unique"))
        if volume is None:
            causes.append(not_found(f"{path}.name", name))
        elif not (volume.get("persistentVolumeClaim") or volume.get("ephemeral")):
            why = "can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode"
            causes.append(invalid(f"{path}.name", name, why))
        if not at:
            causes.append(required(f"{path}.devicePath"))
        if at in seen_paths:
            causes.append(invalid(f"{path}.devicePath", at, "must be unique"))
        if no_backsteps_causes(at, path):
            causes.append(invalid(f"{path}.devicePath", at, "can not contain backsteps ('..')"))
        else:
            seen_paths.add(at)
        if name in mounts:
            causes.append(invalid(f"{path}.name", name, "must not already exist in volumeMounts"))
        if at in mounts.values():
            causes.append(invalid(f"{path}.devicePath", at, "must not already exist as a path in volumeMounts"))
        if name:
            seen_names.add(name)
    return causes


# --- restarting and resizing ---------------------------------------------------------------------------------------


def _restart_causes(container: Obj, where: str) -> list[FieldCause]:
    """A container's own policy, and the exit codes after which it is made anew."""
    policy, rules = container.get("restartPolicy"), list(each(container, "restartPolicyRules", where))
    causes: list[FieldCause] = []
    if policy is None and rules:
        why = "must specify restartPolicy when restart rules are used"
        causes.append(required(f"{where}.restartPolicy", why))
        if "initContainers" in where:
            return causes
    if policy is not None and policy not in RESTARTS:
        causes.append(unsupported(f"{where}.restartPolicy", policy, RESTARTS))
    if len(rules) > MOST_RULES:
        causes.append(too_many(f"{where}.restartPolicyRules", len(rules), MOST_RULES))
    for at, rule in rules:
        action, codes = rule.get("action") or "", rule.get("exitCodes")
        if action not in RULE_ACTIONS:
            causes.append(unsupported(f"{at}.action", action, RULE_ACTIONS))
        if not isinstance(codes, dict):
            causes.append(required(f"{at}.exitCodes", "must be specified"))
            continue
        if codes.get("operator") not in ("In", "NotIn"):
            causes.append(unsupported(f"{at}.exitCodes.operator", codes.get("operator") or "", ("In", "NotIn")))
        if len(codes.get("values") or ()) > MOST_EXIT_CODES:
            causes.append(too_many(f"{at}.exitCodes.values", len(codes["values"]), MOST_EXIT_CODES))
    return causes


def _resize_causes(container: Obj, where: str, pod_restart: str) -> list[FieldCause]:
    causes: list[FieldCause] = []
    seen: set[str] = set()
    path = f"{where}.resizePolicy"
    for at, rule in each(container, "resizePolicy", where):
        name, policy = str(rule.get("resourceName") or ""), str(rule.get("restartPolicy") or "")
        if name in seen:
            causes.append(duplicate(at, name))
        seen.add(name)
        for value, allowed in ((name, ("cpu", "memory")), (policy, RESIZES)):
            if not value:
                causes.append(required(path))
            elif value not in allowed:
                causes.append(unsupported(path, value, allowed))
        if pod_restart == "Never" and policy != "NotRequired":
            why = "must be 'NotRequired' when pod `restartPolicy` is 'Never'"
            causes.append(invalid(path, policy, why))
    return causes


def _init_resize_causes(container: Obj, where: str) -> list[FieldCause]:
    if container.get("restartPolicy") == "Always":
        return []
    why = "must not be set to 'RestartContainer' for non-sidecar initContainers"
    return [
        invalid(f"{at}.restartPolicy", rule["restartPolicy"], why)
        for at, rule in each(container, "resizePolicy", where)
        if rule.get("restartPolicy") == "RestartContainer"
    ]
