"""Services: types, ports, addresses that stay.

Called by the API through :func:`syncline.cluster.validation.strategy.strategy_for`. Giving out cluster IPs and node
ports is admission's work; here a PUT that leaves them out keeps them, and a change of type drops what no longer
applies. Source: Kubernetes ``ValidateService`` and ``pkg/registry/core/service/strategy.go``.
"""

from __future__ import annotations

from typing import ClassVar

from syncline.cluster.validation.engine import names
from syncline.cluster.validation.engine.addresses import legacy_cidr_causes, legacy_ip_causes
from syncline.cluster.validation.engine.base import Context, Kind, spec_of
from syncline.cluster.validation.engine.causes import duplicate, forbidden, invalid, required, unsupported
from syncline.cluster.validation.engine.fields import each, one_of, port_number
from syncline.cluster.validation.engine.metadata import NameCheck, label_causes, metadata_update_causes
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

__all__ = ["ServiceKind"]

TYPES = ("ClusterIP", "ExternalName", "LoadBalancer", "NodePort")
OPEN_TYPES = ("NodePort", "LoadBalancer")
MAX_AFFINITY_S = 86_400
DISTRIBUTIONS = ("PreferClose", "PreferSameZone", "PreferSameNode")
_INTERNAL_PORT = {"Name": "", "Protocol": "", "AppProtocol": None, "Port": 0, "TargetPort": 0, "NodePort": 0}
"""How Kubernetes dumps a port that stands there twice."""


class ServiceKind(Kind):
    has_status = True
    name_check: ClassVar[NameCheck] = staticmethod(names.dns_label)
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
        spec = spec_of(obj)
        headless = spec.get("clusterIP") == "None"
        causes: list[FieldCause] = []
        if not spec.get("ports") and not headless and spec.get("type") != "ExternalName":
            causes.append(required("spec.ports"))
        causes += _type_causes(spec, headless=headless)
        causes += _port_list_causes(spec)
        causes += label_causes(spec.get("selector"), "spec.selector")
        causes += one_of(spec, "spec", "sessionAffinity", ("ClientIP", "None"))
        causes += cluster_ip_causes(spec)
        timeout = ((spec.get("sessionAffinityConfig") or {}).get("clientIP") or {}).get("timeoutSeconds")
        if isinstance(timeout, int) and not 0 < timeout <= MAX_AFFINITY_S:
            where = "spec.sessionAffinityConfig.clientIP.timeoutSeconds"
            causes.append(invalid(where, timeout, f"must be greater than 0 and less than {MAX_AFFINITY_S}"))
        causes += _policy_causes(spec) + _balancer_causes(spec)
        return causes + _address_causes(spec)

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
        causes: list[FieldCause] = []
        balancer = (new.get("status") or {}).get("loadBalancer") or {}
        if balancer.get("ingress") and spec_of(new).get("type") != "LoadBalancer":
            why = "may only be used when `spec.type` is 'LoadBalancer'"
            return [forbidden("status.loadBalancer.ingress", why)]
        for where, ingress in each(balancer, "ingress", "status.loadBalancer"):
            ip, host = str(ingress.get("ip") or ""), str(ingress.get("hostname") or "")
            causes += legacy_ip_causes(ip, f"{where}.ip") if ip else []
            mode = ingress.get("ipMode")
            if mode is None and ip:
                causes.append(required(f"{where}.ipMode", "must be specified when `ip` is set"))
            elif mode is not None and not ip:
                causes.append(forbidden(f"{where}.ipMode", "may not be specified when `ip` is not set"))
            elif mode is not None and mode not in ("Proxy", "VIP"):
                causes.append(unsupported(f"{where}.ipMode", mode, ("Proxy", "VIP")))
            if host:
                causes += [invalid(f"{where}.hostname", host, problem) for problem in names.dns_subdomain(host)]
                if names.is_ip(host):
                    causes.append(invalid(f"{where}.hostname", host, "must be a DNS name, not an IP address"))
        return causes

    def warnings(self, new: Obj, old: Obj | None) -> list[str]:
        return service_warnings(new)


def _pair_cluster_ips(spec: Obj) -> None:
    """``clusterIP`` is the first of ``clusterIPs``."""
    address, listed = spec.get("clusterIP"), spec.get("clusterIPs")
    if address and not listed:
        spec["clusterIPs"] = [address]
    elif listed and not address:
        spec["clusterIP"] = listed[0]


def _keep_allocated(fresh: Obj, before: Obj) -> None:
    """What the cluster gave is kept when a PUT does not mention it (patchAllocatedValues)."""
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
    """Fields that only the old type needed disappear, unless the user changed them (dropTypeDependentFields)."""
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


def _type_causes(spec: Obj, *, headless: bool) -> list[FieldCause]:
    causes = one_of(spec, "spec", "type", TYPES)
    match spec.get("type"):
        case "LoadBalancer" | "NodePort" as kind if headless:
            causes.append(invalid("spec.clusterIPs[0]", "None", f"may not be set to 'None' for {kind} services"))
        case "ExternalName":
            why = "may not be set for ExternalName services"
            causes += [forbidden(f"spec.{key}", why) for key in ("ipFamilies", "ipFamilyPolicy") if spec.get(key)]
            if spec.get("clusterIP") or spec.get("clusterIPs"):
                causes.append(forbidden("spec.clusterIPs", why))
            name = str(spec.get("externalName") or "").removesuffix(".")
            if not name:
                causes.append(required("spec.externalName"))
            else:
                causes += [invalid("spec.externalName", name, problem) for problem in names.dns_subdomain(name)]
        case _:
            pass
    return causes


