"""Runs of the recorded cases of works: from the input of a case to what ours says, in the shape of ``expect``."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from datetime import timedelta
from typing import Any

from tests.fleet.recordings import NOW

from syncline.apply.diff.jq import Answers, Unknown, answer
from syncline.base.clock import format_time, time_or_none
from syncline.control.plan import Apply, Create, Delete, Patch, Replace
from syncline.fleet.conditions import with_conditions
from syncline.fleet.hub.replicasets.plan import SetObserved, plan_set
from syncline.fleet.hub.replicasets.works import works_of_set
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
from syncline.fleet.spoke.work.deletion import delete_applied
from syncline.fleet.spoke.work.executor import ExecutorError, Target, reviews
from syncline.fleet.spoke.work.feedback import values_by_rule
from syncline.fleet.spoke.work.manifests.applying import plan_manifest
from syncline.fleet.spoke.work.manifests.ignoring import IgnoreFieldError, content_hash, without_ignored
from syncline.fleet.spoke.work.ownership import Ownership, owned_by_work, owner_patch
from syncline.kube.kinds.manifestworks import SPEC_HASH
from syncline.kube.objects import Obj, name_of, namespace_of

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


def owned(given: Obj) -> Any:
    resource = {
        "group": given["gvr"]["Group"],
        "resource": given["gvr"]["Resource"],
        "namespace": given["namespace"],
        "name": given["name"],
    }
    return {"owned": owned_by_work(resource, given["deleteOption"])}


def deleted(given: Obj) -> Any:
    live = {(namespace_of(one), name_of(one)): one for one in given["existing"]}
    found = delete_applied(
        given["Applied"],
        lambda one: live.get((one.get("namespace", ""), one["name"])),
        given["owner"],
        "the work is gone",
    )
    return {"actions": [_write(one, given["gvr"]) for one in found.actions], "pending": list(found.pending)}


def applied(given: Obj) -> Any:
    """One manifest. The recorder's client keeps nothing that it applies, so an owner can't be added to a new object."""
    reference = {"apiVersion": "", "kind": "", "name": "", "uid": "", **given["owner"]}
    uid = reference["uid"]
    ownership = Ownership({**reference, "uid": uid.removesuffix("-")}, not uid.endswith("-"))
    live = next(iter(given["existing"]), None)
    strategy = (given["manifestConfig"] or {}).get("updateStrategy") or {"type": given["strategy"]}
    if given.get("same"):
        fields = strategy["serverSideApply"]["ignoreFields"]
        content = content_hash(without_ignored(given["required"], fields, _answers(given["required"], fields)))
        live["metadata"]["annotations"][SPEC_HASH] = content
    found: Obj = {"error": None, "ignoreFieldError": False, "conflictError": False, "actions": []}
    try:
        fields = (strategy.get("serverSideApply") or {}).get("ignoreFields") or ()
        plan = plan_manifest(given["required"], live, strategy, ownership, _answers(given["required"], fields))
    except IgnoreFieldError as error:
        return {**found, "error": str(error), "ignoreFieldError": True}
    writes = [plan.write] if plan.write else []
    if given.get("conflict"):
        found |= {"error": CONFLICT, "conflictError": True}
    elif plan.own_after:
        assert isinstance(plan.write, Apply)
        after = owner_patch(plan.write.obj, ownership, "own")
        writes += [after] if after else []
        if live is None and after:
            resource = ".".join(filter(None, (given["gvr"]["Resource"], given["gvr"]["Group"])))
            found["error"] = f'{resource} "{after.name}" not found'
    return {**found, "actions": [_write(one, given["gvr"]) for one in writes]}


CONFLICT = 'Apply failed with 1 conflict: conflict with "other": .spec'
"""What the recorder's client says."""


def _answers(required: Obj, fields: Any) -> Answers:
    """Answers to the questions that the manifest raises, as the process for expressions gives them."""
    known: dict[str, Any] = {}
    while True:
        answers = Answers(known)
        try:
            without_ignored(required, fields, answers)
        except Unknown as unknown:
            known |= {one.key: answer(one) for one in unknown.questions}
        except IgnoreFieldError:
            return answers
        else:
            return answers


def _write(action: Any, gvr: Obj) -> Obj:
    place = {"group": gvr["Group"], "resource": gvr["Resource"]}
    match action:
        case Create(obj=obj):
            return {"verb": "create", **place, "namespace": namespace_of(obj), "body": obj}
        case Replace(obj=obj):
            return {"verb": "update", **place, "namespace": namespace_of(obj), "body": obj}
        case Apply(obj=obj):
            named = {"namespace": namespace_of(obj), "name": name_of(obj), "patchType": "application/apply-patch+yaml"}
            return {
                "verb": "patch",
                **place,
                **named,
                "body": obj,
                "fieldManager": action.manager,
                "force": action.force,
            }
        case Patch():
            named = {"namespace": action.namespace, "name": action.name, "patchType": action.kind.value}
            return {"verb": "patch", **place, **named, "body": action.body}
        case Delete():
            options = {"preconditions": {"uid": action.uid} if action.uid else {}}
            options |= {"propagationPolicy": action.propagation} if action.propagation else {}
            return {"verb": "delete", **place, "namespace": action.namespace, "name": action.name, "options": options}
    raise AssertionError(action)


def replica_set(given: Obj) -> Any:
    obj = given["set"]
    observed = SetObserved(
        obj,
        works_of_set(obj, given["works"]),
        {name_of(one): one for one in given["placements"]},
        tuple(given["decisions"]),
    )
    plan = plan_set(observed, NOW)
    gvr = {"Group": "work.open-cluster-management.io", "Resource": "manifestworks"}
    return {
        "actions": [_untyped(_write(one, gvr)) for one in plan.actions],
        "status": plan.status,
        "error": ", ".join(plan.errors) or None,
        "requeueAfter": _requeue(plan.recheck),
    }


def _requeue(recheck: timedelta | None) -> int | None:
    """Upstream leaves what is half an hour away or more to its resync."""
    if recheck is None or recheck >= timedelta(minutes=30):
        return None
    return 5 * round(recheck.total_seconds() / 5)


def _untyped(write: Obj) -> Obj:
    """The recorder's client has typed objects, which don't say their kind."""
    if write["verb"] != "create":
        return write
    return {**write, "body": {key: one for key, one in write["body"].items() if key not in ("apiVersion", "kind")}}


def comparable(value: Any) -> Any:
    """Conditions are a set by type. A manifest in an error is compact JSON, as an API server passes it on; the recorder
    had it as its file writes it. Of the errors of parsers and compilers the beginning counts."""
    if isinstance(value, dict):
        return {key: "any" if key == SPEC_HASH else comparable(one) for key, one in value.items() if key != "result"}
    if isinstance(value, list):
        items = [comparable(one) for one in value if not (isinstance(one, dict) and one.get("verb") == "get")]
        typed = all(isinstance(one, dict) and "type" in one and "status" in one for one in items)
        if all(isinstance(one, dict) and one.get("resource") == "manifestworks" for one in items):
            return sorted(items, key=lambda one: json.dumps(one, sort_keys=True))
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
    "owned": owned,
    "delete": deleted,
    "apply": applied,
    "rollout": rollout,
    "rollout-state": rollout_state,
    "replicaset": replica_set,
}
