"""Add-ons are installed where Placements chose clusters, and configured at the pace of a rollout."""

from __future__ import annotations

import pytest
from tests.fleet.addons.hubs import CONFIGS, WIDE, Addons, by, cluster_addon, managed, of_kind, supported
from tests.fleet.world import CLUSTERS

from syncline.fleet.addons import spec_hash
from syncline.kube.objects import Obj, owner_references

PROGRESSING = "Progressing"


@pytest.fixture
def fleet() -> Addons:
    return Addons("c1", "c2", "c3")


def test_an_add_on_is_on_the_clusters_that_its_placement_chose_and_goes_with_it(fleet: Addons) -> None:
    fleet.placement("p", numberOfClusters=2)
    fleet.hub.send("POST", WIDE, cluster_addon("a", by("p")))
    fleet.settle()
    assert sorted(fleet.addons("a")) == ["c1", "c2"]
    (owner,) = owner_references(fleet.addon("c1"))
    assert (owner["kind"], owner["name"], owner["controller"]) == ("ClusterManagementAddOn", "a", True)
    fleet.hub.send("DELETE", f"{WIDE}/a")
    fleet.settle(60)
    assert fleet.addons("a") == {}


def test_an_add_on_leaves_a_cluster_that_the_placement_gives_up(fleet: Addons) -> None:
    fleet.placement("p")
    fleet.hub.send("POST", WIDE, cluster_addon("a", by("p")))
    fleet.settle()
    taint = {"key": "k", "effect": "NoSelect"}
    fleet.hub.send("PATCH", f"{CLUSTERS}/c2", {"spec": {"taints": [taint]}})
    fleet.settle()
    assert sorted(fleet.addons("a")) == ["c1", "c3"]


def test_a_self_managed_add_on_is_left_to_its_manager(fleet: Addons) -> None:
    fleet.placement("p")
    notes = {"addon.open-cluster-management.io/lifecycle": "self"}
    fleet.hub.send("POST", WIDE, cluster_addon("a", by("p"), notes=notes))
    fleet.settle()
    assert fleet.addons("a") == {}


def test_an_add_on_that_a_person_made_gets_its_owner(fleet: Addons) -> None:
    fleet.hub.send("POST", WIDE, cluster_addon("a"))
    fleet.hub.send("POST", managed("c1"), of_kind("ManagedClusterAddOn", "a", {}, "c1"))
    fleet.settle()
    assert [one["name"] for one in owner_references(fleet.addon("c1"))] == ["a"]
    assert fleet.said("c1", PROGRESSING) == (
        "False",
        "WaitingForManifestApplied",
        "Waiting for ManagedClusterAddOn ManifestApplied condition",
    )


def test_annotations_of_a_cluster_for_add_ons_are_those_of_its_add_ons(fleet: Addons) -> None:
    fleet.placement("p")
    key = "addon.open-cluster-management.io/x"
    fleet.hub.send("PATCH", f"{CLUSTERS}/c1", {"metadata": {"annotations": {key: "1", "other": "1"}}})
    fleet.hub.send("POST", WIDE, cluster_addon("a", by("p")))
    fleet.settle()
    assert fleet.addon("c1")["metadata"]["annotations"] == {key: "1"}
    fleet.hub.send("PATCH", f"{CLUSTERS}/c1", {"metadata": {"annotations": {key: None}}})
    fleet.settle()
    assert "annotations" not in fleet.addon("c1")["metadata"]


def test_the_default_config_gives_way_to_that_of_a_placement_and_both_to_the_add_ons_own(fleet: Addons) -> None:
    fleet.placement("p", numberOfClusters=2)
    for name in ("default", "placed", "own"):
        fleet.config(name, agentInstallNamespace=name)
    chosen = {"group": "addon.open-cluster-management.io", "resource": "addondeploymentconfigs", "namespace": "default"}
    parent = cluster_addon("a", by("p", configs=[{**chosen, "name": "placed"}]), configs=(supported("default"),))
    fleet.hub.send("POST", WIDE, parent)
    fleet.settle()
    own = {"configs": [{**chosen, "name": "own"}]}
    fleet.hub.send("PATCH", managed("c2", "a"), {"spec": own})
    fleet.settle()
    hashes = {name: spec_hash(fleet.hub.get(f"{CONFIGS}/{name}")) for name in ("placed", "own")}
    assert fleet.desired("c1") == [("placed", hashes["placed"])]
    assert fleet.desired("c2") == [("own", hashes["own"])]
    assert fleet.said("c1", "Configured") == ("True", "ConfigurationsConfigured", "Configurations configured")
    status = fleet.hub.get(f"{WIDE}/a")["status"]
    assert status["defaultconfigReferences"][0]["desiredConfig"]["name"] == "default"
    assert status["installProgressions"][0]["configReferences"][0]["desiredConfig"]["specHash"] == hashes["placed"]


