"""Services: types, ports, stable addresses.

The API calls it through :func:`syncline.cluster.validation.strategy.strategy_for`. Admission allocates cluster IPs and
node ports; here, an update that omits them keeps them, and a change of type drops what no longer applies. Source:
Kubernetes ``ValidateService`` and ``pkg/registry/core/service/strategy.go``.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from syncline.cluster.validation.engine import names
from syncline.cluster.validation.engine import rules as r
from syncline.cluster.validation.engine.addresses import legacy_cidr_causes, legacy_ip_causes
from syncline.cluster.validation.engine.base import Context, Kind, spec_of
from syncline.cluster.validation.engine.causes import duplicate, forbidden, invalid, required
from syncline.cluster.validation.engine.fields import each
from syncline.cluster.validation.engine.metadata import label_causes, metadata_update_causes
from syncline.cluster.validation.networking.serviceips import (
    cluster_ip_causes,
    endpoint_ip_causes,
    keep_addresses,
    service_warnings,
)
from syncline.cluster.validation.pods.containers import PROTOCOLS
from syncline.cluster.validation.pods.probes import port_or_name_causes
from syncline.kube.errors import FieldCause
from syncline.kube.objects import Obj

TYPES = ("ClusterIP", "ExternalName", "LoadBalancer", "NodePort")
OPEN_TYPES = ("NodePort", "LoadBalancer")
MAX_AFFINITY_S = 86_400
_INTERNAL_PORT = {"Name": "", "Protocol": "", "AppProtocol": None, "Port": 0, "TargetPort": 0, "NodePort": 0}
"""Kubernetes' dump of a duplicate port."""


class ServiceKind(Kind):
    has_status = True
    name_check = names.dns_label
    empty_status: ClassVar[Obj | None] = {"loadBalancer": {}}

    def prepare_create(self, obj: Obj, ctx: Context) -> None:
        super().prepare_create(obj, ctx)
        spec = spec_of(obj)
        if spec.get("clusterIP") and not spec.get("clusterIPs"):
            spec["clusterIPs"] = [spec["clusterIP"]]

    def prepare_update(self, new: Obj, old: Obj, ctx: Context, subresource: str) -> None:
        super().prepare_update(new, old, ctx, subresource)
        if not subresource:
            fresh, before = spec_of(new), spec_of(old)
            _keep_allocated(fresh, before)
            _drop_what_the_type_lost(fresh, before)
            _pair_cluster_ips(fresh)

    def content_causes(self, obj: Obj) -> list[FieldCause]:
        return list(_SPEC(spec_of(obj), "spec"))

    def update_causes(self, new: Obj, old: Obj) -> list[FieldCause]:
        causes = metadata_update_causes(new, old)
        fresh, before = spec_of(new), spec_of(old)
        if "ExternalName" in (fresh.get("type"), before.get("type")):
            return causes
        had, has = before.get("clusterIPs") or [], fresh.get("clusterIPs") or []
        if had and (not has or has[0] != had[0]):
            causes.append(invalid("spec.clusterIPs[0]", has, "may not change once set"))
        if "None" not in (before.get("clusterIP"), fresh.get("clusterIP")):
            families, wanted = before.get("ipFamilies") or [], fresh.get("ipFamilies") or []
            if families and wanted and families[0] != wanted[0]:
                causes.append(invalid("spec.ipFamilies[0]", wanted, "may not change once set"))
        if fresh.get("type") == before.get("type") == "LoadBalancer":
            if fresh.get("loadBalancerClass") != before.get("loadBalancerClass"):
                why = "may not change once set"
                causes.append(invalid("spec.loadBalancerClass", fresh.get("loadBalancerClass"), why))
            moved = fresh.get("healthCheckNodePort") != before.get("healthCheckNodePort")
            if moved and _checks_health(fresh) and _checks_health(before):
                causes.append(forbidden("spec.healthCheckNodePort", "field is immutable"))
        return causes

    def status_causes(self, new: Obj, old: Obj) -> list[FieldCause]:
        balancer = (new.get("status") or {}).get("loadBalancer") or {}
        if balancer.get("ingress") and spec_of(new).get("type") != "LoadBalancer":
            why = "may only be used when `spec.type` is 'LoadBalancer'"
            return [forbidden("status.loadBalancer.ingress", why)]
        return list(_INGRESS(balancer, "status.loadBalancer"))

    def warnings(self, new: Obj, old: Obj | None) -> list[str]:
        return service_warnings(new)


