"""A hub in virtual time for the views of the fleet: the controllers write what the views show."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from syncline.assembly.embedded.core import build_core
from syncline.assembly.fleet.hub import HubSettings, hub_role
from syncline.assembly.fleet.objects import foreign_hub_objects
from syncline.assembly.inspection.fleet import fleet_snapshot
from syncline.assembly.roles import SimulatedDriver, start
from syncline.base.clock import VirtualClock
from syncline.base.entropy import Entropy
from syncline.base.journal import Journal
from syncline.cluster.storage.store import Store
from syncline.control.cache import Cache
from syncline.control.executor import run_in_place
from syncline.control.virtual import VirtualDriver
from syncline.fleet.hub.sets import CLUSTER_SET_LABEL
from syncline.kube import client
from syncline.kube.client import PatchType, Transport
from syncline.kube.mapper import Mapper, discover
from syncline.kube.objects import GVK, GroupKind, Obj, gvk_of, meta, name_of, namespace_of

GOLDEN = Path(__file__).parent / "golden" / "fleet"
CLUSTERS = "cluster.open-cluster-management.io"


@dataclass
class VirtualHub:
    """An embedded hub with all its controllers."""

    admin: Transport
    time: VirtualDriver
    clock: VirtualClock

    def apply(self, *objects: Obj) -> None:
        """Create objects, with their status where they have one."""
        mapper = Mapper(run_in_place(discover(), self.admin))
        for obj in objects:
            info = mapper.find(gvk_of(obj))
            assert info is not None, gvk_of(obj)
            self.admin.send(client.create(info, obj)).or_raise()
            if "status" in obj and "status" in info.subresources:
                body = {"status": obj["status"]}
                place = (meta(obj).get("namespace") or "", name_of(obj))
                self.admin.send(client.patch(info, *place, PatchType.MERGE, body, subresource="status")).or_raise()

    def patch(self, gvk: GVK, name: str, body: Obj, namespace: str = "", subresource: str = "") -> None:
        info = Mapper(run_in_place(discover(), self.admin)).find(gvk)
        assert info is not None, gvk
        request = client.patch(info, namespace, name, PatchType.MERGE, body, subresource=subresource)
        self.admin.send(request).or_raise()

    def cache(self, kinds: Iterable[GroupKind]) -> Cache:
        return run_in_place(fleet_snapshot(kinds), self.admin).cache


def virtual_hub() -> VirtualHub:
    clock = VirtualClock()
    core = build_core(store=Store(), clock=clock, entropy=Entropy(1))
    core.bootstrap(port=6443)
    admin = core.transport()
    role = hub_role(HubSettings(), objects=foreign_hub_objects())
    driver = SimulatedDriver(clock, Journal(), admin, admin=admin)
    start(role, driver)
    made = VirtualHub(admin, VirtualDriver(clock, [driver.actor]), clock)
    made.time.until_idle()
    return made


def cluster(name: str, *, accepted: bool = True, taints: Iterable[Obj] = (), **labels: str) -> Obj:
    metadata = {"name": name, "labels": {CLUSTER_SET_LABEL: "prod", **labels}}
    spec = {"hubAcceptsClient": accepted, **({"taints": list(taints)} if taints else {})}
    return {"apiVersion": f"{CLUSTERS}/v1", "kind": "ManagedCluster", "metadata": metadata, "spec": spec}


def bound_set(name: str = "prod", namespace: str = "default") -> list[Obj]:
    version = f"{CLUSTERS}/v1beta2"
    spec = {"clusterSelector": {"selectorType": "ExclusiveClusterSetLabel"}}
    binding = {"name": name, "namespace": namespace}
    return [
        {"apiVersion": version, "kind": "ManagedClusterSet", "metadata": {"name": name}, "spec": spec},
        {"apiVersion": version, "kind": "ManagedClusterSetBinding", "metadata": binding, "spec": {"clusterSet": name}},
    ]


def placement(name: str, *, namespace: str = "default", **spec: Any) -> Obj:
    metadata = {"name": name, "namespace": namespace}
    return {"apiVersion": f"{CLUSTERS}/v1beta1", "kind": "Placement", "metadata": metadata, "spec": spec}


def by_labels(**labels: str) -> Obj:
    """A predicate of a Placement."""
    return {"requiredClusterSelector": {"labelSelector": {"matchLabels": labels}}}


def available(status: str, reason: str, message: str, since: str) -> Obj:
    return {
        "type": "ManagedClusterConditionAvailable",
        "status": status,
        "reason": reason,
        "message": message,
        "lastTransitionTime": since,
    }


def named(objects: Iterable[Obj]) -> list[str]:
    return [f"{namespace_of(one)}/{name_of(one)}" for one in objects]


def golden(name: str, text: str) -> None:
    """Compare with a golden file; SYNCLINE_GOLDEN=write writes it."""
    path = GOLDEN / f"{name}.txt"
    if os.environ.get("SYNCLINE_GOLDEN") == "write":
        path.write_text(text + "\n", encoding="utf-8")
    assert text + "\n" == path.read_text(encoding="utf-8")
