"""How a deleted cluster leaves: add-ons and works in waves, then its rights; what its conditions say meanwhile."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from tests.fleet.hub.hubs import BINDINGS, CLUSTER, LEASE, ROLE, SETS, WORKS, Hub, hub_of

from syncline.base.clock import format_micro_time
from syncline.fleet.hub.registration.acceptance import FINALIZERS
from syncline.fleet.hub.registration.leases import ACCEPTED, CLOCK_SYNCED, SKIP_CLOCK
from syncline.kube.client import Request
from syncline.kube.kinds.managedaddons import addon_crds
from syncline.kube.objects import finalizers, name_of

ADDONS = "/apis/addon.open-cluster-management.io/v1alpha1/namespaces/c1/managedclusteraddons"


@pytest.fixture
def hub() -> Hub:
    return hub_of()


def addon(hub: Hub, name: str, priority: str = "") -> None:
    notes = {"open-cluster-management.io/cleanup-priority": priority} if priority else {}
    metadata = {"name": name, "namespace": "c1", "finalizers": ["a.b/agent"], "annotations": notes}
    kind = {"apiVersion": "addon.open-cluster-management.io/v1alpha1", "kind": "ManagedClusterAddOn"}
    hub.send("POST", ADDONS, {**kind, "metadata": metadata, "spec": {}})


def going(hub: Hub, path: str) -> list[str]:
    return [name_of(one) for one in hub.get(path)["items"] if one["metadata"].get("deletionTimestamp")]


def message(hub: Hub) -> Any:
    conditions = hub.get(f"{CLUSTER}/c1")["status"]["conditions"]
    return next(one["message"] for one in conditions if one["type"] == "Deleting")


def test_b25_addons_go_before_works_and_each_by_priority(hub: Hub) -> None:
    for crd in addon_crds():
        hub.admin.send(Request("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", body=crd))
    hub.time.advance(5)
    hub.join(accepted=True)
    assert finalizers(hub.get(f"{CLUSTER}/c1")) == list(FINALIZERS)
    hub.work("w", "0")
    addon(hub, "first")
    addon(hub, "last", "50")
    hub.send("DELETE", f"{CLUSTER}/c1")
    assert (going(hub, ADDONS), going(hub, WORKS)) == (["first"], [])
    text = "The resource managedclusteraddons is remaning, the remaining count is 2, the finalizer pending count is 2"
    assert message(hub) == text
    hub.send("PATCH", f"{ADDONS}/first", {"metadata": {"finalizers": []}})
    assert (going(hub, ADDONS), going(hub, WORKS)) == (["last"], [])
    hub.send("PATCH", f"{ADDONS}/last", {"metadata": {"finalizers": []}})
    assert going(hub, WORKS) == ["w"]
    hub.send("PATCH", f"{WORKS}/w", {"metadata": {"finalizers": []}})
    assert hub.absent(f"{CLUSTER}/c1")
    assert not hub.absent("/api/v1/namespaces/c1")
    assert hub.absent(ROLE)
    assert "ResourceCleanupCompleted" in hub.event_reasons()


def test_b25_a_cluster_held_by_others_says_that_nothing_of_it_is_left(hub: Hub) -> None:
    hub.join(accepted=True)
    hub.send("PATCH", f"{CLUSTER}/c1", {"metadata": {"finalizers": [*FINALIZERS, "a.b/c"]}})
    hub.send("DELETE", f"{CLUSTER}/c1")
    assert hub.condition("Deleting") == ("True", "NoResource")
    assert message(hub) == "No cleaned resource in cluster ns."
    assert finalizers(hub.get(f"{CLUSTER}/c1")) == ["a.b/c"]


def test_b26_rights_of_a_cluster_that_vanished_are_taken_back_and_its_works_stay(hub: Hub) -> None:
    hub.join(accepted=True)
    hub.work()
    merge = {"content-type": "application/merge-patch+json"}
    hub.admin.send(Request("PATCH", f"{CLUSTER}/c1", headers=merge, body={"metadata": {"finalizers": []}})).or_raise()
    hub.admin.send(Request("DELETE", f"{CLUSTER}/c1")).or_raise()
    hub.time.until_idle()
    assert hub.absent(ROLE)
    assert hub.bindings() == ["work"], "its agent may still report on works"
    assert going(hub, WORKS) == []
    assert name_of(hub.get(f"{WORKS}/w")) == "w"


def test_b3_rights_that_cannot_be_written_are_an_error_of_the_acceptance(hub: Hub) -> None:
    hub.join(accepted=True)
    space = "/api/v1/namespaces/c1"
    hub.send("PATCH", space, {"metadata": {"finalizers": ["a.b/c"]}})
    hub.send("DELETE", space)
    hub.admin.send(Request("DELETE", f"{BINDINGS}/open-cluster-management:managedcluster:c1:registration"))
    hub.time.advance(5)
    live = hub.admin.send(Request("GET", f"{CLUSTER}/c1")).or_raise()["status"]["conditions"]
    [said] = [one for one in live if one["type"] == ACCEPTED]
    assert (said["status"], said["reason"]) == ("False", "Error")
    assert "because it is being terminated" in said["message"]


@pytest.mark.parametrize(("behind_s", "status"), [(0, "True"), (301, "False"), (-301, "False")])
def test_b18_the_clock_is_judged_when_the_agent_renews(hub: Hub, behind_s: int, status: str) -> None:
    hub.join(accepted=True)
    hub.time.advance(30)
    assert hub.condition(CLOCK_SYNCED) is None, "the first lease is the hub's own"
    renewed = format_micro_time(hub.clock.now() - timedelta(seconds=behind_s))
    hub.send("PATCH", LEASE, {"spec": {"renewTime": renewed}})
    assert (hub.condition(CLOCK_SYNCED) or ("",))[0] == status


def test_b18_the_annotation_lets_a_clock_differ(hub: Hub) -> None:
    hub.join(accepted=True)
    hub.send("PATCH", f"{CLUSTER}/c1", {"metadata": {"annotations": {SKIP_CLOCK: "true"}}})
    hub.send("PATCH", LEASE, {"spec": {"renewTime": format_micro_time(hub.clock.now() - timedelta(hours=3))}})
    assert hub.condition(CLOCK_SYNCED) == ("True", "ManagedClusterClockSynced")


def test_namespaces_that_sets_manage_are_in_the_status_of_their_clusters(hub: Hub) -> None:
    version = {"apiVersion": "cluster.open-cluster-management.io/v1beta2", "kind": "ManagedClusterSet"}
    selector = {"selectorType": "ExclusiveClusterSetLabel"}
    spec = {"clusterSelector": selector, "managedNamespaces": [{"name": "b"}, {"name": "a"}]}
    hub.send("POST", SETS, {**version, "metadata": {"name": "s1"}, "spec": spec})
    hub.join(accepted=True)
    wanted = [{"name": "a", "clusterSet": "s1"}, {"name": "b", "clusterSet": "s1"}]
    assert hub.get(f"{CLUSTER}/c1")["status"]["managedNamespaces"] == wanted
    hub.send("PATCH", f"{SETS}/s1", {"spec": {"managedNamespaces": None}})
    assert "managedNamespaces" not in hub.get(f"{CLUSTER}/c1")["status"]
    hub.send("PATCH", f"{SETS}/s1", {"spec": {"managedNamespaces": [{"name": "c"}]}})
    assert hub.get(f"{CLUSTER}/c1")["status"]["managedNamespaces"] == [{"name": "c", "clusterSet": "s1"}]
    hub.send("PATCH", f"{CLUSTER}/c1", {"metadata": {"labels": {"cluster.open-cluster-management.io/clusterset": "x"}}})
    assert "managedNamespaces" not in hub.get(f"{CLUSTER}/c1")["status"]
