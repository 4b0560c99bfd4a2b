"""What is ours: conditions, dependencies, deadlines, the guard on deletions, hooks on change, fixes that overtake."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.gitops.behaviours.sim import (
    APPS,
    DEPLOYMENTS,
    JOBS,
    MAPS,
    NOWHERE,
    Simulation,
    config,
    deployment,
    job,
    rows,
)

from syncline.kube.objects import Obj, dig

EVENTS = "/api/v1/namespaces/argocd/events"


def ours(obj: Obj, **annotations: Any) -> Obj:
    """The object with ``syncline.dev/`` annotations; underscores stand for dashes."""
    meta = obj["metadata"]
    named = {f"syncline.dev/{key.replace('_', '-')}": value for key, value in annotations.items()}
    return obj | {"metadata": meta | {"annotations": meta.get("annotations", {}) | named}}


def annotate(sim: Simulation, name: str = "app", **annotations: str | None) -> None:
    named = {f"syncline.dev/{key.replace('_', '-')}": value for key, value in annotations.items()}
    sim.patch(f"{APPS}/{name}", {"metadata": {"annotations": named}})
    sim.driver.settle()


# -- wait-for -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "condition",
    [
        {},
        {"jsonpath": ".data.k=v"},
        {"jsonpath": "{.data.k}"},
        {"cel": "object.data.k == 'v'"},
    ],
    ids=["there", "jsonpath=value", "jsonpath", "cel"],
)
def test_an_object_is_applied_once_what_it_waits_for_holds(condition: Obj) -> None:
    wanted = json.dumps({"kind": "ConfigMap", "name": "other"} | condition)
    sim = Simulation(config("first", sync_wave="-1"), ours(config("a"), wait_for=wanted))
    sim.begin()
    sim.driver.advance(60)
    assert sim.maps() == ["first"]
    assert sim.state()["message"] == "/ConfigMap/default/a waits: /ConfigMap/default/other is not there"
    sim.world.send("POST", MAPS, config("other"))
    assert sim.finish(limit_s=60)["phase"] == "Succeeded"
    assert sim.maps() == ["a", "first", "other"]


@pytest.mark.parametrize(
    "condition",
    [
        {"cel": "object.data.all(x, object.data.all(y, x + y != 'k'))"},
        {"jsonpath": "{.data.*}" * 10},
    ],
    ids=["cel", "jsonpath"],
)
def test_a_condition_that_takes_too_long_rests_and_says_so(condition: Obj) -> None:
    wanted = json.dumps({"kind": "ConfigMap", "name": "other"} | condition)
    sim = Simulation(ours(config("a"), wait_for=wanted))
    large = config("other") | {"data": {f"k{number}": "v" for number in range(500)}}
    sim.world.send("POST", MAPS, large)
    sim.begin()
    sim.driver.advance(1)
    said = sim.state()["message"]
    text = next(iter(condition.values()))
    assert f"{text} of /ConfigMap/default/other takes too long: one expression may take 5000 steps; it is" in said
    for number in range(20):
        sim.patch(f"{MAPS}/other", {"data": {"changed": str(number)}})
        sim.driver.advance(1)
    assert sim.state()["message"] == said, "it is not judged at each event"
    sim.driver.advance(60)
    assert sim.state()["message"] != said, "it is judged again"
    assert exhausted(sim) == [said.partition("; it is judged again")[0]], "and said once"
    sim.world.send("DELETE", f"{MAPS}/other", None)
    sim.world.send("POST", MAPS, config("other") | {"data": {"a": "b"}})
    assert sim.finish(limit_s=120)["phase"] == "Succeeded"


def exhausted(sim: Simulation) -> list[str]:
    """What Warnings of the Application say of conditions, each as often as it was said."""
    events = sim.world.send("GET", EVENTS)["items"]
    mine = [one for one in events if one["reason"] == "ConditionExhausted"]
    assert all((one["type"], one["involvedObject"]["kind"]) == ("Warning", "Application") for one in mine)
    return [one["message"] for one in mine for _ in range(one["count"])]


def test_conditions_that_take_too_long_together_say_so() -> None:
    cel = "object.data.all(x, object.data.all(y, true))"
    wanted = json.dumps([{"kind": "ConfigMap", "name": "other", "cel": cel}] * 20)
    sim = Simulation(ours(config("a"), wait_for=wanted))
    sim.world.send("POST", MAPS, config("other") | {"data": {f"k{number}": "v" for number in range(30)}})
    sim.begin()
    sim.driver.advance(1)
    assert "all expressions of one look may take 10000 steps together; it is judged again at" in sim.state()["message"]


def test_a_deadline_ends_what_rests() -> None:
    cel = "object.data.all(x, object.data.all(y, x + y != 'k'))"
    wanted = json.dumps({"kind": "ConfigMap", "name": "other", "cel": cel, "deadline": "20s"})
    sim = Simulation(ours(config("a"), wait_for=wanted))
    sim.world.send("POST", MAPS, config("other") | {"data": {f"k{number}": "v" for number in range(500)}})
    state = sim.sync(limit_s=100)
    assert state["phase"] == "Failed"
    assert "takes too long" in str(state)


def test_a_condition_of_a_status_is_waited_for() -> None:
    wanted = json.dumps({"kind": "Deployment", "name": "db", "condition": "Available"})
    sim = Simulation(deployment("db"), ours(config("a", sync_wave="1"), wait_for=wanted))
    assert sim.sync()["phase"] == "Succeeded"
    found = dig(sim.get(f"{DEPLOYMENTS}/db"), "status", "conditions")
    assert any(one["type"] == "Available" and one["status"] == "True" for one in found)


def test_a_deadline_of_a_condition_fails_the_operation_with_its_reason() -> None:
    wanted = json.dumps({"kind": "ConfigMap", "name": "other", "deadline": "2m"})
    sim = Simulation(ours(config("a"), wait_for=wanted))
    state = sim.sync(limit_s=600)
    assert (state["phase"], sim.maps()) == ("Failed", [])
    assert "/ConfigMap/default/a waited for 120 s: /ConfigMap/default/other is not there" in str(state)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("[", "wait-for"),
        ('{"kind": "Pod"}', "write {kind"),
        ('{"kind": "Pod", "name": "a", "until": "x"}', "unknown field 'until'"),
        ('{"kind": "Pod", "name": "a", "deadline": "soon"}', "soon"),
        ('{"kind": "Pod", "name": "a", "cel": "a", "condition": "b"}', "give one of"),
        ('{"kind": "Pod", "name": "a", "cel": "object.("}', "wait-for: cel: "),
        (json.dumps({"kind": "Pod", "name": "a", "cel": "true" + " " * 2000}), "found 2004 characters; at most 2000"),
        (json.dumps({"kind": "Pod", "name": "a", "jsonpath": "." + "a" * 2000}), "found 2001 characters; at most 2000"),
    ],
)
def test_a_condition_that_cannot_be_read_stops_the_sync_before_anything(text: str, told: str) -> None:
    sim = Simulation(config("first", sync_wave="-1"), ours(config("a"), wait_for=text))
    state = sim.sync(limit_s=60)
    assert (state["phase"], sim.maps()) == ("Failed", [])
    assert told in state["message"]


# -- deadlines ----------------------------------------------------------------------------------------------------


def test_a_gate_deadline_fails_the_operation_where_the_resource_asks_for_it() -> None:
    slow = ours(deployment("web", pod=NOWHERE), gate_deadline="3m", on_deadline="fail")
    sim = Simulation(slow, config("after", sync_wave="1"))
    state = sim.sync(limit_s=400)
    assert (state["phase"], sim.maps()) == ("Failed", [])
    assert rows(state)["Deployment/web"]["message"] == "not done after 180 s (syncline.dev/gate-deadline)"


def test_a_gate_deadline_may_let_the_operation_go_on() -> None:
    slow = ours(deployment("web", pod=NOWHERE), gate_deadline="3m", on_deadline="continue")
    sim = Simulation(slow, config("after", sync_wave="1"))
    assert sim.sync(limit_s=400)["phase"] == "Succeeded"
    assert sim.maps() == ["after"]


def test_a_gate_that_waits_for_more_than_a_quarter_of_an_hour_is_told_of_once() -> None:
    sim = Simulation(job("long", seconds=3600, hook="PreSync"), config("a"))
    sim.begin()
    sim.driver.advance(800)
    assert "GateOverdueWarning" not in sim.conditions()
    sim.driver.advance(600)
    assert "waiting for completion of hook batch/Job/long" in sim.conditions()["GateOverdueWarning"]
    events = [e for e in sim.world.send("GET", EVENTS)["items"] if e["reason"] == "GateOverdue"]
    assert len(events) == 1 and events[0].get("count", 1) == 1
    assert sim.finish(limit_s=4000)["phase"] == "Succeeded"
    assert "GateOverdueWarning" not in sim.conditions()


# -- depends-on ---------------------------------------------------------------------------------------------------


def test_an_application_is_synced_after_those_that_it_depends_on() -> None:
    sim = Simulation(config("a"))
    sim.create("db")
    annotate(sim, depends_on="db")
    sim.begin()
    sim.driver.advance(60)
    assert sim.maps() == []
    assert sim.state()["message"].startswith("waiting for Application argocd/db (OutOfSync")
    sim.sync(name="db")
    assert sim.finish(limit_s=60)["phase"] == "Succeeded"


def test_a_circle_of_dependencies_is_refused_before_anything_is_applied() -> None:
    sim = Simulation(config("a"))
    sim.create("b")
    annotate(sim, depends_on="b")
    annotate(sim, "b", depends_on="app")
    state = sim.sync(limit_s=60)
    assert (state["phase"], sim.maps()) == ("Error", [])
    assert "goes in a circle: argocd/app -> argocd/b -> argocd/app" in state["message"]


def test_a_dependency_that_does_not_exist_is_named() -> None:
    sim = Simulation(config("a"))
    annotate(sim, depends_on="nobody")
    sim.begin()
    sim.driver.advance(10)
    assert sim.state()["message"] == "waiting for Application argocd/nobody, which does not exist"


# -- the guard ----------------------------------------------------------------------------------------------------


def five() -> list[Obj]:
    return [config(f"c{number}") for number in range(5)]


def test_an_automated_sync_that_would_delete_most_is_confirmed_by_its_hash_first() -> None:
    sim = Simulation(*five(), automated={"prune": True})
    sim.driver.advance(10)
    sim.source.commit(config("c0"))
    sim.refresh()
    sim.driver.advance(60)
    text = sim.conditions()["SyncError"]
    assert "4 of 5 objects would be deleted" in text
    assert len(sim.maps()) == 5
    annotate(sim, confirm_deletions="another")
    assert len(sim.maps()) == 5
    annotate(sim, confirm_deletions=text.rpartition(" ")[2])
    sim.driver.advance(60)
    assert sim.maps() == ["c0"]


def test_the_guard_can_be_set_and_turned_off() -> None:
    sim = Simulation(*five(), automated={"prune": True})
    sim.driver.advance(10)
    annotate(sim, deletion_guard="2 10%")
    sim.source.commit(*five()[:3])
    sim.refresh()
    sim.driver.advance(60)
    assert len(sim.maps()) == 5
    annotate(sim, deletion_guard="off")
    sim.driver.advance(60)
    assert len(sim.maps()) == 3


def test_a_requested_sync_is_guarded_only_if_the_application_asks_for_it() -> None:
    sim = Simulation(*five())
    sim.sync()
    sim.source.commit(config("c0"))
    sim.refresh()
    annotate(sim, deletion_guard="4 50%")
    state = sim.sync({"prune": True})
    assert state["phase"] == "Error" and "4 of 5 objects would be deleted" in state["message"]
    annotate(sim, deletion_guard=None)
    assert sim.sync({"prune": True})["phase"] == "Succeeded"


# -- hooks on change ----------------------------------------------------------------------------------------------


def test_a_hook_may_run_only_when_its_inputs_changed() -> None:
    def hook(seconds: int) -> Obj:
        return ours(job("migrate", seconds=seconds, hook="PreSync"), run_hook="on-change", hook_inputs="ConfigMap/a")

    def ran(state: Obj) -> bool:
        return "Job/migrate" in rows(state)

    sim = Simulation(hook(1), config("a"), config("b"))
    assert ran(sim.sync())
    assert not ran(sim.sync())
    sim.source.commit(hook(1), config("a"), config("b", "2"))
    assert not ran(sim.sync())
    sim.source.commit(hook(1), config("a", "2"), config("b", "2"))
    assert ran(sim.sync())
    sim.source.commit(hook(2), config("a", "2"), config("b", "2"))
    assert ran(sim.sync())
    assert not ran(sim.sync())


def test_a_hook_on_change_that_failed_runs_again() -> None:
    failing = ours(job("migrate", code=1, hook="PreSync"), run_hook="on-change")
    sim = Simulation(failing, config("a"))
    assert sim.sync()["phase"] == "Failed"
    state = sim.sync()
    assert "Job/migrate" in rows(state) and state["phase"] == "Failed"


# -- fixes --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("annotation", "ended"), [("true", True), (None, False)])
def test_a_fix_overtakes_the_operation_that_it_repairs_where_it_may(annotation: str | None, ended: bool) -> None:
    sim = Simulation(job("pre", seconds=100_000, hook="PreSync"), config("a"), automated={})
    annotate(sim, overtake=annotation)
    sim.driver.advance(20)
    sim.source.commit(job("pre", seconds=1, hook="PreSync"), config("a", "fixed"))
    sim.driver.advance(600)
    assert (sim.maps() == ["a"]) is ended
    if ended:
        assert dig(sim.get(f"{MAPS}/a"), "data", "k") == "fixed"
        assert sim.names(JOBS) == ["pre"]
