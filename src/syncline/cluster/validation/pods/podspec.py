"""Pod specs, alone or as templates: policies, names, gates, DNS, claims.

Called by the strategies of Pods and of everything that makes Pods. A spec and its path come in, causes leave. Source:
Kubernetes ``pkg/apis/core/validation`` (ValidatePodSpec, ValidatePodTemplateSpec).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from syncline.cluster.validation.engine import names
from syncline.cluster.validation.engine.addresses import legacy_ip_causes
from syncline.cluster.validation.engine.causes import (
    duplicate,
    forbidden,
    invalid,
    not_found,
    required,
    too_long,
    unsupported,
)
from syncline.cluster.validation.engine.fields import each, one_of
from syncline.cluster.validation.engine.metadata import annotation_causes, label_causes
from syncline.cluster.validation.pods.containers import Surroundings, container_list_causes
from syncline.cluster.validation.pods.placement import affinity_causes, spread_causes, toleration_causes
from syncline.cluster.validation.pods.podannotations import pod_annotation_causes
from syncline.cluster.validation.pods.resources import (
    amounts,
    container_name_causes,
    pod_resource_causes,
    quantity_causes,
)
from syncline.cluster.validation.pods.security import os_causes, pod_security_causes, visit
from syncline.cluster.validation.storage.volumes import volume_causes
from syncline.kube.errors import FieldCause
from syncline.kube.objects import Obj, dig

__all__ = ["pod_spec_causes", "pod_template_causes", "template_labels", "template_metadata_causes"]

RESTART_POLICIES = ("Always", "OnFailure", "Never")
DNS_POLICIES = ("ClusterFirstWithHostNet", "ClusterFirst", "Default", "None")
PREEMPTION_POLICIES = ("PreemptLowerPriority", "Never")
MAX_INT32 = 2**31 - 1
MAX_DNS_SERVERS = 3
MAX_DNS_SEARCHES = 32
MAX_DNS_SEARCH_BYTES = 2048
MAX_HOSTNAME_BYTES = 64


def template_labels(spec: Obj) -> dict[str, str] | None:
    """Labels of the template under a workload's spec; None where there are none."""
    labels = dig(spec, "template", "metadata", "labels")
    return labels if isinstance(labels, dict) else None


def template_metadata_causes(template: Any, path: str) -> list[FieldCause]:
    """Labels and annotations of a pod template."""
    meta = dig(template, "metadata", default={})
    causes = label_causes(meta.get("labels"), f"{path}.labels")
    return causes + annotation_causes(meta.get("annotations"), f"{path}.annotations")


def pod_template_causes(template: Any, path: str) -> list[FieldCause]:
    """A pod template: labels, annotations and spec."""
    found = template if isinstance(template, dict) else {}
    spec = found.get("spec") or {}
    causes = template_metadata_causes(found, path)
    causes += pod_annotation_causes(dig(found, "metadata", "annotations"), spec, f"{path}.annotations")
    causes += pod_spec_causes(spec, f"{path}.spec", of_pod=False)
    if dig(found, "spec", "ephemeralContainers"):
        causes.append(forbidden(f"{path}.spec.ephemeralContainers", "ephemeral containers not allowed in pod template"))
    return causes


