"""Defaults of the plain core kinds: namespaces, secrets, services, nodes, events, quotas, volumes.

Called by :mod:`syncline.kube.defaults.fill`; changes the object in place. Cluster IPs and node ports are given by an
allocator, not here. Source of the rules: Kubernetes ``pkg/apis/core/v1`` defaults.
"""

from __future__ import annotations

import base64

from syncline.kube.defaults.pods import fill_claim_spec, fill_volume_source
from syncline.kube.defaults.shape import (
    always,
    canonical_base64,
    canonical_quantities,
    default,
    drop_empty,
    items,
    null_times,
    structure,
)
from syncline.kube.objects import GVK, Obj

NAME_LABEL = "kubernetes.io/metadata.name"
AFFINITY_TIMEOUT_S = 10_800
NODE_INFO = (
    "machineID",
    "systemUUID",
    "bootID",
    "kernelVersion",
    "osImage",
    "containerRuntimeVersion",
    "kubeletVersion",
    "kubeProxyVersion",
    "operatingSystem",
    "architecture",
)


def fill_namespace(gvk: GVK, obj: Obj) -> None:
    """Add the label with the namespace's name, which selectors of policies use."""
    metadata = structure(obj, "metadata")
    if metadata.get("name"):
        structure(metadata, "labels")[NAME_LABEL] = metadata["name"]
    structure(obj, "spec")
    null_times(items(structure(obj, "status"), "conditions"), "lastTransitionTime")


def fill_config_map(gvk: GVK, obj: Obj) -> None:
    canonical_base64(gvk, obj, "binaryData")


def fill_secret(gvk: GVK, obj: Obj) -> None:
    """Move the write-only ``stringData`` into ``data``, where it wins."""
    default(obj, "type", "Opaque")
    plain = obj.pop("stringData", None)
    if isinstance(plain, dict) and plain:
        data = structure(obj, "data")
        for key, text in plain.items():
            data[key] = base64.b64encode(str(text or "").encode()).decode()
    canonical_base64(gvk, obj, "data")


def fill_service_account(gvk: GVK, obj: Obj) -> None:
    """Fill nothing; only normalize the object's form."""


def fill_service(gvk: GVK, obj: Obj) -> None:
    spec = structure(obj, "spec")
    default(spec, "sessionAffinity", "None")
    if spec["sessionAffinity"] == "None":
        spec.pop("sessionAffinityConfig", None)
    elif spec["sessionAffinity"] == "ClientIP":
        client = structure(structure(spec, "sessionAffinityConfig"), "clientIP")
        default(client, "timeoutSeconds", AFFINITY_TIMEOUT_S)
    default(spec, "type", "ClusterIP")
    for port in items(spec, "ports"):
        default(port, "protocol", "TCP")
        drop_empty(port, "name")
        if port.get("targetPort") in (None, 0, "") and port.get("port") is not None:
            port["targetPort"] = port["port"]
    exposed = spec["type"] == "ClusterIP" and spec.get("externalIPs")
    if exposed or spec["type"] in ("NodePort", "LoadBalancer"):
        default(spec, "externalTrafficPolicy", "Cluster")
    if spec["type"] in ("ClusterIP", "NodePort", "LoadBalancer"):
        default(spec, "internalTrafficPolicy", "Cluster")
    if spec["type"] == "LoadBalancer":
        default(spec, "allocateLoadBalancerNodePorts", True)
    for condition in items(structure(obj, "status"), "conditions"):
        always(condition, reason="", message="")
    balancer = structure(obj["status"], "loadBalancer")
    for ingress in items(balancer, "ingress"):
        if ingress.get("ip") and spec["type"] == "LoadBalancer":
            default(ingress, "ipMode", "VIP")


