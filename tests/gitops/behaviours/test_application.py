"""The Application as a whole, played, by the numbers of the application reference."""

from __future__ import annotations

from tests.gitops.behaviours.sim import APPS, DEPLOYMENTS, MAPS, PREFIX, PROJECTS, Simulation, config, deployment

from syncline.assembly.inspection.snapshot import snapshot_of_cluster
from syncline.control.executor import run_in_place
from syncline.gitops.application.manifests import ManifestStore
from syncline.gitops.application.observing.observe import INSTANCE_INDEX, AppSettings, observe_application
from syncline.kube.objects import ObjectRef, annotations_of, dig


def test_an_operation_without_state_runs_once_and_goes_a001() -> None:
    sim = Simulation(config("a"))
    sim.begin()
    sim.finish()
    assert "operation" not in sim.app()
    before = sim.state()
    sim.driver.advance(600)
    assert sim.state() == before


def test_several_sources_count_and_the_single_one_does_not_a003() -> None:
    several = [
        {"repoURL": "https://example.com/a.git", "path": "."},
        {"repoURL": "https://example.com/b.git", "path": "."},
    ]
    sim = Simulation(config("a"), spec={"sources": several})
    sim.driver.settle()
    assert len(dig(sim.app(), "status", "sync", "revisions")) == 2


def test_automation_that_is_there_is_on_unless_it_says_no_a008() -> None:
    sim = Simulation(config("a"), automated={})
    sim.driver.advance(5)
    assert sim.maps() == ["a"]
    off = Simulation(config("a"), automated={"enabled": False})
    off.driver.advance(600)
    assert off.maps() == []


def test_the_time_of_an_unchanged_condition_does_not_move_a011() -> None:
    sim = Simulation(config("a"))
    sim.patch(f"{APPS}/app", {"spec": {"destination": {"server": "https://gone.example"}}})
    sim.driver.settle()
    (before,) = dig(sim.app(), "status", "conditions")
    sim.driver.advance(300)
    sim.refresh()
    (after,) = dig(sim.app(), "status", "conditions")
    assert after == before


def test_any_other_refresh_is_a_normal_one_a012() -> None:
    sim = Simulation(config("a"))
    sim.source.commit(config("a"), config("b"))
    sim.refresh(kind="foo")
    assert dig(sim.app(), "status", "sync", "revision") == sim.source.head
    assert PREFIX + "refresh" not in annotations_of(sim.app())


def test_a_skipped_application_never_changes_a014() -> None:
    sim = Simulation(config("a"))
    sim.patch(f"{APPS}/app", {"metadata": {"annotations": {PREFIX + "skip-reconcile": "true"}}})
    sim.driver.settle()
    before = sim.app()["status"]
    sim.source.commit(config("b"))
    sim.begin()
    sim.driver.advance(600)
    assert sim.app()["status"] == before


def test_orphans_are_counted_only_with_a_warning_a030() -> None:
    sim = Simulation(config("a"))
    sim.world.send("POST", MAPS, config("stray"))
    sim.patch(f"{PROJECTS}/default", {"spec": {"orphanedResources": {}}})
    sim.driver.settle()
    assert "OrphanedResourceWarning" not in sim.conditions()
    sim.patch(f"{PROJECTS}/default", {"spec": {"orphanedResources": {"warn": True}}})
    sim.driver.settle()
    assert sim.conditions()["OrphanedResourceWarning"] == "Application has 1 orphaned resources"


def test_an_ignored_kind_without_group_is_of_the_core_group_a031() -> None:
    sim = Simulation(config("a"))
    sim.world.send("POST", MAPS, config("stray"))
    sim.world.send("POST", DEPLOYMENTS, deployment("stray"))
    sim.driver.advance(5)
    sim.patch(f"{PROJECTS}/default", {"spec": {"orphanedResources": {"warn": True, "ignore": [{"kind": "*"}]}}})
    sim.driver.settle()
    assert sim.conditions()["OrphanedResourceWarning"] == "Application has 1 orphaned resources"


def impersonating(sim: Simulation) -> None:
    data = {"application.sync.impersonation.enabled": "true"}
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "argocd-cm"}, "data": data}
    sim.world.send("POST", "/api/v1/namespaces/argocd/configmaps", body)
    sim.driver.settle()


def test_without_an_account_to_impersonate_nothing_is_synced_a032() -> None:
    sim = Simulation(config("a"))
    impersonating(sim)
    state = sim.sync()
    assert state["phase"] == "Error"
    assert "no matching service account found for destination server https://kubernetes" in state["message"]
    assert sim.maps() == []


