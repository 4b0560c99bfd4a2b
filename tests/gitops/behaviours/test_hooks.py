"""Hooks: phases, policies, results (behaviours 21-44 of the sync reference)."""

from __future__ import annotations

from typing import Any

import pytest
from tests.gitops.behaviours.sim import (
    DEPLOYMENTS,
    JOBS,
    MAPS,
    NOWHERE,
    PREFIX,
    Simulation,
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
    sim = Simulation(config("a"), job("pre", code=1, hook="PreSync"))
    state = sim.sync()
    assert (state["phase"], state["message"]) == (
        "Failed",
        "one or more synchronization tasks completed unsuccessfully",
    )
    assert rows(state)["Job/pre"]["hookPhase"] == "Failed"
    assert sim.maps() == []


def test_a_postsync_hook_waits_for_what_progresses_s022() -> None:
    sim = Simulation(deployment("web", pod=NOWHERE), job("post", hook="PostSync"))
    sim.begin()
    sim.driver.advance(300)
    assert sim.names(JOBS) == []
    assert sim.state()["message"] == "waiting for healthy state of apps/Deployment/web"


def test_a_deployment_that_degrades_fails_the_sync_before_postsync_s023() -> None:
    sim = Simulation(stuck("web"), job("post", hook="PostSync"))
    state = sim.sync()
    assert (state["phase"], sim.names(JOBS)) == ("Failed", [])


def test_a_sync_hook_is_waited_for_but_not_the_deployment_beside_it_s024() -> None:
    sim = Simulation(deployment("web", pod=NOWHERE), job("during", hook="Sync"))
    state = sim.sync(limit_s=60)
    assert (state["phase"], rows(state)["Job/during"]["hookPhase"]) == ("Succeeded", "Succeeded")


def test_an_unknown_hook_value_drops_the_object_without_a_word_s025() -> None:
    sim = Simulation(config("a"), config("b", hook="Garbage"))
    state = sim.sync()
    assert (sim.maps(), list(rows(state)), sim.sync_status()) == (["a"], ["ConfigMap/a"], "Synced")


def test_skip_keeps_an_object_out_of_everything_s026() -> None:
    sim = Simulation(config("a"), config("b"))
    sim.sync()
    sim.source.commit(config("a"), config("b", "changed", hook="Skip"))
    sim.sync({"prune": True})
    assert sim.maps() == ["a", "b"]
    assert dig(sim.get(f"{MAPS}/b"), "data") == {"k": "v"}


def test_a_live_object_that_says_skip_is_not_pruned_s026() -> None:
    sim = Simulation(config("a"), config("b"))
    sim.sync()
    sim.patch(f"{MAPS}/b", {"metadata": {"annotations": {PREFIX + "hook": "Skip"}}})
    sim.source.commit(config("a"))
    sim.sync({"prune": True})
    assert sim.maps() == ["a", "b"]


def test_a_generated_hook_of_two_phases_is_two_objects_named_after_their_phase_s027_s028() -> None:
    sim = Simulation(job("smoke-", generate=True, hook="PreSync,PostSync"))
    state = sim.sync()
    revision, started = sim.source.head[:7], int(parse_time(state["startedAt"]).timestamp())
    assert sim.names(JOBS) == [f"smoke-{revision}-postsync-{started}", f"smoke-{revision}-presync-{started}"]


def test_the_default_policy_deletes_the_old_hook_first_s029() -> None:
    sim = Simulation(job("pre", hook="PreSync"))
    sim.sync()
    before = uid_of(sim.get(f"{JOBS}/pre") or {})
    sim.patch(f"{JOBS}/pre", {"metadata": {"finalizers": ["example.org/keep"]}})
    sim.begin()
    sim.driver.advance(20)
    assert sim.state()["message"] == "waiting for deletion of hook batch/Job/pre"
    sim.patch(f"{JOBS}/pre", {"metadata": {"finalizers": None}})
    assert sim.finish()["phase"] == "Succeeded"
    assert uid_of(sim.get(f"{JOBS}/pre") or {}) != before


def test_hook_succeeded_deletes_only_when_the_whole_sync_succeeds_s030() -> None:
    sim = Simulation(
        job("pre", hook="PreSync", hook_delete_policy="HookSucceeded"), job("post", code=1, hook="PostSync")
    )
    assert sim.sync()["phase"] == "Failed"
    assert sim.names(JOBS) == ["post", "pre"]
    sim = Simulation(job("pre", hook="PreSync", hook_delete_policy="HookSucceeded"))
    sim.sync()
    sim.driver.advance(30)
    assert sim.names(JOBS) == []


def test_hook_failed_deletes_also_the_hook_that_succeeded_s031() -> None:
    sim = Simulation(job("pre", hook="PreSync", hook_delete_policy="HookFailed"), job("post", code=1, hook="PostSync"))
    assert sim.sync()["phase"] == "Failed"
    sim.driver.advance(30)
    assert sim.names(JOBS) == ["post"]


def test_only_hook_succeeded_leaves_the_failed_job_in_the_way_s032() -> None:
    sim = Simulation(job("pre", code=1, hook="PreSync", hook_delete_policy="HookSucceeded"))
    sim.sync()
    before = uid_of(sim.get(f"{JOBS}/pre") or {})
    state = sim.sync()
    assert state["phase"] == "Failed"
    assert uid_of(sim.get(f"{JOBS}/pre") or {}) == before


def test_policies_of_both_tools_add_up_s033() -> None:
    both = helm(
        job("pre", hook="PreSync", hook_delete_policy="BeforeHookCreation"), hook_delete_policy="hook-succeeded"
    )
    sim = Simulation(both, job("post", code=1, hook="PostSync"))
    sim.sync()
    before = uid_of(sim.get(f"{JOBS}/pre") or {})
    sim.source.commit(both)
    assert sim.sync()["phase"] == "Succeeded"
    assert before not in [uid_of(j) for j in sim.world.send("GET", JOBS)["items"]]
    sim.driver.advance(30)
    assert "pre" not in sim.names(JOBS)


def test_a_job_with_ttl_zero_is_counted_before_it_goes_s034() -> None:
    sim = Simulation(job("pre", hook="PreSync", spec={"ttlSecondsAfterFinished": 0}), config("a"))
    state = sim.sync()
    assert (state["phase"], rows(state)["Job/pre"]["hookPhase"]) == ("Succeeded", "Succeeded")
    sim.driver.advance(60)
    assert sim.names(JOBS) == []


def test_finalizers_stay_until_all_hooks_of_the_wave_are_done_s035() -> None:
    sim = Simulation(job("fast", hook="PreSync"), job("slow", seconds=100, hook="PreSync"))
    sim.begin()
    sim.driver.advance(60)
    assert dig(sim.get(f"{JOBS}/fast"), "status", "succeeded") == 1
    assert FINALIZER in finalizers(sim.get(f"{JOBS}/fast") or {})
    sim.finish()
    assert finalizers(sim.get(f"{JOBS}/fast") or {}) == []


def test_a_hook_that_vanishes_fails_the_sync_s036() -> None:
    sim = Simulation(job("pre", seconds=1000, hook="PreSync"))
    sim.begin()
    sim.driver.advance(20)
    sim.patch(f"{JOBS}/pre", {"metadata": {"finalizers": None}})
    sim.world.send("DELETE", f"{JOBS}/pre?propagationPolicy=Background")
    state = sim.finish()
    row = rows(state)["Job/pre"]
    assert (state["phase"], row["hookPhase"]) == ("Failed", "Error")
    assert row["message"] == "Resource batch/Job/pre is missing, it might have been deleted"


def test_a_suspended_job_is_waited_for_s037() -> None:
    sim = Simulation(job("pre", hook="PreSync", spec={"suspend": True}))
    sim.begin()
    sim.driver.advance(3000)
    assert sim.state()["message"] == "waiting for completion of hook batch/Job/pre"
    sim.patch(f"{JOBS}/pre", {"spec": {"suspend": False}})
    assert sim.finish()["phase"] == "Succeeded"


def test_a_config_map_hook_is_done_when_it_is_created_s038() -> None:
    sim = Simulation(config("pre", hook="PreSync"))
    state = sim.sync()
    assert (rows(state)["ConfigMap/pre"]["hookPhase"], rows(state)["ConfigMap/pre"]["message"]) == (
        "Succeeded",
        "pre created",
    )


def test_a_pod_whose_image_cannot_be_had_is_waited_for_s039() -> None:
    obj = pod("pre", hook="PreSync")
    obj["metadata"]["annotations"]["syncline.dev/image-pull"] = "fail"
    sim = Simulation(obj)
    sim.begin()
    sim.driver.advance(900)
    assert sim.state()["phase"] == "Running"
    assert sim.state()["message"] == "waiting for completion of hook /Pod/pre"


@pytest.mark.parametrize(("code", "phase"), [(0, "Succeeded"), (3, "Failed")])
def test_a_pod_hook_ends_as_its_container_does(code: int, phase: str) -> None:
    sim = Simulation(pod("pre", code=code, hook="PreSync"), config("a"))
    state = sim.sync()
    assert (state["phase"], rows(state)["Pod/pre"]["hookPhase"]) == (phase, phase)


def test_a_deployment_hook_is_done_when_it_is_healthy() -> None:
    sim = Simulation(deployment("pre", hook="PreSync"), config("a"))
    state = sim.sync()
    assert (state["phase"], rows(state)["Deployment/pre"]["hookPhase"]) == ("Succeeded", "Succeeded")
    assert dig(sim.get(f"{DEPLOYMENTS}/pre"), "status", "availableReplicas") == 1


def test_an_application_of_hooks_only_is_synced_and_never_syncs_itself_s040() -> None:
    sim = Simulation(job("pre", hook="PreSync"), automated={})
    sim.driver.advance(600)
    assert (sim.sync_status(), sim.state(), sim.names(JOBS)) == ("Synced", {}, [])


def test_syncfail_hooks_run_and_the_first_message_stays_s041() -> None:
    sim = Simulation(config("a"), job("post", code=1, hook="PostSync"), job("rescue", hook="SyncFail"))
    state = sim.sync()
    assert (state["phase"], state["message"]) == (
        "Failed",
        "one or more synchronization tasks completed unsuccessfully",
    )
    assert rows(state)["Job/rescue"]["hookPhase"] == "Succeeded"


def test_syncfail_hooks_do_not_run_for_a_failed_dry_run_s042() -> None:
    sim = Simulation(deployment("web", spec={"replicas": -1}), job("rescue", hook="SyncFail"))
    assert sim.sync()["phase"] == "Failed"
    assert sim.names(JOBS) == []


def test_helm_hooks_of_install_and_upgrade_run_once_and_tests_never_s043() -> None:
    sim = Simulation(
        helm(job("pre"), hook="pre-install,pre-upgrade"),
        helm(job("check"), hook="test"),
        helm(config("c"), hook="crd-install"),
    )
    state = sim.sync()
    assert [(r["name"], r.get("hookType", "")) for r in state["syncResult"]["resources"]] == [
        ("pre", "PreSync"),
        ("c", ""),
    ]
    assert sim.names(JOBS) == ["pre"]


def test_the_sync_wave_wins_over_the_hook_weight_s044() -> None:
    one = helm(config("one", hook="PreSync", sync_wave="1"), hook_weight="5")
    sim = Simulation(
        one, config("three", hook="PreSync", sync_wave="3"), helm(config("zero", hook="PreSync"), hook_weight="0")
    )
    sim.sync()
    assert sim.done("apply")[-3:] == ["zero", "one", "three"]


def test_a_syncfail_hook_is_left_out_when_all_goes_well() -> None:
    sim = Simulation(config("a"), job("rescue", hook="SyncFail"))
    assert sim.sync()["phase"] == "Succeeded"
    assert sim.names(JOBS) == []


def test_a_hook_with_skip_and_a_phase_runs() -> None:
    sim = Simulation(config("pre", hook="Skip,PreSync"))
    assert rows(sim.sync())["ConfigMap/pre"]["hookType"] == "PreSync"


def test_an_object_without_any_name_is_refused_in_words() -> None:
    sim = Simulation(annotated({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {}, "data": {}}), config("a"))
    sim.begin()
    state = sim.finish(limit_s=300)
    assert state["phase"] in ("Failed", "Error")
    assert "name" in str(state["message"]) + str(rows(state))


def test_a_hook_name_that_is_too_long_is_refused_in_words() -> None:
    sim = Simulation(job("x" * 60, generate=True, hook="PreSync"))
    state = sim.sync()
    assert state["phase"] == "Failed"
    assert "63" in str(rows(state))
