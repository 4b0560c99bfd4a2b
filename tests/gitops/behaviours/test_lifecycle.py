"""The life of an operation (behaviours 2-20 of the sync reference)."""

from __future__ import annotations

import json

from tests.gitops.behaviours.play import (
    APPS,
    DEPLOYMENTS,
    JOBS,
    NOWHERE,
    PROJECTS,
    Play,
    annotated,
    config,
    deployment,
    job,
    rows,
)

from syncline.gitops.application.observe import AppSettings
from syncline.kube.objects import dig


def test_the_operation_is_running_on_record_before_the_cluster_is_written_s002() -> None:
    play = Play(config("a"))
    play.begin()
    while not play.state():
        assert play.world.gitops_actor.pump() | play.world.gitops_actor.step()
    assert (play.state()["phase"], play.maps()) == ("Running", [])
    assert play.state()["startedAt"]


def test_the_request_goes_with_the_end_s003() -> None:
    play = Play(config("a"))
    state = play.sync()
    assert "operation" not in play.app()
    assert state["finishedAt"]
    assert state["operation"] == {"sync": {}}


def test_a_branch_that_moves_does_not_reach_the_running_operation_s004() -> None:
    play = Play(config("a"), job("slow", seconds=600, hook="PreSync"), config("b", sync_wave="1"))
    first = play.source.head
    play.begin()
    play.driver.advance(60)
    play.source.commit(config("a", "newer"), config("c"))
    play.refresh()
    state = play.finish()
    assert state["syncResult"]["revision"] == first
    assert play.maps() == ["a", "b"]
    assert play.get("/api/v1/namespaces/default/configmaps/a")["data"] == {"k": "v"}  # type: ignore[index]


def test_one_wave_is_done_when_it_is_applied_s006() -> None:
    play = Play(config("a"), deployment("web", pod=NOWHERE))
    state = play.sync()
    assert (state["phase"], state["message"]) == ("Succeeded", "successfully synced (all tasks run)")
    assert {row["hookPhase"] for row in rows(state).values()} == {"Running"}
    assert rows(state)["ConfigMap/a"]["message"] == "configmap/a created"


def test_nothing_to_do_is_a_success_s007() -> None:
    state = Play().sync()
    assert (state["phase"], state["message"]) == ("Succeeded", "successfully synced (no more tasks)")


def test_a_dry_run_changes_nothing_and_leaves_no_history_s008() -> None:
    play = Play(config("a"), config("b", sync_wave="1"), job("pre", hook="PreSync"))
    state = play.sync({"dryRun": True})
    assert (state["phase"], state["message"]) == ("Succeeded", "successfully synced (no more tasks)")
    assert {row["hookPhase"] for row in rows(state).values()} == {"Succeeded"}
    assert all("(dry run)" in row["message"] for row in rows(state).values())
    assert (play.maps(), play.names(JOBS)) == ([], [])
    assert not play.app()["status"].get("history")


def test_a_bad_manifest_stops_everything_but_the_created_namespace_s009_s074() -> None:
    bad = deployment("web", spec={"replicas": -1}, sync_wave="5")
    spec = {"destination": {"server": "https://kubernetes.default.svc", "namespace": "shop"}}
    play = Play(config("a"), bad, spec=spec, syncOptions=["CreateNamespace=true"])
    state = play.sync()
    assert state["phase"] == "Failed"
    assert state["message"].startswith("one or more objects failed to apply (dry run)")
    assert "replicas" in rows(state)["Deployment/web"]["message"]
    assert play.get("/api/v1/namespaces/shop") is not None
    assert rows(state)["Namespace/shop"]["syncPhase"] == "PreSync"
    assert play.get("/api/v1/namespaces/shop/configmaps/a") is None


