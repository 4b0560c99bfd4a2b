"""Health by users' scripts as Argo CD's own functions answer (``conformance/gitops/health-lua.jsonl``)."""

from __future__ import annotations

from typing import Any

import pytest
from tests.gitops.recordings import cases, judge

from syncline.apply.health.overrides import HealthScript, checked_with
from syncline.apply.lua import Guarded, LuaLimits

pytest.importorskip("lupa", reason="the extra lua is not installed")
QUICK = Guarded(LuaLimits(seconds=0.2))
"""A script that never ends is stopped all the same, only sooner."""


def _answer(case: dict[str, Any]) -> dict[str, Any] | None:
    overrides = {
        key: HealthScript(entry.get("healthLua", ""), entry.get("useOpenLibs", False))
        for key, entry in case["input"]["resourceOverrides"].items()
    }
    health = checked_with(overrides, QUICK)(case["input"]["object"])
    return health and {"status": health.status, "message": health.message, "error": health.failed}


def _agrees(expect: dict[str, Any] | None, got: dict[str, Any] | None) -> bool:
    if expect is None or got is None:
        return expect is got
    prefix = expect.get("messagePrefix", expect["message"])
    same_text = got["message"].startswith(prefix) if "messagePrefix" in expect else got["message"] == prefix
    return same_text and (got["status"], got["error"]) == (expect["status"], expect["error"])


@pytest.mark.parametrize("case", cases("health-lua"), ids=lambda c: c["id"])
def test_a_script_of_a_user_says_what_it_says_upstream(case: dict[str, Any]) -> None:
    got = _answer(case)
    judge(case, _agrees(case["expect"], got), got)
