"""Ingresses and their classes, network policies, addresses and ranges of Services.

Called by the API through :func:`syncline.cluster.validation.strategy.strategy_for`. Source: Kubernetes
``pkg/apis/networking/validation``.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Iterator
from typing import Any, ClassVar

from syncline.cluster.validation.engine import names
from syncline.cluster.validation.engine import rules as r
from syncline.cluster.validation.engine.addresses import ip_problems, legacy_cidr_causes, legacy_ip_causes, sloppy_ip
from syncline.cluster.validation.engine.base import IMMUTABLE, Kind, spec_of
from syncline.cluster.validation.engine.causes import forbidden, invalid, required, unsupported
from syncline.cluster.validation.engine.fields import immutable, label_selector_causes
from syncline.cluster.validation.engine.metadata import metadata_update_causes
from syncline.cluster.validation.pods.probes import port_or_name_causes
from syncline.kube.errors import FieldCause
from syncline.kube.objects import Obj, annotations_of, dig

MOST_CONTROLLER_BYTES = 250
OLD_CLASS = "kubernetes.io/ingress.class"
ONE_FAMILY = "may specify no more than one IP for each IP family, i.e 192.168.0.0/24 and 2001:db8::/64"


# --- ingresses -----------------------------------------------------------------------------------------------------


def _host_causes(host: str, path: str) -> Iterable[FieldCause]:
    if names.is_ip(host):
        return [invalid(path, host, "must be a DNS name, not an IP address")]
    check = names.wildcard_subdomain if "*" in host else names.dns_subdomain
    return [invalid(path, host, problem) for problem in check(host)] if host else []


def _path_causes(path: Obj, at: str) -> Iterator[FieldCause]:
    kind, text, where = path.get("pathType"), str(path.get("path") or ""), f"{at}.path"
    if kind is None:
        yield required(f"{at}.pathType", "pathType must be specified")
        return
    yield from r.choice("Exact", "ImplementationSpecific", "Prefix")(kind, f"{at}.pathType")
    strict = kind in ("Exact", "Prefix")
    if not text.startswith("/") and (strict or (text and kind == "ImplementationSpecific")):
        yield invalid(where, text, "must be an absolute path")
    for part in ("//", "/./", "/../", "%2f", "%2F") if strict else ():
        if part in text:
            yield invalid(where, text, f"must not contain '{part}'")
    for part in ("/..", "/.") if strict else ():
        if text.endswith(part):
            yield invalid(where, text, f"cannot end with '{part}'")
    yield from _BACKEND(path.get("backend") or {}, f"{at}.backend")


def _port_causes(service: Obj, path: str) -> Iterator[FieldCause]:
    port, at = service.get("port") or {}, f"{path}.service.port"
    if port.get("name") and port.get("number"):
        yield invalid(path, "", "cannot set both port name & port number")
    elif port.get("name"):
        yield from r.named(names.port_name)(port["name"], f"{at}.name")
    elif port.get("number"):
        yield from r.port(port["number"], f"{at}.number")
    else:
        yield required(path, "port name or number is required")


_BACKEND = r.first(
    r.refuse(
        lambda one: one.get("service") is not None and one.get("resource") is not None,
        "",
        "cannot set both resource and service backends",
        "",
    ),
    r.refuse(
        lambda one: one.get("service") is None and one.get("resource") is None,
        "",
        "resource or service backend is required",
        "",
    ),
    r.field(
        "resource", r.field("apiGroup", r.when(bool, r.subdomain)), r.need("kind", r.segment), r.need("name", r.segment)
    ),
    r.every(
        r.field("service", r.need("name", r.label)),
        lambda one, path: _port_causes(one["service"], path) if one.get("service") is not None else (),
    ),
)


class IngressKind(Kind):
    has_status = True
    has_generation = True
    revalidates = False
    judged_again = True
    empty_status: ClassVar[Obj | None] = {"loadBalancer": {}}
    rules = r.spec(
        lambda spec, path: (
            [invalid(path, spec.get("rules"), "either `defaultBackend` or `rules` must be specified")]
            if not spec.get("rules") and spec.get("defaultBackend") is None
            else []
        ),
        r.field("defaultBackend", _BACKEND),
        r.each(
            "rules",
            r.filled("host", _host_causes),
            r.field("http", r.needs("paths"), r.each("paths", _path_causes)),
        ),
        r.each("tls", r.items("hosts", _host_causes), r.filled("secretName", r.subdomain)),
        r.field("ingressClassName", r.subdomain),
    )
    status_rules = r.part(
        "loadBalancer",
        r.each(
            "ingress",
            r.filled("ip", legacy_ip_causes),
            r.filled(
                "hostname",
                r.subdomain,
                r.must(lambda host: sloppy_ip(host) is None, "must be a DNS name, not an IP address"),
            ),
        ),
    )

    def validate_create(self, obj: Obj) -> list[FieldCause]:
        """Refuse different classes in the old annotation and in the field."""
        old, name = annotations_of(obj).get(OLD_CLASS), spec_of(obj).get("ingressClassName")
        both = old is not None and name is not None and old != name
        why = "must match `ingressClassName` when both are specified"
        differing = [invalid(f"annotations.{OLD_CLASS}", old, why)] if both else []
        return super().validate_create(obj) + differing

    def warnings(self, new: Obj, old: Obj | None) -> list[str]:
        named = spec_of(new).get("ingressClassName") is not None
        if old is not None or named or OLD_CLASS not in (dig(new, "metadata", "annotations") or {}):
            return []
        return [f"annotation \"{OLD_CLASS}\" is deprecated, please use 'spec.ingressClassName' instead"]


def _controller_causes(controller: str, path: str) -> Iterator[FieldCause]:
    if not controller:
        yield required(path)
    yield from r.most(MOST_CONTROLLER_BYTES)(controller, path)
    for part, problem in names.domain_prefixed_path(controller):
        yield invalid(path, part, problem)


def _scope_causes(parameters: Obj, path: str) -> Iterator[FieldCause]:
    scope, space = parameters.get("scope"), parameters.get("namespace")
    if scope not in ("Cluster", "Namespace"):
        yield unsupported(f"{path}.scope", scope, ("Cluster", "Namespace"))
    elif scope == "Cluster" and space is not None:
        yield forbidden(f"{path}.namespace", "`parameters.scope` is set to 'Cluster'")
    elif scope == "Namespace" and space is None:
        yield required(f"{path}.namespace", "`parameters.scope` is set to 'Namespace'")
    elif scope == "Namespace":
        yield from r.label(space, f"{path}.namespace")


class IngressClassKind(Kind):
    has_generation = True
    namespaced = False
    revalidates = False
    rules = r.spec(
        r.text("controller", _controller_causes),
        r.field(
            "parameters",
            r.field("apiGroup", r.subdomain),
            r.need("kind", r.segment),
            r.need("name", r.segment),
            _scope_causes,
        ),
    )

    def update_causes(self, new: Obj, old: Obj) -> list[FieldCause]:
        kept = immutable({"controller": "", **spec_of(new)}, spec_of(old), "spec", "controller")
        return metadata_update_causes(new, old) + kept + self.whole_causes(new)


# --- network policies ----------------------------------------------------------------------------------------------


def _end_port_causes(rule: Obj, path: str) -> Iterator[FieldCause]:
    port, end, at = rule.get("port"), rule.get("endPort"), f"{path}.endPort"
    if end is None:
        return
    if port is None:
        yield invalid(at, end, "may not be specified when `port` is not specified")
    elif isinstance(port, str):
        yield invalid(at, end, "may not be specified when `port` is non-numeric")
    else:
        if end < port:
            yield invalid(at, port, "must be greater than or equal to `port`")
        yield from r.port(end, at)


def _network(text: str) -> Any:
    try:
        return ipaddress.ip_network(text, strict=False) if "/" in text else None
    except ValueError:
        return None


def _block_causes(block: Obj, path: str) -> Iterator[FieldCause]:
    text = str(block.get("cidr") or "")
    yield from r.need("cidr", legacy_cidr_causes)(block, path)
    whole = _network(text)
    for index, one in enumerate(block.get("except") or () if whole is not None else ()):
        where, part = f"{path}.except[{index}]", _network(str(one))
        yield from legacy_cidr_causes(str(one), where)
        if part is None:
            continue
        inside = part.version == whole.version and part.network_address in whole
        if not inside or whole.prefixlen >= part.prefixlen:
            yield invalid(where, one, "must be a strict subset of `cidr`")


_PORTS = r.each(
    "ports",
    r.field("protocol", r.choice("TCP", "UDP", "SCTP")),
    r.field("port", port_or_name_causes),
    _end_port_causes,
)
_PEER = r.every(
    r.field("podSelector", label_selector_causes),
    r.field("namespaceSelector", label_selector_causes),
    r.field("ipBlock", _block_causes),
    r.demand(lambda peer: not r.has("podSelector", "namespaceSelector", "ipBlock")(peer), "", "must specify a peer"),
    r.forbid(
        lambda peer: peer.get("ipBlock") is not None and r.has("podSelector", "namespaceSelector")(peer),
        "",
        "may not specify both ipBlock and another peer",
    ),
)


class NetworkPolicyKind(Kind):
    has_generation = True
    revalidates = False
    judged_again = True
    rules = r.spec(
        r.field("podSelector", label_selector_causes),
        r.each("ingress", _PORTS, r.each("from", _PEER)),
        r.each("egress", _PORTS, r.each("to", _PEER)),
        r.when(
            lambda spec: len(spec.get("policyTypes") or ()) > 2,
            r.field("policyTypes", r.must(lambda _: False, "may not specify more than two policyTypes")),
            otherwise=r.items("policyTypes", r.choice("Ingress", "Egress")),
        ),
    )


# --- addresses of Services -----------------------------------------------------------------------------------------


class IPAddressKind(Kind):
    """An address of a Service; the object's name is the address."""

    namespaced = False
    name_check = ip_problems
    rules = r.spec(
        r.demand(r.lacks("parentRef"), "parentRef"),
        r.field(
            "parentRef",
            r.filled("group", r.subdomain),
            r.need("resource", r.segment),
            r.need("name", r.segment),
            r.filled("namespace", r.segment),
        ),
    )
    fixed = ("spec.parentRef",)


