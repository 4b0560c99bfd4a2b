"""Variables of containers, and the references by which variables and files show fields of their pod.

Called by the validators of containers and volumes. Objects and their paths come in, causes leave. Source: Kubernetes
``pkg/apis/core/validation`` (ValidateEnv, validateObjectFieldSelector) and ``pkg/apis/core/pods``.
"""

from __future__ import annotations

from typing import Any

from syncline.cluster.validation.engine import names
from syncline.cluster.validation.engine.causes import invalid, required, unsupported
from syncline.cluster.validation.engine.fields import each
from syncline.cluster.validation.engine.paths import no_backsteps_causes
from syncline.kube.errors import FieldCause
from syncline.kube.objects import Obj

__all__ = ["env_causes", "field_ref_causes", "resource_ref_causes"]

SUBSCRIPTED = ("metadata.annotations", "metadata.labels")
ENV_FIELDS = (
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
FILE_FIELDS = ("metadata.annotations", "metadata.labels", "metadata.name", "metadata.namespace", "metadata.uid")
READABLE = frozenset(
    (*ENV_FIELDS, *SUBSCRIPTED, "spec.restartPolicy", "spec.schedulerName", "status.phase", "spec.host")
)
"""Fields that Kubernetes can resolve at all; of these a variable and a file may show some."""
RESOURCES = (
    "limits.cpu",
    "limits.ephemeral-storage",
    "limits.memory",
    "requests.cpu",
    "requests.ephemeral-storage",
    "requests.memory",
)
BYTE_DIVISORS = ("1", "1k", "1M", "1G", "1T", "1P", "1E", "1Ki", "1Mi", "1Gi", "1Ti", "1Pi", "1Ei")
DIVISORS: dict[str, tuple[tuple[str, ...], str]] = {
    "cpu": (("1m", "1"), "only divisor's values 1m and 1 are supported with the cpu resource"),
    "memory": (BYTE_DIVISORS, "memory"),
    "ephemeral-storage": (BYTE_DIVISORS, "local ephemeral storage"),
    "hugepages": (BYTE_DIVISORS, "hugepages"),
}
ENV_SOURCES = ("fieldRef", "resourceFieldRef", "configMapKeyRef", "secretKeyRef", "fileKeyRef")


def env_causes(container: Obj, where: str) -> list[FieldCause]:
    """``env`` and ``envFrom`` of a container."""
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
        kinds = [kind for kind in ("configMapRef", "secretRef") if isinstance(source.get(kind), dict)]
        for kind in kinds:
            name = source[kind].get("name")
            if not name:
                causes.append(required(f"{path}.{kind}.name"))
            else:
                problems = names.prefixed_dns_subdomain(name)
                causes += [invalid(f"{path}.{kind}.name", name, problem) for problem in problems]
        if not kinds:
            causes.append(invalid(f"{where}.envFrom", "", "must specify one of: `configMapRef` or `secretRef`"))
        elif len(kinds) > 1:
            causes.append(invalid(f"{where}.envFrom", "", "may not have more than one field specified at a time"))
    return causes


def _value_from_causes(variable: Obj, path: str) -> list[FieldCause]:
    source = variable["valueFrom"]
    kinds = [kind for kind in ENV_SOURCES if isinstance(source.get(kind), dict)]
    causes: list[FieldCause] = []
    for kind in kinds:
        causes += _source_causes(kind, source[kind], f"{path}.{kind}")
    if not kinds:
        why = "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`"
        causes.append(invalid(path, "", why))
    elif variable.get("value"):
        causes.append(invalid(path, "", "may not be specified when `value` is not empty"))
    elif len(kinds) > 1:
        causes.append(invalid(path, "", "may not have more than one field specified at a time"))
    return causes


def _source_causes(kind: str, source: Obj, path: str) -> list[FieldCause]:
    match kind:
        case "fieldRef":
            return field_ref_causes(source, path)
        case "resourceFieldRef":
            return resource_ref_causes(source, path)
        case "fileKeyRef":
            return _file_key_causes(source, path)
        case _:
            return _key_causes(source, path)


def _key_causes(source: Obj, path: str) -> list[FieldCause]:
    """A key of a ConfigMap or a Secret."""
    name, key = str(source.get("name") or ""), source.get("key")
    causes = [invalid(f"{path}.name", name, problem) for problem in names.dns_subdomain(name)]
    if not key:
        return [*causes, required(f"{path}.key")]
    return causes + [invalid(f"{path}.key", key, problem) for problem in names.config_key(key)]


def _file_key_causes(source: Obj, path: str) -> list[FieldCause]:
    causes = [required(f"{path}.{field}") for field in ("key", "volumeName", "path") if not source.get(field)]
    if source.get("key"):
        causes += [invalid(f"{path}.key", source["key"], problem) for problem in names.env_name(source["key"])]
    if source.get("volumeName"):
        problems = names.dns_label(source["volumeName"])
        causes += [invalid(f"{path}.volumeName", source["volumeName"], problem) for problem in problems]
    return causes + no_backsteps_causes(source.get("path"), f"{path}.path")


def field_ref_causes(source: Obj, path: str, *, in_volume: bool = False) -> list[FieldCause]:
    """A field of the pod, for a variable or, ``in_volume``, for a file."""
    version, text = source.get("apiVersion") or "", str(source.get("fieldPath") or "")
    if not version or not text:
        return [required(f"{path}.fieldPath" if version else f"{path}.apiVersion")]
    base, bracket, rest = text.partition("[")
    subscripted = bool(bracket) and rest.startswith("'") and rest.endswith("']")
    if version != "v1":
        why = f"unsupported pod version: {version}"
    elif subscripted and base not in SUBSCRIPTED:
        why = f"field label does not support subscript: {text}"
    elif not subscripted and text not in READABLE:
        why = f"field label not supported: {text}"
    else:
        why = ""
    if why:
        return [invalid(f"{path}.fieldPath", text, f"error converting fieldPath: {why}")]
    if subscripted:
        key = rest[1:-2]
        checked = key.lower() if base == "metadata.annotations" else key
        return [invalid(path, checked, problem) for problem in names.qualified_name(checked)]
    allowed = FILE_FIELDS if in_volume else ENV_FIELDS
    return [] if text in allowed else [unsupported(f"{path}.fieldPath", text, allowed)]


def resource_ref_causes(source: Obj, path: str, *, in_volume: bool = False) -> list[FieldCause]:
    """An amount of a container; a file must say of which one."""
    text = str(source.get("resource") or "")
    causes: list[FieldCause] = []
    if in_volume and not source.get("containerName"):
        causes.append(required(f"{path}.containerName"))
    elif not text:
        causes.append(required(f"{path}.resource"))
    elif text not in RESOURCES and not text.startswith(("limits.hugepages-", "requests.hugepages-")):
        causes.append(unsupported(f"{path}.resource", text, RESOURCES))
    return causes + _divisor_causes(text, source.get("divisor"), path)


def _divisor_causes(text: str, divisor: Any, path: str) -> list[FieldCause]:
    kind = text.partition(".")[2]
    allowed = DIVISORS.get("hugepages" if kind.startswith("hugepages-") else kind)
    if divisor in (None, "0") or allowed is None or divisor in allowed[0]:
        return []
    why = allowed[1]
    if kind != "cpu":
        listed = ", ".join(BYTE_DIVISORS)
        why = f"only divisor's values {listed} are supported with the {why} resource"
    return [invalid(f"{path}.divisor", text, why)]
