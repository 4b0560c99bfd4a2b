"""Pod specs, in pods or templates: policies, names, gates, DNS, claims.

The strategies of Pods and of all kinds with pod templates call it. Source: Kubernetes ``pkg/apis/core/validation``
(ValidatePodSpec, ValidatePodTemplateSpec).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from syncline.cluster.validation.engine import names
from syncline.cluster.validation.engine import rules as r
from syncline.cluster.validation.engine.addresses import legacy_ip_causes
from syncline.cluster.validation.engine.causes import forbidden, invalid, not_found, required, too_long
from syncline.cluster.validation.engine.fields import each
from syncline.cluster.validation.engine.metadata import annotation_causes, label_causes
from syncline.cluster.validation.pods.containers import Surroundings, container_list_causes
from syncline.cluster.validation.pods.placement import affinity_causes, spread_causes, toleration_causes
from syncline.cluster.validation.pods.podannotations import pod_annotation_causes
from syncline.cluster.validation.pods.resources import container_name_causes, pod_resource_causes, quantity_causes
from syncline.cluster.validation.pods.security import os_causes, pod_security_causes, visit
from syncline.cluster.validation.storage.volumes import volume_causes
from syncline.kube.errors import FieldCause
from syncline.kube.objects import Obj, dig
from syncline.kube.scheduling.podresources import amounts

MAX_DNS_SERVERS, MAX_DNS_SEARCHES, MAX_DNS_SEARCH_BYTES = 3, 32, 2048
MAX_HOSTNAME_BYTES = 64


def template_labels(spec: Obj) -> dict[str, str] | None:
    """Return the labels of the template in a workload's spec, or None."""
    labels = dig(spec, "template", "metadata", "labels")
    return labels if isinstance(labels, dict) else None


def template_metadata_causes(template: Any, path: str) -> list[FieldCause]:
    """Validate labels and annotations of a pod template."""
    meta = dig(template, "metadata", default={})
    causes = label_causes(meta.get("labels"), f"{path}.labels")
    return causes + annotation_causes(meta.get("annotations"), f"{path}.annotations")


def pod_template_causes(template: Any, path: str) -> list[FieldCause]:
    """Validate a pod template: labels, annotations and spec."""
    found = template if isinstance(template, dict) else {}
    spec = found.get("spec") or {}
    causes = template_metadata_causes(found, path)
    causes += pod_annotation_causes(dig(found, "metadata", "annotations"), spec, f"{path}.annotations")
    causes += pod_spec_causes(spec, f"{path}.spec", of_pod=False)
    if spec.get("ephemeralContainers"):
        causes.append(forbidden(f"{path}.spec.ephemeralContainers", "ephemeral containers not allowed in pod template"))
    return causes


def pod_spec_causes(spec: Obj, path: str, pod_name: str = "", *, of_pod: bool = True) -> list[FieldCause]:
    """Validate a pod spec. ``of_pod``: the spec of a Pod, for which a few rules are stricter than for templates."""
    causes, volumes = volume_causes(spec, path, pod_name, of_pod=of_pod)
    claims = frozenset(str(claim.get("name")) for claim in r.list_of(spec, "resourceClaims"))
    causes += _CLAIMS(spec, path)
    host_users = spec.get("hostUsers") is not False
    grace_s, restart = spec.get("terminationGracePeriodSeconds"), str(spec.get("restartPolicy") or "")
    causes += container_list_causes(spec, path, Surroundings(volumes, claims, restart, grace_s, host_users))
    causes += pod_resource_causes(spec, path, claims)
    causes += _host_network_causes(spec, path, of_pod=of_pod)
    return causes + _REST(spec, path)


def _one_claim(claim: Obj, path: str) -> Iterator[FieldCause]:
    keys = [key for key in ("resourceClaimName", "resourceClaimTemplateName") if claim.get(key) is not None]
    if len(keys) > 1:
        why = "at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified"
        yield invalid(path, claim, why)
    if not keys:
        yield invalid(path, claim, "must specify one of: `resourceClaimName`, `resourceClaimTemplateName`")
    for key in keys:
        yield from r.subdomain(claim[key], f"{path}.{key}")


_CLAIMS = r.each(
    "resourceClaims", r.needs("name"), r.unique("name", blank=True, first=r.filled("name", r.label)), _one_claim
)


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
    named = (("hostNetwork", "hostNetwork"), ("hostPID", "HostPID"), ("hostIPC", "HostIPC"))
    keys = [f"{path}.{shown}" for key, shown in named if spec.get(key)]
    keys += [f"{at}.volumeDevices" for at, one in visit(spec, path) if one.get("volumeDevices")]
    return [forbidden(key, "when `hostUsers` is false") for key in keys]


