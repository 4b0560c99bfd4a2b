"""Disruption budgets, autoscalers, ingresses, network policies, slices, priorities, webhooks, signing requests.

Called by the API through :func:`syncline.cluster.kinds.strategy.strategy_for`. Source: the ``validation`` packages of
the groups policy, autoscaling, networking, discovery, scheduling, admissionregistration and certificates.
"""

from __future__ import annotations

from typing import ClassVar

from syncline.cluster.kinds import names
from syncline.cluster.kinds.base import Kind, spec_of
from syncline.cluster.kinds.causes import duplicate, forbidden, invalid, required, unsupported
from syncline.cluster.kinds.containers import PROTOCOLS
from syncline.cluster.kinds.fields import (
    at_most_100_percent,
    count_or_percent,
    each,
    immutable,
    label_selector_causes,
    natural_numbers,
    one_of,
)
from syncline.cluster.kinds.metadata import metadata_update_causes
from syncline.kube.errors import FieldCause
from syncline.kube.objects import Obj, dig

__all__ = [
    "AutoscalerKind",
    "DisruptionBudgetKind",
    "IngressClassKind",
    "IngressKind",
    "NetworkPolicyKind",
    "PriorityClassKind",
    "WebhookKind",
]

PATH_TYPES = ("Exact", "ImplementationSpecific", "Prefix")
ADDRESS_TYPES = ("FQDN", "IPv4", "IPv6")
MAX_USER_PRIORITY = 1_000_000_000
MAX_WEBHOOK_TIMEOUT_S = 30


class DisruptionBudgetKind(Kind):
    has_status = True
    has_generation = True
    empty_status: ClassVar[Obj | None] = {
        "disruptionsAllowed": 0,
        "currentHealthy": 0,
        "desiredHealthy": 0,
        "expectedPods": 0,
    }

    def content_causes(self, obj: Obj) -> list[FieldCause]:
        spec = spec_of(obj)
        causes: list[FieldCause] = []
        if spec.get("minAvailable") is not None and spec.get("maxUnavailable") is not None:
            causes.append(invalid("spec", spec, "minAvailable and maxUnavailable cannot be both set"))
        for key in ("minAvailable", "maxUnavailable"):
            if spec.get(key) is not None:
                causes += count_or_percent(spec[key], f"spec.{key}")
                causes += at_most_100_percent(spec[key], f"spec.{key}")
        policy = spec.get("unhealthyPodEvictionPolicy")
        if policy not in (None, "IfHealthyBudget", "AlwaysAllow"):
            allowed = ("AlwaysAllow", "IfHealthyBudget")
            causes.append(unsupported("spec.unhealthyPodEvictionPolicy", policy, allowed))
        return causes + label_selector_causes(spec.get("selector"), "spec.selector")

    def update_causes(self, new: Obj, old: Obj) -> list[FieldCause]:
        return []

    def status_causes(self, new: Obj, old: Obj) -> list[FieldCause]:
        return natural_numbers(new.get("status") or {}, "status", *(self.empty_status or {}))


