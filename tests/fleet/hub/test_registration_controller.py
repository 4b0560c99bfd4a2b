"""The controllers of registration and of cluster sets through the role, on the embedded cluster in virtual time."""

from __future__ import annotations

import pytest
from tests.fleet.hub.hubs import BINDINGS, CLUSTER, GROUP, LEASE, RBAC, ROLE, WORKS, Hub, hub_of

from syncline.base.clock import format_micro_time
from syncline.fleet.hub.clustersets.defaults import AUTO_UPDATE
from syncline.fleet.hub.registration.acceptance import GC_FINALIZER
from syncline.fleet.hub.registration.leases import ACCEPTED, AVAILABLE
from syncline.fleet.hub.registration.taints import UNAVAILABLE, UNREACHABLE
from syncline.kube.client import Request
from syncline.kube.objects import finalizers, name_of


@pytest.fixture
def hub() -> Hub:
    return hub_of()


def test_b1_a_cluster_that_is_not_accepted_has_no_namespace_lease_or_condition(hub: Hub) -> None:
    hub.join(accepted=False)
    assert hub.absent("/api/v1/namespaces/c1")
    assert hub.absent(LEASE)
    assert hub.condition(ACCEPTED) is None
    assert finalizers(hub.get(f"{CLUSTER}/c1")) == [GC_FINALIZER]
    assert hub.taints() == [UNREACHABLE]


SHARED = [f"{RBAC}/clusterroles/open-cluster-management:managedcluster:{part}" for part in ("registration", "work")]


def test_b1_roles_of_all_agents_exist_as_long_as_there_is_a_cluster(hub: Hub) -> None:
    assert all(map(hub.absent, SHARED))
    hub.join(accepted=False)
    for path in SHARED:
        before = hub.get(path)["rules"]
        hub.send("PATCH", path, {"rules": []})
        assert hub.get(path)["rules"] == before
        hub.send("DELETE", path)
        assert hub.get(path)["rules"] == before
    hub.send("DELETE", f"{CLUSTER}/c1")
    assert all(map(hub.absent, SHARED))


def test_b3_an_accepted_cluster_has_a_namespace_and_rights(hub: Hub) -> None:
    hub.join(accepted=True)
    assert hub.condition(ACCEPTED) == ("True", "HubClusterAdminAccepted")
    assert hub.bindings() == ["registration", "work"]
    verbs = [verb for rule in hub.get(ROLE)["rules"] for verb in rule["verbs"]]
    assert "renew" in verbs


def test_b6_a_denied_cluster_loses_its_rights_and_keeps_its_namespace(hub: Hub) -> None:
    hub.join(accepted=True)
    hub.accept(False)
    assert hub.condition(ACCEPTED) == ("False", "HubClusterAdminDenied")
    assert hub.bindings() == []
    assert [rule["verbs"] for rule in hub.get(ROLE)["rules"]] == [["get", "list", "watch"]]
    assert not hub.absent("/api/v1/namespaces/c1")


def test_b11_the_hub_creates_the_lease_of_an_accepted_cluster(hub: Hub) -> None:
    hub.join(accepted=True)
    assert hub.get(LEASE)["spec"]["holderIdentity"] == "managed-cluster-lease"


@pytest.mark.parametrize(("duration", "grace"), [(60, 300), (10, 50)])
def test_b12_b13_a_cluster_is_unknown_after_its_grace(hub: Hub, duration: int, grace: int) -> None:
    hub.join(accepted=True, duration=duration)
    hub.available("True")
    hub.send("PATCH", LEASE, {"spec": {"renewTime": format_micro_time(hub.clock.now())}})
    hub.time.advance(grace - 2)
    assert hub.condition(AVAILABLE) == ("True", "R")
    hub.time.advance(3)
    assert hub.condition(AVAILABLE) == ("Unknown", "ManagedClusterLeaseUpdateStopped")
    events = hub.get("/api/v1/namespaces/c1/events")["items"]
    assert "AvailableUnknown" in [one["reason"] for one in events]


def test_b14_a_renewed_lease_alone_does_not_make_a_cluster_available(hub: Hub) -> None:
    hub.join(accepted=True)
    hub.available("Unknown")
    hub.send("PATCH", LEASE, {"spec": {"renewTime": format_micro_time(hub.clock.now())}})
    assert hub.condition(AVAILABLE) == ("Unknown", "R")


def test_b15_taints_follow_the_availability(hub: Hub) -> None:
    hub.join(accepted=True)
    assert hub.taints() == [UNREACHABLE]
    hub.available("False")
    assert hub.taints() == [UNAVAILABLE]
    hub.available("Unknown")
    assert hub.taints() == [UNREACHABLE]
    hub.available("True")
    assert hub.taints() == []


def test_b25_works_of_a_deleted_cluster_go_by_their_priority(hub: Hub) -> None:
    hub.join(accepted=True)
    hub.work("first")
    hub.work("last", "50")
    hub.send("DELETE", f"{CLUSTER}/c1")
    going = [name_of(one) for one in hub.get(WORKS)["items"] if one["metadata"].get("deletionTimestamp")]
    assert going == ["first"]
    hub.send("PATCH", f"{WORKS}/first", {"metadata": {"finalizers": []}})
    assert hub.get(f"{WORKS}/last")["metadata"]["deletionTimestamp"]


