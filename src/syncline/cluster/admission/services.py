"""Allocate cluster IPs and node ports of Services.

The chain calls it for each write of a Service. The store's events show which addresses are in use, so none is released
explicitly. Rules: Kubernetes ``pkg/registry/core/service/storage/alloc.go``.
"""

from __future__ import annotations

import ipaddress

from syncline.cluster.admission.attempt import Attempt
from syncline.cluster.storage.store import Event, EventType, Key, Store, Stored
from syncline.cluster.validation.engine.causes import invalid as kinds_invalid
from syncline.cluster.validation.networking.serviceips import cluster_ip_causes, keep_addresses
from syncline.kube.errors import ApiError, FieldCause, invalid
from syncline.kube.objects import Obj

SERVICE_NETWORK = ipaddress.IPv4Network("10.96.0.0/16")
NODE_PORTS = range(30000, 32768)
SERVICES = "/services"
MANAGED_BY, ALLOCATOR = "ipaddress.kubernetes.io/managed-by", "ipallocator.k8s.io"
RANGES, ADDRESSES = "networking.k8s.io/servicecidrs", "networking.k8s.io/ipaddresses"
SINGLE = "SingleStack"

_LAST_OFFSET = SERVICE_NETWORK.num_addresses - 2
_FIRST_OFFSET = 16
"""The first addresses are reserved for services that request theirs (kubernetes .1, DNS .10)."""


