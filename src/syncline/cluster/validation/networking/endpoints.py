"""Endpoints and EndpointSlices: addresses behind a Service.

Called by the API through :func:`syncline.cluster.validation.strategy.strategy_for`. Source: Kubernetes
``validateEndpointSubsets`` and ``pkg/apis/discovery/validation``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import ClassVar

from syncline.cluster.validation.engine import names
from syncline.cluster.validation.engine import rules as r
from syncline.cluster.validation.engine.addresses import ip_causes, ip_warnings, legacy_ip_causes, sloppy_ip
from syncline.cluster.validation.engine.base import Context, Kind
from syncline.cluster.validation.engine.causes import invalid, too_many
from syncline.cluster.validation.engine.fields import each
from syncline.cluster.validation.engine.metadata import label_causes
from syncline.cluster.validation.networking.serviceips import endpoint_ip_causes
from syncline.cluster.validation.pods.containers import PROTOCOLS
from syncline.kube.errors import FieldCause
from syncline.kube.objects import Obj, dig

ADDRESS_TYPES = ("FQDN", "IPv4", "IPv6")
MOST_ENDPOINTS, MOST_ADDRESSES, MOST_PORTS, MOST_HINTS = 1000, 100, 20_000, 8

MANAGED_BY = "endpointslice.kubernetes.io/managed-by"
OUR_MANAGERS = ("endpointslice-controller.k8s.io", "endpointslicemirroring-controller.k8s.io")
_HOLDER = r.every(r.filled("hostname", r.label), r.filled("nodeName", r.subdomain))
_PROTOCOLS = r.every(r.need("protocol", r.choice(*PROTOCOLS)), r.field("appProtocol", r.qualified))
_ADDRESS = r.every(r.text("ip", legacy_ip_causes, endpoint_ip_causes), _HOLDER)
_PORT = r.every(r.number("port", r.port), _PROTOCOLS)
_SUBSET = r.every(
    r.demand(
        lambda subset: not subset.get("addresses") and not subset.get("notReadyAddresses"),
        "",
        "must specify `addresses` or `notReadyAddresses`",
    ),
    r.each("addresses", _ADDRESS),
    r.each("notReadyAddresses", _ADDRESS),
    r.when(
        lambda subset: len(subset.get("ports") or ()) > 1,
        r.each("ports", r.need("name", r.label), _PORT),
        otherwise=r.each("ports", r.filled("name", r.label), _PORT),
    ),
)


class EndpointsKind(Kind):
    """Endpoints, the older kind, one object per Service."""

    rules = r.each("subsets", _SUBSET)

    def warnings(self, new: Obj, old: Obj | None) -> list[str]:
        return [
            warning
            for where, subset in each(new, "subsets", "")
            for key in ("addresses", "notReadyAddresses")
            for at, address in each(subset, key, where.removeprefix("."))
            for warning in ip_warnings(str(address.get("ip") or ""), f"{at}.ip")
        ]


class EndpointSliceKind(Kind):
    has_generation = True
    generation_follows: ClassVar[tuple[str, ...]] = ("endpoints", "ports", "addressType")
    rules = r.every(
        r.need("addressType", r.choice(*ADDRESS_TYPES)),
        r.when(
            lambda obj: len(obj.get("ports") or ()) > MOST_PORTS,
            r.field("ports", r.most(MOST_PORTS)),
            otherwise=r.each("ports", r.filled("name", r.label), r.unique("name"), _PROTOCOLS),
        ),
        lambda obj, path: _endpoint_list_causes(obj, str(obj.get("addressType") or "")),
    )
    fixed = ("addressType",)

    def prepare_create(self, obj: Obj, ctx: Context) -> None:
        super().prepare_create(obj, ctx)
        _drop_topology(obj)

    def prepare_update(self, new: Obj, old: Obj, ctx: Context, subresource: str) -> None:
        super().prepare_update(new, old, ctx, subresource)
        if new.get("endpoints") != old.get("endpoints"):
            _drop_topology(new)

    def changed(self, new: Obj, old: Obj) -> bool:
        """Return whether the generation changes; labels count, since they name the Service."""
        labels = [dig(obj, "metadata", "labels") or {} for obj in (new, old)]
        return super().changed(new, old) or labels[0] != labels[1]

    def validate_update(self, new: Obj, old: Obj, subresource: str) -> list[FieldCause]:
        """Skip validation of unchanged Endpoints."""
        causes = super().validate_update(new, old, subresource)
        same = new.get("endpoints") == old.get("endpoints")
        return [cause for cause in causes if not (same and cause.field.startswith("endpoints"))]

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
    """Drop the field of the beta version, which v1 does not write (dropTopologyOnV1)."""
    for endpoint in r.list_of(obj, "endpoints"):
        endpoint.pop("deprecatedTopology", None)


def _endpoint_list_causes(obj: Obj, kind: str) -> Iterable[FieldCause]:
    listed = obj.get("endpoints") or []
    if len(listed) > MOST_ENDPOINTS:
        return [too_many("endpoints", len(listed), MOST_ENDPOINTS)]
    return r.each(
        "endpoints",
        r.need("addresses", r.most(MOST_ADDRESSES), why="must contain at least 1 address"),
        lambda endpoint, path: _slice_address_causes(endpoint, kind, f"{path}.addresses"),
        _HOLDER,
        r.field("deprecatedTopology", label_causes),
        r.part("hints", _HINTS),
    )(obj, "")


def _slice_address_causes(endpoint: Obj, kind: str, path: str) -> Iterator[FieldCause]:
    for index, address in enumerate(map(str, endpoint.get("addresses") or ())):
        where = f"{path}[{index}]"
        if kind not in ADDRESS_TYPES:
            continue
        if kind == "FQDN":
            yield from r.named(names.fully_qualified)(address, where)
        elif causes := legacy_ip_causes(address, where) if kind == "IPv4" else ip_causes(address, where):
            yield from causes
        else:
            parsed = sloppy_ip(address)
            if parsed is not None and f"IPv{parsed.version}" != kind:
                yield invalid(path, address, f"must be an {kind} address")
            yield from endpoint_ip_causes(address, where)


def _hints(key: str, name: r.Rule) -> r.Rule:
    """Validate the hints for zones or nodes."""
    return r.each(key, r.unique("name"), r.text("name", name))


_NODES = r.when(
    lambda hints: len(hints.get("forNodes") or ()) > MOST_HINTS,
    r.field("forNodes", r.most(MOST_HINTS)),
    otherwise=_hints("forNodes", r.subdomain),
)
_HINTS = r.when(
    lambda hints: len(hints.get("forZones") or ()) > MOST_HINTS,
    r.field("forZones", r.most(MOST_HINTS)),
    otherwise=r.every(_hints("forZones", r.named(names.label_value)), _NODES),
)