def _canonical_causes(text: str, path: str) -> Iterable[FieldCause]:
    causes, network = legacy_cidr_causes(text, path), _network(text)
    wrong = not causes and str(network) != text
    return [*causes, invalid(path, text, f'must be in canonical form ("{network}")')] if wrong else causes


def _one_family(listed: list[Any], path: str) -> Iterable[FieldCause]:
    parsed = [_network(str(text)) for text in listed]
    twice = len(parsed) == 2 and None not in parsed and parsed[0].version == parsed[1].version
    return [invalid(path, listed, ONE_FAMILY)] if twice else []


class ServiceCIDRKind(Kind):
    has_status = True
    status_keeps_metadata = True
    namespaced = False
    revalidates = False
    empty_status: ClassVar[Obj | None] = {}
    rules = r.spec(
        r.need("cidrs", why="at least one CIDR required"),
        r.when(
            lambda spec: len(spec.get("cidrs") or ()) > 2,
            r.field("cidrs", lambda given, path: [invalid(path, {"CIDRs": given}, "may only hold up to 2 values")]),
            otherwise=r.every(r.items("cidrs", _canonical_causes), r.filled("cidrs", _one_family)),
        ),
    )

    def update_causes(self, new: Obj, old: Obj) -> list[FieldCause]:
        causes, path = metadata_update_causes(new, old), "spec.cidrs"
        fresh, before = spec_of(new).get("cidrs") or [], spec_of(old).get("cidrs") or []
        if (len(before), len(fresh)) != (1, 2) and len(fresh) != len(before):
            return [*causes, invalid(path, fresh, IMMUTABLE)]
        changed = [index for index, one in enumerate(before) if fresh[index] != one]
        causes += [invalid(f"{path}[{index}]", fresh[index], IMMUTABLE) for index in changed]
        return causes + (self.content_causes(new) if len(fresh) > len(before) else [])
