"""Pools and nodes as the Machine Config Operator's controllers see them: recorded answers of its functions."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from tests.machineconfig.recordings import cases, judge, without_nil

from syncline.base.clock import format_time
from syncline.kube.objects import Obj, annotations_of, name_of
from syncline.machineconfig.pools.candidates import (
    LimitError,
    NodeWrite,
    Said,
    all_candidates,
    choose_targets,
    max_unavailable,
    unavailable,
)
from syncline.machineconfig.pools.layered import Layering
from syncline.machineconfig.pools.layered import layering_of as found_layering
from syncline.machineconfig.pools.membership import (
    MembershipError,
    belonging,
    is_managed,
    is_windows,
    members,
    pool_of_machine_config_node,
)
from syncline.machineconfig.pools.nodestate import (
    ObservedNode,
    has_update_taint,
    is_candidate,
    is_core_os,
    is_done,
    is_done_for,
    is_failing,
    is_unavailable,
    mcd_state,
    not_ready,
)
from syncline.machineconfig.pools.observedrecords import ObservedRecord
from syncline.machineconfig.pools.rollout import World, pool_state
from syncline.machineconfig.pools.status import PoolNodes, pool_status
from syncline.machineconfig.pools.validity import Expected, invalid, summary

NOW = "<now>"
AT = datetime(2026, 9, 1, tzinfo=UTC)
Case = dict[str, Any]


def by_id(kind: str) -> Any:
    return pytest.mark.parametrize("case", cases(kind), ids=lambda case: str(case["id"]))


def layering_of(given: Obj) -> Layering:
    return Layering(given.get("machineOSConfig"), given.get("machineOSBuild"))


@by_id("membership")
def test_a_node_belongs_where_upstream_puts_it(case: Case) -> None:
    given, expect = case["input"], case["expect"]
    got: Obj = {"nodes": {}, "members": {}}
    for node in given["nodes"]:
        told: Obj = {"windows": is_windows(node), "managed": is_managed(node)}
        try:
            found = belonging(node, given["pools"])
            told["pools"] = [name_of(pool) for pool in found.pools]
            told["poolAlert"] = int(found.alert) if found.pools else None
            told["mcnPool"] = pool_of_machine_config_node(node, given["pools"])
        except MembershipError as error:
            told["error"] = str(error)
        got["nodes"][name_of(node)] = told
    for pool in given["pools"]:
        try:
            owned = members(pool, given["nodes"], given["pools"])
            got["members"][name_of(pool)] = sorted(name_of(node) for node in owned)
        except MembershipError as error:
            got["members"][name_of(pool)] = {"error": str(error)}
    judge(case, without_nil(got) == without_nil(expect), got)


@by_id("maxunavailable")
def test_a_limit_is_the_number_that_upstream_reads(case: Case) -> None:
    given = case["input"]
    spec = {"maxUnavailable": given["maxUnavailable"]} if "maxUnavailable" in given else {}
    try:
        got: Obj = {"value": max_unavailable({"metadata": {"name": given["pool"]}, "spec": spec}, given["nodes"])}
    except LimitError as error:
        got = {"error": str(error)}
    judge(case, got == case["expect"], got)


@by_id("nodestate")
def test_a_node_is_in_the_state_that_upstream_sees(case: Case) -> None:
    node, pool, layering = case["input"]["node"], case["input"]["pool"], layering_of(case["input"])
    state = mcd_state(node)
    got = {
        "nodeDone": is_done(node),
        "doneForPool": is_done_for(node, pool, layering),
        "candidate": is_candidate(node, pool, layering),
        "unavailable": is_unavailable(node),
        "notReady": not_ready(node),
        "failing": is_failing(node),
        "degraded": state == "Degraded",
        "unreconcilable": state == "Unreconcilable",
        "managed": is_managed(node),
        "taintedForUpdate": has_update_taint(node),
        "coreos": is_core_os(node),
    }
    judge(case, got == case["expect"], got)


def written(writes: list[NodeWrite] | tuple[NodeWrite, ...]) -> Obj:
    nodes: Obj = {}
    for write in writes:
        told = nodes.setdefault(write.node, {})
        if write.annotations:
            told.setdefault("annotations", {}).update(write.annotations)
        if write.labels:
            told.setdefault("labels", {}).update(write.labels)
        if write.taints is not None:
            told["taints"] = [{key: taint[key] for key in ("key", "effect")} for taint in write.taints] or None
    return nodes


def line(said: Said) -> str:
    return f"{'Warning' if said.warning else 'Normal'} {said.reason} {said.message}"


@by_id("candidates")
def test_upstream_s_next_nodes_are_ours(case: Case) -> None:
    given = case["input"]
    pool, nodes, layering = given["pool"], given["nodes"], layering_of(given)
    got: Obj = {}
    try:
        limit = max_unavailable(pool, len(nodes))
    except LimitError as error:
        judge(case, {"error": str(error)} == case["expect"], str(error))
        return
    found, capacity = all_candidates(pool, nodes, limit, layering)
    chosen = choose_targets(
        pool,
        found,
        capacity,
        layering,
        operator_pods=given.get("pods") or [],
        pools=given.get("pools") or [],
        rendered={name_of(config): config for config in given.get("machineConfigs") or []},
    )
    got = {
        "maxUnavailable": limit,
        "capacity": capacity,
        "unavailable": [name_of(node) for node in unavailable(nodes)],
        "candidates": [name_of(node) for node in found],
    }
    if found:
        got["targeted"] = list(dict.fromkeys(write.node for write in chosen.writes))
        got["nodes"] = written(chosen.writes)
        got["events"] = [line(said) for said in chosen.events]
    expect = case["expect"]
    same_nodes = got.get("nodes", {}) == (expect.get("nodes") or {})
    rest = [without_nil({k: v for k, v in each.items() if k != "nodes"}) for each in (got, expect)]
    judge(case, same_nodes and rest[0] == rest[1], got)


def told_status(status: Obj) -> Obj:
    """``<now>`` for times of this call; empty texts of conditions left out."""
    found = dict(status)
    found["conditions"] = [
        {k: NOW if (k, v) == ("lastTransitionTime", format_time(AT)) else v for k, v in each.items() if v != ""}
        for each in status.get("conditions") or []
    ]
    return without_nil(found)  # type: ignore[no-any-return]


def zeroless(status: Obj) -> Obj:
    found = told_status(status)
    found.setdefault("configuration", {})
    return found


@by_id("poolstatus")
def test_a_pool_s_status_is_upstream_s(case: Case) -> None:
    given = case["input"]
    observed = PoolNodes(
        given["pool"],
        given.get("nodes") or [],
        given.get("machineConfigNodes") or [],
        given.get("controllerConfig"),
        layering_of(given),
        frozenset(given.get("gates") or ()),
    )
    got = pool_status(observed, AT)
    judge(case, zeroless(got) == zeroless(case["expect"]["status"]), got)


@by_id("nodesync")
def test_one_look_at_a_pool_does_what_upstream_does(case: Case) -> None:
    given, expect = case["input"], case["expect"]
    configs = [given["machineOSConfig"]] if "machineOSConfig" in given else []
    builds = [given["machineOSBuild"]] if "machineOSBuild" in given else []
    world = World(
        given["pools"],
        [ObservedNode(node) for node in given["nodes"]],  # as the controller's cache has them
        {name_of(mcn): ObservedRecord(mcn) for mcn in given.get("machineConfigNodes") or []},
        given.get("controllerConfig"),
        given.get("pods") or [],
        {name_of(config): config for config in given.get("machineConfigs") or []},
        {name_of(pool): found_layering(pool, configs, builds) for pool in given["pools"]},
    )
    look = pool_state(world, given["sync"], AT)
    statuses = {}
    for name, status in look.statuses.items():
        old = next(pool.get("status") or {} for pool in given["pools"] if name_of(pool) == name)
        if without_nil(status) != without_nil(old):
            statuses[name] = zeroless({k: v for k, v in status.items() if k != "poolSynchronizersStatus"})
    got = {
        "nodes": written(look.writes),
        "machineConfigNodes": look.targets,
        "status": statuses,
        "events": [line(said) for _, said in look.events],
        "queue": [f"add {name}" for name in look.wakes],
        "error": look.error or None,
    }
    judge(case, got == {**expect, "status": {name: zeroless(s) for name, s in expect["status"].items()}}, got)


@by_id("layered")
def test_image_mode_goes_on_when_upstream_says_so(case: Case) -> None:
    layering = layering_of(case["input"])
    progress = layering.progress()
    got = {
        "continue": progress.goes_on,
        "reason": progress.reason,
        "error": progress.error or None,
        "building": layering.layered and layering.building,
    }
    judge(case, got == case["expect"], got)


@by_id("poolvalid")
def test_the_operator_judges_a_pool_as_upstream_s(case: Case) -> None:
    given = case["input"]
    expected = Expected(given["version"], given["releaseVersion"], given["osURL"])
    configs = {name_of(config): config for config in given.get("machineConfigs") or []}
    got = {"invalid": invalid(given["pool"], configs, expected), "summary": summary(given["pool"])}
    judge(case, got == case["expect"], got)


def test_annotations_are_read_not_written() -> None:
    node: Obj = {"metadata": {"name": "n"}}
    assert annotations_of(node) == {}
    assert is_candidate(node, {"metadata": {"name": "p"}, "spec": {"configuration": {"name": "x"}}}, Layering())
    assert node == {"metadata": {"name": "n"}}
