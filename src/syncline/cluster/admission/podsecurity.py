"""The Pod Security Standards: what a pod may request at each level, in each version.

The admission chain (plug-in PodSecurity) calls it with metadata and spec of a pod or template. Pure. Each check returns
a reason with details, or None. Source: ``k8s.io/pod-security-admission`` ``policy``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from syncline.kube.objects import Obj

PRIVILEGED, BASELINE, RESTRICTED = "privileged", "baseline", "restricted"
LATEST = 10_000
"""Minor version that represents ``latest``."""
MIXED = " and "


@dataclass(frozen=True, slots=True)
class Forbidden:
    """``reason`` is always reported, ``detail`` only for a single pod."""

    reason: str
    detail: str


Check = Callable[[Obj, Obj], Forbidden | None]


def _containers(spec: Obj) -> Iterator[Obj]:
    for field in ("initContainers", "containers", "ephemeralContainers"):
        yield from (one for one in spec.get(field) or () if isinstance(one, dict))


def _context(holder: Obj) -> Obj:
    found = holder.get("securityContext")
    return found if isinstance(found, dict) else {}


def _part(holder: Obj, field: str) -> Obj:
    found = holder.get(field)
    return found if isinstance(found, dict) else {}


def _quoted(names: Iterable[str]) -> str:
    return ", ".join(f'"{name}"' for name in names)


def _named(names: list[str]) -> str:
    """Return ``container "a"`` or ``containers "a", "b"``."""
    return f"{'container' if len(names) == 1 else 'containers'} {_quoted(names)}"


def _count(one: str, many: str, items: Iterable[Any]) -> str:
    return one if len(list(items)) == 1 else many


def _where(spec: Obj, wrong: Callable[[Obj], bool]) -> str:
    """Return whose security context is wrong: ``pod and container "c"``; "" if none is."""
    setters = ["pod"] if wrong(_context(spec)) else []
    bad = [str(one.get("name")) for one in _containers(spec) if wrong(_context(one))]
    return MIXED.join([*setters, *([_named(bad)] if bad else [])])


# --- baseline ------------------------------------------------------------------------------------------------------

APPARMOR = "container.apparmor.security.beta.kubernetes.io/"


def _app_armor(metadata: Obj, spec: Obj) -> Forbidden | None:
    values: set[str] = set()

    def wrong(context: Obj) -> bool:
        profile = context.get("appArmorProfile")
        kind = str((profile or {}).get("type") or "")
        if not isinstance(profile, dict) or kind in ("RuntimeDefault", "Localhost"):
            return False
        values.add(kind)
        return True

    setters = _where(spec, wrong)
    annotations = sorted(
        f'{key}="{value}"'
        for key, value in (metadata.get("annotations") or {}).items()
        if key.startswith(APPARMOR) and value and value != "runtime/default" and not value.startswith("localhost/")
    )
    listed = [*sorted(values), *annotations]
    if annotations:
        setters = MIXED.join(part for part in (setters, _count("annotation", "annotations", annotations)) if part)
    if not setters:
        return None
    reason = _count("forbidden AppArmor profile", "forbidden AppArmor profiles", listed)
    return Forbidden(reason, f"{setters} must not set AppArmor profile type to {_quoted(listed)}")


_DEFAULT_CAPABILITIES = frozenset(
    (
        *("AUDIT_WRITE", "CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "MKNOD", "NET_BIND_SERVICE"),
        *("SETFCAP", "SETGID", "SETPCAP", "SETUID", "SYS_CHROOT"),
    )
)


def _adding(spec: Obj, allowed: frozenset[str]) -> tuple[list[str], list[str]]:
    """Return the containers that add other capabilities, and these capabilities."""
    bad: list[str] = []
    found: set[str] = set()
    for one in _containers(spec):
        more = {str(cap) for cap in _part(_context(one), "capabilities").get("add") or ()} - allowed
        if more:
            bad.append(str(one.get("name")))
            found |= more
    return bad, sorted(found)


def _capabilities(metadata: Obj, spec: Obj) -> Forbidden | None:
    bad, found = _adding(spec, _DEFAULT_CAPABILITIES)
    if not bad:
        return None
    detail = f"{_named(bad)} must not include {_quoted(found)} in securityContext.capabilities.add"
    return Forbidden("non-default capabilities", detail)


def _host_namespaces(metadata: Obj, spec: Obj) -> Forbidden | None:
    found = [f"{name}=true" for name in ("hostNetwork", "hostPID", "hostIPC") if spec.get(name)]
    return Forbidden("host namespaces", ", ".join(found)) if found else None


def _host_paths(metadata: Obj, spec: Obj) -> Forbidden | None:
    found = [str(one.get("name")) for one in spec.get("volumes") or () if one.get("hostPath") is not None]
    return Forbidden("hostPath volumes", f"{_count('volume', 'volumes', found)} {_quoted(found)}") if found else None


def _host_ports(metadata: Obj, spec: Obj) -> Forbidden | None:
    bad: list[str] = []
    found: set[str] = set()
    for one in _containers(spec):
        ports = {str(port["hostPort"]) for port in one.get("ports") or () if port.get("hostPort")}
        if ports:
            bad.append(str(one.get("name")))
            found |= ports
    if not bad:
        return None
    uses = f"{_count('uses', 'use', bad)} {_count('hostPort', 'hostPorts', found)}"
    return Forbidden("hostPort", f"{_named(bad)} {uses} {', '.join(sorted(found))}")


_PROBES = ("livenessProbe", "readinessProbe", "startupProbe")


def _host_probes(metadata: Obj, spec: Obj) -> Forbidden | None:
    bad: set[str] = set()
    found: set[str] = set()
    for one in _containers(spec):
        lifecycle = _part(one, "lifecycle")
        handlers = [_part(one, name) for name in _PROBES]
        handlers += [_part(lifecycle, name) for name in ("postStart", "preStop")]
        hosts = {str(_part(each, kind).get("host") or "") for each in handlers for kind in ("httpGet", "tcpSocket")}
        hosts = {host for host in hosts if host}
        if hosts:
            bad.add(str(one.get("name")))
            found |= hosts
    if not bad:
        return None
    uses = f"{_count('uses', 'use', bad)} probe or lifecycle {_count('host', 'hosts', found)}"
    return Forbidden("probe or lifecycle host", f"{_named(sorted(bad))} {uses} {_quoted(sorted(found))}")


def _privileged(metadata: Obj, spec: Obj) -> Forbidden | None:
    bad = [str(one.get("name")) for one in _containers(spec) if _context(one).get("privileged")]
    return Forbidden("privileged", f"{_named(bad)} must not set securityContext.privileged=true") if bad else None


def _proc_mount(metadata: Obj, spec: Obj) -> Forbidden | None:
    bad: list[str] = []
    found: set[str] = set()
    for one in _containers(spec):
        mount = _context(one).get("procMount")
        if mount is not None and mount != "Default":
            bad.append(str(one.get("name")))
            found.add(str(mount))
    if not bad:
        return None
    return Forbidden("procMount", f"{_named(bad)} must not set securityContext.procMount to {_quoted(sorted(found))}")


def _se_linux(*more: str) -> Check:
    allowed = frozenset(("", "container_t", "container_init_t", "container_kvm_t", *more))

    def check(metadata: Obj, spec: Obj) -> Forbidden | None:
        types: set[str] = set()
        others: set[str] = set()

        def wrong(context: Obj) -> bool:
            options = _part(context, "seLinuxOptions")
            kind = str(options.get("type") or "")
            set_ = {name for name in ("user", "role") if options.get(name)}
            if kind not in allowed:
                types.add(kind)
            others.update(set_)
            return kind not in allowed or bool(set_)

        setters = _where(spec, wrong)
        if not setters:
            return None
        said = [f"{_count('type', 'types', types)} {_quoted(sorted(types))}"] if types else []
        said += [f"{name} may not be set" for name in ("user", "role") if name in others]
        return Forbidden("seLinuxOptions", f"{setters} set forbidden securityContext.seLinuxOptions: {'; '.join(said)}")

    return check


SECCOMP_POD = "seccomp.security.alpha.kubernetes.io/pod"
SECCOMP_CONTAINER = "container.seccomp.security.alpha.kubernetes.io/"


def _seccomp_annotations(metadata: Obj, spec: Obj) -> Forbidden | None:
    annotations = metadata.get("annotations") or {}
    keys = [SECCOMP_POD, *(f"{SECCOMP_CONTAINER}{one.get('name')}" for one in _containers(spec))]
    found = sorted(
        {
            f'{key}="{annotations[key]}"'
            for key in keys
            if key in annotations
            and annotations[key] not in ("runtime/default", "docker/default")
            and not annotations[key].startswith("localhost/")
        }
    )
    if not found:
        return None
    what = _count("annotation", "annotations", found)
    return Forbidden("seccompProfile", f"forbidden {what} {', '.join(found)}")


def _seccomp(metadata: Obj, spec: Obj) -> Forbidden | None:
    found: set[str] = set()

    def wrong(context: Obj) -> bool:
        profile = context.get("seccompProfile")
        if not isinstance(profile, dict) or profile.get("type") in ("Localhost", "RuntimeDefault"):
            return False
        found.add(str(profile.get("type") or ""))
        return True

    setters = _where(spec, wrong)
    if not setters:
        return None
    detail = f"{setters} must not set securityContext.seccompProfile.type to {_quoted(sorted(found))}"
    return Forbidden("seccompProfile", detail)


_SYSCTLS = (
    *("kernel.shm_rmid_forced", "net.ipv4.ip_local_port_range", "net.ipv4.tcp_syncookies"),
    *("net.ipv4.ping_group_range", "net.ipv4.ip_unprivileged_port_start"),
)


def _sysctls(*more: str) -> Check:
    allowed = frozenset((*_SYSCTLS, *more))

    def check(metadata: Obj, spec: Obj) -> Forbidden | None:
        names = [str(one.get("name")) for one in _context(spec).get("sysctls") or ()]
        found = [name for name in names if name not in allowed]
        return Forbidden("forbidden sysctls", ", ".join(found)) if found else None

    return check


def _host_process(metadata: Obj, spec: Obj) -> Forbidden | None:
    setters = _where(spec, lambda context: bool(_part(context, "windowsOptions").get("hostProcess")))
    detail = f"{setters} must not set securityContext.windowsOptions.hostProcess=true"
    return Forbidden("hostProcess", detail) if setters else None


# --- restricted ----------------------------------------------------------------------------------------------------


def _unless_windows(check: Check) -> Check:
    return lambda metadata, spec: None if _part(spec, "os").get("name") == "windows" else check(metadata, spec)


def _unless_own_users(check: Check) -> Check:
    """Skip the check for pods in a user namespace."""
    return lambda metadata, spec: None if spec.get("hostUsers") is False else check(metadata, spec)


def _escalation(metadata: Obj, spec: Obj) -> Forbidden | None:
    bad = [
        str(one.get("name")) for one in _containers(spec) if _context(one).get("allowPrivilegeEscalation") is not False
    ]
    detail = f"{_named(bad)} must set securityContext.allowPrivilegeEscalation=false"
    return Forbidden("allowPrivilegeEscalation != false", detail) if bad else None


def _dropped(metadata: Obj, spec: Obj) -> Forbidden | None:
    missing = [
        str(one.get("name"))
        for one in _containers(spec)
        if "ALL" not in (_part(_context(one), "capabilities").get("drop") or ())
    ]
    bad, found = _adding(spec, frozenset(("NET_BIND_SERVICE",)))
    said = [f'{_named(missing)} must set securityContext.capabilities.drop=["ALL"]'] if missing else []
    if bad:
        said.append(f"{_named(bad)} must not include {_quoted(found)} in securityContext.capabilities.add")
    return Forbidden("unrestricted capabilities", "; ".join(said)) if said else None


_VOLUMES = frozenset(
    (
        *("configMap", "csi", "downwardAPI", "emptyDir", "ephemeral", "image", "persistentVolumeClaim", "projected"),
        "secret",
    )
)
_OTHER_VOLUMES = (
    *("hostPath", "gcePersistentDisk", "awsElasticBlockStore", "gitRepo", "nfs", "iscsi", "glusterfs", "rbd"),
    *("flexVolume", "cinder", "cephfs", "flocker", "fc", "azureFile", "vsphereVolume", "quobyte", "azureDisk"),
    *("photonPersistentDisk", "portworxVolume", "scaleIO", "storageos"),
)


def _volumes(metadata: Obj, spec: Obj) -> Forbidden | None:
    bad: list[str] = []
    kinds: set[str] = set()
    for one in spec.get("volumes") or ():
        if not any(one.get(kind) is not None for kind in _VOLUMES):
            bad.append(str(one.get("name")))
            kinds.add(next((kind for kind in _OTHER_VOLUMES if one.get(kind) is not None), "unknown"))
    if not bad:
        return None
    which = f"{_count('volume', 'volumes', bad)} {_quoted(bad)} {_count('uses', 'use', bad)}"
    what = _count("restricted volume type", "restricted volume types", kinds)
    return Forbidden("restricted volume types", f"{which} {what} {_quoted(sorted(kinds))}")


def _non_root(metadata: Obj, spec: Obj) -> Forbidden | None:
    reason = "runAsNonRoot != true"
    setters = _where(spec, lambda context: context.get("runAsNonRoot") is False)
    if setters:
        return Forbidden(reason, f"{setters} must not set securityContext.runAsNonRoot=false")
    if _context(spec).get("runAsNonRoot"):
        return None
    bad = [str(one.get("name")) for one in _containers(spec) if _context(one).get("runAsNonRoot") is None]
    return Forbidden(reason, f"pod or {_named(bad)} must set securityContext.runAsNonRoot=true") if bad else None


def _user(metadata: Obj, spec: Obj) -> Forbidden | None:
    def wrong(context: Obj) -> bool:
        user = context.get("runAsUser")
        return isinstance(user, int) and not isinstance(user, bool) and user == 0

    setters = _where(spec, wrong)
    return Forbidden("runAsUser=0", f"{setters} must not set runAsUser=0") if setters else None


def _seccomp_set(metadata: Obj, spec: Obj) -> Forbidden | None:
    """Check as in the baseline, and require a profile for each container."""
    bad = _seccomp(metadata, spec)
    if bad is not None:
        return bad
    if isinstance(_context(spec).get("seccompProfile"), dict):
        return None
    names = [
        str(one.get("name")) for one in _containers(spec) if not isinstance(_context(one).get("seccompProfile"), dict)
    ]
    what = 'must set securityContext.seccompProfile.type to "RuntimeDefault" or "Localhost"'
    return Forbidden("seccompProfile", f"pod or {_named(names)} {what}") if names else None


# --- levels and versions -------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Rule:
    """``versions``: minor version → check. A restricted rule replaces those it ``overrides``."""

    name: str
    versions: tuple[tuple[int, Check], ...]
    overrides: tuple[str, ...] = ()

    def at(self, version: int) -> Check | None:
        return next((check for since, check in reversed(self.versions) if since <= version), None)


_MORE_SYSCTLS = ("net.ipv4.ip_local_reserved_ports",)
_TCP_SYSCTLS = (
    *("net.ipv4.tcp_keepalive_time", "net.ipv4.tcp_fin_timeout", "net.ipv4.tcp_keepalive_intvl"),
    "net.ipv4.tcp_keepalive_probes",
)
_MEMORY_SYSCTLS = ("net.ipv4.tcp_rmem", "net.ipv4.tcp_wmem")

_BASELINE = (
    _Rule("appArmorProfile", ((0, _app_armor),)),
    _Rule("capabilities_baseline", ((0, _capabilities),)),
    _Rule("hostNamespaces", ((0, _host_namespaces),)),
    _Rule("hostPathVolumes", ((0, _host_paths),)),
    _Rule("hostPorts", ((0, _host_ports),)),
    _Rule("hostProbesAndHostLifecycle", ((34, _host_probes),)),
    _Rule("privileged", ((0, _privileged),)),
    _Rule("procMount", ((0, _proc_mount), (35, _unless_own_users(_proc_mount)))),
    _Rule("seLinuxOptions", ((0, _se_linux()), (31, _se_linux("container_engine_t")))),
    _Rule("seccompProfile_baseline", ((0, _seccomp_annotations), (19, _seccomp))),
    _Rule(
        "sysctls",
        (
            (0, _sysctls()),
            (27, _sysctls(*_MORE_SYSCTLS)),
            (29, _sysctls(*_MORE_SYSCTLS, *_TCP_SYSCTLS)),
            (32, _sysctls(*_MORE_SYSCTLS, *_TCP_SYSCTLS, *_MEMORY_SYSCTLS)),
        ),
    ),
    _Rule("windowsHostProcess", ((0, _host_process),)),
)
_RESTRICTED = (
    _Rule("allowPrivilegeEscalation", ((8, _escalation), (25, _unless_windows(_escalation)))),
    _Rule("capabilities_restricted", ((22, _dropped), (25, _unless_windows(_dropped))), ("capabilities_baseline",)),
    _Rule("procMount_restricted", ((35, _proc_mount),), ("procMount",)),
    _Rule("restrictedVolumes", ((0, _volumes),), ("hostPathVolumes",)),
    _Rule("runAsNonRoot", ((0, _non_root), (35, _unless_own_users(_non_root)))),
    _Rule("runAsUser", ((23, _user), (35, _unless_own_users(_user)))),
    _Rule(
        "seccompProfile_restricted",
        ((19, _seccomp_set), (25, _unless_windows(_seccomp_set))),
        ("seccompProfile_baseline",),
    ),
)


@lru_cache(maxsize=256)
def _checks(level: str, version: int) -> tuple[Check, ...]:
    """Return the checks in Kubernetes' order: baseline before restricted, each by name."""
    if level == PRIVILEGED:
        return ()
    overridden: set[str] = set()
    more: list[Check] = []
    for rule in _RESTRICTED if level == RESTRICTED else ():
        check = rule.at(version)
        if check is not None:
            more.append(check)
            overridden.update(rule.overrides)
    plain = [check for rule in _BASELINE if rule.name not in overridden and (check := rule.at(version)) is not None]
    return (*plain, *more)


def evaluate(level: str, version: int, metadata: Obj, spec: Obj) -> list[Forbidden]:
    """Return what the level forbids; empty if the pod is allowed."""
    return [found for check in _checks(level, version) if (found := check(metadata, spec)) is not None]


def message(found: list[Forbidden]) -> str:
    """Return ``privileged (container "c" must not …), hostPort (…)``."""
    return ", ".join(f"{one.reason} ({one.detail})" if one.detail else one.reason for one in found)


def short_message(found: list[Forbidden]) -> str:
    return ", ".join(one.reason for one in found)
