"""Node disruption policies: what a change of a file, a unit or the ssh keys does to a node.

:func:`effective_policies` merges the user's policies over upstream's defaults; the result is in the status of
MachineConfiguration ``cluster``, where agents read it. Source: reference machine-config 1.8 and 4.4.
"""

from __future__ import annotations

import posixpath
from collections.abc import Sequence
from typing import Any

from syncline.kube.objects import Obj

CRIO = "crio.service"
KUBELET = "kubelet.service"
TRUST = "coreos-update-ca-trust.service"
REGISTRY = "iri-registry.service"


def _action(kind: str, service: str = "") -> Obj:
    return {"type": kind, kind.lower(): {"serviceName": service}} if service else {"type": kind}


def _restart(*services: str) -> list[Obj]:
    return [_action("Restart", service) for service in services]


_NONE = [_action("None")]
_RELOAD_CRIO = [_action("Reload", CRIO)]

DEFAULT_POLICIES: Obj = {
    "files": [
        {"path": path, "actions": actions}
        for path, actions in (
            ("/var/lib/kubelet/config.json", _NONE),
            ("/etc/machine-config-daemon/no-reboot/containers-gpg.pub", _RELOAD_CRIO),
            ("/etc/containers/policy.json", _RELOAD_CRIO),
            ("/etc/containers/registries.conf", [_action("Special")]),
            ("/etc/containers/registries.d", _RELOAD_CRIO),
            ("/etc/crio/policies", _RELOAD_CRIO),
            ("/etc/nmstate/openshift", _NONE),
            ("/etc/pki/ca-trust/source/anchors/openshift-config-user-ca-bundle.crt", _restart(TRUST, CRIO)),
            ("/etc/kubernetes/credential-providers", _restart(KUBELET)),
            (
                "/etc/systemd/system/kubelet.service.d/40-kubelet-crio-image-credential-provider.conf",
                [_action("DaemonReload"), *_restart(KUBELET)],
            ),
            ("/etc/iri-registry", _restart(REGISTRY)),
            ("/usr/local/bin/load-registry-image.sh", _restart(REGISTRY)),
            ("/etc/pki/ca-trust/source/anchors/iri-root-ca.crt", _restart(TRUST)),
        )
    ],
    "units": [{"name": REGISTRY, "actions": [_action("DaemonReload"), *_restart(REGISTRY)]}],
    "sshkey": {"actions": _NONE},
}
"""``clusterPolicies`` without settings of an administrator."""


def effective_policies(user: Obj | None) -> Obj:
    """Return ``status.nodeDisruptionPolicyStatus.clusterPolicies`` for ``spec.nodeDisruptionPolicy``.

    A policy for a default path or name replaces the default, others follow in the given order; any action for ssh keys
    replaces the default ones (upstream ``MergeClusterPolicies``).
    """
    said = user or {}
    keys: list[Obj] = (said.get("sshkey") or {}).get("actions") or []
    return {
        "files": _overlaid(DEFAULT_POLICIES["files"], said.get("files") or [], "path"),
        "units": _overlaid(DEFAULT_POLICIES["units"], said.get("units") or [], "name"),
        "sshkey": {"actions": [_stated(one) for one in keys] or DEFAULT_POLICIES["sshkey"]["actions"]},
    }


def _overlaid(defaults: Sequence[Obj], user: Sequence[Obj], key: str) -> list[Obj]:
    places = {each[key]: index for index, each in enumerate(defaults)}
    merged = list(defaults)
    for each in user:
        name = each.get(key, "")
        policy = {key: name, "actions": [_stated(action) for action in each.get("actions") or []]}
        if name in places:
            merged[places[name]] = policy
        else:
            merged.append(policy)
    return merged


def _stated(action: Obj) -> Obj:
    """Return an action as the status has it: the service of a reload or restart, nothing else."""
    kind = str(action.get("type", ""))
    if kind in ("Reload", "Restart"):
        return _action(kind, str((action.get(kind.lower()) or {}).get("serviceName", "")))
    return _action(kind)


def closest_policy(path: str, files: Sequence[Obj]) -> Obj | None:
    """Return the policy that governs ``path``, or None.

    A policy governs its own path as written and, both cleaned, everything below it. The longest policy path as written
    wins, the first of equal length (upstream ``FindClosestFilePolicyPathMatch``).
    """
    found, length = None, 0
    for policy in files:
        written = str(policy.get("path", ""))
        below = _clean(path).startswith(_clean(written) + "/")
        if (path == written or below) and len(written.encode()) > length:
            found, length = policy, len(written.encode())
    return found


def policy_for_path(path: str, files: Sequence[Obj]) -> list[Any] | None:
    """The actions of the policy that governs ``path``; None if there is none."""
    found = closest_policy(path, files)
    return None if found is None else list(found.get("actions") or [])


def _clean(path: str) -> str:
    """Clean a path like Go's ``filepath.Clean``, which does not keep a leading double slash."""
    cleaned = posixpath.normpath(path) if path else "."
    return cleaned[1:] if cleaned.startswith("//") else cleaned
