"""What v1 autoscalers keep in annotations: read back without loss, dropped where it does not decode."""

from __future__ import annotations

import json
from typing import Any

import pytest

from syncline.cluster.validation.workloads.autoscalerversions import autoscaler_to_v1, autoscaler_to_v2
from syncline.kube.objects import Obj

PREFIX = "autoscaling.alpha.kubernetes.io/"
CPU = {"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 80}}}


def v1(**annotations: str) -> Obj:
    kept = {PREFIX + key.replace("_", "-"): text for key, text in annotations.items()}
    return {
        "apiVersion": "autoscaling/v1",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "h", "annotations": {"own": "x", **kept}},
        "spec": {"maxReplicas": 3},
    }


METRICS: list[Obj] = [
    {"type": "Pods", "pods": {"metric": {"name": "q"}, "target": {"type": "AverageValue", "averageValue": "500m"}}},
    {
        "type": "Object",
        "object": {
            "describedObject": {"kind": "Service", "name": "s", "apiVersion": "v1"},
            "metric": {"name": "r", "selector": {"matchLabels": {"a": "b"}}},
            "target": {"type": "AverageValue", "averageValue": "2"},
        },
    },
    {"type": "External", "external": {"metric": {"name": "e"}, "target": {"type": "Value", "value": "4"}}},
    {
        "type": "ContainerResource",
        "containerResource": {
            "name": "cpu",
            "container": "c",
            "target": {"type": "Utilization", "averageUtilization": 5},
        },
    },
    CPU,
]


def test_what_v1_has_no_field_for_comes_back() -> None:
    rules = {"selectPolicy": "Min", "policies": [{"type": "Pods", "value": 1, "periodSeconds": 15}], "tolerance": "50m"}
    condition = {"type": "AbleToScale", "status": "True", "lastTransitionTime": None, "message": "<a> & b"}
    v2 = {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "h", "annotations": {"own": "x"}},
        "spec": {"maxReplicas": 3, "metrics": METRICS, "behavior": {"scaleUp": rules}},
        "status": {"desiredReplicas": 1, "currentMetrics": None, "conditions": [condition]},
    }
    old = autoscaler_to_v1(v2)
    assert old["spec"] == {"maxReplicas": 3, "targetCPUUtilizationPercentage": 80}
    assert set(old["metadata"]["annotations"]) == {
        "own",
        PREFIX + "metrics",
        PREFIX + "behavior",
        PREFIX + "conditions",
    }
    assert "\\u003ca\\u003e \\u0026 b" in old["metadata"]["annotations"][PREFIX + "conditions"]
    assert autoscaler_to_v2(old) == v2


@pytest.mark.parametrize(
    "text",
    ["", "no", "{}", "5", '[{"type":5}]', '[{"type":"Pods","pods":[]}]', "[" * 100_000, '[{"pods":{"metricName":[]}}]']
    + [
        json.dumps([{"type": "Resource", "resource": {"targetAverageUtilization": wrong}}])
        for wrong in (1.5, True, 2**31)
    ]
    + [json.dumps([{"type": "Pods", "pods": {"targetAverageValue": wrong}}]) for wrong in ("lots", [], True)],
)
def test_metrics_that_do_not_decode_are_as_if_they_were_not_there(text: str) -> None:
    new = autoscaler_to_v2(v1(metrics=text))
    assert new["spec"]["metrics"] == [CPU]
    assert new["metadata"]["annotations"] == {"own": "x"}


@pytest.mark.parametrize(
    ("key", "text", "part"),
    [
        ("behavior", "[]", ("spec", "behavior")),
        ("behavior", '{"ScaleUp":{"Policies":{}}}', ("spec", "behavior")),
        ("behavior", '{"ScaleUp":null}', ("spec", "behavior")),
        ("conditions", '[{"type":"A","lastTransitionTime":"soon"}]', ("status", "conditions")),
        ("current_metrics", '{"type":"Pods"}', ("status", "currentMetrics")),
    ],
)
def test_other_annotations_that_do_not_decode_are_dropped(key: str, text: str, part: tuple[str, str]) -> None:
    new: Any = autoscaler_to_v2(v1(**{key: text}))
    assert new[part[0]].get(part[1]) is None
