"""Computes what an update does to a node after its files are written: nothing, reload, restart, reboot; pure.

:func:`update_actions` maps changes and the effective policies to actions, :func:`drain_needed` says whether to drain.
Before a node has joined, a fixed table replaces the policies. Source: Machine Config Operator
``calculatePostConfigChangeNodeDisruptionAction``, reference machine-config 4.4.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from syncline.kube.objects import Obj
from syncline.machineconfig.agent.planning.changes import Changes, Units
from syncline.machineconfig.drain.registries import PATH as REGISTRIES
from syncline.machineconfig.drain.registries import configs_change_safely
from syncline.machineconfig.policies.model import closest_policy


@dataclass(frozen=True, slots=True)
class Action:
    """An action. ``type`` is a policy's type; ``service`` belongs to a reload or restart."""

    type: str
    service: str = ""


REBOOT, NONE = Action("Reboot"), Action("None")


@dataclass(frozen=True, slots=True)
class Consequence:
    """A changed part and the actions that it needs. ``kind``: a field of the MachineConfig's spec, ``file``, ``unit``
    or ``sshkey``; ``name`` of a file or unit. ``policy``: path or name of the policy that governs the part, or None."""

    kind: str
    name: str
    actions: tuple[Action, ...]
    policy: str | None = None


def update_actions(changes: Changes, files: Sequence[str], units: Units, policies: Obj) -> list[Action]:
    """Return the actions in the order files, units, ssh keys, with repetitions. ``policies``: the effective ones."""
    if not (changes.of_system or changes.files or changes.units or changes.passwd):
        return [NONE]
    found = [action for one in consequences(changes, files, units, policies) for action in one.actions]
    if REBOOT in found:
        return [REBOOT]
    real = [action for action in found if action != NONE]
    return real or found[:1]


def consequences(changes: Changes, files: Sequence[str], units: Units, policies: Obj) -> list[Consequence]:
    """Return the consequences part by part: system, files, units, ssh keys. A part without a policy needs a reboot."""
    system = (
        ("osImageURL", changes.os_update),
        ("kernelArguments", changes.kargs),
        ("fips", changes.fips),
        ("kernelType", changes.kernel_type),
        ("extensions", changes.extensions),
    )
    found = [Consequence(field, "", (REBOOT,)) for field, differs in system if differs]
    for path in files:
        policy = closest_policy(path, policies.get("files") or [])
        found.append(_governed("file", path, policy, "path"))
    by_name: dict[str, Obj] = {}
    for each in policies.get("units") or []:
        by_name.setdefault(str(each.get("name", "")), each)
    for name in (*units.added, *units.removed, *units.updated):
        found.append(_governed("unit", name, by_name.get(name), "name"))
    if changes.passwd:
        keys = (policies.get("sshkey") or {}).get("actions") or []
        found.append(Consequence("sshkey", "", tuple(_read(keys)), "sshkey"))
    return found


def _governed(kind: str, name: str, policy: Obj | None, key: str) -> Consequence:
    if policy is None:
        return Consequence(kind, name, (REBOOT,))
    return Consequence(kind, name, tuple(_read(policy.get("actions") or [])), str(policy.get(key, "")))


def _read(actions: Iterable[Obj]) -> list[Action]:
    found = []
    for each in actions:
        kind = str(each.get("type", ""))
        found.append(Action(kind, str((each.get(kind.lower()) or {}).get("serviceName", ""))))
    return found


def drain_needed(actions: Iterable[Action], old: Obj, new: Obj) -> bool:
    """Return whether to drain between two Ignition configs. Raises RegistriesError for a bad registries.conf."""
    kinds = {action.type for action in actions}
    if kinds & {"Reboot", "Drain"}:
        return True
    return "Special" in kinds and not configs_change_safely(old, new)


# -- the first boot -----------------------------------------------------------------------------------------------

FIRST_BOOT_NONE, FIRST_BOOT_RELOAD, FIRST_BOOT_RESTART = "none", "reload crio", "restart crio"
FIRST_BOOT_REBOOT = "reboot"
_NOTHING = ("/etc/kubernetes/kubelet-ca.crt", "/var/lib/kubelet/config.json")
_NOTHING_BELOW = "/etc/nmstate/openshift"
_RELOADS = (
    REGISTRIES,
    "/etc/machine-config-daemon/no-reboot/containers-gpg.pub",
    "/etc/containers/policy.json",
)
_RELOADS_BELOW = "/etc/containers/registries.d"
_RESTARTS = ("/etc/pki/ca-trust/source/anchors/openshift-config-user-ca-bundle.crt",)


def first_boot_actions(changes: Changes, files: Sequence[str]) -> list[str]:
    """Return the actions of the first boot, before there are policies; any change of a unit reboots."""
    if changes.of_system or changes.units:
        return [FIRST_BOOT_REBOOT]
    found = FIRST_BOOT_NONE
    for path in files:
        folder = posixpath.dirname(path)
        if path in _NOTHING or folder == _NOTHING_BELOW:
            continue
        if path in _RESTARTS:
            found = FIRST_BOOT_RESTART
        elif path in _RELOADS or folder == _RELOADS_BELOW:
            found = found if found == FIRST_BOOT_RESTART else FIRST_BOOT_RELOAD
        else:
            return [FIRST_BOOT_REBOOT]
    return [found]


def first_boot_drain(actions: Sequence[str], files: Sequence[str], old: Obj, new: Obj) -> bool:
    """Return whether the first boot drains the node. Raises RegistriesError."""
    if FIRST_BOOT_REBOOT in actions:
        return True
    return REGISTRIES in files and not configs_change_safely(old, new)
