"""Endpoints and EndpointSlices: addresses behind a Service.

Called by the API through :func:`syncline.cluster.validation.strategy.strategy_for`. Source: Kubernetes
``validateEndpointSubsets`` and ``pkg/apis/discovery/validation``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from syncline.cluster.validation.engine import names
from syncline.cluster.validation.engine.addresses import ip_causes, ip_warnings, legacy_ip_causes, sloppy_ip
from syncline.cluster.validation.engine.base import Context, Kind
from syncline.cluster.validation.engine.causes import duplicate, invalid, required, too_many, unsupported
from syncline.cluster.validation.engine.fields import each, immutable, one_of, port_number
from syncline.cluster.validation.engine.metadata import label_causes, metadata_update_causes
from syncline.cluster.validation.networking.serviceips import endpoint_ip_causes
from syncline.cluster.validation.pods.containers import PROTOCOLS
from syncline.kube.errors import FieldCause
from syncline.kube.objects import Obj, dig

__all__ = ["EndpointSliceKind", "EndpointsKind"]

ADDRESS_TYPES = ("FQDN", "IPv4", "IPv6")
MOST_ENDPOINTS, MOST_ADDRESSES, MOST_PORTS, MOST_HINTS = 1000, 100, 20_000, 8

MANAGED_BY = "endpointslice.kubernetes.io/managed-by"
OUR_MANAGERS = ("endpointslice-controller.k8s.io", "endpointslicemirroring-controller.k8s.io")


class EndpointsKind(Kind):
    """The older form, one object a Service."""

    def content_causes(self, obj: Obj) -> list[FieldCause]:
        causes: list[FieldCause] = []
        for where, subset in each(obj, "subsets", ""):
            path = where.removeprefix(".")
            if not subset.get("addresses") and not subset.get("notReadyAddresses"):
                causes.append(required(path, "must specify `addresses` or `notReadyAddresses`"))
            for key in ("addresses", "notReadyAddresses"):
                for at, address in each(subset, key, path):
                    causes += _address_causes(address, at)
            several = len(subset.get("ports") or ()) > 1
            for at, port in each(subset, "ports", path):
                causes += _port_causes(port, at, several=several)
        return causes

    def warnings(self, new: Obj, old: Obj | None) -> list[str]:
        return [
            warning
            for where, subset in each(new, "subsets", "")
            for key in ("addresses", "notReadyAddresses")
            for at, address in each(subset, key, where.removeprefix("."))
            for warning in ip_warnings(str(address.get("ip") or ""), f"{at}.ip")
        ]


def _address_causes(address: Obj, at: str) -> list[FieldCause]:
    ip = str(address.get("ip") or "")
    causes = legacy_ip_causes(ip, f"{at}.ip") + endpoint_ip_causes(ip, f"{at}.ip")
    return causes + _holder_causes(address, at)


def _holder_causes(holder: Obj, at: str) -> list[FieldCause]:
    """Host name and node of an endpoint."""
    causes: list[FieldCause] = []
    checks: tuple[tuple[str, Callable[[str], list[str]]], ...] = (
        ("hostname", names.dns_label),
        ("nodeName", names.dns_subdomain),
    )
    for key, check in checks:
        if holder.get(key):
            causes += [invalid(f"{at}.{key}", holder[key], problem) for problem in check(str(holder[key]))]
    return causes


def _port_causes(port: Obj, at: str, *, several: bool) -> list[FieldCause]:
    name = port.get("name")
    causes = [invalid(f"{at}.name", name, problem) for problem in names.dns_label(name)] if name else []
    if several and not name:
        causes.append(required(f"{at}.name"))
    causes += port_number(port.get("port", 0), f"{at}.port") + one_of(port, at, "protocol", PROTOCOLS)
    return causes + _protocol_causes(port, at)


def _protocol_causes(port: Obj, at: str) -> list[FieldCause]:
    name = port.get("appProtocol")
    return [invalid(f"{at}.appProtocol", name, one) for one in names.qualified_name(name)] if name is not None else []


class EndpointSliceKind(Kind):
    has_generation = True
    generation_follows: ClassVar[tuple[str, ...]] = ("endpoints", "ports", "addressType")

    def prepare_create(self, obj: Obj, ctx: Context) -> None:
        super().prepare_create(obj, ctx)
        _drop_topology(obj)

    def prepare_update(self, new: Obj, old: Obj, ctx: Context, subresource: str) -> None:
        super().prepare_update(new, old, ctx, subresource)
        if new.get("endpoints") != old.get("endpoints"):
            _drop_topology(new)

    def changed(self, new: Obj, old: Obj) -> bool:
        """Labels count too: they say whose slice it is."""
        labels = [dig(obj, "metadata", "labels") or {} for obj in (new, old)]
        return super().changed(new, old) or labels[0] != labels[1]

    def content_causes(self, obj: Obj) -> list[FieldCause]:
        kind = str(obj.get("addressType") or "")
        causes: list[FieldCause] = []
        if not kind:
            causes.append(required("addressType"))
        elif kind not in ADDRESS_TYPES:
            causes.append(unsupported("addressType", kind, ADDRESS_TYPES))
        return causes + _slice_port_causes(obj) + _endpoint_list_causes(obj, kind)

    def validate_update(self, new: Obj, old: Obj, subresource: str) -> list[FieldCause]:
        """Endpoints that did not change are not judged again."""
        causes = super().validate_update(new, old, subresource)
        same = new.get("endpoints") == old.get("endpoints")
        return [cause for cause in causes if not (same and cause.field.startswith("endpoints"))]

    def update_causes(self, new: Obj, old: Obj) -> list[FieldCause]:
        return metadata_update_causes(new, old) + immutable(new, old, "", "addressType")

    def warnings(self, new: Obj, old: Obj | None) -> list[str]:
        warnings = []
        if old is None and new.get("addressType") == "FQDN":
            warnings.append("spec.addressType: FQDN endpoints are deprecated")
        if (dig(new, "metadata", "labels") or {}).get(MANAGED_BY) in OUR_MANAGERS:
            return warnings
        for where, endpoint in each(new, "endpoints", ""):
            for index, address in enumerate(endpoint.get("addresses") or ()):
                warnings += ip_warnings(str(address), f"{where.removeprefix('.')}.addresses[{index}]")
        return warnings


def _drop_topology(obj: Obj) -> None:
    """The field of the beta version is not written through this one (dropTopologyOnV1)."""
    for _, endpoint in each(obj, "endpoints", ""):
        endpoint.pop("deprecatedTopology", None)


def _slice_port_causes(obj: Obj) -> list[FieldCause]:
    listed = obj.get("ports") or []
    if len(listed) > MOST_PORTS:
        return [too_many("ports", len(listed), MOST_PORTS)]
    causes: list[FieldCause] = []
    seen: set[str] = set()
    for where, port in each(obj, "ports", ""):
        path, name = where.removeprefix("."), str(port.get("name") or "")
        if name:
            causes += [invalid(f"{path}.name", name, one) for one in names.dns_label(name)]
        if name in seen:
            causes.append(duplicate(f"{path}.name", name))
        seen.add(name)
        causes += one_of(port, path, "protocol", PROTOCOLS) + _protocol_causes(port, path)
    return causes


def _endpoint_list_causes(obj: Obj, kind: str) -> list[FieldCause]:
    listed = obj.get("endpoints") or []
    if len(listed) > MOST_ENDPOINTS:
        return [too_many("endpoints", len(listed), MOST_ENDPOINTS)]
    causes: list[FieldCause] = []
    for where, endpoint in each(obj, "endpoints", ""):
        path = where.removeprefix(".")
        addresses = endpoint.get("addresses") or []
        if not addresses:
            causes.append(required(f"{path}.addresses", "must contain at least 1 address"))
        if len(addresses) > MOST_ADDRESSES:
            causes.append(too_many(f"{path}.addresses", len(addresses), MOST_ADDRESSES))
        for index, address in enumerate(addresses):
            causes += _slice_address_causes(str(address), kind, f"{path}.addresses", index)
        causes += _holder_causes(endpoint, path)
        causes += label_causes(endpoint.get("deprecatedTopology"), f"{path}.deprecatedTopology")
        causes += _hint_causes(endpoint.get("hints") or {}, f"{path}.hints")
    return causes


def _slice_address_causes(address: str, kind: str, path: str, index: int) -> list[FieldCause]:
    where = f"{path}[{index}]"
    if kind == "FQDN":
        return [invalid(where, address, problem) for problem in names.fully_qualified(address)]
    if kind not in ADDRESS_TYPES:
        return []
    causes = legacy_ip_causes(address, where) if kind == "IPv4" else ip_causes(address, where)
    if causes:
        return causes
    parsed = sloppy_ip(address)
    if parsed is not None and f"IPv{parsed.version}" != kind:
        causes.append(invalid(path, address, f"must be an {kind} address"))
    return causes + endpoint_ip_causes(address, where)


def _hint_causes(hints: Obj, path: str) -> list[FieldCause]:
    causes: list[FieldCause] = []
    checks: tuple[tuple[str, Callable[[str], list[str]]], ...] = (
        ("forZones", names.label_value),
        ("forNodes", names.dns_subdomain),
    )
    for key, check in checks:
        listed = hints.get(key) or []
        if len(listed) > MOST_HINTS:
            return [*causes, too_many(f"{path}.{key}", len(listed), MOST_HINTS)]
        seen: set[str] = set()
        for at, hint in each(hints, key, path):
            name = str(hint.get("name") or "")
            if name in seen:
                causes.append(duplicate(f"{at}.name", name))
            seen.add(name)
            causes += [invalid(f"{at}.name", name, problem) for problem in check(name)]
    return causes
