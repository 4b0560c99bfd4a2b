"""Ingresses and their classes, network policies, addresses and ranges of Services.

Called by the API through :func:`syncline.cluster.validation.strategy.strategy_for`. Source: Kubernetes
``pkg/apis/networking/validation``.
"""

from __future__ import annotations

import ipaddress
from typing import Any, ClassVar

from syncline.cluster.validation.engine import names
from syncline.cluster.validation.engine.addresses import ip_problems, legacy_cidr_causes, legacy_ip_causes, sloppy_ip
from syncline.cluster.validation.engine.base import Kind, spec_of
from syncline.cluster.validation.engine.causes import forbidden, invalid, required, too_long, unsupported
from syncline.cluster.validation.engine.fields import IMMUTABLE, each, immutable, label_selector_causes, port_number
from syncline.cluster.validation.engine.metadata import NameCheck, metadata_update_causes
from syncline.cluster.validation.pods.probes import port_or_name_causes
from syncline.kube.errors import FieldCause
from syncline.kube.objects import Obj, annotations_of, dig

__all__ = ["IPAddressKind", "IngressClassKind", "IngressKind", "NetworkPolicyKind", "ServiceCIDRKind"]

PATH_TYPES = ("Exact", "ImplementationSpecific", "Prefix")
POLICY_TYPES = ("Ingress", "Egress")
POLICY_PROTOCOLS = ("TCP", "UDP", "SCTP")
MOST_CONTROLLER_BYTES = 250
OLD_CLASS = "kubernetes.io/ingress.class"


# --- ingresses -----------------------------------------------------------------------------------------------------


class IngressKind(Kind):
    has_status = True
    has_generation = True
    revalidates = False
    empty_status: ClassVar[Obj | None] = {"loadBalancer": {}}

    def content_causes(self, obj: Obj) -> list[FieldCause]:
        spec = spec_of(obj)
        causes: list[FieldCause] = []
        backend = spec.get("defaultBackend")
        if not spec.get("rules") and backend is None:
            causes.append(invalid("spec", spec.get("rules"), "either `defaultBackend` or `rules` must be specified"))
        if isinstance(backend, dict):
            causes += _backend_causes(backend, "spec.defaultBackend")
        for where, rule in each(spec, "rules", "spec"):
            causes += _host_causes(rule.get("host"), f"{where}.host")
            http = rule.get("http")
            if isinstance(http, dict):
                if not http.get("paths"):
                    causes.append(required(f"{where}.http.paths"))
                for at, path in each(http, "paths", f"{where}.http"):
                    causes += _path_causes(path, at)
        for where, tls in each(spec, "tls", "spec"):
            for index, host in enumerate(tls.get("hosts") or ()):
                causes += _host_causes(host, f"{where}.hosts[{index}]")
            secret = tls.get("secretName")
            if secret:
                causes += [invalid(f"{where}.secretName", secret, one) for one in names.dns_subdomain(secret)]
        name = spec.get("ingressClassName")
        if name is not None:
            causes += [invalid("spec.ingressClassName", name, one) for one in names.dns_subdomain(str(name))]
        return causes

    def validate_create(self, obj: Obj) -> list[FieldCause]:
        """The class is named in one way: by the old annotation, or by its field."""
        old, name = annotations_of(obj).get(OLD_CLASS), spec_of(obj).get("ingressClassName")
        both = old is not None and name is not None and old != name
        why = "must match `ingressClassName` when both are specified"
        differing = [invalid(f"annotations.{OLD_CLASS}", old, why)] if both else []
        return super().validate_create(obj) + differing

    def update_causes(self, new: Obj, old: Obj) -> list[FieldCause]:
        return metadata_update_causes(new, old) + self.content_causes(new)

    def status_causes(self, new: Obj, old: Obj) -> list[FieldCause]:
        causes: list[FieldCause] = []
        for where, ingress in each(dig(new, "status", "loadBalancer"), "ingress", "status.loadBalancer"):
            ip, host = str(ingress.get("ip") or ""), str(ingress.get("hostname") or "")
            causes += legacy_ip_causes(ip, f"{where}.ip") if ip else []
            if host:
                causes += [invalid(f"{where}.hostname", host, problem) for problem in names.dns_subdomain(host)]
                if sloppy_ip(host) is not None:
                    causes.append(invalid(f"{where}.hostname", host, "must be a DNS name, not an IP address"))
        return causes

    def warnings(self, new: Obj, old: Obj | None) -> list[str]:
        named = spec_of(new).get("ingressClassName") is not None
        if old is not None or named or OLD_CLASS not in (dig(new, "metadata", "annotations") or {}):
            return []
        return [f"annotation \"{OLD_CLASS}\" is deprecated, please use 'spec.ingressClassName' instead"]


