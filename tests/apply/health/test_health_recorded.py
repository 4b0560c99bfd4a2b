"""Health of one object as Argo CD's own functions answer (``conformance/gitops/health.jsonl``)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from tests.gitops.recordings import cases, judge

from syncline.apply.health import health_of


def _answer(case: dict[str, Any]) -> dict[str, Any] | None:
    obj = case["input"]["object"]
    if case["input"].get("scriptOnly"):
        kept = obj["metadata"].get("finalizers") or []
        obj = {**obj, "metadata": {**obj["metadata"], "finalizers": [*kept, "argocd.argoproj.io/hook-finalizer"]}}
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


@pytest.mark.parametrize("case", cases("health"), ids=lambda c: c["id"])
def test_an_object_is_as_healthy_as_upstream_says(case: dict[str, Any]) -> None:
    judge(case, _agrees(case), _answer(case))


def test_the_figure_over_all_recorded_cases(figure: Callable[[str, str], None]) -> None:
    total = Counter(_agrees(case) for case in cases("health"))
    figure("health recordings", f"{total[True]} of {sum(total.values())} agree")
    assert total[True] == 833 or not total
