"""Records of nodes next to upstream's recorded ones: which conditions a phase writes, and which it puts back."""

from __future__ import annotations

import copy
import json
from datetime import UTC, datetime
from typing import Any

import pytest
from tests.machineconfig.recordings import cases, judge

from syncline.kube.objects import Obj, dig
from syncline.machineconfig.nodes.phases import Phase, advance
from syncline.machineconfig.pools.records import Observed, plan

NOW = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize("case", cases("mcn"), ids=lambda case: case["id"])
def test_the_record_of_a_node_goes_through_its_phases_as_upstreams(case: Obj) -> None:
    given = case["input"]
    gates = given.get("gates") or ()
    record: Obj | None = None
    states: list[Obj] = []
    observed = False
    for step in given["steps"]:
        node = copy.deepcopy(given["node"])
        if "nodeAnnotations" in step:
            node["metadata"]["annotations"] = step["nodeAnnotations"]
        before = record
        record = _after(record, node, given["pool"], step, "ImageModeStatusReporting" in gates)
        states.append(_state(before, record))
        if record is not None and "setSpecDesired" in step:
            states[-1]["wrote"] = True  # upstream writes what is there already, too
        if before is not None and "parent" in step:
            # A record that was made only has no observedGeneration yet, so that upstream writes it once more.
            alone = step["parent"]["type"].startswith("PinnedImageSets")
            states[-1]["wrote"] |= alone and not observed
            observed |= states[-1]["wrote"]
    judge(case, states == case["expect"]["states"], states)


def _after(record: Obj | None, node: Obj, pool: str, step: Obj, image_mode: bool) -> Obj | None:
    if dig(node, "status", "phase") in ("Pending", "Provisioning"):
        return record
    if record is None:
        made_by = plan(Observed(node, None, pool))
        made = [action.obj for stage in made_by.steps for action in stage]  # type: ignore[union-attr]
        record = made[0] if made else None
    if record is None or "parent" not in step:
        return _with_spec(record, step)
    parent, child = (Phase(**step[key]) if step.get(key) else None for key in ("parent", "child"))
    assert parent is not None
    status = advance(record, node, parent, child, NOW, image_mode=image_mode)
    return record if status is None else record | {"status": status}


def _with_spec(record: Obj | None, step: Obj) -> Obj | None:
    if record is None or "setSpecDesired" not in step:
        return record
    spec = record["spec"] | {"configVersion": {"desired": step["setSpecDesired"] or "not-yet-set"}}
    return record | {"spec": spec}


def _conditions(record: Obj | None) -> list[Obj]:
    found = dig(record, "status", "conditions", default=[]) if record else []
    return [{k: v for k, v in each.items() if k != "lastTransitionTime"} for each in found]


def _state(before: Obj | None, after: Obj | None) -> Obj:
    state: Obj = {"wrote": before != after, "error": None}
    if after is None:
        return state
    old = _conditions(before)
    known = {each["type"] for each in old}
    changed = [each for each in _conditions(after) if each not in old]
    fresh = [each for each in changed if each["reason"] == "NotYetOccurred" and each["type"] not in known]
    state["changedConditions"] = sorted((each for each in changed if each not in fresh), key=_as_text)
    if fresh:
        state["notYetOccurred"] = sorted(each["type"] for each in fresh)
    version = dig(after, "status", "configVersion") or {}
    state["configVersion"] = {"current": version.get("current", ""), "desired": version.get("desired", "")}
    state["spec"] = after["spec"]
    images: Any = dig(after, "status", "configImage")
    if images is not None:
        state["configImage"] = images
    return state


def _as_text(condition: Obj) -> str:
    return json.dumps(condition, sort_keys=True)
