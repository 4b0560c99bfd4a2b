"""Each law can be broken: agents and controllers that are made worse on purpose are found out by it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from tests.machineconfig.faults.laws import LAWS
from tests.machineconfig.faults.schedule import read
from tests.machineconfig.faults.stories import EXPLORER, STORIES
from tests.machineconfig.faults.world import FaultWorld
from tests.machineconfig.room import NODES

import syncline.machineconfig.agent.controller as controller
import syncline.machineconfig.agent.files.script as script
import syncline.machineconfig.agent.files.writing as writing
import syncline.machineconfig.agent.handler as handling
import syncline.machineconfig.agent.planning.plan as agent
import syncline.machineconfig.agent.planning.work as work
import syncline.machineconfig.drain.plan as drain
import syncline.machineconfig.nodes.timeline as timeline
import syncline.machineconfig.pools.plan as pools
import syncline.machineconfig.pools.rollout as rollout
from syncline.kube.objects import Obj
from syncline.machineconfig.names import REASON
from syncline.rehearsal.explore import shrunk

Patch = pytest.MonkeyPatch
Mutation = Callable[[Patch], None]


def _after(patch: Patch, module: Any, name: str, change: Callable[[Any], Any]) -> None:
    """What a function answers is changed."""
    original = getattr(module, name)
    patch.setattr(module, name, lambda *arguments, **named: change(original(*arguments, **named)))


def too_many_at_once(patch: Patch) -> None:
    patch.setattr(rollout, "max_unavailable", lambda pool, nodes: nodes)


def cordoned_without_a_word(patch: Patch) -> None:
    patch.setattr(drain, "_phase", lambda *_: ())


def person_overruled(patch: Patch) -> None:
    patch.setattr(drain, "_cordoned_by_others", lambda _node: False)


def never_drained(patch: Patch) -> None:
    patch.setattr(work, "drain_needed", lambda *_: False)


def written_too_early(patch: Patch) -> None:
    original = script.Script.annotate

    def annotate(self: Any, notes: Any) -> None:
        original(self, {key: value for key, value in notes.items() if key != agent.WRITING})

    patch.setattr(script.Script, "annotate", annotate)


def nothing_written(patch: Patch) -> None:
    patch.setattr(handling, "update_files", lambda *_, **__: None)
    patch.setattr(handling, "drift_of", lambda *_: None)
    patch.setattr(handling, "boot_difference", lambda *_, **__: None)


def originals_deleted(patch: Patch) -> None:
    patch.setattr(writing, "_is_not_ours", lambda *_: False)


def rebooted_twice(patch: Patch) -> None:
    def _after_reboot(observed: Any, now: Any) -> Any:
        have = dict(observed.node["metadata"]["annotations"])
        if observed.facts.boot_id != have[agent.REBOOT_FROM] and "test/twice" not in have:
            step = agent.RebootHost(observed.node["metadata"]["name"], f"{have[agent.DESIRED]}.again", "once more")
            plan = agent.Script(observed, now, "twice")
            plan.annotate({"test/twice": "", agent.REBOOT_FROM: observed.facts.boot_id})
            plan.do(step)
            return plan.plan()
        return first(observed, now)

    first = agent._after_reboot
    patch.setattr(agent, "_after_reboot", _after_reboot)


def failing_without_a_reason(patch: Patch) -> None:
    original = script.Script.annotate

    def annotate(self: Any, notes: Any) -> None:
        original(self, {key: "" if key == REASON else value for key, value in notes.items()})

    patch.setattr(script.Script, "annotate", annotate)


def configs_forgotten(patch: Patch) -> None:
    def begin(self: Any, world: FaultWorld) -> None:
        first(self, world)
        world.injector.agenda.after(5, lambda: world.send("DELETE", _config_in_use(world)))

    first = type(STORIES["gentle"]).begin
    patch.setattr(type(STORIES["gentle"]), "begin", begin)


def _config_in_use(world: FaultWorld) -> str:
    current = world.get(f"{NODES}/worker-0")["metadata"]["annotations"][agent.CURRENT]
    return f"/apis/machineconfiguration.openshift.io/v1/machineconfigs/{current}"


def miscounted(patch: Patch) -> None:
    def one_more(status: Obj) -> Obj:
        return status | {"updatedMachineCount": status["updatedMachineCount"] + 1}

    _after(patch, rollout, "pool_status", one_more)


def updated_too_early(patch: Patch) -> None:
    def says(status: Obj) -> Obj:
        for each in status["conditions"]:
            each["status"] = "True" if each["type"] == "Updated" else each["status"]
        return status

    _after(patch, rollout, "pool_status", says)


def restless(patch: Patch) -> None:
    original = pools.plan

    def plan(observed: Any, now: Any, settings: Any) -> Any:
        made = original(observed, now, settings)
        writes = [
            pools.Patch(pools.NODE, "", each["metadata"]["name"], _tick(now), "tick") for each in observed.world.nodes
        ]
        return pools.replace(made, steps=(*made.steps, tuple(writes)), outcome=pools.Requeue(60, "tick"))

    patch.setattr(pools, "plan", plan)


def _tick(now: Any) -> Obj:
    return {"metadata": {"annotations": {"test/tick": str(now)}}}


def chatty(patch: Patch) -> None:
    original = agent.plan_agent

    def plan(observed: Any, now: Any, settings: Any) -> Any:
        made = original(observed, now, settings)
        said = [agent.Script(observed, now, "again") for _ in range(40)]
        for each in said:
            each.annotate({})
        return agent.replace(made, steps=(*(step for each in said for step in each.steps), *made.steps))

    patch.setattr(controller, "plan_agent", plan)


def stuck(patch: Patch) -> None:
    patch.setattr(drain, "_uncordon", lambda *_: drain.Plan(why="not today"))


def holds_ignored(patch: Patch) -> None:
    patch.setattr(pools, "_held", lambda *_: {})


def services_forgotten(patch: Patch) -> None:
    patch.setattr(handling, "_run_service", lambda *_: None)


def plays_forgotten(patch: Patch) -> None:
    patch.setattr(work, "plays_due", lambda *_: ())
    patch.setattr(agent, "unplayed", lambda _observed: False)


def ends_untold(patch: Patch) -> None:
    patch.setattr(timeline, "_has_ended", lambda _spans: True)


MUTANTS: dict[str, tuple[Mutation, str]] = {
    "budget": (too_many_at_once, "pool; undisturbed"),
    "cordon": (cordoned_without_a_word, "removal; undisturbed"),
    "person": (person_overruled, "gentle; cordon@30"),
    "undrained": (never_drained, "removal; undisturbed"),
    "resting": (written_too_early, "removal; undisturbed"),
    "done": (nothing_written, "gentle; undisturbed"),
    "played": (plays_forgotten, "playbook; undisturbed"),
    "originals": (originals_deleted, "update; kill@1~usermod"),
    "reboots": (rebooted_twice, "removal; undisturbed"),
    "reason": (failing_without_a_reason, "gentle; host-error@1"),
    "referenced": (configs_forgotten, "gentle; undisturbed"),
    "counts": (miscounted, "gentle; undisturbed"),
    "conditions": (updated_too_early, "gentle; undisturbed"),
    "held": (holds_ignored, "gentle; hold@2"),
    "foretold": (services_forgotten, "gentle; undisturbed"),
    "timeline": (ends_untold, "gentle; clock+86400@4"),
    "bounded": (chatty, "gentle; undisturbed"),
    "idle": (restless, "gentle; undisturbed"),
    "converges": (stuck, "removal; undisturbed"),
}


def test_every_law_has_a_mutant() -> None:
    assert set(MUTANTS) == {law.name for law in LAWS}


def test_a_schedule_that_breaks_a_law_is_shrunk_to_what_breaks_it(monkeypatch: pytest.MonkeyPatch) -> None:
    holds_ignored(monkeypatch)
    monkeypatch.setattr(FaultWorld, "foretell", lambda *_: None)
    found = shrunk(read("gentle/3; twice@1, hold@4"), lambda each: "held" in EXPLORER.simulate(each).broken)
    assert [fault.kind for fault in found.faults] == ["hold"] and not found.seed


@pytest.mark.parametrize("law", MUTANTS)
def test_a_law_is_broken_by_who_does_not_keep_it(law: str, monkeypatch: pytest.MonkeyPatch) -> None:
    mutate, line = MUTANTS[law]
    schedule = read(line)
    world = STORIES[schedule.scenario].world()
    mutate(monkeypatch)
    if law != "foretold":  # a forecast by who does not keep laws says nothing
        monkeypatch.setattr(FaultWorld, "foretell", lambda *_: None)
    outcome = EXPLORER.simulate(schedule, 60, world)
    assert law in outcome.broken, outcome.line()
