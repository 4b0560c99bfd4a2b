"""The life of an operation (behaviours 2-20 of the sync reference)."""

from __future__ import annotations

import json

from tests.gitops.behaviours.sim import (
    APPS,
    DEPLOYMENTS,
    JOBS,
    NOWHERE,
    PROJECTS,
    Simulation,
    annotated,
    config,
    deployment,
    job,
    rows,
)

from syncline.gitops.application.observing.observe import AppSettings
from syncline.kube.objects import dig


def test_the_operation_is_running_on_record_before_the_cluster_is_written_s002() -> None:
    sim = Simulation(config("a"))
    sim.begin()
    while not sim.state():
        assert sim.world.gitops_actor.pump() | sim.world.gitops_actor.step()
    assert (sim.state()["phase"], sim.maps()) == ("Running", [])
    assert sim.state()["startedAt"]


def test_the_request_goes_with_the_end_s003() -> None:
    sim = Simulation(config("a"))
    state = sim.sync()
    assert "operation" not in sim.app()
    assert state["finishedAt"]
    assert state["operation"] == {"sync": {}}


def test_a_branch_that_moves_does_not_reach_the_running_operation_s004() -> None:
    sim = Simulation(config("a"), job("slow", seconds=600, hook="PreSync"), config("b", sync_wave="1"))
    first = sim.source.head
    sim.begin()
    sim.driver.advance(60)
    sim.source.commit(config("a", "newer"), config("c"))
    sim.refresh()
    state = sim.finish()
    assert state["syncResult"]["revision"] == first
    assert sim.maps() == ["a", "b"]
    assert sim.get("/api/v1/namespaces/default/configmaps/a")["data"] == {"k": "v"}  # type: ignore[index]


def test_one_wave_is_done_when_it_is_applied_s006() -> None:
    sim = Simulation(config("a"), deployment("web", pod=NOWHERE))
    state = sim.sync()
    assert (state["phase"], state["message"]) == ("Succeeded", "successfully synced (all tasks run)")
    assert {row["hookPhase"] for row in rows(state).values()} == {"Running"}
    assert rows(state)["ConfigMap/a"]["message"] == "configmap/a created"


def test_nothing_to_do_is_a_success_s007() -> None:
    state = Simulation().sync()
    assert (state["phase"], state["message"]) == ("Succeeded", "successfully synced (no more tasks)")


def test_a_dry_run_changes_nothing_and_leaves_no_history_s008() -> None:
    sim = Simulation(config("a"), config("b", sync_wave="1"), job("pre", hook="PreSync"))
    state = sim.sync({"dryRun": True})
    assert (state["phase"], state["message"]) == ("Succeeded", "successfully synced (no more tasks)")
    assert {row["hookPhase"] for row in rows(state).values()} == {"Succeeded"}
    assert all("(dry run)" in row["message"] for row in rows(state).values())
    assert (sim.maps(), sim.names(JOBS)) == ([], [])
    assert not sim.app()["status"].get("history")


def test_a_bad_manifest_stops_everything_but_the_created_namespace_s009_s074() -> None:
    bad = deployment("web", spec={"replicas": -1}, sync_wave="5")
    spec = {"destination": {"server": "https://kubernetes.default.svc", "namespace": "shop"}}
    sim = Simulation(config("a"), bad, spec=spec, syncOptions=["CreateNamespace=true"])
    state = sim.sync()
    assert state["phase"] == "Failed"
    assert state["message"].startswith("one or more objects failed to apply (dry run)")
    assert "replicas" in rows(state)["Deployment/web"]["message"]
    assert sim.get("/api/v1/namespaces/shop") is not None
    assert rows(state)["Namespace/shop"]["syncPhase"] == "PreSync"
    assert sim.get("/api/v1/namespaces/shop/configmaps/a") is None


def test_a_kind_that_the_project_forbids_stops_everything_s010() -> None:
    sim = Simulation(config("a"), deployment("web"))
    sim.patch(f"{PROJECTS}/default", {"spec": {"namespaceResourceBlacklist": [{"group": "apps", "kind": "*"}]}})
    state = sim.sync()
    assert state["phase"] == "Failed"
    assert state["message"] == (
        "one or more synchronization tasks are not valid: resource apps:Deployment is not permitted in project default"
    )
    assert sim.maps() == []


