"""Draining as the Machine Config Operator does it: recorded answers of its functions."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from tests.machineconfig.recordings import KNOWN, cases, judge, same_text
from tests.recorded import known

from syncline.control.plan import Delete, Emit, Evict, Patch, Plan, Requeue, Result, Retry, SetStatus
from syncline.kube.errors import ApiError, InternalError, NotFound, TooManyRequests
from syncline.kube.objects import Obj, annotations_of, dig, name_of, namespace_of, ref_of
from syncline.kube.patching.patches import json_merge_patch
from syncline.machineconfig.drain.feasible import Sight
from syncline.machineconfig.drain.observe import Observed
from syncline.machineconfig.drain.plan import UNWRITABLE, DrainSettings, plan, settle
from syncline.machineconfig.drain.pods import departures, warning_line
from syncline.machineconfig.drain.progress import KEEP_CORDON, PROGRESS, Progress
from syncline.machineconfig.drain.registries import RegistriesError, configs_change_safely
from syncline.machineconfig.names import DESIRED_DRAIN, GROUP, LAST_DRAIN
from syncline.machineconfig.nodes.phases import IMAGE_MODE_GATE, Phase, advance
from syncline.machineconfig.pools.membership import MembershipError, primary_pool

AT = datetime(2026, 9, 1, tzinfo=UTC)
Case = dict[str, Any]
OPEN = object()
AGGREGATE = re.compile(r"\[error when (.*)\]")


def by_id(kind: str) -> Any:
    return pytest.mark.parametrize("case", cases(kind), ids=lambda case: str(case["id"]))


def kinded(kind: str, objects: list[Obj]) -> list[Obj]:
    return [{"apiVersion": "apps/v1", "kind": kind} | each for each in objects]


@by_id("drainpods")
def test_the_pods_that_leave_are_upstream_s(case: Case) -> None:
    given, expect = case["input"], case["expect"]
    sets = {ref_of(each) for each in kinded("DaemonSet", given.get("daemonSets") or [])}
    found = departures(given["node"], given["pods"], sets)
    got: Obj = {"evict": sorted(f"{namespace_of(d.pod)}/{name_of(d.pod)}" for d in found if d.leaves), "errors": []}
    if "warning" in expect:
        got["warning"] = warning_line(found)
    judge(case, got == {**expect, "evict": sorted(expect["evict"])}, got)


@by_id("drainsafe")
def test_a_change_of_registries_is_safe_when_upstream_says_so(case: Case) -> None:
    try:
        got: Obj = {"safe": configs_change_safely(case["input"]["old"], case["input"]["new"])}
    except RegistriesError as error:
        got = {"error": str(error)}
    if "error" in case["expect"]:
        own = case["expect"]["error"].split(": ")[0]  # what follows is the TOML library's
        judge(case, got.get("error", "").split(": ")[0] == own, got)
    else:
        judge(case, got == case["expect"], got)


def phase(given: Obj | None) -> Phase | None:
    return Phase(given["type"], given["status"], given["reason"], given["message"]) if given else None


@by_id("mcn")
def test_the_conditions_of_a_machine_config_node_move_as_upstream_s(case: Case) -> None:
    """The steps that set conditions; those that write a spec are the node controllers'."""
    given = case["input"]
    image_mode = IMAGE_MODE_GATE in (given.get("gates") or [])
    mcn: Obj = {}
    for step, expect in zip(given["steps"], case["expect"]["states"], strict=True):
        if "parent" not in step or dig(given["node"], "status", "phase") == "Pending":
            if expect.get("spec"):
                mcn["spec"] = expect["spec"]
            continue
        node = given["node"] | {"metadata": given["node"]["metadata"] | {"annotations": step.get("nodeAnnotations")}}
        before = {each["type"]: each for each in dig(mcn, "status", "conditions", default=[])}
        parent = phase(step["parent"])
        assert parent is not None
        status = advance(mcn, node, parent, phase(step.get("child")), AT, image_mode=image_mode)
        mcn = mcn | ({"status": status} if status is not None else {})
        if expect.get("spec"):
            mcn["spec"] = expect["spec"]
        after = dig(mcn, "status", "conditions", default=[])
        empty = [each["type"] for each in after if each["reason"] == "NotYetOccurred"]
        fresh = sorted(kind for kind in empty if kind not in before)
        changed = [
            {k: each[k] for k in ("type", "status", "reason", "message")}
            for each in after
            if each["type"] not in fresh and _told(before.get(each["type"])) != _told(each)
        ]
        got = {
            "changed": sorted(changed, key=str),
            "fresh": fresh,
            "version": _version(dig(mcn, "status", "configVersion")),
        }
        want = {
            "changed": sorted(expect.get("changedConditions") or [], key=str),
            "fresh": sorted(expect.get("notYetOccurred") or []),
            "version": _version(expect.get("configVersion")),
        }
        if got["changed"] and want["changed"]:
            order = lambda each: (each["type"], each["status"])  # noqa: E731
            got["changed"], want["changed"] = sorted(changed, key=order), sorted(want["changed"], key=order)
        judge(case, got == want, got)


