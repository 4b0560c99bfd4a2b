"""Recorded answers of upstream's rendering: names, selection, waiting, policies."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest
from tests.machineconfig.recordings import cases, judge, same_text, without_nil

from syncline.control.plan import Emit
from syncline.kube.objects import Obj, name_of
from syncline.kube.selectors import SelectorError
from syncline.machineconfig.configs.reconcile import unreconcilable
from syncline.machineconfig.policies.model import effective_policies, policy_for_path
from syncline.machineconfig.render.naming import rendered_name, spec_yaml
from syncline.machineconfig.render.observe import RenderObserved, RenderSettings
from syncline.machineconfig.render.plan import decide
from syncline.machineconfig.render.refusal import RenderError
from syncline.machineconfig.render.rendering import Release, render
from syncline.machineconfig.render.runc import RuncError, refused_for_stream, runs_runc
from syncline.machineconfig.render.select import bootstrap_configs, merge_order, pools_of, select
from syncline.machineconfig.render.status import render_status
from syncline.machineconfig.render.validate import invalid_spec
from syncline.machineconfig.render.waiting import controller_config_wait, sub_controller_wait

Case = dict[str, Any]
PLACE = re.compile(r", line \d+ col \d+(?=:)")
"""Of an entry of a report; the recordings repeat most texts without it, but not all."""


def recorded(kind: str) -> Any:
    return pytest.mark.parametrize("case", cases(kind), ids=lambda case: case["id"])


@recorded("name")
def test_names_of_rendered_configs(case: Case) -> None:
    given = case["input"]
    got = {"yaml": spec_yaml(given["spec"]), "name": rendered_name(given["pool"], given["spec"])}
    judge(case, got == case["expect"], got)


@recorded("policy")
def test_effective_policies(case: Case) -> None:
    got = {"clusterPolicies": effective_policies(case["input"].get("policy"))}
    judge(case, without_nil(got) == without_nil(case["expect"]), got)


@recorded("policymatch")
def test_the_policy_of_a_path(case: Case) -> None:
    actions = policy_for_path(case["input"]["path"], case["input"].get("files") or [])
    got = {"found": actions is not None, "actions": actions or []}
    judge(case, got == case["expect"], got)


@recorded("waitgate")
def test_what_a_render_waits_for(case: Case) -> None:
    given = case["input"]
    got = {
        "controllerConfig": controller_config_wait(given.get("controllerConfig")),
        "subControllers": sub_controller_wait(
            given.get("poolLabels") or {},
            given.get("kubeletConfigs") or [],
            given.get("containerRuntimeConfigs") or [],
        ),
    }
    agrees = all(same_text(case["expect"][key], got[key]) for key in got)
    judge(case, agrees, got)


def names_or_error(make: Callable[[], list[Obj]], key: str = "names") -> Obj:
    try:
        return {key: [name_of(one) for one in make()]}
    except (RenderError, SelectorError) as error:
        return {"error": str(error)}


@recorded("select")
def test_which_configs_a_pool_selects(case: Case) -> None:
    given = case["input"]
    pools, configs = given.get("pools") or [], given.get("configs") or []
    pool = next(one for one in pools if name_of(one) == given["pool"])
    got: Obj = {
        "selected": names_or_error(lambda: list(select(pool, configs).configs)),
        "bootstrap": names_or_error(lambda: bootstrap_configs(pool, configs)),
        "poolsOf": {name_of(one): names_or_error(lambda one=one: pools_of(one, pools), "pools") for one in configs},
    }
    if "names" in got["selected"]:
        found = select(pool, configs)
        got["selected"]["selector"] = str(found.selector)
        if found.configs:
            got["mergeOrder"] = names_or_error(lambda: merge_order(found.configs))
    for each in (*got["poolsOf"].values(), *case["expect"]["poolsOf"].values()):
        each["pools"] = sorted(each.get("pools", []))
    judge(case, agree(case["expect"], got), got)


def agree(expected: Any, got: Any) -> bool:
    """Exact, but for foreign text in errors and for empty lists."""
    if isinstance(expected, dict) and isinstance(got, dict):
        keys = {*expected, *got}
        return all(
            same_text(expected.get(key), got.get(key)) if key == "error" else agree(expected.get(key), got.get(key))
            for key in keys
        )
    return bool(without_nil(expected) == without_nil(got) or (not expected and not got))


def placeless(expected: Obj, key: str = "error") -> str | None:
    """An expected error without lines and columns, which we do not track in objects."""
    text = expected.pop(f"{key}WithoutPositions", None)
    found = expected.pop(key, None)
    if text is None:
        text = found
    return PLACE.sub("", text).rstrip() if isinstance(text, str) else None


def stripped(text: str | None) -> str | None:
    return None if text is None else text.rstrip()


@recorded("validate")
def test_which_configs_may_be_rendered(case: Case) -> None:
    got = invalid_spec(case["input"].get("spec"))
    judge(case, same_text(placeless(dict(case["expect"])), stripped(got)), got)


@recorded("merge")
def test_merging(case: Case) -> None:
    given, expected = case["input"], dict(case["expect"])
    release = Release(given["controller"]["raw"], given["controller"]["hash"])
    try:
        done = render(
            given["pool"], given.get("configs") or [], given["controllerConfig"], release, given.get("osImageStream")
        )
        got: Obj = {
            "name": name_of(done.config),
            "spec": done.config["spec"],
            "annotations": done.config["metadata"]["annotations"],
            "owner": done.config["metadata"]["ownerReferences"],
            "order": [name_of(one) for one in done.merged.order],
        }
        judge(case, got == expected, got)
    except RenderError as error:
        judge(case, same_text(placeless(expected), stripped(str(error))), str(error))


@recorded("runc")
def test_runc_where_there_is_none(case: Case) -> None:
    given, expected = case["input"], dict(case["expect"])
    got: Obj = {"detected": "", "error": None}
    try:
        if runs_runc(given["config"]):
            got["detected"] = name_of(given["config"])
    except RuncError as error:
        got["error"] = str(error)
    got["refused"] = refused_for_stream(
        given["pool"], given["config"], (given.get("osImageStream") or {}).get("name", "")
    )
    agrees = got["detected"] == expected["detected"]
    for key in ("error", "refused"):
        agrees = agrees and same_text(placeless(expected, key), stripped(got.get(key)))
    judge(case, agrees, got)


@recorded("reconcilable")
def test_changes_that_a_pool_can_take(case: Case) -> None:
    given = case["input"]
    got = unreconcilable(given["old"], [given["new"]], given.get("overrides") or [])
    judge(case, same_text(placeless(dict(case["expect"]), "controller"), stripped(got)), got)


@recorded("render")
def test_one_sync_of_a_pool(case: Case) -> None:
    given, expected = case["input"], dict(case["expect"])
    pool = {"apiVersion": "machineconfiguration.openshift.io/v1", "kind": "MachineConfigPool"} | given["pool"]
    settings = RenderSettings(Release(given["controller"]["raw"], given["controller"]["hash"]))
    gates = given.get("gates") or []
    observed = RenderObserved(
        pool=pool,
        configs=tuple(given.get("configs") or ()),
        controller_config=given.get("controllerConfig"),
        kubelet_configs=tuple(given.get("kubeletConfigs") or ()),
        runtime_configs=tuple(given.get("containerRuntimeConfigs") or ()),
        settings=settings,
        waived=tuple((given.get("overrides") or {}).get("storage") or ())
        if "IrreconcilableMachineConfig" in gates
        else (),
        stream_classes=given.get("streamClasses") or {},
    )
    done, now = decide(observed), datetime(2030, 1, 1, tzinfo=UTC)
    got: Obj = {"error": done.waits or done.error, "events": [told(one) for one in done.emits]}
    for key, written in (("created", done.create), ("updated", done.update)):
        got[key] = [marks(written)] if written is not None else []
    if done.configuration is not None:
        sources = [one["name"] for one in done.configuration["source"]]
        got["configuration"] = {"name": done.configuration["name"], "source": sources}
    status = render_status(pool, done.error, now)
    if done.waits is None and not done.selects_all and status != (pool.get("status") or {}):
        got["conditions"] = [timed(one) for one in status["conditions"]]
    agrees = same_text(placeless(expected), stripped(got.pop("error")))
    for one, other in zip(expected.get("conditions") or [], got.get("conditions") or [], strict=False):
        agrees = agrees and same_text(placeless(one, "message") or "", (other.pop("message") or "").rstrip())
    judge(case, agrees and without_nil(got) == without_nil(expected), got)


def told(emit: Emit) -> str:
    return f"{'Warning' if emit.warning else 'Normal'} {emit.event_reason} {emit.message}"


def marks(config: Obj) -> Obj:
    return {"name": name_of(config), "annotations": config["metadata"]["annotations"]}


def timed(condition: Obj) -> Obj:
    now = condition["lastTransitionTime"].startswith("2030")
    return condition | ({"lastTransitionTime": "<now>"} if now else {})