def test_a_kind_that_the_project_forbids_stops_everything_s010() -> None:
    play = Play(config("a"), deployment("web"))
    play.patch(f"{PROJECTS}/default", {"spec": {"namespaceResourceBlacklist": [{"group": "apps", "kind": "*"}]}})
    state = play.sync()
    assert state["phase"] == "Failed"
    assert state["message"] == (
        "one or more synchronization tasks are not valid: resource apps:Deployment is not permitted in project default"
    )
    assert play.maps() == []


def test_a_permanent_failure_is_retried_as_often_as_asked_s011_s012() -> None:
    play = Play(job("pre", code=1, hook="PreSync"), config("a"))
    play.begin(retry={"limit": 2})
    play.driver.until(lambda: bool(play.state().get("finishedAt")))
    state = play.state()
    assert (state["phase"], state["retryCount"]) == ("Running", 1)
    assert "Retrying attempt #1 at" in state["message"]
    state = play.finish()
    assert state["phase"] == "Failed"
    assert state["message"].endswith("(retried 2 times).")
    assert play.maps() == []


def test_a_retry_takes_the_old_commit_unless_refresh_is_asked_for_s013() -> None:
    for refresh, wanted in ((False, "Failed"), (True, "Succeeded")):
        play = Play(job("pre", code=1, hook="PreSync"), config("a"))
        old = play.source.head
        play.begin(retry={"limit": 1, "refresh": refresh, "backoff": {"duration": "1m"}})
        play.driver.until(lambda: bool(play.state().get("finishedAt")))  # noqa: B023
        new = play.source.commit(config("a"))
        state = play.finish()
        assert (state["phase"], state["syncResult"]["revision"]) == (wanted, new if refresh else old)


def test_a_retry_begins_with_empty_results_and_runs_hooks_again_s014() -> None:
    play = Play(job("pre", hook="PreSync"), job("post", code=1, hook="PostSync"))
    play.begin(retry={"limit": 1, "backoff": {"duration": "1m"}})
    play.driver.until(lambda: bool(play.state().get("finishedAt")))
    first = play.get(f"{JOBS}/pre")
    play.driver.until(lambda: not play.state().get("finishedAt"))
    assert "syncResult" not in play.state() or not rows(play.state()).get("Job/post")
    play.finish()
    second = play.get(f"{JOBS}/pre")
    assert first is not None
    assert second is not None
    assert first["metadata"]["uid"] != second["metadata"]["uid"]


def test_a_terminated_operation_ends_its_hooks_and_leaves_resources_s015_s016() -> None:
    play = Play(deployment("web"), job("slow", seconds=3000, hook="PostSync"))
    play.begin(retry={"limit": 3})
    play.driver.until(lambda: bool(play.names(JOBS)))
    play.driver.advance(5)
    play.patch(f"{APPS}/app", {"status": {"operationState": {"phase": "Terminating"}}})
    state = play.finish()
    assert (state["phase"], state["message"]) == ("Failed", "Operation terminated")
    row = rows(state)["Job/slow"]
    assert (row["hookPhase"], row["message"]) == ("Failed", "Terminated")
    assert not state.get("retryCount")
    play.driver.advance(60)
    assert (play.names(JOBS), play.names(DEPLOYMENTS)) == ([], ["web"])


def test_an_operation_that_takes_too_long_is_terminated_s018() -> None:
    play = Play(job("slow", seconds=3000, hook="PreSync"), settings=AppSettings(sync_timeout_s=60))
    state = play.sync(limit_s=200)
    assert state["phase"] == "Failed"
    assert state["message"] == "Operation terminated, triggered by controller sync timeout"


def test_the_timeout_counts_waits_between_attempts_s018() -> None:
    play = Play(job("pre", code=1, hook="PreSync"), settings=AppSettings(sync_timeout_s=60))
    state = play.sync(limit_s=200, retry={"limit": 9, "backoff": {"duration": "2m", "maxDuration": "2m"}})
    assert state["message"] == "Operation terminated, triggered by controller sync timeout"


