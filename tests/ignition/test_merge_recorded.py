"""A child over a parent as Ignition merged them (``conformance/ignition/merge.jsonl``; behaviours 78 to 82)."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.ignition.recordings import judge, run_as

from syncline.ignition.golang import parse_version
from syncline.ignition.jsontext import dump
from syncline.ignition.merging import merge
from syncline.ignition.parsing import minor_of, validate
from syncline.ignition.typed import canonical
from syncline.machineconfig.render.merge import BaseImages, merge_configs
from syncline.machineconfig.render.refusal import RenderError


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


@pytest.mark.parametrize("case", run_as("merge", "mco-merge"), ids=lambda case: case["id"])
def test_machine_configs_are_stacked_as_the_operator_stacks_them(case: dict[str, Any]) -> None:
    configs = [_machine_config(given) for given in case["input"]["configs"]]
    try:
        spec = merge_configs(configs, BaseImages()).spec
        got: dict[str, Any] = {"ok": True, "output": dump(spec["config"]), "spec": spec}
    except RenderError as problem:
        got = {"ok": False, "error": str(problem)}
    expect = case["expect"]
    wanted = {key: got["spec"][key] for key in expect["spec"]} if got["ok"] and "spec" in expect else None
    agrees = all(got.get(key) == expect.get(key) for key in ("ok", "output", "error")) and wanted == expect.get("spec")
    judge(case, agrees, got)


def _machine_config(given: dict[str, Any]) -> dict[str, Any]:
    names = {"kargs": "kernelArguments", "extensions": "extensions", "fips": "fips", "kernelType": "kernelType"}
    spec = {field: given[name] for name, field in names.items() if name in given}
    config = {"config": json.loads(given["config"])} if given["config"] is not None else {}
    role = {"machineconfiguration.openshift.io/role": given["role"]}
    return {"metadata": {"name": given["name"], "labels": role}, "spec": spec | config}
