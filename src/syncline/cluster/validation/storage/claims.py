"""The spec of a claim, in claims and templates.

The strategies of claims, stateful sets and pods call it. Source: Kubernetes ``ValidatePersistentVolumeClaimSpec``.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from syncline.cluster.validation.engine import rules as r
from syncline.cluster.validation.engine.causes import forbidden, invalid, required
from syncline.cluster.validation.engine.fields import label_selector_causes
from syncline.kube.errors import FieldCause
from syncline.kube.objects import Obj, dig

ACCESS_MODES = ("ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod")
volume_mode = r.choice("Block", "Filesystem")


def _alone(modes: Any, path: str) -> Iterator[FieldCause]:
    if "ReadWriteOncePod" in modes and any(mode in ACCESS_MODES and mode != "ReadWriteOncePod" for mode in modes):
        yield forbidden(path, "may not use ReadWriteOncePod with other access modes")


access_modes = r.every(r.members(*ACCESS_MODES), _alone)
_REFERENCE = r.every(
    r.needs("name", "kind"),
    lambda one, path: _core_causes(one, path),
    r.filled("apiGroup", r.subdomain),
)


def _core_causes(reference: Obj, path: str) -> Iterator[FieldCause]:
    if not reference.get("apiGroup") and reference.get("kind") != "PersistentVolumeClaim":
        why = "must be 'PersistentVolumeClaim' when referencing the default apiGroup"
        yield invalid(path, reference.get("kind") or "", why)


def _size_causes(spec: Obj, path: str) -> Iterator[FieldCause]:
    size, at = r.amount(dig(spec, "resources", "requests", "storage")), f"{path}.resources[storage]"
    if size is None:
        yield required(at)
    elif size.nano <= 0:
        yield invalid(at, str(size), "must be greater than zero")


def _agreement(spec: Obj, path: str) -> Iterator[FieldCause]:
    source, reference = spec.get("dataSource"), spec.get("dataSourceRef")
    if source is None or reference is None:
        return
    if reference.get("namespace"):
        why = "may not be specified when dataSourceRef.namespace is specified"
        yield invalid(path, {"name": "dataSource"}, why)
    elif any((source.get(key) or "") != (reference.get(key) or "") for key in ("apiGroup", "kind", "name")):
        yield invalid(path, {"name": "dataSource"}, "must match dataSourceRef")


claim_spec_causes = r.every(
    r.need("accessModes", access_modes, why="at least 1 access mode is required"),
    r.field("selector", label_selector_causes),
    _size_causes,
    r.filled("storageClassName", r.subdomain),
    r.filled("volumeAttributesClassName", r.subdomain),
    r.field("volumeMode", volume_mode),
    r.field("dataSource", _REFERENCE),
    r.field("dataSourceRef", _REFERENCE, r.filled("namespace", r.label)),
    _agreement,
)
