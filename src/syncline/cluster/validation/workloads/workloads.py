"""Deployments, replica sets, stateful sets, daemon sets: their fields and allowed updates.

The API calls it through :func:`syncline.cluster.validation.strategy.strategy_for`. Source: Kubernetes
``pkg/apis/apps/validation`` and ``pkg/registry/apps``.
"""

from __future__ import annotations

import copy
from typing import ClassVar

from syncline.cluster.validation.engine import names
from syncline.cluster.validation.engine import rules as r
from syncline.cluster.validation.engine.base import Context, Kind, spec_of
from syncline.cluster.validation.engine.causes import forbidden, invalid, required, unsupported
from syncline.cluster.validation.engine.fields import (
    amount_of,
    at_most_100_percent,
    count_or_percent,
    each,
    immutable,
    label_selector_causes,
    natural_numbers,
    selector_or_none,
)
from syncline.cluster.validation.engine.integers import natural
from syncline.cluster.validation.engine.metadata import label_causes, metadata_update_causes
from syncline.cluster.validation.pods.podspec import pod_template_causes, template_labels, template_metadata_causes
from syncline.cluster.validation.pods.podwarnings import fraction_warnings, pod_name_warnings, template_warnings
from syncline.cluster.validation.storage.claims import claim_spec_causes
from syncline.kube.errors import FieldCause
from syncline.kube.objects import Obj, dig

DAEMON_COUNTS = (
    *("observedGeneration", "updatedNumberScheduled", "numberAvailable", "numberUnavailable", "collisionCount"),
)
TEMPLATE_GENERATION = "deprecated.daemonset.template.generation"
MISMATCH = "`selector` does not match template `labels`"
STATEFUL_MUTABLE = (
    *("replicas", "ordinals", "template", "updateStrategy", "revisionHistoryLimit"),
    *("persistentVolumeClaimRetentionPolicy", "minReadySeconds"),
)
STATEFUL_TEXT = (
    "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', 'updateStrategy', "
    "'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden"
)


def _always_running(spec: Obj, owner: str) -> list[FieldCause]:
    """Require a template whose pods always restart and have no deadline."""
    pod, path = dig(spec, "template", "spec", default={}), "spec.template.spec"
    table = r.every(
        r.always("restartPolicy", r.choice("Always")),
        r.forbid(
            r.has("activeDeadlineSeconds"),
            "activeDeadlineSeconds",
            f"activeDeadlineSeconds in {owner} is not Supported",
        ),
    )
    return table(pod, path)


class Workload(Kind):
    """Common part of the four kinds: a selector, a template that it must match, restartPolicy Always."""

    has_status = True
    has_generation = True
    revalidates = False
    pod_spec = ("spec", "template", "spec")
    names_pods: ClassVar[bool] = False
    """Whether a name that is not a DNS label gets a warning."""
    word: ClassVar[str] = ""
    """Name of the kind in its errors."""
    template_owner: ClassVar[str] = "ReplicaSet"

    def content_causes(self, obj: Obj) -> list[FieldCause]:
        """Validate in Kubernetes' order, which is the order of causes in errors."""
        spec = spec_of(obj)
        return self.causes_before(spec) + self._selector_causes(spec) + self.causes_after(spec)

    def causes_before(self, spec: Obj) -> list[FieldCause]:
        """Validate the fields before selector and template."""
        return []

    def causes_after(self, spec: Obj) -> list[FieldCause]:
        """Validate the fields after selector and template."""
        return []

    def update_causes(self, new: Obj, old: Obj) -> list[FieldCause]:
        return metadata_update_causes(new, old) + self.content_causes(new)

    def _selector_causes(self, spec: Obj) -> list[FieldCause]:
        """Validate the selector, and that the template matches it. A missing selector matches no template."""
        selector = spec.get("selector")
        causes = label_selector_causes(selector, "spec.selector")
        if selector is None:
            causes += self.missing_selector()
        elif not selector.get("matchLabels") and not selector.get("matchExpressions"):
            causes.append(invalid("spec.selector", selector, f"empty selector is invalid for {self.word}"))
        bad = isinstance(selector, dict) and label_causes(selector.get("matchLabels"), "")
        parsed = None if bad else selector_or_none(selector)
        if parsed is None:
            return causes + self.unreadable_selector(spec)
        labels = template_labels(spec)
        if not parsed.empty and not parsed.matches(labels):
            causes.append(invalid("spec.template.metadata.labels", labels, MISMATCH))
        return causes + self._template_causes(spec)

    def missing_selector(self) -> list[FieldCause]:
        return [required("spec.selector")]

    def unreadable_selector(self, spec: Obj) -> list[FieldCause]:
        """Return the error for a malformed selector, after which the template is not validated."""
        return [invalid("spec.selector", spec.get("selector"), "invalid label selector")]

    def template_causes(self, spec: Obj) -> list[FieldCause]:
        return pod_template_causes(spec.get("template"), "spec.template")

    def _template_causes(self, spec: Obj) -> list[FieldCause]:
        return self.template_causes(spec) + _always_running(spec, self.template_owner)

    def warnings(self, new: Obj, old: Obj | None) -> list[str]:
        if old is not None and spec_of(old).get("template") == spec_of(new).get("template"):
            return []
        named = pod_name_warnings(new) if old is None and self.names_pods else []
        return named + template_warnings(dig(new, "spec", "template"), "spec.template")


