"""Security contexts of pods and containers, and their restrictions by operating system.

The validators of pod specs and containers call it. Source: Kubernetes ``pkg/apis/core/validation``
(ValidateSecurityContext, validatePodSpecSecurityContext, validateWindows).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

from syncline.cluster.validation.engine import rules as r
from syncline.cluster.validation.engine.causes import duplicate, forbidden, invalid, required, unsupported
from syncline.cluster.validation.engine.fields import each
from syncline.cluster.validation.engine.paths import descending_path_causes
from syncline.kube.errors import FieldCause
from syncline.kube.objects import Obj, dig

MAX_ID = 2**31 - 1
SYSTEMS = ("linux", "windows")
MOST_PROFILE_BYTES, MOST_SYSCTL_BYTES = 4095, 253
MOST_CREDENTIAL_SPEC_BYTES = 64 * 1024
MOST_WINDOWS_USER, MOST_WINDOWS_DOMAIN = 104, 256
_SYSCTL = r"^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?$"
_SYSCTL_TEXT = f"must have at most {MOST_SYSCTL_BYTES} characters and match regex {_SYSCTL}"
_TAKEN_SYSCTLS = {"hostNetwork": ("net.",), "hostIPC": ("fs.mqueue.", "kernel.msg", "kernel.sem", "kernel.shm")}
_NOT_ON_WINDOWS = (
    *("appArmorProfile", "seLinuxOptions", "seccompProfile", "fsGroup", "fsGroupChangePolicy", "sysctls", "runAsUser"),
    *("runAsGroup", "supplementalGroups", "supplementalGroupsPolicy", "seLinuxChangePolicy"),
)
_NOT_IN_WINDOWS_CONTAINERS = (
    *("appArmorProfile", "seLinuxOptions", "seccompProfile", "capabilities", "readOnlyRootFilesystem", "privileged"),
    *("allowPrivilegeEscalation", "procMount", "runAsUser", "runAsGroup"),
)


def visit(spec: Obj, path: str) -> Iterator[tuple[str, Obj]]:
    """Yield all containers with their paths, in Kubernetes' order."""
    for key in ("initContainers", "containers", "ephemeralContainers"):
        yield from each(spec, key, path)


# --- profiles and Windows ------------------------------------------------------------------------------------------


def _seccomp_local(profile: Obj, path: str) -> Iterable[FieldCause]:
    local, at = profile.get("localhostProfile"), f"{path}.localhostProfile"
    if profile.get("type") != "Localhost":
        return [] if local is None else [invalid(at, profile, "can only be set when seccomp type is Localhost")]
    missing = [required(at, "must be set when seccomp type is Localhost")]
    return missing if local is None else descending_path_causes(local, at)


def _apparmor_local(profile: Obj, path: str) -> Iterator[FieldCause]:
    local, at = profile.get("localhostProfile"), f"{path}.localhostProfile"
    if profile.get("type") != "Localhost":
        if local is not None and profile.get("type") in _PROFILES:
            yield invalid(at, local, "can only be set when AppArmor type is Localhost")
        return
    if not local:
        yield required(at, "must be set when AppArmor type is Localhost")
    elif local != local.strip():
        yield invalid(at, local, "must not be padded with whitespace")
    yield from r.most(MOST_PROFILE_BYTES)(local or "", at)


def _user_problems(text: str) -> list[str]:
    """Return what is wrong with ``DOMAIN\\user``."""
    if not text:
        return [" cannot be an empty string"]
    if any(ord(char) < 0x20 or ord(char) == 0x7F for char in text):
        return [" cannot contain control characters"]
    parts = text.split("\\")
    if len(parts) > 2:
        return [" cannot contain more than one backslash"]
    domain, user = parts[0] if len(parts) == 2 else "", parts[-1]
    domain_form = r'[^\\/:\*\?"<>|\.][^\\/:\*\?"<>|]{0,14}|[A-Za-z0-9.-]+'
    faults = (
        (len(domain) >= MOST_WINDOWS_DOMAIN, f"'s Domain length must be under {MOST_WINDOWS_DOMAIN} characters"),
        (
            len(parts) == 2 and not re.fullmatch(domain_form, domain),
            "'s Domain doesn't match the NetBios nor the DNS format",
        ),
        (not user, "'s User cannot be empty"),
        (
            len(user) > MOST_WINDOWS_USER,
            f"'s User length must not be longer than {MOST_WINDOWS_USER} characters",
        ),
        (re.fullmatch(r"[. ]+", user), "'s User cannot contain only periods or spaces"),
        (
            re.search(r'["/\\:;|=,+*?<>@\[\]]', user),
            "'s User cannot contain the following characters: \"/\\:;|=,+*?<>@[]",
        ),
    )
    return [why for wrong, why in faults if wrong]


_PROFILES = ("Localhost", "RuntimeDefault", "Unconfined")
_SHARED = r.every(
    r.field(
        "seccompProfile",
        r.need("type", r.choice(*_PROFILES), why="type is required when seccompProfile is set"),
        _seccomp_local,
    ),
    r.field(
        "windowsOptions",
        r.field("gmsaCredentialSpecName", r.subdomain),
        r.field(
            "gmsaCredentialSpec",
            r.must(bool, "gmsaCredentialSpec cannot be an empty string"),
            r.must(
                lambda text: len(text) <= MOST_CREDENTIAL_SPEC_BYTES, "gmsaCredentialSpec size must be under 64 KiB"
            ),
        ),
        r.field("runAsUserName", r.named(lambda user: [f"runAsUserName{why}" for why in _user_problems(user)])),
    ),
    r.field(
        "appArmorProfile",
        r.need("type", r.choice(*_PROFILES), why="type is required when appArmorProfile is set"),
        _apparmor_local,
    ),
)
"""Rules that pods and containers share."""
_ID = r.within(0, MAX_ID)