def test_b26_the_work_agent_keeps_its_rights_until_no_work_is_left(hub: Hub) -> None:
    hub.join(accepted=True)
    hub.work()
    hub.admin.send(Request("DELETE", f"{CLUSTER}/c1")).or_raise()
    hub.time.advance(1)
    held = hub.admin.send(Request("GET", BINDINGS)).or_raise()["items"]
    assert [finalizers(one) for one in held] == [["cluster.open-cluster-management.io/manifest-work-cleanup"]]
    assert not hub.absent(f"{CLUSTER}/c1")
    assert hub.condition("Deleting") == ("False", "ResourceRemaining")
    hub.send("PATCH", f"{WORKS}/w", {"metadata": {"finalizers": []}})
    assert hub.bindings() == []
    assert hub.absent(f"{CLUSTER}/c1")
    assert not hub.absent("/api/v1/namespaces/c1")


def test_b27_a_binding_says_whether_its_set_exists(hub: Hub) -> None:
    version = {"apiVersion": "cluster.open-cluster-management.io/v1beta2"}
    path = f"{GROUP}/v1beta2/namespaces/default/managedclustersetbindings"
    metadata = {"name": "s1", "namespace": "default"}
    made = {**version, "kind": "ManagedClusterSetBinding", "metadata": metadata, "spec": {"clusterSet": "s1"}}
    hub.send("POST", path, made)
    assert hub.get(f"{path}/s1")["status"]["conditions"][0]["reason"] == "ClusterSetNotFound"
    spec = {"clusterSelector": {"selectorType": "ExclusiveClusterSetLabel"}}
    sets = f"{GROUP}/v1beta2/managedclustersets"
    hub.send("POST", sets, {**version, "kind": "ManagedClusterSet", "metadata": {"name": "s1"}, "spec": spec})
    assert hub.get(f"{path}/s1")["status"]["conditions"][0]["reason"] == "ClusterSetBound"
    assert hub.get(f"{sets}/s1")["status"]["conditions"][0]["message"] == "No ManagedCluster selected"
    hub.join(accepted=True)
    assert hub.get(f"{sets}/s1")["status"]["conditions"][0]["message"] == "1 ManagedClusters selected"


GLOBAL_SET = f"{GROUP}/v1beta2/managedclustersets/global"


def test_b29_the_global_set_exists_and_gets_its_selector_back(hub: Hub) -> None:
    spec = {"clusterSelector": {"selectorType": "LabelSelector", "labelSelector": {"matchLabels": {"a": "b"}}}}
    hub.send("PATCH", GLOBAL_SET, {"spec": spec})
    live = hub.get(GLOBAL_SET)
    assert live["spec"]["clusterSelector"] == {"selectorType": "LabelSelector", "labelSelector": {}}


@pytest.mark.parametrize("name", ["default", "global"])
def test_b29_a_deleted_set_reappears_within_ten_seconds(hub: Hub, name: str) -> None:
    path = f"{GROUP}/v1beta2/managedclustersets/{name}"
    before = hub.get(path)["metadata"]["uid"]
    hub.send("DELETE", path)
    hub.time.advance(10)
    assert hub.get(path)["metadata"]["uid"] != before


def test_b29_people_may_keep_a_selector_of_their_own(hub: Hub) -> None:
    hub.send("PATCH", GLOBAL_SET, {"metadata": {"annotations": {AUTO_UPDATE: "false"}}})
    selector = {"selectorType": "LabelSelector", "labelSelector": {"matchLabels": {"a": "b"}}}
    hub.send("PATCH", GLOBAL_SET, {"spec": {"clusterSelector": selector}})
    hub.time.advance(60)
    assert hub.get(GLOBAL_SET)["spec"]["clusterSelector"] == selector


def test_b27_b28_a_placement_says_which_sets_it_may_choose_from(hub: Hub) -> None:
    path = f"{GROUP}/v1beta1/namespaces/default/placements"
    kind = {"apiVersion": "cluster.open-cluster-management.io/v1beta1", "kind": "Placement"}
    hub.send("POST", path, {**kind, "metadata": {"name": "p", "namespace": "default"}, "spec": {}})

    def reason() -> str:
        conditions = hub.get(f"{path}/p")["status"]["conditions"]
        return str(next(one["reason"] for one in conditions if one["type"] == "PlacementSatisfied"))

    assert reason() == "NoManagedClusterSetBindings"
    version = {"apiVersion": "cluster.open-cluster-management.io/v1beta2", "kind": "ManagedClusterSetBinding"}
    metadata = {"name": "default", "namespace": "default"}
    binding = {**version, "metadata": metadata, "spec": {"clusterSet": "default"}}
    hub.send("POST", f"{GROUP}/v1beta2/namespaces/default/managedclustersetbindings", binding)
    assert reason() == "AllManagedClusterSetsEmpty"
    hub.send("PATCH", f"{path}/p", {"spec": {"clusterSets": ["s1"]}})
    assert reason() == "NoIntersection"
