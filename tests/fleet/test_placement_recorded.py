"""Recorded passes of the scheduling controller: ours selects, scores, writes and says the same."""

from __future__ import annotations

from copy import deepcopy

import pytest
from tests.fleet.placements import differences, one_pass
from tests.fleet.recordings import NOW, cases, judge, timed
from tests.recorded import Case


@pytest.mark.parametrize("case", cases("placement"), ids=lambda case: case["id"])
def test_placement_pass_is_as_recorded(case: Case) -> None:
    got = one_pass(timed(deepcopy(case["input"])), NOW)
    found = differences(case["expect"], got)
    judge("placement", case, not found, found)
