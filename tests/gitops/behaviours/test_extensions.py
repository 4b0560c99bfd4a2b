"""What is ours: conditions, dependencies, deadlines, the guard on deletions, hooks on change, fixes that overtake."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.gitops.behaviours.play import APPS, DEPLOYMENTS, JOBS, MAPS, NOWHERE, Play, config, deployment, job, rows

from syncline.kube.objects import Obj, dig

EVENTS = "/api/v1/namespaces/argocd/events"


def ours(obj: Obj, **annotations: Any) -> Obj:
    """The object with ``syncline.dev/`` annotations; underscores stand for dashes."""
    meta = obj["metadata"]
    named = {f"syncline.dev/{key.replace('_', '-')}": value for key, value in annotations.items()}
    return obj | {"metadata": meta | {"annotations": meta.get("annotations", {}) | named}}


def annotate(play: Play, name: str = "app", **annotations: str | None) -> None:
    named = {f"syncline.dev/{key.replace('_', '-')}": value for key, value in annotations.items()}
    play.patch(f"{APPS}/{name}", {"metadata": {"annotations": named}})
    play.driver.settle()


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
    play = Play(config("first", sync_wave="-1"), ours(config("a"), wait_for=wanted))
    play.begin()
    play.driver.advance(60)
    assert play.maps() == ["first"]
    assert play.state()["message"] == "/ConfigMap/default/a waits: /ConfigMap/default/other is not there"
    play.world.send("POST", MAPS, config("other"))
    assert play.finish(limit_s=60)["phase"] == "Succeeded"
    assert play.maps() == ["a", "first", "other"]


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
    play = Play(ours(config("a"), wait_for=wanted))
    large = config("other") | {"data": {f"k{number}": "v" for number in range(500)}}
    play.world.send("POST", MAPS, large)
    play.begin()
    play.driver.advance(1)
    said = play.state()["message"]
    text = next(iter(condition.values()))
    assert f"{text} of /ConfigMap/default/other takes too long: one expression may take 5000 steps; it is" in said
    for number in range(20):
        play.patch(f"{MAPS}/other", {"data": {"changed": str(number)}})
        play.driver.advance(1)
    assert play.state()["message"] == said, "it is not judged at each event"
    play.driver.advance(60)
    assert play.state()["message"] != said, "it is judged again"
    assert exhausted(play) == [said.partition("; it is judged again")[0]], "and said once"
    play.world.send("DELETE", f"{MAPS}/other", None)
    play.world.send("POST", MAPS, config("other") | {"data": {"a": "b"}})
    assert play.finish(limit_s=120)["phase"] == "Succeeded"


def exhausted(play: Play) -> list[str]:
    """What Warnings of the Application say of conditions, each as often as it was said."""
    events = play.world.send("GET", EVENTS)["items"]
    mine = [one for one in events if one["reason"] == "ConditionExhausted"]
    assert all((one["type"], one["involvedObject"]["kind"]) == ("Warning", "Application") for one in mine)
    return [one["message"] for one in mine for _ in range(one["count"])]


def test_conditions_that_take_too_long_together_say_so() -> None:
    cel = "object.data.all(x, object.data.all(y, true))"
    wanted = json.dumps([{"kind": "ConfigMap", "name": "other", "cel": cel}] * 20)
    play = Play(ours(config("a"), wait_for=wanted))
    play.world.send("POST", MAPS, config("other") | {"data": {f"k{number}": "v" for number in range(30)}})
    play.begin()
    play.driver.advance(1)
    assert "all expressions of one look may take 10000 steps together; it is judged again at" in play.state()["message"]


def test_a_deadline_ends_what_rests() -> None:
    cel = "object.data.all(x, object.data.all(y, x + y != 'k'))"
    wanted = json.dumps({"kind": "ConfigMap", "name": "other", "cel": cel, "deadline": "20s"})
    play = Play(ours(config("a"), wait_for=wanted))
    play.world.send("POST", MAPS, config("other") | {"data": {f"k{number}": "v" for number in range(500)}})
    state = play.sync(limit_s=100)
    assert state["phase"] == "Failed"
    assert "takes too long" in str(state)


def test_a_condition_of_a_status_is_waited_for() -> None:
    wanted = json.dumps({"kind": "Deployment", "name": "db", "condition": "Available"})
    play = Play(deployment("db"), ours(config("a", sync_wave="1"), wait_for=wanted))
    assert play.sync()["phase"] == "Succeeded"
    found = dig(play.get(f"{DEPLOYMENTS}/db"), "status", "conditions")
    assert any(one["type"] == "Available" and one["status"] == "True" for one in found)


def test_a_deadline_of_a_condition_fails_the_operation_with_its_reason() -> None:
    wanted = json.dumps({"kind": "ConfigMap", "name": "other", "deadline": "2m"})
    play = Play(ours(config("a"), wait_for=wanted))
    state = play.sync(limit_s=600)
    assert (state["phase"], play.maps()) == ("Failed", [])
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
    play = Play(config("first", sync_wave="-1"), ours(config("a"), wait_for=text))
    state = play.sync(limit_s=60)
    assert (state["phase"], play.maps()) == ("Failed", [])
    assert told in state["message"]


# -- deadlines ----------------------------------------------------------------------------------------------------


def test_a_gate_deadline_fails_the_operation_where_the_resource_asks_for_it() -> None:
    slow = ours(deployment("web", pod=NOWHERE), gate_deadline="3m", on_deadline="fail")
    play = Play(slow, config("after", sync_wave="1"))
    state = play.sync(limit_s=400)
    assert (state["phase"], play.maps()) == ("Failed", [])
    assert rows(state)["Deployment/web"]["message"] == "not done after 180 s (syncline.dev/gate-deadline)"


def test_a_gate_deadline_may_let_the_operation_go_on() -> None:
    slow = ours(deployment("web", pod=NOWHERE), gate_deadline="3m", on_deadline="continue")
    play = Play(slow, config("after", sync_wave="1"))
    assert play.sync(limit_s=400)["phase"] == "Succeeded"
    assert play.maps() == ["after"]


def test_a_gate_that_waits_for_more_than_a_quarter_of_an_hour_is_told_of_once() -> None:
    play = Play(job("long", seconds=3600, hook="PreSync"), config("a"))
    play.begin()
    play.driver.advance(800)
    assert "GateOverdueWarning" not in play.conditions()
    play.driver.advance(600)
    assert "waiting for completion of hook batch/Job/long" in play.conditions()["GateOverdueWarning"]
    events = [e for e in play.world.send("GET", EVENTS)["items"] if e["reason"] == "GateOverdue"]
    assert len(events) == 1 and events[0].get("count", 1) == 1
    assert play.finish(limit_s=4000)["phase"] == "Succeeded"
    assert "GateOverdueWarning" not in play.conditions()


# -- depends-on ---------------------------------------------------------------------------------------------------


def test_an_application_is_synced_after_those_that_it_depends_on() -> None:
    play = Play(config("a"))
    play.create("db")
    annotate(play, depends_on="db")
    play.begin()
    play.driver.advance(60)
    assert play.maps() == []
    assert play.state()["message"].startswith("waiting for Application argocd/db (OutOfSync")
    play.sync(name="db")
    assert play.finish(limit_s=60)["phase"] == "Succeeded"


def test_a_circle_of_dependencies_is_refused_before_anything_is_applied() -> None:
    play = Play(config("a"))
    play.create("b")
    annotate(play, depends_on="b")
    annotate(play, "b", depends_on="app")
    state = play.sync(limit_s=60)
    assert (state["phase"], play.maps()) == ("Error", [])
    assert "goes in a circle: argocd/app -> argocd/b -> argocd/app" in state["message"]


def test_a_dependency_that_does_not_exist_is_named() -> None:
    play = Play(config("a"))
    annotate(play, depends_on="nobody")
    play.begin()
    play.driver.advance(10)
    assert play.state()["message"] == "waiting for Application argocd/nobody, which does not exist"


# -- the guard ----------------------------------------------------------------------------------------------------


def five() -> list[Obj]:
    return [config(f"c{number}") for number in range(5)]


def test_an_automated_sync_that_would_delete_most_is_confirmed_by_its_hash_first() -> None:
    play = Play(*five(), automated={"prune": True})
    play.driver.advance(10)
    play.source.commit(config("c0"))
    play.refresh()
    play.driver.advance(60)
    text = play.conditions()["SyncError"]
    assert "4 of 5 objects would be deleted" in text
    assert len(play.maps()) == 5
    annotate(play, confirm_deletions="another")
    assert len(play.maps()) == 5
    annotate(play, confirm_deletions=text.rpartition(" ")[2])
    play.driver.advance(60)
    assert play.maps() == ["c0"]


def test_the_guard_can_be_set_and_turned_off() -> None:
    play = Play(*five(), automated={"prune": True})
    play.driver.advance(10)
    annotate(play, deletion_guard="2 10%")
    play.source.commit(*five()[:3])
    play.refresh()
    play.driver.advance(60)
    assert len(play.maps()) == 5
    annotate(play, deletion_guard="off")
    play.driver.advance(60)
    assert len(play.maps()) == 3


def test_a_requested_sync_is_guarded_only_if_the_application_asks_for_it() -> None:
    play = Play(*five())
    play.sync()
    play.source.commit(config("c0"))
    play.refresh()
    annotate(play, deletion_guard="4 50%")
    state = play.sync({"prune": True})
    assert state["phase"] == "Error" and "4 of 5 objects would be deleted" in state["message"]
    annotate(play, deletion_guard=None)
    assert play.sync({"prune": True})["phase"] == "Succeeded"


# -- hooks on change ----------------------------------------------------------------------------------------------


def test_a_hook_may_run_only_when_its_inputs_changed() -> None:
    def hook(seconds: int) -> Obj:
        return ours(job("migrate", seconds=seconds, hook="PreSync"), run_hook="on-change", hook_inputs="ConfigMap/a")

    def ran(state: Obj) -> bool:
        return "Job/migrate" in rows(state)

    play = Play(hook(1), config("a"), config("b"))
    assert ran(play.sync())
    assert not ran(play.sync())
    play.source.commit(hook(1), config("a"), config("b", "2"))
    assert not ran(play.sync())
    play.source.commit(hook(1), config("a", "2"), config("b", "2"))
    assert ran(play.sync())
    play.source.commit(hook(2), config("a", "2"), config("b", "2"))
    assert ran(play.sync())
    assert not ran(play.sync())


def test_a_hook_on_change_that_failed_runs_again() -> None:
    failing = ours(job("migrate", code=1, hook="PreSync"), run_hook="on-change")
    play = Play(failing, config("a"))
    assert play.sync()["phase"] == "Failed"
    state = play.sync()
    assert "Job/migrate" in rows(state) and state["phase"] == "Failed"


# -- fixes --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("annotation", "ended"), [("true", True), (None, False)])
def test_a_fix_overtakes_the_operation_that_it_repairs_where_it_may(annotation: str | None, ended: bool) -> None:
    play = Play(job("pre", seconds=100_000, hook="PreSync"), config("a"), automated={})
    annotate(play, overtake=annotation)
    play.driver.advance(20)
    play.source.commit(job("pre", seconds=1, hook="PreSync"), config("a", "fixed"))
    play.driver.advance(600)
    assert (play.maps() == ["a"]) is ended
    if ended:
        assert dig(play.get(f"{MAPS}/a"), "data", "k") == "fixed"
        assert play.names(JOBS) == ["pre"]
