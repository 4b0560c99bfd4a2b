"""Roll-outs within a budget over real agents: clusters are cut off, the hub dies, nothing goes beyond and all ends."""

from __future__ import annotations

from typing import Any

from tests.fleet.rollouts import BUDGETS, CLUSTER_API, PLACEMENTS, REPLICA_SETS, WORK_API
from tests.fleet.world import Fleet

from syncline.fleet.hub.replicasets.works import SET_LABEL
from syncline.fleet.hub.sets import CLUSTER_SET_LABEL
from syncline.kube.objects import Obj, labels_of, namespace_of

NAMES = ("c1", "c2", "c3")


def config(value: str) -> Obj:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "x", "namespace": "default"},
        "data": {"v": value},
    }


def template(value: str) -> Obj:
    """It has succeeded when the cluster has the value that is rolled out."""
    rule = {
        "type": "CEL",
        "condition": "Progressing",
        "celExpressions": [f'object.data.v != "{value}"'],
    }
    resource = {"group": "", "resource": "configmaps", "name": "x", "namespace": "default"}
    return {
        "workload": {"manifests": [config(value)]},
        "manifestConfigs": [{"resourceIdentifier": resource, "conditionRules": [rule]}],
    }


def started() -> Fleet:
    fleet = Fleet()
    for name in NAMES:
        fleet.add(name, labels={CLUSTER_SET_LABEL: "default"})
    hub = fleet.hub
    binding: dict[str, Any] = {
        "kind": "ManagedClusterSetBinding",
        "metadata": {"name": "default", "namespace": "default"},
    }
    binding |= {"apiVersion": "cluster.open-cluster-management.io/v1beta2", "spec": {"clusterSet": "default"}}
    hub.send("POST", f"{CLUSTER_API}/v1beta2/namespaces/default/managedclustersetbindings", binding)
    unreachable = {"key": "cluster.open-cluster-management.io/unreachable", "operator": "Exists"}
    placement = {"kind": "Placement", "metadata": {"name": "pl", "namespace": "default"}}
    placement["spec"] = {"tolerations": [unreachable]}
    hub.send("POST", PLACEMENTS, {"apiVersion": "cluster.open-cluster-management.io/v1beta1", **placement})
    budget = {"kind": "FleetDisruptionBudget", "metadata": {"name": "b"}}
    spec = {"clusterSelector": {}, "maxUnavailable": 1}
    hub.send("POST", BUDGETS, {"apiVersion": "syncline.dev/v1alpha1", **budget, "spec": spec})
    fleet.time.advance(90)
    return fleet


def roll_out(fleet: Fleet, value: str) -> None:
    spec = {
        "manifestWorkTemplate": template(value),
        "placementRefs": [{"name": "pl", "rolloutStrategy": {"type": "All"}}],
        "cascadeDeletionPolicy": "Background",
    }
    body = {
        "apiVersion": "work.open-cluster-management.io/v1alpha1",
        "kind": "ManifestWorkReplicaSet",
        "metadata": {"name": "foo", "namespace": "default"},
        "spec": spec,
    }
    fleet.hub.send("POST", REPLICA_SETS, body)


def have(fleet: Fleet, value: str) -> list[str]:
    """The clusters whose ConfigMap has the value."""
    path = "/api/v1/namespaces/default/configmaps/x"
    found = [name for name, member in fleet.members.items() if not member.absent(path)]
    return [name for name in found if fleet.members[name].get(path)["data"]["v"] == value]


def wanted(fleet: Fleet, value: str) -> list[str]:
    works = fleet.hub.get(f"{WORK_API}/v1/manifestworks")["items"]
    mine = [one for one in works if labels_of(one).get(SET_LABEL) == "default.foo"]
    return sorted(namespace_of(one) for one in mine if one["spec"]["workload"]["manifests"][0]["data"]["v"] == value)


def test_one_cluster_at_a_time_changes_and_one_that_is_cut_off_holds_the_others() -> None:
    fleet = started()
    roll_out(fleet, "1")
    fleet.time.advance(120)
    assert have(fleet, "1") == list(NAMES)
    fleet.members["c1"].hub_cable.cut()
    fleet.hub.send("PATCH", f"{REPLICA_SETS}/foo", {"spec": {"manifestWorkTemplate": template("2")}})
    fleet.time.advance(1200)
    assert (wanted(fleet, "2"), have(fleet, "2")) == (["c1"], [])
    said = fleet.hub.get(f"{REPLICA_SETS}/foo")["status"]["conditions"]
    waits = next(one["message"] for one in said if one["type"] == "WaitingForBudget" and one["status"] == "True")
    assert "c1 is held by ManifestWorkReplicaSet default/foo since " in waits
    fleet.start_hub()  # the hub dies and comes back
    fleet.time.advance(120)
    assert wanted(fleet, "2") == ["c1"]
    fleet.members["c1"].hub_cable.mend()
    fleet.time.advance(600)
    assert have(fleet, "2") == list(NAMES)
    fleet.time.advance(120)
    assert fleet.hub.get(f"{BUDGETS}/b")["status"]["places"] == []


def test_a_cluster_that_does_not_answer_takes_the_place_of_one_that_would_begin() -> None:
    fleet = started()
    fleet.members["c3"].hub_cable.cut()
    fleet.time.advance(600)
    roll_out(fleet, "1")
    fleet.time.advance(300)
    assert wanted(fleet, "1") == ["c3"]  # it counts already
    assert have(fleet, "1") == []
    fleet.members["c3"].hub_cable.mend()
    fleet.time.advance(600)
    assert have(fleet, "1") == list(NAMES)
