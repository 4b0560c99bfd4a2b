"""The machines that an agent manages: its own one, or the simulated ones of a cluster. Entry point: :class:`Hosts`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol

from syncline.kube.kinds.machineconfiguration import MACHINE_CONFIG
from syncline.kube.objects import Obj, name_of
from syncline.machineconfig.agent.host import Host, HostError
from syncline.machineconfig.ansible.journal import EMPTY, Journal
from syncline.machineconfig.ansible.order import Player

CURRENT_CONFIG = "/etc/machine-config-daemon/currentconfig"
CURRENT_IMAGE_FILE = "/etc/machine-config-daemon/currentimage"
FORCE_FILE = "/run/machine-config-daemon-force"
"""Creating this file requests a full rewrite and a reboot."""


@dataclass(frozen=True, slots=True)
class Joining:
    """Records that an install left for the agent; each is removed when done. ``encapsulated``: the MachineConfig of the
    first boot; ``annotations``: first annotations of the node; ``reboot_from``: the boot that requested a reboot;
    ``damage``: why one of these records cannot be read."""

    encapsulated: Obj | None = None
    annotations: Mapping[str, str] | None = None
    reboot_from: str = ""
    damage: str = ""


@dataclass(frozen=True, slots=True)
class FixedSystem:
    """A system that the agent cannot change. ``name``, e.g. ``debian``; ``command_line`` of its running kernel."""

    name: str
    command_line: str


@dataclass(frozen=True, slots=True)
class HostFacts:
    """Facts about a machine. ``up``: running and not about to reboot; ``stored``, ``image``: MachineConfig and
    image-mode image recorded on the disk; ``fips``: whether the kernel runs in FIPS mode, or None; ``touched``: others
    changed files since the last comparison; ``fresh``: the booted system is not compared yet; ``blank``: it has no
    system yet and takes its pool's config; ``fixed``: set if kernel and packages cannot be changed; ``plays``: what the
    disk records of Ansible."""

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
    plays: Journal = EMPTY


def stored_config(content: bytes) -> Obj:
    """Return the MachineConfig in :data:`CURRENT_CONFIG`. Raises HostError if it is damaged."""
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
    """The state of one image. ``until``: expected end of the pull; ``fetched``: it was pulled now; ``error``: the pull
    failed. All empty: the image was already present."""

    until: datetime | None = None
    fetched: bool = False
    error: str = ""


class Hosts(Protocol):
    in_place: bool
    """Whether steps are fast and run in the control loop instead of a thread."""

    def facts(self, node: str) -> HostFacts | None:
        """Return the facts of a machine, or None if it is not managed here."""
        ...

    def host(self, node: str) -> Host:
        """Return the host. Raises KeyError if the machine is not managed here."""
        ...

    def provision(self, node: str, config: Obj) -> None:
        """Make image and kernel arguments of a MachineConfig effective without a boot."""
        ...

    def store(self, node: str, config: Obj, image: str = "") -> None:
        """Record the configuration and the image-mode image on the disk, each atomically."""
        ...

    def compared(self, node: str, *, booted: bool = False) -> None:
        """Record that the disk was compared, which resets ``touched``; ``booted``: so was the running system."""
        ...

    def differs(self, node: str) -> None:
        """Report a difference again at the next comparison, until it is reported or gone."""
        ...

    def pull(self, node: str, image: str) -> Pull:
        """Pull an image, or return the progress."""
        ...

    def booted_image(self, node: str) -> str: ...

    def command_line(self, node: str) -> str:
        """Return the command line of the running kernel."""
        ...

    def finalize_failure(self, node: str) -> str:
        """Return the error with which the previous boot failed to finalize the staged system, or an empty string."""
        ...

    def reboot(self, node: str, request: str) -> None:
        """Reboot once per request, which consists of MachineConfig name, dot and boot id. Raises OSError."""
        ...

    @property
    def player(self) -> Player:
        """Who runs Ansible on these machines."""
        ...
