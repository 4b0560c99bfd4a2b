"""Whole ApplicationSets, as recorded from Argo CD: the Applications before any write."""

from __future__ import annotations

import pytest
from tests.appset.answers import generated
from tests.appset.recordings import cases, judge, same_error, same_sets
from tests.recorded import Case


@pytest.mark.parametrize("case", cases("generate"), ids=lambda case: case["id"])
def test_a_set_gives_the_recorded_applications(case: Case) -> None:
    expect = case["expect"]
    found, _ = generated(case["input"]["applicationSet"], case["input"])
    first = found.failures[0] if found.failures else None
    apps = [{key: one.app[key] for key in one.app if key not in ("apiVersion", "kind")} for one in found.made]
    agrees = (
        same_error(expect.get("error"), first.message if first else None)
        and (first.reason if first else "") == expect["reason"]
        and same_sets(expect["applications"], apps, unordered=expect.get("unordered", False))
    )
    judge("generate", case, agrees, {"applications": apps, "failures": found.failures})
