"""Health of Deployment, StatefulSet, DaemonSet and ReplicaSet (gitops-engine ``pkg/health``)."""

from __future__ import annotations

from syncline.apply.health.typed import boolean, conditions, integer, text
from syncline.apply.health.verdict import Health, HealthStatus
from syncline.kube.objects import Obj, name_of

_ROLLOUT = "Waiting for rollout to finish: "


def _count(obj: Obj, *path: str) -> int:
    return integer(obj, *path) or 0


def _unobserved(obj: Obj) -> bool:
    return _count(obj, "metadata", "generation") > _count(obj, "status", "observedGeneration")


def _progressing(message: str) -> Health:
    return Health(HealthStatus.PROGRESSING, message)


def deployment(obj: Obj) -> Health:
    """Return the progress as ``kubectl rollout status``; a paused Deployment is Suspended in any state."""
    if boolean(obj, "spec", "paused"):
        return Health(HealthStatus.SUSPENDED, "Deployment is paused")
    if _unobserved(obj):
        return _progressing(_ROLLOUT + "observed deployment generation less than desired generation")
    progress = next((c for c in conditions(obj) if c.get("type") == "Progressing"), {})
    if progress.get("reason") == "ProgressDeadlineExceeded":
        return Health(HealthStatus.DEGRADED, f'Deployment "{name_of(obj)}" exceeded its progress deadline')
    return _rollout(obj)


def _rollout(obj: Obj) -> Health:
    wanted = integer(obj, "spec", "replicas")
    total = _count(obj, "status", "replicas")
    updated = _count(obj, "status", "updatedReplicas")
    available = _count(obj, "status", "availableReplicas")
    if wanted is not None and updated < wanted:
        return _progressing(f"{_ROLLOUT}{updated} out of {wanted} new replicas have been updated...")
    if total > updated:
        return _progressing(f"{_ROLLOUT}{total - updated} old replicas are pending termination...")
    if available < updated:
        return _progressing(f"{_ROLLOUT}{available} of {updated} updated replicas are available...")
    return Health(HealthStatus.HEALTHY)


def replica_set(obj: Obj) -> Health:
    if _unobserved(obj):
        return _progressing(_ROLLOUT + "observed replica set generation less than desired generation")
    failure = next((c for c in conditions(obj) if c.get("type") == "ReplicaFailure"), {})
    if failure.get("status") == "True":
        return Health(HealthStatus.DEGRADED, text(failure, "message"))
    wanted = integer(obj, "spec", "replicas")
    available = _count(obj, "status", "availableReplicas")
    if wanted is not None and available < wanted:
        return _progressing(f"{_ROLLOUT}{available} out of {wanted} new replicas are available...")
    return Health(HealthStatus.HEALTHY)


def daemon_set(obj: Obj) -> Health:
    if _unobserved(obj):
        return _progressing(_ROLLOUT + "observed daemon set generation less than desired generation")
    wanted = _count(obj, "status", "desiredNumberScheduled")
    updated = _count(obj, "status", "updatedNumberScheduled")
    available = _count(obj, "status", "numberAvailable")
    if text(obj, "spec", "updateStrategy", "type") == "OnDelete":
        return Health(HealthStatus.HEALTHY, f"daemon set {updated} out of {wanted} new pods have been updated")
    waiting = f'Waiting for daemon set "{name_of(obj)}" rollout to finish: '
    if updated < wanted:
        return _progressing(f"{waiting}{updated} out of {wanted} new pods have been updated...")
    if available < wanted:
        return _progressing(f"{waiting}{available} of {wanted} updated pods are available...")
    return Health(HealthStatus.HEALTHY)


def stateful_set(obj: Obj) -> Health:
    """Judge a partitioned rollout by its partition only, OnDelete by its ready pods only."""
    if _count(obj, "status", "observedGeneration") == 0 or _unobserved(obj):
        return _progressing("Waiting for statefulset spec update to be observed...")
    wanted = integer(obj, "spec", "replicas")
    ready = _count(obj, "status", "readyReplicas")
    updated = _count(obj, "status", "updatedReplicas")
    if wanted is not None and ready < wanted:
        return _progressing(f"Waiting for {wanted - ready} pods to be ready...")
    strategy = text(obj, "spec", "updateStrategy", "type")
    rolling = (obj.get("spec") or {}).get("updateStrategy") or {}
    if strategy == "RollingUpdate" and rolling.get("rollingUpdate") is not None:
        return _partitioned(obj, wanted, updated)
    if strategy == "OnDelete":
        return Health(HealthStatus.HEALTHY, f"statefulset has {ready} ready pods")
    return _revisions(obj, updated)


def _partitioned(obj: Obj, wanted: int | None, updated: int) -> Health:
    partition = integer(obj, "spec", "updateStrategy", "rollingUpdate", "partition")
    if wanted is not None and partition is not None and updated < wanted - partition:
        return _progressing(
            f"Waiting for partitioned roll out to finish: {updated} out of {wanted - partition} "
            "new pods have been updated..."
        )
    return Health(HealthStatus.HEALTHY, f"partitioned roll out complete: {updated} new pods have been updated...")


def _revisions(obj: Obj, updated: int) -> Health:
    update, current = text(obj, "status", "updateRevision"), text(obj, "status", "currentRevision")
    if update != current:
        return _progressing(
            f"waiting for statefulset rolling update to complete {updated} pods at revision {update}..."
        )
    pods = _count(obj, "status", "currentReplicas")
    return Health(HealthStatus.HEALTHY, f"statefulset rolling update complete {pods} pods at revision {current}...")