class ServiceAddresses:
    """The pool of cluster IPs and node ports."""

    def __init__(self, store: Store) -> None:
        self._addresses: dict[str, str] = {}
        self._ports: dict[int, str] = {}
        self._store = store
        for stored in store.list(SERVICES):
            self._learn(stored)
        store.subscribe(self._on_event)

    def assign(self, attempt: Attempt, new: Obj, old: Obj | None) -> None:
        """Keep, check or allocate addresses and node ports, in place."""
        spec: Obj = new.setdefault("spec", {})
        owner = f"{attempt.namespace}/{attempt.name}" if attempt.name else ""
        kind = spec.get("type", "ClusterIP")
        before: Obj = (old or {}).get("spec") or {}
        if kind == "ExternalName":
            _drop_addresses(spec, before)
        else:
            self._assign_address(attempt, spec, before, owner)
            spec.setdefault("internalTrafficPolicy", "Cluster")
        if kind in ("NodePort", "LoadBalancer"):
            self._assign_ports(attempt, spec, before, owner)
        elif old is not None:
            _drop_ports(spec, before)

    # -- addresses ------------------------------------------------------------------------------------------------

    def _assign_address(self, attempt: Attempt, spec: Obj, before: Obj, owner: str) -> None:
        """Assign a cluster IP; families are checked before anything is allocated (``initIPFamilyFields``)."""
        if before and before.get("type", "ClusterIP") != "ExternalName":
            keep_addresses(spec, before)
            for key in ("ipFamilies", "ipFamilyPolicy"):
                if before.get(key) and not spec.get(key):
                    spec[key] = before[key]
        if spec.get("clusterIP") and not spec.get("clusterIPs"):
            spec["clusterIPs"] = [spec["clusterIP"]]
        _refuse(attempt, cluster_ip_causes(spec))
        _refuse(attempt, _family_causes(spec))
        if not spec.get("clusterIP"):
            spec["clusterIP"] = self._free_address(attempt)
            spec["clusterIPs"] = [spec["clusterIP"]]
        bare = spec["clusterIP"] == "None" and not spec.get("selector")
        if not spec.get("ipFamilyPolicy"):
            spec["ipFamilyPolicy"] = "RequireDualStack" if bare and len(spec.get("ipFamilies") or ()) != 1 else SINGLE
        if not spec.get("ipFamilies"):
            spec["ipFamilies"] = ["IPv4", "IPv6"] if bare and spec["ipFamilyPolicy"] != SINGLE else ["IPv4"]
        if spec["clusterIP"] != "None":
            self._check_address(attempt, spec["clusterIP"], owner)

    def _free_address(self, attempt: Attempt) -> str:
        """Return the next free address after a random offset, so that addresses are spread."""
        span = _LAST_OFFSET - _FIRST_OFFSET
        start = attempt.entropy.randrange(span)
        for step in range(span):
            address = str(SERVICE_NETWORK[_FIRST_OFFSET + (start + step) % span])
            if address not in self._addresses and self._reserved_for(address) is None:
                return address
        raise ApiError("failed to allocate a serviceIP: range is full", code=500)

    def _check_address(self, attempt: Attempt, address: str, owner: str) -> None:
        try:
            parsed = ipaddress.ip_address(address)
        except ValueError:
            return  # Validation reports what is wrong.
        if not any(parsed in network for network in self._networks()):
            raise _refused(
                attempt,
                address,
                f"failed to allocate IP {address}: the provided IP ({address}) is not in the valid range. The range of "
                f"valid IPs is {SERVICE_NETWORK}",
            )
        if self._addresses.get(address, owner) != owner or self._reserved_for(address) not in (None, owner):
            raise _refused(attempt, address, f"failed to allocate IP {address}: provided IP is already allocated")

    def _networks(self) -> list[ipaddress.IPv4Network]:
        """Return the built-in range and those of ready ServiceCIDRs."""
        made = [SERVICE_NETWORK]
        for stored in self._store.list(RANGES):
            conditions = (stored.obj.get("status") or {}).get("conditions") or ()
            if any(one.get("type") == "Ready" and one.get("status") == "True" for one in conditions):
                cidrs = (stored.obj.get("spec") or {}).get("cidrs") or ()
                made += [ipaddress.IPv4Network(cidr) for cidr in cidrs if ":" not in cidr]
        return made

    def _reserved_for(self, address: str) -> str | None:
        """Return the parent of an IPAddress created by a user, or None. Our IPAddresses follow the Services."""
        stored = self._store.get(Key(ADDRESSES, "", address))
        if stored is None or stored.labels.get(MANAGED_BY) == ALLOCATOR:
            return None
        parent = (stored.obj.get("spec") or {}).get("parentRef") or {}
        return f"{parent.get('namespace') or ''}/{parent.get('name') or ''}"

    # -- node ports -----------------------------------------------------------------------------------------------

    def _assign_ports(self, attempt: Attempt, spec: Obj, before: Obj, owner: str) -> None:
        if spec.get("type") == "LoadBalancer" and spec.get("allocateLoadBalancerNodePorts") is False:
            return
        kept = {(p.get("protocol"), p.get("port")): p.get("nodePort") for p in before.get("ports") or ()}
        used: set[int] = set()
        asked: set[tuple[object, int]] = set()
        ports: list[Obj] = spec.get("ports") or []
        for index, port in enumerate(ports):
            if not port.get("nodePort"):
                before_port = kept.get((port.get("protocol"), port.get("port")))
                port["nodePort"] = before_port or self._free_port(attempt, used)
            elif (port.get("protocol"), port["nodePort"]) in asked or self._ports.get(port["nodePort"], owner) != owner:
                raise _port_refused(attempt, index, port["nodePort"], "provided port is already allocated")
            elif port["nodePort"] not in NODE_PORTS and not attempt.dry_run:
                # A dry run does not allocate ports (dry-run allocator).
                raise _port_refused(
                    attempt,
                    index,
                    port["nodePort"],
                    "provided port is not in the valid range. The range of valid "
                    f"ports is {NODE_PORTS.start}-{NODE_PORTS.stop - 1}",
                )
            used.add(port["nodePort"])
            asked.add((port.get("protocol"), port["nodePort"]))
        if spec.get("externalTrafficPolicy") == "Local" and spec.get("type") == "LoadBalancer":
            kept_check = before.get("healthCheckNodePort")
            spec["healthCheckNodePort"] = (
                spec.get("healthCheckNodePort") or kept_check or self._free_port(attempt, used)
            )

    def _free_port(self, attempt: Attempt, used: set[int]) -> int:
        start = attempt.entropy.randrange(len(NODE_PORTS))
        for step in range(len(NODE_PORTS)):
            port = NODE_PORTS[(start + step) % len(NODE_PORTS)]
            if port not in self._ports and port not in used:
                return port
        raise ApiError("failed to allocate a nodePort: range is full", code=500)

    # -- following the store --------------------------------------------------------------------------------------

    def _on_event(self, event: Event) -> None:
        if event.stored.key.resource != SERVICES:
            return
        if event.previous is not None:
            self._forget(event.previous)
        if event.type is not EventType.DELETED:
            self._learn(event.stored)

    def _learn(self, stored: Stored) -> None:
        owner = f"{stored.key.namespace}/{stored.key.name}"
        spec = stored.obj.get("spec") or {}
        for address in spec.get("clusterIPs") or ():
            if address != "None":
                self._addresses[address] = owner
        for port in _ports_of(spec):
            self._ports[port] = owner

    def _forget(self, stored: Stored) -> None:
        spec = stored.obj.get("spec") or {}
        for address in spec.get("clusterIPs") or ():
            self._addresses.pop(address, None)
        for port in _ports_of(spec):
            self._ports.pop(port, None)


