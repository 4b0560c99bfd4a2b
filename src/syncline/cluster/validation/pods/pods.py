"""Pods: phase and quality of service at creation, and the few changes allowed later.

The API calls it through :func:`syncline.cluster.validation.strategy.strategy_for`. Source: Kubernetes
``pkg/registry/core/pod/strategy.go``, ``ValidatePodUpdate`` and ``helper/qos``.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any, ClassVar

from syncline.base.clock import format_time
from syncline.cluster.validation.engine import names
from syncline.cluster.validation.engine.addresses import ip_warnings, legacy_ip_causes
from syncline.cluster.validation.engine.base import Context, Kind, spec_of
from syncline.cluster.validation.engine.causes import forbidden, invalid, required
from syncline.cluster.validation.engine.fields import each
from syncline.cluster.validation.engine.metadata import common_update_causes, metadata_update_causes
from syncline.cluster.validation.pods.containers import image_space_causes
from syncline.cluster.validation.pods.podannotations import (
    APPARMOR,
    apparmor_field,
    pod_annotation_causes,
    pod_annotation_update_causes,
)
from syncline.cluster.validation.pods.podplacing import keep_node_affinity, placement_update_causes
from syncline.cluster.validation.pods.podspec import pod_spec_causes
from syncline.cluster.validation.pods.podsubresources import (
    EPHEMERAL,
    RESIZE,
    ephemeral_causes,
    only_ephemeral,
    only_resized,
    resize_causes,
)
from syncline.cluster.validation.pods.podwarnings import pod_warnings
from syncline.cluster.validation.pods.security import visit
from syncline.kube.errors import FieldCause
from syncline.kube.objects import Obj, dig
from syncline.kube.schema.internal import CORE, changed_lines, internal
from syncline.kube.text.quantity import QuantityError, parse_quantity

POD_GRACE_S = 30
MUTABLE = (
    "pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,"
    "`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),"
    "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)"
)


class PodKind(Kind):
    has_status = True
    has_generation = True
    grace_s = POD_GRACE_S
    warns_of_status = True
    empty_status: ClassVar[Obj | None] = {"phase": "Pending"}
    pod_spec = ("spec",)

    def prepare_create(self, obj: Obj, ctx: Context) -> None:
        super().prepare_create(obj, ctx)
        _select_by_own_labels(obj)
        _apply_apparmor_annotations(obj)
        obj["status"]["qosClass"] = qos_class(spec_of(obj))
        if spec_of(obj).get("schedulingGates"):
            why = {"reason": "SchedulingGated", "message": "Scheduling is blocked due to non-empty scheduling gates"}
            since = {"lastProbeTime": None, "lastTransitionTime": format_time(ctx.now)}
            obj["status"]["conditions"] = [{"type": "PodScheduled", "status": "False"} | since | why]

    def prepare_update(self, new: Obj, old: Obj, ctx: Context, subresource: str) -> None:
        if subresource == EPHEMERAL:
            only_ephemeral(new, old)
        elif subresource == RESIZE:
            only_resized(new, old)
        super().prepare_update(new, old, ctx, subresource)
        if subresource == "status":
            # A status write changes neither owners nor deletion (podStatusStrategy).
            _copy_or_drop(new.setdefault("metadata", {}), old.get("metadata") or {}, "ownerReferences")
            quality = dig(old, "status", "qosClass")
            if quality:
                new.setdefault("status", {}).setdefault("qosClass", quality)

    def content_causes(self, obj: Obj) -> list[FieldCause]:
        spec, meta = spec_of(obj), obj.get("metadata") or {}
        causes = pod_annotation_causes(meta.get("annotations"), spec, "metadata.annotations")
        causes += pod_spec_causes(spec, "spec", str(meta.get("name") or ""))
        return causes + image_space_causes(spec, "spec")

    def validate_create(self, obj: Obj) -> list[FieldCause]:
        causes, spec = super().validate_create(obj), spec_of(obj)
        if spec.get("ephemeralContainers"):
            causes.append(forbidden("spec.ephemeralContainers", "cannot be set on create"))
        if spec.get("nodeName") and spec.get("schedulingGates"):
            why = "cannot be set until all schedulingGates have been cleared"
            causes.append(forbidden("spec.nodeName", why))
        return causes

    def validate_update(self, new: Obj, old: Obj, subresource: str) -> list[FieldCause]:
        if subresource not in (EPHEMERAL, RESIZE):
            return super().validate_update(new, old, subresource)
        causes = common_update_causes(new, old, namespaced=True) + metadata_update_causes(new, old)
        causes += self.content_causes(new)
        return causes + (ephemeral_causes(new, old) if subresource == EPHEMERAL else resize_causes(new, old, qos_class))

    def update_causes(self, new: Obj, old: Obj) -> list[FieldCause]:
        causes = metadata_update_causes(new, old) + pod_annotation_update_causes(new, old, "metadata.annotations")
        fresh, before = spec_of(new), spec_of(old)
        for key in ("containers", "initContainers"):
            if len(fresh.get(key) or ()) != len(before.get(key) or ()):
                return [*causes, forbidden(f"spec.{key}", "pod updates may not add or remove containers")]
        for key in ("containers", "initContainers"):
            causes += [required(f"{at}.image") for at, one in each(fresh, key, "spec") if not one.get("image")]
        causes += image_space_causes(fresh, "spec")
        causes += pod_annotation_causes(dig(new, "metadata", "annotations"), fresh, "metadata.annotations")
        causes += _deadline_causes(fresh, before)
        causes += _toleration_causes(fresh, before) + _gate_causes(fresh, before)
        causes += placement_update_causes(fresh, before)
        fixed = _fixed_part(fresh, before)
        if fixed != _fixed_part(before, before):
            shown = changed_lines(internal(f"{CORE}.PodSpec", before), internal(f"{CORE}.PodSpec", fixed))
            causes.append(forbidden("spec", f"{MUTABLE}\n{shown}"))
        return causes

    def status_causes(self, new: Obj, old: Obj) -> list[FieldCause]:
        causes: list[FieldCause] = []
        status = new.get("status")
        for key in ("podIPs", "hostIPs"):
            for where, entry in each(status, key, "status"):
                causes += legacy_ip_causes(str(entry.get("ip", "")), where)
            listed = [str(entry.get("ip", "")) for _, entry in each(status, key, "status")]
            if len(listed) > 1 and len({":" in one for one in listed}) < len(listed):
                why = "may specify no more than one IP for each IP family"
                causes.append(invalid(f"status.{key}", (status or {})[key], why))
        causes += _status_causes(status or {}, old.get("status") or {})
        return causes + _condition_causes(status) + _revived_causes(new, old)

    def warnings(self, new: Obj, old: Obj | None) -> list[str]:
        if old is not None:
            return _address_warnings(new) if new.get("status") != old.get("status") else []
        warnings: list[str] = []
        problems = names.dns_label(str((new.get("metadata") or {}).get("name") or ""))
        if problems:
            listed = " ".join(problems)
            warnings.append(
                "metadata.name: this is used in the Pod's hostname, which can result in surprising behavior; a DNS "
                f"label is recommended: [{listed}]"
            )
        return warnings + _apparmor_warnings(new) + pod_warnings(new)


def _address_warnings(pod: Obj) -> list[str]:
    return [
        warning
        for key in ("podIPs", "hostIPs")
        for where, entry in each(pod.get("status"), key, "status")
        for warning in ip_warnings(str(entry.get("ip", "")), f"{where}.ip")
    ]


def _select_by_own_labels(pod: Obj) -> None:
    """Add the pod's own values of ``matchLabelKeys`` to the selector (mutatePodAffinity)."""
    labels = (pod.get("metadata") or {}).get("labels") or {}
    affinity = spec_of(pod).get("affinity") or {}
    for kind in ("podAffinity", "podAntiAffinity"):
        for _, weighted in each(affinity.get(kind), "preferredDuringSchedulingIgnoredDuringExecution", ""):
            _extend_selector(weighted.get("podAffinityTerm"), labels)
        for _, term in each(affinity.get(kind), "requiredDuringSchedulingIgnoredDuringExecution", ""):
            _extend_selector(term, labels)
    for _, spread in each(spec_of(pod), "topologySpreadConstraints", ""):
        _extend_selector(spread, labels)


