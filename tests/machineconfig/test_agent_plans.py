"""What the agent plans, pass by pass: policy sentences about single decisions."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from syncline.base.action import Action
from syncline.control.plan import Emit, Patch, Plan, Requeue, Result, SetStatus
from syncline.kube.objects import Obj
from syncline.machineconfig.agent.files.disk import Difference
from syncline.machineconfig.agent.files.writing import UpdateError
from syncline.machineconfig.agent.hosts import HostFacts
from syncline.machineconfig.agent.planning.notes import FINALIZE_FAILURE, POST_ACTION, REBOOT_FROM, REBOOTING, WRITING
from syncline.machineconfig.agent.planning.observe import AgentObserved
from syncline.machineconfig.agent.planning.plan import plan_agent
from syncline.machineconfig.agent.planning.settling import settle_agent
from syncline.machineconfig.agent.steps import CheckDisk, Checked, DropStaged, StageSystem, WriteFiles
from syncline.machineconfig.names import CURRENT, DESIRED, DESIRED_DRAIN, DONE, LAST_DRAIN, REASON, STATE

NOW = datetime(2026, 1, 1, tzinfo=UTC)
REFUSED = "error: opening /boot: no space left on device"


def machine_config(name: str, **spec: Any) -> Obj:
    ignition = {"config": {"ignition": {"version": "3.5.0"}}}
    return {"kind": "MachineConfig", "metadata": {"name": name}, "spec": ignition | spec}


OLD, NEW = machine_config("old"), machine_config("new", kernelArguments=["quiet"])


def observed(
    current: Obj, desired: Obj, *, stored: Obj | None = None, fresh: bool = False, **notes: str
) -> AgentObserved:
    """A node at rest, unless its ``notes`` say something else."""
    said = {CURRENT: current["metadata"]["name"], DESIRED: desired["metadata"]["name"], STATE: DONE} | notes
    node: Obj = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "edge", "annotations": said}}
    facts = HostFacts("boot-2", stored=stored or current, fresh=fresh)
    return AgentObserved(node, facts, current, desired, policies={})


def actions(plan: Plan) -> list[Action]:
    return [one for step in plan.steps for one in step]


def notes_of(plan: Plan) -> dict[str, str | None]:
    patches = (one.body["metadata"]["annotations"] for one in actions(plan) if isinstance(one, Patch))
    return {key: value for notes in patches for key, value in notes.items()}


def events(plan: Plan) -> dict[str, str]:
    return {one.event_reason: one.message for one in actions(plan) if isinstance(one, Emit)}


# -- after a boot -----------------------------------------------------------------------------------------------------


def test_what_a_node_has_booted_is_looked_at_once_for_each_boot() -> None:
    [check] = actions(plan_agent(observed(OLD, OLD, fresh=True), NOW))
    assert isinstance(check, CheckDisk) and check.booted and check.layers
    assert actions(plan_agent(observed(OLD, OLD), NOW)) == []


def test_a_done_node_that_booted_something_else_is_degraded_and_not_brought_back() -> None:
    there = replace(observed(OLD, OLD, fresh=True), checked=Checked(Difference("expected target osImageURL", True), ""))
    plan = plan_agent(there, NOW)
    assert notes_of(plan) == {STATE: "Degraded", REASON: "expected target osImageURL"}
    assert events(plan) == {"OnDiskStateValidationFailed": "expected target osImageURL"}


@pytest.mark.parametrize(
    ("said", "found", "note"),
    [("", "", None), ("", REFUSED, REFUSED), (REFUSED, REFUSED, None), (REFUSED, "", "")],
    ids=["nothing failed", "it failed", "that is told already", "the next boot went well"],
)
def test_why_what_was_staged_is_not_in_place_is_told_once_and_taken_back(said: str, found: str, note: str) -> None:
    have = {FINALIZE_FAILURE: said} if said else {}
    plan = plan_agent(replace(observed(OLD, OLD, fresh=True, **have), checked=Checked(None, found)), NOW)
    assert notes_of(plan).get(FINALIZE_FAILURE) == note
    assert events(plan) == ({"FailedFinalization": REFUSED} if note else {})


# -- failures ---------------------------------------------------------------------------------------------------------


def test_what_was_staged_in_part_is_dropped_and_nothing_is_staged_in_its_place() -> None:
    """What runs is the old system; arguments of the old config on top of it would be there twice."""
    drained = {STATE: "Working", DESIRED_DRAIN: "drain-new", LAST_DRAIN: "drain-new", WRITING: "new"}
    there = observed(OLD, NEW, stored=OLD, **drained)
    plan = plan_agent(there, NOW)
    steps = actions(plan)
    at = next(number for number, one in enumerate(steps) if isinstance(one, StageSystem))
    done = [Result(one, ok=True) for one in steps[:at]]
    results = (*done, Result(steps[at], ok=False, error=UpdateError("error running rpm-ostree kargs")))
    settled = settle_agent(there, plan, results, NOW)
    assert settled is not None
    undone = [type(one) for one in actions(settled[1]) if not isinstance(one, Patch | Emit)]
    assert undone == [DropStaged, WriteFiles]


def test_the_first_note_is_for_the_node_as_it_was_seen_and_what_failed_is_told_all_the_same() -> None:
    drained = {STATE: "Working", DESIRED_DRAIN: "drain-new", LAST_DRAIN: "drain-new"}
    there = observed(OLD, NEW, stored=OLD, **drained)
    there.node["metadata"]["resourceVersion"] = "7"
    there = replace(there, checked=Checked(None))
    plan = plan_agent(there, NOW)
    steps = actions(plan)
    versions = [one.body["metadata"].get("resourceVersion") for one in steps if isinstance(one, Patch)]
    assert versions[0] == "7" and set(versions[1:]) == {None}
    first = next(number for number, one in enumerate(steps) if isinstance(one, Patch))
    at = next(number for number, one in enumerate(steps) if isinstance(one, WriteFiles))
    assert first < at, "nothing is written before it"
    written = there.node | {"metadata": there.node["metadata"] | {"resourceVersion": "8"}}
    results = (Result(steps[first], ok=True, value=written), Result(steps[at], ok=False, error=UpdateError("full")))
    settled = settle_agent(there, plan, results, NOW)
    assert settled is not None and notes_of(settled[1])[REASON] == "full"
    assert not [
        one for one in actions(settled[1]) if isinstance(one, Patch) and "resourceVersion" in one.body["metadata"]
    ]


@pytest.mark.parametrize("moment", ["before it writes", "before it puts back", "as it comes to rest", "as it degrades"])
def test_nothing_is_done_to_a_machine_before_the_node_is_known_to_be_as_it_was_seen(moment: str) -> None:
    """Looks change nothing."""
    drained = {STATE: "Working", DESIRED_DRAIN: "drain-new", LAST_DRAIN: "drain-new"}
    there = {
        "before it writes": observed(OLD, NEW, stored=OLD, **drained),
        "before it puts back": observed(OLD, NEW, stored=OLD, **drained | {STATE: "Degraded", WRITING: "new"}),
        "as it comes to rest": observed(OLD, NEW, stored=NEW, **drained),
        "as it degrades": replace(observed(OLD, OLD), checked=Checked(Difference("x"))),
    }[moment]
    there.node["metadata"]["resourceVersion"] = "7"
    there = replace(there, checked=there.checked or Checked(None))
    first = next(one for one in actions(plan_agent(there, NOW)) if not isinstance(one, Emit | SetStatus))
    assert isinstance(first, Patch) and first.body["metadata"]["resourceVersion"] == "7"


# -- what people are told ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("minutes", "state", "told"),
    [(9, DONE, False), (11, DONE, True), (11, "Degraded", False)],
    ids=["it is waited for", "too long", "that is told"],
)
def test_an_uncordon_that_does_not_come_is_told_after_ten_minutes(minutes: int, state: str, told: bool) -> None:
    resumed = {"type": "Resumed", "status": "True", "lastTransitionTime": "2025-12-31T23:00:00Z"}
    there = observed(OLD, NEW, stored=NEW, **{STATE: state, DESIRED_DRAIN: "uncordon-new", LAST_DRAIN: "drain-new"})
    record: Obj = {"metadata": {"name": "edge"}, "status": {"conditions": [resumed]}}
    now = datetime(2025, 12, 31, 23, minutes, tzinfo=UTC)
    plan = plan_agent(replace(there, record=record), now)
    see = "Please see machine-config-controller logs for more information"
    why = f"failed to uncordon node: edge after 10 minutes. {see}"
    assert events(plan) == ({"FailedToUncordon": why} if told else {})
    assert notes_of(plan) == ({STATE: "Degraded", REASON: why} if told else {})
    if minutes < 10:
        assert plan.outcome == Requeue(60.0, "the uncordon of edge", background=True)
    assert actions(plan_agent(there, now)) == [], "nobody can tell since when"


def test_a_boot_into_what_is_not_wanted_any_more_is_told() -> None:
    notes = {POST_ACTION: REBOOTING, REBOOT_FROM: "boot-1"}
    told = "Booting node edge, currentConfig old, desiredConfig new"
    assert events(plan_agent(observed(OLD, NEW, stored=OLD, **notes), NOW)) == {"BootResync": told}
    assert events(plan_agent(observed(OLD, NEW, stored=NEW, **notes), NOW)) == {}


@pytest.mark.parametrize(("pool", "told"), [("master", True), ("worker", False)])
def test_each_move_of_a_master_is_told_of_its_pool(pool: str, told: bool) -> None:
    there = observed(
        OLD, NEW, stored=NEW, **{STATE: "Working", DESIRED_DRAIN: "uncordon-new", LAST_DRAIN: "uncordon-new"}
    )
    there = replace(there, checked=Checked(None), pool={"metadata": {"name": pool}})
    found = [one for one in actions(plan_agent(there, NOW)) if isinstance(one, Emit)]
    changes = [one.message for one in found if one.event_reason == "AnnotationChange"]
    assert changes == ([f"Node edge now has {CURRENT}=new", f"Node edge now has {STATE}=Done"] if told else [])


def test_nobody_looks_for_drift_while_an_update_goes_on() -> None:
    there = replace(observed(OLD, NEW, stored=OLD), checked=Checked(None))
    assert events(plan_agent(there, NOW))["ConfigDriftMonitorStopped"] == "Config Drift Monitor stopped"
    again = replace(observed(OLD, NEW, stored=OLD, **{STATE: "Degraded"}), checked=Checked(None))
    assert "ConfigDriftMonitorStopped" not in events(plan_agent(again, NOW))
