"""Probes, hooks and the handlers that both have.

Called by the validators of containers. Objects and their paths come in, causes leave. Source: Kubernetes
``pkg/apis/core/validation`` (validateProbe, validateHandler, validateLifecycle).
"""

from __future__ import annotations

from typing import Any

from syncline.cluster.validation.engine import names
from syncline.cluster.validation.engine.causes import forbidden, invalid, required, unsupported
from syncline.cluster.validation.engine.fields import PORT_RANGE, each, natural_numbers
from syncline.kube.errors import FieldCause
from syncline.kube.objects import Obj

__all__ = ["hook_and_probe_causes", "init_causes", "port_or_name_causes"]

PROBES = ("livenessProbe", "readinessProbe", "startupProbe")
HANDLERS = ("exec", "httpGet", "tcpSocket", "grpc", "sleep")
SCHEMES = ("HTTP", "HTTPS")
NUMBERS = ("initialDelaySeconds", "timeoutSeconds", "periodSeconds", "successThreshold", "failureThreshold")
INIT_ONLY = "may not be set for init containers without restartPolicy=Always"


def hook_and_probe_causes(container: Obj, where: str, grace_s: Any) -> list[FieldCause]:
    """``grace_s`` is the pod's terminationGracePeriodSeconds, which a sleep before the end may not exceed."""
    causes: list[FieldCause] = []
    lifecycle = container.get("lifecycle")
    for hook in ("postStart", "preStop"):
        if isinstance(lifecycle, dict) and isinstance(lifecycle.get(hook), dict):
            causes += _handler_causes(lifecycle[hook], f"{where}.lifecycle.{hook}", grace_s)
    for name in PROBES:
        if isinstance(container.get(name), dict):
            causes += _probe_causes(name, container[name], f"{where}.{name}", grace_s)
    return causes


def init_causes(container: Obj, where: str, grace_s: Any) -> list[FieldCause]:
    """Init containers end; only the ones that restart always (sidecars) have hooks and probes."""
    if container.get("restartPolicy") == "Always":
        return hook_and_probe_causes(container, where, grace_s)
    keys = ("lifecycle", *PROBES)
    return [forbidden(f"{where}.{key}", INIT_ONLY) for key in keys if container.get(key) is not None]


def _probe_causes(name: str, probe: Obj, path: str, grace_s: Any) -> list[FieldCause]:
    causes = _handler_causes(probe, path, grace_s) + natural_numbers(probe, path, *NUMBERS)
    grace = probe.get("terminationGracePeriodSeconds")
    if isinstance(grace, int) and grace <= 0:
        causes.append(invalid(f"{path}.terminationGracePeriodSeconds", grace, "must be greater than 0"))
    if name == "readinessProbe":
        if grace is not None:
            why = "must not be set for readinessProbes"
            causes.append(invalid(f"{path}.terminationGracePeriodSeconds", grace, why))
    elif probe.get("successThreshold", 1) != 1:
        causes.append(invalid(f"{path}.successThreshold", probe["successThreshold"], "must be 1"))
    return causes


def _handler_causes(handler: Obj, path: str, grace_s: Any) -> list[FieldCause]:
    kinds = [kind for kind in HANDLERS if isinstance(handler.get(kind), dict)]
    if not kinds:
        return [required(path, "must specify a handler type")]
    causes = [forbidden(f"{path}.{kind}", "may not specify more than 1 handler type") for kind in kinds[1:]]
    kind, content = kinds[0], handler[kinds[0]]
    where = f"{path}.{kind}"
    match kind:
        case "exec":
            return causes if content.get("command") else [*causes, required(f"{where}.command")]
        case "httpGet":
            return causes + _http_causes(content, where)
        case "sleep":
            return causes + _sleep_causes(content, where, grace_s)
        case _:
            return causes + port_or_name_causes(content.get("port"), f"{where}.port")


def _http_causes(content: Obj, where: str) -> list[FieldCause]:
    causes = [] if content.get("path") else [required(f"{where}.path")]
    causes += port_or_name_causes(content.get("port"), f"{where}.port")
    scheme = content.get("scheme") or ""
    if scheme not in SCHEMES:
        causes.append(unsupported(f"{where}.scheme", scheme, SCHEMES))
    for _, header in each(content, "httpHeaders", where):
        name = str(header.get("name") or "")
        causes += [invalid(f"{where}.httpHeaders", name, problem) for problem in names.http_header(name)]
    return causes


def _sleep_causes(content: Obj, where: str, grace_s: Any) -> list[FieldCause]:
    seconds = content.get("seconds") or 0
    if not isinstance(grace_s, int) or 0 <= seconds <= grace_s:
        return []
    why = f"must be non-negative and less than terminationGracePeriodSeconds ({grace_s})"
    return [invalid(where, seconds, why)]


def port_or_name_causes(value: Any, path: str) -> list[FieldCause]:
    if isinstance(value, str):
        return [invalid(path, value, problem) for problem in names.port_name(value)]
    return [] if isinstance(value, int) and 0 < value < 65536 else [invalid(path, value or 0, PORT_RANGE)]