def test_history_keeps_the_last_ones_with_growing_numbers_s019() -> None:
    play = Play(config("a"), spec={"revisionHistoryLimit": 3})
    for n in range(4):
        play.source.commit(config("a", str(n)))
        play.sync()
    assert [entry["id"] for entry in play.app()["status"]["history"]] == [1, 2, 3]


def test_a_selective_sync_runs_no_hook_and_leaves_no_history_s020() -> None:
    play = Play(config("a"), config("b"), job("pre", hook="PreSync"))
    state = play.sync({"resources": [{"group": "", "kind": "ConfigMap", "name": "b"}]})
    assert (state["phase"], play.maps(), play.names(JOBS)) == ("Succeeded", ["b"], [])
    assert not play.app()["status"].get("history")


def test_a_selection_of_nothing_syncs_nothing() -> None:
    play = Play(config("a"))
    state = play.sync({"resources": [{"group": "", "kind": "ConfigMap", "name": "ghost"}]})
    assert (state["phase"], play.maps()) == ("Succeeded", [])


def test_strategy_apply_leaves_hooks_out_but_counts_as_a_full_sync() -> None:
    play = Play(config("a"), job("pre", hook="PreSync"))
    play.sync({"syncStrategy": {"apply": {}}})
    assert (play.maps(), play.names(JOBS)) == (["a"], [])
    assert len(play.app()["status"]["history"]) == 1


def test_an_operation_without_sync_is_refused_in_words() -> None:
    play = Play(config("a"))
    play.patch(f"{APPS}/app", {"operation": {"initiatedBy": {"username": "me"}}})
    state = play.finish()
    assert (state["phase"], state["message"]) == ("Error", "Invalid operation request: no operation specified")


def test_an_older_commit_can_be_asked_for() -> None:
    play = Play(config("a", "old"))
    old = play.source.head
    play.source.commit(config("a", "new"))
    play.sync()
    state = play.sync({"revision": old})
    assert state["syncResult"]["revision"] == old
    assert play.get("/api/v1/namespaces/default/configmaps/a")["data"] == {"k": "old"}  # type: ignore[index]
    assert play.sync_status() == "OutOfSync"


def test_an_unreadable_backoff_is_an_error_in_words() -> None:
    play = Play(job("pre", code=1, hook="PreSync"))
    state = play.sync(retry={"limit": 2, "backoff": {"duration": "soon"}})
    assert state["phase"] == "Error"
    assert "failed to retry" in state["message"]


def test_options_of_the_request_replace_those_of_the_spec() -> None:
    spec = {"destination": {"server": "https://kubernetes.default.svc", "namespace": "shop"}}
    play = Play(config("a"), spec=spec, syncOptions=["CreateNamespace=true"])
    state = play.sync({"syncOptions": ["Validate=false"]})
    assert state["phase"] == "Failed"
    assert 'namespaces "shop" not found' in str(state)
    assert play.get("/api/v1/namespaces/shop") is None


def test_two_syncs_at_once_are_two_operations_one_after_the_other() -> None:
    play = Play(config("a"), job("pre", hook="PreSync"))
    play.sync()
    first = play.get(f"{JOBS}/pre")
    play.sync()
    second = play.get(f"{JOBS}/pre")
    assert dig(first, "metadata", "uid") != dig(second, "metadata", "uid")
    assert [entry["id"] for entry in play.app()["status"]["history"]] == [0, 1]


def test_a_deleted_application_lets_its_operation_end_first() -> None:
    play = Play(config("a"), job("pre", seconds=30, hook="PreSync"))
    play.patch(f"{APPS}/app", {"metadata": {"finalizers": ["resources-finalizer.argocd.argoproj.io"]}})
    play.begin()
    play.driver.advance(5)
    play.world.send("DELETE", f"{APPS}/app")
    play.driver.advance(120)
    assert play.get(f"{APPS}/app") is None
    assert play.maps() == []


