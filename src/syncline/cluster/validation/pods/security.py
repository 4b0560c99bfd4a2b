"""Security contexts of pods and containers, and what an operating system forbids in them.

Called by the validators of pod specs and containers. Contexts and their paths come in, causes leave. Source: Kubernetes
``pkg/apis/core/validation`` (ValidateSecurityContext, validatePodSpecSecurityContext, validateWindows).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from syncline.cluster.validation.engine import names
from syncline.cluster.validation.engine.causes import duplicate, forbidden, invalid, required, too_long, unsupported
from syncline.cluster.validation.engine.fields import each
from syncline.cluster.validation.engine.paths import descending_path_causes
from syncline.kube.errors import FieldCause
from syncline.kube.objects import Obj

__all__ = ["container_security_causes", "os_causes", "pod_security_causes", "visit"]

MAX_ID = 2**31 - 1
ID_RANGE = f"must be between 0 and {MAX_ID}, inclusive"
PROFILES = ("Localhost", "RuntimeDefault", "Unconfined")
SYSTEMS = ("linux", "windows")
MOST_PROFILE_BYTES = 4095
MOST_SYSCTL_BYTES = 253
MOST_CREDENTIAL_SPEC_BYTES = 64 * 1024
MOST_WINDOWS_USER, MOST_WINDOWS_DOMAIN = 104, 256
_SYSCTL = r"^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?$"
_NET_SYSCTLS = ("net.",)
_IPC_SYSCTLS = ("fs.mqueue.", "kernel.msg", "kernel.sem", "kernel.shm")
_NOT_ON_WINDOWS = (
    "appArmorProfile",
    "seLinuxOptions",
    "seccompProfile",
    "fsGroup",
    "fsGroupChangePolicy",
    "sysctls",
    "runAsUser",
    "runAsGroup",
    "supplementalGroups",
    "supplementalGroupsPolicy",
    "seLinuxChangePolicy",
)
_NOT_IN_WINDOWS_CONTAINERS = (
    "appArmorProfile",
    "seLinuxOptions",
    "seccompProfile",
    "capabilities",
    "readOnlyRootFilesystem",
    "privileged",
    "allowPrivilegeEscalation",
    "procMount",
    "runAsUser",
    "runAsGroup",
)


def visit(spec: Obj, path: str) -> Iterator[tuple[str, Obj]]:
    """All containers with their paths, in Kubernetes' order."""
    for key in ("initContainers", "containers", "ephemeralContainers"):
        yield from each(spec, key, path)


def pod_security_causes(spec: Obj, path: str) -> list[FieldCause]:
    context, where = spec.get("securityContext"), f"{path}.securityContext"
    causes: list[FieldCause] = []
    if spec.get("shareProcessNamespace") and spec.get("hostPID"):
        why = "ShareProcessNamespace and HostPID cannot both be enabled"
        causes.append(invalid(f"{where}.shareProcessNamespace", True, why))
    if not isinstance(context, dict):
        return causes
    causes += _id_causes(context, where, "fsGroup", "runAsUser", "runAsGroup")
    for index, group in enumerate(context.get("supplementalGroups") or ()):
        if not 0 <= group <= MAX_ID:
            causes.append(invalid(f"{where}.supplementalGroups[{index}]", group, ID_RANGE))
    causes += _sysctl_causes(context, spec, where)
    for key, allowed in (
        ("fsGroupChangePolicy", ("Always", "OnRootMismatch")),
        ("supplementalGroupsPolicy", ("Merge", "Strict")),
        ("seLinuxChangePolicy", ("Recursive",)),
    ):
        if context.get(key) is not None and context[key] not in allowed:
            causes.append(unsupported(f"{where}.{key}", context[key], allowed))
    return causes + _shared_causes(context, where)


def container_security_causes(context: Any, path: str, *, host_users: bool) -> list[FieldCause]:
    if not isinstance(context, dict):
        return []
    causes = _id_causes(context, path, "runAsUser", "runAsGroup")
    mount = context.get("procMount")
    if mount is not None and mount not in ("Default", "Unmasked"):
        causes.append(unsupported(f"{path}.procMount", mount, ("Default", "Unmasked")))
    if mount == "Unmasked" and host_users:
        why = "`hostUsers` must be false to use `Unmasked`"
        causes.append(invalid(f"{path}.procMount", mount, why))
    if context.get("allowPrivilegeEscalation") is False:
        if context.get("privileged") is True:
            why = "cannot set `allowPrivilegeEscalation` to false and `privileged` to true"
            causes.append(invalid(path, context, why))
        if "CAP_SYS_ADMIN" in ((context.get("capabilities") or {}).get("add") or ()):
            why = "cannot set `allowPrivilegeEscalation` to false and `capabilities.Add` CAP_SYS_ADMIN"
            causes.append(invalid(path, context, why))
    return causes + _shared_causes(context, path)