def _told(condition: Obj | None) -> tuple[str, ...]:
    return tuple(str(condition[key]) for key in ("status", "reason", "message")) if condition else ()


def _version(found: Obj | None) -> Obj | None:
    return {key: value for key, value in found.items() if value} if found else None


class Desk:
    """Answers the actions of the drain planner as the recorded cluster did, in memory."""

    def __init__(self, given: Obj) -> None:
        self.given = given
        self.now = AT
        meta = {"resourceVersion": "1"} | given["node"]["metadata"]
        self.node: Obj = given["node"] | {"metadata": meta | {"annotations": dict(meta.get("annotations") or {})}}
        self.mcn: Obj = {
            "apiVersion": f"{GROUP}/v1",
            "kind": "MachineConfigNode",
            "metadata": {"name": name_of(self.node)},
        }
        self.pods = {f"{namespace_of(p)}/{name_of(p)}": p for p in kinded("Pod", given.get("pods") or [])}
        self.told: Obj = {"evictionTried": set(), "evicted": set(), "deleted": set(), "events": [], "phases": {}}
        if "ongoingMinutes" in given:
            began = AT - timedelta(minutes=given["ongoingMinutes"])
            request = annotations_of(self.node).get(DESIRED_DRAIN, "")
            self.node["metadata"]["annotations"][PROGRESS] = Progress(request, began, began, AT).text()

    def observed(self) -> Observed:
        sets = {ref_of(each) for each in kinded("DaemonSet", self.given.get("daemonSets") or [])}
        try:
            pool, trouble = primary_pool(self.node, self.given["pools"]), ""
        except MembershipError as error:
            pool, trouble = None, str(error)
        leaving = tuple(d.pod for d in departures(name_of(self.node), self.pods.values(), sets) if d.leaves)
        evicts = not self.given.get("noEvictionInDiscovery")
        return Observed(self.node, leaving, pool, trouble, self.mcn, evicts)

    def handle(self, action: Any) -> Result:
        try:
            return Result(action, True, self._do(action))
        except ApiError as error:
            return Result(action, False, error=error)

    def _do(self, action: Any) -> Any:
        match action:
            case SetStatus():
                if self.given.get("recordFails"):
                    raise InternalError("Internal error occurred: no records today")
                before = {each["type"]: each for each in dig(self.mcn, "status", "conditions", default=[])}
                self.mcn = self.mcn | {"status": action.new}
                changed = [c for c in action.new["conditions"] if _told(before.get(c["type"])) != _told(c)]
                self.told["phases"] |= {c["type"]: c for c in changed if c["reason"] != "NotYetOccurred"}
                return self.mcn
            case Patch():
                if self.given.get("cordonFails"):
                    raise InternalError("Internal error occurred: no patching today")
                self.node = json_merge_patch(self.node, action.body)
                return self.node
            case Emit():
                kind = "Warning" if action.warning else "Normal"
                self.told["events"].append(f"{kind} {action.event_reason} {action.message}")
            case Evict() | Delete():
                self._remove(f"{action.namespace}/{action.name}", evicts=isinstance(action, Evict))
        return None

    def _remove(self, pod: str, *, evicts: bool) -> None:
        answer = (self.given.get("evictionAnswers") or {}).get(pod, "")
        if evicts:
            self.told["evictionTried"].add(pod)
        if self.given.get("someoneUncordonsDuringDrain"):
            self.node = self.node | {"spec": {}}
        if answer == "429":
            raise TooManyRequests("Cannot evict pod as it would violate the pod's disruption budget.")
        if answer == "500":
            raise InternalError("Internal error occurred: boom")
        if answer == "stuck":
            going = self.pods[pod]["metadata"] | {"deletionTimestamp": "2026-09-01T00:00:00Z"}
            self.pods[pod] = self.pods[pod] | {"metadata": going}
            return
        del self.pods[pod]
        if answer == "404" and evicts:
            raise NotFound(f'pods "{pod}" not found')
        if answer == "404":
            return  # the handler of Delete takes it for a success
        self.told["evicted" if evicts else "deleted"].add(pod)

    def sync(self, settings: DrainSettings) -> tuple[list[str], str | None]:
        """Passes until a retry is due, it is done, somebody lifted the cordon, or an attempt without a note of its
        beginning goes on for ever: what the queue holds, the error."""
        while self.now <= AT + timedelta(seconds=2 * settings.attempt_s):
            made = self._one_pass(settings)
            lifted = PROGRESS in annotations_of(self.node) and not dig(self.node, "spec", "unschedulable")
            match made.outcome:
                case Retry(error=error):
                    return [], error
                case Requeue(after_s=after, why="the next attempt to drain"):
                    return [f"add after {int(after) // 60}m0s"], None
                case Requeue(why=why) if why == UNWRITABLE or lifted:
                    return [], None  # upstream's queue holds nothing then
                case Requeue(after_s=after):
                    self.now += timedelta(seconds=after if self.observed().leaving else 1)
                case _:
                    return [], None
        return [], None

    def _one_pass(self, settings: DrainSettings) -> Plan:
        observed = self.observed()
        made = plan(observed, self.now, settings)
        more: tuple[Observed, Plan] | None = (observed, made)
        while more is not None:
            observed, made = more
            results: list[Result] = []
            for step in made.steps:
                results += (done := [self.handle(action) for action in step])
                if not all(result.ok for result in done):
                    break
            more = settle(observed, made, results, self.now, settings)
        return made