def test_a_namespace_that_ends_fails_the_operation_in_words() -> None:
    spec = {"destination": {"server": "https://kubernetes.default.svc", "namespace": "shop"}}
    play = Play(config("a"), spec=spec)
    play.world.send("POST", "/api/v1/namespaces", {"metadata": {"name": "shop", "finalizers": ["example.org/keep"]}})
    play.driver.settle()
    play.world.send("DELETE", "/api/v1/namespaces/shop")
    play.driver.settle()
    state = play.sync()
    assert state["phase"] == "Failed"
    assert "being terminated" in str(rows(state))


def test_an_unknown_project_is_an_error_that_names_it() -> None:
    play = Play(config("a"), spec={"project": "ghost"})
    assert "ghost" in play.conditions()["InvalidSpecError"]
    state = play.sync()
    assert state["phase"] == "Error"
    assert "ghost" in state["message"]


def test_hooks_of_every_phase_say_where_they_ran() -> None:
    play = Play(annotated(config("a"), hook="PreSync,PostSync"))
    state = play.sync()
    found = [(row["hookType"], row["message"]) for row in state["syncResult"]["resources"]]
    assert found == [("PreSync", "a created"), ("PostSync", "a created")]


def test_a_wrong_number_of_revisions_is_an_error_and_keeps_nobody_busy() -> None:
    sources = [{"repoURL": f"https://example.com/{n}.git", "path": ".", "targetRevision": "main"} for n in "ab"]
    play = Play(config("a"), spec={"source": None, "sources": sources})
    state = play.sync({"revisions": ["main"]}, limit_s=60)
    assert state["phase"] == "Error"
    assert state["message"] == "Invalid operation request: 1 revisions for 2 sources; give one for each"


def test_revisions_are_for_several_sources_only() -> None:
    state = Play(config("a")).sync({"revisions": ["x", "y"]}, limit_s=60)
    assert state["phase"] == "Succeeded"


def test_a_request_may_bring_another_number_of_sources() -> None:
    sources = [{"repoURL": f"https://example.com/{n}.git", "path": ".", "targetRevision": "main"} for n in "ab"]
    play = Play(config("a"), job("pre", hook="PreSync"))
    state = play.sync({"sources": sources}, limit_s=60)
    assert (state["phase"], len(state["syncResult"]["revisions"])) == ("Succeeded", 2)
    state = play.sync({"source": sources[0]}, limit_s=60)
    assert state["phase"] == "Succeeded"


def test_an_empty_request_is_answered() -> None:
    play = Play(config("a"))
    play.patch(f"{APPS}/app", {"operation": {"sync": None}})
    assert play.finish(limit_s=60)["message"] == "Invalid operation request: no operation specified"
    assert "operation" not in play.app()


def test_manifests_of_the_request_are_synced_instead_of_the_source() -> None:
    play = Play(config("a"))
    state = play.sync({"manifests": [json.dumps(config("mine"))]}, limit_s=60)
    assert (state["phase"], play.maps()) == ("Succeeded", ["mine"])
    assert play.sync({"manifests": ["[]"]}, limit_s=60)["message"].endswith(
        "operation.sync.manifests[0]: must be one object with apiVersion and kind"
    )


def test_manifests_of_the_request_are_refused_where_commits_must_be_signed() -> None:
    play = Play(config("a"))
    play.patch(f"{PROJECTS}/default", {"spec": {"signatureKeys": [{"keyID": "ABCDEF"}]}})
    state = play.sync({"manifests": [json.dumps(config("mine"))]}, limit_s=60)
    assert state["message"] == "Cannot use local manifests when source integrity is enforced"
    assert play.maps() == []


def test_a_phase_that_nobody_knows_does_not_stop_the_next_operation() -> None:
    play = Play(config("a"))
    made_up = {"phase": "Bogus", "operation": {"sync": {}}, "startedAt": "2026-01-01T00:00:00Z"}
    play.patch(f"{APPS}/app", {"operation": {"sync": {}}, "status": {"operationState": made_up}})
    assert play.finish(limit_s=60)["phase"] == "Succeeded"
