"""Defaults of what makes Pods: Deployments, replica sets, stateful sets, daemon sets, jobs.

Called by :mod:`syncline.kube.defaults.fill`; changes the object in place. Generated selectors of Jobs belong to the
storage strategy, not here. Source of the rules: Kubernetes ``pkg/apis/apps/v1`` and ``pkg/apis/batch/v1`` defaults.
"""

from __future__ import annotations

from syncline.kube.defaults.pods import fill_claim_spec, fill_pod_template
from syncline.kube.defaults.shape import always, default, items, null_times, structure
from syncline.kube.objects import GVK, Obj

MAX_INT32 = 2**31 - 1


def fill_deployment(gvk: GVK, obj: Obj) -> None:
    spec = structure(obj, "spec")
    fill_pod_template(gvk, spec)
    default(spec, "replicas", 1)
    strategy = structure(spec, "strategy")
    default(strategy, "type", "RollingUpdate")
    if strategy["type"] == "RollingUpdate":
        rolling = structure(strategy, "rollingUpdate")
        default(rolling, "maxUnavailable", "25%")
        default(rolling, "maxSurge", "25%")
    default(spec, "revisionHistoryLimit", 10)
    default(spec, "progressDeadlineSeconds", 600)
    status = structure(obj, "status")
    null_times(items(status, "conditions"), "lastUpdateTime", "lastTransitionTime")
    _drop_zero_counts(
        status, "replicas", "updatedReplicas", "readyReplicas", "availableReplicas", "unavailableReplicas"
    )


def fill_replica_set(gvk: GVK, obj: Obj) -> None:
    spec = structure(obj, "spec")
    fill_pod_template(gvk, spec)
    default(spec, "replicas", 1)
    status = structure(obj, "status")
    always(status, replicas=0)
    null_times(items(status, "conditions"), "lastTransitionTime")
    _drop_zero_counts(status, "fullyLabeledReplicas", "readyReplicas", "availableReplicas")


def fill_replication_controller(gvk: GVK, obj: Obj) -> None:
    spec = structure(obj, "spec")
    template = spec.get("template")
    labels = (template.get("metadata") or {}).get("labels") if isinstance(template, dict) else None
    if labels:
        default(spec, "selector", dict(labels))
        if not structure(obj, "metadata").get("labels"):
            obj["metadata"]["labels"] = dict(labels)
    if isinstance(template, dict):
        fill_pod_template(gvk, spec)
    default(spec, "replicas", 1)
    always(structure(obj, "status"), replicas=0)


def fill_stateful_set(gvk: GVK, obj: Obj) -> None:
    spec = structure(obj, "spec")
    fill_pod_template(gvk, spec)
    default(spec, "podManagementPolicy", "OrderedReady")
    update = structure(spec, "updateStrategy")
    default(update, "type", "RollingUpdate")
    if update["type"] == "RollingUpdate":
        default(structure(update, "rollingUpdate"), "partition", 0)
    retention = structure(spec, "persistentVolumeClaimRetentionPolicy")
    default(retention, "whenDeleted", "Retain")
    default(retention, "whenScaled", "Retain")
    default(spec, "replicas", 1)
    default(spec, "revisionHistoryLimit", 10)
    for claim in items(spec, "volumeClaimTemplates"):
        claim["kind"], claim["apiVersion"] = "PersistentVolumeClaim", "v1"
        structure(claim, "metadata")
        fill_claim_spec(gvk, structure(claim, "spec"))
        default(structure(claim, "status"), "phase", "Pending")
    status = structure(obj, "status")
    always(status, replicas=0, availableReplicas=0)
    null_times(items(status, "conditions"), "lastTransitionTime")
    _drop_zero_counts(status, "readyReplicas", "currentReplicas", "updatedReplicas")


def fill_daemon_set(gvk: GVK, obj: Obj) -> None:
    spec = structure(obj, "spec")
    fill_pod_template(gvk, spec)
    update = structure(spec, "updateStrategy")
    default(update, "type", "RollingUpdate")
    if update["type"] == "RollingUpdate":
        rolling = structure(update, "rollingUpdate")
        default(rolling, "maxUnavailable", 1)
        default(rolling, "maxSurge", 0)
    default(spec, "revisionHistoryLimit", 10)
    status = structure(obj, "status")
    always(status, currentNumberScheduled=0, numberMisscheduled=0, desiredNumberScheduled=0, numberReady=0)
    null_times(items(status, "conditions"), "lastTransitionTime")
    _drop_zero_counts(status, "updatedNumberScheduled", "numberAvailable", "numberUnavailable")


def fill_job(gvk: GVK, obj: Obj) -> None:
    spec = structure(obj, "spec")
    fill_pod_template(gvk, spec)
    if spec.get("completions") is None and spec.get("parallelism") is None:
        spec["completions"] = 1
    default(spec, "parallelism", 1)
    default(spec, "backoffLimit", 6 if spec.get("backoffLimitPerIndex") is None else MAX_INT32)
    labels = (spec["template"].get("metadata") or {}).get("labels") if isinstance(spec.get("template"), dict) else None
    metadata = structure(obj, "metadata")
    if labels and not metadata.get("labels"):
        # The same map as the template's, as in Kubernetes: labels that the strategy adds there appear here too.
        metadata["labels"] = labels
    default(spec, "completionMode", "NonIndexed")
    default(spec, "suspend", False)
    default(spec, "manualSelector", False)
    for rule in items(spec, "podFailurePolicy", "rules"):
        for pattern in items(rule, "onPodConditions"):
            default(pattern, "status", "True")
    default(spec, "podReplacementPolicy", "TerminatingOrFailed" if spec.get("podFailurePolicy") is None else "Failed")
    status = structure(obj, "status")
    null_times(items(status, "conditions"), "lastProbeTime", "lastTransitionTime")
    _drop_zero_counts(status, "active", "succeeded", "failed")


def fill_cron_job(gvk: GVK, obj: Obj) -> None:
    spec = structure(obj, "spec")
    template = structure(spec, "jobTemplate")
    structure(template, "metadata")
    fill_pod_template(gvk, structure(template, "spec"))
    default(spec, "concurrencyPolicy", "Allow")
    default(spec, "suspend", False)
    default(spec, "successfulJobsHistoryLimit", 3)
    default(spec, "failedJobsHistoryLimit", 1)
    structure(obj, "status")


def fill_pod_template_object(gvk: GVK, obj: Obj) -> None:
    fill_pod_template(gvk, obj)


def _drop_zero_counts(status: Obj, *names: str) -> None:
    """Drop counters with ``omitempty`` that are zero."""
    for name in names:
        if status.get(name) == 0:
            del status[name]
