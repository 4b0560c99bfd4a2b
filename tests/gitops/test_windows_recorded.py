"""Sync windows as Argo CD reads them (``conformance/gitops/sync-window.jsonl``; behaviours 26 to 29)."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pytest
from tests.gitops.recordings import cases, judge

from syncline.argo.project.windows import (
    WindowError,
    active_windows,
    can_sync,
    inactive_allows,
    matching_windows,
    read_windows,
    validate_window,
)
from syncline.base.clock import format_time, parse_time
from syncline.kube.text.cron import CronError, parse_schedule


def _starts(given: dict[str, Any], now: datetime) -> dict[str, Any]:
    try:
        schedule = parse_schedule(given["windows"][0]["schedule"])
    except CronError:
        return {"error": True}
    starts: list[str] = []
    here: datetime | None = now
    for _ in range(given["count"]):
        here = schedule.next_after(here) if here else None
        if here:
            starts.append(format_time(here))
    return {"starts": starts}


def _decided(given: dict[str, Any], now: datetime) -> dict[str, Any]:
    answer: dict[str, Any] = {}
    entries = given["windows"]
    if "app" in given:
        entries = matching_windows(entries, given["app"])
        answer["matches"] = [i for i, entry in enumerate(given["windows"]) if any(entry is one for one in entries)]
    try:
        windows = read_windows(entries)
    except WindowError:
        return {"error": True}
    if given["op"] == "active":
        active, inactive = active_windows(windows, now), inactive_allows(windows, now)
        return {
            "active": [i for i, window in enumerate(windows) if any(window is one for one in active)],
            "inactiveAllows": [i for i, window in enumerate(windows) if any(window is one for one in inactive)],
        }
    started = parse_time(given["operationStartedAt"]) if "operationStartedAt" in given else None
    return answer | {"canSync": can_sync(windows, now, manual=given["manual"], operation_started=started)}


def _answer(given: dict[str, Any]) -> dict[str, Any]:
    now = parse_time(given["now"])
    if given["op"] == "next":
        return _starts(given, now)
    if given["op"] == "validate":
        return {"errors": [validate_window(window) or None for window in given["windows"]]}
    return _decided(given, now)


def _agrees(got: dict[str, Any], expect: dict[str, Any]) -> bool:
    if "errors" not in expect:
        return got == expect
    for mine, theirs in zip(got["errors"], expect["errors"], strict=True):
        if theirs is None or "messagePrefix" not in theirs:
            if mine != (theirs and theirs["message"]):
                return False
        elif not str(mine).startswith(theirs["messagePrefix"]):
            return False
    return True


@pytest.mark.parametrize("case", cases("sync-window"), ids=lambda case: case["id"])
def test_windows_open_and_close_as_upstream(case: dict[str, Any]) -> None:
    got = _answer(case["input"])
    judge(case, _agrees(got, case["expect"]), got)
