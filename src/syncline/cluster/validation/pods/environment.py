"""Validate containers' variables, and references of variables and files to fields of their pod.

The validators of containers and volumes call it. Source: Kubernetes ``pkg/apis/core/validation`` (ValidateEnv,
validateObjectFieldSelector) and ``pkg/apis/core/pods``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from syncline.cluster.validation.engine import names
from syncline.cluster.validation.engine import rules as r
from syncline.cluster.validation.engine.causes import invalid, required, unsupported
from syncline.cluster.validation.engine.paths import no_backsteps_causes
from syncline.kube.errors import FieldCause
from syncline.kube.objects import Obj

SUBSCRIPTED = ("metadata.annotations", "metadata.labels")
ENV_FIELDS = (
    *("metadata.name", "metadata.namespace", "metadata.uid", "spec.nodeName", "spec.serviceAccountName"),
    *("status.hostIP", "status.hostIPs", "status.podIP", "status.podIPs"),
)
"""Fields that a variable can reference; a single label or annotation needs a subscript."""
FILE_FIELDS = ("metadata.annotations", "metadata.labels", "metadata.name", "metadata.namespace", "metadata.uid")
READABLE = frozenset(
    (*ENV_FIELDS, *SUBSCRIPTED, "spec.restartPolicy", "spec.schedulerName", "status.phase", "spec.host")
)
"""Fields that Kubernetes can resolve; variables and files support some of them."""
RESOURCES = (
    *("limits.cpu", "limits.ephemeral-storage", "limits.memory"),
    *("requests.cpu", "requests.ephemeral-storage", "requests.memory"),
)
BYTE_DIVISORS = ("1", "1k", "1M", "1G", "1T", "1P", "1E", "1Ki", "1Mi", "1Gi", "1Ti", "1Pi", "1Ei")
DIVISORS: dict[str, tuple[tuple[str, ...], str]] = {
    "cpu": (("1m", "1"), "only divisor's values 1m and 1 are supported with the cpu resource"),
    "memory": (BYTE_DIVISORS, "memory"),
    "ephemeral-storage": (BYTE_DIVISORS, "local ephemeral storage"),
    "hugepages": (BYTE_DIVISORS, "hugepages"),
}
ONE_SOURCE = "may not have more than one field specified at a time"


def field_ref_causes(source: Obj, path: str, *, in_volume: bool = False) -> Iterable[FieldCause]:
    """Validate a reference to a field of the pod by a variable or, with ``in_volume``, by a file."""
    version, text = source.get("apiVersion") or "", str(source.get("fieldPath") or "")
    if not version or not text:
        return [required(f"{path}.fieldPath" if version else f"{path}.apiVersion")]
    base, bracket, rest = text.partition("[")
    subscripted = bool(bracket) and rest.startswith("'") and rest.endswith("']")
    faults = (
        (version != "v1", f"unsupported pod version: {version}"),
        (subscripted and base not in SUBSCRIPTED, f"field label does not support subscript: {text}"),
        (not subscripted and text not in READABLE, f"field label not supported: {text}"),
    )
    for wrong, why in faults:
        if wrong:
            return [invalid(f"{path}.fieldPath", text, f"error converting fieldPath: {why}")]
    if subscripted:
        return r.qualified(rest[1:-2].lower() if base == "metadata.annotations" else rest[1:-2], path)
    allowed = FILE_FIELDS if in_volume else ENV_FIELDS
    return [] if text in allowed else [unsupported(f"{path}.fieldPath", text, allowed)]


def resource_ref_causes(source: Obj, path: str, *, in_volume: bool = False) -> Iterator[FieldCause]:
    """Validate a reference to a container's resource; a file must name the container."""
    text, divisor = str(source.get("resource") or ""), source.get("divisor")
    if in_volume and not source.get("containerName"):
        yield required(f"{path}.containerName")
    elif not text:
        yield required(f"{path}.resource")
    elif text not in RESOURCES and not text.startswith(("limits.hugepages-", "requests.hugepages-")):
        yield unsupported(f"{path}.resource", text, RESOURCES)
    kind = text.partition(".")[2]
    allowed, why = DIVISORS.get("hugepages" if kind.startswith("hugepages-") else kind, ((), ""))
    if allowed and divisor not in (None, "0", *allowed):
        listed = ", ".join(BYTE_DIVISORS)
        shown = why if kind == "cpu" else f"only divisor's values {listed} are supported with the {why} resource"
        yield invalid(f"{path}.divisor", text, shown)


_KEY = r.every(r.text("name", r.subdomain), r.need("key", r.named(names.config_key)))
"""A key of a ConfigMap or a Secret."""
_SOURCES: dict[str, r.Rule] = {
    "fieldRef": field_ref_causes,
    "resourceFieldRef": resource_ref_causes,
    "configMapKeyRef": _KEY,
    "secretKeyRef": _KEY,
    "fileKeyRef": r.every(
        r.needs("key", "volumeName", "path"),
        r.filled("key", r.named(names.env_name)),
        r.filled("volumeName", r.label),
        r.field("path", no_backsteps_causes),
    ),
}


def _value_causes(variable: Obj, at: str) -> Iterator[FieldCause]:
    source, path = variable.get("valueFrom"), f"{at}.valueFrom"
    if source is None:
        return
    kinds = [kind for kind in _SOURCES if isinstance(source.get(kind), dict)]
    for kind in kinds:
        yield from _SOURCES[kind](source[kind], f"{path}.{kind}")
    if not kinds:
        why = "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`"
        yield invalid(path, "", why)
    elif variable.get("value"):
        yield invalid(path, "", "may not be specified when `value` is not empty")
    elif len(kinds) > 1:
        yield invalid(path, "", ONE_SOURCE)


def _from_causes(source: Obj, path: str) -> Iterable[FieldCause]:
    """Validate ``envFrom``; if the number of sources is wrong, causes name the list, as in Kubernetes."""
    kinds, listed = (
        [kind for kind in ("configMapRef", "secretRef") if source.get(kind) is not None],
        path.rpartition("["),
    )
    if not kinds:
        return [invalid(listed[0], "", "must specify one of: `configMapRef` or `secretRef`")]
    return [invalid(listed[0], "", ONE_SOURCE)] if len(kinds) > 1 else []


_NAME = r.need("name", r.named(names.prefixed_dns_subdomain))
env_causes = r.every(
    r.each("env", r.need("name", r.named(names.env_name)), _value_causes),
    r.each(
        "envFrom",
        r.filled("prefix", r.named(names.env_name)),
        r.field("configMapRef", _NAME),
        r.field("secretRef", _NAME),
        _from_causes,
    ),
)
"""``env`` and ``envFrom`` of a container."""
