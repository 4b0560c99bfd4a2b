"""Sync EndpointSlices and Endpoints of a Service with its pods.

Pods with the same port numbers share a slice of at most a hundred (Kubernetes' endpointslice controller). A Service
without selector is left to its owner.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from syncline.base.clock import format_time
from syncline.cluster.builtin.owners import owner_reference
from syncline.cluster.builtin.services.endpoints.addresses import Backend, backends, port_number
from syncline.control.plan import Create, Delete, Plan, Replace
from syncline.kube.objects import Obj, dig, is_terminating, labels_of, name_of, namespace_of

SERVICE_NAME = "kubernetes.io/service-name"
MANAGED_BY = "endpointslice.kubernetes.io/managed-by"
ENDPOINTS_MANAGED_BY = {"endpoints.kubernetes.io/managed-by": "endpoint-controller"}
CONTROLLER = "endpointslice-controller.k8s.io"
MAX_ENDPOINTS = 100
"""Endpoints in one slice, as in Kubernetes, so that a pod's change does not rewrite a large object."""
MAX_ADDRESSES = 1000
"""Addresses in one Endpoints object; the rest is truncated, as in Kubernetes."""
_HEADLESS = "service.kubernetes.io/headless"

Ports = tuple[tuple[str, str, int, str], ...]


@dataclass(frozen=True, slots=True)
class Observed:
    """``zones`` are nodes' zones by node name; ``slices`` those of this Service that this controller manages."""

    service: Obj
    pods: tuple[Obj, ...]
    slices: tuple[Obj, ...]
    endpoints: Obj | None
    zones: dict[str, str]


@dataclass(frozen=True, slots=True)
class Abandoned:
    """Endpoints that this controller created for a deleted Service. (Slices are deleted with their owner.)"""

    endpoints: Obj


def plan(observed: Observed | Abandoned, now: datetime) -> Plan:
    """Update slices, then Endpoints; skip a Service that terminates, has no selector or is an ExternalName (as
    upstream's endpoints and endpointslice controllers do)."""
    if isinstance(observed, Abandoned):
        return Plan(((Delete.of(observed.endpoints, "its Service is gone"),),), why="the Service is gone")
    if dig(observed.service, "spec", "type") == "ExternalName":
        return Plan(why="an ExternalName has no pods behind it")
    if is_terminating(observed.service) or not dig(observed.service, "spec", "selector", default={}):
        return Plan(why="there is nothing to select")
    actions = [*_slice_actions(observed), *_endpoints_actions(observed, now)]
    return Plan((tuple(actions),) if actions else (), why=f"the pods behind {name_of(observed.service)}")


def _families(service: Obj) -> list[str]:
    return list(dig(service, "spec", "ipFamilies", default=["IPv4"])) or ["IPv4"]


def _slice_actions(observed: Observed) -> list[Create | Replace | Delete]:
    spare = {family: [s for s in observed.slices if s.get("addressType") == family] for family in ("IPv4", "IPv6")}
    actions: list[Create | Replace | Delete] = []
    for family in _families(observed.service):
        for wanted in _wanted_slices(observed, family):
            known = _best_match(spare[family], wanted)
            if known is None:
                actions.append(Create(wanted, "pods need a slice"))
                continue
            spare[family].remove(known)
            merged = _merged(known, wanted)
            if merged != known:
                actions.append(Replace(merged, "the pods changed"))
    unused = [each for family in sorted(spare) for each in spare[family]]
    return actions + [Delete.of(each, "no pod needs it") for each in unused if not is_terminating(each)]


def _best_match(known: list[Obj], wanted: Obj) -> Obj | None:
    """Return the slice with the same ports, or any other, to reuse it."""
    same = [each for each in known if (each.get("ports") or []) == (wanted.get("ports") or [])]
    return next(iter(same or known), None)


def _merged(known: Obj, wanted: Obj) -> Obj:
    merged = {key: value for key, value in known.items() if key not in ("endpoints", "ports")}
    metadata = dict(known["metadata"]) | {"labels": wanted["metadata"]["labels"]}
    return merged | {"metadata": metadata, "endpoints": wanted["endpoints"], "ports": wanted["ports"]}


def _wanted_slices(observed: Observed, family: str) -> list[Obj]:
    groups: dict[Ports, list[Backend]] = {}
    for backend in backends(observed.service, observed.pods, family):
        groups.setdefault(_ports(observed.service, backend), []).append(backend)
    wanted: list[Obj] = []
    for ports, members in sorted(groups.items()):
        for start in range(0, len(members), MAX_ENDPOINTS):
            wanted.append(_slice(observed, family, ports, members[start : start + MAX_ENDPOINTS]))
    return wanted or [_slice(observed, family, (), [])]


def _ports(service: Obj, backend: Backend) -> Ports:
    found = []
    for port in dig(service, "spec", "ports", default=[]):
        number = port_number(port, backend.pod)
        if number is not None:
            application = str(port.get("appProtocol") or "")
            found.append((str(port.get("name") or ""), str(port.get("protocol") or "TCP"), number, application))
    return tuple(found)


