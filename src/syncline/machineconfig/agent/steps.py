"""The agent's steps on its machine as data; each is repeatable after a crash.

``machineconfig/agent/planning/plan.py`` plans them, ``machineconfig/agent/handler.py`` executes them on the host.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import TypeAlias

from syncline.base.action import Action
from syncline.kube.objects import Obj, name_of
from syncline.machineconfig.agent.files.authorities import Authorities
from syncline.machineconfig.agent.files.disk import Difference
from syncline.machineconfig.agent.planning.changes import Changes


@dataclass(frozen=True)
class Provision(Action):
    """Make ``config`` effective on a machine as if it had been installed with it."""

    node: str
    config: Obj = field(repr=False)
    reason: str

    def describe(self) -> str:
        return f"provision {self.node} with {name_of(self.config)}"


@dataclass(frozen=True)
class Ignite(Action):
    """Give a blank machine the config's files and users, its boot image, and the records for its first boot and its
    agent. ``image``: of image mode, else empty."""

    node: str
    config: Obj = field(repr=False)
    image: str
    boot_image: str
    reason: str

    def describe(self) -> str:
        return f"ignite {self.node} with {name_of(self.config)}"


@dataclass(frozen=True, slots=True)
class LookAtBoot(Action):
    """Read the running system; its value is a :class:`~syncline.machineconfig.agent.provisioning.firstboot.Booted`."""

    node: str
    reason: str

    def describe(self) -> str:
        return f"check what {self.node} has booted"


@dataclass(frozen=True, slots=True)
class EndFirstBoot(Action):
    """Finish the first boot. ``reboot_from``: the boot that requested a reboot that is still due, else empty. ``kept``:
    the first boot was skipped, and its MachineConfig stays as a backup."""

    node: str
    reboot_from: str
    reason: str
    kept: bool = False

    def describe(self) -> str:
        return f"{'note that the reboot' if self.reboot_from else 'end'} of the first boot of {self.node}" + (
            " is due" if self.reboot_from else ""
        )


@dataclass(frozen=True, slots=True)
class EndJoining(Action):
    """Remove the install's annotations, which the node now has."""

    node: str
    reason: str

    def describe(self) -> str:
        return f"put away the first annotations of {self.node}"


@dataclass(frozen=True)
class WriteFiles(Action):
    """Write all files and changed units of the MachineConfig ``new`` and remove what only ``old`` had. ``sparing``:
    ``old`` may be incomplete, so files that differ from it belong to others. ``rotated``: keep the kubelet's authority,
    which may be newer than the config's."""

    node: str
    old: Obj | None = field(repr=False)
    new: Obj = field(repr=False)
    forced: bool
    reason: str
    sparing: bool = False
    rotated: bool = False

    def describe(self) -> str:
        return f"write the files of {name_of(self.new)} on {self.node}"


@dataclass(frozen=True)
class WriteAuthorities(Action):
    """Write certificates and secrets that do not come with rendered configs."""

    node: str
    authorities: Authorities = field(repr=False)
    reason: str

    def describe(self) -> str:
        return f"write the authorities of ControllerConfig {self.authorities.version} on {self.node}"


@dataclass(frozen=True, slots=True)
class ReadServerAuthority(Action):
    """Read the certificates in PEM by which machines verify the API server; empty where none are set."""

    node: str
    reason: str

    def describe(self) -> str:
        return f"read what {self.node} is to know the API server by"


@dataclass(frozen=True)
class SetUsers(Action):
    node: str
    old: Obj | None = field(repr=False)
    new: Obj = field(repr=False)
    reason: str

    def describe(self) -> str:
        return f"set keys and password of core on {self.node}"


@dataclass(frozen=True, slots=True)
class DropStaged(Action):
    """Remove the staged system of the next boot, unless it is that of the config ``sparing``."""

    node: str
    reason: str
    sparing: Obj | None = field(default=None, repr=False)

    def describe(self) -> str:
        return f"drop what is staged for the next boot of {self.node}"


@dataclass(frozen=True)
class StageSystem(Action):
    """Stage image, kernel and packages of the next boot. ``again``: this may have been done before, and booted."""

    node: str
    old: Obj | None = field(repr=False)
    new: Obj = field(repr=False)
    changes: Changes
    reason: str
    again: bool = False

    @property
    def arrived(self) -> bool:
        """Return whether the disk has the config already and its previous config is unknown."""
        return self.again and self.old == self.new

    def describe(self) -> str:
        return f"stage the system of {name_of(self.new)} on {self.node}"


@dataclass(frozen=True)
class StoreConfig(Action):
    """Record the configuration on the disk; it overrides every annotation. ``image``: of image mode, else empty."""

    node: str
    config: Obj = field(repr=False)
    reason: str
    image: str = ""

    def describe(self) -> str:
        return f"note on the disk of {self.node} that it has {name_of(self.config)}"