def _extend_selector(term: Any, labels: Obj) -> None:
    selector = term.get("labelSelector") if isinstance(term, dict) else None
    if not isinstance(selector, dict):
        return
    for field, operator in (("matchLabelKeys", "In"), ("mismatchLabelKeys", "NotIn")):
        added = [
            {"key": key, "operator": operator, "values": [labels[key]]}
            for key in term.get(field) or ()
            if key in labels
        ]
        if added:
            selector["matchExpressions"] = [*(selector.get("matchExpressions") or ()), *added]


def _apply_apparmor_annotations(pod: Obj) -> None:
    """Convert an old annotation to its field (applyAppArmorVersionSkew)."""
    annotations = (pod.get("metadata") or {}).get("annotations") or {}
    if not any(key.startswith(APPARMOR) for key in annotations):
        return
    whole = dig(pod, "spec", "securityContext", "appArmorProfile")
    for _, container in visit(spec_of(pod), ""):
        field = apparmor_field(str(annotations.get(f"{APPARMOR}{container.get('name')}") or ""))
        given = dig(container, "securityContext", "appArmorProfile")
        if field is not None and given is None and field != whole:
            container.setdefault("securityContext", {})["appArmorProfile"] = field


def _apparmor_warnings(pod: Obj) -> list[str]:
    annotations = (pod.get("metadata") or {}).get("annotations") or {}
    whole = dig(pod, "spec", "securityContext", "appArmorProfile")
    keys = [f"{APPARMOR}{container.get('name')}" for _, container in visit(spec_of(pod), "")]
    why = 'deprecated since v1.30; use the "appArmorProfile" field instead'
    return [
        f"metadata.annotations[{key}]: {why}"
        for key in keys
        if key in annotations and (whole is None or apparmor_field(str(annotations[key])) != whole)
    ]