def _slice(observed: Observed, family: str, ports: Ports, members: list[Backend]) -> Obj:
    service = observed.service
    labels = labels_of(service) | {MANAGED_BY: CONTROLLER, SERVICE_NAME: name_of(service)}
    if dig(service, "spec", "clusterIP") == "None":
        labels = labels | {_HEADLESS: ""}
    return {
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": {
            "generateName": f"{name_of(service)}-",
            "namespace": namespace_of(service),
            "labels": labels,
            "ownerReferences": [owner_reference(service)],
        },
        "addressType": family,
        "endpoints": [_endpoint(observed, member) for member in members] or None,
        "ports": [_port(*port) for port in ports] or None,
    }


def _port(name: str, protocol: str, number: int, application: str) -> Obj:
    port: Obj = {"name": name, "protocol": protocol, "port": number}
    return port | ({"appProtocol": application} if application else {})


def _endpoint(observed: Observed, member: Backend) -> Obj:
    endpoint: Obj = {
        "addresses": [member.address],
        "conditions": {"ready": member.ready, "serving": member.serving, "terminating": member.terminating},
        "targetRef": member.target,
    }
    if member.node:
        endpoint["nodeName"] = member.node
    if zone := observed.zones.get(member.node):
        endpoint["zone"] = zone
    if hostname := member.hostname_in(observed.service):
        endpoint["hostname"] = hostname
    return endpoint


# --- the older Endpoints ---------------------------------------------------------------------------------------------


def _endpoints_actions(observed: Observed, now: datetime) -> list[Create | Replace | Delete]:
    subsets = _subsets(observed)
    service = observed.service
    labels = labels_of(service) | ENDPOINTS_MANAGED_BY
    if dig(service, "spec", "clusterIP") == "None":
        labels = labels | {_HEADLESS: ""}
    if observed.endpoints is None:
        metadata: dict[str, Any] = {"name": name_of(service), "namespace": namespace_of(service), "labels": labels}
        if subsets:
            metadata["annotations"] = _trigger(now)
        made = {"apiVersion": "v1", "kind": "Endpoints", "metadata": metadata, "subsets": subsets or None}
        return [Create(made, "older clients read it")]
    same_labels = labels_of(observed.endpoints) == labels
    if same_labels and (observed.endpoints.get("subsets") or []) == subsets:
        return []
    metadata = dict(observed.endpoints["metadata"]) | {"labels": labels}
    return [Replace(observed.endpoints | {"metadata": metadata, "subsets": subsets or None}, "the pods changed")]


def _trigger(now: datetime) -> dict[str, str]:
    return {"endpoints.kubernetes.io/last-change-trigger-time": format_time(now)}


def _subsets(observed: Observed) -> list[Obj]:
    """Return ports shared by the same pods, with those pods (``RepackSubsets``)."""
    found = backends(observed.service, observed.pods, _families(observed.service)[0])
    members = [each for each in found[:MAX_ADDRESSES] if not each.terminating or each.publish]
    answering: dict[Ports, list[Backend]] = {}
    for backend in members:
        ports = _ports(observed.service, backend)
        if not ports and not dig(observed.service, "spec", "ports", default=[]):
            answering.setdefault((), []).append(backend)
        for port in ports:
            answering.setdefault((port,), []).append(backend)
    groups: dict[tuple[str, ...], tuple[list[Backend], Ports]] = {}
    for ports in sorted(answering):
        backing = answering[ports]
        _, known = groups.get(_identities(backing), (backing, ()))
        groups[_identities(backing)] = (backing, (*known, *ports))
    return [_subset(observed.service, backing, ports) for backing, ports in sorted(groups.values(), key=_subset_order)]


def _identities(backing: list[Backend]) -> tuple[str, ...]:
    return tuple(f"{each.address}/{each.target['uid']}" for each in backing)


def _subset_order(group: tuple[list[Backend], Ports]) -> tuple[tuple[str, ...], Ports]:
    return _identities(group[0]), group[1]


def _subset(service: Obj, backing: list[Backend], ports: Ports) -> Obj:
    subset: Obj = {}
    for field, ready in (("addresses", True), ("notReadyAddresses", False)):
        addresses = [_address(service, each) for each in backing if each.ready == ready]
        subset |= {field: addresses} if addresses else {}
    listed = [_named(*port) for port in ports]
    return subset | ({"ports": listed} if listed else {})


def _named(name: str, protocol: str, number: int, application: str) -> Obj:
    """Return an Endpoints port, without a name if it is empty."""
    port = _port(name, protocol, number, application)
    return port if name else {key: value for key, value in port.items() if key != "name"}


def _address(service: Obj, backend: Backend) -> Obj:
    address: Obj = {"ip": backend.address}
    if hostname := backend.hostname_in(service):
        address["hostname"] = hostname
    if backend.node:
        address["nodeName"] = backend.node
    return address | {"targetRef": backend.target}
