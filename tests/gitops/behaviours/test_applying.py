"""How objects are written, and what starts a sync by itself (behaviours 65-93 of the sync reference)."""

from __future__ import annotations

from typing import Any

import pytest
from tests.gitops.behaviours.sim import (
    APPS,
    DEPLOYMENTS,
    JOBS,
    MAPS,
    MERGE,
    PREFIX,
    PROJECTS,
    Simulation,
    annotated,
    config,
    deployment,
    job,
    rows,
)

from syncline.base.clock import format_time, parse_time
from syncline.kube.objects import annotations_of, dig, uid_of

NAMESPACES = "/api/v1/namespaces"
SERVER = "https://kubernetes.default.svc"
SHOP = {"destination": {"server": SERVER, "namespace": "shop"}}
CASCADE = "resources-finalizer.argocd.argoproj.io"
LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"


def managers(obj: dict[str, Any] | None) -> list[tuple[str, str]]:
    return [(m["manager"], m["operation"]) for m in dig(obj, "metadata", "managedFields", default=[])]


def test_server_side_apply_leaves_no_annotation_s065() -> None:
    sim = Simulation(config("a"), syncOptions=["ServerSideApply=true"])
    state = sim.sync()
    live = sim.get(f"{MAPS}/a")
    assert rows(state)["ConfigMap/a"]["message"] == "configmap/a serverside-applied"
    assert managers(live) == [("argocd-controller", "Apply")]
    assert LAST_APPLIED not in annotations_of(live or {})


@pytest.mark.parametrize(("options", "left"), [([], False), (["ClientSideApplyMigration=false"], True)])
def test_fields_of_kubectl_move_over_s066(options: list[str], left: bool) -> None:
    sim = Simulation(config("a"), syncOptions=["ServerSideApply=true", *options])
    body = config("a", "mine")
    sim.world.send("POST", f"{MAPS}?fieldManager=kubectl-client-side-apply", body)
    sim.sync()
    live = sim.get(f"{MAPS}/a")
    assert ("argocd-controller", "Apply") in managers(live)
    assert (("kubectl-client-side-apply", "Update") in managers(live)) is left


def test_what_is_too_large_for_an_annotation_of_the_last_applied_passes_the_dry_run_of_a_server_side_apply() -> None:
    large = config("a")
    large["data"] = {"text": "x" * 300_000}
    sim = Simulation(large, syncOptions=["ServerSideApply=true"])
    assert sim.sync()["phase"] == "Succeeded"
    sim = Simulation(large)
    assert "Too long" in sim.sync()["syncResult"]["resources"][0]["message"]


def test_a_resource_opts_out_of_server_side_apply_s067() -> None:
    sim = Simulation(config("a", sync_options="ServerSideApply=false"), syncOptions=["ServerSideApply=true"])
    assert rows(sim.sync())["ConfigMap/a"]["message"] == "configmap/a created"
    assert LAST_APPLIED in annotations_of(sim.get(f"{MAPS}/a") or {})


def test_replace_creates_and_replaces_and_keeps_namespaces_s068() -> None:
    shop = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}}
    sim = Simulation(config("a"), shop, syncOptions=["Replace=true"])
    assert rows(sim.sync())["ConfigMap/a"]["message"] == "configmap/a created"
    sim.patch(f"{MAPS}/a", {"data": {"other": "1"}})
    uid = uid_of(sim.get(f"{NAMESPACES}/shop") or {})
    state = sim.sync()
    assert rows(state)["ConfigMap/a"]["message"] == "configmap/a replaced"
    assert (sim.get(f"{MAPS}/a") or {})["data"] == {"k": "v"}
    assert uid_of(sim.get(f"{NAMESPACES}/shop") or {}) == uid


def test_force_and_replace_make_a_job_anew_each_time_s069() -> None:
    sim = Simulation(job("once", sync_options="Force=true,Replace=true"))
    uids = set()
    for _ in range(3):
        sim.sync()
        uids.add(uid_of(sim.get(f"{JOBS}/once") or {}))
        sim.driver.advance(10)
    assert len(uids) == 3


def changed_job(seconds: int) -> dict[str, Any]:
    return job("once", seconds=seconds)