def pod_spec_causes(spec: Obj, path: str, pod_name: str = "", *, of_pod: bool = True) -> list[FieldCause]:
    """``of_pod``: of a Pod itself, where a few rules are stricter than for templates."""
    causes, volumes = volume_causes(spec, path, pod_name, of_pod=of_pod)
    claims = frozenset(str(claim.get("name")) for _, claim in each(spec, "resourceClaims", path))
    causes += _claim_causes(spec, path)
    host_users = spec.get("hostUsers") is not False
    grace_s, restart = spec.get("terminationGracePeriodSeconds"), str(spec.get("restartPolicy") or "")
    causes += container_list_causes(spec, path, Surroundings(volumes, claims, restart, grace_s, host_users))
    causes += pod_resource_causes(spec, path, claims)
    causes += _host_network_causes(spec, path, of_pod=of_pod)
    causes += one_of(spec, path, "restartPolicy", RESTART_POLICIES)
    causes += one_of(spec, path, "dnsPolicy", DNS_POLICIES)
    causes += label_causes(spec.get("nodeSelector"), f"{path}.nodeSelector")
    causes += pod_security_causes(spec, path)
    causes += affinity_causes(spec.get("affinity"), f"{path}.affinity")
    causes += _dns_causes(spec, path) + _gate_causes(spec, path) + spread_causes(spec, path)
    causes += os_causes(spec, path) + _user_namespace_causes(spec, path) + _hostname_causes(spec, path)
    causes += _named_causes(spec, path) + toleration_causes(spec, path) + _alias_causes(spec, path)
    deadline = spec.get("activeDeadlineSeconds")
    if isinstance(deadline, int) and not 1 <= deadline <= MAX_INT32:
        why = f"must be between 1 and {MAX_INT32}, inclusive"
        causes.append(invalid(f"{path}.activeDeadlineSeconds", deadline, why))
    policy = spec.get("preemptionPolicy")
    if policy is not None and policy not in PREEMPTION_POLICIES:
        causes.append(unsupported(f"{path}.preemptionPolicy", policy, PREEMPTION_POLICIES))
    for name, amount in sorted(amounts(spec.get("overhead"))):
        where = f"{path}.overhead[{name}]"
        causes += container_name_causes(name, where) + quantity_causes(name, amount, where)
    return causes + _file_key_causes(spec, path)


_CHECKED_NAMES: tuple[tuple[str, Callable[[str], list[str]]], ...] = (
    ("serviceAccountName", names.dns_subdomain),
    ("nodeName", names.dns_subdomain),
    ("hostname", names.dns_label),
    ("subdomain", names.dns_label),
    ("priorityClassName", names.dns_subdomain),
    ("runtimeClassName", names.dns_subdomain),
)


def _named_causes(spec: Obj, path: str) -> list[FieldCause]:
    return [
        invalid(f"{path}.{key}", spec[key], problem)
        for key, check in _CHECKED_NAMES
        if spec.get(key)
        for problem in check(str(spec[key]))
    ]


def _claim_causes(spec: Obj, path: str) -> list[FieldCause]:
    causes: list[FieldCause] = []
    seen: set[str] = set()
    for at, claim in each(spec, "resourceClaims", path):
        name = str(claim.get("name") or "")
        if not name:
            causes.append(required(f"{at}.name"))
        elif name in seen:
            causes.append(duplicate(f"{at}.name", name))
        else:
            causes += [invalid(f"{at}.name", name, problem) for problem in names.dns_label(name)]
            seen.add(name)
        keys = [key for key in ("resourceClaimName", "resourceClaimTemplateName") if claim.get(key) is not None]
        if len(keys) > 1:
            why = "at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified"
            causes.append(invalid(at, claim, why))
        if not keys:
            why = "must specify one of: `resourceClaimName`, `resourceClaimTemplateName`"
            causes.append(invalid(at, claim, why))
        for key in keys:
            causes += [invalid(f"{at}.{key}", claim[key], problem) for problem in names.dns_subdomain(claim[key])]
    return causes


def _host_network_causes(spec: Obj, path: str, *, of_pod: bool) -> list[FieldCause]:
    if not spec.get("hostNetwork"):
        return []
    why = "must match `containerPort` when `hostNetwork` is true"
    return [
        invalid(f"{at}.hostPort", port.get("hostPort") or 0, why)
        for where, container in each(spec, "containers", path)
        for at, port in each(container, "ports", where)
        if (of_pod or port.get("hostPort")) and (port.get("hostPort") or 0) != port.get("containerPort")
    ]


def _user_namespace_causes(spec: Obj, path: str) -> list[FieldCause]:
    if spec.get("hostUsers") is not False:
        return []
    why = "when `hostUsers` is false"
    named = (("hostNetwork", "hostNetwork"), ("hostPID", "HostPID"), ("hostIPC", "HostIPC"))
    causes = [forbidden(f"{path}.{shown}", why) for key, shown in named if spec.get(key)]
    return causes + [forbidden(f"{at}.volumeDevices", why) for at, one in visit(spec, path) if one.get("volumeDevices")]


