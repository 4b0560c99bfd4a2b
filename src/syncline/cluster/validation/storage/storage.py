"""Persistent volumes, claims, storage classes and attributes classes, attachments.

Called by the API through :func:`syncline.cluster.validation.strategy.strategy_for`. Source: Kubernetes
``ValidatePersistentVolume*`` and ``pkg/apis/storage/validation``.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Iterator
from typing import Any, ClassVar

from syncline.base.clock import format_time
from syncline.cluster.validation.engine import rules as r
from syncline.cluster.validation.engine.base import IMMUTABLE, Context, Kind, spec_of
from syncline.cluster.validation.engine.causes import duplicate, forbidden, invalid, required, too_long, unsupported
from syncline.cluster.validation.engine.fields import each, immutable
from syncline.cluster.validation.engine.metadata import metadata_update_causes
from syncline.cluster.validation.pods.placement import node_selector_causes
from syncline.cluster.validation.pods.podwarnings import OLD_NODE_LABELS, fraction_warnings, node_term_warnings
from syncline.cluster.validation.storage.claims import access_modes, claim_spec_causes, volume_mode
from syncline.cluster.validation.storage.pvsources import PV_SOURCES, source_causes, source_warnings
from syncline.cluster.validation.storage.volumes import driver_name_causes
from syncline.kube.errors import FieldCause
from syncline.kube.objects import Obj, annotations_of, dig
from syncline.kube.schema.internal import CORE, changed_lines, internal
from syncline.kube.text.quantity import parse_quantity

RESIZE_STATES = (
    *("ControllerResizeInProgress", "ControllerResizeInfeasible"),
    *("NodeResizeInProgress", "NodeResizeInfeasible", "NodeResizePending"),
)
MOST_PARAMETERS, MOST_PARAMETER_BYTES = 512, 256 * 1024
MOST_ERROR_BYTES, SHOWN_ERROR_BYTES = 1024, 256 * 1024
"""Kubernetes limits an error by the first and names the second."""
CLAIM_TEXT = "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims"
BETA_CLASS, BETA_OPTIONS = "volume.beta.kubernetes.io/storage-class", "volume.beta.kubernetes.io/mount-options"
CLASS_TEXT = 'deprecated since v1.8; use "storageClassName" attribute instead'
OPTIONS_TEXT = 'deprecated since v1.31; use "mountOptions" attribute instead'
RECYCLE_TEXT = (
    "The Recycle reclaim policy is deprecated. Instead, the recommended approach is to use dynamic provisioning."
)
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
NOT_INLINE = f"may not be specified {INLINE}"


def _capacity_causes(spec: Obj, path: str) -> Iterator[FieldCause]:
    capacity, where = spec.get("capacity") or {}, f"{path}.capacity"
    if not capacity:
        yield required(where)
    if list(capacity) != ["storage"]:
        yield unsupported(where, spec.get("capacity") and dict(sorted(capacity.items())), ("storage",))
    for name, value in sorted(capacity.items()):
        size = r.amount(value)
        if size is not None and size.nano < 0:
            yield invalid(f"{where}[{name}]", size.value(), QUANTITY)
        if size is not None and size.nano <= 0:
            yield invalid(f"{where}[{name}]", str(size), "must be greater than zero")


def _recycled_root(spec: Obj) -> bool:
    root = posixpath.normpath(str(dig(spec, "hostPath", "path") or ".")) == "/"
    return root and spec.get("persistentVolumeReclaimPolicy") == "Recycle"


_ATTRIBUTES = r.every(
    r.field(
        "volumeAttributesClassName",
        lambda name, path: r.subdomain(name, path) if name else [required(path, "an empty string is disallowed")],
    ),
    r.demand(
        lambda spec: spec.get("volumeAttributesClassName") is not None and not spec.get("csi"),
        "csi",
        "has to be specified when using volumeAttributesClassName",
    ),
)
_NOT_RECYCLED = r.forbid(
    _recycled_root, "persistentVolumeReclaimPolicy", "may not be 'recycle' for a hostPath mount of '/'"
)
_MODES = r.need("accessModes", access_modes)
volume_spec_causes = r.every(
    _MODES,
    _capacity_causes,
    r.filled("persistentVolumeReclaimPolicy", r.choice("Delete", "Recycle", "Retain")),
    r.field(
        "nodeAffinity",
        r.demand(r.lacks("required"), "required", "must specify required node constraints"),
        r.field("required", node_selector_causes),
    ),
    source_causes,
    r.demand(
        lambda spec: spec.get("local") is not None and spec.get("nodeAffinity") is None,
        "nodeAffinity",
        "Local volume requires node affinity",
    ),
    _NOT_RECYCLED,
    r.filled("storageClassName", r.subdomain),
    r.field("volumeMode", volume_mode),
    _ATTRIBUTES,
)
inline_spec_causes = r.every(
    r.forbid(r.given("claimRef"), "claimRef", NOT_INLINE),
    r.forbid(r.given("capacity"), "capacity", NOT_INLINE),
    r.demand(lambda spec: not spec.get("csi"), "csi", f"has to be specified {INLINE}"),
    _MODES,
    r.forbid(
        lambda spec: spec.get("persistentVolumeReclaimPolicy") not in (None, "", "Retain"),
        "persistentVolumeReclaimPolicy",
        f"may only be Retain {INLINE}",
    ),
    r.forbid(r.has("nodeAffinity"), "nodeAffinity", NOT_INLINE),
    source_causes,
    r.demand(
        lambda spec: spec.get("local") is not None and spec.get("nodeAffinity") is None,
        "nodeAffinity",
        "Local volume requires node affinity",
    ),
    _NOT_RECYCLED,
    r.forbid(r.given("storageClassName"), "storageClassName", NOT_INLINE),
    r.forbid(
        lambda spec: spec.get("volumeMode") not in (None, "Filesystem"),
        "volumeMode",
        f"may not specify volumeMode other than Filesystem {INLINE}",
    ),
    _ATTRIBUTES,
)
"""Rules for the volume in an attachment, where most fields are forbidden."""


class PersistentVolumeKind(Kind):
    has_status = True
    namespaced = False
    rules = r.every(
        r.spec(volume_spec_causes),
        r.forbid(
            lambda obj: dig(obj, "metadata", "annotations", BETA_OPTIONS) and dig(obj, "spec", "hostPath") is not None,
            f"metadata.annotations.{BETA_OPTIONS}",
            "may not specify mount options for this volume type",
        ),
    )

    def prepare_create(self, obj: Obj, ctx: Context) -> None:
        obj["status"] = {"phase": "Pending", "lastPhaseTransitionTime": format_time(ctx.now)}

    def prepare_update(self, new: Obj, old: Obj, ctx: Context, subresource: str) -> None:
        super().prepare_update(new, old, ctx, subresource)
        if subresource == "status" and dig(new, "status", "phase") != dig(old, "status", "phase"):
            new.setdefault("status", {})["lastPhaseTransitionTime"] = format_time(ctx.now)

    def update_causes(self, new: Obj, old: Obj) -> list[FieldCause]:
        fresh, before = ({key: spec_of(obj)[key] for key in PV_SOURCES if key in spec_of(obj)} for obj in (new, old))
        causes = self.whole_causes(new)
        if fresh != before:
            why = "spec.persistentvolumesource is immutable after creation"
            shown = changed_lines(_internal_source(before), _internal_source(fresh))
            causes.append(forbidden("spec.persistentvolumesource", f"{why}\n{shown}"))
        causes += immutable(spec_of(new), spec_of(old), "", "volumeMode")
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
        spec, annotations = spec_of(new), annotations_of(new)
        texts = ((BETA_CLASS, CLASS_TEXT), (BETA_OPTIONS, OPTIONS_TEXT))
        warnings = [f"metadata.annotations[{key}]: {text}" for key, text in texts if key in annotations]
        if spec.get("persistentVolumeReclaimPolicy") == "Recycle":
            warnings.append(f"spec.persistentVolumeReclaimPolicy: {RECYCLE_TEXT}")
        selector = dig(spec, "nodeAffinity", "required")
        for at, term in each(selector, "nodeSelectorTerms", "spec.nodeAffinity.required"):
            warnings += node_term_warnings(term, at)
        return warnings + source_warnings(spec)


def _internal_source(source: Obj) -> Obj:
    """Return a volume's source as Kubernetes shows it: all types, all but one null."""
    shown = internal(f"{CORE}.PersistentVolumeSpec", source)
    kinds = {kind.lower() for kind in PV_SOURCES}
    return {name: value for name, value in shown.items() if name.lower() in kinds}


