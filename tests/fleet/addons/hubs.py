"""A fleet with add-ons in virtual time: how people write their objects, and what the hub says of them."""

from __future__ import annotations

from typing import Any

from tests.fleet.world import CLUSTERS, Fleet, managed_cluster

from syncline.kube.objects import Obj, name_of

GROUP = "addon.open-cluster-management.io"
ALPHA = f"{GROUP}/v1alpha1"
API = f"/apis/{ALPHA}"
WIDE = f"{API}/clustermanagementaddons"
CONFIGS = f"{API}/namespaces/default/addondeploymentconfigs"
TEMPLATES = f"{API}/addontemplates"
SETS = "/apis/cluster.open-cluster-management.io/v1beta2"
PLACEMENTS = "/apis/cluster.open-cluster-management.io/v1beta1/namespaces/default/placements"
WORKS = "/apis/work.open-cluster-management.io/v1/namespaces/{}/manifestworks"
CONFIG_KIND = {"group": GROUP, "resource": "addondeploymentconfigs"}
TEMPLATE_KIND = {"group": GROUP, "resource": "addontemplates"}


def managed(cluster: str, name: str = "") -> str:
    return f"{API}/namespaces/{cluster}/managedclusteraddons" + (f"/{name}" if name else "")


def of_kind(kind: str, name: str, spec: Obj, namespace: str = "", **metadata: Any) -> Obj:
    at = {"name": name} | ({"namespace": namespace} if namespace else {}) | metadata
    return {"apiVersion": ALPHA, "kind": kind, "metadata": at, "spec": spec}


def cluster_addon(
    name: str, *placements: Obj, configs: tuple[Obj, ...] = (), notes: dict[str, str] | None = None
) -> Obj:
    """A ClusterManagementAddOn that these placements install; ``configs``: what it supports, with defaults."""
    strategy = {"type": "Placements", "placements": list(placements)} if placements else {"type": "Manual"}
    metadata = {"annotations": notes} if notes else {}
    spec = {"installStrategy": strategy, "supportedConfigs": list(configs)}
    return of_kind("ClusterManagementAddOn", name, spec, **metadata)


def by(placement: str, **more: Any) -> Obj:
    """An entry of an install strategy."""
    return {"namespace": "default", "name": placement, **more}


def supported(name: str = "") -> Obj:
    default = {"defaultConfig": {"namespace": "default", "name": name}} if name else {}
    return CONFIG_KIND | default


class Addons(Fleet):
    """A fleet whose clusters the namespace ``default`` may choose. ``agents``: the names are of clusters with APIs and
    agents of their own; else the hub has only their ManagedClusters."""

    def __init__(self, *names: str, agents: bool = False, **more: Any) -> None:
        super().__init__(*(names if agents else ()), **more)
        for name in () if agents else names:
            self.hub.send("POST", CLUSTERS, managed_cluster(name))
        metadata = {"name": "global", "namespace": "default"}
        version = "cluster.open-cluster-management.io/v1beta2"
        binding = {"apiVersion": version, "kind": "ManagedClusterSetBinding", "metadata": metadata}
        path = f"{SETS}/namespaces/default/managedclustersetbindings"
        self.hub.send("POST", path, binding | {"spec": {"clusterSet": "global"}})
        for name in names:
            self.available(name, "True")

    def available(self, cluster: str, status: str) -> None:
        """Say for the agent of a cluster whether it is available."""
        live = self.cluster(cluster).get("status", {}).get("conditions", [])
        kind = "ManagedClusterConditionAvailable"
        since = {"lastTransitionTime": "2026-01-01T00:00:00Z", "message": "m", "reason": "R"}
        new = [one for one in live if one["type"] != kind] + [{"type": kind, "status": status, **since}]
        self.hub.send("PATCH", f"{CLUSTERS}/{cluster}/status", {"status": {"conditions": new}})

    def placement(self, name: str, **spec: Any) -> None:
        """Make a Placement of all clusters, or change its spec."""
        body = {"metadata": {"name": name, "namespace": "default"}, "spec": spec}
        kind = {"apiVersion": "cluster.open-cluster-management.io/v1beta1", "kind": "Placement"}
        self.hub.send("POST", PLACEMENTS, kind | body)

    def config(self, name: str, **spec: Any) -> None:
        self.hub.send("POST", CONFIGS, of_kind("AddOnDeploymentConfig", name, spec, "default"))

    def settle(self, seconds: float = 1.0) -> None:
        self.time.advance(seconds)

    def addons(self, name: str) -> dict[str, Obj]:
        """The add-ons of this name, by cluster."""
        listed = self.hub.get(f"{API}/managedclusteraddons")["items"]
        return {one["metadata"]["namespace"]: one for one in listed if name_of(one) == name}

    def addon(self, cluster: str, name: str = "a") -> Obj:
        return self.hub.get(managed(cluster, name))

    def said(self, cluster: str, kind: str, name: str = "a") -> tuple[str, str, str] | None:
        """Status, reason and message of a condition of an add-on."""
        found = self.addon(cluster, name).get("status", {}).get("conditions", [])
        return next(((one["status"], one["reason"], one["message"]) for one in found if one["type"] == kind), None)

    def set_status(self, path: str, **status: Any) -> None:
        self.hub.send("PATCH", f"{path}/status", {"status": status})

    def desired(self, cluster: str, name: str = "a") -> list[tuple[str, str]]:
        """Names and hashes of the configs that an add-on is to have."""
        references = self.addon(cluster, name).get("status", {}).get("configReferences", [])
        return [(one["desiredConfig"]["name"], one["desiredConfig"].get("specHash", "")) for one in references]
