"""The gates before a release, as policy sentences; maintenance windows at changes of the clock."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from syncline.fleet.pull.order.evidence import Facts, facts_of, judge
from syncline.fleet.pull.order.gates import Turn, judge_gates
from syncline.fleet.pull.order.model import ClusterSeen, Target
from syncline.fleet.pull.order.windows import judge_windows

NOW = datetime(2026, 3, 2, 12, tzinfo=UTC)
NIGHT = {"kind": "allow", "schedule": "0 2 * * *", "duration": "1h", "timeZone": "Europe/Berlin"}


def _turn(cluster: ClusterSeen, needs: str = "", **parts: Any) -> Turn:
    return Turn(Target({"metadata": {"name": "web"}}, cluster, needs=needs, depends=bool(needs)), NOW, **parts)


C1 = ClusterSeen("c1")


@pytest.mark.parametrize(
    ("turn", "why"),
    [
        (_turn(C1), None),
        (_turn(C1, stopped={"reason": "a holiday", "by": "ann"}), "stopped by ann: a holiday"),
        (_turn(ClusterSeen("c1", available=False, since="T")), "not available since T"),
        (_turn(ClusterSeen("c1", available=False), going_back=True), None),
        (_turn(C1, failed="cluster c0: broken"), "stopped by a failure: cluster c0"),
        (_turn(C1, failed="cluster c0: broken", going_back=True), None),
        (_turn(C1, earlier="wave 0 comes first"), "wave 0 comes first"),
        (_turn(C1, first=False, since=NOW - timedelta(seconds=4)), "its change is new"),
        (_turn(C1, first=False, since=NOW - timedelta(seconds=5)), None),
        (_turn(C1, needs="waiting for db", since=NOW - timedelta(seconds=9)), "waiting for db"),
        (_turn(ClusterSeen("c1", windows=(("ManagedCluster c1", json.dumps([NIGHT])),))), "outside of the maintenance"),
        (_turn(ClusterSeen("c1", windows=(("ManagedCluster c1", "{"),))), "cannot be read"),
        (_turn(ClusterSeen("c1", updating="pool worker is updating")), "pool worker is updating"),
    ],
)
def test_who_waits_and_for_what(turn: Turn, why: str | None) -> None:
    found = judge_gates(turn)
    assert (found is None) if why is None else (found is not None and why in found.why)


@pytest.mark.parametrize(
    ("moment", "permitted"),
    [
        (datetime(2026, 3, 2, 1, 30, tzinfo=UTC), True),
        (datetime(2026, 3, 2, 2, 30, tzinfo=UTC), False),
        (datetime(2026, 7, 2, 0, 30, tzinfo=UTC), True),
        (datetime(2026, 7, 2, 1, 30, tzinfo=UTC), False),
        (datetime(2026, 3, 29, 0, 30, tzinfo=UTC), False),  # 02:00 does not exist in that night
        (datetime(2026, 3, 29, 1, 30, tzinfo=UTC), False),
    ],
)
def test_windows_follow_the_clock_of_their_zone(moment: datetime, permitted: bool) -> None:
    given = [("ManagedCluster c1", json.dumps([NIGHT]))]
    closed = judge_windows(given, moment)
    assert (closed is None) is permitted
    if closed is not None:
        assert closed.until is not None
        assert judge_windows(given, closed.until) is None, "it says when it opens"


SYNC = {"status": "OutOfSync"}
GOOD = Facts(release="r", sync="Synced", health="Healthy", applied=True)


@pytest.mark.parametrize(
    ("change", "holds", "failed"),
    [
        ({}, True, False),
        ({"release": "older"}, False, False),
        ({"release": None, "applied": False}, False, False),
        ({"stale": True}, False, False),
        ({"phase": "Running"}, False, False),
        ({"phase": "Failed", "started": "now"}, False, True),
        ({"phase": "Failed", "started": "before"}, True, False),
        ({"errors": ("ComparisonError: x",)}, False, True),
        ({"health": "Degraded"}, False, True),
        ({"health": "Degraded", "sync": "OutOfSync"}, False, False),
        ({"refused": "forbidden"}, False, True),
        ({"unbegun": True}, False, False),
        ({"revision": "other"}, False, False),
    ],
)
def test_what_proves_a_release_and_what_fails_it(change: dict[str, Any], holds: bool, failed: bool) -> None:
    values = {name: getattr(GOOD, name) for name in Facts.__slots__} | {"revision": "pin"} | change
    found = judge(Facts(**values), "r", "before", ("pin",))
    assert (found.holds, bool(found.failed)) == (holds, failed)


BROKEN = [
    {"kind": "Service", "namespace": "shop", "name": "ui", "message": "services is forbidden"},
    {"kind": "Job", "namespace": "shop", "name": "migrate", "reason": "Failed"},
]
WHAT = "Service shop/ui: services is forbidden (and 1 more)"


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ({"operation": {"phase": "Failed", "message": "m", "startedAt": "now"}}, f"its operation Failed: m; {WHAT}"),
        ({"operation": {"phase": "Running", "message": "m. Retrying attempt #2 at 1:48PM."}}, f"1:48PM.; {WHAT}"),
        ({"operation": {"phase": "Running", "message": "waiting for x"}}, "an operation runs: waiting for x"),
        ({"conditions": [{"type": "SyncError", "message": "m"}]}, f"SyncError: m; {WHAT}"),
        ({"sync": {"status": "Synced"}, "health": {"status": "Degraded"}}, f"its health is Degraded; {WHAT}"),
        ({"resources": [{"kind": "Job", "name": "a", "status": "OutOfSync"}], "sync": SYNC}, "OutOfSync (Job a)"),
    ],
)
def test_a_failure_names_the_resource_and_why(content: dict[str, Any], said: str) -> None:
    report = {"report": {"release": "r", "failed": BROKEN, **content}}
    found = judge(facts_of({}, report), "r", "before", ())
    assert (found.failed or found.why).endswith(said), found
