""":func:`health_of`: selects and runs the health check of an object.

Called with live objects by the sync engine (gates between waves, hooks), for the application's status and by ``syncline
health``. Pure: no clock, no cluster. Tables of other kinds win over the checks here; users' scripts
(:mod:`syncline.apply.health.overrides`) win over both.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from syncline.apply.annotations import has_hook_finalizer
from syncline.apply.health import autoscaling, batch, network, pods, pools, storage, workloads
from syncline.apply.health.known import known_steps
from syncline.apply.health.typed import ConversionError, check_times
from syncline.apply.health.verdict import Health, HealthStatus
from syncline.kube.objects import GroupKind, Obj, gvk_of, is_terminating


@dataclass(frozen=True, slots=True)
class _Check:
    judge: Callable[[Obj], Health]
    versions: tuple[str, ...] = ()
    """API versions that the check supports; empty: all."""
    label: str = ""
    """The kind's name in errors, if not its own."""


_CHECKS: dict[GroupKind, _Check] = {
    GroupKind("apps", "Deployment"): _Check(workloads.deployment, ("v1",)),
    GroupKind("apps", "StatefulSet"): _Check(workloads.stateful_set, ("v1",)),
    GroupKind("apps", "DaemonSet"): _Check(workloads.daemon_set, ("v1",)),
    GroupKind("apps", "ReplicaSet"): _Check(workloads.replica_set, ("v1",)),
    GroupKind("batch", "Job"): _Check(batch.job, ("v1",)),
    GroupKind("argoproj.io", "Workflow"): _Check(batch.workflow),
    GroupKind("", "Pod"): _Check(pods.pod, ("v1",)),
    GroupKind("", "PersistentVolumeClaim"): _Check(storage.persistent_volume_claim, ("v1",)),
    GroupKind("", "Service"): _Check(network.service, ("v1",)),
    GroupKind("extensions", "Ingress"): _Check(network.ingress),
    GroupKind("networking.k8s.io", "Ingress"): _Check(network.ingress),
    GroupKind("apiregistration.k8s.io", "APIService"): _Check(network.api_service, ("v1", "v1beta1")),
    GroupKind("autoscaling", "HorizontalPodAutoscaler"): _Check(
        autoscaling.horizontal_pod_autoscaler, ("v1", "v2"), "HPA"
    ),
}

_OURS: dict[GroupKind, _Check] = {
    GroupKind("machineconfiguration.openshift.io", "MachineConfigPool"): _Check(pools.machine_config_pool),
}


def health_of(obj: Obj, *, scripted: bool = True) -> Health | None:
    """Return the health of one live object; None if its kind has none.

    ``scripted=False`` skips the kinds that upstream judges by a shipped script, not by its engine. Rules: gitops-engine
    ``pkg/health``. A terminating object with the hook finalizer is judged by its real state, as otherwise the end of a
    hook would never show.
    """
    leaving = pending_deletion(obj)
    if leaving is not None:
        return leaving
    gvk = gvk_of(obj)
    steps = known_steps(gvk.group_kind) if scripted else None
    if steps is not None:
        from syncline.apply.health.table import judge

        return judge(steps, obj)
    check = (_OURS.get(gvk.group_kind) if scripted else None) or _CHECKS.get(gvk.group_kind)
    if check is None:
        return None
    label = check.label or gvk.kind
    if check.versions and gvk.version not in check.versions:
        return Health(HealthStatus.UNKNOWN, f"unsupported {label} GVK: {gvk}", failed=True)
    try:
        if check.versions:
            check_times(obj)
        return check.judge(obj)
    except autoscaling.AnnotationError as error:
        return Health(HealthStatus.UNKNOWN, str(error), failed=True)
    except ConversionError as error:
        why = f"failed to convert unstructured {label} to typed: {error}"
        return Health(HealthStatus.UNKNOWN, why, failed=True)


def pending_deletion(obj: Obj) -> Health | None:
    """Return the health of a terminating object, whatever its kind; None for others."""
    if is_terminating(obj) and not has_hook_finalizer(obj) and _real_time(obj):
        return Health(HealthStatus.PROGRESSING, "Pending deletion")
    return None


def _real_time(obj: Obj) -> bool:
    """Return whether deletionTimestamp is a valid time; an invalid one does not make an object terminating."""
    try:
        check_times({"metadata": {"deletionTimestamp": obj["metadata"]["deletionTimestamp"]}})
    except ConversionError:
        return False
    return True