def fill_node(gvk: GVK, obj: Obj) -> None:
    spec = structure(obj, "spec")
    for taint in items(spec, "taints"):
        drop_empty(taint, "value")
    _mirror_range(spec)
    status = structure(obj, "status")
    canonical_quantities(gvk, status, "capacity", "allocatable")
    if status.get("capacity") and not status.get("allocatable"):
        status["allocatable"] = dict(status["capacity"])
    endpoint = structure(structure(status, "daemonEndpoints"), "kubeletEndpoint")
    always(endpoint, Port=0)
    always(structure(status, "nodeInfo"), **dict.fromkeys(NODE_INFO, ""))
    null_times(items(status, "conditions"), "lastHeartbeatTime", "lastTransitionTime")
    for image in items(status, "images"):
        image.setdefault("names", None)


def _mirror_range(spec: Obj) -> None:
    """Copy the first range of the newer field to the older one, which wins if they differ."""
    single, ranges = spec.get("podCIDR"), spec.get("podCIDRs")
    if single and (not ranges or ranges[0] != single):
        spec["podCIDRs"] = [single]
    elif ranges and not single:
        spec["podCIDR"] = ranges[0]


def fill_event(gvk: GVK, obj: Obj) -> None:
    """Fill a core Event; unknown times are null."""
    for name in ("involvedObject", "source"):
        structure(obj, name)
    for name in ("firstTimestamp", "lastTimestamp", "eventTime"):
        obj.setdefault(name, None)
    always(obj, reportingComponent="", reportingInstance="")


def fill_new_event(gvk: GVK, obj: Obj) -> None:
    """Fill an Event of ``events.k8s.io``; the old fields stay beside the new ones."""
    for name in ("regarding", "deprecatedSource"):
        structure(obj, name)
    for name in ("eventTime", "deprecatedFirstTimestamp", "deprecatedLastTimestamp"):
        obj.setdefault(name, None)
    for name in ("reportingInstance", "reportingController"):
        if obj.get(name) == "":
            del obj[name]


def fill_limit_range(gvk: GVK, obj: Obj) -> None:
    """For containers: default limit from the maximum, request from the limit or the minimum."""
    for limit in items(structure(obj, "spec"), "limits"):
        canonical_quantities(gvk, limit, "max", "min", "default", "defaultRequest", "maxLimitRequestRatio")
        if limit.get("type") != "Container":
            continue
        limits = dict(limit.get("max") or {}) | (limit.get("default") or {})
        requests = dict(limit.get("min") or {}) | limits | (limit.get("defaultRequest") or {})
        for name, amounts in (("default", limits), ("defaultRequest", requests)):
            if amounts:
                limit[name] = amounts
            else:
                limit.pop(name, None)


def fill_resource_quota(gvk: GVK, obj: Obj) -> None:
    canonical_quantities(gvk, structure(obj, "spec"), "hard")
    canonical_quantities(gvk, structure(obj, "status"), "hard", "used")


def fill_endpoints(gvk: GVK, obj: Obj) -> None:
    for subset in items(obj, "subsets"):
        for port in items(subset, "ports"):
            default(port, "protocol", "TCP")


def fill_persistent_volume(gvk: GVK, obj: Obj) -> None:
    spec = structure(obj, "spec")
    canonical_quantities(gvk, spec, "capacity")
    default(spec, "persistentVolumeReclaimPolicy", "Retain")
    default(spec, "volumeMode", "Filesystem")
    drop_empty(spec, "storageClassName")
    fill_volume_source(spec)
    if isinstance(spec.get("hostPath"), dict):
        always(spec["hostPath"], type="")
    default(structure(obj, "status"), "phase", "Pending")


def fill_persistent_volume_claim(gvk: GVK, obj: Obj) -> None:
    fill_claim_spec(gvk, structure(obj, "spec"))
    status = structure(obj, "status")
    default(status, "phase", "Pending")
    canonical_quantities(gvk, status, "capacity", "allocatedResources")
    null_times(items(status, "conditions"), "lastProbeTime", "lastTransitionTime")
