"""Warn about parts of a pod spec that Kubernetes accepts but discourages.

The strategies of Pods and of kinds with pod templates call it after defaulting; it returns the texts of Warning
headers. Source: Kubernetes ``pkg/api/pod/warnings.go`` and ``pkg/api/node/util.go``.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from syncline.cluster.validation.engine import names
from syncline.cluster.validation.engine.addresses import ip_warnings
from syncline.cluster.validation.engine.fields import each
from syncline.cluster.validation.pods.placement import PREFERRED, REQUIRED
from syncline.cluster.validation.pods.podannotations import APPARMOR, SECCOMP_CONTAINER, SECCOMP_POD, apparmor_field
from syncline.cluster.validation.pods.security import visit
from syncline.kube.objects import Obj, dig
from syncline.kube.text.quantity import QuantityError, parse_quantity

OLD_NODE_LABELS = {
    "beta.kubernetes.io/arch": 'deprecated since v1.14; use "kubernetes.io/arch" instead',
    "beta.kubernetes.io/instance-type": 'deprecated since v1.17; use "node.kubernetes.io/instance-type" instead',
    "beta.kubernetes.io/os": 'deprecated since v1.14; use "kubernetes.io/os" instead',
    "failure-domain.beta.kubernetes.io/region": 'deprecated since v1.17; use "topology.kubernetes.io/region" instead',
    "failure-domain.beta.kubernetes.io/zone": 'deprecated since v1.17; use "topology.kubernetes.io/zone" instead',
    "app.kubernetes.io/created-by": "deprecated since v1.9",
    "scheduler.alpha.kubernetes.io/preferAvoidPods": "deprecated since v1.22; use Taints and Tolerations instead",
    "node-role.kubernetes.io/master": 'use "node-role.kubernetes.io/control-plane" instead',
}
OLD_ANNOTATIONS = {
    "scheduler.alpha.kubernetes.io/critical-pod": (
        'non-functional in v1.16+; use the "priorityClassName" field instead'
    ),
    "security.alpha.kubernetes.io/sysctls": 'non-functional in v1.11+; use the "sysctls" field instead',
    "security.alpha.kubernetes.io/unsafe-sysctls": 'non-functional in v1.11+; use the "sysctls" field instead',
}
OLD_VOLUMES = (
    ("photonPersistentDisk", "photonPersistentDisk", "deprecated in v1.11, non-functional in v1.16+"),
    ("gitRepo", "gitRepo", "deprecated in v1.11, and disabled by default in v1.33+"),
    ("scaleIO", "scaleIO", "deprecated in v1.16, non-functional in v1.22+"),
    ("flocker", "flocker", "deprecated in v1.22, non-functional in v1.25+"),
    ("storageos", "storageOS", "deprecated in v1.22, non-functional in v1.25+"),
    ("quobyte", "quobyte", "deprecated in v1.22, non-functional in v1.25+"),
    ("glusterfs", "glusterfs", "deprecated in v1.25, non-functional in v1.26+"),
    ("cephfs", "cephfs", "deprecated in v1.28, non-functional in v1.31+"),
    ("rbd", "rbd", "deprecated in v1.28, non-functional in v1.31+"),
)
"""Field, its name in warnings, and the warning."""
NO_SELECTOR = "a null labelSelector results in matching no pod"


def template_warnings(template: Any, path: str) -> list[str]:
    """Return warnings about a pod template at ``path``."""
    return _warnings(template, f"{path}.", of_pod=False) if isinstance(template, dict) else []


def pod_name_warnings(obj: Obj) -> list[str]:
    """Return warnings about an object's name that its pods' names are derived from."""
    problems = names.dns_label(str(dig(obj, "metadata", "name") or ""))
    if not problems:
        return []
    listed = " ".join(problems)
    return [
        "metadata.name: this is used in Pod names and hostnames, which can result in surprising behavior; a DNS label "
        f"is recommended: [{listed}]"
    ]


def pod_warnings(pod: Obj) -> list[str]:
    """Return warnings about a Pod."""
    return _warnings(pod, "", of_pod=True)


def _warnings(holder: Obj, prefix: str, *, of_pod: bool) -> list[str]:
    spec: Obj = holder.get("spec") or {}
    annotations: Obj = dig(holder, "metadata", "annotations") or {}
    path = f"{prefix}spec"
    warnings = _placement_warnings(spec, path)
    warnings += [
        f"{prefix}metadata.annotations[{key}]: {why}" for key, why in OLD_ANNOTATIONS.items() if key in annotations
    ]
    warnings += _volume_warnings(spec, path) + _overlap_warnings(spec) + _list_warnings(spec, path)
    warnings += fraction_warnings(spec.get("overhead"), f"{path}.overhead")
    warnings += _profile_warnings(spec, annotations, f"{prefix}metadata.annotations", of_pod=of_pod)
    for where, container in visit(spec, path):
        warnings += _resource_warnings(container.get("resources"), f"{where}.resources")
        warnings += _env_warnings(container, where)
    warnings += _port_warnings(spec, path) + _port_name_warnings(spec, path)
    if (spec.get("terminationGracePeriodSeconds") or 0) < 0:
        why = "must be >= 0; negative values are invalid and will be treated as 1"
        warnings.append(f"{path}.terminationGracePeriodSeconds: {why}")
    warnings += _affinity_warnings(spec, path)
    for index, server in enumerate(dig(spec, "dnsConfig", "nameservers") or ()):
        warnings += ip_warnings(str(server), f"{path}.dnsConfig.nameservers[{index}]")
    for where, alias in each(spec, "hostAliases", path):
        warnings += ip_warnings(str(alias.get("ip") or ""), f"{where}.ip")
    return warnings


# --- placement -----------------------------------------------------------------------------------------------------


def _placement_warnings(spec: Obj, path: str) -> list[str]:
    warnings = [
        f"{path}.nodeSelector[{label}]: {why}"
        for label, why in OLD_NODE_LABELS.items()
        if label in (spec.get("nodeSelector") or {})
    ]
    node, where = dig(spec, "affinity", "nodeAffinity") or {}, f"{path}.affinity.nodeAffinity"
    for at, term in each(node.get(REQUIRED), "nodeSelectorTerms", f"{where}.{REQUIRED}"):
        warnings += node_term_warnings(term, at)
    for at, weighted in each(node, PREFERRED, where):
        warnings += node_term_warnings(weighted.get("preference") or {}, f"{at}.preference", values=True)
    for at, spread in each(spec, "topologySpreadConstraints", path):
        key = spread.get("topologyKey")
        if key in OLD_NODE_LABELS:
            warnings.append(f"{at}.topologyKey: {key} is {OLD_NODE_LABELS[key]}")
        if spread.get("labelSelector") is None:
            warnings.append(f"{at}.labelSelector: {NO_SELECTOR}")
    return warnings


def node_term_warnings(term: Obj, at: str, *, values: bool = False) -> list[str]:
    """Return warnings about deprecated labels in a node term, and values that no label can have."""
    warnings: list[str] = []
    for where, requirement in each(term, "matchExpressions", at):
        key = str(requirement.get("key") or "")
        if key in OLD_NODE_LABELS:
            warnings.append(f"{where}.key: {key} is {OLD_NODE_LABELS[key]}")
        for index, value in enumerate(requirement.get("values") or () if values else ()):
            warnings += [f"{where}.values[{index}]: {value} is invalid, {one}" for one in names.label_value(str(value))]
    return warnings


def _affinity_warnings(spec: Obj, path: str) -> list[str]:
    warnings: list[str] = []
    for kind in ("podAffinity", "podAntiAffinity"):
        found, where = dig(spec, "affinity", kind) or {}, f"{path}.affinity.{kind}"
        for at, term in each(found, REQUIRED, where):
            if term.get("labelSelector") is None:
                warnings.append(f"{at}.labelSelector: {NO_SELECTOR}")
        for at, weighted in each(found, PREFERRED, where):
            if dig(weighted, "podAffinityTerm", "labelSelector") is None:
                warnings.append(f"{at}.podAffinityTerm.labelSelector: {NO_SELECTOR}")
    return warnings


# --- volumes and lists ---------------------------------------------------------------------------------------------


def _volume_warnings(spec: Obj, path: str) -> list[str]:
    warnings: list[str] = []
    for where, volume in each(spec, "volumes", path):
        for kind, shown, why in OLD_VOLUMES:
            if volume.get(kind) is not None:
                warnings.append(f"{where}.{shown}: {why}")
        template = dig(volume, "ephemeral", "volumeClaimTemplate", "spec", "resources")
        at = f"{where}.ephemeral.volumeClaimTemplate.spec.resources"
        for key in ("requests", "limits"):
            warnings += fraction_warnings((template or {}).get(key), f"{at}.{key}", "storage")
    return warnings


def _overlap_warnings(spec: Obj) -> list[str]:
    """Return warnings about files of one volume that hide each other."""
    warnings: list[str] = []
    for _, volume in each(spec, "volumes", ""):
        name = volume.get("name")
        for kind, shown in (("configMap", "ConfigMap"), ("secret", "Secret"), ("downwardAPI", "DownwardAPI")):
            source = volume.get(kind)
            if isinstance(source, dict):
                owner = source.get("secretName") if kind == "secret" else source.get("name")
                title = shown if kind == "downwardAPI" else f'{shown} "{owner or ""}"'
                found = _overlaps([(str(item.get("path")), "") for _, item in each(source, "items", "")])
                warnings += [f'volume "{name}" ({title}): overlapping paths: {one}' for one in found]
        projected = volume.get("projected")
        if isinstance(projected, dict):
            parts = [part or {} for part in projected.get("sources") or ()]
            warnings += [f'volume "{name}" (Projected) has no sources provided' for part in parts if not part]
            found = _overlaps([pair for part in parts for pair in _projected_paths(part)])
            warnings += [f'volume "{name}" (Projected): overlapping paths: {one}' for one in found]
    return warnings


def _projected_paths(part: Obj) -> Iterator[tuple[str, str]]:
    for kind, shown in (("configMap", "ConfigMap"), ("secret", "Secret"), ("downwardAPI", "DownwardAPI")):
        source = part.get(kind)
        if isinstance(source, dict):
            title = shown if kind == "downwardAPI" else f'{shown} "{source.get("name", "")}"'
            for _, item in each(source, "items", ""):
                yield str(item.get("path")), title
            return
    if isinstance(part.get("serviceAccountToken"), dict):
        yield str(part["serviceAccountToken"].get("path")), "ServiceAccountToken"


def _overlaps(paths: list[tuple[str, str]]) -> list[str]:
    """Return ``"a" with "a/b"`` for each pair of equal or nested paths."""
    found: list[str] = []
    seen: list[tuple[str, str]] = []
    for given, source in paths:
        path = given.rstrip("/")
        for other, owner in seen:
            inside = f"{other}/".startswith(f"{path}/") or f"{path}/".startswith(f"{other}/")
            if path and other and inside:
                found.append(f"{_named(path, source)} with {_named(other, owner)}")
        seen.append((path, source))
    return found


def _named(path: str, source: str) -> str:
    return f'"{path}" ({source})' if source else f'"{path}"'


def _list_warnings(spec: Obj, path: str) -> list[str]:
    warnings: list[str] = []
    for field, key in (("hostAliases", "ip"), ("imagePullSecrets", "name")):
        seen: set[str] = set()
        for where, entry in each(spec, field, path):
            value = str(entry.get(key) or "")
            if value in seen:
                warnings.append(f'{where}.{key}: duplicate {key} "{value}"')
            seen.add(value)
    for where, secret in each(spec, "imagePullSecrets", path):
        if not secret.get("name"):
            warnings.append(f'{where}.name: invalid empty name ""')
    return warnings


def _profile_warnings(spec: Obj, annotations: Obj, path: str, *, of_pod: bool) -> list[str]:
    """Warn about annotations that became fields. The Pod strategy warns about a Pod's AppArmor annotations."""
    warnings: list[str] = []
    old = 'non-functional in v1.27+; use the "seccompProfile" field instead'
    whole = spec.get("securityContext") or {}
    if SECCOMP_POD in annotations and whole.get("seccompProfile") is None:
        warnings.append(f"{path}[{SECCOMP_POD}]: {old}")
    for _, container in visit(spec, ""):
        context, name = container.get("securityContext") or {}, container.get("name")
        if f"{SECCOMP_CONTAINER}{name}" in annotations and context.get("seccompProfile") is None:
            warnings.append(f"{path}[{SECCOMP_CONTAINER}{name}]: {old}")
        key = f"{APPARMOR}{name}"
        if not of_pod and key in annotations and context.get("appArmorProfile") is None:
            profile = whole.get("appArmorProfile")
            if profile is None or profile != apparmor_field(str(annotations[key])):
                why = 'deprecated since v1.30; use the "appArmorProfile" field instead'
                warnings.append(f"{path}[{key}]: {why}")
    return warnings