def test_force_in_the_options_of_the_application_does_nothing_s070_s071() -> None:
    sim = Simulation(changed_job(1), syncOptions=["Force=true"])
    sim.sync()
    sim.source.commit(changed_job(2))
    state = sim.sync()
    assert (state["phase"], rows(state)["Job/once"]["status"]) == ("Failed", "SyncFailed")
    assert "field is immutable" in rows(state)["Job/once"]["message"]


def test_force_in_the_strategy_of_the_request_makes_it_anew_s070() -> None:
    sim = Simulation(changed_job(1))
    sim.sync()
    before = uid_of(sim.get(f"{JOBS}/once") or {})
    sim.source.commit(changed_job(2))
    assert sim.sync({"syncStrategy": {"hook": {"force": True}}})["phase"] == "Succeeded"
    assert uid_of(sim.get(f"{JOBS}/once") or {}) != before


def test_replace_alone_deletes_no_workload_whose_selector_changed() -> None:
    sim = Simulation(deployment("web", sync_options="Replace=true"))
    sim.sync()
    before = uid_of(sim.get(f"{DEPLOYMENTS}/web") or {})
    other = deployment("web", sync_options="Replace=true")
    other["spec"]["selector"] = {"matchLabels": {"app": "web", "tier": "front"}}
    other["spec"]["template"]["metadata"]["labels"]["tier"] = "front"
    sim.source.commit(other)
    state = sim.sync()
    assert state["phase"] == "Failed"
    message = rows(state)["Deployment/web"]["message"]
    assert "field is immutable" in message
    assert "Force=true" in message
    assert uid_of(sim.get(f"{DEPLOYMENTS}/web") or {}) == before


@pytest.mark.parametrize("options", ["Force=true", "Force=true,Replace=true"])
def test_a_selector_that_changes_is_a_new_deployment_where_forced(options: str) -> None:
    sim = Simulation(deployment("web", sync_options=options))
    sim.sync()
    other = deployment("web", sync_options=options)
    other["spec"]["selector"] = {"matchLabels": {"app": "web", "tier": "front"}}
    other["spec"]["template"]["metadata"]["labels"]["tier"] = "front"
    sim.source.commit(other)
    state = sim.sync()
    assert state["phase"] == "Succeeded", state
    assert dig(sim.get(f"{DEPLOYMENTS}/web"), "spec", "selector", "matchLabels", "tier") == "front"


def test_a_binding_whose_role_changes_is_made_anew_s072() -> None:
    def binding(role: str) -> dict[str, Any]:
        ref = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role}
        made = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": {"name": "x"}}
        return made | {"roleRef": ref, "subjects": [{"kind": "ServiceAccount", "name": "a", "namespace": "default"}]}

    sim = Simulation(binding("view"))
    sim.sync()
    sim.source.commit(binding("edit"))
    assert sim.sync()["phase"] == "Succeeded"
    path = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/x"
    assert dig(sim.get(path), "roleRef", "name") == "edit"


@pytest.mark.parametrize(("options", "replicas"), [(["RespectIgnoreDifferences=true"], 3), ([], 1)])
def test_ignored_fields_survive_only_where_respected_s073(options: list[str], replicas: int) -> None:
    ignore = [{"group": "apps", "kind": "Deployment", "jsonPointers": ["/spec/replicas"]}]
    web = deployment("web", spec={"replicas": 1})
    sim = Simulation(web, spec={"ignoreDifferences": ignore}, syncOptions=options)
    sim.sync()
    sim.patch(f"{DEPLOYMENTS}/web", {"spec": {"replicas": 3}})
    sim.refresh()
    assert sim.sync_status() == "Synced"
    sim.sync()
    assert dig(sim.get(f"{DEPLOYMENTS}/web"), "spec", "replicas") == replicas


def test_metadata_of_the_namespace_is_managed_and_a_change_is_a_difference_s075() -> None:
    labels: dict[str, Any] = {"labels": {"team": "a"}}
    sim = Simulation(config("a"), spec=SHOP, syncOptions=["CreateNamespace=true"], managedNamespaceMetadata=labels)
    sim.sync()
    assert dig(sim.get(f"{NAMESPACES}/shop"), "metadata", "labels", "team") == "a"
    assert sim.sync_status() == "Synced"
    body = {"spec": {"syncPolicy": {"managedNamespaceMetadata": {"labels": {"team": "b"}}}}}
    sim.patch(f"{APPS}/app", body)
    sim.driver.settle()
    assert sim.sync_status() == "OutOfSync"
    sim.sync()
    assert dig(sim.get(f"{NAMESPACES}/shop"), "metadata", "labels", "team") == "b"
    assert sim.sync_status() == "Synced"


