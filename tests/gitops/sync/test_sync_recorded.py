"""Whole operations, step by step, as Argo CD's own engine runs them (``conformance/gitops/sync.jsonl``)."""

from __future__ import annotations

from typing import Any

import pytest
from tests.gitops.recordings import cases
from tests.gitops.sync.drive import Driver

DEVIATIONS: dict[str, str] = {}
"""Cases that are meant to differ, and why; they stand in docs/compatibility.md."""


@pytest.mark.parametrize("case", cases("sync"), ids=lambda c: f"{c['id']}-{c['family']}")
def test_an_operation_takes_the_steps_that_upstream_takes(case: dict[str, Any]) -> None:
    got = Driver(case["input"]).run()
    expect = case["expect"]
    for mine, theirs in zip(got["steps"], expect["steps"]):
        assert mine == theirs, f"{case['about']}: step {theirs['step']}"
    assert len(got["steps"]) == len(expect["steps"]), case["about"]
    assert got["live"] == expect["live"], case["about"]
