"""Argo Rollouts: the Rollout (argo-rollouts.readthedocs.io). Controllers since 1.0 report a phase, older ones none."""

from __future__ import annotations

from typing import Any

from syncline.apply.health.reading import CannotJudge, at, conditions, first, number
from syncline.apply.health.table import Rule, Settings
from syncline.apply.health.verdict import Health, HealthStatus
from syncline.kube.objects import Obj, annotations_of

WORKLOAD_GENERATION = "rollout.argoproj.io/workload-generation"
TROUBLE = ("InvalidSpec", "Progressing=*/RolloutAborted|ProgressDeadlineExceeded")


def rollout(obj: Obj, settings: Settings) -> Health:
    if not _spec_observed(obj) or not _workload_observed(obj):
        return _waiting("Waiting for rollout spec update to be observed")
    if at(obj, "status.phase") is not None:
        return _by_phase(obj)
    trouble = first(conditions(obj), *TROUBLE)
    if trouble is not None:
        return Health(HealthStatus.DEGRADED, trouble.get("message") or "")
    if at(obj, "status.pauseConditions") or at(obj, "spec.paused"):
        return Health(HealthStatus.SUSPENDED, "Rollout is paused")
    if at(obj, "status.currentPodHash") is None:
        return _waiting("Waiting for rollout to finish: status has not been reconciled.")
    why = _missing_replicas(obj) or _unfinished(obj)
    return _waiting(why) if why else Health(HealthStatus.HEALTHY)


def _by_phase(obj: Obj) -> Health:
    phase, message = at(obj, "status.phase"), at(obj, "status.message")
    if phase == "Paused":
        return Health(HealthStatus.SUSPENDED, message or "")
    if phase in set(HealthStatus):
        return Health(HealthStatus(phase), message or "")
    return Health(HealthStatus.UNKNOWN, "Lua returned an invalid health status")


def _spec_observed(obj: Obj) -> bool:
    """Return whether the spec is observed. observedGeneration is a text; an older hash counts as observed."""
    if obj.get("status") is None:
        return False
    observed = _as_number(at(obj, "status.observedGeneration"))
    return observed is None or observed >= number(obj, "metadata.generation")


def _workload_observed(obj: Obj) -> bool:
    if at(obj, "spec.workloadRef") is None or at(obj, "metadata.annotations") is None:
        return True
    wanted = _as_number(annotations_of(obj).get(WORKLOAD_GENERATION))
    return wanted == _as_number(at(obj, "status.workloadObservedGeneration"))


def _as_number(value: Any) -> float | None:
    try:
        return float(value)
    except (TypeError, ValueError):
        return None


def _missing_replicas(obj: Obj) -> str:
    updated = number(obj, "status.updatedReplicas", 0)
    if updated < number(obj, "spec.replicas", 1):
        return "Waiting for roll out to finish: More replicas need to be updated"
    if number(obj, "status.availableReplicas", 0) < updated:
        return "Waiting for roll out to finish: updated replicas are still becoming available"
    return ""


def _unfinished(obj: Obj) -> str:
    """Return the work left for the strategy when all replicas are ready."""
    if at(obj, "spec.strategy") is None:
        raise CannotJudge("spec.strategy: is missing")
    current = at(obj, "status.currentPodHash")
    stable = at(obj, "status.stableRS")
    if stable is None:
        stable = at(obj, "status.canary.stableRS") if at(obj, "status.canary") is not None else ""
    if at(obj, "spec.strategy.blueGreen") is not None:
        if at(obj, "status.blueGreen.activeSelector") != current:
            return "active service cutover pending"
        return "waiting for analysis to complete" if stable not in ("", current) else ""
    if at(obj, "spec.strategy.canary") is None:
        return ""
    if number(obj, "status.replicas", 0) > number(obj, "status.updatedReplicas", 0):
        return "Waiting for roll out to finish: old replicas are pending termination"
    return "Waiting for rollout to finish steps" if stable == "" or stable != current else ""


def _waiting(why: str) -> Health:
    return Health(HealthStatus.PROGRESSING, why)


RULES: dict[str, Rule] = {"argo rollout": rollout}