def _hostname_causes(spec: Obj, path: str) -> list[FieldCause]:
    name, where = spec.get("hostnameOverride"), f"{path}.hostnameOverride"
    if name is None:
        return []
    causes = [
        forbidden(where, f"may not be specified when {key} is true")
        for key in ("setHostnameAsFQDN", "hostNetwork")
        if spec.get(key)
    ]
    if len(name) > MAX_HOSTNAME_BYTES:
        causes.append(too_long(where, MAX_HOSTNAME_BYTES))
    return causes + [invalid(where, name, problem) for problem in names.dns_subdomain(name)]


def _alias_causes(spec: Obj, path: str) -> list[FieldCause]:
    causes: list[FieldCause] = []
    for where, alias in each(spec, "hostAliases", path):
        causes += legacy_ip_causes(str(alias.get("ip") or ""), f"{where}.ip")
        for index, host in enumerate(alias.get("hostnames") or ()):
            at = f"{where}.hostnames[{index}]"
            causes += [invalid(at, host, problem) for problem in names.dns_subdomain(str(host))]
    return causes


def _gate_causes(spec: Obj, path: str) -> list[FieldCause]:
    causes: list[FieldCause] = []
    for at, gate in each(spec, "readinessGates", path):
        kind = str(gate.get("conditionType") or "")
        causes += [invalid(f"{at}.conditionType", kind, problem) for problem in names.qualified_name(kind)]
    seen: set[str] = set()
    for at, gate in each(spec, "schedulingGates", path):
        name = str(gate.get("name") or "")
        causes += [invalid(at, name, problem) for problem in names.qualified_name(name)]
        if name in seen:
            causes.append(duplicate(at, name))
        seen.add(name)
    return causes


def _dns_causes(spec: Obj, path: str) -> list[FieldCause]:
    """``dnsPolicy: None`` leaves everything to ``dnsConfig``, which must then name a server."""
    config, where = spec.get("dnsConfig"), f"{path}.dnsConfig"
    if spec.get("dnsPolicy") == "None" and not isinstance(config, dict):
        return [required(where, "must provide `dnsConfig` when `dnsPolicy` is None")]
    if not isinstance(config, dict):
        return []
    servers, searches = config.get("nameservers") or [], config.get("searches") or []
    if spec.get("dnsPolicy") == "None" and not servers:
        why = "must provide at least one DNS nameserver when `dnsPolicy` is None"
        return [required(f"{where}.nameservers", why)]
    causes: list[FieldCause] = []
    if len(servers) > MAX_DNS_SERVERS:
        why = f"must not have more than {MAX_DNS_SERVERS} nameservers"
        causes.append(invalid(f"{where}.nameservers", servers, why))
    for index, server in enumerate(servers):
        causes += legacy_ip_causes(str(server), f"{where}.nameservers[{index}]")
    if len(searches) > MAX_DNS_SEARCHES:
        why = f"must not have more than {MAX_DNS_SEARCHES} search paths"
        causes.append(invalid(f"{where}.searches", searches, why))
    if len(" ".join(searches)) > MAX_DNS_SEARCH_BYTES:
        why = f"must not have more than {MAX_DNS_SEARCH_BYTES} characters (including spaces) in the search list"
        causes.append(invalid(f"{where}.searches", searches, why))
    for index, search in enumerate(searches):
        name = search.removesuffix(".") if search != "." else "a"
        causes += [invalid(f"{where}.searches[{index}]", name, one) for one in names.dns_subdomain_underscores(name)]
    for at, option in each(config, "options", where):
        causes += [] if option.get("name") else [required(at, "must not be empty")]
    return causes


def _file_key_causes(spec: Obj, path: str) -> list[FieldCause]:
    """Files with variables are written by other containers of the pod, into an emptyDir."""
    causes: list[FieldCause] = []
    volumes = {volume.get("name"): volume for _, volume in each(spec, "volumes", path)}
    for where, container in visit(spec, path):
        for at, variable in each(container, "env", where):
            reference = dig(variable, "valueFrom", "fileKeyRef")
            if not isinstance(reference, dict):
                continue
            name, field = reference.get("volumeName") or "", f"{at}.valueFrom.fileKeyRef.volumeName"
            if name not in volumes:
                causes.append(not_found(field, name))
            elif volumes[name].get("emptyDir") is None:
                causes.append(invalid(field, name, "referenced volume must be of type emptyDir"))
    return causes
