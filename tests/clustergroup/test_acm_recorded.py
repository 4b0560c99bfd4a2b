"""Recorded renderings of the acm chart by Helm: ours are the same.

One thing differs where an Argo CD is not in its operator's namespace: the picture of the ConsoleLink is ours.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.clustergroup.recordings import ROOM, expected, outcome, without_pictures
from tests.recorded import Case, cases_of, judge_by, known

from syncline.clustergroup.acm.render import render, values_of

KNOWN = Path(__file__).with_name("known.json")
KIND = "acm"


def rendered(given: dict[str, Any]) -> list[Any]:
    return render(values_of([given]))


@pytest.mark.parametrize("case", cases_of(ROOM, KIND), ids=lambda case: case["id"])
def test_managed_groups_are_rendered_as_recorded(case: Case) -> None:
    got, wanted = outcome(case, rendered), expected(case)
    judge_by(known(KNOWN), case, without_pictures(list(got)) == without_pictures(list(wanted)), got)
