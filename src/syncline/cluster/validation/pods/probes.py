"""Probes, lifecycle hooks and their handlers.

The validators of containers call it. Source: Kubernetes ``pkg/apis/core/validation`` (validateProbe, validateHandler,
validateLifecycle).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from syncline.cluster.validation.engine import names
from syncline.cluster.validation.engine import rules as r
from syncline.cluster.validation.engine.causes import forbidden, invalid, required
from syncline.kube.errors import FieldCause
from syncline.kube.objects import Obj

PROBES = ("livenessProbe", "readinessProbe", "startupProbe")
NUMBERS = ("initialDelaySeconds", "timeoutSeconds", "periodSeconds", "successThreshold", "failureThreshold")
INIT_ONLY = "may not be set for init containers without restartPolicy=Always"


def port_or_name_causes(value: Any, path: str) -> Iterable[FieldCause]:
    if isinstance(value, str):
        return [invalid(path, value, problem) for problem in names.port_name(value)]
    return r.port(value or 0, path)


def _headers(content: Obj, path: str) -> list[FieldCause]:
    found = [str(header.get("name") or "") for header in r.list_of(content, "httpHeaders")]
    return [invalid(f"{path}.httpHeaders", name, problem) for name in found for problem in names.http_header(name)]


_PORT = r.always("port", port_or_name_causes)
_HANDLERS: dict[str, r.Rule] = {
    "exec": r.needs("command"),
    "httpGet": r.every(r.needs("path"), _PORT, r.text("scheme", r.choice("HTTP", "HTTPS")), _headers),
    "tcpSocket": _PORT,
    "grpc": _PORT,
    "sleep": r.nothing,
}


def _handler_causes(handler: Obj, path: str, grace_s: Any) -> Iterator[FieldCause]:
    kinds = [kind for kind in _HANDLERS if isinstance(handler.get(kind), dict)]
    if not kinds:
        yield required(path, "must specify a handler type")
        return
    yield from (forbidden(f"{path}.{kind}", "may not specify more than 1 handler type") for kind in kinds[1:])
    content, where = handler[kinds[0]], f"{path}.{kinds[0]}"
    yield from _HANDLERS[kinds[0]](content, where)
    seconds = content.get("seconds") or 0
    if kinds[0] == "sleep" and isinstance(grace_s, int) and not 0 <= seconds <= grace_s:
        why = f"must be non-negative and less than terminationGracePeriodSeconds ({grace_s})"
        yield invalid(where, seconds, why)


_NUMBERS = r.every(
    r.natural(*NUMBERS), r.field("terminationGracePeriodSeconds", r.at_least(1, "must be greater than 0"))
)
_ONCE = r.field("successThreshold", r.must(lambda times: times == 1, "must be 1"))
_NO_GRACE = r.field("terminationGracePeriodSeconds", r.must(lambda _: False, "must not be set for readinessProbes"))


def hook_and_probe_causes(container: Obj, where: str, grace_s: Any) -> Iterator[FieldCause]:
    """Validate hooks and probes; ``grace_s`` is the pod's termination grace period, the limit of a sleep hook."""
    lifecycle = container.get("lifecycle") or {}
    for hook in ("postStart", "preStop"):
        if isinstance(lifecycle.get(hook), dict):
            yield from _handler_causes(lifecycle[hook], f"{where}.lifecycle.{hook}", grace_s)
    for name in PROBES:
        probe, path = container.get(name), f"{where}.{name}"
        if isinstance(probe, dict):
            yield from _handler_causes(probe, path, grace_s)
            yield from _NUMBERS(probe, path)
            yield from (_NO_GRACE if name == "readinessProbe" else _ONCE)(probe, path)


def init_causes(container: Obj, where: str, grace_s: Any) -> Iterable[FieldCause]:
    """Refuse hooks and probes of init containers, except restartable ones (sidecars)."""
    if container.get("restartPolicy") == "Always":
        return hook_and_probe_causes(container, where, grace_s)
    keys = ("lifecycle", *PROBES)
    return [forbidden(f"{where}.{key}", INIT_ONLY) for key in keys if container.get(key) is not None]
