"""Expressions of users beside the loop: a pass asks, goes on with the answers, waits for late ones, and lets what took
too long rest."""

from __future__ import annotations

import asyncio
import importlib.util
from collections.abc import Generator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from tests.gitops.behaviours.sim import DEPLOYMENTS, Simulation, config, deployment
from tests.gitops.behaviours.test_extensions import ours

from syncline.apply.asking import AnswerCache, Ask, AskHandler, Asking, Stopped
from syncline.apply.diff.jq import Addressed, JqQuestion, Overran
from syncline.argo.application import AppView
from syncline.assembly.scripts.expressions import Expressions
from syncline.base.action import Purpose, Unfinished, Work
from syncline.base.clock import VirtualClock
from syncline.control.plan import Plan, Result
from syncline.control.pools import Pools
from syncline.gitops.application.observing.observe import AppObserved, AppSettings
from syncline.gitops.application.plan import plan_application, settle_asked
from syncline.gitops.sync.kinds import KindTable
from syncline.kube.objects import Obj, ObjectRef, dig

ENDLESS = "def f: f; f"
NOW = datetime(2026, 1, 1, tzinfo=UTC)
APP = ObjectRef("argoproj.io", "Application", "argocd", "app")
QUESTION = JqQuestion((((), (".spec.replicas",)),), {"kind": "ConfigMap"})
ADDRESSED = Addressed(({"spec": {"replicas": True}},))


def ignoring(*expressions: str, kind: str = "Deployment", group: str = "apps") -> Obj:
    return {"ignoreDifferences": [{"group": group, "kind": kind, "jqPathExpressions": list(expressions)}]}


# -- a pass ---------------------------------------------------------------------------------------------------------


def test_what_an_expression_addresses_is_no_difference_a047() -> None:
    sim = Simulation(
        deployment("web", spec={"replicas": 1, "minReadySeconds": 1}), spec=ignoring('.spec["rep" + "licas"]')
    )
    assert sim.sync()["phase"] == "Succeeded"
    sim.patch(f"{DEPLOYMENTS}/web", {"spec": {"replicas": 2}})
    sim.refresh()
    assert sim.sync_status() == "Synced"
    sim.patch(f"{DEPLOYMENTS}/web", {"spec": {"minReadySeconds": 2}})
    sim.refresh()
    assert sim.sync_status() == "OutOfSync"


def test_ignored_fields_keep_their_live_values_in_a_sync() -> None:
    options = {"syncOptions": ["RespectIgnoreDifferences=true"]}
    sim = Simulation(deployment("web", spec={"replicas": 1}), spec=ignoring(".spec.replicas"), **options)
    assert sim.sync()["phase"] == "Succeeded"
    sim.patch(f"{DEPLOYMENTS}/web", {"spec": {"replicas": 3}})
    sim.source.commit(deployment("web", image="web:2", spec={"replicas": 1}))
    assert sim.sync()["phase"] == "Succeeded"
    assert dig(sim.get(f"{DEPLOYMENTS}/web"), "spec", "replicas") == 3


def test_what_took_too_long_is_named_and_rests_and_is_tried_again() -> None:
    sim = Simulation(config("one"), spec=ignoring(ENDLESS, kind="ConfigMap", group=""))
    assert sim.sync_status() == "Unknown" or sim.sync()["phase"] == "Error"
    sim.patch("/api/v1/namespaces/default/configmaps/kube-root-ca.crt", {"metadata": {"labels": {"a": "b"}}})
    first = sim.conditions().get("ComparisonError", "")
    assert "'def f: f; f' ran longer than 1 s" in first and "tried again after" in first
    sim.source.commit(config("one", "other"))
    sim.refresh()
    assert "took too long a short while ago" in sim.conditions()["ComparisonError"]
    sim.patch("/apis/argoproj.io/v1alpha1/namespaces/argocd/applications/app", {"spec": {"ignoreDifferences": None}})
    sim.driver.settle()
    assert "ComparisonError" not in sim.conditions()


def observed(asking: Asking | None = None, operation: bool = False) -> AppObserved:
    app: Obj = {
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "Application",
        "metadata": {"name": "app", "namespace": "argocd", "uid": "u", "resourceVersion": "1"},
        "spec": {"project": "default", **ignoring(".x")},
    }
    return AppObserved(AppView(app), None, None, None, {}, KindTable({}), AppSettings(), asking=asking)


