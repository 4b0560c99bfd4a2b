"""An operation is a trace: phases, waves, tasks, hooks and waits are its spans, in the time of the driver."""

from __future__ import annotations

import json
from dataclasses import asdict

import pytest
from tests.gitops.behaviours.sim import APPS, NOWHERE, Simulation, config, deployment, job
from tests.gitops.behaviours.test_crash import Died, Dying
from tests.gitops.behaviours.test_destinations import Far

from syncline.base.clock import EPOCH
from syncline.kube.client import Transport
from syncline.kube.objects import Obj
from syncline.telemetry.spans import Span
from syncline.telemetry.tracing import Tracer

CANARY = "c4n4ry-v4lue"


def traced(sim: Simulation) -> list[Span]:
    spans: list[Span] = []
    loop = sim.world.gitops_actor.loop
    loop.observers.append(Tracer(spans.append, loop.now))
    return spans


def secret(name: str, value: str, **fields: object) -> Obj:
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "stringData": {"k": value}, **fields}


def rollout() -> tuple[Simulation, list[Span]]:
    objects = (
        job("pre", hook="PreSync"),
        config("a"),
        deployment("web"),
        config("late", sync_wave="1"),
        job("post", seconds=4, hook="PostSync"),
    )
    sim = Simulation(*objects)
    spans = traced(sim)
    sim.sync(initiatedBy={"username": "jo"})
    return sim, spans


def tree(spans: list[Span]) -> list[str]:
    """Name and seconds since the epoch of each span, indented below its parent, without what renders and compares."""
    lines: list[str] = []

    def below(parent: str, depth: int) -> None:
        for span in spans:
            if span.parent == parent and span.name not in ("render", "compare", "dry run"):
                began, ended = ((at - EPOCH).total_seconds() for at in (span.began, span.ended))
                lines.append(f"{'  ' * depth}{span.name} {began:g}-{ended:g}")
                below(span.id, depth + 1)

    below("", 0)
    return lines


def named(spans: list[Span], name: str) -> Span:
    (found,) = [span for span in spans if span.name == name]
    return found


def test_a_sync_is_a_trace_of_phases_waves_tasks_hooks_and_waits() -> None:
    _, spans = rollout()
    assert tree(spans) == [
        "sync argocd/app 0-9.5",
        "  PreSync 0-3.5",
        "    PreSync wave 0 0-3.5",
        "      wait for completion of a hook 0-3.5",
        "      hook Job/pre 0-3.5",
        "  Sync 3.5-5",
        "    Sync wave 0 3.5-5",
        "      apply ConfigMap/a 3.5-3.5",
        "      apply Deployment/web 3.5-3.5",
        "      wait for healthy state 3.5-5",
        "    Sync wave 1 5-5",
        "      apply ConfigMap/late 5-5",
        "      wait for healthy state 5-5",
        "  PostSync 5-9.5",
        "    PostSync wave 0 5-9.5",
        "      wait for completion of a hook 5-9.5",
        "      hook Job/post 5-9.5",
    ]
    assert {span.name for span in spans} > {"render", "compare", "dry run"}


def test_the_root_says_what_was_synced_and_who_asked() -> None:
    sim, spans = rollout()
    assert spans[-1].parent == ""
    assert spans[-1].attributes == {
        "syncline.application.name": "app",
        "syncline.application.namespace": "argocd",
        "syncline.project": "default",
        "syncline.revision": sim.source.head,
        "syncline.initiated_by": "jo",
        "syncline.phase": "Succeeded",
        "syncline.message": "successfully synced (no more tasks)",
        "syncline.attempt": 0,
    }


def test_a_task_says_what_was_done_to_what_and_a_wait_for_what() -> None:
    _, spans = rollout()
    assert named(spans, "apply Deployment/web").attributes == {
        "syncline.attempt": 0,
        "syncline.action": "apply",
        "syncline.resource.group": "apps",
        "syncline.resource.kind": "Deployment",
        "syncline.resource.namespace": "default",
        "syncline.resource.name": "web",
        "syncline.phase": "Sync",
        "syncline.result": "Synced",
        "syncline.message": "deployment.apps/web created",
    }
    waits = [span.attributes["syncline.wait.for"] for span in spans if span.name == "wait for healthy state"]
    assert waits[0] == ("/ConfigMap/default/a", "apps/Deployment/default/web")


def test_every_span_has_its_own_id_and_a_parent_in_the_trace_that_encloses_it() -> None:
    _, spans = rollout()
    by_id = {span.id: span for span in spans}
    assert len(by_id) == len(spans) and len({span.trace for span in spans}) == 1
    for span in spans[:-1]:
        parent = by_id[span.parent]
        assert parent.began <= span.began <= span.ended <= parent.ended, span.name


def test_one_seed_gives_the_same_trace_byte_for_byte() -> None:
    texts = [json.dumps([asdict(span) for span in rollout()[1]], default=str) for _ in range(2)]
    assert texts[0] == texts[1]


def test_a_pruned_object_and_a_wait_for_its_deletion() -> None:
    sim = Simulation(config("a"), config("b"))
    sim.sync()
    spans = traced(sim)
    sim.source.commit(config("a"))
    sim.refresh()
    sim.sync({"prune": True})
    assert named(spans, "prune ConfigMap/b").attributes["syncline.result"] == "Pruned"


