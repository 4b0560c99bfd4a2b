"""Generates a KubeletConfig's files: a complete kubelet.conf, the log level, and the reserved resources.

Source: reference machine-config 1.5, ``pkg/controller/kubelet-config/helpers.go``.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from syncline.kube.objects import Obj, dig, name_of
from syncline.kube.yaml import loading as yaml
from syncline.machineconfig.generating.kubelet import schema
from syncline.machineconfig.generating.kubelet.schema import KubeletDecodeError
from syncline.machineconfig.generating.kubelet.tls import tls_settings

KUBELET_CONF = "/etc/kubernetes/kubelet.conf"
LOG_LEVEL = "/etc/systemd/system/kubelet.service.d/20-logging.conf"
SIZING = "/etc/node-sizing-enabled.env"
MASTER_LABEL = "node-role.kubernetes.io/master"
SYSTEM_KEYS = ("system-reserved", "system-reserved-compressible")
_RESERVED = {"memory": "1Gi", "cpu": "500m", "ephemeral-storage": "1Gi"}
_LATENCY = {"Default": "10s", "MediumUpdateAverageReaction": "20s", "LowUpdateSlowReaction": "1m"}


class KubeletError(ValueError):
    """The configuration cannot be merged; the message becomes the object's condition."""


@dataclass(frozen=True, slots=True)
class KubeletFile:
    """A file of the MachineConfig, with mode 0644 and overwrite."""

    path: str
    text: str


def _raw(config: Obj) -> Any:
    return dig(config, "spec", "kubeletConfig")


def _compact(raw: Any) -> str:
    return json.dumps(raw, ensure_ascii=False, separators=(",", ":"))


def is_control_plane(pool: Obj) -> bool:
    """Return whether the pool is for the control plane: by its name (master, arbiter), or by the label it selects."""
    if name_of(pool) in ("master", "arbiter"):
        return True
    selector = dig(pool, "spec", "nodeSelector") or {}
    expressions = selector.get("matchExpressions") or ()
    wanted = [one for one in expressions if one.get("key") == MASTER_LABEL]
    return MASTER_LABEL in (selector.get("matchLabels") or {}) or any(
        one.get("operator") in ("Exists", "In") for one in wanted
    )


def invalid_kubelet_config(config: Obj, pool: Obj | None = None) -> str | None:
    """Return why upstream rejects this KubeletConfig (for this pool), or None.

    Users may not set values that could keep a machine from booting.
    """
    level = dig(config, "spec", "logLevel")
    if level is not None and not 0 <= level <= 10:
        return f"KubeletConfig's LogLevel is not valid [0,10]: {level}"
    if _raw(config) is None:
        return None
    try:
        given = schema.decode(_raw(config))
    except KubeletDecodeError as error:
        return f"KubeletConfig could not be unmarshalled, err: {error}"
    refused = _refused_field(given, bool(dig(config, "spec", "autoSizingReserved")))
    if refused:
        return f"KubeletConfiguration: {refused}"
    return _refused_pod_path(config, given, pool) if pool is not None else None


def _refused_field(given: Obj, sized_by_itself: bool) -> str:
    gates = given.get("featureGates") or {}
    shown = {
        "cgroupDriver": given.get("cgroupDriver"),
        "clusterDNS": f"[{' '.join(given['clusterDNS'])}]" if given.get("clusterDNS") else None,
        "clusterDomain": given.get("clusterDomain"),
        "featureGates": f"map[{' '.join(f'{key}:{_go(gates[key])}' for key in sorted(gates))}]" if gates else None,
        "failSwapOn": _go(given["failSwapOn"]) if "failSwapOn" in given else None,
        "swapBehavior": (given.get("memorySwap") or {}).get("swapBehavior"),
    }
    for field, value in shown.items():
        if value:
            return f"{field} is not allowed to be set, but contains: {value}"
    if given.get("systemReserved") and sized_by_itself:
        return "autoSizingReserved and systemdReserved cannot be set together"
    reserved, cgroups = given.get("systemReservedCgroup"), given.get("systemCgroups")
    if reserved and cgroups and reserved != cgroups:
        return f"systemReservedCgroup ({reserved}) must match systemCgroups ({cgroups})"
    return ""


def _refused_pod_path(config: Obj, given: Obj, pool: Obj) -> str | None:
    name = name_of(pool)
    if is_control_plane(pool):
        if '"staticPodPath"' not in _compact(_raw(config)):
            return None
        return f'KubeletConfiguration: staticPodPath is not allowed to be set for control plane pool "{name}"'
    path = given.get("staticPodPath")
    if not path:
        return None
    return f'KubeletConfiguration: staticPodPath must be empty for pool "{name}", but contains: {path}'


