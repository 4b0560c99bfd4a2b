"""What ``argocd-cm`` says about all Applications, as it is changed while the controllers run (reference argocd-app)."""

from __future__ import annotations

import pytest
from tests.gitops.behaviours.play import APPS, DEPLOYMENTS, MAPS, Play, config, deployment

from syncline.gitops.system import parse_system, with_globals
from syncline.kube.objects import Obj, dig

MAPS_OF_ARGO = "/api/v1/namespaces/argocd/configmaps"
DEGRADED = """
hs = {}
hs.status = "Degraded"
hs.message = "the key is " .. obj.data.k
return hs
"""


def set_up(play: Play, **data: str) -> None:
    named = {key.replace("__", "."): value for key, value in data.items()}
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "argocd-cm"}, "data": named}
    if play.get(f"{MAPS_OF_ARGO}/argocd-cm") is None:
        play.world.send("POST", MAPS_OF_ARGO, body)
    else:
        play.patch(f"{MAPS_OF_ARGO}/argocd-cm", {"data": named})
    play.driver.settle()


def health(play: Play) -> Obj:
    found: Obj = dig(play.app(), "status", "health")
    return found


def test_a_health_script_of_a_user_counts_for_the_application_and_in_gates_a065() -> None:
    pytest.importorskip("lupa", reason="the extra lua is not installed")
    play = Play(config("one", "bad", sync_wave="0"), config("two", sync_wave="1"))
    set_up(play, resource__customizations__health__ConfigMap=DEGRADED)
    state = play.sync()
    assert state["phase"] == "Failed", "wave 0 is Degraded, so wave 1 is not begun"
    assert play.maps() == ["one"]
    play.driver.advance(1)
    assert health(play)["status"] == "Degraded"


def test_system_rules_and_rules_of_the_application_both_apply_a049() -> None:
    ignored = [{"group": "apps", "kind": "Deployment", "jsonPointers": ["/spec/replicas"]}]
    play = Play(deployment("web", spec={"replicas": 1}), spec={"ignoreDifferences": ignored})
    assert play.sync()["phase"] == "Succeeded"
    play.patch(f"{DEPLOYMENTS}/web", {"spec": {"replicas": 2}})
    play.source.commit(deployment("web", spec={"replicas": 1, "minReadySeconds": 3}))
    play.refresh()
    assert play.sync_status() == "OutOfSync"
    set_up(play, resource__customizations__ignoreDifferences__all="jsonPointers: [/spec/minReadySeconds]")
    assert play.sync_status() == "Synced"


def test_unreadable_settings_stop_comparisons_and_say_which_key() -> None:
    play = Play(config("one"))
    set_up(play, resource__exclusions="kinds: [Pod]")
    assert "resource.exclusions" in play.conditions()["ComparisonError"]
    set_up(play, resource__exclusions="[{kinds: [Pod]}]")
    assert "ComparisonError" not in play.conditions()


def test_excluded_kinds_are_left_out_and_named() -> None:
    play = Play(config("one"), deployment("web"))
    set_up(play, resource__exclusions="[{apiGroups: [apps], kinds: [Deployment]}]")
    assert play.sync()["phase"] == "Succeeded"
    assert play.get(f"{DEPLOYMENTS}/web") is None
    assert "Deployment" in play.conditions()["ExcludedResourceWarning"]


def test_tracking_by_a_label_of_ones_own_finds_what_is_there_already() -> None:
    play = Play(config("one"), config("two"))
    set_up(play, application__resourceTrackingMethod="label", application__instanceLabelKey="owner")
    assert play.sync()["phase"] == "Succeeded"
    assert dig(play.get(f"{MAPS}/two"), "metadata", "labels", "owner") == "app"
    play.source.commit(config("one"))
    assert play.sync({"prune": True})["phase"] == "Succeeded"
    assert play.maps() == ["one"]


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
    play = Play(config("one"), automated={"selfHeal": True})
    play.driver.advance(5)
    assert play.maps() == ["one"]
    set_up(play, cluster__inClusterEnabled="false")
    play.source.commit(config("one"), config("two"))
    play.refresh()
    assert play.sync_status() == "Unknown"
    assert health(play)["status"] == "Unknown"
    assert DISABLED in play.conditions()["InvalidSpecError"]
    state = play.sync()
    assert state["phase"] == "Error" and DISABLED in state["message"]
    assert play.maps() == ["one"], "nothing is applied there, by hand either"
    set_up(play, cluster__inClusterEnabled="true")
    assert play.sync()["phase"] == "Succeeded"
    assert play.maps() == ["one", "two"]


def test_deleting_an_application_of_a_disabled_cluster_leaves_its_objects() -> None:
    play = Play(config("one"), automated={})
    play.driver.advance(5)
    play.patch(f"{APPS}/app", {"metadata": {"finalizers": ["resources-finalizer.argocd.argoproj.io"]}})
    set_up(play, cluster__inClusterEnabled="false")
    play.world.send("DELETE", f"{APPS}/app")
    play.driver.settle()
    assert play.get(f"{APPS}/app") is None
    assert play.maps() == ["one"]