class AutoscalerKind(Kind):
    has_status = True
    empty_status: ClassVar[Obj | None] = {"desiredReplicas": 0, "currentMetrics": None}
    revalidates = False

    def content_causes(self, obj: Obj) -> list[FieldCause]:
        spec = spec_of(obj)
        causes: list[FieldCause] = []
        least, most = spec.get("minReplicas"), spec.get("maxReplicas") or 0
        if isinstance(least, int) and least < 1:
            causes.append(invalid("spec.minReplicas", least, "must be greater than or equal to 1"))
        if most < 1:
            causes.append(invalid("spec.maxReplicas", most, "must be greater than 0"))
        if isinstance(least, int) and most < least:
            causes.append(invalid("spec.maxReplicas", most, "must be greater than or equal to `minReplicas`"))
        target = spec.get("scaleTargetRef") or {}
        for key in ("kind", "name"):
            value = target.get(key) or ""
            if not value:
                causes.append(required(f"spec.scaleTargetRef.{key}"))
            causes += [invalid(f"spec.scaleTargetRef.{key}", value, one) for one in names.path_segment(value)]
        return causes

    def update_causes(self, new: Obj, old: Obj) -> list[FieldCause]:
        return metadata_update_causes(new, old) + self.content_causes(new)


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
            causes.append(invalid("spec", spec, "either `defaultBackend` or `rules` must be specified"))
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
        name = spec.get("ingressClassName")
        if name is not None:
            causes += [invalid("spec.ingressClassName", name, one) for one in names.dns_subdomain(str(name))]
        return causes

    def update_causes(self, new: Obj, old: Obj) -> list[FieldCause]:
        return metadata_update_causes(new, old) + self.content_causes(new)


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
        causes.append(required(f"{at}.pathType", "pathType must be specified"))
    elif kind not in PATH_TYPES:
        causes.append(unsupported(f"{at}.pathType", kind, PATH_TYPES))
    elif kind in ("Exact", "Prefix"):
        if not text.startswith("/"):
            causes.append(invalid(f"{at}.path", text, "must be an absolute path"))
        elif text:
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
        return [required(f"{path}.resource.{key}") for key in ("kind", "name") if not resource.get(key)]
    if service is None:
        return [required(path, "port name or number is required")] if not backend else []
    causes: list[FieldCause] = []
    name = service.get("name") or ""
    if not name:
        causes.append(required(f"{path}.service.name"))
    else:
        causes += [invalid(f"{path}.service.name", name, one) for one in names.dns_label_1035(name)]
    port = service.get("port") or {}
    if port.get("name") and port.get("number"):
        causes.append(invalid(path, "", "cannot set both port name & port number"))
    elif port.get("name"):
        causes += [invalid(f"{path}.service.port.name", port["name"], one) for one in names.port_name(port["name"])]
    elif not isinstance(port.get("number"), int):
        causes.append(required(path, "port name or number is required"))
    elif not 0 < port["number"] < 65536:
        why = "must be between 1 and 65535, inclusive"
        causes.append(invalid(f"{path}.service.port.number", port["number"], why))
    return causes


class IngressClassKind(Kind):
    has_generation = True
    namespaced = False

    def content_causes(self, obj: Obj) -> list[FieldCause]:
        controller = spec_of(obj).get("controller") or ""
        if not controller:
            return [required("spec.controller")]
        prefix, slash, _ = str(controller).partition("/")
        problems = names.dns_subdomain(prefix) if slash else ['must be a domain-prefixed path (such as "acme.io/foo")']
        return [invalid("spec.controller", controller, problem) for problem in problems]

    def update_causes(self, new: Obj, old: Obj) -> list[FieldCause]:
        return metadata_update_causes(new, old) + immutable(spec_of(new), spec_of(old), "spec", "controller")


class NetworkPolicyKind(Kind):
    has_generation = True

    def content_causes(self, obj: Obj) -> list[FieldCause]:
        spec = spec_of(obj)
        causes = label_selector_causes(spec.get("podSelector"), "spec.podSelector")
        for direction, peers in (("ingress", "from"), ("egress", "to")):
            for where, rule in each(spec, direction, "spec"):
                for at, port in each(rule, "ports", where):
                    causes += one_of(port, at, "protocol", PROTOCOLS)
                for at, peer in each(rule, peers, where):
                    causes += _peer_causes(peer, at)
        for index, kind in enumerate(spec.get("policyTypes") or ()):
            if kind not in ("Ingress", "Egress"):
                causes.append(unsupported(f"spec.policyTypes[{index}]", kind, ("Egress", "Ingress")))
        return causes

    def update_causes(self, new: Obj, old: Obj) -> list[FieldCause]:
        return metadata_update_causes(new, old) + self.content_causes(new)


def _peer_causes(peer: Obj, at: str) -> list[FieldCause]:
    causes = label_selector_causes(peer.get("podSelector"), f"{at}.podSelector")
    causes += label_selector_causes(peer.get("namespaceSelector"), f"{at}.namespaceSelector")
    block = peer.get("ipBlock")
    if not any(peer.get(key) is not None for key in ("podSelector", "namespaceSelector", "ipBlock")):
        causes.append(required(at, "must specify a peer"))
    elif isinstance(block, dict):
        if len([key for key in peer if peer[key] is not None]) > 1:
            causes.append(forbidden(at, "may not specify both ipBlock and another peer"))
        if not block.get("cidr"):
            causes.append(required(f"{at}.ipBlock.cidr"))
        elif not names.is_cidr(str(block["cidr"])):
            why = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"
            causes.append(invalid(f"{at}.ipBlock.cidr", block["cidr"], why))
    return causes