def _pair_cluster_ips(spec: Obj) -> None:
    """Set ``clusterIP`` to the first of ``clusterIPs``, or the reverse."""
    address, listed = spec.get("clusterIP"), spec.get("clusterIPs")
    if address and not listed:
        spec["clusterIPs"] = [address]
    elif listed and not address:
        spec["clusterIP"] = listed[0]


def _keep_allocated(fresh: Obj, before: Obj) -> None:
    """Keep allocated values that an update omits (patchAllocatedValues)."""
    if "ExternalName" in (fresh.get("type"), before.get("type")):
        return
    keep_addresses(fresh, before)
    for key in ("ipFamilies", "ipFamilyPolicy"):
        if before.get(key) and not fresh.get(key):
            fresh[key] = before[key]
    if fresh.get("type") in OPEN_TYPES and before.get("type") in OPEN_TYPES:
        had = {(port.get("protocol"), port.get("port")): port.get("nodePort") for _, port in each(before, "ports", "")}
        for _, port in each(fresh, "ports", ""):
            known = had.get((port.get("protocol"), port.get("port")))
            if known and not port.get("nodePort"):
                port["nodePort"] = known
    if fresh.get("healthCheckNodePort") is None and before.get("healthCheckNodePort"):
        fresh["healthCheckNodePort"] = before["healthCheckNodePort"]


def _drop_what_the_type_lost(fresh: Obj, before: Obj) -> None:
    """Drop fields that only the old type needed, unless the user changed them (dropTypeDependentFields)."""
    kind, was = fresh.get("type"), before.get("type")
    if kind == was:
        return
    if was in OPEN_TYPES and kind not in OPEN_TYPES:
        had = [port.get("nodePort") for _, port in each(before, "ports", "")]
        for _, port in each(fresh, "ports", ""):
            if port.get("nodePort") in had:
                port.pop("nodePort", None)
        _drop_same(fresh, before, "externalTrafficPolicy", "healthCheckNodePort")
    if was == "LoadBalancer":
        _drop_same(fresh, before, "allocateLoadBalancerNodePorts", "loadBalancerClass")
    if was == "ExternalName":
        _drop_same(fresh, before, "externalName")
    if kind == "ExternalName":
        keys = ("clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy", "internalTrafficPolicy")
        _drop_same(fresh, before, *keys)


def _drop_same(fresh: Obj, before: Obj, *keys: str) -> None:
    for key in keys:
        if fresh.get(key) == before.get(key):
            fresh.pop(key, None)


def _headless(spec: Obj) -> bool:
    return spec.get("clusterIP") == "None"


def _type_causes(spec: Obj, path: str) -> Iterator[FieldCause]:
    kind = spec.get("type")
    if kind in OPEN_TYPES and _headless(spec):
        yield invalid(f"{path}.clusterIPs[0]", "None", f"may not be set to 'None' for {kind} services")
    if kind != "ExternalName":
        return
    why = "may not be set for ExternalName services"
    yield from (forbidden(f"{path}.{key}", why) for key in ("ipFamilies", "ipFamilyPolicy") if spec.get(key))
    if spec.get("clusterIP") or spec.get("clusterIPs"):
        yield forbidden(f"{path}.clusterIPs", why)
    name = str(spec.get("externalName") or "").removesuffix(".")
    yield from r.need("externalName", r.subdomain)({"externalName": name}, path)


_PORT = r.every(
    r.number("port", r.port),
    r.need("protocol", r.choice(*PROTOCOLS)),
    r.always("targetPort", port_or_name_causes),
    r.field("appProtocol", r.qualified),
)


def _port_list_causes(spec: Obj, path: str) -> Iterator[FieldCause]:
    seen_names: set[str] = set()
    seen_ports: set[tuple[object, object]] = set()
    seen_node_ports: set[tuple[object, object]] = set()
    several = len(spec.get("ports") or ()) > 1
    for where, port in each(spec, "ports", path):
        name = port.get("name") or ""
        if several and not name:
            yield required(f"{where}.name")
        elif name:
            yield from r.label(name, f"{where}.name")
            if name in seen_names:
                yield duplicate(f"{where}.name", name)
            seen_names.add(name)
        yield from _PORT(port, where)
        if spec.get("type") == "ClusterIP" and port.get("nodePort"):
            yield forbidden(f"{where}.nodePort", "may not be used when `type` is 'ClusterIP'")
        node_port = (port.get("protocol"), port.get("nodePort"))
        if port.get("nodePort") and node_port in seen_node_ports:
            yield duplicate(f"{where}.nodePort", port["nodePort"])
        seen_node_ports.add(node_port)
        key = (port.get("protocol"), port.get("port"))
        if key in seen_ports:
            yield duplicate(where, _INTERNAL_PORT | {"Protocol": key[0], "Port": key[1]})
        seen_ports.add(key)