def _rolling_causes(rolling: Obj, path: str, *, exclusive: bool) -> list[FieldCause]:
    """Validate ``maxUnavailable`` and ``maxSurge``: not both zero; with ``exclusive``, not both non-zero."""
    unavailable, surge = rolling.get("maxUnavailable"), rolling.get("maxSurge")
    causes = count_or_percent(unavailable, f"{path}.maxUnavailable")
    causes += count_or_percent(surge, f"{path}.maxSurge")
    some, more = bool(amount_of(unavailable)), bool(amount_of(surge))
    if exclusive and some and more:
        causes.append(invalid(f"{path}.maxSurge", surge, "may not be set when maxUnavailable is non-zero"))
    elif exclusive and not (some or more):
        causes.append(required(f"{path}.maxUnavailable", "cannot be 0 when maxSurge is 0"))
    elif not (some or more):
        shown = unavailable if unavailable is not None else 0
        causes.append(invalid(f"{path}.maxUnavailable", shown, "may not be 0 when `maxSurge` is 0"))
    if exclusive:
        causes += at_most_100_percent(surge, f"{path}.maxSurge")
    return causes + at_most_100_percent(unavailable, f"{path}.maxUnavailable")


def _unknown_strategy(path: str, strategy: Obj, *allowed: str) -> FieldCause:
    """Return the cause for an unknown strategy; it shows the whole internal type, as in Kubernetes."""
    rolling = strategy.get("rollingUpdate")
    if isinstance(rolling, dict):
        rolling = {key[:1].upper() + key[1:]: rolling.get(key, 0) for key in ("maxUnavailable", "maxSurge")}
    return unsupported(path, {"Type": strategy.get("type") or "", "RollingUpdate": rolling}, allowed)


def _above_replicas(status: Obj, *keys: str, ready: str = "readyReplicas") -> list[FieldCause]:
    """Refuse status counters above the replicas; missing ones count as zero."""
    replicas, why = status.get("replicas") or 0, "cannot be greater than status.replicas"
    causes = [invalid(f"status.{key}", status.get(key) or 0, why) for key in keys if (status.get(key) or 0) > replicas]
    if (status.get("availableReplicas") or 0) > (status.get("readyReplicas") or 0):
        why = f"cannot be greater than {ready}"
        causes.append(invalid("status.availableReplicas", status["availableReplicas"], why))
    return causes


def _replicas(*keys: str) -> r.Table:
    """Rules for counters in a status with replicas."""
    return r.every(
        r.natural("replicas", *keys, "observedGeneration"), lambda status, path: _above_replicas(status, *keys)
    )


