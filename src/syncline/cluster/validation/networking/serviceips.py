"""Validate addresses of Services and endpoints, and warn about Services.

The strategies of Services, Endpoints and EndpointSlices call it, and the address allocator before it assigns any.
Source: Kubernetes ``ValidateServiceClusterIPsRelatedFields``, ``ValidateEndpointIP`` and
``pkg/api/service/warnings.go``.
"""

from __future__ import annotations

import ipaddress

from syncline.cluster.validation.engine.addresses import cidr_warnings, ip_warnings, legacy_ip_causes, sloppy_ip
from syncline.cluster.validation.engine.causes import duplicate, invalid, required, unsupported
from syncline.kube.errors import FieldCause
from syncline.kube.objects import Obj

FAMILIES = ("IPv4", "IPv6")
FAMILY_POLICIES = ("PreferDualStack", "RequireDualStack", "SingleStack")
OLD_TOPOLOGY, TOPOLOGY = "service.kubernetes.io/topology-aware-hints", "service.kubernetes.io/topology-mode"


def cluster_ip_causes(spec: Obj) -> list[FieldCause]:
    """Validate cluster IPs and address families, as far as possible without the cluster's range."""
    if spec.get("type") == "ExternalName":
        return []
    address, listed, path = spec.get("clusterIP"), spec.get("clusterIPs") or [], "spec.clusterIPs"
    causes: list[FieldCause] = []
    if address and not listed:
        causes.append(required(path))
    elif address and listed[0] != address:
        causes.append(invalid(path, listed, "first value must match `clusterIP`"))
    elif listed and not address:
        causes.append(invalid(path, listed, "must be empty when `clusterIP` is not specified"))
    causes += _family_causes(spec)
    wrong: list[FieldCause] = []
    if listed and listed[0] == "None" and len(listed) > 1:
        wrong.append(invalid(path, listed, "'None' must be the first and only value"))
    for index, one in enumerate(listed):
        if index or one != "None":
            wrong += legacy_ip_causes(str(one), f"{path}[{index}]")
    if len(listed) > 2:
        causes.append(invalid(path, listed, "may only hold up to 2 values"))
    return causes + (wrong or _pairing_causes(spec, listed))


def _family_causes(spec: Obj) -> list[FieldCause]:
    causes: list[FieldCause] = []
    families, policy = spec.get("ipFamilies") or [], spec.get("ipFamilyPolicy")
    for index, family in enumerate(families):
        where = f"spec.ipFamilies[{index}]"
        if family not in FAMILIES:
            causes.append(unsupported(where, family, FAMILIES))
        if family in families[:index]:
            causes.append(duplicate(where, family))
    if policy is not None and policy not in FAMILY_POLICIES:
        causes.append(unsupported("spec.ipFamilyPolicy", policy, FAMILY_POLICIES))
    return causes


def _pairing_causes(spec: Obj, listed: list[str]) -> list[FieldCause]:
    """Require one address per family, in the order of the families."""
    if not listed or listed[0] == "None":
        return []
    causes: list[FieldCause] = []
    versions = [getattr(sloppy_ip(str(one)), "version", 0) for one in listed]
    if len(listed) > 1 and len(set(versions)) < len(versions):
        causes.append(invalid("spec.clusterIPs", listed, "may specify no more than one IP for each IP family"))
    for index, family in enumerate((spec.get("ipFamilies") or [])[: len(listed)]):
        if family in FAMILIES and family != f"IPv{versions[index]}":
            why = f"expected an {family} value as indicated by `ipFamilies[{index}]`"
            causes.append(invalid(f"spec.clusterIPs[{index}]", listed[index], why))
    return causes


def endpoint_ip_causes(text: str, path: str) -> list[FieldCause]:
    """Require an address that other hosts can reach, not one that is local to its machine."""
    address = sloppy_ip(text)
    if address is None:
        return [invalid(path, text, "must be a valid IP address")]
    causes: list[FieldCause] = []
    if address.is_unspecified:
        causes.append(invalid(path, text, f"may not be unspecified ({text})"))
    if address.is_loopback:
        causes.append(invalid(path, text, "may not be in the loopback range (127.0.0.0/8, ::1/128)"))
    if address.is_link_local:
        causes.append(invalid(path, text, "may not be in the link-local range (169.254.0.0/16, fe80::/10)"))
    local = ipaddress.ip_network("224.0.0.0/24" if address.version == 4 else "ff02::/16")
    if address in local:
        why = "may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)"
        causes.append(invalid(path, text, why))
    return causes


def keep_addresses(fresh: Obj, before: Obj) -> None:
    """Keep the old addresses if a write omits them; the list only with an unchanged first address."""
    if before.get("clusterIP") and not fresh.get("clusterIP") and not fresh.get("clusterIPs"):
        fresh["clusterIP"] = before["clusterIP"]
    if before.get("clusterIPs") and not fresh.get("clusterIPs") and fresh.get("clusterIP") == before.get("clusterIP"):
        fresh["clusterIPs"] = before["clusterIPs"]


def service_warnings(service: Obj) -> list[str]:
    spec: Obj = service.get("spec") or {}
    annotations = (service.get("metadata") or {}).get("annotations") or {}
    headless, kind = spec.get("clusterIP") == "None", spec.get("type")
    warnings: list[str] = []
    if OLD_TOPOLOGY in annotations:
        warnings.append(f"annotation {OLD_TOPOLOGY} is deprecated, please use {TOPOLOGY} instead")
    for index, address in enumerate(spec.get("clusterIPs") or () if not headless else ()):
        warnings += ip_warnings(str(address), f"spec.clusterIPs[{index}]")
    if headless:
        said = (("loadBalancerIP", spec.get("loadBalancerIP")), ("externalIPs", spec.get("externalIPs")))
        warnings += [f"spec.{key} is ignored for headless services" for key, value in said if value]
        if spec.get("sessionAffinity") != "None":
            warnings.append("spec.SessionAffinity is ignored for headless services")
    for index, address in enumerate(spec.get("externalIPs") or ()):
        warnings += ip_warnings(str(address), f"spec.externalIPs[{index}]")
    if spec.get("externalIPs") and not headless and kind != "ExternalName":
        warnings.append("spec.externalIPs is deprecated and may no longer be implemented in some clusters")
    if spec.get("loadBalancerIP"):
        warnings += ip_warnings(str(spec["loadBalancerIP"]), "spec.loadBalancerIP")
    for index, cidr in enumerate(spec.get("loadBalancerSourceRanges") or ()):
        warnings += cidr_warnings(str(cidr), f"spec.loadBalancerSourceRanges[{index}]")
    if kind == "ExternalName" and spec.get("externalIPs"):
        warnings.append('spec.externalIPs is ignored when spec.type is "ExternalName"')
    if kind != "ExternalName" and spec.get("externalName"):
        warnings.append('spec.externalName is ignored when spec.type is not "ExternalName"')
    if spec.get("trafficDistribution") == "PreferClose":
        warnings.append('spec.trafficDistribution: "PreferClose" is deprecated; use "PreferSameZone"')
    return warnings