def _shared_causes(context: Obj, where: str) -> list[FieldCause]:
    """What a pod and a container have alike."""
    causes = _seccomp_causes(context.get("seccompProfile"), f"{where}.seccompProfile")
    causes += _windows_option_causes(context.get("windowsOptions"), f"{where}.windowsOptions")
    return causes + _apparmor_causes(context.get("appArmorProfile"), f"{where}.appArmorProfile")


def _id_causes(context: Obj, where: str, *keys: str) -> list[FieldCause]:
    return [
        invalid(f"{where}.{key}", context[key], ID_RANGE)
        for key in keys
        if isinstance(context.get(key), int) and not 0 <= context[key] <= MAX_ID
    ]


def _seccomp_causes(profile: Any, where: str) -> list[FieldCause]:
    if not isinstance(profile, dict):
        return []
    kind, local = profile.get("type") or "", profile.get("localhostProfile")
    causes: list[FieldCause] = []
    if not kind:
        causes.append(required(f"{where}.type", "type is required when seccompProfile is set"))
    elif kind not in PROFILES:
        causes.append(unsupported(f"{where}.type", kind, PROFILES))
    if kind != "Localhost":
        if local is not None:
            why = "can only be set when seccomp type is Localhost"
            causes.append(invalid(f"{where}.localhostProfile", profile, why))
    elif local is None:
        causes.append(required(f"{where}.localhostProfile", "must be set when seccomp type is Localhost"))
    else:
        causes += descending_path_causes(local, f"{where}.localhostProfile")
    return causes


def _apparmor_causes(profile: Any, where: str) -> list[FieldCause]:
    if not isinstance(profile, dict):
        return []
    kind, at = profile.get("type") or "", f"{where}.localhostProfile"
    local: str | None = profile.get("localhostProfile")
    missing = required(at, "must be set when AppArmor type is Localhost")
    match kind:
        case "Localhost" if local is None:
            return [missing]
        case "Localhost":
            assert local is not None
            causes = [] if local else [missing]
            if local != local.strip():
                causes = [invalid(at, local, "must not be padded with whitespace")]
            return causes + ([too_long(at, MOST_PROFILE_BYTES)] if len(local) > MOST_PROFILE_BYTES else [])
        case "RuntimeDefault" | "Unconfined":
            why = "can only be set when AppArmor type is Localhost"
            return [] if local is None else [invalid(at, local, why)]
        case "":
            return [required(f"{where}.type", "type is required when appArmorProfile is set")]
        case _:
            return [unsupported(f"{where}.type", kind, PROFILES)]


def _sysctl_causes(context: Obj, spec: Obj, where: str) -> list[FieldCause]:
    causes: list[FieldCause] = []
    seen: set[str] = set()
    for at, entry in each(context, "sysctls", where):
        name = str(entry.get("name") or "")
        if not name:
            causes.append(required(f"{at}.name"))
        elif len(name) > MOST_SYSCTL_BYTES or not re.match(_SYSCTL, name):
            why = f"must have at most {MOST_SYSCTL_BYTES} characters and match regex {_SYSCTL}"
            causes.append(invalid(f"{at}.name", name, why))
        elif name in seen:
            causes.append(duplicate(f"{at}.name", name))
        plain = name.replace("/", ".")
        for key, prefixes in (("hostNetwork", _NET_SYSCTLS), ("hostIPC", _IPC_SYSCTLS)):
            if spec.get(key) and plain.startswith(prefixes):
                causes.append(invalid(f"{at}.name", name, f"may not be specified when '{key}' is true"))
        seen.add(name)
    return causes


def _windows_option_causes(options: Any, where: str) -> list[FieldCause]:
    if not isinstance(options, dict):
        return []
    causes: list[FieldCause] = []
    name, text = options.get("gmsaCredentialSpecName"), options.get("gmsaCredentialSpec")
    if name is not None:
        problems = names.dns_subdomain(name)
        causes += [invalid(f"{where}.gmsaCredentialSpecName", name, problem) for problem in problems]
    if text == "":
        causes.append(invalid(f"{where}.gmsaCredentialSpec", text, "gmsaCredentialSpec cannot be an empty string"))
    elif text is not None and len(text) > MOST_CREDENTIAL_SPEC_BYTES:
        causes.append(invalid(f"{where}.gmsaCredentialSpec", text, "gmsaCredentialSpec size must be under 64 KiB"))
    user = options.get("runAsUserName")
    if user is not None:
        causes += [invalid(f"{where}.runAsUserName", user, f"runAsUserName{why}") for why in _user_problems(user)]
    return causes


