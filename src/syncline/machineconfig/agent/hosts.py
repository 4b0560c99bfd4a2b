"""Where the agent finds the machines it works on: one of its own, or the simulated ones of a cluster."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol

from syncline.kube.kinds.machineconfiguration import MACHINE_CONFIG
from syncline.kube.objects import Obj, name_of
from syncline.machineconfig.agent.host import Host, HostError

__all__ = [
    "CURRENT_CONFIG",
    "CURRENT_IMAGE_FILE",
    "FORCE_FILE",
    "FixedSystem",
    "HostFacts",
    "Hosts",
    "Joining",
    "Pull",
    "stored_config",
]

CURRENT_CONFIG = "/etc/machine-config-daemon/currentconfig"
CURRENT_IMAGE_FILE = "/etc/machine-config-daemon/currentimage"
FORCE_FILE = "/run/machine-config-daemon-force"
"""Creating this file requests a full rewrite and a reboot."""


@dataclass(frozen=True, slots=True)
class Joining:
    """What the install of a machine has left for its agent; each goes when it is done. ``encapsulated``: the
    MachineConfig of the first boot; ``annotations``: what its node is to say first; ``reboot_from``: the boot in which
    it asked for its reboot; ``damage``: why one of them, or what the agent noted later, cannot be read."""

    encapsulated: Obj | None = None
    annotations: Mapping[str, str] | None = None
    reboot_from: str = ""
    damage: str = ""


@dataclass(frozen=True, slots=True)
class FixedSystem:
    """``name``: ``debian``; ``command_line``: of its running kernel."""

    name: str
    command_line: str


@dataclass(frozen=True, slots=True)
class HostFacts:
    """What a plan needs to know. ``up``: it runs and is not about to reboot; ``stored``, ``image``: the MachineConfig
    that the disk says it has, and the image of image mode, empty without; ``fips``: whether the kernel runs so, None
    where it cannot; ``touched``: files changed since the disk was last compared, and not by us; ``fresh``: what it has
    booted was not compared yet; ``blank``: it has no system of its own yet, and takes whatever its pool gives it;
    ``fixed``: of a machine whose kernel and packages are not ours to change."""

    boot_id: str
    up: bool = True
    stored: Obj | None = None
    image: str = ""
    forced: bool = False
    fips: bool | None = None
    touched: bool = False
    fresh: bool = False
    blank: bool = False
    fixed: FixedSystem | None = None
    joining: Joining = Joining()


def stored_config(content: bytes) -> Obj:
    """The MachineConfig that :data:`CURRENT_CONFIG` holds. Raises HostError for what is none."""
    try:
        found: Any = json.loads(content)
        if not (isinstance(found, dict) and name_of(found) and isinstance(found.get("spec"), dict)):
            raise ValueError("it is no MachineConfig")
    except (ValueError, TypeError, AttributeError, RecursionError) as error:
        text = f"damaged ({error}); remove it, and the machine is taken over with the config of its node"
        raise HostError("read", CURRENT_CONFIG, text) from error
    return {"apiVersion": MACHINE_CONFIG.api_version, "kind": MACHINE_CONFIG.kind} | found


@dataclass(frozen=True, slots=True)
class Pull:
    """Of one image. ``until``: when it will be there; ``fetched``: it was not there before; ``error``: it is not to be
    had. Nothing of these: it is there."""

    until: datetime | None = None
    fetched: bool = False
    error: str = ""


class Hosts(Protocol):
    in_place: bool
    """Its steps are quick and run where the control loop does, not in a thread."""

    def facts(self, node: str) -> HostFacts | None:
        """None: no machine of ours."""
        ...

    def host(self, node: str) -> Host:
        """Raises KeyError for a machine that is not ours."""
        ...

    def provision(self, node: str, config: Obj) -> None:
        """Image and kernel arguments of a MachineConfig are in force from now on, without a boot."""
        ...

    def store(self, node: str, config: Obj, image: str = "") -> None:
        """Note on the disk, each at once and whole, which configuration it has, and which image of image mode."""
        ...

    def compared(self, node: str, *, booted: bool = False) -> None:
        """The disk was compared: what was touched before does not count any more. ``booted``: so was what runs."""
        ...

    def differs(self, node: str) -> None:
        """What a comparison found has not been reported yet: until it is, or is gone, the next look finds it again."""
        ...

    def pull(self, node: str, image: str) -> Pull:
        """Fetch an image, or say how far it is."""
        ...

    def booted_image(self, node: str) -> str: ...

    def command_line(self, node: str) -> str:
        """Of the running kernel."""
        ...

    def finalize_failure(self, node: str) -> str:
        """What the end of the boot before failed with, as it put in place what was staged for this one; else empty."""
        ...

    def reboot(self, node: str, request: str) -> None:
        """Once for each request, which is the name of the MachineConfig, a dot and the boot id. Raises OSError."""
        ...
