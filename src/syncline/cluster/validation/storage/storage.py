"""Persistent volumes, claims, storage classes and attributes classes, attachments.

Called by the API through :func:`syncline.cluster.validation.strategy.strategy_for`. Source: Kubernetes
``ValidatePersistentVolume*`` and ``pkg/apis/storage/validation``.
"""

from __future__ import annotations

import posixpath
from typing import Any, ClassVar

from syncline.base.clock import format_time
from syncline.cluster.validation.engine import names
from syncline.cluster.validation.engine.base import Context, Kind, spec_of
from syncline.cluster.validation.engine.causes import duplicate, forbidden, invalid, required, too_long, unsupported
from syncline.cluster.validation.engine.fields import IMMUTABLE, each, immutable, one_of
from syncline.cluster.validation.engine.metadata import metadata_update_causes
from syncline.cluster.validation.pods.placement import node_selector_causes
from syncline.cluster.validation.pods.podwarnings import OLD_NODE_LABELS, fraction_warnings, node_term_warnings
from syncline.cluster.validation.storage.claims import ACCESS_MODES, VOLUME_MODES, amount, claim_spec_causes
from syncline.cluster.validation.storage.pvsources import PV_SOURCES, source_causes, source_warnings
from syncline.cluster.validation.storage.volumes import driver_name_causes
from syncline.kube.errors import FieldCause
from syncline.kube.objects import Obj, dig
from syncline.kube.schema.internal import CORE, changed_lines, internal
from syncline.kube.text.quantity import parse_quantity

__all__ = [
    "AttachmentKind",
    "AttributesClassKind",
    "PersistentVolumeClaimKind",
    "PersistentVolumeKind",
    "StorageClassKind",
]

RECLAIM_POLICIES = ("Delete", "Recycle", "Retain")
BINDING_MODES = ("Immediate", "WaitForFirstConsumer")
RESIZE_STATES = (
    "ControllerResizeInProgress",
    "ControllerResizeInfeasible",
    "NodeResizeInProgress",
    "NodeResizeInfeasible",
    "NodeResizePending",
)
MOST_PARAMETERS, MOST_PARAMETER_BYTES = 512, 256 * 1024
MOST_ERROR_BYTES, SHOWN_ERROR_BYTES = 1024, 256 * 1024
"""Kubernetes measures an error by the one and names the other."""
CLAIM_TEXT = "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims"
BETA_CLASS, BETA_OPTIONS = "volume.beta.kubernetes.io/storage-class", "volume.beta.kubernetes.io/mount-options"
NOTHING = parse_quantity("0")
_NEW_LABELS = {
    "failure-domain.beta.kubernetes.io/zone": "topology.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region": "topology.kubernetes.io/region",
    "beta.kubernetes.io/os": "kubernetes.io/os",
    "beta.kubernetes.io/arch": "kubernetes.io/arch",
    "beta.kubernetes.io/instance-type": "node.kubernetes.io/instance-type",
}
QUANTITY = "must be a valid resource quantity"


# --- volumes -------------------------------------------------------------------------------------------------------


INLINE = "in the context of inline volumes"


def volume_spec_causes(spec: Obj, path: str, *, inline: bool = False) -> list[FieldCause]:
    """A PersistentVolume's spec; ``inline``: inside an attachment, where most of it has no place."""
    why = f"may not be specified {INLINE}"
    causes: list[FieldCause] = []
    if inline:
        causes += [forbidden(f"{path}.{key}", why) for key in ("claimRef", "capacity") if spec.get(key)]
        if not spec.get("csi"):
            causes.append(required(f"{path}.csi", f"has to be specified {INLINE}"))
    causes += _access_causes(spec, path) + ([] if inline else _capacity_causes(spec, path))
    policy = spec.get("persistentVolumeReclaimPolicy")
    if policy and inline and policy != "Retain":
        causes.append(forbidden(f"{path}.persistentVolumeReclaimPolicy", f"may only be Retain {INLINE}"))
    elif policy and policy not in RECLAIM_POLICIES:
        causes.append(unsupported(f"{path}.persistentVolumeReclaimPolicy", policy, RECLAIM_POLICIES))
    affinity = spec.get("nodeAffinity")
    if isinstance(affinity, dict):
        wanted, where = affinity.get("required"), f"{path}.nodeAffinity"
        if inline:
            causes.append(forbidden(where, why))
        elif isinstance(wanted, dict):
            causes += node_selector_causes(wanted, f"{where}.required")
        else:
            causes.append(required(f"{where}.required", "must specify required node constraints"))
    causes += source_causes(spec, path)
    if isinstance(spec.get("local"), dict) and not isinstance(affinity, dict):
        causes.append(required(f"{path}.nodeAffinity", "Local volume requires node affinity"))
    return causes + _class_causes(spec, path, inline=inline)


