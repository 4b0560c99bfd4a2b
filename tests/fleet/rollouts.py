"""A hub on the embedded cluster in virtual time whose agents are this file: it says how works fare."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from syncline.assembly.embedded.core import build_core
from syncline.assembly.roles import Role, SimulatedDriver, start
from syncline.base.clock import VirtualClock, format_time
from syncline.base.entropy import Entropy
from syncline.base.journal import Journal
from syncline.cluster.access.users import service_account_user
from syncline.cluster.storage.store import Store
from syncline.control.controller import Controller
from syncline.control.virtual import VirtualDriver
from syncline.fleet.hub.budgets.controller import budget_controller
from syncline.fleet.hub.placement.controller import placement_controller
from syncline.fleet.hub.replicasets.controller import replica_set_controller
from syncline.fleet.hub.replicasets.works import SET_LABEL
from syncline.fleet.hub.sets import CLUSTER_SET_LABEL
from syncline.kube.client import Request, Transport
from syncline.kube.kinds.managedclusters import hub_cluster_crds
from syncline.kube.kinds.manifestworks import manifest_work_crd, replica_set_crd
from syncline.kube.kinds.syncline import budget_crd
from syncline.kube.objects import Obj, labels_of, name_of, namespace_of

CLUSTER_API, WORK_API = "/apis/cluster.open-cluster-management.io", "/apis/work.open-cluster-management.io"
PLACEMENTS = f"{CLUSTER_API}/v1beta1/namespaces/default/placements"
CLUSTERS = f"{CLUSTER_API}/v1/managedclusters"
REPLICA_SETS = f"{WORK_API}/v1alpha1/namespaces/default/manifestworkreplicasets"
BUDGETS = "/apis/syncline.dev/v1alpha1/fleetdisruptionbudgets"
TIME = "2026-01-01T00:00:00Z"
RULE = {
    "resourceIdentifier": {"group": "", "resource": "configmaps", "name": "x", "namespace": "default"},
    "conditionRules": [{"type": "CEL", "condition": "Progressing", "celExpressions": ["false"]}],
}


def template(value: str = "1", *, rules: bool = True) -> Obj:
    manifest = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x", "namespace": "default"}}
    workload = {"manifests": [{**manifest, "data": {"v": value}}]}
    return {"workload": workload, "manifestConfigs": [RULE]} if rules else {"workload": workload}


@dataclass
class Hub:
    """The hub; ``clusters`` are those that have been joined."""

    admin: Transport
    time: VirtualDriver
    clock: VirtualClock
    role: SimulatedDriver
    clusters: list[str] = field(default_factory=list)

    def send(self, verb: str, path: str, body: Obj | None = None) -> Obj:
        headers = {"content-type": "application/merge-patch+json"} if verb == "PATCH" else {}
        return self.admin.send(Request(verb, path, headers=headers, body=body)).or_raise()

    def get(self, path: str) -> Obj:
        return self.send("GET", path)

    def bound_set(self) -> None:
        version = {"apiVersion": "cluster.open-cluster-management.io/v1beta2"}
        spec = {"clusterSelector": {"selectorType": "ExclusiveClusterSetLabel"}}
        one = {**version, "kind": "ManagedClusterSet", "metadata": {"name": "s1"}, "spec": spec}
        self.send("POST", f"{CLUSTER_API}/v1beta2/managedclustersets", one)
        metadata = {"name": "s1", "namespace": "default"}
        one = {**version, "kind": "ManagedClusterSetBinding", "metadata": metadata, "spec": {"clusterSet": "s1"}}
        self.send("POST", f"{CLUSTER_API}/v1beta2/namespaces/default/managedclustersetbindings", one)

    def join(self, *names: str, accepted: bool = True, **labels: str) -> None:
        for name in names:
            metadata = {"name": name, "labels": {CLUSTER_SET_LABEL: "s1", **labels}}
            kind = {"apiVersion": "cluster.open-cluster-management.io/v1", "kind": "ManagedCluster"}
            self.send("POST", CLUSTERS, {**kind, "metadata": metadata, "spec": {"hubAcceptsClient": accepted}})
            space = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
            self.send("POST", "/api/v1/namespaces", space)
            self.available(name)
            self.clusters.append(name)

    def available(self, name: str, status: str = "True") -> None:
        since = {"lastTransitionTime": TIME, "message": "", "reason": "R"}
        new = {"type": "ManagedClusterConditionAvailable", "status": status, **since}
        self.send("PATCH", f"{CLUSTERS}/{name}/status", {"status": {"conditions": [new]}})

    def label(self, name: str, **labels: str) -> None:
        self.send("PATCH", f"{CLUSTERS}/{name}", {"metadata": {"labels": labels}})

    def placement(self, name: str = "pl", **spec: Any) -> None:
        kind = {"apiVersion": "cluster.open-cluster-management.io/v1beta1", "kind": "Placement"}
        self.send("POST", PLACEMENTS, {**kind, "metadata": {"name": name, "namespace": "default"}, "spec": spec})

    def roll_out(
        self, name: str = "foo", placements: Iterable[str] = ("pl",), content: Obj | None = None, **given: Any
    ) -> None:
        """Create a set; ``given``: its strategy (``type`` and fields)."""
        kind = str(given.pop("type", "All"))
        strategy = {"type": kind, kind[0].lower() + kind[1:]: given}
        policy = strategy[kind[0].lower() + kind[1:]].pop("cascadeDeletionPolicy", "Background")
        spec = {
            "manifestWorkTemplate": content or template(),
            "placementRefs": [{"name": one, "rolloutStrategy": strategy} for one in placements],
            "cascadeDeletionPolicy": policy,
        }
        version = {"apiVersion": "work.open-cluster-management.io/v1alpha1", "kind": "ManifestWorkReplicaSet"}
        self.send("POST", REPLICA_SETS, {**version, "metadata": {"name": name, "namespace": "default"}, "spec": spec})

    def budget(self, name: str = "b", most: Any = 1, selector: Obj | None = None) -> None:
        version = {"apiVersion": "syncline.dev/v1alpha1", "kind": "FleetDisruptionBudget"}
        spec = {"clusterSelector": selector or {}, "maxUnavailable": most}
        self.send("POST", BUDGETS, {**version, "metadata": {"name": name}, "spec": spec})

    @staticmethod
    def placements(name: str) -> str:
        return f"{PLACEMENTS}/{name}"

    def works(self, name: str = "foo") -> dict[str, Obj]:
        """Return the works of a set by cluster."""
        found = self.get(f"{WORK_API}/v1/manifestworks")["items"]
        return {namespace_of(one): one for one in found if labels_of(one).get(SET_LABEL) == f"default.{name}"}

    def say(self, cluster: str, set_name: str = "foo", **conditions: str) -> None:
        """Let the agent of a cluster report its work: applied and available, with more conditions."""
        work = self.works(set_name)[cluster]
        about = work["metadata"]["generation"]
        said = {"Applied": "True", "Available": "True", **conditions}
        listed = [
            {
                "type": kind,
                "status": status,
                "reason": "R",
                "message": "",
                "observedGeneration": about,
                "lastTransitionTime": format_time(self.clock.now()),
            }
            for kind, status in said.items()
        ]
        path = f"{WORK_API}/v1/namespaces/{cluster}/manifestworks/{name_of(work)}/status"
        self.send("PATCH", path, {"status": {"conditions": listed}})

    def succeed(self, *clusters: str, set_name: str = "foo") -> None:
        for cluster in clusters:
            self.say(cluster, set_name, Progressing="False")
        self.settle()

    def settle(self) -> None:
        self.time.until_idle()

    def replica_set(self, name: str = "foo") -> Obj:
        return self.get(f"{REPLICA_SETS}/{name}")

    def condition(self, kind: str, name: str = "foo") -> tuple[str, str]:
        found = self.replica_set(name).get("status", {}).get("conditions", ())
        return next(((one["status"], one["reason"]) for one in found if one["type"] == kind), ("", ""))

    def message(self, kind: str, name: str = "foo") -> str:
        return next(one["message"] for one in self.replica_set(name)["status"]["conditions"] if one["type"] == kind)

    def places(self, name: str = "b") -> dict[str, str]:
        """Return the holder of each place of a budget."""
        found = self.get(f"{BUDGETS}/{name}").get("status", {}).get("places", ())
        return {one["cluster"]: one["holder"]["name"] for one in found}

    def budget_condition(self, kind: str, name: str = "b") -> tuple[str, str, str]:
        found = self.get(f"{BUDGETS}/{name}")["status"]["conditions"]
        return next((one["status"], one["reason"], one["message"]) for one in found if one["type"] == kind)

    def events(self, reason: str) -> list[str]:
        found = self.get("/api/v1/namespaces/default/events")["items"]
        return [one["message"] for one in found if one["reason"] == reason]


def controllers() -> tuple[Controller[Any], ...]:
    return (placement_controller(), replica_set_controller(), budget_controller())


def hub_with(*controllers: Controller[Any], clusters: Iterable[str] = ()) -> Hub:
    """Return a hub with these controllers, a bound cluster set, and accepted clusters."""
    clock = VirtualClock()
    core = build_core(store=Store(), clock=clock, entropy=Entropy(1))
    core.bootstrap(port=6443)
    admin = core.transport()
    role = Role(
        name="hub",
        controllers=controllers,
        user=service_account_user("kube-system", "hub"),
        manager="hub",
        objects=(*hub_cluster_crds(), manifest_work_crd(), replica_set_crd(), budget_crd()),
    )
    driver = SimulatedDriver(clock, Journal(), admin, admin=admin, strict=True)
    start(role, driver)
    made = Hub(admin, VirtualDriver(clock, [driver.actor]), clock, driver)
    made.settle()
    made.bound_set()
    made.join(*clusters)
    made.settle()
    return made
