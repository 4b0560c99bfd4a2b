"""Differences as Argo CD finds them (``conformance/gitops/diff.jsonl``; behaviours 40 to 51)."""

from __future__ import annotations

from typing import Any

import pytest
from tests.gitops.evaluating import ANSWERS
from tests.gitops.recordings import cases, judge, without_nulls
from tests.gitops.widget import schema_of

from syncline.apply.diff import DiffError, DiffMode, DiffSettings, IgnoreRule, Override, compare_objects
from syncline.argo.tracking import Tracking, TrackingMethod
from syncline.kube.patching.typedvalues import same_json


def _settings(given: dict[str, Any]) -> DiffSettings:
    method = given.get("trackingMethod")
    return DiffSettings(
        mode=DiffMode(given["mode"]),
        ignore=tuple(IgnoreRule.parse(rule) for rule in given.get("ignoreDifferences") or ()),
        overrides={key: Override.parse(entry) for key, entry in (given.get("resourceOverrides") or {}).items()},
        ignore_aggregated_roles=given.get("ignoreAggregatedRoles", False),
        tracking=None if method is None else Tracking(TrackingMethod.parse(method)),
        include_mutation_webhook=given.get("includeMutationWebhook", False),
        dry_run=given.get("dryRunResult"),
        schema_of=schema_of,
        jq=ANSWERS,
    )


def _answer(given: dict[str, Any]) -> dict[str, Any]:
    try:
        found = compare_objects(given.get("target"), given.get("live"), _settings(given))
    except DiffError as error:
        return {"error": str(error)}
    return {"modified": found.modified, "normalizedLive": found.live, "predictedLive": found.predicted}


def _agrees(got: dict[str, Any], expect: dict[str, Any]) -> bool:
    if "errorPrefix" in expect:
        return str(got.get("error", "")).startswith(expect["errorPrefix"])
    return same_json(without_nulls(got), without_nulls(expect))


@pytest.mark.parametrize("case", cases("diff"), ids=lambda case: f"{case['id']}-{case['about']}")
def test_objects_differ_when_upstream_says_so(case: dict[str, Any]) -> None:
    got = _answer(case["input"])
    judge(case, _agrees(got, case["expect"]), got)


def test_the_figure_of_what_counts() -> None:
    """``modified`` is what decides the status; the objects are what people see."""
    all_cases = [case for case in cases("diff") if "modified" in case["expect"]]
    agreeing = sum(_answer(case["input"]).get("modified") == case["expect"]["modified"] for case in all_cases)
    print(f"diff: modified agrees in {agreeing} of {len(all_cases)}")  # noqa: T201
    assert agreeing >= len(all_cases) - 7
