"""Recorded decisions of registration: leases, taints, certificate requests, sets, bindings, admission."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest
from tests.fleet.recordings import NOW, cases, judge, sparse, timed
from tests.fleet.registrations import RUNS
from tests.recorded import Case

from syncline.base.clock import format_micro_time, format_time

TIMES = {format_time(NOW), format_micro_time(NOW)}


def shown(value: Any) -> Any:
    """The time of the run as the recording writes it; conditions by type."""
    if isinstance(value, dict):
        made = {key: shown(one) for key, one in value.items()}
        if "conditions" in made:
            made["conditions"] = {one["type"]: one for one in made["conditions"] or ()}
        return made
    if isinstance(value, list):
        return [shown(one) for one in value]
    return "@now@" if isinstance(value, str) and value in TIMES else value


@pytest.mark.parametrize("case", cases("registration"), ids=lambda case: case["id"])
def test_registration_is_as_recorded(case: Case) -> None:
    got = RUNS[case["args"][0]](timed(deepcopy(case["input"])))
    agrees = sparse(shown(case["expect"])) == sparse(shown(got))
    judge("registration", case, agrees, got)