def _access_causes(spec: Obj, path: str) -> list[FieldCause]:
    where, modes = f"{path}.accessModes", spec.get("accessModes") or []
    causes = [] if modes else [required(where)]
    causes += [unsupported(where, mode, ACCESS_MODES) for mode in modes if mode not in ACCESS_MODES]
    if "ReadWriteOncePod" in modes and any(mode in ACCESS_MODES and mode != "ReadWriteOncePod" for mode in modes):
        causes.append(forbidden(where, "may not use ReadWriteOncePod with other access modes"))
    return causes


def _capacity_causes(spec: Obj, path: str) -> list[FieldCause]:
    capacity, where = spec.get("capacity") or {}, f"{path}.capacity"
    causes: list[FieldCause] = []
    if not capacity:
        causes.append(required(where))
    if list(capacity) != ["storage"]:
        causes.append(unsupported(where, spec.get("capacity") and dict(sorted(capacity.items())), ("storage",)))
    for name, value in sorted(capacity.items()):
        size = amount(value)
        if size is not None and size.nano < 0:
            causes.append(invalid(f"{where}[{name}]", size.value(), QUANTITY))
        if size is not None and size.nano <= 0:
            causes.append(invalid(f"{where}[{name}]", str(size), "must be greater than zero"))
    return causes


def _class_causes(spec: Obj, path: str, *, inline: bool) -> list[FieldCause]:
    """What is judged after the place of the volume."""
    causes: list[FieldCause] = []
    policy, name, mode, attributes = (
        spec.get(key)
        for key in ("persistentVolumeReclaimPolicy", "storageClassName", "volumeMode", "volumeAttributesClassName")
    )
    if posixpath.normpath(str(dig(spec, "hostPath", "path") or ".")) == "/" and policy == "Recycle":
        why = "may not be 'recycle' for a hostPath mount of '/'"
        causes.append(forbidden(f"{path}.persistentVolumeReclaimPolicy", why))
    if name and inline:
        causes.append(forbidden(f"{path}.storageClassName", f"may not be specified {INLINE}"))
    elif name:
        causes += [invalid(f"{path}.storageClassName", name, problem) for problem in names.dns_subdomain(name)]
    if mode is not None and inline and mode != "Filesystem":
        why = f"may not specify volumeMode other than Filesystem {INLINE}"
        causes.append(forbidden(f"{path}.volumeMode", why))
    elif mode is not None and not inline and mode not in VOLUME_MODES:
        causes.append(unsupported(f"{path}.volumeMode", mode, VOLUME_MODES))
    if attributes is not None:
        where = f"{path}.volumeAttributesClassName"
        if not attributes:
            causes.append(required(where, "an empty string is disallowed"))
        else:
            causes += [invalid(where, attributes, problem) for problem in names.dns_subdomain(attributes)]
        if not spec.get("csi"):
            causes.append(required(f"{path}.csi", "has to be specified when using volumeAttributesClassName"))
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
        causes = volume_spec_causes(spec_of(obj), "spec")
        if dig(obj, "metadata", "annotations", BETA_OPTIONS) and dig(obj, "spec", "hostPath") is not None:
            why = "may not specify mount options for this volume type"
            causes.append(forbidden(f"metadata.annotations.{BETA_OPTIONS}", why))
        return causes

    def update_causes(self, new: Obj, old: Obj) -> list[FieldCause]:
        fresh, before = ({key: spec_of(obj)[key] for key in PV_SOURCES if key in spec_of(obj)} for obj in (new, old))
        causes = self.whole_causes(new)
        if fresh != before:
            why = "spec.persistentvolumesource is immutable after creation"
            shown = changed_lines(_internal_source(before), _internal_source(fresh))
            causes.append(forbidden("spec.persistentvolumesource", f"{why}\n{shown}"))
        mode = spec_of(new).get("volumeMode")
        if mode != spec_of(old).get("volumeMode"):
            causes.append(invalid("volumeMode", mode, "field is immutable"))
        bound, wanted = (spec_of(obj).get("nodeAffinity") for obj in (old, new))
        if bound is not None and wanted not in (bound, _with_new_labels(bound)):
            shown = internal(f"{CORE}.VolumeNodeAffinity", wanted)
            causes.append(invalid("nodeAffinity", shown, f"{IMMUTABLE}, except for updating from beta label to GA"))
        had = spec_of(old).get("volumeAttributesClassName")
        if had is not None and spec_of(new).get("volumeAttributesClassName") is None:
            why = "update from non-nil value to nil is forbidden"
            causes.append(forbidden("spec.volumeAttributesClassName", why))
        return causes

    def warnings(self, new: Obj, old: Obj | None) -> list[str]:
        spec = spec_of(new)
        warnings: list[str] = []
        for key, field in ((BETA_CLASS, "storageClassName"), (BETA_OPTIONS, "mountOptions")):
            if key in (dig(new, "metadata", "annotations") or {}):
                since = 'deprecated since v1.8; use "storageClassName" attribute instead'
                if field == "mountOptions":
                    since = 'deprecated since v1.31; use "mountOptions" attribute instead'
                warnings.append(f"metadata.annotations[{key}]: {since}")
        if spec.get("persistentVolumeReclaimPolicy") == "Recycle":
            warnings.append(
                "spec.persistentVolumeReclaimPolicy: The Recycle reclaim policy is deprecated. Instead, the "
                "recommended approach is to use dynamic provisioning."
            )
        selector = dig(spec, "nodeAffinity", "required")
        for at, term in each(selector, "nodeSelectorTerms", "spec.nodeAffinity.required"):
            warnings += node_term_warnings(term, at)
        return warnings + source_warnings(spec)