def _host_causes(host: object, path: str) -> list[FieldCause]:
    if not isinstance(host, str) or not host:
        return []
    if names.is_ip(host):
        return [invalid(path, host, "must be a DNS name, not an IP address")]
    check = names.wildcard_subdomain if "*" in host else names.dns_subdomain
    return [invalid(path, host, problem) for problem in check(host)]


def _path_causes(path: Obj, at: str) -> list[FieldCause]:
    causes: list[FieldCause] = []
    kind, text = path.get("pathType"), str(path.get("path") or "")
    if kind is None:
        return [required(f"{at}.pathType", "pathType must be specified")]
    if kind not in PATH_TYPES:
        causes.append(unsupported(f"{at}.pathType", kind, PATH_TYPES))
    elif kind in ("Exact", "Prefix"):
        if not text.startswith("/"):
            causes.append(invalid(f"{at}.path", text, "must be an absolute path"))
        if text:
            causes += [
                invalid(f"{at}.path", text, f"must not contain '{part}'")
                for part in ("//", "/./", "/../", "%2f", "%2F")
                if part in text
            ]
            causes += [
                invalid(f"{at}.path", text, f"cannot end with '{part}'")
                for part in ("/..", "/.")
                if text.endswith(part)
            ]
    elif text and not text.startswith("/"):
        causes.append(invalid(f"{at}.path", text, "must be an absolute path"))
    return causes + _backend_causes(path.get("backend") or {}, f"{at}.backend")


def _backend_causes(backend: Obj, path: str) -> list[FieldCause]:
    service, resource = backend.get("service"), backend.get("resource")
    if service is not None and resource is not None:
        return [invalid(path, "", "cannot set both resource and service backends")]
    if resource is not None:
        group = resource.get("apiGroup")
        causes = [invalid(f"{path}.resource.apiGroup", group, one) for one in names.dns_subdomain(group or "a")]
        for key in ("kind", "name"):
            value, where = resource.get(key), f"{path}.resource.{key}"
            found = names.path_segment(value) if value else []
            causes += [invalid(where, value, one) for one in found] if value else [required(where)]
        return causes
    if service is None:
        return [invalid(path, "", "resource or service backend is required")]
    causes = []
    name = service.get("name") or ""
    if not name:
        causes.append(required(f"{path}.service.name"))
    else:
        causes += [invalid(f"{path}.service.name", name, one) for one in names.dns_label(name)]
    port = service.get("port") or {}
    if port.get("name") and port.get("number"):
        causes.append(invalid(path, "", "cannot set both port name & port number"))
    elif port.get("name"):
        causes += [invalid(f"{path}.service.port.name", port["name"], one) for one in names.port_name(port["name"])]
    elif not port.get("number"):
        causes.append(required(path, "port name or number is required"))
    else:
        causes += port_number(port["number"], f"{path}.service.port.number")
    return causes


class IngressClassKind(Kind):
    has_generation = True
    namespaced = False
    revalidates = False

    def content_causes(self, obj: Obj) -> list[FieldCause]:
        spec = spec_of(obj)
        controller = str(spec.get("controller") or "")
        causes = [] if controller else [required("spec.controller")]
        if len(controller.encode()) > MOST_CONTROLLER_BYTES:
            causes.append(too_long("spec.controller", MOST_CONTROLLER_BYTES))
        causes += [invalid("spec.controller", part, one) for part, one in names.domain_prefixed_path(controller)]
        parameters = spec.get("parameters")
        return causes + (_parameter_causes(parameters) if isinstance(parameters, dict) else [])

    def update_causes(self, new: Obj, old: Obj) -> list[FieldCause]:
        kept = immutable({"controller": "", **spec_of(new)}, spec_of(old), "spec", "controller")
        return metadata_update_causes(new, old) + kept + self.whole_causes(new)