# --- containers ----------------------------------------------------------------------------------------------------


def fraction_warnings(amounts: Any, path: str, *only: str) -> list[str]:
    """Warn about fractional bytes, most likely ``m`` in place of ``M``."""
    warnings: list[str] = []
    for name in only or ("memory", "ephemeral-storage"):
        amount = amounts.get(name) if isinstance(amounts, dict) else None
        try:
            whole = amount is None or parse_quantity(amount).is_whole()
        except QuantityError:
            continue  # already refused by decoding
        if not whole:
            why = f'fractional byte value "{amount}" is invalid, must be an integer'
            warnings.append(f"{path}[{name}]: {why}")
    return warnings


def _resource_warnings(resources: Any, path: str) -> list[str]:
    found = resources or {}
    return [
        one
        for name in ("memory", "ephemeral-storage")
        for key in ("limits", "requests")
        for one in fraction_warnings(found.get(key), f"{path}.{key}", name)
    ]


def _env_warnings(container: Obj, where: str) -> list[str]:
    seen: set[str] = set()
    warnings: list[str] = []
    for at, variable in each(container, "env", where):
        name, value = str(variable.get("name")), str(variable.get("value") or "")
        reference = f"$({name})"
        extends = variable.get("valueFrom") is None and reference in value and value != reference
        if name in seen and not extends:
            warnings.append(f'{at}: hides previous definition of "{name}", which may be dropped when using apply')
        seen.add(name)
    return warnings


