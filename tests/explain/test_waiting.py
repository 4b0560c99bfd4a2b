"""What a sync waits for before it touches anything, and who refuses it: down to the object, with the next step."""

from __future__ import annotations

from typing import Any

import pytest
from tests.assembly.test_forecast import annotate, waiting
from tests.gitops.behaviours.sim import MAPS, NOWHERE, PROJECTS, Simulation, config, deployment, job
from tests.gitops.behaviours.test_holds import hold, machine_config, staged

from syncline.assembly.inspection.preview import observed_application
from syncline.assembly.inspection.snapshot import application_indices, snapshot_of_cluster
from syncline.cli.views.cause import MAX_LINES, describe_cause
from syncline.control.executor import run_in_place
from syncline.explain.application import explain_application
from syncline.explain.graph import cause_to_obj, explain_object
from syncline.explain.view import Found, View
from syncline.kube.objects import Obj, ObjectRef

APP = ObjectRef("argoproj.io", "Application", "argocd", "app")


def found_of(sim: Simulation, ref: ObjectRef = APP) -> Found:
    settings, now = sim.world.settings, sim.world.clock.now()
    cache = run_in_place(snapshot_of_cluster(application_indices(settings)), sim.world.admin).cache
    view = View(cache, now)
    if ref != APP:
        obj = cache.get(ref)
        assert obj is not None, ref
        return explain_object(view, obj)
    observed = observed_application(cache, ref, sim.source, settings, now)
    assert observed is not None
    return explain_application(view, observed)


def told(sim: Simulation, ref: ObjectRef = APP) -> list[str]:
    lines = describe_cause(found_of(sim, ref).cause, sim.world.clock.now()).splitlines()
    assert len(lines) <= MAX_LINES
    return [line.strip() for line in lines]


def begun(*objects: Obj, **policy: Any) -> Simulation:
    sim = Simulation(*objects, **policy)
    sim.begin({"prune": True})
    sim.driver.advance(10)
    return sim


def windowed(sim: Simulation, **window: Any) -> Simulation:
    entry = {"kind": "deny", "schedule": "0 0 * * *", "duration": "2h", "applications": ["*"]} | window
    sim.patch(f"{PROJECTS}/default", {"spec": {"syncWindows": [entry]}})
    sim.driver.advance(5)
    return sim


@pytest.mark.parametrize(
    ("window", "line", "step"),
    [
        ({}, "denies: deny '0 0 * * *' for 2h, ends at 2026-01-01T02:00:00Z", "enable-manual-sync default 0"),
        ({"schedule": "* * * * *"}, "denies: deny '* * * * *' for 2h, goes on and on", "enable-manual-sync default 0"),
        (
            {"kind": "allow", "schedule": "0 3 * * *", "timeZone": "Europe/Paris"},
            "closed: allow '0 3 * * *' for 2h Europe/Paris, opens at 2026-01-01T02:00:00Z",
            "enable-manual-sync default 0",
        ),
    ],
)
def test_a_closed_window_is_named_with_its_end(window: Obj, line: str, step: str) -> None:
    sim = windowed(Simulation(config("a")), **window)
    sim.begin()
    sim.driver.advance(5)
    assert found_of(sim).blocked
    lines = told(sim)
    assert lines[1] == f"sync window 0 of project default {line}"
    assert lines[-1].startswith("next: wait for it, or allow syncs by hand:") and lines[-1].endswith(step)


def test_an_automated_sync_that_a_window_keeps_back_may_be_started_by_hand() -> None:
    sim = windowed(Simulation(config("a"), automated={}), manualSync=True)
    sim.driver.advance(60)
    sim.source.commit(config("a", "other"))
    sim.refresh()
    lines = told(sim)
    assert lines[0].startswith("Application argocd/app OutOfSync, Healthy") and "denies" in lines[1]
    assert lines[-1] == "next: wait for it, or sync by hand: syncline app sync app"


def test_drift_that_nobody_heals_says_why() -> None:
    sim = Simulation(config("a"), automated={})
    sim.driver.advance(30)
    sim.patch(f"{MAPS}/a", {"data": {"k": "drifted"}})
    sim.driver.advance(10)
    lines = told(sim)
    assert lines[1] == "automated sync not started: this revision was synced already and selfHeal is off"
    assert lines[-1] == "next: syncline plan app, then: syncline app sync app"


def test_an_application_that_comes_first_is_followed() -> None:
    sim = Simulation(config("a"))
    sim.create("db")
    annotate(sim, "app", depends_on="db")
    sim.begin()
    sim.driver.advance(10)
    lines = told(sim)
    assert lines[1] == "Application argocd/db OutOfSync, Missing for 10s"
    assert lines[-1] == "next: syncline app sync db"


def test_an_application_that_does_not_exist_blocks() -> None:
    sim = Simulation(config("a"))
    annotate(sim, "app", depends_on="nobody")
    sim.begin()
    sim.driver.advance(10)
    assert found_of(sim).blocked
    assert told(sim)[1:] == [
        "Application argocd/nobody Missing: does not exist",
        "next: create it, or correct syncline.dev/depends-on of app",
    ]


@pytest.mark.parametrize(
    ("brought", "step"),
    [
        (False, "bring it, or correct syncline.dev/wait-for of ConfigMap a"),
        (True, "the same sync brings it: give it an earlier sync wave than ConfigMap a"),
    ],
)
def test_a_condition_on_what_is_not_there_says_who_should_bring_it(brought: bool, step: str) -> None:
    asked = waiting(config("a"), wait_for="{kind: Deployment, name: db, condition: Available, deadline: 10m}")
    sim = begun(asked, *([deployment("db")] if brought else []))
    lines = told(sim)
    assert lines[1].startswith("Deployment default/db Missing for 10s: ConfigMap a waits for it")
    assert lines[-1] == f"next: {step}"
    cause = cause_to_obj(found_of(sim).cause)["because"][0]
    assert cause["until"] == "2026-01-01T00:10:00+00:00" or cause["until"] > cause["since"]
    assert cause["then"] == "the operation fails"


