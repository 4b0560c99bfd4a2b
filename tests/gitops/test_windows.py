"""Sync windows, rule by rule (behaviours 26 to 29)."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from syncline.argo.project import can_sync, read_windows, window_problem
from syncline.argo.project.windows import validate_window
from syncline.kube.objects import Obj

NOON = datetime(2026, 6, 15, 12, 0, tzinfo=UTC)
OPEN = {"kind": "allow", "schedule": "0 11 * * *", "duration": "2h"}
SHUT = {"kind": "deny", "schedule": "0 11 * * *", "duration": "2h"}
NIGHT = {"schedule": "0 1 * * *", "duration": "1h"}
APP: Obj = {
    "metadata": {"name": "shop"},
    "spec": {"destination": {"server": "https://kubernetes.default.svc", "namespace": "web"}},
}


def allowed(*windows: dict[str, Any], manual: bool = False, started: datetime | None = None) -> bool:
    return can_sync(read_windows(windows), NOON, manual=manual, operation_started=started)


def test_an_active_denial_wins_a026() -> None:
    assert not allowed(OPEN, SHUT)


def test_inactive_denials_do_not_block_inactive_permissions_do_a027() -> None:
    assert allowed({**NIGHT, "kind": "deny"})
    assert not allowed({**NIGHT, "kind": "allow"})


def test_a_user_may_sync_only_if_every_blocking_window_says_so_a028() -> None:
    lenient = {**SHUT, "manualSync": True}
    assert allowed(lenient, manual=True)
    assert not allowed(lenient)
    assert not allowed(lenient, SHUT, manual=True)


def test_an_operation_may_run_over_if_it_began_in_time() -> None:
    window = {**SHUT, "syncOverrun": True}
    assert allowed(window, started=datetime(2026, 6, 15, 10, 30, tzinfo=UTC))
    assert not allowed(window, started=datetime(2026, 6, 15, 11, 30, tzinfo=UTC))


def _problem(*windows: dict[str, Any]) -> str:
    return window_problem({"spec": {"syncWindows": list(windows)}}, APP, NOON, manual=False)


def test_every_given_list_must_match_with_the_and_operator_a029() -> None:
    both = {**SHUT, "applications": ["shop"], "namespaces": ["other"]}
    assert _problem(both) == "blocked by sync window"
    assert _problem({**both, "andOperator": True}) == ""


def test_a_window_that_cannot_be_read_blocks_and_says_why() -> None:
    assert "cannot parse schedule" in _problem({**SHUT, "schedule": "never", "applications": ["*"]})


def test_a_window_without_a_schedule_is_told_in_upstreams_words() -> None:
    assert validate_window({**SHUT, "schedule": ""}) == "cannot parse schedule '': empty spec string"


def test_a_window_of_other_applications_may_be_unreadable_without_blocking_this_one() -> None:
    for broken in ({"schedule": "never"}, {"duration": "1d"}):
        assert _problem({**SHUT, **broken, "applications": ["other-*"]}) == ""
        assert _problem({**SHUT, **broken, "applications": ["other-*"]}, {**OPEN, "namespaces": ["web"]}) == ""


def test_a_window_that_neither_allows_nor_denies_says_nothing() -> None:
    assert allowed({**SHUT, "kind": ""})
    assert not allowed({**SHUT, "kind": "other"}, {**NIGHT, "kind": "allow"})


def test_a_day_that_never_comes_is_never_active() -> None:
    assert allowed({"kind": "deny", "schedule": "0 0 30 2 *", "duration": "1h"})


def test_a_project_without_windows_permits_always() -> None:
    assert window_problem({"spec": {}}, APP, NOON, manual=False) == ""
    assert window_problem(None, APP, NOON, manual=False) == ""