def _go(value: bool) -> str:
    return "true" if value else "false"


def latency_profile(original: Obj, node_config: Obj | None) -> tuple[Obj, str | None]:
    """Return the templates' configuration with the interval of the workers' latency profile, and upstream's error for
    an unknown profile (which it ignores)."""
    profile = str(dig(node_config, "spec", "workerLatencyProfile", default="") or "")
    if not profile:
        return original, None
    if profile not in _LATENCY:
        message = "failed to update the original kubelet configuration"
        return original, f"unknown worker latency profile type found {profile}, {message}"
    return original | {"nodeStatusUpdateFrequency": _LATENCY[profile]}, None


def kubelet_files(config: Obj, original: Obj) -> list[KubeletFile]:
    """Return the files in writing order. ``original``: the templates' KubeletConfiguration as JSON.

    Raises KubeletError.
    """
    try:
        merged, reserved = _merged(config, schema.decode(original))
    except KubeletDecodeError as error:
        raise KubeletError(f"could not deserialize the new Kubelet config: {error}") from error
    merged = _without_system_enforcement(merged)
    cgroup, cgroups = merged.get("systemReservedCgroup"), merged.get("systemCgroups")
    if cgroup and cgroups and cgroup != cgroups:
        message = f"systemReservedCgroup ({cgroup}) must match systemCgroups ({cgroups})"
        raise KubeletError(f"invalid merged configuration: {message}")
    identity = {"apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration"}
    files = []
    sized = dig(config, "spec", "autoSizingReserved")
    if sized is not None or reserved:
        files.append(KubeletFile(SIZING, _sizing(bool(sized) and not reserved, reserved)))
    level = dig(config, "spec", "logLevel")
    if level is not None:
        files.append(KubeletFile(LOG_LEVEL, f'[Service]\nEnvironment="KUBELET_LOG_LEVEL={level}"\n'))
    files.append(KubeletFile(KUBELET_CONF, yaml.dump(schema.encode(merged) | identity)))
    return files


def _merged(config: Obj, base: Obj) -> tuple[Obj, dict[str, str]]:
    """Return the user's values merged over the templates', and the reserved resources for the environment file."""
    profile = dig(config, "spec", "tlsSecurityProfile")
    if profile is not None:
        version, suites = tls_settings(profile)
        base = base | {"tlsMinVersion": version, "tlsCipherSuites": suites}
    raw = _raw(config)
    if raw is None:
        return base, {}
    given = schema.decode(raw)
    system = dict(given.get("systemReserved") or {})
    reserved = {key: system.pop(key) for key in _RESERVED if key in system}
    given = {key: value for key, value in given.items() if key not in ("featureGates", "systemReserved")}
    if system:
        given["systemReserved"] = system
    if '"protectKernelDefaults":false' in _compact(raw):
        base = {key: value for key, value in base.items() if key != "protectKernelDefaults"}
    merged = schema.merge(base, given)
    enforced = given.get("enforceNodeAllocatable") or []
    if enforced and not given.get("systemReservedCgroup") and not any(key in SYSTEM_KEYS for key in enforced):
        merged.pop("systemReservedCgroup", None)
    return merged, reserved


def _without_system_enforcement(merged: Obj) -> Obj:
    """Remove the enforcement of the system's cgroup, which reserved CPUs replace."""
    if not merged.get("reservedSystemCPUs"):
        return merged
    kept = [key for key in merged.get("enforceNodeAllocatable") or () if key not in SYSTEM_KEYS]
    changed = merged | {"enforceNodeAllocatable": kept if "pods" in kept else ["pods", *kept]}
    changed.pop("systemReservedCgroup", None)
    return changed


def _sizing(enabled: bool, reserved: dict[str, str]) -> str:
    values = {key: reserved.get(key) or default for key, default in _RESERVED.items()}
    return (
        f"NODE_SIZING_ENABLED={_go(enabled)}\nSYSTEM_RESERVED_MEMORY={values['memory']}\n"
        f"SYSTEM_RESERVED_CPU={values['cpu']}\nSYSTEM_RESERVED_ES={values['ephemeral-storage']}\n"
    )


def accepted_conditions(error: str | None) -> list[Obj]:
    """Return the conditions without times: Accepted, and the older type that other programs still read."""
    message = "Success" if error is None else f"Error: {error}"
    accepted = {"type": "Accepted", "status": "True" if error is None else "False", "reason": "", "message": message}
    older = {"type": "Success" if error is None else "Failure", "status": "True", "reason": "", "message": message}
    return [accepted, older]