def _open(spec: Obj) -> bool:
    """Return whether the Service is reachable from outside the cluster (``ExternallyAccessible``)."""
    return spec.get("type") in OPEN_TYPES or (spec.get("type") == "ClusterIP" and bool(spec.get("externalIPs")))


def _checks_health(spec: Obj) -> bool:
    return spec.get("type") == "LoadBalancer" and spec.get("externalTrafficPolicy") == "Local"


def _policy_causes(spec: Obj, path: str) -> Iterator[FieldCause]:
    external, at = spec.get("externalTrafficPolicy"), f"{path}.externalTrafficPolicy"
    if external and not _open(spec):
        yield invalid(at, external, "may only be set for externally-accessible services")
    elif _open(spec) and not external:
        yield required(at)
    elif external:
        yield from r.choice("Cluster", "Local")(external, at)
    yield from r.filled("internalTrafficPolicy", r.choice("Cluster", "Local"))(spec, path)
    port, at = spec.get("healthCheckNodePort"), f"{path}.healthCheckNodePort"
    if port and not _checks_health(spec):
        why = "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'"
        yield invalid(at, port, why)
    elif port:
        yield from r.port(port, at)


def _not_balanced(key: str, *, shown: str = "") -> r.Rule:
    """Refuse fields that only load balancers have."""
    return r.forbid(
        lambda spec: spec.get("type") != "LoadBalancer" and spec.get(key) not in (None, []),
        shown or key,
        "may only be used when `type` is 'LoadBalancer'",
    )


def _external_ip(address: str, path: str) -> list[FieldCause]:
    return legacy_ip_causes(address, path) or endpoint_ip_causes(address, path)


_SPEC = r.every(
    r.demand(
        lambda spec: not spec.get("ports") and not _headless(spec) and spec.get("type") != "ExternalName", "ports"
    ),
    r.need("type", r.choice(*TYPES)),
    _type_causes,
    _port_list_causes,
    r.field("selector", label_causes),
    r.need("sessionAffinity", r.choice("ClientIP", "None")),
    lambda spec, path: cluster_ip_causes(spec),
    r.part(
        "sessionAffinityConfig",
        r.part(
            "clientIP",
            r.field(
                "timeoutSeconds",
                r.within(1, MAX_AFFINITY_S, f"must be greater than 0 and less than {MAX_AFFINITY_S}"),
            ),
        ),
    ),
    _policy_causes,
    r.field("trafficDistribution", r.choice("PreferClose", "PreferSameZone", "PreferSameNode")),
    _not_balanced("allocateLoadBalancerNodePorts"),
    _not_balanced("loadBalancerClass"),
    r.when(r.where(type="LoadBalancer"), r.field("loadBalancerClass", r.qualified)),
    r.items("externalIPs", _external_ip),
    # Kubernetes capitalizes this field in the path.
    _not_balanced("loadBalancerSourceRanges", shown="LoadBalancerSourceRanges"),
    r.items(
        "loadBalancerSourceRanges",
        lambda cidr, path: legacy_cidr_causes(str(cidr).strip(), path),
        shown="LoadBalancerSourceRanges",
    ),
)
_INGRESS = r.each(
    "ingress",
    r.filled("ip", legacy_ip_causes),
    r.demand(lambda one: one.get("ip") and one.get("ipMode") is None, "ipMode", "must be specified when `ip` is set"),
    r.when(
        r.given("ip"),
        r.field("ipMode", r.choice("Proxy", "VIP")),
        otherwise=r.forbid(r.has("ipMode"), "ipMode", "may not be specified when `ip` is not set"),
    ),
    r.filled(
        "hostname",
        r.subdomain,
        r.must(lambda host: not names.is_ip(host), "must be a DNS name, not an IP address"),
    ),
)