# --- contexts ------------------------------------------------------------------------------------------------------


def _sysctl_causes(context: Obj, spec: Obj, where: str) -> Iterator[FieldCause]:
    seen: set[str] = set()
    for at, entry in each(context, "sysctls", where):
        name = str(entry.get("name") or "")
        if not name:
            yield required(f"{at}.name")
        elif len(name) > MOST_SYSCTL_BYTES or not re.match(_SYSCTL, name):
            yield invalid(f"{at}.name", name, _SYSCTL_TEXT)
        elif name in seen:
            yield duplicate(f"{at}.name", name)
        for key, prefixes in _TAKEN_SYSCTLS.items():
            if spec.get(key) and name.replace("/", ".").startswith(prefixes):
                yield invalid(f"{at}.name", name, f"may not be specified when '{key}' is true")
        seen.add(name)


_IDS = r.every(
    *(r.field(key, _ID) for key in ("fsGroup", "runAsUser", "runAsGroup")), r.items("supplementalGroups", _ID)
)
_POLICIES = r.every(
    r.field("fsGroupChangePolicy", r.choice("Always", "OnRootMismatch")),
    r.field("supplementalGroupsPolicy", r.choice("Merge", "Strict")),
    r.field("seLinuxChangePolicy", r.choice("Recursive")),
    _SHARED,
)


def pod_security_causes(spec: Obj, path: str) -> Iterator[FieldCause]:
    context, where = spec.get("securityContext"), f"{path}.securityContext"
    if spec.get("shareProcessNamespace") and spec.get("hostPID"):
        why = "ShareProcessNamespace and HostPID cannot both be enabled"
        yield invalid(f"{where}.shareProcessNamespace", True, why)
    if context is not None:
        yield from _IDS(context, where)
        yield from _sysctl_causes(context, spec, where)
        yield from _POLICIES(context, where)


def _escalation_causes(context: Obj, path: str) -> Iterator[FieldCause]:
    if context.get("allowPrivilegeEscalation") is not False:
        return
    why = "cannot set `allowPrivilegeEscalation` to false and"
    if context.get("privileged") is True:
        yield invalid(path, context, f"{why} `privileged` to true")
    if "CAP_SYS_ADMIN" in ((context.get("capabilities") or {}).get("add") or ()):
        yield invalid(path, context, f"{why} `capabilities.Add` CAP_SYS_ADMIN")


def _context(*mount: r.Rule) -> r.Table:
    return r.every(
        r.field("runAsUser", _ID),
        r.field("runAsGroup", _ID),
        r.field("procMount", r.choice("Default", "Unmasked"), *mount),
        _escalation_causes,
        _SHARED,
    )


_OF_HOST_USERS = _context(r.must(lambda mount: mount != "Unmasked", "`hostUsers` must be false to use `Unmasked`"))
_OF_OWN_USERS = _context()


def container_security_causes(context: Any, path: str, *, host_users: bool) -> list[FieldCause]:
    return [] if context is None else (_OF_HOST_USERS if host_users else _OF_OWN_USERS)(context, path)


# --- operating systems ---------------------------------------------------------------------------------------------


def os_causes(spec: Obj, path: str) -> Iterator[FieldCause]:
    """Validate the restrictions of the declared operating system, and Windows host process containers."""
    yield from _host_process_causes(spec, path)
    system = spec.get("os")
    if system is None:
        return
    name = system.get("name") or ""
    context = spec.get("securityContext") or {}
    inside = [(f"{at}.securityContext", one.get("securityContext") or {}) for at, one in visit(spec, path)]
    if not name:
        yield required(f"{path}.os.name")
    elif name not in SYSTEMS:
        yield unsupported(f"{path}.os", name, SYSTEMS)
    elif name == "linux":
        for at, one in [(f"{path}.securityContext", context), *inside]:
            if one.get("windowsOptions"):
                yield forbidden(f"{at}.windowsOptions", "windows options cannot be set for a linux pod")
    else:
        keys = [f"{path}.securityContext.{key}" for key in _NOT_ON_WINDOWS if context.get(key)]
        keys += [f"{path}.{key}" for key in ("hostPID", "hostIPC") if spec.get(key)]
        keys += [f"{path}.{key}" for key in ("hostUsers", "shareProcessNamespace") if spec.get(key) is not None]
        keys += [f"{at}.{key}" for at, one in inside for key in _NOT_IN_WINDOWS_CONTAINERS if one.get(key) is not None]
        yield from (forbidden(key, "cannot be set for a windows pod") for key in keys)


def _host_process_causes(spec: Obj, path: str) -> Iterator[FieldCause]:
    def asked(holder: Obj) -> bool | None:
        value = dig(holder, "securityContext", "windowsOptions", "hostProcess")
        return value if isinstance(value, bool) else None

    of_pod, answers = asked(spec), []
    for at, container in visit(spec, path):
        own = asked(container)
        if of_pod is not None and own is not None and own != of_pod:
            why = f"pod hostProcess value must be identical if both are specified, was {str(of_pod).lower()}"
            yield invalid(f"{at}.securityContext.windowsOptions.hostProcess", own, why)
        answers.append(bool(of_pod if own is None else own))
    if not any(answers):
        return
    if not all(answers):
        why = "If pod contains any hostProcess containers then all containers must be HostProcess containers"
        yield invalid(path, "", why)
    if not spec.get("hostNetwork"):
        why = "hostNetwork must be true if pod contains any hostProcess containers"
        yield invalid(f"{path}.hostNetwork", False, why)
