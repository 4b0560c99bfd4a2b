"""Create the objects that every cluster has from its start.

``assembly`` calls :func:`install` at each start: missing objects are created, existing ones stay unchanged. Objects go
through the API like any other, so they are defaulted, validated and get uids. Controllers, not this module, create
ServiceAccounts and each namespace's CA ConfigMap.
"""

from __future__ import annotations

import json
import lzma
from collections.abc import Callable
from importlib import resources
from typing import Any

from syncline.cluster.access.pki import SERVICE_IP
from syncline.cluster.admission.services import SERVICE_NETWORK
from syncline.kube.client import Request, Response
from syncline.kube.errors import AlreadyExists, error_from_status
from syncline.kube.objects import Obj, name_of, namespace_of
from syncline.kube.schema.resources import builtin_resources

NAMESPACES = ("default", "kube-node-lease", "kube-public", "kube-system")

RBAC = "rbac.authorization.k8s.io"
FLOW = "flowcontrol.apiserver.k8s.io"
SERVED = "kubernetes"
"""Name of the API's own Service and of the range of its address."""
FRONT_PROXY = "front-proxy-client"
"""Name in the certificate that is presented to aggregated APIs."""

_PATHS = {
    "Namespace": "/api/v1/namespaces",
    "ConfigMap": "/api/v1/namespaces/{namespace}/configmaps",
    "Service": "/api/v1/namespaces/{namespace}/services",
    "Endpoints": "/api/v1/namespaces/{namespace}/endpoints",
    "EndpointSlice": "/apis/discovery.k8s.io/v1/namespaces/{namespace}/endpointslices",
    "ServiceCIDR": "/apis/networking.k8s.io/v1/servicecidrs",
    "PriorityClass": "/apis/scheduling.k8s.io/v1/priorityclasses",
    "ClusterRole": f"/apis/{RBAC}/v1/clusterroles",
    "ClusterRoleBinding": f"/apis/{RBAC}/v1/clusterrolebindings",
    "Role": f"/apis/{RBAC}/v1/namespaces/{{namespace}}/roles",
    "RoleBinding": f"/apis/{RBAC}/v1/namespaces/{{namespace}}/rolebindings",
    "FlowSchema": f"/apis/{FLOW}/v1/flowschemas",
    "PriorityLevelConfiguration": f"/apis/{FLOW}/v1/prioritylevelconfigurations",
    "APIService": "/apis/apiregistration.k8s.io/v1/apiservices",
}

_RENEWED = frozenset({"Endpoints", "EndpointSlice"})
"""Kinds that record the server's address, replaced at each start."""

ADVERTISED = "192.168.64.1"
"""Address of the server in Endpoints, which allow no loopback: the first of the simulated machines' network."""


def install(send: Callable[[Request], Response], objects: list[Obj]) -> int:
    """Create the missing objects, in order; return how many were created. Raises the first ApiError.

    ``send`` sends requests as a member of system:masters.
    """
    made = 0
    for obj in objects:
        path = _PATHS[obj["kind"]].format(namespace=namespace_of(obj))
        answer = send(Request("POST", path, body=obj))
        if answer.ok:
            made += 1
            continue
        error = error_from_status(answer.obj, answer.status)
        if not isinstance(error, AlreadyExists):
            raise error
        if obj["kind"] in _RENEWED:
            send(Request("PUT", f"{path}/{name_of(obj)}", body=obj)).or_raise()
    return made


def bootstrap_objects(*, port: int = 6443, ca_pem: str = "") -> list[Obj]:
    """Return the objects, namespaces first. ``port`` is the server's listening port."""
    objects = [_object("v1", "Namespace", name) for name in NAMESPACES]
    objects += [_object("networking.k8s.io/v1", "ServiceCIDR", SERVED, spec={"cidrs": [str(SERVICE_NETWORK)]})]
    objects += [_service(port), *_endpoints(port)]
    if ca_pem:
        objects.append(_authentication(ca_pem))
    return objects + _policy() + _local_api_services()


def _object(api_version: str, kind: str, name: str, namespace: str = "", **fields: object) -> Obj:
    metadata: Obj = {"name": name, "namespace": namespace} if namespace else {"name": name}
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, **fields}


