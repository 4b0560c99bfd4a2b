"""Hooks: phases, policies, results (behaviours 21-44 of the sync reference)."""

from __future__ import annotations

from typing import Any

import pytest
from tests.gitops.behaviours.play import (
    DEPLOYMENTS,
    JOBS,
    MAPS,
    NOWHERE,
    PREFIX,
    Play,
    annotated,
    config,
    deployment,
    job,
    rows,
)

from syncline.base.clock import parse_time
from syncline.kube.objects import dig, finalizers, uid_of

FINALIZER = PREFIX + "hook-finalizer"
HELM = "helm.sh/"
PODS = "/api/v1/namespaces/default/pods"
BAD_CONFIG: dict[str, Any] = {"immutable": True, "data": {"k": "1"}}


def helm(obj: dict[str, Any], **annotations: str) -> dict[str, Any]:
    meta = obj["metadata"]
    named = {HELM + key.replace("_", "-"): value for key, value in annotations.items()}
    return obj | {"metadata": meta | {"annotations": meta.get("annotations", {}) | named}}


def pod(name: str, restart: str = "Never", code: int = 0, **a: str) -> dict[str, Any]:
    meta = {"name": name, "annotations": {"syncline.dev/exit-code": str(code)}}
    containers = [{"name": "c", "image": "busybox:1", "command": ["sleep", "2"]}]
    made = {"apiVersion": "v1", "kind": "Pod", "metadata": meta}
    return annotated(made | {"spec": {"restartPolicy": restart, "containers": containers}}, **a)


def stuck(name: str, **a: str) -> dict[str, Any]:
    """A Deployment that becomes Degraded after ten seconds."""
    return deployment(name, spec={"progressDeadlineSeconds": 10}, pod=NOWHERE, **a)


def test_a_failing_presync_hook_stops_the_sync_s021() -> None:
    play = Play(config("a"), job("pre", code=1, hook="PreSync"))
    state = play.sync()
    assert (state["phase"], state["message"]) == (
        "Failed",
        "one or more synchronization tasks completed unsuccessfully",
    )
    assert rows(state)["Job/pre"]["hookPhase"] == "Failed"
    assert play.maps() == []


def test_a_postsync_hook_waits_for_what_progresses_s022() -> None:
    play = Play(deployment("web", pod=NOWHERE), job("post", hook="PostSync"))
    play.begin()
    play.driver.advance(300)
    assert play.names(JOBS) == []
    assert play.state()["message"] == "waiting for healthy state of apps/Deployment/web"


def test_a_deployment_that_degrades_fails_the_sync_before_postsync_s023() -> None:
    play = Play(stuck("web"), job("post", hook="PostSync"))
    state = play.sync()
    assert (state["phase"], play.names(JOBS)) == ("Failed", [])


def test_a_sync_hook_is_waited_for_but_not_the_deployment_beside_it_s024() -> None:
    play = Play(deployment("web", pod=NOWHERE), job("during", hook="Sync"))
    state = play.sync(limit_s=60)
    assert (state["phase"], rows(state)["Job/during"]["hookPhase"]) == ("Succeeded", "Succeeded")


def test_an_unknown_hook_value_drops_the_object_without_a_word_s025() -> None:
    play = Play(config("a"), config("b", hook="Garbage"))
    state = play.sync()
    assert (play.maps(), list(rows(state)), play.sync_status()) == (["a"], ["ConfigMap/a"], "Synced")


def test_skip_keeps_an_object_out_of_everything_s026() -> None:
    play = Play(config("a"), config("b"))
    play.sync()
    play.source.commit(config("a"), config("b", "changed", hook="Skip"))
    play.sync({"prune": True})
    assert play.maps() == ["a", "b"]
    assert dig(play.get(f"{MAPS}/b"), "data") == {"k": "v"}


def test_a_live_object_that_says_skip_is_not_pruned_s026() -> None:
    play = Play(config("a"), config("b"))
    play.sync()
    play.patch(f"{MAPS}/b", {"metadata": {"annotations": {PREFIX + "hook": "Skip"}}})
    play.source.commit(config("a"))
    play.sync({"prune": True})
    assert play.maps() == ["a", "b"]


def test_a_generated_hook_of_two_phases_is_two_objects_named_after_their_phase_s027_s028() -> None:
    play = Play(job("smoke-", generate=True, hook="PreSync,PostSync"))
    state = play.sync()
    revision, started = play.source.head[:7], int(parse_time(state["startedAt"]).timestamp())
    assert play.names(JOBS) == [f"smoke-{revision}-postsync-{started}", f"smoke-{revision}-presync-{started}"]


