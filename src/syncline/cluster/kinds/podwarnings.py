"""What Kubernetes lets through in a pod spec, but warns of.

Called by the strategies of Pods and of what makes Pods, after defaulting. A spec and its path come in, texts of Warning
headers leave. Source: Kubernetes ``pkg/api/pod/warnings.go`` and ``pkg/api/node/util.go``.
"""

from __future__ import annotations

from typing import Any

from syncline.cluster.kinds.fields import each
from syncline.kube.objects import Obj
from syncline.kube.quantity import parse_quantity

__all__ = ["template_warnings"]

OLD_NODE_LABELS = {
    "beta.kubernetes.io/arch": 'deprecated since v1.14; use "kubernetes.io/arch" instead',
    "beta.kubernetes.io/instance-type": 'deprecated since v1.17; use "node.kubernetes.io/instance-type" instead',
    "beta.kubernetes.io/os": 'deprecated since v1.14; use "kubernetes.io/os" instead',
    "failure-domain.beta.kubernetes.io/region": 'deprecated since v1.17; use "topology.kubernetes.io/region" instead',
    "failure-domain.beta.kubernetes.io/zone": 'deprecated since v1.17; use "topology.kubernetes.io/zone" instead',
}


def template_warnings(spec: Obj, path: str) -> list[str]:
    """What Kubernetes warns of in a pod spec (``pkg/api/pod/warnings.go``)."""
    warnings = _placement_warnings(spec, path)
    for where, secret in each(spec, "imagePullSecrets", path):
        if not secret.get("name"):
            warnings.append(f'{where}: invalid empty name ""')
    for key in ("initContainers", "containers"):
        for where, container in each(spec, key, path):
            warnings += _resource_warnings(container.get("resources"), f"{where}.resources")
            warnings += _env_warnings(container, where)
            warnings += _port_warnings(container, where)
    if (spec.get("terminationGracePeriodSeconds") or 0) < 0:
        why = "must be >= 0; negative values are invalid and will be treated as 1"
        warnings.append(f"{path}.terminationGracePeriodSeconds: {why}")
    return warnings


def _placement_warnings(spec: Obj, path: str) -> list[str]:
    return [
        f"{path}.nodeSelector[{label}]: {why}"
        for label, why in OLD_NODE_LABELS.items()
        if label in (spec.get("nodeSelector") or {})
    ]


def _resource_warnings(resources: Any, path: str) -> list[str]:
    """A thousandth of a byte is most likely a misspelt megabyte."""
    warnings: list[str] = []
    for key in ("limits", "requests"):
        for name, amount in sorted(((resources or {}).get(key) or {}).items()):
            if name in ("memory", "ephemeral-storage") and not parse_quantity(amount).is_whole():
                why = f'fractional byte value "{amount}" is invalid, must be an integer'
                warnings.append(f"{path}.{key}[{name}]: {why}")
    return warnings


def _env_warnings(container: Obj, where: str) -> list[str]:
    seen: set[str] = set()
    warnings: list[str] = []
    for at, variable in each(container, "env", where):
        name = str(variable.get("name"))
        if name in seen:
            warnings.append(f'{at}: hides previous definition of "{name}", which may be dropped when using apply')
        seen.add(name)
    return warnings


def _port_warnings(container: Obj, where: str) -> list[str]:
    first: dict[tuple[Any, ...], str] = {}
    warnings: list[str] = []
    for at, port in each(container, "ports", where):
        key = tuple(port.get(name) for name in ("containerPort", "protocol", "hostPort", "hostIP"))
        if key in first:
            warnings.append(f"{at}: duplicate port definition with {first[key]}")
        first.setdefault(key, at)
    return warnings