def _refuse(attempt: Attempt, causes: list[FieldCause]) -> None:
    if causes:
        raise invalid("Service", attempt.name, causes)


def _family_causes(spec: Obj) -> list[FieldCause]:
    """Return the errors of IP families; this cluster has IPv4 only."""
    listed, families, policy = spec.get("clusterIPs") or [], spec.get("ipFamilies") or [], spec.get("ipFamilyPolicy")
    if listed == ["None"] and not spec.get("selector"):
        return []  # Headless without selector: its owner adds endpoints of any family.
    many = "must be 'RequireDualStack' or 'PreferDualStack' when multiple"
    where = "spec.ipFamilyPolicy"
    if policy in (None, SINGLE) and len(listed) > 1:
        return [kinds_invalid(where, SINGLE, f"{many} cluster IPs are specified")]
    if policy in (None, SINGLE) and len(families) > 1:
        return [kinds_invalid(where, SINGLE, f"{many} IP families are specified")]
    if policy == "RequireDualStack":
        return [kinds_invalid(where, policy, "this cluster is not configured for dual-stack services")]
    causes = [
        kinds_invalid(f"spec.clusterIPs[{index}]", listed, "IPv6 is not configured on this cluster")
        for index, address in enumerate(listed)
        if ":" in str(address)
    ]
    return causes + [
        kinds_invalid(f"spec.ipFamilies[{index}]", family, "not configured on this cluster")
        for index, family in enumerate(families)
        if family != "IPv4" and not causes
    ]


def _ports_of(spec: Obj) -> list[int]:
    ports = [port["nodePort"] for port in spec.get("ports") or () if port.get("nodePort")]
    return [*ports, spec["healthCheckNodePort"]] if spec.get("healthCheckNodePort") else ports


def _drop_addresses(spec: Obj, before: Obj) -> None:
    """Remove an ExternalName's addresses that were copied from the old object (``patchAllocatedValues``)."""
    for field in ("clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy", "internalTrafficPolicy"):
        if field in spec and spec.get(field) == before.get(field):
            del spec[field]


def _drop_ports(spec: Obj, before: Obj) -> None:
    if before.get("type") not in ("NodePort", "LoadBalancer"):
        return
    old = {port.get("nodePort") for port in before.get("ports") or ()}
    for port in spec.get("ports") or ():
        if port.get("nodePort") in old:
            port.pop("nodePort", None)


def _refused(attempt: Attempt, address: str, why: str) -> ApiError:
    cause = FieldCause("FieldValueInvalid", f'Invalid value: ["{address}"]: {why}', "spec.clusterIPs")
    return invalid("Service", attempt.name, [cause])


def _port_refused(attempt: Attempt, index: int, port: int, why: str) -> ApiError:
    field = f"spec.ports[{index}].nodePort"
    return invalid("Service", attempt.name, [FieldCause("FieldValueInvalid", f"Invalid value: {port}: {why}", field)])
