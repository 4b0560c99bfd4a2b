"""Mirror user-written Endpoints of a Service without selector to EndpointSlices (endpointslicemirroring-controller).

One slice per set of ports and address family, owned by the Endpoints, with their labels and annotations. Endpoints with
a skip label, or of leader election, have none.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from syncline.cluster.builtin.owners import owner_reference
from syncline.cluster.builtin.services.endpoints.plan import MANAGED_BY, SERVICE_NAME
from syncline.control.cache import Snapshot
from syncline.control.controller import Controller, Watch
from syncline.control.plan import Create, Delete, Plan, Replace
from syncline.kube.objects import (
    GroupKind,
    Obj,
    ObjectRef,
    annotations_of,
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
CONTROLLER = "endpointslicemirroring-controller.k8s.io"
SKIP = "endpointslice.kubernetes.io/skip-mirror"
LEADER = "control-plane.alpha.kubernetes.io/leader"
MAX_MIRRORED = 1000
"""Mirrored addresses per subset, as in Kubernetes."""
_NOT_COPIED = (
    "endpoints.kubernetes.io/last-change-trigger-time",
    "kubectl.kubernetes.io/last-applied-configuration",
)


@dataclass(frozen=True, slots=True)
class Observed:
    """``endpoints`` is None if there are none; ``slices`` are their mirrors."""

    service: Obj | None
    endpoints: Obj | None
    slices: tuple[Obj, ...]


def observe(cache: Snapshot, ref: ObjectRef) -> Observed | None:
    """Return None before everything is listed, and if there is nothing to mirror or delete."""
    if not all(cache.has_synced(kind) for kind in (SERVICE, ENDPOINTS, SLICE)):
        return None
    service = cache.get(ObjectRef("", SERVICE.kind, ref.namespace, ref.name))
    endpoints = cache.get(ref)
    mine = {SERVICE_NAME: ref.name, MANAGED_BY: CONTROLLER}.items()
    slices = tuple(each for each in cache.objects(SLICE, ref.namespace) if mine <= labels_of(each).items())
    return Observed(service, endpoints, slices) if endpoints is not None or slices else None


def plan(observed: Observed, now: datetime) -> Plan:
    """Create, replace or delete slices so that they match the Endpoints."""
    wanted = _wanted(observed.endpoints) if observed.endpoints is not None and _is_mirrored(observed) else []
    spare = [each for each in observed.slices if not is_terminating(each)]
    actions: list[Create | Replace | Delete] = []
    for piece in wanted:
        known = next((each for each in spare if _key(each) == _key(piece)), None)
        if known is None:
            actions.append(Create(piece, "Endpoints are mirrored"))
            continue
        spare.remove(known)
        if (merged := _merged(known, piece)) != known:
            actions.append(Replace(merged, "the Endpoints changed"))
    actions += [Delete.of(each, "nothing is mirrored in it") for each in spare]
    return Plan((tuple(actions),) if actions else (), why=f"{len(wanted)} slices mirror the Endpoints")


def _is_mirrored(observed: Observed) -> bool:
    if observed.service is None or is_terminating(observed.service) or observed.endpoints is None:
        return False
    skipped = labels_of(observed.endpoints).get(SKIP) == "true" or LEADER in annotations_of(observed.endpoints)
    return not skipped and not dig(observed.service, "spec", "selector", default={})


def _key(piece: Obj) -> tuple[object, ...]:
    ports = [tuple(sorted((key, str(value)) for key, value in port.items())) for port in piece.get("ports") or ()]
    return (piece.get("addressType"), *sorted(ports))


def _merged(known: Obj, piece: Obj) -> Obj:
    metadata = dict(known["metadata"]) | {"labels": piece["metadata"]["labels"]}
    metadata |= {"annotations": piece["metadata"].get("annotations") or {}}
    if not metadata["annotations"]:
        del metadata["annotations"]
    return known | {"metadata": metadata, "endpoints": piece["endpoints"]}


def _wanted(endpoints: Obj) -> list[Obj]:
    slices: dict[tuple[object, ...], Obj] = {}
    for subset in endpoints.get("subsets") or ():
        listed = [(each, True) for each in subset.get("addresses") or ()]
        listed += [(each, False) for each in subset.get("notReadyAddresses") or ()]
        for address, ready in listed[:MAX_MIRRORED]:
            piece = _slice(endpoints, subset, "IPv6" if ":" in str(address.get("ip")) else "IPv4")
            held = slices.setdefault(_key(piece), piece)["endpoints"]
            held.append(_endpoint(address, ready))
    for piece in slices.values():
        piece["endpoints"].sort(key=lambda each: str(each["addresses"]))
    return [slices[key] for key in sorted(slices, key=str)]


def _endpoint(address: Obj, ready: bool) -> Obj:
    found: Obj = {"addresses": [address.get("ip")], "conditions": {"ready": ready}}
    return found | {key: address[key] for key in ("hostname", "targetRef", "nodeName") if address.get(key)}


def _slice(endpoints: Obj, subset: Obj, family: str) -> Obj:
    metadata: Obj = {
        "generateName": f"{name_of(endpoints)}-",
        "namespace": namespace_of(endpoints),
        "labels": labels_of(endpoints) | {SERVICE_NAME: name_of(endpoints), MANAGED_BY: CONTROLLER},
        "ownerReferences": [owner_reference({"apiVersion": "v1", "kind": ENDPOINTS.kind} | endpoints)],
    }
    notes = {key: value for key, value in annotations_of(endpoints).items() if key not in _NOT_COPIED}
    ports = [{"name": "", "protocol": "TCP"} | port for port in subset.get("ports") or ()]
    return {
        "apiVersion": "discovery.k8s.io/v1",
        "kind": SLICE.kind,
        "metadata": metadata | ({"annotations": notes} if notes else {}),
        "addressType": family,
        "endpoints": [],
        "ports": ports or None,
    }


def _endpoints_of_service(service: Obj, _cache: Snapshot) -> Iterable[ObjectRef]:
    return (ObjectRef("", ENDPOINTS.kind, namespace_of(service), name_of(service)),)


def _endpoints_of_slice(piece: Obj, _cache: Snapshot) -> Iterable[ObjectRef]:
    labels = labels_of(piece)
    if labels.get(MANAGED_BY) == CONTROLLER and labels.get(SERVICE_NAME):
        yield ObjectRef("", ENDPOINTS.kind, ref_of(piece).namespace, labels[SERVICE_NAME])


MIRRORING_CONTROLLER = Controller(
    name="endpointslice-mirroring",
    kind=ENDPOINTS,
    watches=(Watch(SERVICE, _endpoints_of_service), Watch(SLICE, _endpoints_of_slice)),
    observe=observe,
    plan=plan,
)
"""Publishes user-written Endpoints as EndpointSlices."""