def test_the_default_policy_deletes_the_old_hook_first_s029() -> None:
    play = Play(job("pre", hook="PreSync"))
    play.sync()
    before = uid_of(play.get(f"{JOBS}/pre") or {})
    play.patch(f"{JOBS}/pre", {"metadata": {"finalizers": ["example.org/keep"]}})
    play.begin()
    play.driver.advance(20)
    assert play.state()["message"] == "waiting for deletion of hook batch/Job/pre"
    play.patch(f"{JOBS}/pre", {"metadata": {"finalizers": None}})
    assert play.finish()["phase"] == "Succeeded"
    assert uid_of(play.get(f"{JOBS}/pre") or {}) != before


def test_hook_succeeded_deletes_only_when_the_whole_sync_succeeds_s030() -> None:
    play = Play(job("pre", hook="PreSync", hook_delete_policy="HookSucceeded"), job("post", code=1, hook="PostSync"))
    assert play.sync()["phase"] == "Failed"
    assert play.names(JOBS) == ["post", "pre"]
    play = Play(job("pre", hook="PreSync", hook_delete_policy="HookSucceeded"))
    play.sync()
    play.driver.advance(30)
    assert play.names(JOBS) == []


def test_hook_failed_deletes_also_the_hook_that_succeeded_s031() -> None:
    play = Play(job("pre", hook="PreSync", hook_delete_policy="HookFailed"), job("post", code=1, hook="PostSync"))
    assert play.sync()["phase"] == "Failed"
    play.driver.advance(30)
    assert play.names(JOBS) == ["post"]


def test_only_hook_succeeded_leaves_the_failed_job_in_the_way_s032() -> None:
    play = Play(job("pre", code=1, hook="PreSync", hook_delete_policy="HookSucceeded"))
    play.sync()
    before = uid_of(play.get(f"{JOBS}/pre") or {})
    state = play.sync()
    assert state["phase"] == "Failed"
    assert uid_of(play.get(f"{JOBS}/pre") or {}) == before


def test_policies_of_both_tools_add_up_s033() -> None:
    both = helm(
        job("pre", hook="PreSync", hook_delete_policy="BeforeHookCreation"), hook_delete_policy="hook-succeeded"
    )
    play = Play(both, job("post", code=1, hook="PostSync"))
    play.sync()
    before = uid_of(play.get(f"{JOBS}/pre") or {})
    play.source.commit(both)
    assert play.sync()["phase"] == "Succeeded"
    assert before not in [uid_of(j) for j in play.world.send("GET", JOBS)["items"]]
    play.driver.advance(30)
    assert "pre" not in play.names(JOBS)


def test_a_job_with_ttl_zero_is_counted_before_it_goes_s034() -> None:
    play = Play(job("pre", hook="PreSync", spec={"ttlSecondsAfterFinished": 0}), config("a"))
    state = play.sync()
    assert (state["phase"], rows(state)["Job/pre"]["hookPhase"]) == ("Succeeded", "Succeeded")
    play.driver.advance(60)
    assert play.names(JOBS) == []


def test_finalizers_stay_until_all_hooks_of_the_wave_are_done_s035() -> None:
    play = Play(job("fast", hook="PreSync"), job("slow", seconds=100, hook="PreSync"))
    play.begin()
    play.driver.advance(60)
    assert dig(play.get(f"{JOBS}/fast"), "status", "succeeded") == 1
    assert FINALIZER in finalizers(play.get(f"{JOBS}/fast") or {})
    play.finish()
    assert finalizers(play.get(f"{JOBS}/fast") or {}) == []


def test_a_hook_that_vanishes_fails_the_sync_s036() -> None:
    play = Play(job("pre", seconds=1000, hook="PreSync"))
    play.begin()
    play.driver.advance(20)
    play.patch(f"{JOBS}/pre", {"metadata": {"finalizers": None}})
    play.world.send("DELETE", f"{JOBS}/pre?propagationPolicy=Background")
    state = play.finish()
    row = rows(state)["Job/pre"]
    assert (state["phase"], row["hookPhase"]) == ("Failed", "Error")
    assert row["message"] == "Resource batch/Job/pre is missing, it might have been deleted"


def test_a_suspended_job_is_waited_for_s037() -> None:
    play = Play(job("pre", hook="PreSync", spec={"suspend": True}))
    play.begin()
    play.driver.advance(3000)
    assert play.state()["message"] == "waiting for completion of hook batch/Job/pre"
    play.patch(f"{JOBS}/pre", {"spec": {"suspend": False}})
    assert play.finish()["phase"] == "Succeeded"