class PriorityClassKind(Kind):
    has_generation = True
    namespaced = False
    revalidates = False
    generation_follows: ClassVar[tuple[str, ...]] = ("value", "globalDefault", "description", "preemptionPolicy")

    def content_causes(self, obj: Obj) -> list[FieldCause]:
        causes: list[FieldCause] = []
        name = dig(obj, "metadata", "name", default="")
        if name.startswith("system-") and name not in ("system-cluster-critical", "system-node-critical"):
            why = (
                "priority class names with 'system-' prefix are reserved for system use only. error: "
                f"{name} is not a known system priority class"
            )
            causes.append(forbidden("metadata.name", why))
        elif (obj.get("value") or 0) > MAX_USER_PRIORITY and not name.startswith("system-"):
            why = f"maximum allowed value of a user defined priority is {MAX_USER_PRIORITY}"
            causes.append(forbidden("value", why))
        policy = obj.get("preemptionPolicy")
        if policy not in ("Never", "PreemptLowerPriority"):
            causes.append(unsupported("preemptionPolicy", policy or "", ("Never", "PreemptLowerPriority")))
        return causes

    def update_causes(self, new: Obj, old: Obj) -> list[FieldCause]:
        causes = metadata_update_causes(new, old)
        if new.get("value") != old.get("value"):
            causes.append(forbidden("value", "may not be changed in an update."))
        return causes + immutable(new, old, "", "preemptionPolicy")


class WebhookKind(Kind):
    """Validating and mutating webhook configurations."""

    has_generation = True
    namespaced = False
    generation_follows: ClassVar[tuple[str, ...]] = ("webhooks",)

    def content_causes(self, obj: Obj) -> list[FieldCause]:
        causes: list[FieldCause] = []
        seen: set[str] = set()
        for where, hook in each(obj, "webhooks", ""):
            path, name = where.removeprefix("."), str(hook.get("name") or "")
            causes += _webhook_causes(hook, path)
            if name in seen:
                causes.append(duplicate(f"{path}.name", name))
            seen.add(name)
        return causes


def _webhook_causes(hook: Obj, path: str) -> list[FieldCause]:
    name = str(hook.get("name") or "")
    causes = _full_name_causes(name, f"{path}.name")
    if not hook.get("admissionReviewVersions"):
        causes.append(required(f"{path}.admissionReviewVersions", "must specify one of v1, v1beta1"))
    for key, allowed in (("failurePolicy", ("Fail", "Ignore")), ("matchPolicy", ("Equivalent", "Exact"))):
        if hook.get(key) not in (None, *allowed):
            causes.append(unsupported(f"{path}.{key}", hook[key], allowed))
    effects = hook.get("sideEffects")
    if effects is None:
        causes.append(required(f"{path}.sideEffects", "must specify one of None, NoneOnDryRun"))
    elif effects not in ("None", "NoneOnDryRun"):
        causes.append(unsupported(f"{path}.sideEffects", effects, ("None", "NoneOnDryRun")))
    timeout = hook.get("timeoutSeconds")
    if isinstance(timeout, int) and not 1 <= timeout <= MAX_WEBHOOK_TIMEOUT_S:
        why = f"the timeout value must be between 1 and {MAX_WEBHOOK_TIMEOUT_S} seconds"
        causes.append(invalid(f"{path}.timeoutSeconds", timeout, why))
    config = hook.get("clientConfig") or {}
    if (config.get("url") is None) == (config.get("service") is None):
        causes.append(required(f"{path}.clientConfig", "exactly one of url or service is required"))
    return causes


def _full_name_causes(name: str, path: str) -> list[FieldCause]:
    if not name:
        return [required(path)]
    causes = [invalid(path, name, problem) for problem in names.dns_subdomain(name)]
    if not causes and name.count(".") < 2:
        causes.append(invalid(path, name, "should be a domain with at least three segments separated by dots"))
    return causes