def _with_new_labels(affinity: Obj) -> Obj:
    """Return a volume's affinity with the current names of renamed node labels."""
    terms = [
        {**term, "matchExpressions": [one | {"key": _NEW_LABELS.get(one.get("key"), one.get("key"))} for one in found]}
        if (found := term.get("matchExpressions"))
        else term
        for term in r.list_of(affinity.get("required"), "nodeSelectorTerms")
    ]
    return {**affinity, "required": {**(affinity.get("required") or {}), "nodeSelectorTerms": terms}}


# --- claims --------------------------------------------------------------------------------------------------------


class PersistentVolumeClaimKind(Kind):
    has_status = True
    empty_status: ClassVar[Obj | None] = {"phase": "Pending"}
    rules = r.spec(claim_spec_causes)

    def prepare_create(self, obj: Obj, ctx: Context) -> None:
        super().prepare_create(obj, ctx)
        _normalise_sources(spec_of(obj), {})

    def prepare_update(self, new: Obj, old: Obj, ctx: Context, subresource: str) -> None:
        super().prepare_update(new, old, ctx, subresource)
        if not subresource:
            _normalise_sources(spec_of(new), spec_of(old))

    def update_causes(self, new: Obj, old: Obj) -> list[FieldCause]:
        causes = metadata_update_causes(new, old)
        before, fixed = _compared_claims(new, old)
        if fixed != before:
            shown = (internal(f"{CORE}.PersistentVolumeClaimSpec", one) for one in (before, fixed))
            causes.append(forbidden("spec", f"{CLAIM_TEXT}\n{changed_lines(*shown)}"))
        asked, given = (("spec", "resources", "requests", "storage"), ("status", "capacity", "storage"))
        wanted, had, held = (r.amount(dig(*at)) or NOTHING for at in ((new, *asked), (old, *asked), (old, *given)))
        if wanted < had and wanted <= held:
            why = "field can not be less than status.capacity"
            causes.append(forbidden("spec.resources.requests.storage", why))
        return causes + immutable(spec_of(new), spec_of(old), "", "volumeMode")

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
        named = BETA_CLASS in annotations_of(new)
        warnings = [f"metadata.annotations[{BETA_CLASS}]: {CLASS_TEXT}"] if named else []
        for key in ("requests", "limits"):
            warnings += fraction_warnings(dig(new, "spec", "resources", key), f"spec.resources.{key}", "storage")
        return warnings