def _user_problems(text: str) -> list[str]:
    """What is wrong with ``DOMAIN\\user``."""
    if not text:
        return [" cannot be an empty string"]
    if any(ord(char) < 0x20 or ord(char) == 0x7F for char in text):
        return [" cannot contain control characters"]
    parts = text.split("\\")
    if len(parts) > 2:
        return [" cannot contain more than one backslash"]
    domain, user = parts[0] if len(parts) == 2 else "", parts[-1]
    problems: list[str] = []
    if len(domain) >= MOST_WINDOWS_DOMAIN:
        problems.append(f"'s Domain length must be under {MOST_WINDOWS_DOMAIN} characters")
    if len(parts) == 2 and not re.fullmatch(r'[^\\/:\*\?"<>|\.][^\\/:\*\?"<>|]{0,14}|[A-Za-z0-9.-]+', domain):
        problems.append("'s Domain doesn't match the NetBios nor the DNS format")
    if not user:
        problems.append("'s User cannot be empty")
    elif len(user) > MOST_WINDOWS_USER:
        problems.append(f"'s User length must not be longer than {MOST_WINDOWS_USER} characters")
    if re.fullmatch(r"[. ]+", user):
        problems.append("'s User cannot contain only periods or spaces")
    if re.search(r'["/\\:;|=,+*?<>@\[\]]', user):
        problems.append("'s User cannot contain the following characters: \"/\\:;|=,+*?<>@[]")
    return problems


# --- operating systems ---------------------------------------------------------------------------------------------


def os_causes(spec: Obj, path: str) -> list[FieldCause]:
    """What a declared operating system forbids, and host process containers of Windows."""
    causes = _host_process_causes(spec, path)
    system = spec.get("os")
    if not isinstance(system, dict):
        return causes
    name = system.get("name") or ""
    if not name:
        return [*causes, required(f"{path}.os.name")]
    if name not in SYSTEMS:
        return [*causes, unsupported(f"{path}.os", name, SYSTEMS)]
    context = spec.get("securityContext") or {}
    inside = [(f"{at}.securityContext", one.get("securityContext") or {}) for at, one in visit(spec, path)]
    if name == "linux":
        why = "windows options cannot be set for a linux pod"
        holders = [(f"{path}.securityContext", context), *inside]
        return causes + [forbidden(f"{at}.windowsOptions", why) for at, one in holders if one.get("windowsOptions")]
    why = "cannot be set for a windows pod"
    causes += [forbidden(f"{path}.securityContext.{key}", why) for key in _NOT_ON_WINDOWS if context.get(key)]
    causes += [forbidden(f"{path}.{key}", why) for key in ("hostPID", "hostIPC") if spec.get(key)]
    optional = ("hostUsers", "shareProcessNamespace")
    causes += [forbidden(f"{path}.{key}", why) for key in optional if spec.get(key) is not None]
    for at, one in inside:
        causes += [forbidden(f"{at}.{key}", why) for key in _NOT_IN_WINDOWS_CONTAINERS if one.get(key) is not None]
    return causes


def _host_process_causes(spec: Obj, path: str) -> list[FieldCause]:
    def asked(holder: Obj) -> bool | None:
        options = (holder.get("securityContext") or {}).get("windowsOptions") or {}
        value = options.get("hostProcess")
        return value if isinstance(value, bool) else None

    of_pod, causes, answers = asked(spec), [], []
    for at, container in visit(spec, path):
        own = asked(container)
        if of_pod is not None and own is not None and own != of_pod:
            shown = "true" if of_pod else "false"
            why = f"pod hostProcess value must be identical if both are specified, was {shown}"
            causes.append(invalid(f"{at}.securityContext.windowsOptions.hostProcess", own, why))
        answers.append(bool(of_pod if own is None else own))
    if not any(answers):
        return causes
    if not all(answers):
        why = "If pod contains any hostProcess containers then all containers must be HostProcess containers"
        causes.append(invalid(path, "", why))
    if not spec.get("hostNetwork"):
        why = "hostNetwork must be true if pod contains any hostProcess containers"
        causes.append(invalid(f"{path}.hostNetwork", False, why))
    return causes
