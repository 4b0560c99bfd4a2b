"""Reconciles of ApplicationSets as recorded from Argo CD: writes, Applications and status (behaviours 1-19, 49-56)."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from tests.appset.recordings import cases, judge, sparse
from tests.appset.rounds import NOW, Round, Table, table_of
from tests.recorded import Case

from syncline.base.clock import time_or_none
from syncline.kube.objects import Obj, dig, name_of

NEAR = timedelta(minutes=10)
EMPTY = {"destination": {}, "source": {"repoURL": ""}}
"""What Go writes for a comparison that never was."""
STATUS = ("conditions", "applicationStatus", "resources", "health", "resourcesCount")


def shown(value: Any) -> Any:
    """For comparison: sparse, and a time near the moment of the run as ``@now@``."""
    if isinstance(value, dict):
        return {key: shown(item) for key, item in value.items()}
    if isinstance(value, list):
        return [shown(item) for item in value]
    found = time_or_none(value) if isinstance(value, str) and value[:2] == "20" else None
    if found is None or abs(found - NOW) > NEAR:
        return value
    seconds = round((found - NOW).total_seconds() / 5) * 5
    return f"@now{seconds:+d}s@" if seconds else "@now@"


def applications(table: Table, with_status: set[str]) -> list[Any]:
    return [application(one, with_status) for one in table.of("Application")]


def application(app: Obj, with_status: set[str]) -> Any:
    hidden = ("uid", "resourceVersion", "generation")
    metadata = {key: value for key, value in app["metadata"].items() if key not in hidden}
    fields = {key: app[key] for key in ("spec", "operation") if key in app}
    status: Obj = {"status": dict(app.get("status") or {})} if name_of(app) in with_status else {}
    if status and dig(status, "status", "sync", "comparedTo") == EMPTY:
        status["status"]["sync"] = {key: one for key, one in status["status"]["sync"].items() if key != "comparedTo"}
    return sparse(shown({"metadata": metadata, **fields, **status}))


def rounds_of(found: list[Round]) -> list[Any]:
    return [
        {
            "error": one.error,
            "requeueAfter": one.requeue_s,
            "events": sorted(one.events),
            "writes": sorted(one.writes, key=lambda write: (write["name"], write["verb"])),
        }
        for one in found
    ]


def expected_rounds(case: Case) -> list[Any]:
    return [
        {
            "error": one["error"],
            "requeueAfter": one["requeueAfter"],
            "events": sorted(one["events"] or []),
            "writes": sorted(
                (
                    {key: write[key] for key in ("verb", "name", "patch") if key in write}
                    for write in one["writes"] or []
                ),
                key=lambda write: (write["name"], write["verb"]),
            ),
        }
        for one in case["expect"]["rounds"]
    ]


def set_status(appsets: list[Obj]) -> Any:
    status = next((one.get("status") or {} for one in appsets if name_of(one) == "set"), None)
    return None if status is None else sparse(shown({key: status.get(key) for key in STATUS}))


@pytest.mark.parametrize("case", [*cases("reconcile"), *cases("rollout")], ids=lambda case: case["id"])
def test_a_reconcile_writes_what_was_recorded(case: Case) -> None:
    given, expect = case["input"], case["expect"]
    table = table_of(given)
    with_status = {name_of(one) for one in given["objects"] if one["kind"] == "Application" and one.get("status")}
    found = [table.reconcile() for _ in range(given.get("times", 1))]
    got = {
        "rounds": rounds_of(found),
        "applications": applications(table, with_status),
        "status": set_status(table.of("ApplicationSet")),
        "finalizers": [one["metadata"].get("finalizers") or [] for one in table.of("ApplicationSet")],
    }
    wanted = {
        "rounds": expected_rounds(case),
        "applications": [application(one, with_status) for one in expect["applications"]],
        "status": set_status(expect["applicationSets"]),
        "finalizers": [one["metadata"].get("finalizers") or [] for one in expect["applicationSets"]],
    }
    differing = {key: (wanted[key], got[key]) for key in got if wanted[key] != got[key]}
    judge(case["kind"], case, not differing, differing)
