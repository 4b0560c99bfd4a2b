"""Health of one object as Argo CD's own functions answer (``conformance/gitops/health.jsonl``)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from tests.gitops.recordings import cases

from syncline.gitops.health import health_of

BUILT_IN = {
    "pod", "deployment", "hpa", "statefulset", "deleting", "job", "daemonset", "replicaset", "service", "ingress",
    "apiservice", "none", "workflow", "pvc",
}  # fmt: skip
SHIPPED = ("shipped apiextensions.k8s.io/CustomResourceDefinition",)


def _answer(case: dict[str, Any]) -> dict[str, Any] | None:
    obj = case["input"]["object"]
    if case["input"].get("scriptOnly"):
        obj = {**obj, "metadata": {**obj["metadata"], "finalizers": ["argocd.argoproj.io/hook-finalizer"]}}
    health = health_of(obj)
    return health and {"status": health.status, "message": health.message, "error": health.failed}


def _agrees(case: dict[str, Any]) -> bool:
    expect, got = case["expect"], _answer(case)
    if expect is None or got is None:
        return expect is got
    prefix = expect.get("messagePrefix")
    if prefix is not None:
        same_text = got["message"].startswith(prefix)
    else:
        same_text = got["message"] == expect["message"]
    return same_text and (got["status"], got["error"]) == (expect["status"], expect["error"])


@pytest.mark.parametrize("case", [c for c in cases("health") if c["about"] in BUILT_IN], ids=lambda c: c["id"])
def test_a_built_in_check_says_what_upstream_says(case: dict[str, Any]) -> None:
    assert _agrees(case), f"{case['about']}: got {_answer(case)}, expected {case['expect']}"


@pytest.mark.parametrize("case", [c for c in cases("health") if c["about"].startswith(SHIPPED)], ids=lambda c: c["id"])
def test_a_definition_is_judged_by_its_conditions(case: dict[str, Any]) -> None:
    assert _agrees(case), f"{case['about']}: got {_answer(case)}, expected {case['expect']}"


def test_the_figure_over_all_recorded_cases(figure: Callable[[str, str], None]) -> None:
    total = Counter(_agrees(case) for case in cases("health"))
    figure("health recordings", f"{total[True]} of {sum(total.values())} agree; kinds with shipped scripts are to come")
    assert total[True] >= 260 or not total
