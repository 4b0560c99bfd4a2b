"""Whether a node is updated, and what its first boot does: recorded answers of the Machine Config Operator's daemon."""

from __future__ import annotations

from typing import Any

import pytest
from tests.machineconfig.recordings import cases, judge, same_text, without_nil
from tests.machineconfig.test_agent_recorded import diff_of

from syncline.kube.objects import Obj, name_of
from syncline.machineconfig.agent.planning.changes import changes_between
from syncline.machineconfig.agent.planning.due import DueError, OnDisk, drain_is_open, reported_by, update_due
from syncline.machineconfig.agent.planning.irreconcilable import ReportError, irreconcilable_changes
from syncline.machineconfig.agent.provisioning.firstboot import Booted, FirstBootError, first_boot
from syncline.machineconfig.configs.parsing import ConfigError
from syncline.machineconfig.pinned.images import image_names, pinned_file


def _id(case: dict[str, Any]) -> str:
    return str(case["id"])


@pytest.mark.parametrize("case", cases("nodeupdate"), ids=_id)
def test_whether_a_node_is_updated_and_from_what(case: dict[str, Any]) -> None:
    given, want = case["input"], case["expect"]
    node: Obj = given["node"]
    configs = {name_of(one): one for one in given.get("machineConfigs") or ()}
    got: dict[str, Any] = {"firstRun": _first_run(node, configs), "waitsForDrain": drain_is_open(node)}
    disk = given.get("diskConfig")
    try:
        there = None if disk is None else OnDisk(disk, (given.get("diskImage") or "").strip())
        got["update"] = _update(node, configs, there)
    except DueError as error:
        got["error"] = str(error)
    texts = [(want.get("error"), got.get("error")), (_texts(want), _texts(got))]
    agrees = got.keys() == want.keys() and all(same_text(*pair) for pair in texts) and _rest(got) == _rest(want)
    judge(case, agrees, got)


def _texts(one: dict[str, Any]) -> str | None:
    return (one.get("update") or {}).get("diffError") or one["firstRun"].get("error")


def _rest(one: dict[str, Any]) -> dict[str, Any]:
    update = one.get("update")
    return {
        "waits": one["waitsForDrain"],
        "update": update and {key: value for key, value in update.items() if key != "diffError"},
        "first": {key: value for key, value in one["firstRun"].items() if key != "error"},
    }


def _update(node: Obj, configs: dict[str, Obj], disk: OnDisk | None) -> dict[str, Any] | None:
    due = update_due(node, configs, disk)
    if due is None:
        return None
    names = {"from": name_of(due.old), "to": name_of(due.new), "fromImage": due.old_image, "toImage": due.new_image}
    try:
        return names | {"diff": diff_of(changes_between(*due.embedded))}
    except ConfigError as error:
        return names | {"diffError": str(error)}


def _first_run(node: Obj, configs: dict[str, Obj]) -> dict[str, Any]:
    try:
        told = reported_by(node, configs)
    except DueError as error:
        return {"error": str(error)}
    return {
        "current": name_of(told.current),
        "desired": name_of(told.desired),
        "currentImage": told.current_image,
        "desiredImage": told.desired_image,
        "state": told.state,
        "inDesiredConfig": told.arrived,
        "label": told.label,
    }


@pytest.mark.parametrize("case", cases("firstboot"), ids=_id)
def test_what_a_first_boot_has_to_do(case: dict[str, Any]) -> None:
    given, want = case["input"], dict(case["expect"])
    booted = Booted(given.get("bootedImage") or "", given.get("runningKargs") or "", given.get("nodeFips"))
    try:
        boot = first_boot(given["config"], booted)
    except FirstBootError as error:
        expected = want.get("errorWithoutPositions") or want.get("error")
        judge(case, same_text(expected, str(error)), str(error))
        return
    got: dict[str, Any] = {"runningKargs": boot.running or None, "changed": boot.changed, "reconcilable": boot.refusal}
    if boot.refusal is None:
        got |= {"diff": diff_of(boot.changes), "actions": boot.actions, "actionsError": None}
    refused = (want.pop("reconcilable", None), got.pop("reconcilable"))
    judge(case, got == want and same_text(*refused), [got, refused])


@pytest.mark.parametrize("case", cases("diffreport"), ids=_id)
def test_what_a_machine_will_never_have_of_its_config(case: dict[str, Any]) -> None:
    given, want = case["input"], case["expect"]
    try:
        got: dict[str, Any] = {"changes": irreconcilable_changes(given.get("base"), given["target"])}
    except ReportError as error:
        expected = want.get("errorWithoutPositions") or want.get("error")
        judge(case, same_text(expected, str(error).rstrip()), str(error))
        return
    judge(case, got == want, got)


@pytest.mark.parametrize("case", cases("pinnedimages"), ids=_id)
def test_what_a_machine_pins(case: dict[str, Any]) -> None:
    names = image_names(case["input"].get("images") or ())
    got = {"names": names, "file": pinned_file(names)}
    judge(case, without_nil(got) == without_nil(case["expect"]), got)