def test_an_object_of_two_applications_is_warned_of_and_refused_where_asked_s076() -> None:
    sim = Simulation(config("a"))
    sim.sync()
    sim.create("other", syncOptions=["FailOnSharedResource=true"])
    assert "ConfigMap/a is part of applications" in sim.conditions("other")["SharedResourceWarning"]
    state = sim.sync(name="other")
    assert state["phase"] == "Failed"
    assert state["message"].startswith("Shared resource found: ConfigMap/a is part of applications")
    assert annotations_of(sim.get(f"{MAPS}/a") or {})[PREFIX + "tracking-id"].startswith("app:")


def test_an_automated_sync_that_failed_is_not_begun_again_by_drift_s077() -> None:
    sim = Simulation(config("a"), job("post", code=1, hook="PostSync"))
    policy = {"automated": {"selfHeal": True}, "retry": {"limit": 0}}
    sim.patch(f"{APPS}/app", {"spec": {"syncPolicy": policy}})
    sim.finish()
    sim.patch(f"{MAPS}/a", {"data": {"k": "drift"}})
    sim.driver.advance(600)
    assert sim.conditions()["SyncError"].startswith(f"Failed last sync attempt to [{sim.source.head}]: one or more")
    assert dig(sim.get(f"{MAPS}/a"), "data", "k") == "drift"


def test_drift_is_healed_alone_and_without_hooks_s078() -> None:
    sim = Simulation(config("a"), config("b"), job("pre", hook="PreSync"), automated={"selfHeal": True})
    sim.driver.advance(60)
    before = uid_of(sim.get(f"{JOBS}/pre") or {})
    sim.patch(f"{MAPS}/a", {"data": {"k": "drift"}})
    sim.driver.advance(60)
    assert dig(sim.get(f"{MAPS}/a"), "data", "k") == "v"
    assert list(rows(sim.state())) == ["ConfigMap/a"]
    assert uid_of(sim.get(f"{JOBS}/pre") or {}) == before


def test_gaps_between_healings_grow_s079() -> None:
    sim = Simulation(config("a"), automated={"selfHeal": True})
    sim.driver.advance(60)
    waits = []
    for _ in range(8):
        sim.patch(f"{MAPS}/a", {"data": {"k": "drift"}})
        at = sim.driver.clock.now()
        sim.driver.until(lambda: dig(sim.get(f"{MAPS}/a"), "data", "k") == "v")
        sim.driver.settle()
        waits.append(round((sim.driver.clock.now() - at).total_seconds()))
    assert waits == [0, 2, 6, 18, 54, 162, 300, 300]
    sim.source.commit(config("a", "new"))
    sim.refresh()
    sim.driver.advance(5)
    sim.patch(f"{MAPS}/a", {"data": {"k": "drift"}})
    sim.driver.settle()
    assert dig(sim.get(f"{MAPS}/a"), "data", "k") == "new"


def test_an_empty_source_wipes_out_nothing_s080() -> None:
    sim = Simulation(config("a"), automated={"prune": True})
    sim.driver.advance(60)
    sim.source.commit()
    sim.refresh()
    sim.driver.advance(60)
    assert "auto-sync will wipe out all resources" in sim.conditions()["SyncError"]
    assert sim.maps() == ["a"]
    body = {"spec": {"syncPolicy": {"automated": {"allowEmpty": True}}}}
    sim.patch(f"{APPS}/app", body)
    sim.driver.advance(60)
    assert sim.maps() == []


def test_automation_that_is_switched_off_does_nothing_s081() -> None:
    sim = Simulation(config("a"), automated={"enabled": False, "prune": True, "selfHeal": True})
    sim.driver.advance(600)
    assert (sim.state(), sim.maps(), sim.sync_status()) == ({}, [], "OutOfSync")