def _amount_causes(amounts: Any, path: str) -> list[FieldCause]:
    sizes = {name: r.amount(value) for name, value in sorted((amounts or {}).items())}
    return [
        invalid(f"{path}[{name}]", size.value(), QUANTITY)
        for name, size in sizes.items()
        if size is not None and size.nano < 0
    ]


def _resource_key_causes(name: str, path: str) -> list[FieldCause]:
    own = "/" not in name or "kubernetes.io/" in name
    return [*r.qualified(name, path)] or ([unsupported(path, name, ("storage",))] if own and name != "storage" else [])


def _normalise_sources(spec: Obj, before: Obj) -> None:
    """Make ``dataSource`` and ``dataSourceRef`` agree; drop a source that ``dataSource`` does not support
    (``EnforceDataSourceBackwardsCompatibility``, ``NormalizeDataSources``)."""
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
    """Return the old and new spec with equal mutable parts: the volume's name once, a bound claim's size."""
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


def _provisioner(name: str, path: str) -> Iterable[FieldCause]:
    return r.qualified(name.lower(), path)


def _parameter_causes(found: Obj, path: str) -> Iterator[FieldCause]:
    if len(found) > MOST_PARAMETERS:
        yield too_long(path, MOST_PARAMETERS)
        return
    if "" in found:
        yield invalid(path, "", "field can not be empty.")
    if sum(len(key) + len(str(value)) for key, value in found.items()) > MOST_PARAMETER_BYTES:
        yield too_long(path, MOST_PARAMETER_BYTES)


