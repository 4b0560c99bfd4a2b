"""Pod specs, alone or as templates: volumes, scheduling, policies.

Called by the strategies of Pods and of everything that makes Pods. A spec and its path come in, causes leave. Source:
Kubernetes ``pkg/apis/core/validation`` (ValidatePodSpec, ValidatePodTemplateSpec).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from syncline.cluster.kinds import names
from syncline.cluster.kinds.causes import duplicate, forbidden, invalid, required, unsupported
from syncline.cluster.kinds.containers import container_list_causes, relative_path_causes, resource_causes
from syncline.cluster.kinds.fields import each, label_selector_causes, one_of
from syncline.cluster.kinds.metadata import annotation_causes, label_causes
from syncline.kube.errors import FieldCause
from syncline.kube.objects import Obj, dig

__all__ = ["pod_spec_causes", "pod_template_causes", "template_labels", "template_metadata_causes"]

RESTART_POLICIES = ("Always", "OnFailure", "Never")
DNS_POLICIES = ("ClusterFirstWithHostNet", "ClusterFirst", "Default", "None")
EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
MAX_INT32 = 2**31 - 1
MAX_DNS_SERVERS = 3
MAX_DNS_SEARCHES = 32
IP_TEXT = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"
VOLUME_SOURCES = (
    "emptyDir",
    "hostPath",
    "gitRepo",
    "gcePersistentDisk",
    "awsElasticBlockStore",
    "secret",
    "nfs",
    "iscsi",
    "glusterfs",
    "flexVolume",
    "persistentVolumeClaim",
    "rbd",
    "cinder",
    "cephfs",
    "flocker",
    "downwardAPI",
    "fc",
    "configMap",
    "azureFile",
    "vsphereVolume",
    "quobyte",
    "azureDisk",
    "photonPersistentDisk",
    "storageos",
    "projected",
    "portworxVolume",
    "scaleIO",
    "csi",
    "ephemeral",
    "image",
)
"""In the order in which Kubernetes looks at them: the second one found is the one too many."""


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
    causes = template_metadata_causes(found, path)
    causes += pod_spec_causes(found.get("spec") or {}, f"{path}.spec")
    if dig(found, "spec", "ephemeralContainers"):
        causes.append(forbidden(f"{path}.spec.ephemeralContainers", "ephemeral containers not allowed in pod template"))
    return causes


def pod_spec_causes(spec: Obj, path: str) -> list[FieldCause]:
    causes, volumes = _volume_causes(spec, path)
    causes += container_list_causes(spec, path, volumes)
    causes += one_of(spec, path, "restartPolicy", RESTART_POLICIES)
    causes += one_of(spec, path, "dnsPolicy", DNS_POLICIES)
    causes += label_causes(spec.get("nodeSelector"), f"{path}.nodeSelector")
    causes += resource_causes(spec.get("resources"), f"{path}.resources")
    causes += _named_causes(spec, path)
    deadline = spec.get("activeDeadlineSeconds")
    if isinstance(deadline, int) and not 1 <= deadline <= MAX_INT32:
        why = f"must be between 1 and {MAX_INT32}, inclusive"
        causes.append(invalid(f"{path}.activeDeadlineSeconds", deadline, why))
    causes += _host_causes(spec, path) + _dns_causes(spec, path)
    causes += _toleration_causes(spec, path)
    causes += _affinity_causes(spec.get("affinity"), f"{path}.affinity")
    return causes + _spread_causes(spec, path)


_CHECKED_NAMES: tuple[tuple[str, Callable[[str], list[str]]], ...] = (
    ("serviceAccountName", names.dns_subdomain),
    ("nodeName", names.dns_subdomain),
    ("hostname", names.dns_label),
    ("subdomain", names.dns_label),
    ("priorityClassName", names.dns_subdomain),
    ("runtimeClassName", names.dns_subdomain),
    ("schedulerName", names.qualified_name),
)


def _named_causes(spec: Obj, path: str) -> list[FieldCause]:
    return [
        invalid(f"{path}.{key}", spec[key], problem)
        for key, check in _CHECKED_NAMES
        if spec.get(key)
        for problem in check(str(spec[key]))
    ]


def _host_causes(spec: Obj, path: str) -> list[FieldCause]:
    causes: list[FieldCause] = []
    if spec.get("shareProcessNamespace") and spec.get("hostPID"):
        why = "ShareProcessNamespace and HostPID cannot both be enabled"
        causes.append(invalid(f"{path}.shareProcessNamespace", True, why))
    for where, alias in each(spec, "hostAliases", path):
        ip = str(alias.get("ip", ""))
        if not names.is_ip(ip):
            causes.append(invalid(f"{where}.ip", ip, IP_TEXT))
        for host in alias.get("hostnames") or ():
            causes += [invalid(f"{where}.hostnames", host, problem) for problem in names.dns_subdomain(str(host))]
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
    if len(searches) > MAX_DNS_SEARCHES:
        why = f"must not have more than {MAX_DNS_SEARCHES} search paths"
        causes.append(invalid(f"{where}.searches", searches, why))
    for index, server in enumerate(servers):
        if not names.is_ip(str(server)):
            causes.append(invalid(f"{where}.nameservers[{index}]", server, IP_TEXT))
    for at, option in each(config, "options", where):
        causes += [] if option.get("name") else [required(at, "must not be empty")]
    return causes


def _volume_causes(spec: Obj, path: str) -> tuple[list[FieldCause], set[str]]:
    """Causes, and the names of the volumes that mounts may use."""
    causes: list[FieldCause] = []
    good: set[str] = set()
    for where, volume in each(spec, "volumes", path):
        name = volume.get("name") or ""
        found = _volume_source_causes(volume, where)
        if not name:
            found.append(required(f"{where}.name"))
        else:
            found += [invalid(f"{where}.name", name, problem) for problem in names.dns_label(str(name))]
        if name in good:
            found.append(duplicate(f"{where}.name", name))
        if not found:
            good.add(str(name))
        causes += found
    return causes, good


def _volume_source_causes(volume: Obj, where: str) -> list[FieldCause]:
    kinds = [kind for kind in VOLUME_SOURCES if volume.get(kind) is not None]
    if not kinds:
        return [required(where, "must specify a volume type")]
    causes = [forbidden(f"{where}.{kind}", "may not specify more than 1 volume type") for kind in kinds[1:]]
    kind, source = kinds[0], volume[kinds[0]]
    needed = {"secret": "secretName", "configMap": "name", "persistentVolumeClaim": "claimName", "hostPath": "path"}
    if kind in needed and not source.get(needed[kind]):
        causes.append(required(f"{where}.{kind}.{needed[kind]}"))
    for at, item in each(source, "items", f"{where}.{kind}"):
        causes += [required(f"{at}.key")] if not item.get("key") and kind in ("secret", "configMap") else []
        causes += [required(f"{at}.path")] if not item.get("path") else []
        causes += relative_path_causes(item.get("path"), f"{at}.path")
    mode = source.get("defaultMode")
    if isinstance(mode, int) and not 0 <= mode <= 0o777:
        why = "must be a number between 0 and 0777 (octal), both inclusive"
        causes.append(invalid(f"{where}.{kind}.defaultMode", mode, why))
    return causes


def _toleration_causes(spec: Obj, path: str) -> list[FieldCause]:
    causes: list[FieldCause] = []
    for where, toleration in each(spec, "tolerations", path):
        key, operator = toleration.get("key") or "", toleration.get("operator") or ""
        if key:
            causes += [invalid(f"{where}.key", key, problem) for problem in names.qualified_name(key)]
        elif operator != "Exists":
            why = 'operator must be Exists when `key` is empty, which means "match all values and all keys"'
            causes.append(invalid(f"{where}.operator", operator, why))
        if toleration.get("tolerationSeconds") is not None and toleration.get("effect") != "NoExecute":
            why = "effect must be 'NoExecute' when `tolerationSeconds` is set"
            causes.append(invalid(f"{where}.effect", toleration.get("effect") or "", why))
        causes += _toleration_value_causes(toleration, where, operator)
        if toleration.get("effect") and toleration["effect"] not in EFFECTS:
            causes.append(unsupported(f"{where}.effect", toleration["effect"], EFFECTS))
    return causes


def _toleration_value_causes(toleration: Obj, where: str, operator: str) -> list[FieldCause]:
    value = toleration.get("value") or ""
    match operator:
        case "" | "Equal":
            return [invalid(f"{where}.operator", value, problem) for problem in names.label_value(str(value))]
        case "Exists":
            why = "value must be empty when `operator` is 'Exists'"
            return [invalid(f"{where}.operator", toleration, why)] if value else []
        case _:
            return [unsupported(f"{where}.operator", operator, ("Equal", "Exists"))]


def _affinity_causes(affinity: Any, path: str) -> list[FieldCause]:
    if not isinstance(affinity, dict):
        return []
    node = affinity.get("nodeAffinity") or {}
    causes = _node_affinity_causes(node, f"{path}.nodeAffinity")
    for kind in ("podAffinity", "podAntiAffinity"):
        found = affinity.get(kind) or {}
        where = f"{path}.{kind}"
        for at, term in each(found, "requiredDuringSchedulingIgnoredDuringExecution", where):
            causes += _pod_term_causes(term, at)
        for at, weighted in each(found, "preferredDuringSchedulingIgnoredDuringExecution", where):
            causes += _weight_causes(weighted, at)
            causes += _pod_term_causes(weighted.get("podAffinityTerm") or {}, f"{at}.podAffinityTerm")
    return causes


def _weight_causes(weighted: Obj, at: str) -> list[FieldCause]:
    weight = weighted.get("weight") or 0
    return [] if 1 <= weight <= 100 else [invalid(f"{at}.weight", weight, "must be in the range 1-100")]


def _pod_term_causes(term: Obj, at: str) -> list[FieldCause]:
    causes = label_selector_causes(term.get("labelSelector"), f"{at}.labelSelector")
    for name in term.get("namespaces") or ():
        causes += [invalid(f"{at}.namespace", name, problem) for problem in names.dns_label(str(name))]
    key = str(term.get("topologyKey") or "")
    if not key:
        causes.append(required(f"{at}.topologyKey", "can not be empty"))
    return causes + [invalid(f"{at}.topologyKey", key, problem) for problem in names.qualified_name(key)]


def _node_affinity_causes(node: Obj, path: str) -> list[FieldCause]:
    causes: list[FieldCause] = []
    wanted = node.get("requiredDuringSchedulingIgnoredDuringExecution")
    if isinstance(wanted, dict):
        where = f"{path}.requiredDuringSchedulingIgnoredDuringExecution"
        if not wanted.get("nodeSelectorTerms"):
            causes.append(required(f"{where}.nodeSelectorTerms", "must have at least one node selector term"))
        for at, term in each(wanted, "nodeSelectorTerms", where):
            causes += _node_term_causes(term, at)
    for at, weighted in each(node, "preferredDuringSchedulingIgnoredDuringExecution", path):
        causes += _weight_causes(weighted, at)
        causes += _node_term_causes(weighted.get("preference") or {}, f"{at}.preference")
    return causes


def _node_term_causes(term: Obj, at: str) -> list[FieldCause]:
    causes: list[FieldCause] = []
    for where, requirement in each(term, "matchExpressions", at):
        operator, values = requirement.get("operator", ""), requirement.get("values") or []
        if operator in ("In", "NotIn") and not values:
            causes.append(required(f"{where}.values", "must be specified when `operator` is 'In' or 'NotIn'"))
        elif operator in ("Exists", "DoesNotExist") and values:
            why = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
            causes.append(forbidden(f"{where}.values", why))
        elif operator in ("Gt", "Lt") and len(values) != 1:
            why = "must be specified single value when `operator` is 'Lt' or 'Gt'"
            causes.append(required(f"{where}.values", why))
        elif operator not in ("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"):
            causes.append(invalid(f"{where}.operator", operator, "not a valid selector operator"))
        key = str(requirement.get("key", ""))
        causes += [invalid(f"{where}.key", key, problem) for problem in names.qualified_name(key)]
    return causes


def _spread_causes(spec: Obj, path: str) -> list[FieldCause]:
    causes: list[FieldCause] = []
    for where, spread in each(spec, "topologySpreadConstraints", path):
        if (spread.get("maxSkew") or 0) <= 0:
            causes.append(invalid(f"{where}.maxSkew", spread.get("maxSkew") or 0, "must be greater than zero"))
        if not spread.get("topologyKey"):
            causes.append(required(f"{where}.topologyKey", "can not be empty"))
        action = spread.get("whenUnsatisfiable") or ""
        if action not in ("DoNotSchedule", "ScheduleAnyway"):
            causes.append(unsupported(f"{where}.whenUnsatisfiable", action, ("DoNotSchedule", "ScheduleAnyway")))
        causes += label_selector_causes(spread.get("labelSelector"), f"{where}.labelSelector")
    return causes
