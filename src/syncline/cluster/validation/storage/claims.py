"""What a claim asks of a volume, stand-alone or as a template.

Called by the strategies of claims, stateful sets and pods. A spec and its path come in, causes leave. Source:
Kubernetes ``ValidatePersistentVolumeClaimSpec``.
"""

from __future__ import annotations

from typing import Any

from syncline.cluster.validation.engine import names
from syncline.cluster.validation.engine.causes import forbidden, invalid, required, unsupported
from syncline.cluster.validation.engine.fields import label_selector_causes
from syncline.kube.errors import FieldCause
from syncline.kube.objects import Obj, dig
from syncline.kube.text.quantity import Quantity, QuantityError, parse_quantity

__all__ = ["ACCESS_MODES", "VOLUME_MODES", "access_mode_causes", "amount", "claim_spec_causes", "size_causes"]

ACCESS_MODES = ("ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod")
VOLUME_MODES = ("Block", "Filesystem")
POSITIVE = "must be greater than zero"


def amount(value: Any) -> Quantity | None:
    """A quantity, or None for what is none (which was refused while decoding)."""
    try:
        return parse_quantity(value) if value is not None else None
    except QuantityError:
        return None


def access_mode_causes(spec: Obj, path: str) -> list[FieldCause]:
    """Modes, alike for volumes and claims."""
    where, modes = f"{path}.accessModes", spec.get("accessModes") or []
    causes = [] if modes else [required(where, "at least 1 access mode is required")]
    causes += [unsupported(where, mode, ACCESS_MODES) for mode in modes if mode not in ACCESS_MODES]
    if "ReadWriteOncePod" in modes and any(mode in ACCESS_MODES and mode != "ReadWriteOncePod" for mode in modes):
        causes.append(forbidden(where, "may not use ReadWriteOncePod with other access modes"))
    return causes


def size_causes(value: Any, where: str) -> list[FieldCause]:
    size = amount(value)
    if size is None:
        return [required(where)]
    if size.nano <= 0:
        return [invalid(where, str(size), POSITIVE)]
    return []


def claim_spec_causes(spec: Obj, path: str) -> list[FieldCause]:
    causes = access_mode_causes(spec, path)
    causes += label_selector_causes(spec.get("selector"), f"{path}.selector")
    causes += size_causes(dig(spec, "resources", "requests", "storage"), f"{path}.resources[storage]")
    for key in ("storageClassName", "volumeAttributesClassName"):
        if spec.get(key):
            causes += [invalid(f"{path}.{key}", spec[key], problem) for problem in names.dns_subdomain(spec[key])]
    mode = spec.get("volumeMode")
    if mode is not None and mode not in VOLUME_MODES:
        causes.append(unsupported(f"{path}.volumeMode", mode, VOLUME_MODES))
    return causes + _source_causes(spec, path)


def _source_causes(spec: Obj, path: str) -> list[FieldCause]:
    source, reference = spec.get("dataSource"), spec.get("dataSourceRef")
    causes: list[FieldCause] = []
    if isinstance(source, dict):
        causes += _reference_causes(source, f"{path}.dataSource")
    if isinstance(reference, dict):
        causes += _reference_causes(reference, f"{path}.dataSourceRef")
        if reference.get("namespace"):
            space = reference["namespace"]
            problems = names.dns_label(space)
            causes += [invalid(f"{path}.dataSourceRef.namespace", space, problem) for problem in problems]
    if isinstance(source, dict) and isinstance(reference, dict):
        same = all((source.get(key) or "") == (reference.get(key) or "") for key in ("apiGroup", "kind", "name"))
        if reference.get("namespace"):
            why = "may not be specified when dataSourceRef.namespace is specified"
            causes.append(invalid(path, {"name": "dataSource"}, why))
        elif not same:
            causes.append(invalid(path, {"name": "dataSource"}, "must match dataSourceRef"))
    return causes


def _reference_causes(reference: Obj, where: str) -> list[FieldCause]:
    causes = [required(f"{where}.{key}") for key in ("name", "kind") if not reference.get(key)]
    group = reference.get("apiGroup") or ""
    if not group and reference.get("kind") != "PersistentVolumeClaim":
        why = "must be 'PersistentVolumeClaim' when referencing the default apiGroup"
        causes.append(invalid(where, reference.get("kind") or "", why))
    return causes + [invalid(f"{where}.apiGroup", group, problem) for problem in names.dns_subdomain(group) if group]
