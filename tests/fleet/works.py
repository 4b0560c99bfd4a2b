"""Runs of the recorded cases of works: from the input of a case to what ours says, in the shape of ``expect``."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

from tests.fleet.recordings import NOW

from syncline.base.clock import format_time, time_or_none
from syncline.fleet.conditions import with_conditions
from syncline.fleet.hub.rollout.decide import decide
from syncline.fleet.hub.rollout.model import ClusterState, DecisionGroup, Group, RolloutError, State
from syncline.fleet.hub.rollout.states import state_of
from syncline.fleet.hub.rollout.strategy import in_force, strategy_of
from syncline.fleet.hub.works.admission import (
    WorkRefused,
    check_manifests,
    executor_refusal,
    executor_review,
)
from syncline.fleet.spoke.work.aggregation import aggregate, pruned
from syncline.fleet.spoke.work.conditionrules import conditions_of
from syncline.fleet.spoke.work.configs import config_of
from syncline.fleet.spoke.work.executor import ExecutorError, Target, reviews
from syncline.fleet.spoke.work.feedback import values_by_rule
from syncline.kube.objects import Obj

Run = Callable[[Obj], Any]
_OF_PARSERS = re.compile(
    r"(^ERROR: <input>:|failed to (?:parse json path|find value for) .* with error: |^JQ expression error in .*?: ).*",
    re.DOTALL,
)


def feedback(given: Obj) -> Any:
    raw = bool(given.get("rawFeedbackJsonString"))
    found = [values_by_rule(given["object"], rule, raw=raw) for rule in given["rules"]]
    return {"rules": [{"values": list(one.values), "error": one.error or None} for one in found]}


def conditions(given: Obj) -> Any:
    return {"conditions": conditions_of(given["object"], given["rules"])}


def aggregated(given: Obj) -> Any:
    made = aggregate(given["generation"], given["manifests"])
    found: Obj = {"conditions": made}
    if "existing" in given:
        found["pruned"] = pruned(given["existing"], given["generation"])
        found["merged"] = pruned(with_conditions(given["existing"], made, NOW), given["generation"])
    return found


def config(given: Obj) -> Any:
    return {"option": config_of(given["resource"], given["manifestConfigs"])}


def executor(given: Obj) -> Any:
    gvr = given["gvr"]
    target = Target(gvr["Group"], gvr["Version"], gvr["Resource"], given["namespace"], given["name"])
    asked = []
    try:
        for one in reviews(given["executor"], target, owned=given["ownedByTheWork"]):
            asked.append(one)
            if one["resourceAttributes"]["verb"] not in given["allowedVerbs"]:
                return {"error": target.refusal, "reviews": asked}
    except ExecutorError as error:
        return {"error": str(error), "reviews": asked}
    return {"error": None, "reviews": asked}


def admit(given: Obj) -> Any:
    work, user = given["work"], given["user"]
    for size in given.get("pad") or ():
        manifests = work["spec"]["workload"]["manifests"]
        one = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": f"p{len(manifests)}"}, "data": {"a": ""}}
        one["data"]["a"] = "x" * (size - len(json.dumps(one, separators=(",", ":"))))
        manifests.append(one)
    asked = []
    try:
        check_manifests(work)
        review = executor_review(work, given.get("old"), {"username": user})
        asked = [review] if review else []
        refused = bool(review) and not given.get("allowed")
        return {"error": executor_refusal(work, user) if refused else None, "reviews": asked}
    except WorkRefused as error:
        return {"error": str(error), "reviews": asked}


def rollout(given: Obj) -> Any:
    groups = [
        DecisionGroup(Group(index, one["name"]), tuple(one["clusters"])) for index, one in enumerate(given["groups"])
    ]
    states = [_state(one, groups) for one in given["existing"]]
    found: Obj = {"strategy": in_force(given["strategy"]), "error": None}
    try:
        decision = decide(strategy_of(given["strategy"]), groups, states, NOW)
    except RolloutError as error:
        return {**found, "error": str(error), "maxFailureBreach": False}
    return {
        **found,
        "toRollout": [_shown(one) for one in decision.to_roll_out],
        "timeOut": [_shown(one) for one in decision.timed_out],
        "removed": [_shown(one) for one in decision.removed],
        "maxFailureBreach": decision.too_many_failures,
        "recheckAfterSeconds": None if decision.recheck is None else 5 * round(decision.recheck.total_seconds() / 5),
    }


def _state(one: Obj, groups: list[DecisionGroup]) -> ClusterState:
    since = time_or_none(one.get("lastTransitionTime"))
    key = groups[one["group"]].key if one["group"] < len(groups) else Group(one["group"])
    return ClusterState(one["cluster"], State(one["status"]), key, since)


def _shown(one: ClusterState) -> Obj:
    since = {"lastTransitionTime": format_time(one.since)} if one.since else {}
    group = {"index": one.group.index, "name": one.group.name}
    return {"cluster": one.cluster, "group": group, "status": one.state.value, **since}


def rollout_state(given: Obj) -> Any:
    return {"error": None, "state": _shown(state_of(given))}


def comparable(value: Any) -> Any:
    """Conditions are a set by type. A manifest in an error is compact JSON, as an API server passes it on; the recorder
    had it as its file writes it. Of the errors of parsers and compilers the beginning counts."""
    if isinstance(value, dict):
        return {key: comparable(one) for key, one in value.items()}
    if isinstance(value, list):
        items = [comparable(one) for one in value]
        typed = all(isinstance(one, dict) and "type" in one and "status" in one for one in items)
        return sorted(items, key=lambda one: str(one["type"])) if typed else items
    if not isinstance(value, str):
        return value
    if value.startswith("Object 'Kind' is missing in "):
        return value.replace('": ', '":').replace(', "', ',"')
    return _OF_PARSERS.sub(r"\1", value)


RUNS: dict[str, Run] = {
    "feedback": feedback,
    "conditions": conditions,
    "aggregate": aggregated,
    "config": config,
    "executor": executor,
    "admit": admit,
    "rollout": rollout,
    "rollout-state": rollout_state,
}
