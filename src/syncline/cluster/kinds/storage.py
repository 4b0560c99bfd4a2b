"""Persistent volumes, claims and storage classes.

Called by the API through :func:`syncline.cluster.kinds.strategy.strategy_for`. Source: Kubernetes
``ValidatePersistentVolume*`` and ``pkg/apis/storage/validation``.
"""

from __future__ import annotations

from typing import Any, ClassVar

from syncline.base.clock import format_time
from syncline.cluster.kinds import names
from syncline.cluster.kinds.base import Context, Kind, spec_of
from syncline.cluster.kinds.causes import forbidden, invalid, required, unsupported
from syncline.cluster.kinds.fields import immutable, label_selector_causes, one_of
from syncline.cluster.kinds.metadata import metadata_update_causes
from syncline.kube.errors import FieldCause
from syncline.kube.objects import Obj, dig
from syncline.kube.quantity import Quantity, QuantityError, parse_quantity

__all__ = ["PersistentVolumeClaimKind", "PersistentVolumeKind", "StorageClassKind"]

ACCESS_MODES = ("ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod")
RECLAIM_POLICIES = ("Delete", "Recycle", "Retain")
VOLUME_MODES = ("Block", "Filesystem")
BINDING_MODES = ("Immediate", "WaitForFirstConsumer")
POSITIVE = "must be greater than zero"
PLAIN_FIELDS = frozenset(
    {
        "accessModes",
        "capacity",
        "claimRef",
        "mountOptions",
        "nodeAffinity",
        "persistentVolumeReclaimPolicy",
        "storageClassName",
        "volumeAttributesClassName",
        "volumeMode",
    }
)
"""Fields of a volume's spec that are not its source."""
CLAIM_TEXT = "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims"


def _amount(value: Any) -> Quantity | None:
    try:
        return parse_quantity(value) if value is not None else None
    except QuantityError:
        return None  # refused while defaulting


def _mode_causes(spec: Obj) -> list[FieldCause]:
    modes = spec.get("accessModes") or []
    causes = [] if modes else [required("spec.accessModes", "at least 1 access mode is required")]
    causes += [unsupported("spec.accessModes", mode, ACCESS_MODES) for mode in modes if mode not in ACCESS_MODES]
    if "ReadWriteOncePod" in modes and len(modes) > 1:
        why = "may not use ReadWriteOncePod with other access modes"
        causes.append(forbidden("spec.accessModes", why))
    if spec.get("volumeMode") not in (None, *VOLUME_MODES):
        causes.append(unsupported("spec.volumeMode", spec["volumeMode"], VOLUME_MODES))
    name = spec.get("storageClassName")
    if name:
        causes += [invalid("spec.storageClassName", name, problem) for problem in names.dns_subdomain(name)]
    return causes


class PersistentVolumeKind(Kind):
    has_status = True
    namespaced = False

    def prepare_create(self, obj: Obj, ctx: Context) -> None:
        obj["status"] = {"phase": "Pending", "lastPhaseTransitionTime": format_time(ctx.now)}

    def prepare_update(self, new: Obj, old: Obj, ctx: Context, subresource: str) -> None:
        super().prepare_update(new, old, ctx, subresource)
        if subresource == "status" and dig(new, "status", "phase") != dig(old, "status", "phase"):
            new.setdefault("status", {})["lastPhaseTransitionTime"] = format_time(ctx.now)

    def content_causes(self, obj: Obj) -> list[FieldCause]:
        spec = spec_of(obj)
        causes = _mode_causes(spec)
        size = _amount((spec.get("capacity") or {}).get("storage"))
        if not spec.get("capacity"):
            causes.append(required("spec.capacity"))
        elif size is None or list(spec["capacity"]) != ["storage"]:
            causes.append(unsupported("spec.capacity", spec["capacity"], ("storage",)))
        elif size.nano <= 0:
            causes.append(invalid("spec.capacity[storage]", str(size), POSITIVE))
        causes += one_of(spec, "spec", "persistentVolumeReclaimPolicy", RECLAIM_POLICIES)
        sources = [key for key in sorted(spec) if key not in PLAIN_FIELDS]
        if not sources:
            causes.append(required("spec", "must specify a volume type"))
        causes += [forbidden(f"spec.{key}", "may not specify more than 1 volume type") for key in sources[1:]]
        if "hostPath" in spec and not (spec["hostPath"] or {}).get("path"):
            causes.append(required("spec.hostPath.path"))
        return causes

    def update_causes(self, new: Obj, old: Obj) -> list[FieldCause]:
        fresh, before = (
            {key: value for key, value in spec_of(obj).items() if key not in PLAIN_FIELDS} for obj in (new, old)
        )
        causes = self.whole_causes(new) + metadata_update_causes(new, old)
        if fresh != before:
            causes.append(forbidden("spec.persistentvolumesource", "spec.persistentvolumesource is immutable"))
        return causes + immutable(spec_of(new), spec_of(old), "spec", "volumeMode")