def test_the_tracking_id_names_the_object_s085() -> None:
    sim = Simulation(deployment("web"))
    sim.sync()
    live = sim.get(f"{DEPLOYMENTS}/web") or {}
    assert annotations_of(live)[PREFIX + "tracking-id"] == "app:apps/Deployment:default/web"


def delete(sim: Simulation) -> None:
    sim.world.send("DELETE", f"{APPS}/app")
    sim.driver.settle()


def cascading(sim: Simulation) -> Simulation:
    sim.patch(f"{APPS}/app", {"metadata": {"finalizers": [CASCADE]}})
    sim.driver.settle()
    return sim


def test_without_the_finalizer_resources_stay_s086() -> None:
    sim = Simulation(config("a"))
    sim.sync()
    delete(sim)
    assert (sim.get(f"{APPS}/app"), sim.maps()) == (None, ["a"])


def test_the_highest_wave_is_deleted_first_s087() -> None:
    last = config("b", sync_wave="1")
    last["metadata"]["finalizers"] = ["example.org/keep"]
    sim = cascading(Simulation(config("a"), last))
    sim.sync()
    delete(sim)
    sim.driver.advance(300)
    assert sim.maps() == ["a", "b"]
    sim.patch(f"{MAPS}/b", {"metadata": {"finalizers": None}})
    sim.driver.advance(60)
    assert (sim.maps(), sim.get(f"{APPS}/app")) == ([], None)


def test_what_says_so_survives_the_cascade_s088() -> None:
    keep = config("b")
    keep["metadata"]["annotations"] = {"helm.sh/resource-policy": "keep"}
    sim = cascading(Simulation(config("a", sync_options="Delete=false"), keep, config("c")))
    sim.sync()
    delete(sim)
    sim.driver.advance(60)
    assert (sim.maps(), sim.get(f"{APPS}/app")) == (["a", "b"], None)


def test_a_deletion_that_needs_a_confirmation_waits_for_it_s089() -> None:
    sim = cascading(Simulation(config("a", sync_options="Delete=confirm"), config("b")))
    sim.sync()
    sim.patch(f"{APPS}/app", {"metadata": {"annotations": {PREFIX + "deletion-approved": "2025-01-01T00:00:00Z"}}})
    sim.driver.advance(5)
    delete(sim)
    sim.driver.advance(600)
    assert sim.maps() == ["a", "b"]
    now = format_time(sim.world.clock.now())
    sim.patch(f"{APPS}/app", {"metadata": {"annotations": {PREFIX + "deletion-approved": now}}})
    sim.driver.advance(60)
    assert (sim.maps(), sim.get(f"{APPS}/app")) == ([], None)


def test_an_application_without_destination_is_let_go_s092() -> None:
    sim = cascading(Simulation(config("a")))
    sim.sync()
    sim.patch(f"{APPS}/app", {"spec": {"destination": {"server": "https://gone.example"}}})
    sim.driver.settle()
    delete(sim)
    assert (sim.get(f"{APPS}/app"), sim.maps()) == (None, ["a"])


def test_child_applications_count_as_done_at_once_s093() -> None:
    def child(name: str, wave: str) -> dict[str, Any]:
        made = {"apiVersion": "argoproj.io/v1alpha1", "kind": "Application", "metadata": {"name": name}}
        source = {"repoURL": "https://example.com/r.git", "path": name, "targetRevision": "main"}
        destination = {"server": SERVER, "namespace": "nowhere"}
        return annotated(
            made | {"spec": {"project": "default", "source": source, "destination": destination}}, sync_wave=wave
        )

    sim = Simulation(
        child("one", "0"), child("two", "1"), spec={"destination": {"server": SERVER, "namespace": "argocd"}}
    )
    state = sim.sync(limit_s=30)
    assert (state["phase"], sim.names(APPS)) == ("Succeeded", ["app", "one", "two"])


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ({"sourceRepos": ["https://other.example/*"]}, "is not permitted in project 'default'"),
        ({"destinations": [{"server": "*", "namespace": "other"}]}, "do not match any of the allowed destinations"),
    ],
)
def test_a_project_that_forbids_source_or_destination_is_an_error_in_words(spec: dict[str, Any], words: str) -> None:
    sim = Simulation(config("a"))
    sim.patch(f"{PROJECTS}/default", {"spec": spec})
    sim.refresh()
    assert words in sim.conditions()["InvalidSpecError"]
    state = sim.sync()
    assert (state["phase"], sim.maps()) == ("Error", [])
    assert words in state["message"]