def test_a_condition_on_what_has_trouble_goes_down_to_its_pod() -> None:
    sim = Simulation(waiting(config("a"), wait_for="{kind: Deployment, name: db, condition: Available}"))
    sim.world.send("POST", "/apis/apps/v1/namespaces/default/deployments", deployment("db", pod=NOWHERE))
    sim.begin()
    sim.driver.advance(10)
    lines = told(sim)
    assert lines[1].startswith("Deployment default/db Progressing") and "Pod default/db-" in lines[2]
    assert lines[2].endswith("1 node(s) didn't match Pod's node affinity/selector"), "without what preemption tried"
    evidence = cause_to_obj(found_of(sim).cause)["because"][0]["because"][0]["evidence"]
    assert any(one["name"] == "scheduler" and "preemption" in one["value"] for one in evidence)


def test_a_held_pool_names_the_hold_its_owner_and_its_end() -> None:
    sim = staged(machine_config("a"))
    hold(sim)
    lines = told(sim, ObjectRef("machineconfiguration.openshift.io", "MachineConfigPool", "", "worker"))
    assert "Hold mine Held" in lines[1] and "ann keeps pool worker from updating until" in lines[1]
    assert lines[1].endswith(": a look at the disks")
    assert lines[-1] == "next: wait, or ask ann; to end it: kubectl delete hold mine"
    assert "Hold mine Held" in told(sim, ObjectRef("syncline.dev", "Hold", "", "mine"))[0]


@pytest.mark.parametrize(
    ("obj", "words", "step"),
    [
        (job("j", spec={"suspend": True}, hook="PreSync"), "spec.suspend is true", "resume it"),
        (
            {
                "apiVersion": "v1",
                "kind": "Service",
                "metadata": {"name": "web"},
                "spec": {"type": "LoadBalancer", "ports": [{"port": 80}]},
            },
            "no load balancer has given it an address yet",
            "does this cluster have a load balancer?",
        ),
        (
            config("a") | {"metadata": {"name": "a", "namespace": "nowhere"}},
            'namespaces "nowhere" not found',
            "create Namespace nowhere",
        ),
        (
            {
                "apiVersion": "v1",
                "kind": "PersistentVolumeClaim",
                "metadata": {"name": "data"},
                "spec": {
                    "storageClassName": "gold",
                    "accessModes": ["ReadWriteOnce"],
                    "resources": {"requests": {"storage": "1Gi"}},
                },
            },
            "storage class gold",
            "make a PersistentVolume",
        ),
    ],
)
def test_an_object_that_blocks_says_why_and_what_to_do(obj: Obj, words: str, step: str) -> None:
    lines = told(begun(obj, config("late", sync_wave="1")))
    assert words in lines[1] and lines[-1].startswith(f"next: {step}")


def test_an_immutable_field_names_its_ways_out() -> None:
    sim = begun(job("j"))
    sim.finish()
    sim.source.commit(job("j", seconds=5))
    sim.refresh()
    sim.begin()
    sim.driver.advance(10)
    lines = told(sim)
    assert "spec.template changed but the field is immutable" in lines[1]
    assert lines[-1].startswith("next: set Replace=true or Force=true, use a hook")


def test_a_pruning_that_a_person_has_to_confirm_blocks_and_gives_the_command() -> None:
    sim = begun(config("a"), config("b", sync_options="Prune=confirm"))
    sim.source.commit(config("a"))
    sim.refresh()
    sim.begin({"prune": True})
    sim.driver.advance(10)
    assert found_of(sim).blocked
    assert told(sim)[-1] == "next: confirm with: syncline app confirm-deletion app"


def test_a_mass_deletion_gives_the_annotation_that_confirms_it() -> None:
    sim = Simulation(*(config(name) for name in "abcde"), automated={"prune": True})
    sim.driver.advance(30)
    sim.source.commit(config("a"))
    sim.refresh()
    assert told(sim)[-1].startswith("next: if that is meant, annotate the Application with syncline.dev/confirm-del")


def test_a_failure_that_nobody_knows_still_has_a_next_step() -> None:
    bad = config("a") | {"data": {"not a key": "x"}}
    lines = told(begun(bad))
    assert "SyncFailed" in lines[1]
    assert lines[-1] == "next: correct it in the source, then: syncline app sync app"


@pytest.mark.parametrize(
    ("spec", "step"),
    [
        ({"project": "nope"}, "create project nope, or correct spec.project"),
        ({"destination": {"server": "https://other", "namespace": "x"}}, "add the cluster: syncline cluster add"),
    ],
)
def test_a_spec_that_leads_nowhere_says_what_is_missing(spec: Obj, step: str) -> None:
    sim = Simulation(config("a"), spec=spec)
    sim.driver.advance(10)
    assert told(sim)[-1].startswith(f"next: {step}")


def test_a_destination_that_the_project_does_not_allow_is_told_with_the_command() -> None:
    sim = Simulation(config("a"))
    sim.patch(f"{PROJECTS}/default", {"spec": {"destinations": [{"server": "*", "namespace": "other"}]}})
    sim.refresh()
    sim.driver.advance(60)
    assert told(sim)[-1] == "next: correct the spec, or: syncline proj add-destination default"
