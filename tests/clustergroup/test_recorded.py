"""Recorded renderings of the clusterGroup chart by Helm: ours are the same.

One thing differs in every case with a ConsoleLink: its picture is ours.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.clustergroup.recordings import ROOM, expected, outcome, without_pictures
from tests.recorded import Case, cases_of, judge_by, known

from syncline.clustergroup.render import render, values_of
from syncline.kube.yaml.loading import load

KNOWN = Path(__file__).with_name("known.json")
KIND = "clustergroup"


def rendered(given: dict[str, Any]) -> list[Any]:
    return render(values_of([given]))


def comparable(obj: Any, recorded: Any) -> Any:
    """Return an object without its picture, and with the values of a ConfigMap as values."""
    if obj.get("kind") == "ConsoleLink":
        return without_pictures(obj)
    text = (obj.get("data") or {}).get("values.yaml") if obj.get("kind") == "ConfigMap" else None
    if text is None:
        return obj
    skipped = "not compared" in str((recorded.get("data") or {}).get("values.yaml"))[:80]
    return {**obj, "data": {"values.yaml": "not compared" if skipped else load(text)}}


@pytest.mark.parametrize("case", cases_of(ROOM, KIND), ids=lambda case: case["id"])
def test_cluster_group_is_rendered_as_recorded(case: Case) -> None:
    (stage, got), (wanted_stage, wanted) = outcome(case, rendered), expected(case)
    if stage == wanted_stage == "ok" and len(got) == len(wanted):
        got = [comparable(*pair) for pair in zip(got, wanted, strict=True)]
        wanted = [comparable(one, one) for one in wanted]
    judge_by(known(KNOWN), case, (stage, got) == (wanted_stage, wanted), (stage, got))