def _parameter_causes(parameters: Obj) -> list[FieldCause]:
    path, causes = "spec.parameters", []
    group, scope, space = (parameters.get(key) for key in ("apiGroup", "scope", "namespace"))
    if group is not None:
        causes += [invalid(f"{path}.apiGroup", group, one) for one in names.dns_subdomain(group)]
    for key in ("kind", "name"):
        value = str(parameters.get(key) or "")
        if not value:
            causes.append(required(f"{path}.{key}"))
        causes += [invalid(f"{path}.{key}", value, one) for one in names.path_segment(value)]
    if scope not in ("Cluster", "Namespace"):
        causes.append(unsupported(f"{path}.scope", scope, ("Cluster", "Namespace")))
    elif scope == "Cluster" and space is not None:
        causes.append(forbidden(f"{path}.namespace", "`parameters.scope` is set to 'Cluster'"))
    elif scope == "Namespace" and space is None:
        causes.append(required(f"{path}.namespace", "`parameters.scope` is set to 'Namespace'"))
    elif scope == "Namespace":
        causes += [invalid(f"{path}.namespace", space, one) for one in names.dns_label(str(space))]
    return causes


# --- network policies ----------------------------------------------------------------------------------------------


class NetworkPolicyKind(Kind):
    has_generation = True
    revalidates = False

    def content_causes(self, obj: Obj) -> list[FieldCause]:
        spec = spec_of(obj)
        causes = label_selector_causes(spec.get("podSelector"), "spec.podSelector")
        for direction, peers in (("ingress", "from"), ("egress", "to")):
            for where, rule in each(spec, direction, "spec"):
                for at, port in each(rule, "ports", where):
                    causes += _policy_port_causes(port, at)
                for at, peer in each(rule, peers, where):
                    causes += _peer_causes(peer, at)
        kinds = spec.get("policyTypes") or []
        if len(kinds) > len(POLICY_TYPES):
            return [*causes, invalid("spec.policyTypes", kinds, "may not specify more than two policyTypes")]
        return causes + [
            unsupported(f"spec.policyTypes[{index}]", kind, POLICY_TYPES)
            for index, kind in enumerate(kinds)
            if kind not in POLICY_TYPES
        ]

    def update_causes(self, new: Obj, old: Obj) -> list[FieldCause]:
        return metadata_update_causes(new, old) + self.content_causes(new)


def _policy_port_causes(rule: Obj, at: str) -> list[FieldCause]:
    protocol, port, end = rule.get("protocol"), rule.get("port"), rule.get("endPort")
    causes: list[FieldCause] = []
    if protocol is not None and protocol not in POLICY_PROTOCOLS:
        causes.append(unsupported(f"{at}.protocol", protocol, POLICY_PROTOCOLS))
    if port is not None:
        causes += port_or_name_causes(port, f"{at}.port")
    if end is None:
        return causes
    if port is None:
        return [*causes, invalid(f"{at}.endPort", end, "may not be specified when `port` is not specified")]
    if isinstance(port, str):
        return [*causes, invalid(f"{at}.endPort", end, "may not be specified when `port` is non-numeric")]
    if end < port:
        causes.append(invalid(f"{at}.endPort", port, "must be greater than or equal to `port`"))
    return causes + port_number(end, f"{at}.endPort")


def _peer_causes(peer: Obj, at: str) -> list[FieldCause]:
    causes = label_selector_causes(peer.get("podSelector"), f"{at}.podSelector")
    causes += label_selector_causes(peer.get("namespaceSelector"), f"{at}.namespaceSelector")
    kinds = [key for key in ("podSelector", "namespaceSelector", "ipBlock") if peer.get(key) is not None]
    block = peer.get("ipBlock")
    if isinstance(block, dict):
        causes += _block_causes(block, f"{at}.ipBlock")
    if not kinds:
        causes.append(required(at, "must specify a peer"))
    elif len(kinds) > 1 and "ipBlock" in kinds:
        causes.append(forbidden(at, "may not specify both ipBlock and another peer"))
    return causes