class PersistentVolumeClaimKind(Kind):
    has_status = True
    empty_status: ClassVar[Obj | None] = {"phase": "Pending"}

    def content_causes(self, obj: Obj) -> list[FieldCause]:
        spec = spec_of(obj)
        causes = _mode_causes(spec) + label_selector_causes(spec.get("selector"), "spec.selector")
        size = _amount(dig(spec, "resources", "requests", "storage"))
        if size is None:
            causes.append(required("spec.resources[storage]"))
        elif size.nano <= 0:
            causes.append(invalid("spec.resources[storage]", str(size), POSITIVE))
        return causes

    def update_causes(self, new: Obj, old: Obj) -> list[FieldCause]:
        causes = metadata_update_causes(new, old)
        bound = dig(old, "status", "phase") == "Bound"
        if _fixed_claim(new, old, bound=bound) != spec_of(old):
            causes.append(forbidden("spec", CLAIM_TEXT))
            return causes
        wanted = _amount(dig(new, "spec", "resources", "requests", "storage"))
        had = _amount(dig(old, "spec", "resources", "requests", "storage"))
        given = _amount(dig(old, "status", "capacity", "storage"))
        if wanted and had and wanted < had and not (given and wanted > given):
            why = "field can not be less than status.capacity"
            causes.append(forbidden("spec.resources.requests.storage", why))
        return causes


def _fixed_claim(new: Obj, old: Obj, *, bound: bool) -> Obj:
    """The new spec with what may change taken from the old one: the volume's name once, a bound claim's size."""
    spec, before = dict(spec_of(new)), spec_of(old)
    if not before.get("volumeName"):
        spec.pop("volumeName", None)
    if before.get("storageClassName") is None:
        spec.pop("storageClassName", None)
    if bound:
        spec["resources"] = before.get("resources")
        spec.pop("volumeAttributesClassName", None)
        if "volumeAttributesClassName" in before:
            spec["volumeAttributesClassName"] = before["volumeAttributesClassName"]
    return spec


class StorageClassKind(Kind):
    namespaced = False

    def content_causes(self, obj: Obj) -> list[FieldCause]:
        provisioner = str(obj.get("provisioner") or "")
        if provisioner:
            causes = [invalid("provisioner", provisioner, one) for one in names.qualified_name(provisioner.lower())]
        else:
            causes = [required("provisioner")]
        causes += one_of(obj, "", "reclaimPolicy", ("Delete", "Retain"))
        mode = obj.get("volumeBindingMode")
        if mode not in BINDING_MODES:
            causes.append(unsupported("volumeBindingMode", mode, BINDING_MODES))
        return [FieldCause(cause.reason, cause.message, cause.field.removeprefix(".")) for cause in causes]

    def update_causes(self, new: Obj, old: Obj) -> list[FieldCause]:
        causes = metadata_update_causes(new, old)
        if (new.get("parameters") or {}) != (old.get("parameters") or {}):
            causes.append(invalid("parameters", new.get("parameters") or {}, "field is immutable"))
        return causes + immutable(new, old, "", "provisioner", "reclaimPolicy", "volumeBindingMode")