def test_an_own_config_of_a_kind_that_nothing_supports_is_refused_in_the_status(fleet: Addons) -> None:
    fleet.hub.send("POST", WIDE, cluster_addon("a"))
    config = {"group": "g", "resource": "r", "name": "n"}
    fleet.hub.send("POST", managed("c1"), of_kind("ManagedClusterAddOn", "a", {"configs": [config]}, "c1"))
    fleet.settle()
    text = "Configuration with gvr g/r is not supported for this addon"
    assert fleet.said("c1", PROGRESSING) == ("False", "ConfigurationUnsupported", text)


def _applied(fleet: Addons, cluster: str) -> None:
    """Say that an add-on runs with what it is to have."""
    references = fleet.addon(cluster)["status"]["configReferences"]
    done = [{**one, "lastAppliedConfig": one["desiredConfig"]} for one in references]
    fleet.set_status(managed(cluster, "a"), configReferences=done)


def test_a_progressive_rollout_configures_some_clusters_at_a_time(fleet: Addons) -> None:
    fleet.placement("p")
    fleet.config("d", agentInstallNamespace="one")
    rollout = {"type": "Progressive", "progressive": {"maxConcurrency": 1}}
    fleet.hub.send("POST", WIDE, cluster_addon("a", by("p", rolloutStrategy=rollout), configs=(supported("d"),)))
    fleet.settle()
    configured = {cluster: fleet.desired(cluster) != [] for cluster in ("c1", "c2", "c3")}
    assert configured == {"c1": True, "c2": False, "c3": False}
    waits = ("False", "ConfigurationsNotConfigured", "Configurations updated and not configured yet")
    assert fleet.said("c2", "Configured") == waits
    (progression,) = fleet.hub.get(f"{WIDE}/a")["status"]["installProgressions"]
    text = "selected clusters 3. configured addons 1/3 progressing..., 0 failed 0 timeout."
    assert progression["conditions"][0]["message"] == text
    for cluster in ("c1", "c2", "c3"):
        assert fleet.desired(cluster) != [], f"the turn of {cluster} came when the one before was done"
        _applied(fleet, cluster)
        fleet.settle()
    (progression,) = fleet.hub.get(f"{WIDE}/a")["status"]["installProgressions"]
    text = "selected clusters 3. configured addons 3/3 completed with no errors, 0 failed 0 timeout."
    assert (progression["conditions"][0]["reason"], progression["conditions"][0]["message"]) == ("Completed", text)
    assert progression["configReferences"][0]["lastKnownGoodConfig"]["name"] == "d"


def test_a_changed_config_is_rolled_out_again(fleet: Addons) -> None:
    fleet.placement("p", numberOfClusters=1)
    fleet.config("d", agentInstallNamespace="one")
    fleet.hub.send("POST", WIDE, cluster_addon("a", by("p"), configs=(supported("d"),)))
    fleet.settle()
    ((_, before),) = fleet.desired("c1")
    fleet.hub.send("PATCH", f"{CONFIGS}/d", {"spec": {"agentInstallNamespace": "two"}})
    fleet.settle()
    ((_, after),) = fleet.desired("c1")
    assert before != after
    (reference,) = fleet.addon("c1")["status"]["configReferences"]
    assert reference["lastObservedGeneration"] == 2


def test_the_later_of_two_placements_configures_a_cluster_that_both_chose(fleet: Addons) -> None:
    fleet.placement("all")
    fleet.placement("one", numberOfClusters=1)
    for name in ("x", "y"):
        fleet.config(name, agentInstallNamespace=name)
    kind = {"group": "addon.open-cluster-management.io", "resource": "addondeploymentconfigs", "namespace": "default"}
    placements = (by("all", configs=[{**kind, "name": "x"}]), by("one", configs=[{**kind, "name": "y"}]))
    fleet.hub.send("POST", WIDE, cluster_addon("a", *placements, configs=(supported(),)))
    fleet.settle()
    assert [fleet.desired(cluster)[0][0] for cluster in ("c1", "c2", "c3")] == ["y", "x", "x"]


