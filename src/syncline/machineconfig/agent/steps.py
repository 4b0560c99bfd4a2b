"""What the agent does to its machine, as data. Each step can be done again after a crash.

Planned by ``machineconfig/agent/planning/plan.py``, performed by ``machineconfig/agent/handler.py`` on the host of a
node.
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

__all__ = [
    "CheckDisk",
    "Checked",
    "CompareInstalled",
    "DropStaged",
    "EndFirstBoot",
    "EndJoining",
    "HostStep",
    "Ignite",
    "LookAtBoot",
    "PinImages",
    "Provision",
    "PullImages",
    "Pulled",
    "ReadServerAuthority",
    "RebootHost",
    "RunService",
    "SetUsers",
    "StageSystem",
    "StoreConfig",
    "WriteAuthorities",
    "WriteFiles",
]


@dataclass(frozen=True)
class Provision(Action):
    """A machine begins with ``config``, or is taken over with it: everything is as if it had been born so."""

    node: str
    config: Obj = field(repr=False)
    reason: str

    def describe(self) -> str:
        return f"provision {self.node} with {name_of(self.config)}"


@dataclass(frozen=True)
class Ignite(Action):
    """A blank machine gets what a machine that joins its pool gets: the config's files and users, the image that it
    boots from, and what its first boot and its agent continue with. ``image``: of image mode, else empty."""

    node: str
    config: Obj = field(repr=False)
    image: str
    boot_image: str
    reason: str

    def describe(self) -> str:
        return f"ignite {self.node} with {name_of(self.config)}"


@dataclass(frozen=True, slots=True)
class LookAtBoot(Action):
    """What the running system is; its value is a
    :class:`~syncline.machineconfig.agent.provisioning.firstboot.Booted`."""

    node: str
    reason: str

    def describe(self) -> str:
        return f"check what {self.node} has booted"


@dataclass(frozen=True, slots=True)
class EndFirstBoot(Action):
    """The MachineConfig of the first boot is done with. ``reboot_from``: a reboot is due, asked for in that boot;
    empty: nothing was to be done, or it has been done. ``kept``: it was not done, and is kept for people to see."""

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
    """Its node says what it was to say first."""

    node: str
    reason: str

    def describe(self) -> str:
        return f"put away the first annotations of {self.node}"


@dataclass(frozen=True)
class WriteFiles(Action):
    """All files and the changed units of ``new``; what ``old`` had alone goes. Both are MachineConfigs. ``sparing``:
    ``old`` may have been written in part only, so that what differs from it is another owner's. ``rotated``: the
    kubelet's authority came past the configs, and a config may hold one of before."""

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
    """Certificates and secrets that come past rendered configs."""

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
    """Give up what is staged for the next boot. ``sparing``: a config; what is staged for that is kept."""

    node: str
    reason: str
    sparing: Obj | None = field(default=None, repr=False)

    def describe(self) -> str:
        return f"drop what is staged for the next boot of {self.node}"


@dataclass(frozen=True)
class StageSystem(Action):
    """Image, kernel and packages of the next boot. ``again``: it may have been done before, and booted."""

    node: str
    old: Obj | None = field(repr=False)
    new: Obj = field(repr=False)
    changes: Changes
    reason: str
    again: bool = False

    @property
    def arrived(self) -> bool:
        """The disk has its config already, and it is unknown what it had before: what is staged came from there."""
        return self.again and self.old == self.new

    def describe(self) -> str:
        return f"stage the system of {name_of(self.new)} on {self.node}"


@dataclass(frozen=True)
class StoreConfig(Action):
    """Note on the disk which configuration it has: it beats every annotation. ``image``: of image mode, else empty."""

    node: str
    config: Obj = field(repr=False)
    reason: str
    image: str = ""

    def describe(self) -> str:
        return f"note on the disk of {self.node} that it has {name_of(self.config)}"


@dataclass(frozen=True, slots=True)
class RunService(Action):
    """``verb``: ``reload`` or ``restart`` of a service, or ``daemon-reload``."""

    node: str
    verb: str
    service: str
    reason: str

    def describe(self) -> str:
        return f"{self.verb} {self.service} on {self.node}".replace("  ", " ")


@dataclass(frozen=True, slots=True)
class RebootHost(Action):
    """``request``: an id; the host reboots once for each."""

    node: str
    request: str
    reason: str

    def describe(self) -> str:
        return f"reboot {self.node}"


@dataclass(frozen=True, slots=True)
class Checked:
    """What a comparison of the disk found; None: nothing differs. ``finalize_failure``: why what was staged was not put
    in place for this boot, empty if it was, or nothing was; ``unsupported``: packages that no extension brings. None:
    no one has asked, or the machine cannot tell. ``staged``: its system is staged, and waits for a boot."""

    difference: Difference | None
    finalize_failure: str | None = None
    unsupported: int | None = None
    staged: bool = False

    @property
    def summary(self) -> str:
        """For people."""
        found = [self.difference.text] if self.difference is not None else []
        if self.finalize_failure:
            found.append(f"what was staged was not put in place: {self.finalize_failure}")
        return "; ".join(found) or "it is as it should be"


@dataclass(frozen=True)
class CheckDisk(Action):
    """Is the disk what ``config`` says; ``booted``: also image and kernel arguments; ``layers``: also the kernel itself
    and packages. ``image``: of image mode, in place of the config's. Its value is a :class:`Checked`."""

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
    """What ``config`` says of disks that the machine was not installed with. Its value: changes as a MachineConfigNode
    has them, None where no one can tell."""

    node: str
    config: Obj = field(repr=False)
    reason: str

    def describe(self) -> str:
        return f"compare {name_of(self.config)} with what {self.node} was installed with"


@dataclass(frozen=True, slots=True)
class Pulled:
    """``until``: when the images that are being fetched will be there; ``more``: it must be asked again at once;
    ``error``: why one is unavailable."""

    until: datetime | None = None
    more: bool = False
    error: str = ""


@dataclass(frozen=True, slots=True)
class PullImages(Action):
    """Fetch what is not there; its value is a :class:`Pulled`."""

    node: str
    images: tuple[str, ...]
    reason: str

    def describe(self) -> str:
        return f"fetch {len(self.images)} images on {self.node}"


@dataclass(frozen=True, slots=True)
class PinImages(Action):
    """CRI-O keeps these and no others, whatever the kubelet cleans up."""

    node: str
    images: tuple[str, ...]
    reason: str

    def describe(self) -> str:
        return f"pin {len(self.images)} images on {self.node}"


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
)