def _network(text: str) -> Any:
    try:
        return ipaddress.ip_network(text, strict=False) if "/" in text else None
    except ValueError:
        return None


def _block_causes(block: Obj, at: str) -> list[FieldCause]:
    text = str(block.get("cidr") or "")
    if not text:
        return [required(f"{at}.cidr")]
    causes, whole = legacy_cidr_causes(text, f"{at}.cidr"), _network(text)
    for index, one in enumerate(block.get("except") or () if whole is not None else ()):
        where, part = f"{at}.except[{index}]", _network(str(one))
        causes += legacy_cidr_causes(str(one), where)
        if part is None:
            continue
        inside = part.version == whole.version and part.network_address in whole
        if not inside or whole.prefixlen >= part.prefixlen:
            causes.append(invalid(where, one, "must be a strict subset of `cidr`"))
    return causes


# --- addresses of Services -----------------------------------------------------------------------------------------


class IPAddressKind(Kind):
    """An address of a Service, named by itself."""

    namespaced = False
    name_check: ClassVar[NameCheck] = staticmethod(ip_problems)

    def content_causes(self, obj: Obj) -> list[FieldCause]:
        parent, path = spec_of(obj).get("parentRef"), "spec.parentRef"
        if not isinstance(parent, dict):
            return [required(path)]
        group = parent.get("group")
        causes = [invalid(f"{path}.group", group, one) for one in names.dns_subdomain(group)] if group else []
        for key in ("resource", "name", "namespace"):
            value = str(parent.get(key) or "")
            if not value and key != "namespace":
                causes.append(required(f"{path}.{key}"))
            causes += [invalid(f"{path}.{key}", value, one) for one in names.path_segment(value)]
        return causes

    def update_causes(self, new: Obj, old: Obj) -> list[FieldCause]:
        return metadata_update_causes(new, old) + immutable(spec_of(new), spec_of(old), "spec", "parentRef")


class ServiceCIDRKind(Kind):
    has_status = True
    status_keeps_metadata = True
    namespaced = False
    revalidates = False
    empty_status: ClassVar[Obj | None] = {}

    def content_causes(self, obj: Obj) -> list[FieldCause]:
        listed, path = spec_of(obj).get("cidrs") or [], "spec.cidrs"
        if not listed:
            return [required(path, "at least one CIDR required")]
        if len(listed) > 2:
            return [invalid(path, {"CIDRs": listed}, "may only hold up to 2 values")]
        causes: list[FieldCause] = []
        for index, text in enumerate(listed):
            causes += _canonical_causes(str(text), f"{path}[{index}]")
        parsed = [_network(str(text)) for text in listed]
        if len(parsed) == 2 and None not in parsed and parsed[0].version == parsed[1].version:
            why = "may specify no more than one IP for each IP family, i.e 192.168.0.0/24 and 2001:db8::/64"
            causes.append(invalid(path, listed, why))
        return causes

    def update_causes(self, new: Obj, old: Obj) -> list[FieldCause]:
        causes, path = metadata_update_causes(new, old), "spec.cidrs"
        fresh, before = spec_of(new).get("cidrs") or [], spec_of(old).get("cidrs") or []
        if len(fresh) == len(before):
            changed = [index for index, one in enumerate(before) if fresh[index] != one]
            return causes + [invalid(f"{path}[{index}]", fresh[index], IMMUTABLE) for index in changed]
        if (len(before), len(fresh)) != (1, 2):
            return [*causes, invalid(path, fresh, IMMUTABLE)]
        if fresh[0] != before[0]:
            causes.append(invalid(f"{path}[0]", fresh[0], IMMUTABLE))
        return causes + self.content_causes(new)


def _canonical_causes(text: str, where: str) -> list[FieldCause]:
    causes, network = legacy_cidr_causes(text, where), _network(text)
    if not causes and str(network) != text:
        causes.append(invalid(where, text, f'must be in canonical form ("{network}")'))
    return causes