def test_a_placement_that_does_not_exist_is_named_and_stops_no_other(fleet: Addons) -> None:
    fleet.placement("p", numberOfClusters=1)
    fleet.hub.send("POST", WIDE, cluster_addon("a", by("ghost"), by("p")))
    fleet.settle()
    assert sorted(fleet.addons("a")) == ["c1"]


LABEL = "feature.open-cluster-management.io/addon-a"


def test_a_cluster_is_labelled_with_the_health_of_its_add_ons(fleet: Addons) -> None:
    fleet.hub.send("POST", WIDE, cluster_addon("a"))
    fleet.hub.send("POST", managed("c1"), of_kind("ManagedClusterAddOn", "a", {}, "c1"))
    for status, value in (("True", "available"), ("False", "unhealthy"), ("Unknown", "unreachable")):
        since = {"lastTransitionTime": "2026-01-01T00:00:00Z", "message": "m", "reason": "R"}
        fleet.set_status(managed("c1", "a"), conditions=[{"type": "Available", "status": status, **since}])
        assert fleet.cluster("c1")["metadata"]["labels"][LABEL] == value
    fleet.hub.send("DELETE", managed("c1", "a"))
    assert LABEL not in fleet.cluster("c1")["metadata"].get("labels", {})


def test_add_ons_of_a_cluster_that_does_not_answer_are_unknown(fleet: Addons) -> None:
    fleet.hub.send("POST", WIDE, cluster_addon("a"))
    fleet.hub.send("POST", managed("c1"), of_kind("ManagedClusterAddOn", "a", {}, "c1"))
    fleet.available("c1", "Unknown")
    assert fleet.said("c1", "Available") == ("Unknown", "R", "m")
    assert fleet.cluster("c1")["metadata"]["labels"][LABEL] == "unreachable"


BUDGETS = "/apis/syncline.dev/v1alpha1/fleetdisruptionbudgets"


def _budget(most: int) -> Obj:
    spec = {"clusterSelector": {}, "maxUnavailable": most}
    return {
        "apiVersion": "syncline.dev/v1alpha1",
        "kind": "FleetDisruptionBudget",
        "metadata": {"name": "b"},
        "spec": spec,
    }


@pytest.mark.parametrize("placed", [True, False], ids=["of a placement", "of add-ons that people made"])
def test_a_rollout_of_an_add_on_stays_within_the_budgets_of_the_fleet(fleet: Addons, placed: bool) -> None:
    fleet.placement("p")
    fleet.config("d", agentInstallNamespace="one")
    fleet.hub.send("POST", BUDGETS, _budget(1))
    placements = (by("p"),) if placed else ()
    fleet.hub.send("POST", WIDE, cluster_addon("a", *placements, configs=(supported("d"),)))
    for cluster in () if placed else ("c1", "c2", "c3"):
        fleet.hub.send("POST", managed(cluster), of_kind("ManagedClusterAddOn", "a", {}, cluster))
    fleet.settle()
    done = []
    for cluster in ("c1", "c2", "c3"):
        configured = [one for one in ("c1", "c2", "c3") if fleet.desired(one)]
        assert configured == [*done, cluster]
        places = fleet.hub.get(f"{BUDGETS}/b")["status"]["places"]
        assert [(one["cluster"], one["holder"]["kind"]) for one in places] == [(cluster, "ClusterManagementAddOn")]
        _applied(fleet, cluster)
        fleet.settle()
        done.append(cluster)
    assert fleet.hub.get(f"{BUDGETS}/b")["status"].get("places", []) == []


def test_an_unavailable_cluster_holds_up_a_rollout_that_a_budget_bounds(fleet: Addons) -> None:
    fleet.placement("p", tolerations=[{"operator": "Exists"}])
    fleet.config("d", agentInstallNamespace="one")
    fleet.hub.send("POST", BUDGETS, _budget(1))
    fleet.available("c3", "False")
    fleet.hub.send("POST", WIDE, cluster_addon("a", by("p"), configs=(supported("d"),)))
    fleet.settle()
    assert [one for one in ("c1", "c2", "c3") if fleet.desired(one)] == ["c3"], "it counts already"
    _applied(fleet, "c3")
    fleet.settle()
    assert fleet.desired("c1") == []
    said = fleet.said("c1", "Configured")
    assert said is not None
    assert "FleetDisruptionBudget b permits 1 unavailable, and c3 is not available" in said[2]
    fleet.available("c3", "True")
    fleet.settle()
    assert [one for one in ("c1", "c2") if fleet.desired(one)] == ["c1"]