def result(value: Any, *, ok: bool = True) -> Result:
    return Result(Ask(APP, "default", (QUESTION,), "why"), ok, value)


GOES_ON = {
    "answers are known from then on": ({QUESTION.key: ADDRESSED}, True, None),
    "late answers are waited for": (Asking(NOW, 3), True, Asking(NOW, 3)),
}


@pytest.mark.parametrize("name", GOES_ON)
def test_a_pass_goes_on_with_what_came_of_its_questions(name: str) -> None:
    value, ok, asking = GOES_ON[name]
    further = settle_asked(observed(), result(value, ok=ok), NOW)
    assert further is not None
    assert further[0].asking == asking
    assert (further[0].system.answers.known == {QUESTION.key: ADDRESSED}) == (asking is None)


def test_a_pass_whose_questions_found_no_place_ends_and_backs_off() -> None:
    assert settle_asked(observed(), result(None, ok=False), NOW) is None


def test_what_ran_out_may_be_asked_again_once_its_time_is_over() -> None:
    over = {QUESTION.key: Overran(".x", "ran longer than 1 s", NOW + timedelta(seconds=10))}
    seen = settle_asked(observed(), result(over), NOW)
    assert seen is not None
    answers = seen[0].system.answers
    assert answers.at(NOW).overran == over and answers.at(NOW + timedelta(seconds=10)).overran == {}


# -- scripts --------------------------------------------------------------------------------------------------------

SCRIPT = """
return {status = obj.data.k == "bad" and "Degraded" or "Healthy", message = "k is " .. obj.data.k}
"""
needs_lua = pytest.mark.skipif(importlib.util.find_spec("lupa") is None, reason="syncline[lua]")


def judged(*objects: Obj, costs_s: dict[str, float] | None = None, script: str = SCRIPT) -> Simulation:
    sim = Simulation(*objects, settings=AppSettings(script_costs_s=costs_s or {}))
    data = {"resource.customizations.health.ConfigMap": script}
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "argocd-cm"}, "data": data}
    sim.world.send("POST", "/api/v1/namespaces/argocd/configmaps", body)
    sim.driver.settle()
    return sim


def shown(sim: Simulation) -> dict[str, str]:
    return {row["name"]: row.get("health", {}).get("message", "") for row in dig(sim.app(), "status", "resources")}


@needs_lua
def test_a_script_is_asked_once_for_a_version_of_an_object() -> None:
    sim = judged(config("one", "a"), config("two", "b"))
    assert sim.sync()["phase"] == "Succeeded"
    sim.refresh()
    assert shown(sim) == {"one": "k is a", "two": "k is b"}
    before = len(sim.done("evaluate"))
    sim.refresh()
    assert len(sim.done("evaluate")) == before
    sim.source.commit(config("one", "c"), config("two", "b"))
    assert sim.sync()["phase"] == "Succeeded"
    sim.refresh()
    assert shown(sim) == {"one": "k is c", "two": "k is b"}
    assert [e.what for e in sim.world.journal if e.what.startswith("evaluate")][-1].endswith(
        "for 1 objects of argoproj.io/Application/argocd/app"
    )


@needs_lua
def test_until_scripts_have_answered_objects_are_as_healthy_as_they_were_and_gates_wait() -> None:
    names = ("one", "two", "three")
    sim = judged(*(config(name, "a") for name in names), costs_s={SCRIPT: 0.9})
    assert sim.sync()["phase"] == "Succeeded"
    sim.refresh()
    assert set(shown(sim).values()) == {"its health script has not answered yet"}
    sim.driver.advance(3)
    assert set(shown(sim).values()) == {"k is a"}
    sim.source.commit(*(config(name, "bad", sync_wave="0") for name in names), config("last", sync_wave="1"))
    sim.begin()
    sim.driver.advance(1)
    assert set(shown(sim).values()) == {"k is a", ""}, "what they were, which is no evidence for a gate"
    assert "last" not in sim.maps()
    assert sim.finish()["phase"] == "Failed"
    assert "last" not in sim.maps()