def _port_list_causes(spec: Obj) -> list[FieldCause]:
    causes: list[FieldCause] = []
    seen_names: set[str] = set()
    seen_ports: set[tuple[object, object]] = set()
    seen_node_ports: set[tuple[object, object]] = set()
    several = len(spec.get("ports") or ()) > 1
    for where, port in each(spec, "ports", "spec"):
        name = port.get("name") or ""
        if several and not name:
            causes.append(required(f"{where}.name"))
        elif name:
            causes += [invalid(f"{where}.name", name, problem) for problem in names.dns_label(name)]
            if name in seen_names:
                causes.append(duplicate(f"{where}.name", name))
            seen_names.add(name)
        causes += port_number(port.get("port", 0), f"{where}.port")
        causes += one_of(port, where, "protocol", PROTOCOLS)
        causes += port_or_name_causes(port.get("targetPort"), f"{where}.targetPort")
        protocol = port.get("appProtocol")
        if protocol is not None:
            causes += [invalid(f"{where}.appProtocol", protocol, problem) for problem in names.qualified_name(protocol)]
        if spec.get("type") == "ClusterIP" and port.get("nodePort"):
            causes.append(forbidden(f"{where}.nodePort", "may not be used when `type` is 'ClusterIP'"))
        node_port = (port.get("protocol"), port.get("nodePort"))
        if port.get("nodePort") and node_port in seen_node_ports:
            causes.append(duplicate(f"{where}.nodePort", port["nodePort"]))
        seen_node_ports.add(node_port)
        key = (port.get("protocol"), port.get("port"))
        if key in seen_ports:
            causes.append(duplicate(where, _INTERNAL_PORT | {"Protocol": key[0], "Port": key[1]}))
        seen_ports.add(key)
    return causes


def _open(spec: Obj) -> bool:
    """Whether anybody outside the cluster reaches it (``ExternallyAccessible``)."""
    return spec.get("type") in OPEN_TYPES or (spec.get("type") == "ClusterIP" and bool(spec.get("externalIPs")))


def _checks_health(spec: Obj) -> bool:
    return spec.get("type") == "LoadBalancer" and spec.get("externalTrafficPolicy") == "Local"


def _policy_causes(spec: Obj) -> list[FieldCause]:
    causes: list[FieldCause] = []
    external, internal = spec.get("externalTrafficPolicy"), spec.get("internalTrafficPolicy")
    if external and not _open(spec):
        why = "may only be set for externally-accessible services"
        causes.append(invalid("spec.externalTrafficPolicy", external, why))
    elif _open(spec) and not external:
        causes.append(required("spec.externalTrafficPolicy"))
    elif external and external not in ("Cluster", "Local"):
        causes.append(unsupported("spec.externalTrafficPolicy", external, ("Cluster", "Local")))
    if internal and internal not in ("Cluster", "Local"):
        causes.append(unsupported("spec.internalTrafficPolicy", internal, ("Cluster", "Local")))
    port = spec.get("healthCheckNodePort")
    if port and not _checks_health(spec):
        why = "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'"
        causes.append(invalid("spec.healthCheckNodePort", port, why))
    elif port:
        causes += port_number(port, "spec.healthCheckNodePort")
    spread = spec.get("trafficDistribution")
    if spread is not None and spread not in DISTRIBUTIONS:
        causes.append(unsupported("spec.trafficDistribution", spread, DISTRIBUTIONS))
    return causes


def _balancer_causes(spec: Obj) -> list[FieldCause]:
    """Fields that only load balancers have."""
    name, why = spec.get("loadBalancerClass"), "may only be used when `type` is 'LoadBalancer'"
    if spec.get("type") == "LoadBalancer":
        problems = names.qualified_name(name) if name is not None else []
        return [invalid("spec.loadBalancerClass", name, problem) for problem in problems]
    keys = ("allocateLoadBalancerNodePorts", "loadBalancerClass")
    return [forbidden(f"spec.{key}", why) for key in keys if spec.get(key) is not None]


def _address_causes(spec: Obj) -> list[FieldCause]:
    causes: list[FieldCause] = []
    for index, address in enumerate(spec.get("externalIPs") or ()):
        where = f"spec.externalIPs[{index}]"
        causes += legacy_ip_causes(str(address), where) or endpoint_ip_causes(str(address), where)
    return causes + _source_range_causes(spec)


def _source_range_causes(spec: Obj) -> list[FieldCause]:
    """Kubernetes writes this field's path with a capital."""
    ranges, path = spec.get("loadBalancerSourceRanges") or [], "spec.LoadBalancerSourceRanges"
    causes: list[FieldCause] = []
    if ranges and spec.get("type") != "LoadBalancer":
        causes.append(forbidden(path, "may only be used when `type` is 'LoadBalancer'"))
    for index, cidr in enumerate(ranges):
        causes += legacy_cidr_causes(str(cidr).strip(), f"{path}[{index}]")
    return causes