def test_a_sync_has_the_rights_of_the_account_that_the_project_names_a032() -> None:
    sim = Simulation(config("a"))
    impersonating(sim)
    accounts = [{"server": "*", "namespace": "default", "defaultServiceAccount": "deployer"}]
    sim.patch(f"{PROJECTS}/default", {"spec": {"destinationServiceAccounts": accounts}})
    sim.driver.settle()
    assert sim.sync()["phase"] == "Failed"
    assert sim.maps() == []
    rules = [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["*"]}]
    role = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "maps"}}
    roles = "/apis/rbac.authorization.k8s.io/v1"
    sim.world.send("POST", f"{roles}/clusterroles", role | {"rules": rules})
    binding = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": "maps"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "maps"},
        "subjects": [{"kind": "ServiceAccount", "name": "deployer", "namespace": "default"}],
    }
    sim.world.send("POST", f"{roles}/clusterrolebindings", binding)
    assert sim.sync()["phase"] == "Succeeded"
    assert sim.maps() == ["a"]


def test_a_source_that_fails_for_a_moment_changes_nothing_a054() -> None:
    sim = Simulation(config("a"))
    sim.sync()
    sim.source.fails = "connection refused"
    sim.driver.advance(200)
    assert sim.sync_status() == "Synced"
    sim.driver.advance(400)
    assert sim.sync_status() == "Unknown"
    assert "connection refused" in sim.conditions()["ComparisonError"]


def test_who_asks_sees_at_once_that_a_source_fails_a087() -> None:
    sim = Simulation(config("a"))
    sim.sync()
    sim.source.fails = "connection refused"
    sim.refresh()
    assert sim.sync_status() == "Unknown"


def test_drift_is_healed_by_a_sync_of_what_drifted_a088() -> None:
    sim = Simulation(config("a"), config("b"), automated={"selfHeal": True})
    sim.driver.advance(10)
    sim.patch(f"{MAPS}/a", {"data": {"k": "drift"}})
    sim.driver.advance(30)
    operation = sim.state()["operation"]
    assert [row["name"] for row in operation["sync"]["resources"]] == ["a"]
    assert dig(sim.get(f"{MAPS}/a"), "data", "k") == "v"


def test_a_failed_revision_is_not_tried_again_by_itself_a089() -> None:
    sim = Simulation(config("Not_A_Name"), automated={}, retry={"limit": 0})
    sim.driver.advance(10)
    before = sim.state()
    assert before["phase"] == "Failed"
    sim.refresh()
    assert sim.state() == before
    assert "Failed last sync attempt" in sim.conditions()["SyncError"]


def test_an_empty_source_does_not_wipe_out_an_application_a090() -> None:
    sim = Simulation(config("a"), automated={"prune": True})
    sim.driver.advance(10)
    sim.source.commit()
    sim.driver.advance(300)
    assert sim.maps() == ["a"]
    assert "auto-sync will wipe out all resources" in sim.conditions()["SyncError"]


def test_what_belongs_to_another_object_without_saying_so_is_no_orphan_a030() -> None:
    sim = Simulation(config("a"))
    ports = [{"port": 80}]
    service = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web"}}
    sim.world.send("POST", "/api/v1/namespaces/default/services", service | {"spec": {"ports": ports}})
    endpoints = {"apiVersion": "v1", "kind": "Endpoints", "metadata": {"name": "web"}}
    sim.world.send("POST", "/api/v1/namespaces/default/endpoints", endpoints)
    labels = {"kubernetes.io/service-name": "web"}
    slice_ = {"apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "metadata": {"name": "s", "labels": labels}}
    slices = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices"
    sim.world.send("POST", slices, slice_ | {"addressType": "IPv4", "endpoints": []})
    claim = {"metadata": {"name": "data"}, "spec": {"accessModes": ["ReadWriteOnce"]}}
    claim["spec"]["resources"] = {"requests": {"storage": "1Gi"}}  # type: ignore[index]
    template = deployment("db")["spec"] | {"serviceName": "db", "volumeClaimTemplates": [claim]}
    stateful = {"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "db"}, "spec": template}
    sim.world.send("POST", "/apis/apps/v1/namespaces/default/statefulsets", stateful)
    sim.driver.advance(5)
    sim.patch(f"{PROJECTS}/default", {"spec": {"orphanedResources": {"warn": True}}})
    sim.driver.settle()
    assert sim.conditions()["OrphanedResourceWarning"] == "Application has 2 orphaned resources"


def test_charts_are_told_the_version_that_the_destination_says_it_has() -> None:
    sim = Simulation(config("a"))
    cache = run_in_place(snapshot_of_cluster({INSTANCE_INDEX: lambda _obj: ()}), sim.world.admin).cache
    ref = ObjectRef("argoproj.io", "Application", "argocd", "app")
    for told, given in ((cache.mapper.version, "1.36.0"), ("v1.29.4+k3s1", "1.29.4")):
        cache.mapper.version = told
        observed = observe_application(cache, ref, ManifestStore(), AppSettings(kube_version=""))
        assert observed is not None
        assert observed.context.kube_version == given