MOST_PORT_WARNINGS = 1_000
"""Far more warnings than a response can hold; each port is compared with all earlier ones."""


def _port_warnings(spec: Obj, path: str) -> list[str]:
    known: dict[tuple[Any, Any], list[tuple[str, Obj]]] = {}
    warnings: list[str] = []
    for where, container in visit(spec, path):
        for at, port in each(container, "ports", where):
            own, host = port.get("hostPort") or 0, port.get("hostIP") or ""
            if host and not own:
                shown = f"Name:{port.get('name', '')} HostPort:0 ContainerPort:{port.get('containerPort')}"
                warnings.append(
                    f"{at}: hostIP set without hostPort: {{{shown} Protocol:{port.get('protocol')} HostIP:{host}}}"
                )
            if len(warnings) > MOST_PORT_WARNINGS:
                return warnings
            others = known.setdefault((port.get("containerPort"), port.get("protocol")), [])
            for place, other in others:
                warnings += _clash(own, host, other.get("hostPort") or 0, other.get("hostIP") or "", at, place)
            others.append((at, port))
    return warnings


def _clash(own: int, host: str, taken: int, other_host: str, at: str, place: str) -> list[str]:
    """Return a warning about two definitions of one container port."""
    if (own, host) == (taken, other_host):
        return [f"{at}: duplicate port definition with {place}"]
    if not own or not taken:
        return [f"{at}: overlapping port definition with {place}"]
    if own == taken and bool(host) != bool(other_host):
        return [f"{at}: dangerously ambiguous port definition with {place}"]
    return []


def _port_name_warnings(spec: Obj, path: str) -> list[str]:
    first: dict[str, str] = {}
    warnings: list[str] = []
    for where, container in visit(spec, path):
        for at, port in each(container, "ports", where):
            name = port.get("name")
            if name and name in first:
                warnings.append(
                    f'{at}: duplicate port name "{name}" with {first[name]}, services and probes that select ports by '
                    f"name will use {first[name]}"
                )
            elif name:
                first[name] = at
    return warnings