class DeploymentKind(Workload):
    word = "deployment"
    names_pods = True
    empty_status: ClassVar[Obj | None] = {}

    def prepare_update(self, new: Obj, old: Obj, ctx: Context, subresource: str) -> None:
        super().prepare_update(new, old, ctx, subresource)
        if subresource == "status":
            # A status write does not change labels (deploymentStatusStrategy).
            metadata, labels = new.setdefault("metadata", {}), dig(old, "metadata", "labels")
            metadata.pop("labels", None)
            if labels:
                metadata["labels"] = labels

    def changed(self, new: Obj, old: Obj) -> bool:
        """Return whether the generation changes; annotations count, since they are copied to replica sets."""
        fresh, before = dig(new, "metadata", "annotations"), dig(old, "metadata", "annotations")
        return super().changed(new, old) or (fresh or {}) != (before or {})

    def causes_before(self, spec: Obj) -> list[FieldCause]:
        return natural_numbers(spec, "spec", "replicas")

    def causes_after(self, spec: Obj) -> list[FieldCause]:
        strategy, path = spec.get("strategy") or {}, "spec.strategy"
        kind, rolling = strategy.get("type"), strategy.get("rollingUpdate")
        causes: list[FieldCause] = []
        if kind == "Recreate" and rolling is not None:
            why = "may not be specified when strategy `type` is 'Recreate'"
            causes.append(forbidden(f"{path}.rollingUpdate", why))
        elif kind == "RollingUpdate":
            causes += _rolling_causes(rolling or {}, f"{path}.rollingUpdate", exclusive=False)
        elif kind != "Recreate":
            causes.append(_unknown_strategy(path, strategy, "Recreate", "RollingUpdate"))
        causes += natural_numbers(spec, "spec", "minReadySeconds", "revisionHistoryLimit")
        deadline = spec.get("progressDeadlineSeconds")
        if isinstance(deadline, int):
            causes += natural_numbers(spec, "spec", "progressDeadlineSeconds")
            if deadline <= (spec.get("minReadySeconds") or 0):
                causes.append(invalid("spec.progressDeadlineSeconds", deadline, "must be greater than minReadySeconds"))
        return causes

    def update_causes(self, new: Obj, old: Obj) -> list[FieldCause]:
        return super().update_causes(new, old) + immutable(spec_of(new), spec_of(old), "spec", "selector")

    status_rules = r.every(
        r.natural("observedGeneration", "replicas", "updatedReplicas", "readyReplicas", "availableReplicas"),
        r.natural("unavailableReplicas", "collisionCount"),
        lambda status, path: _above_replicas(status, "updatedReplicas", "readyReplicas", "availableReplicas"),
    )


class ReplicaSetKind(Workload):
    names_pods = True
    word = "deployment"  # Kubernetes' own mistake: ValidateReplicaSetSpec mentions deployments
    empty_status: ClassVar[Obj | None] = {"replicas": 0}

    def causes_before(self, spec: Obj) -> list[FieldCause]:
        return natural_numbers(spec, "spec", "replicas", "minReadySeconds")

    def update_causes(self, new: Obj, old: Obj) -> list[FieldCause]:
        return super().update_causes(new, old) + immutable(spec_of(new), spec_of(old), "spec", "selector")

    status_rules = _replicas("fullyLabeledReplicas", "readyReplicas", "availableReplicas")


class ReplicationControllerKind(Kind):
    """ReplicationControllers, the predecessors of ReplicaSets; the selector is a plain map and mutable."""

    has_status = True
    has_generation = True
    revalidates = False
    pod_spec = ("spec", "template", "spec")
    empty_status: ClassVar[Obj | None] = {"replicas": 0}

    def update_causes(self, new: Obj, old: Obj) -> list[FieldCause]:
        return metadata_update_causes(new, old) + self.content_causes(new)

    def content_causes(self, obj: Obj) -> list[FieldCause]:
        spec = spec_of(obj)
        causes = natural_numbers(spec, "spec", "minReadySeconds")
        selector, template = spec.get("selector") or {}, spec.get("template")
        if not selector:
            causes.append(required("spec.selector"))
        causes += natural_numbers(spec, "spec", "replicas")
        if not isinstance(template, dict):
            return [*causes, required("spec.template")]
        labels = template_labels(spec)
        if any((labels or {}).get(key) != value for key, value in selector.items()):
            causes.append(invalid("spec.template.metadata.labels", labels, MISMATCH))
        causes += pod_template_causes(template, "spec.template")
        return causes + _always_running(spec, "ReplicationController")

    status_rules = _replicas("fullyLabeledReplicas", "readyReplicas", "availableReplicas")

    def warnings(self, new: Obj, old: Obj | None) -> list[str]:
        if old is not None and spec_of(old).get("template") == spec_of(new).get("template"):
            return []
        named = pod_name_warnings(new) if old is None else []
        return named + template_warnings(dig(new, "spec", "template"), "spec.template")


class PodTemplateKind(Kind):
    """PodTemplates, which no controller uses."""

    has_generation = True
    generation_follows = ("template",)
    pod_spec = ("template", "spec")

    def content_causes(self, obj: Obj) -> list[FieldCause]:
        return pod_template_causes(obj.get("template"), "template")

    def warnings(self, new: Obj, old: Obj | None) -> list[str]:
        if old is not None and old.get("template") == new.get("template"):
            return []
        return template_warnings(new.get("template"), "template")


_RETENTION = r.every(
    r.field("whenDeleted", r.choice("Retain", "Delete")), r.field("whenScaled", r.choice("Retain", "Delete"))
)


