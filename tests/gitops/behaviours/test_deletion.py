"""Hooks around the deletion of an Application (reference argocd-sync §7, behaviours 90 and 91)."""

from __future__ import annotations

from tests.gitops.behaviours.sim import APPS, JOBS, MAPS, Simulation, config, job

from syncline.kube.objects import Obj, annotations_of, dig, finalizers, name_of

CASCADE = "resources-finalizer.argocd.argoproj.io"
PRE = ["pre-delete-finalizer.argocd.argoproj.io", "pre-delete-finalizer.argocd.argoproj.io/cleanup"]
POST = ["post-delete-finalizer.argocd.argoproj.io", "post-delete-finalizer.argocd.argoproj.io/cleanup"]


def played(*objects: Obj, cascade: str = CASCADE) -> Simulation:
    sim = Simulation(*objects)
    if cascade:
        sim.patch(f"{APPS}/app", {"metadata": {"finalizers": [*finalizers(sim.app()), cascade]}})
    assert sim.sync()["phase"] == "Succeeded"
    sim.driver.settle()
    return sim


def delete(sim: Simulation) -> None:
    sim.world.send("DELETE", f"{APPS}/app")
    sim.driver.settle()


def gone(sim: Simulation) -> bool:
    return sim.get(f"{APPS}/app") is None


def test_finalizers_follow_the_hooks_that_the_manifests_hold() -> None:
    sim = Simulation(config("a"), job("last", hook="PreDelete"), job("after", hook="PostDelete"))
    assert finalizers(sim.app()) == [*PRE, *POST]
    sim.source.commit(config("a"), job("after", hook="PostDelete"))
    sim.refresh()
    assert finalizers(sim.app()) == POST
    sim.source.commit(config("a"))
    sim.refresh()
    assert finalizers(sim.app()) == []


def test_a_sync_leaves_delete_hooks_alone() -> None:
    sim = played(config("a"), job("last", hook="PreDelete"))
    assert (sim.names(JOBS), sim.sync_status()) == ([], "Synced")


def test_a_pre_delete_hook_runs_before_anything_is_deleted() -> None:
    sim = played(config("a"), job("last", seconds=20, hook="PreDelete"))
    delete(sim)
    sim.driver.advance(10)
    assert (sim.names(JOBS), sim.maps()) == (["last"], ["a"])
    assert "tracking-id" in " ".join(annotations_of(sim.get(f"{JOBS}/last") or {}))
    sim.driver.advance(60)
    assert (gone(sim), sim.maps(), sim.names(JOBS)) == (True, [], [])


def test_a_failing_pre_delete_hook_stops_the_deletion_and_is_made_anew_s090() -> None:
    sim = played(config("a"), job("last", code=1, hook="PreDelete"))
    delete(sim)
    sim.driver.advance(15)
    first = dig(sim.get(f"{JOBS}/last"), "metadata", "uid")
    assert sim.conditions()["DeletionError"] == "PreDelete hook(s) failed: default/last"
    assert (sim.maps(), gone(sim)) == (["a"], False)
    sim.driver.advance(60)
    assert dig(sim.get(f"{JOBS}/last"), "metadata", "uid") not in (first, None)
    sim.source.commit(config("a"), job("last", code=0, hook="PreDelete"))
    sim.driver.advance(300)
    assert (gone(sim), sim.maps()) == (True, [])


def test_a_post_delete_hook_comes_last_and_outlives_the_application_s091() -> None:
    sim = played(config("a"), job("after", seconds=5, hook="PostDelete"))
    delete(sim)
    sim.driver.advance(3)
    assert (sim.names(JOBS), sim.maps(), gone(sim)) == (["after"], [], False)
    sim.driver.advance(60)
    assert (gone(sim), sim.names(JOBS)) == (True, ["after"])


def test_delete_policies_count_for_post_delete_hooks() -> None:
    sim = played(job("after", hook="PostDelete", hook_delete_policy="HookSucceeded"))
    delete(sim)
    sim.driver.advance(60)
    assert (gone(sim), sim.names(JOBS)) == (True, [])


def test_hooks_run_also_when_resources_are_to_stay() -> None:
    sim = played(config("a"), job("last", hook="PreDelete"), cascade="")
    delete(sim)
    sim.driver.advance(60)
    assert (gone(sim), sim.maps(), sim.names(JOBS)) == (True, ["a"], ["last"])


def test_a_delete_hook_with_a_generated_name_runs_once() -> None:
    sim = played(job("after-", generate=True, hook="PostDelete"))
    delete(sim)
    sim.driver.advance(120)
    assert gone(sim)
    names = sim.names(JOBS)
    assert len(names) == 1 and names[0].startswith(f"after-{sim.source.head[:7]}-postdelete-")


def test_a_hook_of_both_kinds_runs_in_syncs_and_in_the_deletion() -> None:
    sim = played(config("a"), config("both", hook="PreSync,PreDelete"))
    assert sim.maps() == ["a", "both"]
    delete(sim)
    sim.driver.advance(60)
    assert (gone(sim), sim.maps()) == (True, [])


def test_what_is_not_ours_is_not_taken_for_a_hook() -> None:
    sim = played(config("a"), config("last", hook="PreDelete"))
    sim.world.send("POST", MAPS, config("last", "theirs"))
    delete(sim)
    sim.driver.advance(5)
    assert "is not ours" in sim.conditions()["DeletionError"]
    sim.world.send("DELETE", f"{MAPS}/last")
    sim.driver.advance(60)
    assert gone(sim)


def test_a_source_that_is_gone_stops_the_deletion_with_a_reason() -> None:
    sim = played(config("a"), job("last", hook="PreDelete"))
    sim.source.fails = "repository not found"
    sim.refresh()
    delete(sim)
    sim.driver.advance(400)
    assert "repository not found" in sim.conditions()["DeletionError"]
    assert sim.maps() == ["a"]


def test_background_deletion_is_asked_for_by_its_finalizer() -> None:
    sim = played(job("work"), cascade=CASCADE + "/background")
    sim.driver.advance(10)
    delete(sim)
    assert name_of(sim.get(f"{JOBS}/work") or {}) == "", "nothing waits for the pods of the Job"
    sim.driver.advance(60)
    assert gone(sim)
