"""Recorded decisions about works, on the spoke and on the hub: ours are the same."""

from __future__ import annotations

from copy import deepcopy

import pytest
from tests.fleet.recordings import cases, judge, sparse, timed
from tests.fleet.works import RUNS, comparable
from tests.recorded import Case


@pytest.mark.parametrize("case", cases("work"), ids=lambda case: case["id"])
def test_work_decision_is_as_recorded(case: Case) -> None:
    given = timed(deepcopy(case["input"]))
    if case["args"] == ["apply"] and "-hash-" in case["id"] and "-same" in case["id"]:
        given["same"] = True  # the live object has the hash of this content; the recorder's is of another kind
    got = RUNS[case["args"][0]](given)
    expect = sparse(comparable(timed(case["expect"])))
    judge("work", case, expect == sparse(comparable(got)), sparse(got))