def test_a_permanent_failure_is_retried_as_often_as_asked_s011_s012() -> None:
    sim = Simulation(job("pre", code=1, hook="PreSync"), config("a"))
    sim.begin(retry={"limit": 2})
    sim.driver.until(lambda: bool(sim.state().get("finishedAt")))
    state = sim.state()
    assert (state["phase"], state["retryCount"]) == ("Running", 1)
    assert "Retrying attempt #1 at" in state["message"]
    state = sim.finish()
    assert state["phase"] == "Failed"
    assert state["message"].endswith("(retried 2 times).")
    assert sim.maps() == []


def test_a_retry_takes_the_old_commit_unless_refresh_is_asked_for_s013() -> None:
    for refresh, wanted in ((False, "Failed"), (True, "Succeeded")):
        sim = Simulation(job("pre", code=1, hook="PreSync"), config("a"))
        old = sim.source.head
        sim.begin(retry={"limit": 1, "refresh": refresh, "backoff": {"duration": "1m"}})
        sim.driver.until(lambda: bool(sim.state().get("finishedAt")))  # noqa: B023
        new = sim.source.commit(config("a"))
        state = sim.finish()
        assert (state["phase"], state["syncResult"]["revision"]) == (wanted, new if refresh else old)


def test_a_retry_begins_with_empty_results_and_runs_hooks_again_s014() -> None:
    sim = Simulation(job("pre", hook="PreSync"), job("post", code=1, hook="PostSync"))
    sim.begin(retry={"limit": 1, "backoff": {"duration": "1m"}})
    sim.driver.until(lambda: bool(sim.state().get("finishedAt")))
    first = sim.get(f"{JOBS}/pre")
    sim.driver.until(lambda: not sim.state().get("finishedAt"))
    assert "syncResult" not in sim.state() or not rows(sim.state()).get("Job/post")
    sim.finish()
    second = sim.get(f"{JOBS}/pre")
    assert first is not None
    assert second is not None
    assert first["metadata"]["uid"] != second["metadata"]["uid"]


def test_a_terminated_operation_ends_its_hooks_and_leaves_resources_s015_s016() -> None:
    sim = Simulation(deployment("web"), job("slow", seconds=3000, hook="PostSync"))
    sim.begin(retry={"limit": 3})
    sim.driver.until(lambda: bool(sim.names(JOBS)))
    sim.driver.advance(5)
    sim.patch(f"{APPS}/app", {"status": {"operationState": {"phase": "Terminating"}}})
    state = sim.finish()
    assert (state["phase"], state["message"]) == ("Failed", "Operation terminated")
    row = rows(state)["Job/slow"]
    assert (row["hookPhase"], row["message"]) == ("Failed", "Terminated")
    assert not state.get("retryCount")
    sim.driver.advance(60)
    assert (sim.names(JOBS), sim.names(DEPLOYMENTS)) == ([], ["web"])


def test_an_operation_that_takes_too_long_is_terminated_s018() -> None:
    sim = Simulation(job("slow", seconds=3000, hook="PreSync"), settings=AppSettings(sync_timeout_s=60))
    state = sim.sync(limit_s=200)
    assert state["phase"] == "Failed"
    assert state["message"] == "Operation terminated, triggered by controller sync timeout"


def test_the_timeout_counts_waits_between_attempts_s018() -> None:
    sim = Simulation(job("pre", code=1, hook="PreSync"), settings=AppSettings(sync_timeout_s=60))
    state = sim.sync(limit_s=200, retry={"limit": 9, "backoff": {"duration": "2m", "maxDuration": "2m"}})
    assert state["message"] == "Operation terminated, triggered by controller sync timeout"