def _internal_source(source: Obj) -> Obj:
    """Where a volume is, as Kubernetes shows it: every kind of place, all but one null."""
    shown = internal(f"{CORE}.PersistentVolumeSpec", source)
    kinds = {kind.lower() for kind in PV_SOURCES}
    return {name: value for name, value in shown.items() if name.lower() in kinds}


def _with_new_labels(affinity: Obj) -> Obj:
    """A volume's affinity with today's names for the labels of nodes that had others."""
    terms = [
        {
            **term,
            "matchExpressions": [
                {**one, "key": _NEW_LABELS.get(one.get("key"), one.get("key"))} for one in term["matchExpressions"]
            ],
        }
        if term.get("matchExpressions")
        else term
        for _, term in each(affinity.get("required"), "nodeSelectorTerms", "")
    ]
    return {**affinity, "required": {**(affinity.get("required") or {}), "nodeSelectorTerms": terms}}


# --- claims --------------------------------------------------------------------------------------------------------


class PersistentVolumeClaimKind(Kind):
    has_status = True
    empty_status: ClassVar[Obj | None] = {"phase": "Pending"}

    def prepare_create(self, obj: Obj, ctx: Context) -> None:
        super().prepare_create(obj, ctx)
        _normalise_sources(spec_of(obj), {})

    def prepare_update(self, new: Obj, old: Obj, ctx: Context, subresource: str) -> None:
        super().prepare_update(new, old, ctx, subresource)
        if not subresource:
            _normalise_sources(spec_of(new), spec_of(old))

    def content_causes(self, obj: Obj) -> list[FieldCause]:
        return claim_spec_causes(spec_of(obj), "spec")

    def update_causes(self, new: Obj, old: Obj) -> list[FieldCause]:
        causes = metadata_update_causes(new, old)
        before, fixed = _compared_claims(new, old)
        if fixed != before:
            shown = (internal(f"{CORE}.PersistentVolumeClaimSpec", one) for one in (before, fixed))
            causes.append(forbidden("spec", f"{CLAIM_TEXT}\n{changed_lines(*shown)}"))
        asked, given = (("spec", "resources", "requests", "storage"), ("status", "capacity", "storage"))
        wanted, had, held = (amount(dig(*at)) or NOTHING for at in ((new, *asked), (old, *asked), (old, *given)))
        if wanted < had and wanted <= held:
            why = "field can not be less than status.capacity"
            causes.append(forbidden("spec.resources.requests.storage", why))
        mode = spec_of(new).get("volumeMode")
        if mode != spec_of(old).get("volumeMode"):
            causes.append(invalid("volumeMode", mode, "field is immutable"))
        return causes

    def status_causes(self, new: Obj, old: Obj) -> list[FieldCause]:
        status: Obj = new.get("status") or {}
        causes = _amount_causes(status.get("capacity"), "status.capacity")
        for name, state in sorted((status.get("allocatedResourceStatuses") or {}).items()):
            causes += _resource_key_causes(name, "status.allocatedResourceStatuses")
            if state not in RESIZE_STATES:
                causes.append(unsupported("status.allocatedResourceStatuses", name, sorted(RESIZE_STATES)))
        allocated = status.get("allocatedResources") or {}
        wrong = {name: _resource_key_causes(name, "status.allocatedResources") for name in sorted(allocated)}
        causes += [cause for found in wrong.values() for cause in found]
        sound = {name: allocated[name] for name, found in wrong.items() if not found}
        return causes + _amount_causes(sound, "status.allocatedResources")

    def warnings(self, new: Obj, old: Obj | None) -> list[str]:
        warnings: list[str] = []
        if BETA_CLASS in (dig(new, "metadata", "annotations") or {}):
            why = 'deprecated since v1.8; use "storageClassName" attribute instead'
            warnings.append(f"metadata.annotations[{BETA_CLASS}]: {why}")
        for key in ("requests", "limits"):
            warnings += fraction_warnings(dig(new, "spec", "resources", key), f"spec.resources.{key}", "storage")
        return warnings


