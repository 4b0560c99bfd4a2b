"""Which check an object gets.

Called with live objects by the sync engine (gates between waves, hooks), by the application's status and by
``syncline health``. Pure: no clock, no cluster. The tables of other kinds come in front of the checks here; users' own
scripts (:mod:`syncline.apply.health.overrides`) come in front of both.
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

__all__ = ["health_of", "pending_deletion"]


@dataclass(frozen=True, slots=True)
class _Check:
    judge: Callable[[Obj], Health]
    versions: tuple[str, ...] = ()
    """Versions that the check can read; empty: all."""
    label: str = ""
    """How errors name the kind, if not by its own name."""


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
    """The health of one live object; None where its kind has none.

    ``scripted=False`` leaves out the kinds that upstream judges by a shipped script, not by its engine. Rules:
    gitops-engine ``pkg/health``. A terminating object with the hook finalizer is judged by its real state: that is
    how the end of a hook is seen at all.
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
    """The health of every object that is being deleted, before any check or script; None otherwise."""
    if is_terminating(obj) and not has_hook_finalizer(obj) and _real_time(obj):
        return Health(HealthStatus.PROGRESSING, "Pending deletion")
    return None


def _real_time(obj: Obj) -> bool:
    """A deletionTimestamp that is no time does not make an object terminating, upstream."""
    try:
        check_times({"metadata": {"deletionTimestamp": obj["metadata"]["deletionTimestamp"]}})
    except ConversionError:
        return False
    return True