@dataclass(frozen=True, slots=True)
class RunService(Action):
    """Control a service. ``verb``: ``reload`` or ``restart`` of a service, or ``daemon-reload``."""

    node: str
    verb: str
    service: str
    reason: str

    def describe(self) -> str:
        return f"{self.verb} {self.service} on {self.node}".replace("  ", " ")


@dataclass(frozen=True, slots=True)
class RebootHost(Action):
    """Reboot the host. ``request``: an id; the host reboots once for each."""

    node: str
    request: str
    reason: str

    def describe(self) -> str:
        return f"reboot {self.node}"


@dataclass(frozen=True, slots=True)
class Checked:
    """The result of a disk comparison. ``difference``: None if there is none. ``finalize_failure``: why the staged
    system was not finalized for this boot, empty if it was; ``unsupported``: number of packages without an extension;
    both are None if not read. ``staged``: a system is staged and waits for a boot."""

    difference: Difference | None
    finalize_failure: str | None = None
    unsupported: int | None = None
    staged: bool = False

    @property
    def summary(self) -> str:
        """Return the result as text for people."""
        found = [self.difference.text] if self.difference is not None else []
        if self.finalize_failure:
            found.append(f"what was staged was not put in place: {self.finalize_failure}")
        return "; ".join(found) or "it is as it should be"


@dataclass(frozen=True)
class CheckDisk(Action):
    """Compare the disk with ``config``; ``booted``: also image and kernel arguments; ``layers``: also kernel and
    packages. ``image``: that of image mode, in place of the config's. Its value is a :class:`Checked`."""

    node: str
    config: Obj = field(repr=False)
    booted: bool
    reason: str
    image: str = ""
    layers: bool = False

    def describe(self) -> str:
        return f"compare the disk of {self.node} with {name_of(self.config)}"


@dataclass(frozen=True)
class CompareInstalled(Action):
    """Compare storage of ``config`` with the install's. Its value: changes for the MachineConfigNode, or None if
    unknown."""

    node: str
    config: Obj = field(repr=False)
    reason: str

    def describe(self) -> str:
        return f"compare {name_of(self.config)} with what {self.node} was installed with"


@dataclass(frozen=True, slots=True)
class Pulled:
    """The result of a pull. ``until``: expected end of the pulls in progress; ``more``: repeat the request at once;
    ``error``: why an image is unavailable."""

    until: datetime | None = None
    more: bool = False
    error: str = ""


@dataclass(frozen=True, slots=True)
class PullImages(Action):
    """Pull missing images; its value is a :class:`Pulled`."""

    node: str
    images: tuple[str, ...]
    reason: str

    def describe(self) -> str:
        return f"fetch {len(self.images)} images on {self.node}"


@dataclass(frozen=True, slots=True)
class PinImages(Action):
    """Make CRI-O keep exactly these images, whatever the kubelet removes."""

    node: str
    images: tuple[str, ...]
    reason: str

    def describe(self) -> str:
        return f"pin {len(self.images)} images on {self.node}"


@dataclass(frozen=True)
class PlanPlays(Action):
    """Check what the plays of ``config`` would change. Its value, and that of the next two, is the
    :class:`~syncline.machineconfig.ansible.journal.Journal`."""

    node: str
    config: Obj = field(repr=False)
    plays: tuple[str, ...]
    reason: str

    def describe(self) -> str:
        return f"check on {self.node} what AnsibleConfig {', '.join(self.plays)} would change"


@dataclass(frozen=True)
class RunPlays(Action):
    """Run the plays of ``config`` that are due, and check that a second run would change nothing."""

    node: str
    config: Obj = field(repr=False)
    plays: tuple[str, ...]
    reason: str

    def describe(self) -> str:
        return f"run AnsibleConfig {', '.join(self.plays)} on {self.node}"


@dataclass(frozen=True)
class CheckPlays(Action):
    """Check the plays of ``config`` for drift."""

    node: str
    config: Obj = field(repr=False)
    plays: tuple[str, ...]
    reason: str

    def describe(self) -> str:
        return f"look for drift from AnsibleConfig {', '.join(self.plays)} on {self.node}"


PlayStep: TypeAlias = PlanPlays | RunPlays | CheckPlays

HostStep: TypeAlias = (
    Provision
    | Ignite
    | LookAtBoot
    | EndFirstBoot
    | EndJoining
    | WriteFiles
    | ReadServerAuthority
    | WriteAuthorities
    | SetUsers
    | DropStaged
    | StageSystem
    | StoreConfig
    | RunService
    | RebootHost
    | CheckDisk
    | CompareInstalled
    | PullImages
    | PinImages
    | PlanPlays
    | RunPlays
    | CheckPlays
)
