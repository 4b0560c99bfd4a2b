"""Hooks around the deletion of an Application (reference argocd-sync §7, behaviours 90 and 91)."""

from __future__ import annotations

from tests.gitops.behaviours.play import APPS, JOBS, MAPS, Play, config, job

from syncline.kube.objects import Obj, annotations_of, dig, finalizers, name_of

CASCADE = "resources-finalizer.argocd.argoproj.io"
PRE = ["pre-delete-finalizer.argocd.argoproj.io", "pre-delete-finalizer.argocd.argoproj.io/cleanup"]
POST = ["post-delete-finalizer.argocd.argoproj.io", "post-delete-finalizer.argocd.argoproj.io/cleanup"]


def played(*objects: Obj, cascade: str = CASCADE) -> Play:
    play = Play(*objects)
    if cascade:
        play.patch(f"{APPS}/app", {"metadata": {"finalizers": [*finalizers(play.app()), cascade]}})
    assert play.sync()["phase"] == "Succeeded"
    play.driver.settle()
    return play


def delete(play: Play) -> None:
    play.world.send("DELETE", f"{APPS}/app")
    play.driver.settle()


def gone(play: Play) -> bool:
    return play.get(f"{APPS}/app") is None


def test_finalizers_follow_the_hooks_that_the_manifests_hold() -> None:
    play = Play(config("a"), job("last", hook="PreDelete"), job("after", hook="PostDelete"))
    assert finalizers(play.app()) == [*PRE, *POST]
    play.source.commit(config("a"), job("after", hook="PostDelete"))
    play.refresh()
    assert finalizers(play.app()) == POST
    play.source.commit(config("a"))
    play.refresh()
    assert finalizers(play.app()) == []


def test_a_sync_leaves_delete_hooks_alone() -> None:
    play = played(config("a"), job("last", hook="PreDelete"))
    assert (play.names(JOBS), play.sync_status()) == ([], "Synced")


def test_a_pre_delete_hook_runs_before_anything_is_deleted() -> None:
    play = played(config("a"), job("last", seconds=20, hook="PreDelete"))
    delete(play)
    play.driver.advance(10)
    assert (play.names(JOBS), play.maps()) == (["last"], ["a"])
    assert "tracking-id" in " ".join(annotations_of(play.get(f"{JOBS}/last") or {}))
    play.driver.advance(60)
    assert (gone(play), play.maps(), play.names(JOBS)) == (True, [], [])


def test_a_failing_pre_delete_hook_stops_the_deletion_and_is_made_anew_s090() -> None:
    play = played(config("a"), job("last", code=1, hook="PreDelete"))
    delete(play)
    play.driver.advance(15)
    first = dig(play.get(f"{JOBS}/last"), "metadata", "uid")
    assert play.conditions()["DeletionError"] == "PreDelete hook(s) failed: default/last"
    assert (play.maps(), gone(play)) == (["a"], False)
    play.driver.advance(60)
    assert dig(play.get(f"{JOBS}/last"), "metadata", "uid") not in (first, None)
    play.source.commit(config("a"), job("last", code=0, hook="PreDelete"))
    play.driver.advance(300)
    assert (gone(play), play.maps()) == (True, [])


def test_a_post_delete_hook_comes_last_and_outlives_the_application_s091() -> None:
    play = played(config("a"), job("after", seconds=5, hook="PostDelete"))
    delete(play)
    play.driver.advance(3)
    assert (play.names(JOBS), play.maps(), gone(play)) == (["after"], [], False)
    play.driver.advance(60)
    assert (gone(play), play.names(JOBS)) == (True, ["after"])


def test_delete_policies_count_for_post_delete_hooks() -> None:
    play = played(job("after", hook="PostDelete", hook_delete_policy="HookSucceeded"))
    delete(play)
    play.driver.advance(60)
    assert (gone(play), play.names(JOBS)) == (True, [])


def test_hooks_run_also_when_resources_are_to_stay() -> None:
    play = played(config("a"), job("last", hook="PreDelete"), cascade="")
    delete(play)
    play.driver.advance(60)
    assert (gone(play), play.maps(), play.names(JOBS)) == (True, ["a"], ["last"])


def test_a_delete_hook_with_a_generated_name_runs_once() -> None:
    play = played(job("after-", generate=True, hook="PostDelete"))
    delete(play)
    play.driver.advance(120)
    assert gone(play)
    names = play.names(JOBS)
    assert len(names) == 1 and names[0].startswith(f"after-{play.source.head[:7]}-postdelete-")


def test_a_hook_of_both_kinds_runs_in_syncs_and_in_the_deletion() -> None:
    play = played(config("a"), config("both", hook="PreSync,PreDelete"))
    assert play.maps() == ["a", "both"]
    delete(play)
    play.driver.advance(60)
    assert (gone(play), play.maps()) == (True, [])


def test_what_is_not_ours_is_not_taken_for_a_hook() -> None:
    play = played(config("a"), config("last", hook="PreDelete"))
    play.world.send("POST", MAPS, config("last", "theirs"))
    delete(play)
    play.driver.advance(5)
    assert "is not ours" in play.conditions()["DeletionError"]
    play.world.send("DELETE", f"{MAPS}/last")
    play.driver.advance(60)
    assert gone(play)


def test_a_source_that_is_gone_stops_the_deletion_with_a_reason() -> None:
    play = played(config("a"), job("last", hook="PreDelete"))
    play.source.fails = "repository not found"
    play.refresh()
    delete(play)
    play.driver.advance(400)
    assert "repository not found" in play.conditions()["DeletionError"]
    assert play.maps() == ["a"]


def test_background_deletion_is_asked_for_by_its_finalizer() -> None:
    play = played(job("work"), cascade=CASCADE + "/background")
    play.driver.advance(10)
    delete(play)
    assert name_of(play.get(f"{JOBS}/work") or {}) == "", "nothing waits for the pods of the Job"
    play.driver.advance(60)
    assert gone(play)
