"""What ``argocd-cm`` says about all Applications, as it is changed while the controllers run (reference argocd-app)."""

from __future__ import annotations

import pytest
from tests.gitops.behaviours.sim import APPS, DEPLOYMENTS, MAPS, Simulation, config, deployment

from syncline.argo.settings import parse_system, with_globals
from syncline.kube.objects import Obj, dig

MAPS_OF_ARGO = "/api/v1/namespaces/argocd/configmaps"
DEGRADED = """
hs = {}
hs.status = "Degraded"
hs.message = "the key is " .. obj.data.k
return hs
"""


def set_up(sim: Simulation, **data: str) -> None:
    named = {key.replace("__", "."): value for key, value in data.items()}
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "argocd-cm"}, "data": named}
    if sim.get(f"{MAPS_OF_ARGO}/argocd-cm") is None:
        sim.world.send("POST", MAPS_OF_ARGO, body)
    else:
        sim.patch(f"{MAPS_OF_ARGO}/argocd-cm", {"data": named})
    sim.driver.settle()


def health(sim: Simulation) -> Obj:
    found: Obj = dig(sim.app(), "status", "health")
    return found


def test_a_health_script_of_a_user_counts_for_the_application_and_in_gates_a065() -> None:
    pytest.importorskip("lupa", reason="the extra lua is not installed")
    sim = Simulation(config("one", "bad", sync_wave="0"), config("two", sync_wave="1"))
    set_up(sim, resource__customizations__health__ConfigMap=DEGRADED)
    state = sim.sync()
    assert state["phase"] == "Failed", "wave 0 is Degraded, so wave 1 is not begun"
    assert sim.maps() == ["one"]
    sim.driver.advance(1)
    assert health(sim)["status"] == "Degraded"


def test_system_rules_and_rules_of_the_application_both_apply_a049() -> None:
    ignored = [{"group": "apps", "kind": "Deployment", "jsonPointers": ["/spec/replicas"]}]
    sim = Simulation(deployment("web", spec={"replicas": 1}), spec={"ignoreDifferences": ignored})
    assert sim.sync()["phase"] == "Succeeded"
    sim.patch(f"{DEPLOYMENTS}/web", {"spec": {"replicas": 2}})
    sim.source.commit(deployment("web", spec={"replicas": 1, "minReadySeconds": 3}))
    sim.refresh()
    assert sim.sync_status() == "OutOfSync"
    set_up(sim, resource__customizations__ignoreDifferences__all="jsonPointers: [/spec/minReadySeconds]")
    assert sim.sync_status() == "Synced"


def test_unreadable_settings_stop_comparisons_and_say_which_key() -> None:
    sim = Simulation(config("one"))
    set_up(sim, resource__exclusions="kinds: [Pod]")
    assert "resource.exclusions" in sim.conditions()["ComparisonError"]
    set_up(sim, resource__exclusions="[{kinds: [Pod]}]")
    assert "ComparisonError" not in sim.conditions()


def test_excluded_kinds_are_left_out_and_named() -> None:
    sim = Simulation(config("one"), deployment("web"))
    set_up(sim, resource__exclusions="[{apiGroups: [apps], kinds: [Deployment]}]")
    assert sim.sync()["phase"] == "Succeeded"
    assert sim.get(f"{DEPLOYMENTS}/web") is None
    assert "Deployment" in sim.conditions()["ExcludedResourceWarning"]


def test_tracking_by_a_label_of_ones_own_finds_what_is_there_already() -> None:
    sim = Simulation(config("one"), config("two"))
    set_up(sim, application__resourceTrackingMethod="label", application__instanceLabelKey="owner")
    assert sim.sync()["phase"] == "Succeeded"
    assert dig(sim.get(f"{MAPS}/two"), "metadata", "labels", "owner") == "app"
    sim.source.commit(config("one"))
    assert sim.sync({"prune": True})["phase"] == "Succeeded"
    assert sim.maps() == ["one"]


def test_a_global_project_restricts_the_projects_that_its_selector_finds_a025() -> None:
    settings = parse_system({"globalProjects": "[{labelSelector: {matchLabels: {opt: in}}, projectName: base}]"})
    base: Obj = {"metadata": {"name": "base"}, "spec": {"namespaceResourceWhitelist": [{"group": "", "kind": "Pod"}]}}
    inside: Obj = {"metadata": {"name": "p", "labels": {"opt": "in"}}, "spec": {}}
    merged = with_globals(inside, settings.global_projects, {"base": base})
    assert merged["spec"]["namespaceResourceWhitelist"] == [{"group": "", "kind": "Pod"}]
    outside: Obj = {"metadata": {"name": "q"}, "spec": {}}
    assert with_globals(outside, settings.global_projects, {"base": base}) == outside


def test_status_is_compared_where_the_settings_say_so_a045() -> None:
    assert parse_system({}).overrides["*/*"].ignore.json_pointers == ("/status",)
    crd_only = parse_system({"resource.compareoptions": "ignoreResourceStatusField: crd"}).overrides
    assert list(crd_only) == ["apiextensions.k8s.io/CustomResourceDefinition"]
    assert parse_system({"resource.compareoptions": "ignoreResourceStatusField: none"}).overrides == {}


DISABLED = 'cluster "https://kubernetes.default.svc" is disabled'


def test_a_disabled_cluster_stops_comparisons_and_syncs_of_what_goes_there() -> None:
    sim = Simulation(config("one"), automated={"selfHeal": True})
    sim.driver.advance(5)
    assert sim.maps() == ["one"]
    set_up(sim, cluster__inClusterEnabled="false")
    sim.source.commit(config("one"), config("two"))
    sim.refresh()
    assert sim.sync_status() == "Unknown"
    assert health(sim)["status"] == "Unknown"
    assert DISABLED in sim.conditions()["InvalidSpecError"]
    state = sim.sync()
    assert state["phase"] == "Error" and DISABLED in state["message"]
    assert sim.maps() == ["one"], "nothing is applied there, by hand either"
    set_up(sim, cluster__inClusterEnabled="true")
    assert sim.sync()["phase"] == "Succeeded"
    assert sim.maps() == ["one", "two"]


def test_deleting_an_application_of_a_disabled_cluster_leaves_its_objects() -> None:
    sim = Simulation(config("one"), automated={})
    sim.driver.advance(5)
    sim.patch(f"{APPS}/app", {"metadata": {"finalizers": ["resources-finalizer.argocd.argoproj.io"]}})
    set_up(sim, cluster__inClusterEnabled="false")
    sim.world.send("DELETE", f"{APPS}/app")
    sim.driver.settle()
    assert sim.get(f"{APPS}/app") is None
    assert sim.maps() == ["one"]
