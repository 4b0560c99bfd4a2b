"""The placement controller on the embedded cluster in virtual time: what is written, what wakes it, what it costs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import pytest

from syncline.assembly.embedded.core import build_core
from syncline.assembly.roles import Role, SimulatedDriver, start
from syncline.base.clock import VirtualClock, format_time
from syncline.base.entropy import Entropy
from syncline.base.journal import Journal
from syncline.cluster.access.users import service_account_user
from syncline.cluster.storage.store import Store
from syncline.control.virtual import VirtualDriver
from syncline.fleet.hub.placement.controller import placement_controller
from syncline.fleet.hub.placement.model import decided_names
from syncline.fleet.hub.sets import CLUSTER_SET_LABEL
from syncline.kube.client import Request, Transport
from syncline.kube.kinds.managedclusters import hub_cluster_crds
from syncline.kube.objects import Obj, labels_of, name_of

GROUP = "/apis/cluster.open-cluster-management.io"
MERGE = {"content-type": "application/merge-patch+json"}


@dataclass
class Hub:
    """An embedded cluster with our controller; ``planned`` are the names of the Placements it looked at."""

    admin: Transport
    time: VirtualDriver
    clock: VirtualClock
    planned: list[str]

    def create(self, path: str, obj: Obj, **metadata: Any) -> None:
        self.admin.send(Request("POST", f"{GROUP}/{path}", body=obj)).or_raise()
        if "status" in obj:
            self.patch(f"{path}/{name_of(obj)}/status", {"status": obj["status"]})

    def patch(self, path: str, body: Obj) -> None:
        self.admin.send(Request("PATCH", f"{GROUP}/{path}", headers=MERGE, body=body)).or_raise()

    def get(self, path: str) -> Obj:
        return self.admin.send(Request("GET", f"{GROUP}/{path}")).or_raise()

    def cluster(self, name: str, cluster_set: str = "s1", *, taints: Iterable[Obj] = (), **labels: str) -> None:
        metadata = {"name": name, "labels": {CLUSTER_SET_LABEL: cluster_set, **labels}}
        spec = {"hubAcceptsClient": True, "taints": list(taints)}
        kind = {"apiVersion": "cluster.open-cluster-management.io/v1", "kind": "ManagedCluster"}
        self.create("v1/managedclusters", {**kind, "metadata": metadata, "spec": spec})

    def placement(self, name: str = "pl", **spec: Any) -> None:
        kind = {"apiVersion": "cluster.open-cluster-management.io/v1beta1", "kind": "Placement"}
        metadata = {"name": name, "namespace": "default"}
        self.create("v1beta1/namespaces/default/placements", {**kind, "metadata": metadata, "spec": spec})

    def bound_set(self, name: str = "s1") -> None:
        version = {"apiVersion": "cluster.open-cluster-management.io/v1beta2"}
        spec = {"clusterSelector": {"selectorType": "ExclusiveClusterSetLabel"}}
        one = {**version, "kind": "ManagedClusterSet", "metadata": {"name": name}, "spec": spec}
        self.create("v1beta2/managedclustersets", one)
        metadata = {"name": name, "namespace": "default"}
        one = {**version, "kind": "ManagedClusterSetBinding", "metadata": metadata, "spec": {"clusterSet": name}}
        self.create("v1beta2/namespaces/default/managedclustersetbindings", one)

    def decisions(self, name: str = "pl") -> list[list[str]]:
        found = self.get("v1beta1/namespaces/default/placementdecisions")["items"]
        own = [one for one in found if name_of(one).startswith(f"{name}-decision-")]
        return [decided_names(one) for one in sorted(own, key=lambda one: int(name_of(one).rpartition("-")[2]))]

    def condition(self, name: str = "pl") -> str:
        status = self.get(f"v1beta1/namespaces/default/placements/{name}")["status"]
        return next(one["reason"] for one in status["conditions"] if one["type"] == "PlacementSatisfied")

    def events(self) -> list[str]:
        found = self.admin.send(Request("GET", "/api/v1/namespaces/default/events")).or_raise()["items"]
        return [one["reason"] for one in found]

    def settle(self) -> list[str]:
        """Run until idle; return the Placements that were looked at."""
        self.planned.clear()
        self.time.until_idle()
        return sorted(set(self.planned))


@pytest.fixture
def hub() -> Hub:
    clock = VirtualClock()
    core = build_core(store=Store(), clock=clock, entropy=Entropy(1))
    core.bootstrap(port=6443)
    planned: list[str] = []
    ours = placement_controller()

    def observe(cache: Any, ref: Any) -> Any:
        planned.append(ref.name)
        return ours.observe(cache, ref)

    admin = core.transport()
    role = Role(
        name="hub",
        controllers=(replace(ours, observe=observe),),
        user=service_account_user("kube-system", "hub"),
        manager="hub",
        objects=hub_cluster_crds(),
    )
    driver = SimulatedDriver(clock, Journal(), admin, admin=admin, strict=True)
    start(role, driver)
    made = Hub(admin, VirtualDriver(clock, [driver.actor]), clock, planned)
    made.settle()
    return made


def test_b44_selected_clusters_are_written_in_pages_of_a_hundred(hub: Hub) -> None:
    hub.bound_set()
    for number in range(205):
        hub.cluster(f"c{number:03}")
    hub.placement()
    hub.settle()
    assert [len(page) for page in hub.decisions()] == [100, 100, 5]
    assert hub.decisions()[0][0] == "c000" and hub.condition() == "AllDecisionsScheduled"
    assert {"DecisionCreate", "DecisionUpdate", "ScoreUpdate"} <= set(hub.events())
    hub.patch("v1beta1/namespaces/default/placements/pl", {"spec": {"numberOfClusters": 2}})
    hub.settle()
    assert hub.decisions() == [["c000", "c001"]] and "DecisionDelete" in hub.events()


def test_b45_without_a_match_one_empty_decision_with_its_labels_exists(hub: Hub) -> None:
    hub.bound_set()
    hub.placement()
    hub.settle()
    (found,) = hub.get("v1beta1/namespaces/default/placementdecisions")["items"]
    assert decided_names(found) == [] and len(labels_of(found)) == 3 and hub.condition() == "AllManagedClusterSetsEmpty"


def test_b35_a_cluster_leaves_when_its_toleration_ends(hub: Hub) -> None:
    hub.bound_set()
    added = format_time(hub.clock.now())
    hub.cluster("c1", taints=[{"key": "k", "effect": "NoSelect", "timeAdded": added}])
    hub.placement(tolerations=[{"key": "k", "operator": "Exists", "tolerationSeconds": 60}])
    hub.time.advance(50)
    assert hub.decisions() == [["c1"]]
    hub.time.advance(20)
    assert hub.decisions() == [[]] and hub.condition() == "NoManagedClusterMatched"


def test_b47_the_annotation_freezes_decisions(hub: Hub) -> None:
    hub.bound_set()
    hub.cluster("c1")
    hub.placement()
    hub.settle()
    note = {"cluster.open-cluster-management.io/experimental-scheduling-disable": "true"}
    hub.patch("v1beta1/namespaces/default/placements/pl", {"metadata": {"annotations": note}})
    hub.cluster("c2")
    hub.settle()
    assert hub.decisions() == [["c1"]]


def test_a_change_wakes_only_the_placements_that_read_it(hub: Hub) -> None:
    hub.bound_set("s1")
    hub.bound_set("s2")
    hub.cluster("c1", env="dev", region="eu")
    by = {"requiredClusterSelector": {"labelSelector": {"matchLabels": {"env": "prod"}}}}
    cel = {"requiredClusterSelector": {"celSelector": {"celExpressions": ["has(managedCluster.spec.taints)"]}}}
    hub.placement("any", clusterSets=["s1"])
    hub.placement("env", clusterSets=["s1"], predicates=[by])
    hub.placement("cel", predicates=[cel])
    hub.placement("other", clusterSets=["s2"])
    hub.settle()
    path = "v1/managedclusters/c1"
    hub.patch(path, {"metadata": {"labels": {"region": "us"}}})
    assert hub.settle() == ["cel"]
    hub.patch(path, {"metadata": {"labels": {"env": "prod"}}})
    assert hub.settle() == ["cel", "env"] and hub.decisions("env") == [["c1"]]
    hub.patch(path, {"spec": {"taints": [{"key": "k", "effect": "NoSelect", "timeAdded": "2026-01-01T00:00:00Z"}]}})
    assert hub.settle() == ["any", "cel", "env"] and hub.decisions("any") == [[]]
    hub.patch(path, {"metadata": {"labels": {CLUSTER_SET_LABEL: "s2"}}})
    assert hub.settle() == ["any", "cel", "env", "other"] and hub.condition("any") == "AllManagedClusterSetsEmpty"


def spread_by(region: str, *, when: str = "DoNotSchedule", skew: int = 1) -> Obj:
    term = {"topologyKey": region, "topologyKeyType": "Label", "maxSkew": skew, "whenUnsatisfiable": when}
    return {"spreadConstraints": [term]}


@pytest.mark.parametrize(
    ("annotation", "when", "expected"),
    [
        ("", "DoNotSchedule", ["a1", "a2", "a3", "a4"]),
        ("true", "DoNotSchedule", ["a1", "a2", "b1"]),
        ("true", "ScheduleAnyway", ["a1", "a2", "b1", "z1"]),
    ],
)
def test_clusters_are_spread_only_where_the_annotation_asks_for_it(
    hub: Hub, annotation: str, when: str, expected: list[str]
) -> None:
    hub.bound_set()
    for number in range(1, 6):
        hub.cluster(f"a{number}", region="a")
    hub.cluster("b1", region="b")
    hub.cluster("z1")
    hub.placement(numberOfClusters=4, spreadPolicy=spread_by("region", when=when))
    path = "v1beta1/namespaces/default/placements/pl"
    hub.patch(path, {"metadata": {"annotations": {"syncline.dev/spread": annotation}}})
    hub.settle()
    assert hub.decisions() == [expected]
    reason = "AllDecisionsScheduled" if len(expected) == 4 else "NotAllDecisionsScheduled"
    assert hub.condition() == reason


def test_a_changed_topology_and_the_annotation_itself_wake_a_spread_placement(hub: Hub) -> None:
    hub.bound_set()
    for number in range(1, 4):
        hub.cluster(f"a{number}", region="a")
    hub.placement(numberOfClusters=2, spreadPolicy=spread_by("region"))
    hub.settle()
    path = "v1beta1/namespaces/default/placements/pl"
    hub.patch(path, {"metadata": {"annotations": {"syncline.dev/spread": "true"}}})
    assert hub.settle() == ["pl"]
    hub.patch("v1/managedclusters/a3", {"metadata": {"labels": {"region": "b"}}})
    assert hub.settle() == ["pl"]
    assert hub.decisions() == [["a1", "a3"]]


def test_decision_groups_that_exchange_clusters_end_as_they_should(hub: Hub) -> None:
    hub.bound_set()
    for name, ring in (("c1", "x"), ("c2", "y")):
        hub.cluster(name, ring=ring)

    def groups(*rings: str) -> Obj:
        selectors = [{"labelSelector": {"matchLabels": {"ring": ring}}} for ring in rings]
        named = zip(("first", "second"), selectors, strict=True)
        listed = [{"groupName": name, "groupClusterSelector": selector} for name, selector in named]
        return {"groupStrategy": {"decisionGroups": listed}}

    hub.placement(decisionStrategy=groups("x", "y"))
    hub.settle()
    assert hub.decisions() == [["c1"], ["c2"]]
    hub.patch("v1beta1/namespaces/default/placements/pl", {"spec": {"decisionStrategy": groups("y", "x")}})
    hub.settle()
    assert hub.decisions() == [["c2"], ["c1"]]