class StorageClassKind(Kind):
    namespaced = False
    rules = r.every(
        r.need("provisioner", _provisioner),
        r.part("parameters", _parameter_causes),
        r.need("reclaimPolicy", r.choice("Delete", "Retain")),
        r.always("volumeBindingMode", r.choice("Immediate", "WaitForFirstConsumer")),
        lambda obj, path: _topology_causes(obj),
    )

    def update_causes(self, new: Obj, old: Obj) -> list[FieldCause]:
        causes = metadata_update_causes(new, old)
        if (new.get("parameters") or {}) != (old.get("parameters") or {}):
            causes.append(invalid("parameters", new.get("parameters") or {}, IMMUTABLE))
        return causes + immutable(new, old, "", "provisioner", "reclaimPolicy", "volumeBindingMode")

    def warnings(self, new: Obj, old: Obj | None) -> list[str]:
        return [
            f"{at}.key: {OLD_NODE_LABELS[expression['key']]}"
            for where, term in each(new, "allowedTopologies", "")
            for at, expression in each(term, "matchLabelExpressions", where.removeprefix("."))
            if expression.get("key") in OLD_NODE_LABELS
        ]


_EXPRESSIONS = r.each(
    "matchLabelExpressions",
    r.needs("values"),
    r.items("values", distinct=True),
    r.text("key", r.qualified),
    r.unique("key"),
)


def _topology_causes(obj: Obj) -> Iterator[FieldCause]:
    # Kubernetes compares with as many empty terms as there are terms, so an empty one is always a duplicate.
    known: list[dict[str, list[str]]] = [{} for _ in obj.get("allowedTopologies") or ()]
    for where, term in each(obj, "allowedTopologies", ""):
        where = where.removeprefix(".")
        yield from _EXPRESSIONS(term, where)
        found = r.list_of(term, "matchLabelExpressions")
        seen = {str(one.get("key") or ""): sorted(set(one.get("values") or ())) for one in found}
        yield from (duplicate(f"{where}.matchLabelExpressions", "") for other in known if other == seen)
        known.append(seen)


class AttributesClassKind(Kind):
    """VolumeAttributesClasses: settings of a driver for a volume."""

    namespaced = False
    rules = r.every(
        r.need("driverName", _provisioner),
        r.part("parameters", _parameter_causes),
        r.need("parameters", why="must contain at least one key/value pair"),
    )

    def update_causes(self, new: Obj, old: Obj) -> list[FieldCause]:
        changed = (key for key in ("driverName", "parameters") if new.get(key) != old.get(key))
        return metadata_update_causes(new, old) + [
            forbidden(key, f"updates to {key} are forbidden.") for key in changed
        ]


def _attached(source: Obj, path: str) -> Iterator[FieldCause]:
    inline, name = source.get("inlineVolumeSpec"), source.get("persistentVolumeName")
    both, at = "must specify exactly one of inlineVolumeSpec and persistentVolumeName", f"{path}.persistentVolumeName"
    if inline is None and name is None:
        yield required(path, both)
    elif inline is not None and name is not None:
        yield forbidden(path, both)
    elif inline is not None:
        yield from inline_spec_causes(inline, f"{path}.inlineVolumeSpec")
    elif not name:
        yield required(at, "must specify non empty persistentVolumeName")
    if name is not None:
        yield from r.subdomain(name, at)


def _long_error(error: Obj, path: str) -> Iterable[FieldCause]:
    too = len(str(error.get("message") or "")) > MOST_ERROR_BYTES
    return [too_long(f"{path}.message", SHOWN_ERROR_BYTES)] if too else []


class AttachmentKind(Kind):
    has_status = True
    status_keeps_metadata = True
    namespaced = False
    empty_status: ClassVar[Obj | None] = {"attached": False}
    status_rules = r.every(r.field("attachError", _long_error), r.field("detachError", _long_error))
    rules = r.every(
        r.spec(r.always("attacher", driver_name_causes), r.part("source", _attached), r.text("nodeName", r.subdomain)),
        r.part("status", status_rules),
    )

    def update_causes(self, new: Obj, old: Obj) -> list[FieldCause]:
        return immutable(new, old, "", "spec")