def _condition_causes(status: Any) -> list[FieldCause]:
    known = ("PodScheduled", "Ready", "Initialized")
    return [
        invalid(f"{where}.Type", str(condition.get("type") or ""), problem)
        for where, condition in each(status, "conditions", "status")
        if condition.get("type") not in known
        for problem in names.qualified_name(str(condition.get("type") or ""))
    ]


def _status_causes(status: Obj, before: Obj) -> list[FieldCause]:
    """Validate the independent fields of a status."""
    causes: list[FieldCause] = []
    first = str((status.get("hostIPs") or [{}])[0].get("ip", ""))
    if status.get("hostIPs") and status.get("hostIP", "") != first:
        causes.append(invalid("status.hostIPs[0].ip", first, "must be equal to `hostIP`"))
    node = status.get("nominatedNodeName")
    if node and node != before.get("nominatedNodeName"):
        causes += [invalid("status.nominatedNodeName", node, problem) for problem in names.dns_subdomain(node)]
    observed = status.get("observedGeneration") or 0
    if observed < 0:
        causes.append(invalid("status.observedGeneration", observed, "must be a non-negative integer"))
    if before.get("qosClass") and status.get("qosClass") != before["qosClass"]:
        causes.append(invalid("status.qosClass", status.get("qosClass"), "field is immutable"))
    return causes


def _gate_causes(fresh: Obj, before: Obj) -> list[FieldCause]:
    """Allow only the removal of scheduling gates."""
    known = _gates(before)
    return [
        forbidden(f"{where}.name", f"only deletion is allowed, but found new scheduling gate '{gate.get('name')}'")
        for where, gate in each(fresh, "schedulingGates", "spec")
        if gate.get("name") not in known
    ]


def _copy_or_drop(new: Obj, old: Any, key: str) -> None:
    if old.get(key) is None:
        new.pop(key, None)
    else:
        new[key] = old[key]