def test_a_failed_hook_fails_its_wave_its_phase_and_the_operation_and_a_retry_goes_on_in_the_trace() -> None:
    sim = Simulation(config("a"), job("bad", code=1, hook="Sync"))
    spans = traced(sim)
    sim.sync(retry={"limit": 1})
    failed = {span.name: span.failure for span in spans if span.failure is not None}
    told = "Job has reached the specified backoff limit"
    ended = "one or more synchronization tasks completed unsuccessfully (retried 1 times)."
    assert failed == {
        "hook Job/bad": told,
        "Sync wave 0": f"batch/Job/default/bad: {told}",
        "Sync": f"batch/Job/default/bad: {told}",
        "sync argocd/app": ended,
    }
    assert [span.attributes["syncline.attempt"] for span in spans if span.name == "Sync"] == [0, 1]
    wait = named(spans, "wait for the next attempt")
    assert (wait.ended - wait.began).total_seconds() >= 5
    assert len({span.trace for span in spans}) == 1 and len({span.id for span in spans}) == len(spans)


def test_a_process_that_takes_over_goes_on_in_the_same_trace() -> None:
    sim = Simulation(job("pre", seconds=60, hook="PreSync"), config("a"))
    before = traced(sim)
    sim.begin()
    sim.driver.advance(10)
    sim.world.start_gitops()
    after = traced(sim)
    sim.driver.settle()
    sim.finish()
    assert before and {span.trace for span in before} == {span.trace for span in after}
    assert tree([*before, *after]) == [
        "sync argocd/app 0-61.5",
        "  PreSync 0-61.5",
        "    PreSync wave 0 0-61.5",
        "      wait for completion of a hook 0-61.5",
        "      hook Job/pre 0-61.5",
        "  Sync 61.5-61.5",
        "    Sync wave 0 61.5-61.5",
        "      apply ConfigMap/a 61.5-61.5",
    ]
    hook = named(after, "hook Job/pre")
    assert hook.attributes["syncline.resumed"] is True and hook.attributes["syncline.result"] == "Succeeded"


def test_wherever_a_process_dies_the_two_halves_are_one_trace() -> None:
    """Every span has a parent, no two have one id, and of what the dead process wrote at last only tasks are lost."""
    objects = (job("pre", hook="PreSync"), config("a"), config("b", sync_wave="1"))
    whole = {"PreSync", "PreSync wave 0", "Sync", "Sync wave 0", "Sync wave 1"}
    for last in range(1, 100):
        sim = Simulation(*objects)
        seams: list[Dying] = []

        def wrap(inner: Transport, last: int = last, seams: list[Dying] = seams) -> Transport:
            seams.append(Dying(inner, last))
            return seams[-1]

        sim.world.start_gitops(wrap)
        before = traced(sim)
        sim.driver.settle()
        try:
            sim.begin()
            sim.finish()
            break
        except Died:
            ended = sim.ended()
            sim.world.start_gitops()
            after = traced(sim)
            sim.driver.settle()
            sim.finish()
        spans = [*before, *after]
        ids = {span.id for span in spans}
        assert len({span.trace for span in spans}) == 1 and len(ids) == len(spans), last
        if not ended:
            assert [span.name for span in spans if span.parent not in ids] == ["sync argocd/app"], last
            assert {span.name for span in spans} >= whole, last
    assert last > 10


def test_a_hook_of_two_phases_is_a_span_in_each() -> None:
    sim = Simulation(config("a"), job("both", hook="PreSync,PostSync"))
    spans = traced(sim)
    sim.sync()
    by_id = {span.id: span.name for span in spans}
    hooks = [span for span in spans if span.name == "hook Job/both"]
    assert [by_id[span.parent] for span in hooks] == ["PreSync wave 0", "PostSync wave 0"]
    assert len(by_id) == len(spans)


def test_what_is_done_in_another_cluster_is_told_alike() -> None:
    far = Far(config("a"), config("b", sync_wave="1"))
    spans = traced(far.sim)
    far.sim.sync()
    assert {span.name for span in spans} >= {"Sync wave 0", "apply ConfigMap/a", "Sync wave 1", "apply ConfigMap/b"}
    assert named(spans, "dry run").attributes["syncline.objects"] == 2


def test_operations_one_after_the_other_are_traces_of_their_own() -> None:
    sim = Simulation(config("a"))
    spans = traced(sim)
    sim.sync()
    sim.sync()
    assert len({span.trace for span in spans}) == 2
    assert [span.name for span in spans if not span.parent] == ["sync argocd/app"] * 2


def test_an_application_that_is_deleted_ends_its_trace() -> None:
    sim = Simulation(config("a"), deployment("web", pod=NOWHERE), config("late", sync_wave="1"))
    spans = traced(sim)
    sim.begin()
    sim.driver.advance(5)
    sim.world.send("DELETE", f"{APPS}/app")
    sim.driver.advance(5)
    assert spans[-1].failure == "the Application was deleted"
    assert named(spans, "wait for healthy state").parent == named(spans, "Sync wave 0").id


def test_an_operation_that_only_others_work_on_is_not_traced() -> None:
    sim = Simulation(config("a"))
    spans: list[Span] = []
    loop = sim.world.gitops_actor.loop
    loop.observers.append(Tracer(spans.append, loop.now, lambda _ref: False))
    sim.sync()
    assert spans == []


@pytest.mark.parametrize("broken", [{}, {"data": {"k": CANARY}}, {"data": {"k": {"deep": CANARY}}}])
def test_no_value_of_a_secret_is_in_any_span(broken: Obj) -> None:
    """Neither of one that is applied nor of one that is refused."""
    sim = Simulation(secret("s", CANARY), config("a"))
    spans = traced(sim)
    sim.sync()
    sim.source.commit(secret("s", CANARY + "-2", **broken), config("a", sync_wave="1"))
    sim.refresh()
    sim.sync()
    results = [span.attributes["syncline.result"] for span in spans if span.name == "apply Secret/s"]
    assert results == ["Synced", "SyncFailed" if broken else "Synced"]
    assert CANARY not in json.dumps([asdict(span) for span in spans], default=str)