class StatefulSetKind(Workload):
    word = "statefulset"
    template_owner = "StatefulSet"
    name_check = names.dns_label
    empty_status: ClassVar[Obj | None] = {"replicas": 0, "availableReplicas": 0}

    def unreadable_selector(self, spec: Obj) -> list[FieldCause]:
        return [invalid("spec.selector", spec.get("selector"), "")]

    def prepare_create(self, obj: Obj, ctx: Context) -> None:
        super().prepare_create(obj, ctx)
        _drop_max_unavailable(obj)

    def prepare_update(self, new: Obj, old: Obj, ctx: Context, subresource: str) -> None:
        _drop_max_unavailable(new)
        super().prepare_update(new, old, ctx, subresource)

    def template_causes(self, spec: Obj) -> list[FieldCause]:
        """Validate the template with its claims' volumes, without host names, which the set assigns."""
        template = spec.get("template") or {}
        pod = {
            key: value for key, value in (template.get("spec") or {}).items() if key not in ("hostname", "subdomain")
        }
        claims = [str(dig(claim, "metadata", "name") or "") for _, claim in each(spec, "volumeClaimTemplates", "spec")]
        given = [{"name": name, "persistentVolumeClaim": {"claimName": name or "-"}} for name in claims]
        if claims:
            pod["volumes"] = given + [one for one in pod.get("volumes") or () if one.get("name") not in claims]
        causes = pod_template_causes({**template, "spec": pod}, "spec.template")
        return causes + template_metadata_causes(template, "spec.template")

    def causes_before(self, spec: Obj) -> list[FieldCause]:
        causes: list[FieldCause] = []
        policy = spec.get("podManagementPolicy")
        if policy not in ("OrderedReady", "Parallel"):
            causes.append(invalid("spec.podManagementPolicy", policy, "must be 'OrderedReady' or 'Parallel'"))
        update = spec.get("updateStrategy") or {}
        rolling, path = update.get("rollingUpdate"), "spec.updateStrategy"
        if update.get("type") == "OnDelete" and rolling is not None:
            why = "only allowed for updateStrategy 'RollingUpdate'"
            causes.append(invalid(f"{path}.rollingUpdate", rolling, why))
        elif update.get("type") == "RollingUpdate":
            causes += _partition_causes(rolling or {}, f"{path}.rollingUpdate")
        elif update.get("type") != "OnDelete":
            shown = {"Type": update.get("type") or "", "RollingUpdate": _internal_partition(rolling)}
            causes.append(invalid(path, shown, "must be 'RollingUpdate' or 'OnDelete'"))
        retention = spec.get("persistentVolumeClaimRetentionPolicy") or {}
        causes += _RETENTION(retention, "spec.persistentVolumeClaimRetentionPolicy")
        for where, claim in each(spec, "volumeClaimTemplates", "spec"):
            causes += claim_spec_causes(claim.get("spec") or {}, f"{where}.spec")
        causes += natural_numbers(spec, "spec", "replicas", "minReadySeconds")
        causes += natural_numbers(spec.get("ordinals") or {}, "spec.ordinals", "start")
        name = spec.get("serviceName")
        return causes + ([invalid("spec.serviceName", name, one) for one in names.dns_label(name)] if name else [])

    def warnings(self, new: Obj, old: Obj | None) -> list[str]:
        warnings = super().warnings(new, old)
        if old is None:
            for where, claim in each(spec_of(new), "volumeClaimTemplates", "spec"):
                for key in ("requests", "limits"):
                    amounts = dig(claim, "spec", "resources", key)
                    warnings += fraction_warnings(amounts, f"{where}.spec.resources.{key}", "storage")
        if (spec_of(new).get("revisionHistoryLimit") or 0) < 0:
            warnings.append(
                "spec.revisionHistoryLimit: a negative value retains all historical revisions; a value >= 0 is "
                "recommended"
            )
        return warnings

    def update_causes(self, new: Obj, old: Obj) -> list[FieldCause]:
        causes = super().update_causes(new, old)
        fresh, before = (
            {key: value for key, value in spec_of(obj).items() if key not in STATEFUL_MUTABLE} for obj in (new, old)
        )
        return causes if fresh == before else [*causes, forbidden("spec", STATEFUL_TEXT)]

    def status_causes(self, new: Obj, old: Obj) -> list[FieldCause]:
        status = new.get("status") or {}
        keys = ("readyReplicas", "currentReplicas", "updatedReplicas", "availableReplicas")
        causes = natural_numbers(status, "status", "replicas", *keys, "observedGeneration", "collisionCount")
        before = (old.get("status") or {}).get("collisionCount")
        if (status.get("collisionCount") or 0) < (before or 0) or (
            before is not None and "collisionCount" not in status
        ):
            causes.append(invalid("status.collisionCount", status.get("collisionCount"), "cannot be decremented"))
        return causes + _above_replicas(status, *keys, ready="status.readyReplicas")