@needs_lua
def test_a_script_that_ran_out_says_so_and_when_it_is_tried_again() -> None:
    sim = judged(config("one", "a"), costs_s={SCRIPT: 1.5})
    assert sim.sync()["phase"] == "Succeeded"
    sim.refresh()
    assert "the script ran longer than 1 s; it is tried again after" in shown(sim)["one"]
    assert dig(sim.app(), "status", "health", "status") == "Unknown"


def test_what_a_condition_names_is_read_before_the_plan() -> None:
    waits = ours(config("one"), wait_for="{kind: ConfigMap, name: other}")
    sim = Simulation(waits)
    sim.begin()
    sim.driver.advance(5)
    assert "other" in sim.state()["message"] and sim.maps() == []
    sim.world.send("POST", "/api/v1/namespaces/default/configmaps", config("other"))
    assert sim.finish()["phase"] == "Succeeded"


# -- asking ---------------------------------------------------------------------------------------------------------


def asked(book: AnswerCache, clock: VirtualClock, *questions: JqQuestion) -> tuple[Generator[Work, Any, Any], Work]:
    handler = AskHandler(Expressions(), book, clock)
    steps = handler.handle(Ask(APP, "team", questions or (QUESTION,), "why"))
    return steps, next(steps)


def ended(steps: Generator[Work, Any, Any], answer: Any) -> Any:
    with pytest.raises(StopIteration) as stop:
        steps.send(answer)
    return stop.value.value


def test_evaluations_have_places_of_their_own_shared_by_projects() -> None:
    _, work = asked(AnswerCache(), VirtualClock(NOW))
    assert (work.purpose, work.project) == (Purpose.EVALUATION, "team")


def test_late_answers_are_waited_for_by_name_and_kept_when_they_come() -> None:
    book = AnswerCache()
    steps, work = asked(book, VirtualClock(NOW))
    assert ended(steps, Unfinished()) == Asking(NOW, 1) == book.asking(APP)
    assert work.late is not None
    work.late.keep([ADDRESSED])
    assert book.asking(APP) is None
    assert book.of(APP).of(QUESTION) == ADDRESSED


def test_what_ran_out_rests_twice_as_long_each_time_whatever_the_object() -> None:
    book, clock = AnswerCache(), VirtualClock(NOW)
    for pause in (10, 20, 40):
        steps, _ = asked(book, clock)
        found = ended(steps, [Stopped(".spec.replicas", "ran longer than 1 s")])
        until = clock.now() + timedelta(seconds=pause)
        assert found == {QUESTION.key: Overran(".spec.replicas", "ran longer than 1 s", until)}
        other = JqQuestion(QUESTION.rules, {"kind": "Secret"})
        handler = AskHandler(Expressions(), book, clock)
        resting = ended(handler.handle(Ask(APP, "team", (other,), "why")), None)
        assert resting == {other.key: Overran(".spec.replicas", "took too long a short while ago", until)}
        clock.set(until)


def test_answers_of_one_application_crowd_out_those_of_none_that_is_newer() -> None:
    book = AnswerCache(limit=4)
    for number in range(3):
        book.learn(APP._replace(name=str(number)), {f"{number}-{one}": ADDRESSED for one in range(2)})
    kept = [len(book.of(APP._replace(name=str(number))).known) for number in range(3)]
    assert kept == [0, 2, 2]


def test_the_loop_goes_round_while_an_expression_computes() -> None:
    question = JqQuestion((((), (ENDLESS,)),), {"kind": "ConfigMap"})

    async def beside() -> tuple[Any, int]:
        expressions = Expressions(expression_s=0.3)
        steps = AskHandler(expressions, AnswerCache(), VirtualClock(NOW)).handle(Ask(APP, "p", (question,), "why"))
        running = asyncio.ensure_future(Pools().run(next(steps)))
        turns = 0
        while not running.done():
            await asyncio.sleep(0.001)
            turns += 1
        expressions.close()
        return running.result(), turns

    found, turns = asyncio.run(beside())
    assert isinstance(found, list | Unfinished)
    assert turns >= 20, "0.3 seconds of a processor held nobody up"


def test_a_plan_of_an_application_that_waits_asks_no_more() -> None:
    plan: Plan = plan_application(observed(Asking(NOW, 3)), NOW)
    assert not any(isinstance(action, Ask) for action in plan.actions)
