"""Containers: names, images, ports, variables, mounts, probes, resources.

Called by :mod:`syncline.cluster.kinds.podspec`. Container objects and their paths come in, causes leave. Source:
Kubernetes ``pkg/apis/core/validation`` (validateContainers and below).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any

from syncline.cluster.kinds import names
from syncline.cluster.kinds.causes import duplicate, forbidden, invalid, not_found, required, unsupported
from syncline.cluster.kinds.fields import PORT_RANGE, each, natural_numbers, one_of, port_number
from syncline.kube.errors import FieldCause
from syncline.kube.objects import Obj
from syncline.kube.quantity import Quantity, QuantityError, parse_quantity

__all__ = ["PROTOCOLS", "container_list_causes", "image_space_causes", "port_or_name_causes", "resource_causes"]

PULL_POLICIES = ("Always", "IfNotPresent", "Never")
TERMINATION_POLICIES = ("FallbackToLogsOnError", "File")
PROTOCOLS = ("SCTP", "TCP", "UDP")
STANDARD_RESOURCES = ("cpu", "ephemeral-storage", "memory")
RESOURCE_PATHS = (
    "limits.cpu",
    "limits.ephemeral-storage",
    "limits.memory",
    "requests.cpu",
    "requests.ephemeral-storage",
    "requests.memory",
)
MAX_ID = 2**31 - 1
INIT_ONLY = "may not be set for init containers without restartPolicy=Always"
HANDLERS = ("exec", "httpGet", "tcpSocket", "grpc", "sleep")
ENV_SOURCES = ("fieldRef", "resourceFieldRef", "configMapKeyRef", "secretKeyRef", "fileKeyRef")
FIELD_PATHS = (
    "metadata.annotations",
    "metadata.labels",
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
    "spec.nodeName",
    "spec.serviceAccountName",
    "status.hostIP",
    "status.hostIPs",
    "status.podIP",
    "status.podIPs",
)
"""What a variable may show; single labels and annotations are written with a subscript."""


def container_list_causes(spec: Obj, path: str, volumes: Collection[str]) -> list[FieldCause]:
    """All containers of a pod spec; ``volumes`` are the names of its valid volumes."""
    causes: list[FieldCause] = []
    if not spec.get("containers"):
        causes.append(required(f"{path}.containers"))
    seen: set[str] = set()
    for where, container in each(spec, "containers", path):
        causes += _container_causes(container, where, volumes, seen)
        causes += _hook_and_probe_causes(container, where)
    for where, container in each(spec, "initContainers", path):
        causes += _container_causes(container, where, volumes, seen)
        causes += _init_causes(container, where)
    causes += _host_port_causes(spec, path, "containers")
    return causes


def _container_causes(container: Obj, where: str, volumes: Collection[str], seen: set[str]) -> list[FieldCause]:
    causes = _name_causes(container.get("name"), f"{where}.name", seen)
    image = container.get("image") or ""
    if not image:
        causes.append(required(f"{where}.image"))
    causes += one_of(container, where, "terminationMessagePolicy", TERMINATION_POLICIES)
    causes += _port_causes(container, where)
    causes += _env_causes(container, where)
    causes += _mount_causes(container, where, volumes)
    causes += one_of(container, where, "imagePullPolicy", PULL_POLICIES)
    causes += resource_causes(container.get("resources"), f"{where}.resources")
    return causes + _security_causes(container.get("securityContext"), f"{where}.securityContext")


def _name_causes(name: Any, path: str, seen: set[str]) -> list[FieldCause]:
    if not name:
        return [required(path)]
    causes = [invalid(path, name, problem) for problem in names.dns_label(str(name))]
    if name in seen:
        causes.append(duplicate(path, name))
    seen.add(name)
    return causes


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


def _env_causes(container: Obj, where: str) -> list[FieldCause]:
    causes: list[FieldCause] = []
    for path, variable in each(container, "env", where):
        name = variable.get("name")
        if not name:
            causes.append(required(f"{path}.name"))
        else:
            causes += [invalid(f"{path}.name", name, problem) for problem in names.env_name(name)]
        if isinstance(variable.get("valueFrom"), dict):
            causes += _value_from_causes(variable, f"{path}.valueFrom")
    return causes + _env_from_causes(container, where)


def _env_from_causes(container: Obj, where: str) -> list[FieldCause]:
    """Kubernetes names the list, not the entry, for a wrong number of sources."""
    causes: list[FieldCause] = []
    for path, source in each(container, "envFrom", where):
        prefix = source.get("prefix")
        if prefix:
            causes += [invalid(f"{path}.prefix", prefix, problem) for problem in names.env_name(prefix)]
        kinds = [kind for kind in ("configMapRef", "secretRef") if source.get(kind) is not None]
        if not kinds:
            causes.append(invalid(f"{where}.envFrom", "", "must specify one of: `configMapRef` or `secretRef`"))
        elif len(kinds) > 1:
            causes.append(invalid(f"{where}.envFrom", "", "may not have more than one field specified at a time"))
        causes += [required(f"{path}.{kind}.name") for kind in kinds if not (source[kind] or {}).get("name")]
    return causes


def _value_from_causes(variable: Obj, path: str) -> list[FieldCause]:
    source = variable["valueFrom"]
    kinds = [kind for kind in ENV_SOURCES if source.get(kind) is not None]
    causes: list[FieldCause] = []
    if not kinds:
        why = "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`"
        causes.append(invalid(path, "", why))
    elif variable.get("value"):
        causes.append(invalid(path, "", "may not be specified when `value` is not empty"))
    elif len(kinds) > 1:
        causes.append(invalid(path, "", "may not have more than one field specified at a time"))
    for kind in kinds:
        causes += _source_causes(kind, source[kind], f"{path}.{kind}")
    return causes


def _source_causes(kind: str, source: Obj, path: str) -> list[FieldCause]:
    match kind:
        case "fieldRef":
            return _field_path_causes(source.get("fieldPath") or "", f"{path}.fieldPath")
        case "resourceFieldRef":
            return _resource_path_causes(source.get("resource"), f"{path}.resource")
        case "configMapKeyRef" | "secretKeyRef":
            key = source.get("key")
            if not key:
                return [required(f"{path}.key")]
            return [invalid(f"{path}.key", key, problem) for problem in names.config_key(key)]
        case _:
            return []


def _resource_path_causes(text: Any, path: str) -> list[FieldCause]:
    if not text:
        return [required(path)]
    known = text in RESOURCE_PATHS or str(text).startswith(("limits.hugepages-", "requests.hugepages-"))
    return [] if known else [unsupported(path, text, RESOURCE_PATHS)]


def image_space_causes(spec: Obj, path: str) -> list[FieldCause]:
    """White space around an image: refused in a Pod, tolerated in a template."""
    return [
        invalid(f"{where}.image", container["image"], "must not have leading or trailing whitespace")
        for key in ("containers", "initContainers")
        for where, container in each(spec, key, path)
        if isinstance(container.get("image"), str) and container["image"] != container["image"].strip()
    ]


def _field_path_causes(text: str, path: str) -> list[FieldCause]:
    if not text:
        return [required(path)]
    base = text.split("[", 1)[0]
    subscripted = base != text and base in ("metadata.annotations", "metadata.labels")
    allowed = tuple(one for one in FIELD_PATHS if one not in ("metadata.annotations", "metadata.labels"))
    return [] if subscripted or text in allowed else [unsupported(path, text, allowed)]


def _mount_causes(container: Obj, where: str, volumes: Collection[str]) -> list[FieldCause]:
    causes: list[FieldCause] = []
    seen: set[str] = set()
    for path, mount in each(container, "volumeMounts", where):
        name, at = mount.get("name"), mount.get("mountPath")
        if not name:
            causes.append(required(f"{path}.name"))
        if name not in volumes:
            causes.append(not_found(f"{path}.name", name or ""))
        if not at:
            causes.append(required(f"{path}.mountPath"))
        elif at in seen:
            causes.append(invalid(f"{path}.mountPath", at, "must be unique"))
        seen.add(str(at))
        causes += relative_path_causes(mount.get("subPath"), f"{path}.subPath")
    return causes


def relative_path_causes(value: Any, path: str) -> list[FieldCause]:
    if not isinstance(value, str) or not value:
        return []
    causes = [invalid(path, value, "must be a relative path")] if value.startswith("/") else []
    if ".." in value.split("/"):
        causes.append(invalid(path, value, "must not contain '..'"))
    return causes


def _hook_and_probe_causes(container: Obj, where: str) -> list[FieldCause]:
    causes: list[FieldCause] = []
    lifecycle = container.get("lifecycle")
    for hook in ("postStart", "preStop"):
        if isinstance(lifecycle, dict) and isinstance(lifecycle.get(hook), dict):
            causes += _handler_causes(lifecycle[hook], f"{where}.lifecycle.{hook}")
    for name in ("livenessProbe", "readinessProbe", "startupProbe"):
        probe = container.get(name)
        if isinstance(probe, dict):
            causes += _probe_causes(probe, f"{where}.{name}")
            if name != "readinessProbe" and probe.get("successThreshold", 1) != 1:
                causes.append(invalid(f"{where}.{name}.successThreshold", probe["successThreshold"], "must be 1"))
    return causes


def _init_causes(container: Obj, where: str) -> list[FieldCause]:
    """Init containers end; only the ones that restart always (sidecars) have hooks and probes."""
    if container.get("restartPolicy") == "Always":
        return _hook_and_probe_causes(container, where)
    keys = ("lifecycle", "livenessProbe", "readinessProbe", "startupProbe")
    return [forbidden(f"{where}.{key}", INIT_ONLY) for key in keys if container.get(key) is not None]


def _probe_causes(probe: Obj, path: str) -> list[FieldCause]:
    numbers = ("initialDelaySeconds", "timeoutSeconds", "periodSeconds", "successThreshold", "failureThreshold")
    return _handler_causes(probe, path) + natural_numbers(probe, path, *numbers)


def _handler_causes(handler: Obj, path: str) -> list[FieldCause]:
    kinds = [kind for kind in HANDLERS if handler.get(kind) is not None]
    if not kinds:
        return [required(path, "must specify a handler type")]
    causes = [forbidden(f"{path}.{kind}", "may not specify more than 1 handler type") for kind in kinds[1:]]
    kind, content = kinds[0], handler[kinds[0]]
    where = f"{path}.{kind}"
    if kind == "exec" and not content.get("command"):
        causes.append(required(f"{where}.command"))
    if kind == "httpGet":
        if not content.get("path"):
            causes.append(required(f"{where}.path"))
        causes += port_or_name_causes(content.get("port"), f"{where}.port")
        causes += one_of(content, where, "scheme", ("HTTP", "HTTPS"))
    if kind == "tcpSocket":
        causes += port_or_name_causes(content.get("port"), f"{where}.port")
    return causes


def port_or_name_causes(value: Any, path: str) -> list[FieldCause]:
    if isinstance(value, str):
        return [invalid(path, value, problem) for problem in names.port_name(value)]
    return [] if isinstance(value, int) and 0 < value < 65536 else [invalid(path, value or 0, PORT_RANGE)]


def _security_causes(context: Any, path: str) -> list[FieldCause]:
    if not isinstance(context, dict):
        return []
    causes = [
        invalid(f"{path}.{key}", context[key], f"must be between 0 and {MAX_ID}, inclusive")
        for key in ("runAsUser", "runAsGroup")
        if isinstance(context.get(key), int) and not 0 <= context[key] <= MAX_ID
    ]
    if context.get("allowPrivilegeEscalation") is False and context.get("privileged") is True:
        why = "cannot set `allowPrivilegeEscalation` to false and `privileged` to true"
        causes.append(invalid(path, context, why))
    return causes


def resource_causes(resources: Any, path: str) -> list[FieldCause]:
    """Limits and requests of a container."""
    if not isinstance(resources, dict):
        return []
    limits, requests = dict(_amounts(resources.get("limits"))), dict(_amounts(resources.get("requests")))
    causes: list[FieldCause] = []
    for key, amounts in (("limits", limits), ("requests", requests)):
        for name, amount in sorted(amounts.items()):
            causes += _resource_name_causes(name, f"{path}.{key}")
            if amount.nano < 0:
                causes.append(invalid(f"{path}.{key}[{name}]", str(amount), "must be greater than or equal to 0"))
    for name, amount in sorted(requests.items()):
        causes += _request_causes(name, amount, limits, path)
    return causes


def _request_causes(name: str, amount: Quantity, limits: Mapping[str, Quantity], path: str) -> list[FieldCause]:
    """A request stays below its limit; what cannot be shared must be equal to it."""
    limit, shared = limits.get(name), name in STANDARD_RESOURCES
    if limit is None:
        why = "Limit must be set for non overcommitable resources"
        return [] if shared else [required(f"{path}.limits", why)]
    if not shared and amount != limit:
        return [invalid(f"{path}.requests", str(amount), f"must be equal to {name} limit of {limit}")]
    if amount > limit:
        return [invalid(f"{path}.requests", str(amount), f"must be less than or equal to {name} limit of {limit}")]
    return []


def _resource_name_causes(name: str, path: str) -> list[FieldCause]:
    causes = [invalid(path, name, problem) for problem in names.qualified_name(name)]
    if "/" not in name and name not in STANDARD_RESOURCES and not name.startswith("hugepages-"):
        causes.append(invalid(path, name, "must be a standard resource type or fully qualified"))
        causes.append(invalid(path, name, "must be a standard resource for containers"))
    return causes


def _amounts(listed: Any) -> Iterator[tuple[str, Quantity]]:
    for name, amount in listed.items() if isinstance(listed, dict) else ():
        try:
            yield name, parse_quantity(amount)
        except QuantityError:
            continue  # refused while defaulting