def test_history_keeps_the_last_ones_with_growing_numbers_s019() -> None:
    sim = Simulation(config("a"), spec={"revisionHistoryLimit": 3})
    for n in range(4):
        sim.source.commit(config("a", str(n)))
        sim.sync()
    assert [entry["id"] for entry in sim.app()["status"]["history"]] == [1, 2, 3]


def test_a_selective_sync_runs_no_hook_and_leaves_no_history_s020() -> None:
    sim = Simulation(config("a"), config("b"), job("pre", hook="PreSync"))
    state = sim.sync({"resources": [{"group": "", "kind": "ConfigMap", "name": "b"}]})
    assert (state["phase"], sim.maps(), sim.names(JOBS)) == ("Succeeded", ["b"], [])
    assert not sim.app()["status"].get("history")


def test_a_selection_of_nothing_syncs_nothing() -> None:
    sim = Simulation(config("a"))
    state = sim.sync({"resources": [{"group": "", "kind": "ConfigMap", "name": "ghost"}]})
    assert (state["phase"], sim.maps()) == ("Succeeded", [])


def test_strategy_apply_leaves_hooks_out_but_counts_as_a_full_sync() -> None:
    sim = Simulation(config("a"), job("pre", hook="PreSync"))
    sim.sync({"syncStrategy": {"apply": {}}})
    assert (sim.maps(), sim.names(JOBS)) == (["a"], [])
    assert len(sim.app()["status"]["history"]) == 1


def test_an_operation_without_sync_is_refused_in_words() -> None:
    sim = Simulation(config("a"))
    sim.patch(f"{APPS}/app", {"operation": {"initiatedBy": {"username": "me"}}})
    state = sim.finish()
    assert (state["phase"], state["message"]) == ("Error", "Invalid operation request: no operation specified")


def test_an_older_commit_can_be_asked_for() -> None:
    sim = Simulation(config("a", "old"))
    old = sim.source.head
    sim.source.commit(config("a", "new"))
    sim.sync()
    state = sim.sync({"revision": old})
    assert state["syncResult"]["revision"] == old
    assert sim.get("/api/v1/namespaces/default/configmaps/a")["data"] == {"k": "old"}  # type: ignore[index]
    assert sim.sync_status() == "OutOfSync"


def test_an_unreadable_backoff_is_an_error_in_words() -> None:
    sim = Simulation(job("pre", code=1, hook="PreSync"))
    state = sim.sync(retry={"limit": 2, "backoff": {"duration": "soon"}})
    assert state["phase"] == "Error"
    assert "failed to retry" in state["message"]


def test_options_of_the_request_replace_those_of_the_spec() -> None:
    spec = {"destination": {"server": "https://kubernetes.default.svc", "namespace": "shop"}}
    sim = Simulation(config("a"), spec=spec, syncOptions=["CreateNamespace=true"])
    state = sim.sync({"syncOptions": ["Validate=false"]})
    assert state["phase"] == "Failed"
    assert 'namespaces "shop" not found' in str(state)
    assert sim.get("/api/v1/namespaces/shop") is None


def test_two_syncs_at_once_are_two_operations_one_after_the_other() -> None:
    sim = Simulation(config("a"), job("pre", hook="PreSync"))
    sim.sync()
    first = sim.get(f"{JOBS}/pre")
    sim.sync()
    second = sim.get(f"{JOBS}/pre")
    assert dig(first, "metadata", "uid") != dig(second, "metadata", "uid")
    assert [entry["id"] for entry in sim.app()["status"]["history"]] == [0, 1]


def test_a_deleted_application_lets_its_operation_end_first() -> None:
    sim = Simulation(config("a"), job("pre", seconds=30, hook="PreSync"))
    sim.patch(f"{APPS}/app", {"metadata": {"finalizers": ["resources-finalizer.argocd.argoproj.io"]}})
    sim.begin()
    sim.driver.advance(5)
    sim.world.send("DELETE", f"{APPS}/app")
    sim.driver.advance(120)
    assert sim.get(f"{APPS}/app") is None
    assert sim.maps() == []