def _service(port: int) -> Obj:
    service = _object("v1", "Service", SERVED, "default")
    service["metadata"]["labels"] = {"component": "apiserver", "provider": "kubernetes"}
    service["spec"] = {
        "type": "ClusterIP",
        "clusterIP": SERVICE_IP,
        "ports": [{"name": "https", "protocol": "TCP", "port": 443, "targetPort": port}],
    }
    return service


def _endpoints(port: int) -> list[Obj]:
    """Return Endpoints and EndpointSlice of the API's Service (``reconcilers.EndpointReconciler``)."""
    ports = [{"name": "https", "port": port, "protocol": "TCP"}]
    endpoints = _object("v1", "Endpoints", SERVED, "default")
    endpoints["metadata"]["labels"] = {"endpointslice.kubernetes.io/skip-mirror": "true"}
    endpoints["subsets"] = [{"addresses": [{"ip": ADVERTISED}], "ports": ports}]
    piece = _object("discovery.k8s.io/v1", "EndpointSlice", SERVED, "default", addressType="IPv4", ports=ports)
    piece["metadata"]["labels"] = {"kubernetes.io/service-name": SERVED}
    piece["endpoints"] = [{"addresses": [ADVERTISED], "conditions": {"ready": True}}]
    return [endpoints, piece]


def _authentication(ca_pem: str) -> Obj:
    """Return the ConfigMap from which extension API servers learn the client CAs to trust."""
    data = {
        "client-ca-file": ca_pem,
        "requestheader-allowed-names": json.dumps([FRONT_PROXY]),
        "requestheader-client-ca-file": ca_pem,
        "requestheader-extra-headers-prefix": '["X-Remote-Extra-"]',
        "requestheader-group-headers": '["X-Remote-Group"]',
        "requestheader-uid-headers": '["X-Remote-Uid"]',
        "requestheader-username-headers": '["X-Remote-User"]',
    }
    return _object("v1", "ConfigMap", "extension-apiserver-authentication", "kube-system", data=data)


_PRIORITIES: dict[str, int] = {
    "": 18000,
    "apps": 17800,
    "events.k8s.io": 17750,
    "authentication.k8s.io": 17700,
    "authorization.k8s.io": 17600,
    "autoscaling": 17500,
    "batch": 17400,
    "certificates.k8s.io": 17300,
    "networking.k8s.io": 17200,
    "policy": 17100,
    "rbac.authorization.k8s.io": 17000,
    "storage.k8s.io": 16800,
    "apiextensions.k8s.io": 16700,
    "admissionregistration.k8s.io": 16700,
    "scheduling.k8s.io": 16600,
    "coordination.k8s.io": 16500,
    "node.k8s.io": 16300,
    "discovery.k8s.io": 16200,
    "resource.k8s.io": 16200,
    "flowcontrol.apiserver.k8s.io": 16100,
}
"""``groupPriorityMinimum`` of the groups served here (controlplane ``defaultGenericAPIServicePriorities``)."""
_VERSION_PRIORITY = {("", "v1"): 1, ("autoscaling", "v2"): 30}
_LATE_GROUPS = frozenset(("flowcontrol.apiserver.k8s.io", "resource.k8s.io"))
OWN = "kube-aggregator.kubernetes.io/automanaged"


def _local_api_services() -> list[Obj]:
    """Return an APIService for each group and version that this server serves itself."""
    made = []
    for group, version in dict.fromkeys((info.group, info.version) for info in builtin_resources()):
        if group not in _PRIORITIES:
            continue
        spec: Obj = {"group": group} if group else {}
        priority = _VERSION_PRIORITY.get((group, version), 21 if group in _LATE_GROUPS else 15)
        spec |= {"version": version, "groupPriorityMinimum": _PRIORITIES[group], "versionPriority": priority}
        service = _object("apiregistration.k8s.io/v1", "APIService", f"{version}.{group}", spec=spec)
        service["metadata"]["labels"] = {OWN: "onstart"}
        made.append(service)
    return made


def _policy() -> list[Obj]:
    """Return default roles, bindings, priority classes and flow control (from ``tools/build_bootstrap.py``)."""
    data = (resources.files("syncline.cluster") / "data" / "bootstrap.json.xz").read_bytes()
    loaded: list[dict[str, Any]] = json.loads(lzma.decompress(data))
    return loaded