def test_a_config_map_hook_is_done_when_it_is_created_s038() -> None:
    play = Play(config("pre", hook="PreSync"))
    state = play.sync()
    assert (rows(state)["ConfigMap/pre"]["hookPhase"], rows(state)["ConfigMap/pre"]["message"]) == (
        "Succeeded",
        "pre created",
    )


def test_a_pod_whose_image_cannot_be_had_is_waited_for_s039() -> None:
    obj = pod("pre", hook="PreSync")
    obj["metadata"]["annotations"]["syncline.dev/image-pull"] = "fail"
    play = Play(obj)
    play.begin()
    play.driver.advance(900)
    assert play.state()["phase"] == "Running"
    assert play.state()["message"] == "waiting for completion of hook /Pod/pre"


@pytest.mark.parametrize(("code", "phase"), [(0, "Succeeded"), (3, "Failed")])
def test_a_pod_hook_ends_as_its_container_does(code: int, phase: str) -> None:
    play = Play(pod("pre", code=code, hook="PreSync"), config("a"))
    state = play.sync()
    assert (state["phase"], rows(state)["Pod/pre"]["hookPhase"]) == (phase, phase)


def test_a_deployment_hook_is_done_when_it_is_healthy() -> None:
    play = Play(deployment("pre", hook="PreSync"), config("a"))
    state = play.sync()
    assert (state["phase"], rows(state)["Deployment/pre"]["hookPhase"]) == ("Succeeded", "Succeeded")
    assert dig(play.get(f"{DEPLOYMENTS}/pre"), "status", "availableReplicas") == 1


def test_an_application_of_hooks_only_is_synced_and_never_syncs_itself_s040() -> None:
    play = Play(job("pre", hook="PreSync"), automated={})
    play.driver.advance(600)
    assert (play.sync_status(), play.state(), play.names(JOBS)) == ("Synced", {}, [])


def test_syncfail_hooks_run_and_the_first_message_stays_s041() -> None:
    play = Play(config("a"), job("post", code=1, hook="PostSync"), job("rescue", hook="SyncFail"))
    state = play.sync()
    assert (state["phase"], state["message"]) == (
        "Failed",
        "one or more synchronization tasks completed unsuccessfully",
    )
    assert rows(state)["Job/rescue"]["hookPhase"] == "Succeeded"


def test_syncfail_hooks_do_not_run_for_a_failed_dry_run_s042() -> None:
    play = Play(deployment("web", spec={"replicas": -1}), job("rescue", hook="SyncFail"))
    assert play.sync()["phase"] == "Failed"
    assert play.names(JOBS) == []


def test_helm_hooks_of_install_and_upgrade_run_once_and_tests_never_s043() -> None:
    play = Play(
        helm(job("pre"), hook="pre-install,pre-upgrade"),
        helm(job("check"), hook="test"),
        helm(config("c"), hook="crd-install"),
    )
    state = play.sync()
    assert [(r["name"], r.get("hookType", "")) for r in state["syncResult"]["resources"]] == [
        ("pre", "PreSync"),
        ("c", ""),
    ]
    assert play.names(JOBS) == ["pre"]


def test_the_sync_wave_wins_over_the_hook_weight_s044() -> None:
    one = helm(config("one", hook="PreSync", sync_wave="1"), hook_weight="5")
    play = Play(
        one, config("three", hook="PreSync", sync_wave="3"), helm(config("zero", hook="PreSync"), hook_weight="0")
    )
    play.sync()
    assert play.done("apply")[-3:] == ["zero", "one", "three"]


def test_a_syncfail_hook_is_left_out_when_all_goes_well() -> None:
    play = Play(config("a"), job("rescue", hook="SyncFail"))
    assert play.sync()["phase"] == "Succeeded"
    assert play.names(JOBS) == []


def test_a_hook_with_skip_and_a_phase_runs() -> None:
    play = Play(config("pre", hook="Skip,PreSync"))
    assert rows(play.sync())["ConfigMap/pre"]["hookType"] == "PreSync"


def test_an_object_without_any_name_is_refused_in_words() -> None:
    play = Play(annotated({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {}, "data": {}}), config("a"))
    play.begin()
    state = play.finish(limit_s=300)
    assert state["phase"] in ("Failed", "Error")
    assert "name" in str(state["message"]) + str(rows(state))


def test_a_hook_name_that_is_too_long_is_refused_in_words() -> None:
    play = Play(job("x" * 60, generate=True, hook="PreSync"))
    state = play.sync()
    assert state["phase"] == "Failed"
    assert "63" in str(rows(state))