def test_a_namespace_that_ends_fails_the_operation_in_words() -> None:
    spec = {"destination": {"server": "https://kubernetes.default.svc", "namespace": "shop"}}
    sim = Simulation(config("a"), spec=spec)
    sim.world.send("POST", "/api/v1/namespaces", {"metadata": {"name": "shop", "finalizers": ["example.org/keep"]}})
    sim.driver.settle()
    sim.world.send("DELETE", "/api/v1/namespaces/shop")
    sim.driver.settle()
    state = sim.sync()
    assert state["phase"] == "Failed"
    assert "being terminated" in str(rows(state))


def test_an_unknown_project_is_an_error_that_names_it() -> None:
    sim = Simulation(config("a"), spec={"project": "ghost"})
    assert "ghost" in sim.conditions()["InvalidSpecError"]
    state = sim.sync()
    assert state["phase"] == "Error"
    assert "ghost" in state["message"]


def test_hooks_of_every_phase_say_where_they_ran() -> None:
    sim = Simulation(annotated(config("a"), hook="PreSync,PostSync"))
    state = sim.sync()
    found = [(row["hookType"], row["message"]) for row in state["syncResult"]["resources"]]
    assert found == [("PreSync", "a created"), ("PostSync", "a created")]


def test_a_wrong_number_of_revisions_is_an_error_and_keeps_nobody_busy() -> None:
    sources = [{"repoURL": f"https://example.com/{n}.git", "path": ".", "targetRevision": "main"} for n in "ab"]
    sim = Simulation(config("a"), spec={"source": None, "sources": sources})
    state = sim.sync({"revisions": ["main"]}, limit_s=60)
    assert state["phase"] == "Error"
    assert state["message"] == "Invalid operation request: 1 revisions for 2 sources; give one for each"


def test_revisions_are_for_several_sources_only() -> None:
    state = Simulation(config("a")).sync({"revisions": ["x", "y"]}, limit_s=60)
    assert state["phase"] == "Succeeded"


def test_a_request_may_bring_another_number_of_sources() -> None:
    sources = [{"repoURL": f"https://example.com/{n}.git", "path": ".", "targetRevision": "main"} for n in "ab"]
    sim = Simulation(config("a"), job("pre", hook="PreSync"))
    state = sim.sync({"sources": sources}, limit_s=60)
    assert (state["phase"], len(state["syncResult"]["revisions"])) == ("Succeeded", 2)
    state = sim.sync({"source": sources[0]}, limit_s=60)
    assert state["phase"] == "Succeeded"


def test_an_empty_request_is_answered() -> None:
    sim = Simulation(config("a"))
    sim.patch(f"{APPS}/app", {"operation": {"sync": None}})
    assert sim.finish(limit_s=60)["message"] == "Invalid operation request: no operation specified"
    assert "operation" not in sim.app()


def test_manifests_of_the_request_are_synced_instead_of_the_source() -> None:
    sim = Simulation(config("a"))
    state = sim.sync({"manifests": [json.dumps(config("mine"))]}, limit_s=60)
    assert (state["phase"], sim.maps()) == ("Succeeded", ["mine"])
    assert sim.sync({"manifests": ["[]"]}, limit_s=60)["message"].endswith(
        "operation.sync.manifests[0]: must be one object with apiVersion and kind"
    )


def test_manifests_of_the_request_are_refused_where_commits_must_be_signed() -> None:
    sim = Simulation(config("a"))
    sim.patch(f"{PROJECTS}/default", {"spec": {"signatureKeys": [{"keyID": "ABCDEF"}]}})
    state = sim.sync({"manifests": [json.dumps(config("mine"))]}, limit_s=60)
    assert state["message"] == "Cannot use local manifests when source integrity is enforced"
    assert sim.maps() == []


def test_a_phase_that_nobody_knows_does_not_stop_the_next_operation() -> None:
    sim = Simulation(config("a"))
    made_up = {"phase": "Bogus", "operation": {"sync": {}}, "startedAt": "2026-01-01T00:00:00Z"}
    sim.patch(f"{APPS}/app", {"operation": {"sync": {}}, "status": {"operationState": made_up}})
    assert sim.finish(limit_s=60)["phase"] == "Succeeded"