def by_design(given: Obj, expect: Obj) -> dict[str, Obj]:
    """The classes of differences that a case falls into, by their names in ``known.json``, each with our answers;
    ``OPEN`` where ours is another one that the recording does not tell."""
    have = annotations_of(given["node"])
    wanted, last = have.get(DESIRED_DRAIN, ""), have.get(LAST_DRAIN, "")
    cordoned, begun = bool(dig(given["node"], "spec", "unschedulable")), "ongoingMinutes" in given
    found: dict[str, Obj] = {}
    if begun and (wanted == last or wanted.split("-")[0] == "uncordon") and not given.get("cordonFails"):
        found["memory of a drain that nobody asks for any more"] = {"drainOngoing": False}
    if given.get("cordonFails"):
        lasts = {"429", "stuck"} & set((given.get("evictionAnswers") or {}).values())
        endless = {"queue": OPEN, "machineConfigNode": OPEN} if lasts else {}
        found["memory of a drain on a node that takes no writes"] = {"drainOngoing": begun, "events": OPEN} | endless
    if wanted.split("-")[0] == "uncordon" and cordoned and not begun and not last.startswith("drain-"):
        unwritten = {"error": OPEN, "machineConfigNode": OPEN} if given.get("cordonFails") else {}
        found["a cordon that was there before the drain"] = {"unschedulable": True} | unwritten
    if given.get("someoneUncordonsDuringDrain") and expect["evictionTried"] + expect["deleted"]:
        told = {"machineConfigNode": OPEN, "queue": OPEN, "events": OPEN}
        found["a cordon that is lifted during the drain"] = {"drainOngoing": True} | told
    return found


def agrees(want: Obj, got: Obj) -> bool:
    return all(want[key] is OPEN or same(key, want[key], got[key]) for key in got)


def same(key: str, want: Any, got: Any) -> bool:
    match key:
        case "error":
            return same_text(want, got)
        case "machineConfigNode":
            return len(want) == len(got) and all(
                mine | {"message": ""} == theirs | {"message": ""}
                and same_text(ordered(theirs["message"]), ordered(mine["message"]))
                for mine, theirs in zip(got, want, strict=True)
            )
        case "events":
            return [ordered(each) for each in want] == [ordered(each) for each in got]
        case _:
            return bool(want == got)


def ordered(text: str) -> str:
    """Pods are evicted side by side, so that upstream tells their errors in the order of chance."""
    return AGGREGATE.sub(lambda found: f"[{', error when '.join(sorted(found[1].split(', error when ')))}]", text)


