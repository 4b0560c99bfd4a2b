"""The rendering half of the machine-config room on the embedded cluster, in virtual time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tests.cluster.world import World

from syncline.control.controller import Controller
from syncline.kube.kinds.machineconfiguration import machine_config_crds
from syncline.kube.kinds.openshiftconfig import openshift_config_crds
from syncline.kube.objects import Obj, name_of
from syncline.machineconfig.generating.images.controller import image_controller
from syncline.machineconfig.generating.kubelet.controller import kubelet_config_controller
from syncline.machineconfig.generating.runtime.controller import runtime_config_controller
from syncline.machineconfig.generating.templates.controller import template_controller
from syncline.machineconfig.nodes.controller import node_config_controller
from syncline.machineconfig.policies.controller import POLICY_CONTROLLER
from syncline.machineconfig.render.controller import render_controller
from syncline.machineconfig.render.observe import RenderSettings
from syncline.machineconfig.render.rendering import Release

MCO = "/apis/machineconfiguration.openshift.io/v1"
CONFIG = "/apis/config.openshift.io/v1"
OPERATOR = "/apis/operator.openshift.io/v1"
RELEASE = Release("syncline/1", "1111")
ROLE = "machineconfiguration.openshift.io/role"
POOLS_LABEL = "pools.operator.machineconfiguration.openshift.io"


def controllers(kept: int | None = None) -> Sequence[Controller[Any]]:
    return (
        template_controller(RELEASE),
        render_controller(RenderSettings(RELEASE, kept)),
        kubelet_config_controller(RELEASE),
        runtime_config_controller(RELEASE),
        image_controller(RELEASE),
        node_config_controller(RELEASE),
        POLICY_CONTROLLER,
    )


class Room(World):
    """A cluster with the kinds, a ControllerConfig and the pools master and worker; settled."""

    def __init__(self, seed: int = 1, *, kept: int | None = None, shuffle: bool = False, settled: bool = True) -> None:
        super().__init__(seed, controllers=controllers(kept), shuffle=shuffle)
        for crd in (*machine_config_crds(), *openshift_config_crds()):
            self.post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", crd)
        self.post(f"{MCO}/controllerconfigs", controller_config())
        for name in ("master", "worker"):
            self.post(f"{MCO}/machineconfigpools", pool(name))
        if settled:
            self.rest()

    def rest(self) -> None:
        """Every debounce is over and every write has been answered."""
        self.advance(60)

    # -- objects -------------------------------------------------------------------------------------------------

    def add(self, kind: str, body: Obj) -> Any:
        return self.post(f"{MCO}/{kind}", body)

    def config(self, name: str, config: Any = None, *, role: str = "worker", **spec: Any) -> Any:
        """A MachineConfig of a person."""
        return self.add("machineconfigs", machine_config(name, config, role=role, **spec))

    def pool(self, name: str = "worker") -> Obj:
        found: Obj = self.get(f"{MCO}/machineconfigpools/{name}")
        return found

    def target(self, name: str = "worker") -> str:
        return str(self.pool(name)["spec"].get("configuration", {}).get("name", ""))

    def rendered(self, name: str = "worker") -> Obj:
        found: Obj = self.get(f"{MCO}/machineconfigs/{self.target(name)}")
        return found

    def files(self, name: str = "worker") -> dict[str, Obj]:
        found = self.rendered(name)["spec"]["config"].get("storage", {}).get("files", [])
        return {one["path"]: one for one in found}

    def names(self, kind: str = "machineconfigs") -> list[str]:
        return sorted(name_of(one) for one in self.items(f"{MCO}/{kind}"))

    def condition(self, kind: str, pool_name: str = "worker") -> Obj:
        conditions = self.pool(pool_name).get("status", {}).get("conditions", [])
        return next((one for one in conditions if one["type"] == kind), {})


def controller_config() -> Obj:
    spec: Obj = {
        "additionalTrustBundle": None,
        "baseOSContainerImage": "quay.io/syncline/os@sha256:" + "0" * 64,
        "baseOSExtensionsContainerImage": "",
        "cloudProviderCAData": None,
        "cloudProviderConfig": "",
        "clusterDNSIP": "10.96.0.10",
        "dns": None,
        "images": {},
        "infra": None,
        "ipFamilies": "IPv4",
        "kubeAPIServerServingCAData": "YQ==",
        "network": None,
        "proxy": None,
        "releaseImage": "quay.io/syncline/release@sha256:" + "0" * 64,
        "rootCAData": "YQ==",
    }
    return thing("ControllerConfig", "machine-config-controller", spec)


def thing(kind: str, name: str, spec: Obj, group: str = "machineconfiguration.openshift.io/v1", **meta: Any) -> Obj:
    return {"apiVersion": group, "kind": kind, "metadata": {"name": name} | meta, "spec": spec}


def pool(name: str, *roles: str, **spec: Any) -> Obj:
    selector: Obj = {"matchLabels": {ROLE: name}}
    if roles:
        selector = {"matchExpressions": [{"key": ROLE, "operator": "In", "values": list(roles)}]}
    body = {
        "machineConfigSelector": selector,
        "nodeSelector": {"matchLabels": {f"node-role.kubernetes.io/{name}": ""}},
    }
    labels = {f"{POOLS_LABEL}/{name}": "", "machineconfiguration.openshift.io/mco-built-in": ""}
    return thing("MachineConfigPool", name, body | spec, labels=labels if not roles else {f"{POOLS_LABEL}/{name}": ""})


def machine_config(name: str, config: Any = None, *, role: str | None = "worker", **spec: Any) -> Obj:
    labels = {} if role is None else {"labels": {ROLE: role}}
    return thing("MachineConfig", name, ({"config": config} if config is not None else {}) | spec, **labels)


def files(*named: tuple[str, str] | Obj, version: str = "3.2.0") -> Obj:
    """An Ignition config with these files."""
    made = [
        one if isinstance(one, dict) else {"path": one[0], "mode": 420, "contents": {"source": f"data:,{one[1]}"}}
        for one in named
    ]
    return {"ignition": {"version": version}, "storage": {"files": made}}
