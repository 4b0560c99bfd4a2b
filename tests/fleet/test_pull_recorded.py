"""Recorded decisions of the pull model: ours are the same."""

from __future__ import annotations

import json
from copy import deepcopy
from typing import Any

import pytest
from tests.fleet.pulls import SETTINGS, STEPS, predicate, run, set_hash
from tests.fleet.recordings import cases, judge, sparse, timed
from tests.recorded import Case

SINGLE = {"predicate": predicate, "hash": set_hash}
CASES = [case for case in cases("pull") if case["args"][0] in (*STEPS, *SINGLE, "gitops")]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
def test_pull_decision_is_as_recorded(case: Case) -> None:
    kind, given, expect = case["args"][0], timed(deepcopy(case["input"])), timed(deepcopy(case["expect"]))
    if kind in SINGLE:
        got = SINGLE[kind](given)
        judge("pull", case, got == expect, got)
        return
    got = run(kind, given)
    if "panic" in expect:
        judge("pull", case, all(one["error"] for one in got["rounds"]), got)
        return
    judge("pull", case, comparable(got) == comparable(expect), comparable(got))


def comparable(found: Any) -> Any:
    """Objects are a set, the writes of a round a multiset; how an object is updated is free. A condition is known by
    its type."""
    rounds = [{**one, "writes": sorted(_written(one["writes"]))} for one in found["rounds"]]
    objects = {
        f"{one['kind']}/{one['metadata'].get('namespace')}/{one['metadata']['name']}": one for one in found["objects"]
    }
    return rounds, {key: sparse(_bare(one)) for key, one in objects.items()}


def _written(writes: Any) -> list[str]:
    writes = [{**one, "verb": "update" if one["verb"] == "patch" else one["verb"]} for one in writes or ()]
    writes = [one for one in writes if one["kind"] != "GitOpsCluster"]
    shown = ({key: one[key] for key in ("verb", "kind", "name")} for one in writes or ())
    return [json.dumps(one, sort_keys=True) for one in shown if one["name"] != SETTINGS]


def _bare(obj: Any) -> Any:
    gone = ("uid", "resourceVersion", "generation")
    if obj["kind"] == "GitOpsCluster" and "status" in obj:
        status = {**obj["status"], "conditions": {one["type"]: one for one in obj["status"]["conditions"]}}
        obj = {**obj, "status": status}
    return {**obj, "metadata": {key: value for key, value in obj["metadata"].items() if key not in gone}}
