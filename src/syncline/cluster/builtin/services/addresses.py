"""Maintain an IPAddress for each Service's cluster IP (Kubernetes ``ipallocator`` and its repair controller).

Admission allocates addresses from the Services themselves; these objects follow.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from syncline.cluster.admission.services import ALLOCATOR, MANAGED_BY
from syncline.control.cache import Snapshot
from syncline.control.controller import Controller, Watch, differ
from syncline.control.plan import Create, Delete, Plan
from syncline.kube.objects import GroupKind, Obj, ObjectRef, dig, labels_of, name_of, namespace_of

SERVICE = GroupKind("", "Service")
ADDRESS = GroupKind("networking.k8s.io", "IPAddress")
RANGE = GroupKind("networking.k8s.io", "ServiceCIDR")
MANAGED = {MANAGED_BY: ALLOCATOR}
FAMILY = "ipaddress.kubernetes.io/ip-family"


@dataclass(frozen=True, slots=True)
class Given:
    """A Service, and its addresses that have no object yet."""

    service: Obj
    missing: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Spare:
    """``used``: the Service in the IPAddress has the address."""

    address: Obj
    used: bool


def _addresses(service: Obj) -> list[str]:
    if dig(service, "spec", "type") == "ExternalName":
        return []
    return [str(each) for each in dig(service, "spec", "clusterIPs", default=[]) if each != "None"]


def _address(name: str) -> ObjectRef:
    return ObjectRef(ADDRESS.group, ADDRESS.kind, "", name)


def _addresses_of_service(service: Obj, _cache: Snapshot) -> Iterable[ObjectRef]:
    return map(_address, _addresses(service))


def _service_of_address(address: Obj, _cache: Snapshot) -> Iterable[ObjectRef]:
    parent = dig(address, "spec", "parentRef", default={})
    if (parent.get("group") or "", parent.get("resource")) == ("", "services"):
        yield ObjectRef("", SERVICE.kind, str(parent.get("namespace") or ""), str(parent.get("name") or ""))


_MOVES = differ(_addresses)


def _observe(cache: Snapshot, ref: ObjectRef) -> Given | None:
    service = cache.get(ref)
    if service is None or not cache.has_synced(ADDRESS):
        return None
    missing = tuple(each for each in _addresses(service) if cache.get(_address(each)) is None)
    return Given(service, missing) if missing else None


def _plan(observed: Given, now: datetime) -> Plan:
    made = tuple(Create(_object(observed.service, each), "the Service has the address") for each in observed.missing)
    return Plan((made,), why=f"{len(made)} addresses have no object yet")


SERVICE_ADDRESS_CONTROLLER = Controller(
    name="service-addresses",
    kind=SERVICE,
    watches=(Watch(ADDRESS, _service_of_address),),
    observe=_observe,
    plan=_plan,
)
"""Creates missing objects."""


def _object(service: Obj, address: str) -> Obj:
    parent = {"resource": "services", "namespace": namespace_of(service), "name": name_of(service)}
    family = "IPv6" if ":" in address else "IPv4"
    return {
        "apiVersion": f"{ADDRESS.group}/v1",
        "kind": ADDRESS.kind,
        "metadata": {"name": address, "labels": {FAMILY: family, **MANAGED}},
        "spec": {"parentRef": parent},
    }


def _spare(cache: Snapshot, ref: ObjectRef) -> Spare | None:
    address = cache.get(ref)
    if address is None or not cache.has_synced(SERVICE) or not MANAGED.items() <= labels_of(address).items():
        return None
    services = (cache.get(each) for each in _service_of_address(address, cache))
    return Spare(address, any(each is not None and ref.name in _addresses(each) for each in services))


def _removed(observed: Spare, now: datetime) -> Plan:
    if observed.used:
        return Plan(why="its Service has it")
    return Plan(((Delete.of(observed.address, "no Service has it"),),), why="no Service has it")


SPARE_ADDRESS_CONTROLLER = Controller(
    name="spare-addresses",
    kind=ADDRESS,
    watches=(Watch(SERVICE, _addresses_of_service, _MOVES),),
    observe=_spare,
    plan=_removed,
)
"""Deletes our objects whose Service no longer has the address."""
