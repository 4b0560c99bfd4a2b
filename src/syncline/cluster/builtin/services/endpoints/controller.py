"""Define the endpoints controller for Services, their pods and their slices."""

from __future__ import annotations

from collections.abc import Iterable

from syncline.cluster.builtin.owners import selector_of
from syncline.cluster.builtin.pods import POD, is_finished, is_ready
from syncline.cluster.builtin.services.endpoints import plan as planning
from syncline.cluster.builtin.services.endpoints.plan import (
    CONTROLLER,
    ENDPOINTS_MANAGED_BY,
    MANAGED_BY,
    SERVICE_NAME,
    Abandoned,
    Observed,
)
from syncline.control.cache import Snapshot
from syncline.control.controller import Controller, Watch, differ
from syncline.kube.objects import (
    GroupKind,
    Obj,
    ObjectRef,
    dig,
    is_terminating,
    labels_of,
    name_of,
    namespace_of,
    ref_of,
)

SERVICE = GroupKind("", "Service")
ENDPOINTS = GroupKind("", "Endpoints")
SLICE = GroupKind("discovery.k8s.io", "EndpointSlice")
NODE = GroupKind("", "Node")
ZONE = "topology.kubernetes.io/zone"


def _selects(service: Obj, pod: Obj) -> bool:
    return selector_of(service).matches(labels_of(pod))


def _services_of_pod(pod: Obj, cache: Snapshot) -> Iterable[ObjectRef]:
    return (ref_of(each) for each in cache.objects(SERVICE, namespace_of(pod)) if _selects(each, pod))


def _service_of_slice(piece: Obj, _cache: Snapshot) -> Iterable[ObjectRef]:
    name = labels_of(piece).get(SERVICE_NAME)
    return (ObjectRef("", SERVICE.kind, namespace_of(piece), name),) if name else ()


def _service_of_endpoints(endpoints: Obj, _cache: Snapshot) -> Iterable[ObjectRef]:
    return (ObjectRef("", SERVICE.kind, namespace_of(endpoints), name_of(endpoints)),)


def _node(name: str) -> ObjectRef:
    return ObjectRef("", NODE.kind, "", name)


def observe(cache: Snapshot, ref: ObjectRef) -> Observed | Abandoned | None:
    """Return None if nothing remains of the Service, and before its slices are listed."""
    service = cache.get(ref)
    endpoints = cache.get(ObjectRef("", ENDPOINTS.kind, ref.namespace, ref.name))
    if not (cache.has_synced(SERVICE) and cache.has_synced(SLICE) and cache.has_synced(ENDPOINTS)):
        return None
    if service is None:
        made_here = endpoints is not None and ENDPOINTS_MANAGED_BY.items() <= labels_of(endpoints).items()
        return Abandoned(endpoints) if endpoints is not None and made_here else None
    pods = tuple(cache.selected(POD, ref.namespace, selector_of(service)))
    mine = {SERVICE_NAME: ref.name, MANAGED_BY: CONTROLLER}.items()
    slices = tuple(each for each in cache.objects(SLICE, ref.namespace) if mine <= labels_of(each).items())
    nodes = {str(dig(pod, "spec", "nodeName", default="")) for pod in pods}
    zones = {name: labels_of(node).get(ZONE, "") for name in sorted(nodes) if (node := cache.get(_node(name)))}
    return Observed(service, pods, slices, endpoints, zones)


_BACKEND_DIFFERS = differ(
    is_ready,
    is_finished,
    is_terminating,
    labels_of,
    lambda pod: pod.get("spec"),
    lambda pod: dig(pod, "status", "podIPs"),
    lambda pod: dig(pod, "status", "podIP"),
)


ENDPOINTS_CONTROLLER: Controller[Observed | Abandoned] = Controller(
    name="endpoints",
    kind=SERVICE,
    watches=(
        Watch(POD, _services_of_pod, _BACKEND_DIFFERS),
        Watch(SLICE, _service_of_slice),
        Watch(ENDPOINTS, _service_of_endpoints),
    ),
    reads=(NODE,),
    observe=observe,
    plan=planning.plan,
)
"""Publishes the addresses behind Services."""
