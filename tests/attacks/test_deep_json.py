"""Texts of tenants that are JSON deeper than any parser follows: each is invalid, none is a crash."""

from __future__ import annotations

import base64

from syncline.apply.health import HealthStatus, health_of
from syncline.cluster.validation.core.core import json_problem
from syncline.rehearsal.reality.redacting import APPLIED, Redaction

DEEP = "[" * 100_000


def test_the_health_of_an_autoscaler_with_a_deep_annotation_is_unknown() -> None:
    scaler = {
        "apiVersion": "autoscaling/v1",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "web", "annotations": {"autoscaling.alpha.kubernetes.io/conditions": DEEP}},
    }
    found = health_of(scaler)
    assert found is not None
    assert found.status is HealthStatus.UNKNOWN


def test_a_deep_pull_secret_is_invalid() -> None:
    assert json_problem(base64.b64encode(DEEP.encode()).decode()) == "exceeded max depth"


def test_a_record_keeps_an_object_with_a_deep_annotation() -> None:
    obj = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x", "annotations": {APPLIED: DEEP}}}
    assert Redaction(b"salt").of(obj)["metadata"]["annotations"][APPLIED] == DEEP