@by_id("drainsync")
def test_a_drain_goes_as_upstream_s(case: Case) -> None:
    given, expect = case["input"], case["expect"]
    desk = Desk(given)
    queue, error = desk.sync(DrainSettings(attempt_s=given["drainTimeoutSeconds"]))
    phases = [{k: c[k] for k in ("type", "status", "reason", "message")} for c in desk.told["phases"].values()]
    got = {
        **{key: sorted(desk.told[key]) for key in ("evictionTried", "evicted", "deleted")},
        "events": desk.told["events"],
        "queue": queue,
        "lastAppliedDrain": annotations_of(desk.node).get(LAST_DRAIN, ""),
        "unschedulable": bool(dig(desk.node, "spec", "unschedulable")),
        "drainOngoing": PROGRESS in annotations_of(desk.node),
        "machineConfigNode": sorted(phases, key=lambda each: str(each["type"])),
        "error": error,
    }
    want = expect | {"machineConfigNode": sorted(expect.get("machineConfigNode") or [], key=lambda each: each["type"])}
    classes = by_design(given, expect)
    ours = {key: value for changed in classes.values() for key, value in changed.items()}
    if not agrees(want, got) and agrees(want | ours, got):
        pytest.xfail("; ".join(known(KNOWN)["drainsync"][name] for name in classes))
    judge(case, agrees(want, got), got)


# -- beyond the recordings -------------------------------------------------------------------------------------------


def asked_for_a_drain(*pods: str, cordoned: bool = False, **more: Any) -> Desk:
    node = {"metadata": {"name": "node-0", "annotations": {DESIRED_DRAIN: "drain-rendered-b"}}, "spec": {}}
    if cordoned:
        node["spec"] = {"unschedulable": True}
    made = [{"metadata": {"name": p, "namespace": "a", "uid": p}, "spec": {"nodeName": "node-0"}} for p in pods]
    return Desk({"node": node, "pools": [], "pods": made} | more)


def test_a_node_that_cannot_be_cordoned_is_tried_five_times_and_keeps_its_pods() -> None:
    """As upstream's code says; the recordings have it for nodes that are cordoned already."""
    desk = asked_for_a_drain("p", cordonFails=True)
    assert desk.sync(DrainSettings()) == ([], None)
    assert desk.told["evictionTried"] == set()
    assert (
        desk.told["phases"]["UpdateExecuted"]["message"] == "Failed to Cordon Node as part of In progress update phase"
    )
    told = desk.told["phases"]["Cordoned"]
    assert (told["status"], told["reason"]) == ("Unknown", "UpdateExecutedCordoned")
    assert told["message"].startswith(
        "Error: Failed to Cordon node. Error is node node-0: failed to cordon (5 tries): [timed out waiting for the "
        "condition, cordon error: Internal error occurred: no patching today], The node is reporting Unschedulable = "
    )


@pytest.mark.parametrize(
    ("minutes", "wait", "reasons"), [(5, 1, []), (30, 5, ["Threshold"]), (90, 5, ["Failed", "Threshold"])]
)
def test_an_attempt_after_somebody_lifted_the_cordon_still_counts_from_the_first_one(
    minutes: int, wait: int, reasons: list[str]
) -> None:
    desk = asked_for_a_drain("p", evictionAnswers={"a/p": "500"}, ongoingMinutes=minutes)
    assert desk.sync(DrainSettings()) == ([f"add after {wait}m0s"], None)
    assert [event.split()[1].removeprefix("Drain").removesuffix("Exceeded") for event in desk.told["events"]] == reasons
    progress = Progress.of(desk.node)
    assert progress is not None
    assert progress.began == AT, "then time counts from the new cordon"


def test_an_eviction_that_fails_does_not_end_the_attempt_of_a_pod_that_a_budget_holds() -> None:
    desk = asked_for_a_drain("broken", "held", "free", evictionAnswers={"a/broken": "500", "a/held": "429"})
    assert desk.sync(DrainSettings()) == (["add after 1m0s"], None)
    assert desk.now - AT == timedelta(seconds=90)
    assert desk.told["evicted"] == {"a/free"}
    assert (
        'Error is: [error when evicting pods/"broken" -n "a": Internal error occurred: boom, '
        'error when evicting pods/"held" -n "a": global timeout reached: 1m30s] The drain will not'
    ) in desk.told["phases"]["Drained"]["message"]