def test_a_project_that_changes_is_noticed_without_a_refresh() -> None:
    sim = Simulation(config("a"))
    sim.patch(f"{PROJECTS}/default", {"spec": {"sourceRepos": []}})
    sim.driver.settle()
    assert "InvalidSpecError" in sim.conditions()
    sim.patch(f"{PROJECTS}/default", {"spec": {"sourceRepos": ["*"]}})
    sim.driver.settle()
    assert sim.conditions() == {}


def test_a_source_that_fails_keeps_the_last_health_and_says_unknown() -> None:
    sim = Simulation(config("a"))
    sim.sync()
    sim.source.fails = "the repository is away"
    sim.refresh()
    assert (sim.sync_status(), sim.conditions()) == (
        "Unknown",
        {"ComparisonError": "Failed to load target state: the repository is away"},
    )
    state = sim.sync()
    assert (state["phase"], state["message"]) == (
        "Error",
        "ComparisonError: Failed to load target state: the repository is away",
    )


def test_several_sources_are_one_application_with_several_revisions() -> None:
    sources = [{"repoURL": f"https://example.com/{n}.git", "path": ".", "targetRevision": "main"} for n in "ab"]
    sim = Simulation(config("a"), spec={"source": None, "sources": sources})
    state = sim.sync()
    assert state["phase"] == "Succeeded", state
    assert state["syncResult"]["revisions"] == [sim.source.head] * 2
    assert "RepeatedResourceWarning" in sim.conditions()


def test_a_retry_of_several_sources_keeps_their_commits() -> None:
    sources = [{"repoURL": f"https://example.com/{n}.git", "path": ".", "targetRevision": "main"} for n in "ab"]
    sim = Simulation(job("pre", code=1, hook="PreSync"), spec={"source": None, "sources": sources})
    head = sim.source.head
    sim.begin(retry={"limit": 1, "backoff": {"duration": "1m"}})
    sim.driver.until(lambda: bool(sim.state().get("finishedAt")))
    sim.source.commit(config("a"))
    state = sim.finish()
    assert (state["phase"], state["syncResult"]["revisions"]) == ("Failed", [head, head])


def test_the_time_of_health_moves_with_health_only() -> None:
    sim = Simulation(config("a"))
    sim.sync()
    first = sim.app()["status"]["health"]
    sim.driver.advance(1000)
    sim.refresh()
    assert sim.app()["status"]["health"] == first
    assert parse_time(sim.app()["status"]["reconciledAt"]) <= sim.world.clock.now()


def test_an_idle_application_is_not_written() -> None:
    sim = Simulation(config("a"), deployment("web"), automated={"prune": True, "selfHeal": True})
    sim.driver.advance(120)
    before = sim.app()["metadata"]["resourceVersion"]
    sim.driver.advance(7200)
    assert sim.app()["metadata"]["resourceVersion"] == before


def test_a_refresh_annotation_of_any_kind_is_answered() -> None:
    sim = Simulation(config("a"))
    for kind in ("hard", "normal", ""):
        sim.source.commit(config("a", kind or "none"))
        sim.refresh(kind=kind)
        assert dig(sim.app(), "metadata", "annotations", PREFIX + "refresh") is None
        assert sim.app()["status"]["sync"]["revision"] == sim.source.head


def test_a_patch_of_kubectl_that_keeps_the_old_state_begins_a_new_operation() -> None:
    sim = Simulation(config("a"))
    sim.sync()
    first = sim.state()
    sim.driver.advance(5)
    sim.world.send("PATCH", f"{APPS}/app", {"operation": {"sync": {"revision": "main"}}}, MERGE)
    second = sim.finish()
    assert second["startedAt"] != first["startedAt"]


def test_operations_of_one_second_do_not_take_one_another_for_a_restart() -> None:
    sim = Simulation(config("pre", "1", hook="PreSync"), config("a"))
    sim.sync()
    sim.source.commit(config("pre", "2", hook="PreSync"), config("a"))
    first, state = sim.state()["startedAt"], sim.sync()
    assert state["startedAt"] == first
    assert dig(sim.get(f"{MAPS}/pre"), "data", "k") == "2"