def _amount_causes(amounts: Any, path: str) -> list[FieldCause]:
    sizes = {name: amount(value) for name, value in sorted((amounts or {}).items())}
    return [
        invalid(f"{path}[{name}]", size.value(), QUANTITY)
        for name, size in sizes.items()
        if size is not None and size.nano < 0
    ]


def _resource_key_causes(name: str, path: str) -> list[FieldCause]:
    causes = [invalid(path, name, problem) for problem in names.qualified_name(name)]
    own = "/" not in name or "kubernetes.io/" in name
    return causes or ([unsupported(path, name, ("storage",))] if own and name != "storage" else [])


def _normalise_sources(spec: Obj, before: Obj) -> None:
    """Where a claim's content comes from is said in two fields, which then agree; what the older one could never name
    is dropped (``EnforceDataSourceBackwardsCompatibility``, ``NormalizeDataSources``)."""
    reference, source = spec.get("dataSourceRef"), spec.get("dataSource")
    if isinstance(reference, dict) and reference.get("namespace") and not before.get("dataSourceRef"):
        del spec["dataSourceRef"]
        reference = None
    if not (before.get("dataSource") or before.get("dataSourceRef")) and reference is None and isinstance(source, dict):
        pair = (source.get("apiGroup") or "", source.get("kind"))
        if pair not in (("", "PersistentVolumeClaim"), ("snapshot.storage.k8s.io", "VolumeSnapshot")):
            del spec["dataSource"]
            source = None
    if isinstance(source, dict) and reference is None:
        spec["dataSourceRef"] = dict(source)
    elif isinstance(reference, dict) and source is None and not reference.get("namespace"):
        spec["dataSource"] = {key: value for key, value in reference.items() if key != "namespace"}


def _compared_claims(new: Obj, old: Obj) -> tuple[Obj, Obj]:
    """The old spec and the new one, with what may change made equal: the volume's name once, a bound claim's size."""
    spec, before = dict(spec_of(new)), dict(spec_of(old))
    taken = [(before, spec, "volumeName")] if not before.get("volumeName") else []
    if before.get("storageClassName") is None:
        taken.append((spec, before, "storageClassName"))
    if dig(old, "status", "phase") == "Bound":
        taken.append((spec, before, "volumeAttributesClassName"))
        if dig(spec, "resources", "requests") is not None:
            spec["resources"] = {**spec["resources"], "requests": dict(spec["resources"]["requests"])}
            taken.append((spec["resources"]["requests"], dig(before, "resources", "requests", default={}), "storage"))
    for target, source, key in taken:
        target.pop(key, None)
        if source.get(key) is not None:
            target[key] = source[key]
    return before, spec


# --- classes and attachments ---------------------------------------------------------------------------------------


def _provisioner_causes(name: str, path: str) -> list[FieldCause]:
    if not name:
        return [required(path)]
    return [invalid(path, name.lower(), problem) for problem in names.qualified_name(name.lower())]


def _parameter_causes(parameters: Any, *, needed: bool = False) -> list[FieldCause]:
    found: Obj = parameters or {}
    if len(found) > MOST_PARAMETERS:
        return [too_long("parameters", MOST_PARAMETERS)]
    causes = [invalid("parameters", "", "field can not be empty.")] if "" in found else []
    if sum(len(key) + len(str(value)) for key, value in found.items()) > MOST_PARAMETER_BYTES:
        causes.append(too_long("parameters", MOST_PARAMETER_BYTES))
    if needed and not found:
        causes.append(required("parameters", "must contain at least one key/value pair"))
    return causes