def test_an_attempt_ends_at_once_where_every_eviction_fails() -> None:
    desk = asked_for_a_drain("broken", evictionAnswers={"a/broken": "500"})
    assert desk.sync(DrainSettings()) == (["add after 1m0s"], None)
    assert desk.now == AT


def test_a_machine_config_node_that_takes_no_writes_holds_no_drain_up() -> None:
    desk = asked_for_a_drain("p", recordFails=True)
    assert desk.sync(DrainSettings()) == ([], None)
    assert annotations_of(desk.node)[LAST_DRAIN] == "drain-rendered-b"
    assert desk.told["evicted"] == {"a/p"}


def test_memory_that_cannot_be_deleted_is_no_failure_to_cordon() -> None:
    desk = asked_for_a_drain("p", cordonFails=True, ongoingMinutes=5)
    desk.node["metadata"]["annotations"][LAST_DRAIN] = "drain-rendered-b"
    assert desk.sync(DrainSettings()) == ([], None)
    assert desk.told["phases"] == {}


def test_an_attempt_that_is_given_up_waits_although_that_cannot_be_noted() -> None:
    desk = asked_for_a_drain("p", cordoned=True, cordonFails=True, ongoingMinutes=12, evictionAnswers={"a/p": "500"})
    assert desk.sync(DrainSettings()) == (["add after 5m0s"], None)
    assert [event.split()[1] for event in desk.told["events"]] == ["DrainThresholdExceeded"]


def test_without_evictions_pods_are_deleted_in_order_up_to_the_first_that_is_refused() -> None:
    desk = asked_for_a_drain("c", "a", "b", noEvictionInDiscovery=True, evictionAnswers={"a/b": "500"})
    assert desk.sync(DrainSettings()) == (["add after 1m0s"], None)
    assert (desk.told["deleted"], set(desk.pods)) == ({"a/a"}, {"a/b", "a/c"})
    assert "Error is: Internal error occurred: boom The drain" in desk.told["phases"]["Drained"]["message"]


def test_a_cordon_that_somebody_made_and_lifted_is_not_kept_after_the_update() -> None:
    desk = asked_for_a_drain("p", cordoned=True, evictionAnswers={"a/p": "429"})
    desk.sync(DrainSettings())
    assert annotations_of(desk.node)[KEEP_CORDON] == "true"
    desk.node = json_merge_patch(desk.node, {"spec": {"unschedulable": None}})
    desk.sync(DrainSettings())
    assert KEEP_CORDON not in annotations_of(desk.node)
    desk.node = json_merge_patch(desk.node, {"metadata": {"annotations": {DESIRED_DRAIN: "uncordon-rendered-b"}}})
    desk.sync(DrainSettings())
    assert not dig(desk.node, "spec", "unschedulable")


def test_a_blocked_drain_is_told_once_however_long_its_reason_is() -> None:
    space, labels = "a" * 63, {"app": "x"}
    pod = {"metadata": {"name": "p", "namespace": space, "uid": "u", "labels": labels}, "spec": {"nodeName": "node-0"}}
    pod["status"] = {"phase": "Running"}
    spec = {"selector": {"matchLabels": labels}, "maxUnavailable": 0}
    budgets = [{"metadata": {"name": f"{i:0200}", "namespace": space}, "spec": spec} for i in range(20)]
    node = asked_for_a_drain().node
    observed = Observed(node, (pod,), forecast=lambda: Sight([node], [pod], budgets))
    first = plan(observed, AT)
    (patch,), (told,) = first.steps
    assert isinstance(patch, Patch) and isinstance(told, Emit)
    again = replace(observed, node=json_merge_patch(node, patch.body))
    assert plan(again, AT).steps == (), "it is no news"


def test_a_drain_that_takes_too_long_is_not_told_with_each_look_where_no_look_can_be_noted() -> None:
    desk = asked_for_a_drain("p", cordoned=True, cordonFails=True, ongoingMinutes=90, evictionAnswers={"a/p": "429"})
    desk.sync(DrainSettings())
    assert desk.told["events"] == []


def test_an_attempt_that_is_due_says_that_the_drain_took_too_long_although_it_ends_with_it() -> None:
    desk = asked_for_a_drain(cordoned=True, ongoingMinutes=120)
    assert desk.sync(DrainSettings()) == ([], None)
    assert [event.split()[1] for event in desk.told["events"]] == ["DrainFailed"]
    assert annotations_of(desk.node)[LAST_DRAIN] == "drain-rendered-b"
