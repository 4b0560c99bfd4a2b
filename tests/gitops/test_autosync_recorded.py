"""Whether a sync starts by itself, as Argo CD decides (``conformance/gitops/auto-sync.jsonl``; behaviours 88 to 90)."""

from __future__ import annotations

from typing import Any

import pytest
from tests.gitops.recordings import cases, judge

from syncline.base.clock import parse_time
from syncline.gitops.application.operating.autosync import SelfHealBackoff, decide


def _answer(given: dict[str, Any]) -> dict[str, Any]:
    status = given["syncStatus"]
    revisions = status["revisions"] if "revisions" in status else [status.get("revision", "")]
    backoff = given.get("selfHealBackoff")
    found = decide(
        given["app"],
        status["status"],
        revisions,
        given.get("resources") or [],
        parse_time(given["now"]),
        compare_revisions=given.get("shouldCompareRevisions", True),
        backoff=backoff and SelfHealBackoff(backoff["durationSeconds"], backoff["factor"], backoff["capSeconds"]),
        self_heal_timeout_s=given.get("selfHealTimeoutSeconds", 0),
    )
    condition = found.condition and {"type": found.condition.type, "message": found.condition.message}
    return {"operation": found.operation, "condition": condition, "requeueAfterSeconds": found.requeue_after_s}


def _bare(value: Any) -> Any:
    """Absent and zero are the same, as upstream omits empty fields; a struct without content stays."""
    if isinstance(value, dict):
        fields = {key: _bare(item) for key, item in value.items()}
        return {key: item for key, item in fields.items() if item not in (None, "", 0, False, [], {})}
    return [_bare(item) for item in value] if isinstance(value, list) else value


@pytest.mark.parametrize("case", cases("auto-sync"), ids=lambda case: case["id"])
def test_a_sync_starts_by_itself_when_upstream_starts_it(case: dict[str, Any]) -> None:
    got, expect = _answer(case["input"]), case["expect"]
    same = _bare(got.pop("operation")) == _bare(expect["operation"])
    rest = {key: value for key, value in expect.items() if key != "operation"}
    judge(case, same and got == rest, got)
