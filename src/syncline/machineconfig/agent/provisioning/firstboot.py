"""Computes what the first boot of a machine must still do to image, kernel and packages; pure.

Ignition has written the files. :func:`first_boot` compares the running image and kernel arguments with the
MachineConfig that the install left; a difference is staged, and the machine reboots before it runs workloads. Source:
Machine Config Operator ``RunFirstbootCompleteMachineconfig``.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from syncline.ignition.golang import quoted
from syncline.kube.objects import Obj, dig, name_of
from syncline.machineconfig.agent.actions import first_boot_actions
from syncline.machineconfig.agent.hosts import Joining
from syncline.machineconfig.agent.planning.changes import EMPTY, Changes, changes_between
from syncline.machineconfig.agent.staging.kernel import running_of
from syncline.machineconfig.agent.steps import (
    DropStaged,
    EndFirstBoot,
    HostStep,
    RebootHost,
    SetUsers,
    StageSystem,
    WriteFiles,
)
from syncline.machineconfig.configs.parsing import ConfigError
from syncline.machineconfig.configs.reconcile import unreconcilable
from syncline.machineconfig.names import ENCAPSULATED, NODE_ANNOTATIONS

FIPS_ENABLED = "/proc/sys/crypto/fips_enabled"
REBOOT_NOTE = "/etc/machine-config-daemon/first-boot-reboot"
"""Our record of the boot that requested the first boot's reboot; removed after the next boot."""
NOTHING_YET = "mco-empty-mc"
"""Upstream's name of what a machine has before its first boot."""
_SYSTEM = ("osImageURL", "kernelArguments", "kernelType", "extensions")
_TRUE = ("1", "t", "T", "TRUE", "true", "True")
_FALSE = ("0", "f", "F", "FALSE", "false", "False")


class FirstBootError(ValueError):
    """The first boot cannot be evaluated; the message is upstream's."""


@dataclass(frozen=True, slots=True)
class Booted:
    """The running system. ``image``: None for systems that are not image-based, where nothing can be staged; ``fips``:
    content of the kernel's FIPS file, or None."""

    image: str | None
    command_line: str = ""
    fips: str | None = None

    @property
    def summary(self) -> str:
        image = "no system of images" if self.image is None else f"image {self.image or 'unknown'}"
        return f"{image}, kernel arguments {self.command_line.strip() or 'none'}"


@dataclass(frozen=True, slots=True)
class FirstBoot:
    """The comparison. ``old``: the running system as a MachineConfig; ``refusal``: why it cannot become ``new``."""

    old: Obj
    new: Obj
    changes: Changes
    refusal: str | None

    @property
    def running(self) -> list[str]:
        """Return the requested arguments that the running kernel has."""
        found: list[str] = dig(self.old, "spec", "kernelArguments") or []
        return found

    @property
    def changed(self) -> bool:
        return not self.changes.empty

    @property
    def actions(self) -> list[str]:
        """Return the actions; files do not count, since Ignition has written them."""
        return first_boot_actions(self.changes, [])


def first_boot(config: Obj, booted: Booted) -> FirstBoot:
    """Return the comparison. ``config``: the MachineConfig that the install left. Raises FirstBootError."""
    wanted: Obj = config.get("spec") or {}
    spec: Obj = {"config": EMPTY}
    if booted.image is None:
        spec |= {key: wanted[key] for key in _SYSTEM if key in wanted}
    else:
        running = running_of(wanted.get("kernelArguments"), booted.command_line)
        spec |= {"osImageURL": booted.image, "kernelArguments": running}
    if booted.fips is not None:
        spec["fips"] = _fips(booted.fips)
    old: Obj = {"metadata": {"name": NOTHING_YET}, "spec": spec}
    try:
        changes = changes_between(old, config)
    except ConfigError as error:
        raise FirstBootError(f"error creating machineConfigDiff for comparison: {error}") from error
    refusal = unreconcilable(old, [config])
    if refusal is not None:
        refusal = f"configs {NOTHING_YET}, {name_of(config)} are not reconcilable: {refusal}"
    return FirstBoot(old, config, changes, refusal)


def _fips(text: str) -> bool:
    found = kernel_fips(text)
    if found is None:
        raise FirstBootError(
            f"failed to set node FIPS into MC: error parsing FIPS file at {FIPS_ENABLED}: strconv.ParseBool: "
            f"parsing {quoted(text.removesuffix(chr(10)))}: invalid syntax"
        )
    return found


def kernel_fips(text: str) -> bool | None:
    """Return whether the kernel runs in FIPS mode; None for a text that Go does not parse as a bool."""
    word = text.removesuffix("\n")
    return True if word in _TRUE else False if word in _FALSE else None


def first_boot_steps(node: str, boot: FirstBoot, boot_id: str) -> tuple[HostStep, ...]:
    """Return the steps up to the reboot, or to the end if none is needed. Each step is repeatable after a crash."""
    why = f"the first boot with {name_of(boot.new)}"
    if not boot.changed:
        return (EndFirstBoot(node, "", why),)
    changes, steps = boot.changes, list[HostStep]()
    if changes.files or changes.units:
        steps.append(WriteFiles(node, boot.old, boot.new, False, why))
    if changes.passwd:
        steps.append(SetUsers(node, boot.old, boot.new, why))
    if changes.os_changes:
        steps += [DropStaged(node, why), StageSystem(node, boot.old, boot.new, changes, why)]
    return (*steps, EndFirstBoot(node, boot_id, why), RebootHost(node, f"{name_of(boot.new)}.{boot_id}", why))


def interrupted_steps(node: str, reboot_from: str, boot_id: str) -> tuple[HostStep, ...]:
    """Return the steps of a first boot that already requested its reboot: request it again, or finish if it has
    happened."""
    if reboot_from != boot_id:
        return (EndFirstBoot(node, "", "it has rebooted"),)
    why = "its first boot needs it"
    return EndFirstBoot(node, boot_id, why), RebootHost(node, f"first-boot.{boot_id}", why)


def joining_of(read: Callable[[str], bytes | None]) -> Joining:
    """Return the records of the install. ``read``: returns a file's content, or None."""
    try:
        encapsulated = _json(read(ENCAPSULATED), "failed to parse MachineConfig")
        annotations = _json(read(NODE_ANNOTATIONS), "failed to unmarshal initial annotations")
    except ValueError as error:
        return Joining(damage=str(error))
    words = {key: value for key, value in (annotations or {}).items() if isinstance(value, str)}
    note = read(REBOOT_NOTE) or b""
    return Joining(encapsulated, None if annotations is None else words, note.decode("utf-8", "replace").strip())


def _json(content: bytes | None, problem: str) -> Obj | None:
    if content is None:
        return None
    try:
        found: Any = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{problem}: {error}") from error
    if not isinstance(found, dict):
        raise ValueError(f"{problem}: it is no JSON object")
    return found