def _hostname_causes(spec: Obj, path: str) -> Iterator[FieldCause]:
    name, where = spec.get("hostnameOverride"), f"{path}.hostnameOverride"
    if name is None:
        return
    for key in ("setHostnameAsFQDN", "hostNetwork"):
        if spec.get(key):
            yield forbidden(where, f"may not be specified when {key} is true")
    if len(name) > MAX_HOSTNAME_BYTES:
        yield too_long(where, MAX_HOSTNAME_BYTES)
    yield from r.subdomain(name, where)


def _gate_name(gate: Obj, path: str) -> Iterable[FieldCause]:
    return r.qualified(str(gate.get("name") or ""), path)


def _dns_causes(spec: Obj, path: str) -> list[FieldCause]:
    """Require a server in ``dnsConfig`` with ``dnsPolicy: None``."""
    config: Any = spec.get("dnsConfig")
    where = f"{path}.dnsConfig"
    if spec.get("dnsPolicy") == "None" and config is None:
        return [required(where, "must provide `dnsConfig` when `dnsPolicy` is None")]
    if spec.get("dnsPolicy") == "None" and not config.get("nameservers"):
        why = "must provide at least one DNS nameserver when `dnsPolicy` is None"
        return [required(f"{where}.nameservers", why)]
    return [] if config is None else _DNS_CONFIG(config, where)


def _search(search: str, path: str) -> list[FieldCause]:
    name = search.removesuffix(".") if search != "." else "a"
    return [invalid(path, name, one) for one in names.dns_subdomain_underscores(name)]


def _at_most(count: int, things: str) -> r.Rule:
    return r.must(lambda listed: len(listed) <= count, f"must not have more than {count} {things}")


_DNS_CONFIG = r.every(
    r.filled("nameservers", _at_most(MAX_DNS_SERVERS, "nameservers")),
    r.items("nameservers", legacy_ip_causes),
    r.filled(
        "searches",
        _at_most(MAX_DNS_SEARCHES, "search paths"),
        r.must(
            lambda searches: len(" ".join(searches)) <= MAX_DNS_SEARCH_BYTES,
            f"must not have more than {MAX_DNS_SEARCH_BYTES} characters (including spaces) in the search list",
        ),
    ),
    r.items("searches", _search),
    r.each("options", r.demand(lambda option: not option.get("name"), "", "must not be empty")),
)


def _overhead_causes(overhead: Obj, path: str) -> Iterator[FieldCause]:
    for name, amount in sorted(amounts(overhead)):
        where = f"{path}[{name}]"
        yield from container_name_causes(name, where)
        yield from quantity_causes(name, amount, where)


def _file_key_causes(spec: Obj, path: str) -> Iterator[FieldCause]:
    """Validate files with variables, which other containers of the pod write to an emptyDir."""
    volumes = {volume.get("name"): volume for volume in r.list_of(spec, "volumes")}
    for where, container in visit(spec, path):
        for at, variable in each(container, "env", where):
            reference = dig(variable, "valueFrom", "fileKeyRef")
            if not isinstance(reference, dict):
                continue
            name, field = reference.get("volumeName") or "", f"{at}.valueFrom.fileKeyRef.volumeName"
            if name not in volumes:
                yield not_found(field, name)
            elif volumes[name].get("emptyDir") is None:
                yield invalid(field, name, "referenced volume must be of type emptyDir")


_REST = r.every(
    r.need("restartPolicy", r.choice("Always", "OnFailure", "Never")),
    r.need("dnsPolicy", r.choice("ClusterFirstWithHostNet", "ClusterFirst", "Default", "None")),
    r.field("nodeSelector", label_causes),
    pod_security_causes,
    r.field("affinity", affinity_causes),
    _dns_causes,
    r.each("readinessGates", r.text("conditionType", r.qualified)),
    r.each("schedulingGates", _gate_name, r.unique("name", at="")),
    spread_causes,
    os_causes,
    _user_namespace_causes,
    _hostname_causes,
    r.filled("serviceAccountName", r.subdomain),
    r.filled("nodeName", r.subdomain),
    r.filled("hostname", r.label),
    r.filled("subdomain", r.label),
    r.filled("priorityClassName", r.subdomain),
    r.filled("runtimeClassName", r.subdomain),
    toleration_causes,
    r.each("hostAliases", r.text("ip", legacy_ip_causes), r.items("hostnames", r.subdomain)),
    r.field("activeDeadlineSeconds", r.within(1, 2**31 - 1)),
    r.field("preemptionPolicy", r.choice("PreemptLowerPriority", "Never")),
    r.field("overhead", _overhead_causes),
    _file_key_causes,
)
"""Rules after those of containers and resources."""
