"""Health of a HorizontalPodAutoscaler (gitops-engine ``pkg/health``)."""

from __future__ import annotations

import json

from syncline.apply.health.typed import ConversionError, conditions, text
from syncline.apply.health.verdict import Health, HealthStatus
from syncline.kube.objects import Obj, annotations_of

CONDITIONS_ANNOTATION = "autoscaling.alpha.kubernetes.io/conditions"
"""Annotation in which autoscaling/v1 stores the conditions that later versions have in ``status.conditions``."""

_WAITING = Health(HealthStatus.PROGRESSING, "Waiting to Autoscale")
_FAILURES = {
    ("AbleToScale", "FailedGetScale"),
    ("AbleToScale", "FailedUpdateScale"),
    ("ScalingActive", "FailedGetResourceMetric"),
    ("ScalingActive", "FailedGetContainerResourceMetric"),
    ("ScalingActive", "FailedGetObjectMetric"),
    ("ScalingActive", "FailedGetPodsMetric"),
    ("ScalingActive", "FailedGetExternalMetric"),
    ("ScalingActive", "InvalidSelector"),
}


def horizontal_pod_autoscaler(obj: Obj) -> Health:
    """Return the health; the first relevant condition decides."""
    found = _annotated(obj) if obj.get("apiVersion") == "autoscaling/v1" else conditions(obj)
    for condition in found:
        kind, reason = text(condition, "type"), text(condition, "reason")
        if (kind, reason) in _FAILURES:
            return Health(HealthStatus.DEGRADED, text(condition, "message"))
        if kind in ("AbleToScale", "ScalingLimited") and condition.get("status") == "True":
            return Health(HealthStatus.HEALTHY, text(condition, "message"))
    return _WAITING


def _annotated(obj: Obj) -> list[Obj]:
    """Parse the conditions in the annotation. Go matches their field names in any case."""
    raw = annotations_of(obj).get(CONDITIONS_ANNOTATION)
    if raw is None:
        return []
    try:
        listed = json.loads(raw)
    except (ValueError, RecursionError) as error:
        raise AnnotationError(str(error)) from error
    if listed is None:
        return []
    if not isinstance(listed, list) or not all(isinstance(c, dict) for c in listed):
        raise AnnotationError("must be a list of conditions")
    found = [{str(name).lower(): value for name, value in c.items()} for c in listed]
    for condition in found:
        for name in ("type", "status", "reason", "message"):
            if not isinstance(condition.get(name) or "", str):
                raise AnnotationError(f"{name}: found {condition[name]!r}, must be a string")
    return found


class AnnotationError(ConversionError):
    """The annotation with the conditions is invalid."""

    def __init__(self, why: str) -> None:
        super().__init__(f"failed to convert conditions annotation to typed: {why}")
