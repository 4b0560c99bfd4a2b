"""Recorded answers of upstream's rendering: names, selection, waiting, policies."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from tests.machineconfig.recordings import cases, judge, same_text, without_nil

from syncline.kube.objects import Obj, name_of
from syncline.kube.selectors import SelectorError
from syncline.machineconfig.policy import effective_policies, policy_for_path
from syncline.machineconfig.render.naming import rendered_name, spec_yaml
from syncline.machineconfig.render.refusal import RenderError
from syncline.machineconfig.render.select import bootstrap_configs, merge_order, pools_of, select
from syncline.machineconfig.render.waiting import controller_config_wait, sub_controller_wait

Case = dict[str, Any]


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
