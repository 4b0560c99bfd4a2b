"""A plan names what surrounds its waves: Applications before it, conditions, deadlines, Holds, hooks it leaves out."""

from __future__ import annotations

from typing import Any

import pytest
from tests.gitops.behaviours.sim import APPS, Simulation, config, job
from tests.gitops.behaviours.test_holds import machine_config, staged

from syncline.assembly.inspection.preview import PlannedSync, SyncRequest, Verdict, planned_sync
from syncline.assembly.inspection.snapshot import application_indices, snapshot_of_cluster
from syncline.cli.views.plan import describe_plan
from syncline.control.executor import run_in_place
from syncline.kube.objects import Obj

SECRET = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}}


def plan(sim: Simulation, request: SyncRequest | None = None) -> PlannedSync:
    settings = sim.world.settings
    cache = run_in_place(snapshot_of_cluster(application_indices(settings)), sim.world.admin).cache
    return planned_sync(cache, sim.app(), sim.source, settings, sim.world.clock.now(), request or SyncRequest())


def lines(sim: Simulation, **shown: Any) -> list[str]:
    return [line.strip() for line in describe_plan(plan(sim), **shown).splitlines()]


def waiting(obj: Obj, **annotations: str) -> Obj:
    """With annotations under ``syncline.dev/``."""
    named = {"syncline.dev/" + key.replace("_", "-"): value for key, value in annotations.items()}
    return obj | {"metadata": obj["metadata"] | {"annotations": obj["metadata"].get("annotations", {}) | named}}


def annotate(sim: Simulation, name: str, **annotations: str) -> None:
    sim.patch(f"{APPS}/{name}", {"metadata": waiting({"metadata": {}}, **annotations)["metadata"]})
    sim.driver.settle()


def test_conditions_are_shown_with_how_they_stand_now() -> None:
    want = (
        "[{kind: Deployment, name: db, condition: Available, deadline: 10m}, {kind: ConfigMap, name: kube-root-ca.crt}]"
    )
    told = lines(Simulation(waiting(config("a"), wait_for=want)))
    assert (
        "first waits for Deployment default/db: condition Available is True, at most 10m "
        "(now: apps/Deployment/default/db is not there)"
    ) in told
    assert "first waits for ConfigMap default/kube-root-ca.crt: it is healthy (now: it holds)" in told


def test_a_condition_that_cannot_be_read_blocks_the_plan_as_it_would_the_sync() -> None:
    planned = plan(Simulation(waiting(config("a"), wait_for='{kind: Pod, name: a, cel: "object.("}')))
    assert planned.verdict is Verdict.BLOCKED
    assert "wait-for: cel: " in planned.problems[0]


def test_deadlines_of_a_gate_are_shown_with_what_happens_then() -> None:
    hook = waiting(job("m", hook="PreSync"), gate_deadline="5m", on_deadline="fail")
    assert "waits for Job m at most 5m, then the operation fails" in lines(Simulation(hook))


def test_applications_that_come_first_are_named_with_their_state() -> None:
    sim = Simulation(config("a"))
    sim.create("db")
    annotate(sim, "app", depends_on="db")
    assert (
        "first waits for Application argocd/db to be Synced and Healthy "
        "(now: Application argocd/db (OutOfSync, Missing))"
    ) in lines(sim)
    annotate(sim, "db", depends_on="app")
    planned = plan(sim)
    assert planned.verdict is Verdict.BLOCKED and "goes in a circle" in planned.problems[-1]


def test_hooks_of_a_deletion_are_left_out_and_named() -> None:
    sim = Simulation(config("a"), job("bye", hook="PreDelete"), job("after", hook="PostDelete"))
    planned = plan(sim)
    assert planned.left_out == (
        "Job bye: PreDelete hook, runs when the Application is deleted",
        "Job after: PostDelete hook, runs when the Application is deleted",
    )
    assert [str(change.ref) for group in planned.groups for change in group.changes] == ["/ConfigMap/default/a"]


def test_a_hook_whose_inputs_are_as_they_were_is_left_out() -> None:
    sim = Simulation(config("a"), waiting(job("m", hook="PreSync"), run_hook="on-change"))
    assert plan(sim).left_out == ()
    sim.sync()
    assert plan(sim).left_out == ("Job m: its inputs are as when it last ran",)


def test_a_wave_that_reaches_machines_takes_its_hold_before_and_once() -> None:
    sim = staged(config("first"), machine_config("a", wave=1), machine_config("b", wave=2))
    planned = plan(sim)
    assert [(group.wave, group.holds) for group in planned.groups] == [(0, ()), (1, ("worker",)), (2, ())]
    assert "takes a Hold on pool worker" in lines(sim)


def test_what_changes_is_shown_line_by_line_and_secrets_masked() -> None:
    sim = Simulation(config("a", "before"), SECRET | {"stringData": {"pin": "canary-1"}})
    sim.sync()
    sim.source.commit(config("a", "after"), SECRET | {"stringData": {"pin": "canary-2"}})
    told = lines(sim, differences=True)
    assert "-  k: before" in told and "+  k: after" in told
    assert "-  pin: ++++++++++++" in told and "+  pin: ++++++++" in told
    shown = [change["live"] for wave in plan(sim).to_obj()["waves"] for change in wave["actions"]]
    assert [one["kind"] for one in shown] == ["Secret", "ConfigMap"] and "canary" not in str(plan(sim).to_obj())


def test_annotations_that_settings_call_sensitive_are_masked_in_secrets() -> None:
    sim = Simulation(SECRET | {"metadata": {"name": "s", "annotations": {"example.org/token": "canary"}}})
    names = {"name": "argocd-cm", "namespace": "argocd"}
    data = {"resource.sensitive.mask.annotations": "example.org/other, example.org/token"}
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": names, "data": data}
    sim.world.send("POST", "/api/v1/namespaces/argocd/configmaps", body)
    sim.sync()
    sim.source.commit(SECRET | {"metadata": {"name": "s", "annotations": {"example.org/token": "canary-2"}}})
    told = lines(sim, differences=True)
    assert any("example.org/token: ++++++++" in line for line in told)
    assert not any("canary" in line for line in told)


@pytest.mark.parametrize(
    ("policy", "annotation", "fix"),
    [
        ({}, "", "sync with `syncline app sync --prune`"),
        ({}, "2 10%", "confirm it with the annotation syncline.dev/confirm-deletions: "),
        ({"automated": {"prune": True}}, "", "confirm it with the annotation syncline.dev/confirm-deletions: "),
        ({}, "off", ""),
    ],
)
def test_the_guard_says_what_it_will_ask_for(policy: Obj, annotation: str, fix: str) -> None:
    sim = Simulation(*(config(name) for name in "abcde"), **policy)
    sim.sync()
    sim.source.commit(config("a"))
    if annotation:
        annotate(sim, "app", deletion_guard=annotation)
    unsafe = plan(sim, None if policy else SyncRequest(prune=True)).unsafe
    assert bool(unsafe) is bool(fix)
    assert all(text.startswith("4 of 5 objects would be deleted") and fix in text for text in unsafe)