def _drop_max_unavailable(obj: Obj) -> None:
    """Drop the field unless the feature MaxUnavailableStatefulSet is on; it is off."""
    rolling = dig(obj, "spec", "updateStrategy", "rollingUpdate")
    if isinstance(rolling, dict):
        rolling.pop("maxUnavailable", None)


def _internal_partition(rolling: Obj | None) -> Obj | None:
    """Return the partition as Kubernetes shows its internal type."""
    if rolling is None:
        return None
    return {"Partition": rolling.get("partition", 0), "MaxUnavailable": rolling.get("maxUnavailable")}


def _partition_causes(rolling: Obj, path: str) -> list[FieldCause]:
    causes = natural_numbers(rolling, path, "partition")
    unavailable = rolling.get("maxUnavailable")
    if unavailable is not None:
        causes += count_or_percent(unavailable, f"{path}.maxUnavailable")
        if amount_of(unavailable) == 0:
            causes.append(invalid(f"{path}.maxUnavailable", unavailable, "cannot be 0"))
        causes += at_most_100_percent(unavailable, f"{path}.maxUnavailable")
    return causes


class DaemonSetKind(Workload):
    word = "daemonset"
    template_owner = "DaemonSet"
    empty_status: ClassVar[Obj | None] = {
        "currentNumberScheduled": 0,
        "numberMisscheduled": 0,
        "desiredNumberScheduled": 0,
        "numberReady": 0,
    }

    def missing_selector(self) -> list[FieldCause]:
        return []

    def unreadable_selector(self, spec: Obj) -> list[FieldCause]:
        return self._template_causes(spec)

    def convert(self, obj: Obj) -> None:
        if not _template_generation(obj):
            _set_template_generation(obj, 0)

    def prepare_create(self, obj: Obj, ctx: Context) -> None:
        super().prepare_create(obj, ctx)
        _set_template_generation(obj, max(1, _template_generation(obj)))

    def prepare_update(self, new: Obj, old: Obj, ctx: Context, subresource: str) -> None:
        super().prepare_update(new, old, ctx, subresource)
        moved = not subresource and spec_of(new).get("template") != spec_of(old).get("template")
        if not subresource or not _template_generation(new):
            _set_template_generation(new, _template_generation(old) + int(moved))

    def causes_after(self, spec: Obj) -> list[FieldCause]:
        update, path = spec.get("updateStrategy") or {}, "spec.updateStrategy"
        causes = natural_numbers(spec, "spec", "minReadySeconds")
        if update.get("type") == "RollingUpdate":
            causes += _rolling_causes(update.get("rollingUpdate") or {}, f"{path}.rollingUpdate", exclusive=True)
        elif update.get("type") != "OnDelete":
            causes.append(_unknown_strategy(path, update, "RollingUpdate", "OnDelete"))
        return causes + natural_numbers(spec, "spec", "revisionHistoryLimit")

    def update_causes(self, new: Obj, old: Obj) -> list[FieldCause]:
        kept = immutable(spec_of(new), spec_of(old), "spec", "selector")
        return metadata_update_causes(new, old) + kept + self.content_causes(new)

    status_rules = r.natural(*(empty_status or ()), *DAEMON_COUNTS)


def _template_generation(obj: Obj) -> int:
    text = (dig(obj, "metadata", "annotations") or {}).get(TEMPLATE_GENERATION, "")
    return natural(text) or 0


def _set_template_generation(obj: Obj, generation: int) -> None:
    metadata = obj.setdefault("metadata", {})
    annotations = copy.copy(metadata.get("annotations") or {})
    annotations[TEMPLATE_GENERATION] = str(generation)
    metadata["annotations"] = annotations


class ControllerRevisionKind(Kind):
    """ControllerRevisions: immutable snapshots."""

    revalidates = False

    def content_causes(self, obj: Obj) -> list[FieldCause]:
        data, causes = obj.get("data"), r.every(r.natural("revision"))(obj, "")
        if data is None:
            causes.append(required("data", "data is mandatory"))
        elif not isinstance(data, dict):
            causes.append(required("data", "data must be a valid JSON object"))
        return causes

    fixed = ("data",)

    def update_causes(self, new: Obj, old: Obj) -> list[FieldCause]:
        return super().update_causes(new, old) + r.every(r.natural("revision"))(new, "")
