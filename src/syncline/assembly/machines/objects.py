"""The objects that the machine-config controllers need: CRDs, RBAC, pools and singletons."""

from __future__ import annotations

import base64

from syncline import __version__
from syncline.assembly.machines.role import MACHINE_CONFIG_MANAGER, MachineConfigSettings
from syncline.kube.kinds.ansible import ansible_config_crd
from syncline.kube.kinds.machineconfiguration import (
    CONTROLLER_CONFIG,
    MACHINE_CONFIG_POOL,
    MACHINE_CONFIGURATION,
    machine_config_crds,
)
from syncline.kube.kinds.openshiftconfig import IMAGE_CONFIG, openshift_config_crds
from syncline.kube.kinds.syncline import hold_crd
from syncline.kube.objects import GVK, Obj
from syncline.machineconfig.generating.images.plan import BUILT_IN
from syncline.machineconfig.names import CONTROLLER_CONFIG_NAME, GENERATED_VERSION, RELEASE, ROLE
from syncline.machineconfig.render.rendering import Release


def machineconfig_objects(settings: MachineConfigSettings, authority: str) -> list[Obj]:
    """Return the objects that the controllers need: CRDs, RBAC, the ControllerConfig, the pools master and worker, and
    singletons.

    ``authority``: the cluster's certificate authority, PEM in base64; empty if it has none.
    """
    control_namespace = settings.control_namespace
    account = {"kind": "ServiceAccount", "name": MACHINE_CONFIG_MANAGER, "namespace": control_namespace}
    rights = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": MACHINE_CONFIG_MANAGER},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
        "subjects": [account],
    }
    namespace, *needed = foreign_machineconfig_objects(settings, authority)
    metadata = {"name": MACHINE_CONFIG_MANAGER, "namespace": control_namespace}
    return [namespace, {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata}, rights, *needed]


def foreign_machineconfig_objects(settings: MachineConfigSettings, authority: str = "") -> list[Obj]:
    """As :func:`machineconfig_objects` without RBAC, for another team's cluster, whose owner grants the rights."""
    return [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": settings.control_namespace}},
        *machine_config_crds(),
        *openshift_config_crds(),
        hold_crd(),
        _controller_config(settings.release, authority),
        _object(MACHINE_CONFIGURATION, "cluster", {}),
        _object(IMAGE_CONFIG, "cluster", {}),
        _pool("master"),
        _pool("worker"),
        ansible_config_crd(),
    ]


def _object(gvk: GVK, name: str, spec: Obj, **metadata: Obj) -> Obj:
    return {"apiVersion": gvk.api_version, "kind": gvk.kind, "metadata": {"name": name} | metadata, "spec": spec}


def _controller_config(release: Release, authority: str) -> Obj:
    """Return the ControllerConfig without OS image: this cluster's machines keep their system."""
    texts = ("baseOSContainerImage", "baseOSExtensionsContainerImage", "cloudProviderConfig", "osImageURL")
    nothing = ("additionalTrustBundle", "cloudProviderCAData", "dns", "infra", "network", "proxy")
    data = authority or base64.b64encode(b"\n").decode()
    spec = (
        dict.fromkeys(texts, "")
        | dict.fromkeys(nothing)
        | {
            "clusterDNSIP": "10.96.0.10",
            "images": {},
            "ipFamilies": "IPv4",
            "kubeAPIServerServingCAData": data,
            "releaseImage": f"localhost/syncline/release:{__version__}",
            "rootCAData": data,
        }
    )
    notes = {GENERATED_VERSION: release.raw, RELEASE: release.raw}
    return _object(CONTROLLER_CONFIG, CONTROLLER_CONFIG_NAME, spec, annotations=notes)


def _pool(name: str) -> Obj:
    labels = {BUILT_IN: "", f"pools.operator.machineconfiguration.openshift.io/{name}": ""}
    if name == "master":
        labels["operator.machineconfiguration.openshift.io/required-for-upgrade"] = ""
    spec = {
        "machineConfigSelector": {"matchLabels": {ROLE: name}},
        "nodeSelector": {"matchLabels": {f"node-role.kubernetes.io/{name}": ""}},
    }
    return _object(MACHINE_CONFIG_POOL, name, spec, labels=labels)
