"""A child over a parent as Ignition merged them (``conformance/ignition/merge.jsonl``; behaviours 78 to 82)."""

from __future__ import annotations

from typing import Any

import pytest
from tests.ignition.recordings import judge, run_as

from syncline.ignition.gonames import parse_version
from syncline.ignition.jsontext import dump
from syncline.ignition.merging import merge
from syncline.ignition.parsing import minor_of, validate
from syncline.ignition.typed import canonical


@pytest.mark.parametrize("case", run_as("merge", "ignition-merge"), ids=lambda case: case["id"])
def test_a_child_is_laid_over_its_parent_byte_for_byte_as_upstream_does(case: dict[str, Any]) -> None:
    version, expect = case["args"][1], case["expect"]
    minor = minor_of(parse_version(version) or pytest.fail(version))
    assert minor is not None
    parent, child = (canonical(minor, case["input"][side]) for side in ("parent", "child"))
    result = merge(minor, parent, child)
    verdicts = [not validate(config, version).fatal for config in (parent, child, result)]
    wanted = [expect["parent_valid"], expect["child_valid"], expect["result_valid"]]
    judge(case, dump(result) == expect["output"] and verdicts == wanted, (dump(result), verdicts))