class StorageClassKind(Kind):
    namespaced = False

    def content_causes(self, obj: Obj) -> list[FieldCause]:
        causes = _provisioner_causes(str(obj.get("provisioner") or ""), "provisioner")
        causes += _parameter_causes(obj.get("parameters")) + one_of(obj, "", "reclaimPolicy", ("Delete", "Retain"))
        mode = obj.get("volumeBindingMode")
        if mode not in BINDING_MODES:
            causes.append(unsupported("volumeBindingMode", mode, BINDING_MODES))
        causes += _topology_causes(obj)
        return [FieldCause(cause.reason, cause.message, cause.field.removeprefix(".")) for cause in causes]

    def update_causes(self, new: Obj, old: Obj) -> list[FieldCause]:
        causes = metadata_update_causes(new, old)
        if (new.get("parameters") or {}) != (old.get("parameters") or {}):
            causes.append(invalid("parameters", new.get("parameters") or {}, "field is immutable"))
        return causes + immutable(new, old, "", "provisioner", "reclaimPolicy", "volumeBindingMode")

    def warnings(self, new: Obj, old: Obj | None) -> list[str]:
        return [
            f"{at}.key: {OLD_NODE_LABELS[expression['key']]}"
            for where, term in each(new, "allowedTopologies", "")
            for at, expression in each(term, "matchLabelExpressions", where.removeprefix("."))
            if expression.get("key") in OLD_NODE_LABELS
        ]


def _topology_causes(obj: Obj) -> list[FieldCause]:
    causes: list[FieldCause] = []
    # Kubernetes compares with as many empty terms as there are terms, so that an empty one is always said twice.
    known: list[dict[str, list[str]]] = [{} for _ in obj.get("allowedTopologies") or ()]
    for where, term in each(obj, "allowedTopologies", ""):
        seen: dict[str, list[str]] = {}
        for at, expression in each(term, "matchLabelExpressions", where):
            key, values = str(expression.get("key") or ""), expression.get("values") or []
            if not values:
                causes.append(required(f"{at}.values"))
            causes += [
                duplicate(f"{at}.values[{index}]", one) for index, one in enumerate(values) if one in values[:index]
            ]
            causes += [invalid(f"{at}.key", key, problem) for problem in names.qualified_name(key)]
            if key in seen:
                causes.append(duplicate(f"{at}.key", key))
            seen[key] = sorted(set(values))
        causes += [duplicate(f"{where}.matchLabelExpressions", "") for other in known if other == seen]
        known.append(seen)
    return causes


class AttributesClassKind(Kind):
    """What a volume of a driver can be tuned to."""

    namespaced = False

    def content_causes(self, obj: Obj) -> list[FieldCause]:
        causes = _provisioner_causes(str(obj.get("driverName") or ""), "driverName")
        return causes + _parameter_causes(obj.get("parameters"), needed=True)

    def update_causes(self, new: Obj, old: Obj) -> list[FieldCause]:
        return metadata_update_causes(new, old) + [
            forbidden(key, f"updates to {key} are forbidden.")
            for key in ("driverName", "parameters")
            if new.get(key) != old.get(key)
        ]


class AttachmentKind(Kind):
    has_status = True
    status_keeps_metadata = True
    namespaced = False
    empty_status: ClassVar[Obj | None] = {"attached": False}

    def content_causes(self, obj: Obj) -> list[FieldCause]:
        spec = spec_of(obj)
        causes = driver_name_causes(spec.get("attacher"), "spec.attacher")
        source, where = spec.get("source") or {}, "spec.source"
        inline, name = source.get("inlineVolumeSpec"), source.get("persistentVolumeName")
        both = "must specify exactly one of inlineVolumeSpec and persistentVolumeName"
        if inline is None and name is None:
            causes.append(required(where, both))
        elif inline is not None and name is not None:
            causes.append(forbidden(where, both))
        elif name is not None:
            if not name:
                causes.append(required(f"{where}.persistentVolumeName", "must specify non empty persistentVolumeName"))
        else:
            causes += volume_spec_causes(inline or {}, f"{where}.inlineVolumeSpec", inline=True)
        if name is not None:
            causes += [invalid(f"{where}.persistentVolumeName", name, one) for one in names.dns_subdomain(name)]
        node = str(spec.get("nodeName") or "")
        causes += [invalid("spec.nodeName", node, problem) for problem in names.dns_subdomain(node)]
        return causes + self._error_causes(obj)

    def _error_causes(self, obj: Obj) -> list[FieldCause]:
        return [
            too_long(f"status.{key}.message", SHOWN_ERROR_BYTES)
            for key in ("attachError", "detachError")
            if len(str(dig(obj, "status", key, "message") or "")) > MOST_ERROR_BYTES
        ]

    def update_causes(self, new: Obj, old: Obj) -> list[FieldCause]:
        return immutable(new, old, "", "spec")

    def status_causes(self, new: Obj, old: Obj) -> list[FieldCause]:
        return self._error_causes(new)