def _fixed_part(spec: Obj, before: Obj) -> Obj:
    """Return the spec with the mutable parts copied from ``before``."""
    fixed = copy.deepcopy(spec)
    for key in ("activeDeadlineSeconds", "tolerations"):
        _copy_or_drop(fixed, before, key)
    for key in ("containers", "initContainers", "ephemeralContainers"):
        for container, original in zip(fixed.get(key) or (), before.get(key) or ()):
            if isinstance(container, dict) and isinstance(original, dict):
                _copy_or_drop(container, original, "image")
    _copy_or_drop(fixed, before, "schedulingGates")
    if before.get("schedulingGates"):
        # While gates hold, the pod's nodes can still be narrowed.
        _copy_or_drop(fixed, before, "nodeSelector")
        keep_node_affinity(fixed, before)
    if (before.get("terminationGracePeriodSeconds") or 0) < 0 and spec.get("terminationGracePeriodSeconds") == 1:
        fixed["terminationGracePeriodSeconds"] = before["terminationGracePeriodSeconds"]
    return fixed


def _gates(spec: Obj) -> set[str]:
    return {str(gate.get("name")) for gate in spec.get("schedulingGates") or ()}


def _deadline_causes(fresh: Obj, before: Obj) -> list[FieldCause]:
    new, old = fresh.get("activeDeadlineSeconds"), before.get("activeDeadlineSeconds")
    path = "spec.activeDeadlineSeconds"
    if new is not None and not 0 <= new < 2**31:
        return [invalid(path, new, f"must be between 0 and {2**31 - 1}, inclusive")]
    if old is None or new == old:
        return []
    if new is None:
        return [invalid(path, None, "must not update from a positive integer to nil value")]
    return [invalid(path, new, "must be less than or equal to previous value")] if new > old else []


def _toleration_causes(fresh: Obj, before: Obj) -> list[FieldCause]:
    """Allow new tolerations; an old one may change only its seconds."""

    def bare(spec: Obj) -> list[Obj]:
        listed = spec.get("tolerations") or ()
        return [{key: value for key, value in one.items() if key != "tolerationSeconds"} for one in listed]

    kept = bare(fresh)
    if all(one in kept for one in bare(before)):
        return []
    return [forbidden("spec.tolerations", "existing toleration can not be modified except its tolerationSeconds")]


def _revived_causes(new: Obj, old: Obj) -> list[FieldCause]:
    """Refuse to restart a container that ended permanently."""
    if spec_of(old).get("restartPolicy") == "Always":
        return []
    fresh = {one.get("name"): one for _, one in each(new.get("status"), "containerStatuses", "")}
    causes: list[FieldCause] = []
    for _, before in each(old.get("status"), "containerStatuses", ""):
        ended = dig(before, "state", "terminated")
        again = fresh.get(before.get("name"))
        failed = isinstance(ended, dict) and ended.get("exitCode") != 0
        if not ended or again is None or (failed and spec_of(old).get("restartPolicy") == "OnFailure"):
            continue
        if not dig(again, "state", "terminated"):
            path = f"status.containerStatuses[{list(fresh).index(before.get('name'))}].state"
            causes.append(forbidden(path, "may not be transitioned to non-terminated state"))
    return causes


def qos_class(spec: Obj) -> str:
    """Return Guaranteed, Burstable or BestEffort, from CPU and memory of the pod or of all its containers."""
    if _compute((spec.get("resources") or {}).get("limits")) or _compute((spec.get("resources") or {}).get("requests")):
        return _class_of([spec])
    return _class_of(list(_containers(spec)))


def _class_of(holders: list[Obj]) -> str:
    any_amount, guaranteed = False, True
    for holder in holders:
        resources = holder.get("resources") or {}
        limits, requests = _compute(resources.get("limits")), _compute(resources.get("requests"))
        any_amount = any_amount or bool(limits or requests)
        guaranteed = guaranteed and len(limits) == 2 and all(requests.get(name) == limits[name] for name in limits)
    if not any_amount:
        return "BestEffort"
    return "Guaranteed" if guaranteed else "Burstable"


def _containers(spec: Obj) -> Iterator[Obj]:
    for key in ("containers", "initContainers"):
        for _, container in each(spec, key, ""):
            yield container


def _compute(amounts: Any) -> dict[str, int]:
    found: dict[str, int] = {}
    for name in ("cpu", "memory"):
        try:
            amount = parse_quantity(amounts[name]) if isinstance(amounts, dict) and name in amounts else None
        except QuantityError:
            amount = None  # already refused by defaulting
        if amount:
            found[name] = amount.nano
    return found
