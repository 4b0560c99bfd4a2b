"""Masks and respected differences as Argo CD makes them (``hide-secret.jsonl``, ``respect-ignore.jsonl``;
behaviours 48 and 56)."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.gitops.evaluating import ANSWERS
from tests.gitops.recordings import cases, judge
from tests.gitops.widget import schema_of

from syncline.apply.diff import DiffSettings, IgnoreRule, hide_secret, respect_ignored
from syncline.apply.last_applied import LAST_APPLIED
from syncline.kube.patching.typedvalues import same_json


def _readable(obj: dict[str, Any] | None) -> dict[str, Any] | None:
    """With the note of the last apply parsed, and without empty data."""
    if obj is None:
        return None
    made = json.loads(json.dumps(obj))
    annotations = made.get("metadata", {}).get("annotations") or {}
    for holder in (made, *(_parse(annotations) or ())):
        if not holder.get("data"):
            holder.pop("data", None)
    return made


def _parse(annotations: dict[str, Any]) -> list[dict[str, Any]]:
    try:
        annotations[LAST_APPLIED] = json.loads(annotations[LAST_APPLIED])
    except (KeyError, ValueError):
        return []
    return [annotations[LAST_APPLIED]]


@pytest.mark.parametrize("case", cases("hide-secret"), ids=lambda case: case["id"])
def test_equal_values_get_equal_masks_a056(case: dict[str, Any]) -> None:
    given, expect = case["input"], case["expect"]
    target, live = hide_secret(given["target"], given["live"], given["hideAnnotations"])
    got = {"target": _readable(target), "live": _readable(live)}
    judge(case, got == {"target": _readable(expect["target"]), "live": _readable(expect["live"])}, got)


@pytest.mark.parametrize("case", cases("respect-ignore"), ids=lambda case: case["id"])
def test_ignored_fields_keep_their_live_values(case: dict[str, Any]) -> None:
    given = case["input"]
    rules = tuple(IgnoreRule.parse(rule) for rule in given.get("ignoreDifferences") or ())
    got = respect_ignored(given["target"], given["live"], DiffSettings(ignore=rules, schema_of=schema_of, jq=ANSWERS))
    judge(case, same_json(got, case["expect"]["target"]), got)
